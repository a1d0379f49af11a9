#!/usr/bin/python3
"""Checks by compiling what a module may include.

layering_test.py MODULE WEIR_FOLDER -- COMPILER FLAG...

The flags are those of a user of MODULE. One source file that includes a header of every module it may include, itself
among them, must compile (so that what follows fails for the reason meant); one that includes a header of any other
module, or an internal header, must fail because that header is not found.
"""

import pathlib
import subprocess
import sys

# What each module may include besides itself: docs/architecture.md, "Layout".
STACK = ["base", "packet", "device", "flow", "engine", "runtime"]
MAY_INCLUDE = {module: set(STACK[:i]) for i, module in enumerate(STACK)}
MAY_INCLUDE["rdma"] = MAY_INCLUDE["service"] = set(STACK)
MAY_INCLUDE["control"] = {*STACK, "rdma", "service"}


def compile_errors(compiler, headers):
    """The compiler's errors for a source file that includes `headers`; empty if it compiles."""
    source = "".join(f"#include <{header}>\n" for header in headers)
    run = subprocess.run([*compiler, "-fsyntax-only", "-x", "c++", "-"], input=source, capture_output=True, text=True)
    return "" if run.returncode == 0 else run.stderr or f"exit status {run.returncode}"


def main():
    module, folder, _, *compiler = sys.argv[1:]
    compiler = [flag for flag in compiler if flag not in ("-I", "-D")]  # what an empty list of them leaves
    folder = pathlib.Path(folder)
    if module not in MAY_INCLUDE:
        sys.exit(f"{module} is a new module: say in {__file__} what it may include")

    public, internal = {}, {}
    for header in sorted(folder.glob("*/**/*.h")):
        name = header.relative_to(folder.parent).as_posix()
        owner = header.relative_to(folder).parts[0]
        (internal if "/internal/" in name else public).setdefault(owner, name)
    if module not in public:
        print(f"{module} has no public header yet")
        sys.exit(77)

    failures = []
    allowed = [header for owner, header in public.items() if owner == module or owner in MAY_INCLUDE[module]]
    forbidden = [header for header in public.values() if header not in allowed] + list(internal.values())
    if errors := compile_errors(compiler, allowed):
        failures.append(f"{module} cannot include {', '.join(allowed)}:\n{errors}")
    for header in forbidden:
        errors = compile_errors(compiler, [header])
        if not errors:
            failures.append(f"{module} can include <{header}>, which it must not")
        elif f"{header}: No such file" not in errors and f"'{header}' file not found" not in errors:
            failures.append(f"<{header}> fails in {module}, but not because it is not found:\n{errors}")
    print(f"{module}: may include {len(allowed)} modules, and is refused: {', '.join(forbidden) or 'nothing'}")
    if failures:
        sys.exit("\n".join(failures))


if __name__ == "__main__":
    main()
