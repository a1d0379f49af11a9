#!/usr/bin/env python3
"""Runs what README.md and docs/first-data-plane.md tell the reader to run, as it stands there.

    docs_test.py SOURCE BUILD

Blocks: a line that ends with `FILE`: names the file that the next block holds; `sh` blocks are run in order; a `text`
block is what the last command of the `sh` block before it prints. `make build` and `make install` stand for the build
at hand, installed into a temporary prefix.
"""

import os
import pathlib
import re
import subprocess
import sys
import tempfile

SOURCE, BUILD = map(pathlib.Path, sys.argv[1:3])


def blocks(text):
    """(language, content, the paragraph line before it) of each fenced block."""
    for match in re.finditer(r"([^\n]*)\n\n```(\w+)\n(.*?)```", text, re.S):
        yield match.group(2), match.group(3), match.group(1)


def run(command, folder, environment):
    result = subprocess.run(["bash", "-ec", command], cwd=folder, env=environment, capture_output=True, text=True)
    if result.returncode != 0:
        sys.exit(f"docs: this failed:\n{command}\n{result.stdout}{result.stderr}")
    return result.stdout


def main():
    with tempfile.TemporaryDirectory() as temporary:
        prefix = pathlib.Path(temporary) / "prefix"
        folder = pathlib.Path(temporary) / "first"
        folder.mkdir()
        environment = dict(os.environ, CMAKE_PREFIX_PATH=str(prefix), PATH=f"{prefix}/bin:{os.environ['PATH']}",
                           CMAKE_GENERATOR="Ninja")
        output, commands = "", 0
        for language, content, before in blocks((SOURCE / "docs/first-data-plane.md").read_text()):
            named = re.search(r"`([\w.]+)`[^`]*:$", before)
            if language == "sh":
                for command in content.strip().splitlines():
                    if command == "make build":
                        continue
                    if command.startswith("make install"):
                        command = f"cmake --install {BUILD} --prefix {prefix}"
                    output = run(command, folder, environment)
                    commands += 1
            elif language == "text":
                if output.strip() != content.strip():
                    sys.exit(f"docs: the page shows\n{content}\nbut it prints\n{output}")
            elif named:
                (folder / named.group(1)).write_text(content)
        if commands < 7:
            sys.exit(f"docs: only {commands} commands were found on the page; has its form changed?")

        programs = [content for language, content, _ in blocks((SOURCE / "README.md").read_text()) if language == "cpp"]
        if len(programs) != 1:
            sys.exit("docs: README.md is to have one program")
        (folder / "first.cc").write_text(programs[0])
        output = run("cmake --build build && ./build/first", folder, environment)
        if "0 out, 1000000 dropped" not in output and "1000000 out, 0 dropped" not in output:
            sys.exit(f"docs: the README's program printed\n{output}")
        print(f"{commands} commands and 2 programs did what the documents say")


if __name__ == "__main__":
    main()
