"""Requests made up from docs/openapi.yaml: as it has them, at their limits, and broken in one way or another."""

import copy
import json
import urllib.parse
from dataclasses import dataclass

from openapi import body_of, fits, operations, parameters, resolved

WORDS = ["", "left", "a" * 300, "-", "..", "\u00e9\u4e16", "%", "'\"\\", "\x7f", "null", "memory:", "{}", "10.0.0.0/8", "*",
         "\ud83d\ude00"]
NUMBERS = [0, 1, -1, 2**31, 2**32, 2**53 + 1, 2**63, 2**64, -(2**63), 10**30, 1.5, 1e308, -0.0]
OTHER_METHODS = ["GET", "HEAD", "PUT", "POST", "DELETE", "PATCH", "OPTIONS", "TRACE", "BREW"]


@dataclass
class Request:
    path: str  # of the description; None if method, path, parameters or the rest of the header are not as described
    method: str
    data: bytes  # as it is sent
    wrong_body: bool  # the body is not what the description wants
    large: bool  # beyond a limit

    def __str__(self):
        return f"{self.method} of {self.path}: {self.data[:2000]!r}{' ...' if len(self.data) > 2000 else ''}"


class Generator:
    """`names` are what path parameters may be: names that the node has answered."""

    def __init__(self, source, names):
        self.source, self.names = source, names
        self.operations = operations()

    # ---- Values ----

    def word(self):
        kind = self.source.randrange(4)
        if kind == 0 and self.names:
            return self.source.choice(self.names)
        if kind == 1:
            return self.source.choice(WORDS)
        return "".join(chr(self.source.choice((self.source.randrange(32, 127), self.source.randrange(1, 0x2000))))
                       for _ in range(self.source.randrange(12)))

    def anything(self, depth=0):
        kind = self.source.randrange(8 if depth < 3 else 6)
        if kind == 6:
            return [self.anything(depth + 1) for _ in range(self.source.randrange(4))]
        if kind == 7:
            return {self.word(): self.anything(depth + 1) for _ in range(self.source.randrange(4))}
        return [None, True, False, self.source.choice(NUMBERS), self.word(), self.word()][kind]

    def valid(self, schema, depth=0):
        """A value that fits the schema, as far as the schema says so; often at a limit."""
        schema, choose = resolved(schema), self.source.choice
        for key in ("examples", "enum"):
            if key in schema and (key == "enum" or self.source.randrange(2)):
                return copy.deepcopy(choose(schema[key]))
        for key in ("example", "const"):
            if key in schema:
                return copy.deepcopy(schema[key])
        for key in ("oneOf", "anyOf"):
            if key in schema:
                return self.valid(choose(schema[key]), depth)
        if "allOf" in schema:
            merged = {}
            for part in [*schema["allOf"], {key: value for key, value in schema.items() if key != "allOf"}]:
                for key, value in resolved(part).items():
                    merged[key] = {**merged.get(key, {}), **value} if isinstance(value, dict) else \
                        [*merged.get(key, []), *value] if isinstance(value, list) else value
            return self.valid(merged, depth)
        kind = schema.get("type")
        kind = choose(kind) if isinstance(kind, list) else kind
        if kind == "object" or (kind is None and "properties" in schema):
            return self.valid_object(schema, depth)
        if kind == "array":
            least, most = schema.get("minItems", 0), schema.get("maxItems", schema.get("minItems", 0) + 3)
            count = least if depth > 6 else self.source.randint(least, min(most, least + 3))
            return [self.valid(schema.get("items", {}), depth + 1) for _ in range(count)]
        if kind in ("integer", "number"):
            least, most = schema.get("minimum", -(2**40)), schema.get("maximum", 2**40)
            return choose([least, most, schema.get("default", least), self.source.randint(int(least), int(most))])
        if kind == "boolean":
            return choose([True, False])
        if kind == "null":
            return None
        if kind == "string":
            text = self.word()
            return text.ljust(schema.get("minLength", 0), "x")[:schema.get("maxLength", len(text) + 1000)]
        return self.anything(depth)

    def valid_object(self, schema, depth):
        made = {}
        for name, of in schema.get("properties", {}).items():
            if name in schema.get("required", []) or (depth < 6 and self.source.randrange(2)):
                made[name] = self.valid(of, depth + 1)
        more = schema.get("additionalProperties")
        if isinstance(more, dict):
            made.update({self.word(): self.valid(more, depth + 1) for _ in range(self.source.randrange(3))})
        return made

    def mutated(self, value):
        """The value with something else in one place."""
        if isinstance(value, dict) and value and self.source.randrange(4):
            key = self.source.choice(list(value))
            kind = self.source.randrange(4)
            if kind == 0:
                return {name: of for name, of in value.items() if name != key}
            if kind == 1:
                return {**value, self.word(): self.anything()}
            return {**value, key: self.mutated(value[key])}
        if isinstance(value, list) and value and self.source.randrange(4):
            at = self.source.randrange(len(value))
            return self.source.choice([value[:at], value + value, [*value[:at], self.mutated(value[at]), *value[at + 1:]]])
        return self.anything()

    def broken_text(self, text):
        """Bytes that are not quite the text any more."""
        data = bytearray(text.encode("utf-8", "surrogatepass"))
        kind = self.source.randrange(7)
        if kind == 0:
            del data[self.source.randrange(len(data) + 1):]
        elif kind == 1:
            data += self.source.choice([b"}", b"]", b"\x00", b" {}", b"\xff", b"//"])
        elif kind == 2:
            data = bytearray(self.source.choice([b"[", b'{"a":', b'{"up":['])) * self.source.choice([10, 1000, 100_000])
        elif kind == 3:
            data = bytearray(b'{"' + b"a" * self.source.choice([4096, 70_000, 900_000]) + b'": 1}')
        elif kind == 4 and data:
            for _ in range(self.source.randrange(1, 4)):
                data[self.source.randrange(len(data))] = self.source.randrange(256)
        elif kind == 5:
            data = bytearray(self.source.randbytes(self.source.randrange(200)))
        else:
            data = bytearray(b'{"up": true, "up": false, "\\ud800": 1e999, "x": -}')
        return bytes(data)

    # ---- Requests ----

    def body(self, operation):
        """(media type, bytes, whether they are known to be wrong)"""
        described = body_of(operation)
        if described is None:
            return "application/json", self.source.choice([b"", b"", b"{}", b"x" * 5000]), False
        media, schema, required = described
        value = self.valid(schema)
        kind = self.source.randrange(10)
        if kind >= 7:
            value = self.mutated(value)
        text = json.dumps(value, ensure_ascii=bool(self.source.randrange(2))) if "json" in media or not \
            isinstance(value, str) else value
        data = text.encode("utf-8", "surrogatepass") if kind else self.broken_text(text)
        if kind == 1:
            data = self.source.choice([b"", data + b" " * self.source.choice([5_000, 1 << 20, (1 << 20) + 1])])
        return media, data, self.is_wrong(media, schema, required, data)

    @staticmethod
    def is_wrong(media, schema, required, data):
        if not data:
            return required
        if "json" not in media:
            return False
        try:
            return not fits(schema, json.loads(data))
        except (ValueError, RecursionError):
            return True

    def query(self, described):
        """(text behind the path, whether it is as described)"""
        kind, good, parts = self.source.randrange(6), True, []
        for parameter in described:
            if parameter.get("required") or self.source.randrange(2):
                schema = resolved(parameter["schema"])
                value = self.valid(schema)
                if kind == 0:
                    value, good = self.source.choice([*NUMBERS, self.word(), ""]), False
                text = str(value).lower() if isinstance(value, bool) else str(value)
                parts.append(f"{parameter['name']}={urllib.parse.quote(text.encode('utf-8', 'replace'), safe='')}")
        if kind == 1:
            parts.append(self.source.choice(["", "x", "x=1", "=", "limit", "limit=1&limit=2", "%zz", "&", "?"]))
            good = False
        return ("?" + "&".join(parts) if parts else ""), good

    def next(self):
        path, method, operation = self.source.choice(self.operations)
        described = parameters(path, operation)
        target, good = path, True
        for parameter in described:
            if parameter["in"] == "path":
                name = self.source.choice(self.names) if self.names and self.source.randrange(3) else self.word()
                target = target.replace("{%s}" % parameter["name"],
                                        urllib.parse.quote(name.encode("utf-8", "replace"), safe=""))
        query, query_good = self.query([each for each in described if each["in"] == "query"])
        target, good = target + query, good and query_good
        media, body, wrong = self.body(operation)
        name = method.upper()
        if name == "GET" and not self.source.randrange(6):
            name = "HEAD"
        if not self.source.randrange(12):
            name, good = self.source.choice(OTHER_METHODS), False
        if not self.source.randrange(20):
            target, good = self.source.choice(["/", "/v1", "/v1/", target + "/", "/" + target, "/v1/x%2f" + target]), False
        fields = f"Host: x\r\nContent-Type: {media}\r\n"
        large = len(body) > 1 << 20
        if not self.source.randrange(30):
            fields += f"X: {'y' * self.source.choice([10_000, 17_000, 100_000])}\r\n"
            large = large or len(fields) > 15_000
        head = f"{name} {target} HTTP/1.1\r\n{fields}Content-Length: {len(body)}\r\n\r\n".encode()
        if not self.source.randrange(15):
            head = bytearray(head)
            for _ in range(self.source.randrange(1, 4)):
                head[self.source.randrange(len(head))] = self.source.randrange(256)
            head, good = bytes(head), False
        return Request(path if good else None, name, head + body, wrong, large)
