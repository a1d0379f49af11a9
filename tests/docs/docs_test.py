#!/usr/bin/env python3
"""Runs what README.md and pages in docs/ tell the reader to run, as it stands there.

    docs_test.py SOURCE BUILD

Blocks: a line that ends with `FILE`: names the file that the next block holds; `sh` blocks are run in order; a `text`
block is what the last command of the `sh` block before it prints, and a `console` block an example. A command that ends
with `&` is a node that runs until the page ends. `make build` and `make install` stand for the build
at hand, installed into a temporary prefix.
"""

import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time

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


def run_in_background(command, folder, environment):
    """Starts `weir run ...`, and waits until the node answers."""
    process = subprocess.Popen(["bash", "-ec", f"exec {command}"], cwd=folder, env=environment)
    for _ in range(600):
        if subprocess.run(["weir", "show", "stats"], env=environment, capture_output=True).returncode == 0:
            return process
        if process.poll() is not None:
            break
        time.sleep(0.1)
    process.kill()
    sys.exit(f"docs: no node answers after:\n{command} &")


def follow(page, folder, environment, prefix):
    """Does what a page says; how many commands that were."""
    folder.mkdir()
    running = []
    try:
        return follow_in(page, folder, environment, prefix, running)
    except BaseException:
        for process in running:  # would keep whoever reads our output waiting
            process.kill()
        raise


def follow_in(page, folder, environment, prefix, running):
    output, commands = "", 0
    for language, content, before in blocks((SOURCE / page).read_text()):
        named = re.search(r"`([\w.]+)`[^`]*:$", before)
        if language == "sh":
            for command in content.strip().splitlines():
                if command == "make build":
                    continue
                if command.startswith("make install"):
                    command = f"cmake --install {BUILD} --prefix {prefix}"
                if command.endswith(" &"):
                    running.append(run_in_background(command.removesuffix(" &"), folder, environment))
                else:
                    output = run(command, folder, environment)
                commands += 1
        elif language == "text":
            if output.strip() != content.strip():
                sys.exit(f"docs: {page} shows\n{content}\nbut it prints\n{output}")
        elif named and language != "console":
            (folder / named.group(1)).write_text(content)
    for process in running:
        process.send_signal(signal.SIGINT)
        if process.wait(60) != 0:
            sys.exit(f"docs: what {page} runs in the background failed")
    return commands


def main():
    with tempfile.TemporaryDirectory() as temporary:
        prefix = pathlib.Path(temporary) / "prefix"
        folder = pathlib.Path(temporary) / "first"
        environment = dict(os.environ, CMAKE_PREFIX_PATH=str(prefix), PATH=f"{prefix}/bin:{os.environ['PATH']}",
                           CMAKE_GENERATOR="Ninja", XDG_RUNTIME_DIR=temporary)
        os.environ["PATH"] = environment["PATH"]  # for what is started without a shell
        commands = follow("docs/first-data-plane.md", folder, environment, prefix)
        of_running = follow("docs/running-node.md", pathlib.Path(temporary) / "running", environment, prefix)
        of_firewall = follow("docs/firewall.md", pathlib.Path(temporary) / "firewall", environment, prefix)
        if commands < 7 or of_running < 9 or of_firewall < 9:
            sys.exit(f"docs: only {commands}, {of_running} and {of_firewall} commands were found on the pages; has their "
                     f"form changed?")

        programs = [content for language, content, _ in blocks((SOURCE / "README.md").read_text()) if language == "cpp"]
        if len(programs) != 1:
            sys.exit("docs: README.md is to have one program")
        (folder / "first.cc").write_text(programs[0])
        output = run("cmake --build build && ./build/first", folder, environment)
        if "0 out, 1000000 dropped" not in output and "1000000 out, 0 dropped" not in output:
            sys.exit(f"docs: the README's program printed\n{output}")
        print(f"{commands + of_running + of_firewall} commands and 2 programs did what the documents say")


if __name__ == "__main__":
    main()
