"""What docs/openapi.yaml says: paths, parameters, bodies and answers."""

import json
import pathlib

import jsonschema
import yaml

API = yaml.safe_load((pathlib.Path(__file__).parents[2] / "docs" / "openapi.yaml").read_text())
METHODS = ("get", "put", "post", "delete", "patch")


def resolved(thing):
    """What a reference stands for."""
    while "$ref" in thing:
        found = API
        for part in thing["$ref"].removeprefix("#/").split("/"):
            found = found[part]
        thing = {**found, **{key: value for key, value in thing.items() if key != "$ref"}}
    return thing


def operations():
    """[(path, method, operation)]; HEAD is GET without a body, and not described by itself."""
    return [(path, method, operation) for path, item in API["paths"].items() for method, operation in item.items()
            if method in METHODS]


def parameters(path, operation):
    return [resolved(each) for each in API["paths"][path].get("parameters", []) + operation.get("parameters", [])]


def body_of(operation):
    """(media type, schema, whether it must be there) of the request's body; None if it takes none."""
    if "requestBody" not in operation:
        return None
    body = resolved(operation["requestBody"])
    media, content = next(iter(body["content"].items()))
    return media, content.get("schema", {}), body.get("required", False)


def whole(schema):
    """The schema with what it refers to."""
    return {**schema, "components": API["components"]}


def fits(schema, value):
    return jsonschema.Draft202012Validator(whole(schema)).is_valid(value)


def check_answer(response, content_type, body):
    """That an answer is as the response describes it."""
    response = resolved(response)
    if "content" not in response:
        assert body == b""
        return
    media = content_type.split(";")[0]
    assert media in response["content"]
    if media == "application/json":
        jsonschema.Draft202012Validator(whole(response["content"][media]["schema"])).validate(json.loads(body))
