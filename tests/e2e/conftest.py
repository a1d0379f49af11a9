"""Namespaces, and weir running between them."""

import json
import os
import pathlib
import signal
import subprocess
import time

import pytest


def pytest_collection_modifyitems(items):
    if os.geteuid() != 0:
        for item in items:
            item.add_marker(pytest.mark.skip(reason="makes network namespaces, which only root can"))


def run(*command, **options):
    options = {"capture_output": True, "text": True, "timeout": 60, **options}
    return subprocess.run([str(part) for part in command], **options)


def check(*command, **options):
    result = run(*command, **options)
    assert result.returncode == 0, f"{' '.join(map(str, command))}: {result.stdout}{result.stderr}"
    return result.stdout


def wait_for(condition, what, seconds=15):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"waited {seconds} s in vain: {what}"
        time.sleep(0.02)


class Namespace:
    def __init__(self, name):
        self.name = name
        check("ip", "netns", "add", name)
        self.check("ip", "link", "set", "lo", "up")

    def run(self, *command, **options):
        return run("ip", "netns", "exec", self.name, *command, **options)

    def check(self, *command, **options):
        return check("ip", "netns", "exec", self.name, *command, **options)

    def start(self, *command, **options):
        return subprocess.Popen(["ip", "netns", "exec", self.name, *map(str, command)], text=True,
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, **options)

    def remove(self):
        run("ip", "netns", "delete", self.name)


@pytest.fixture
def names():
    """Fresh names for interfaces and namespaces: names("a") -> "w1234a"."""
    return lambda suffix: f"w{os.getpid() % 100000}{suffix}"


@pytest.fixture
def namespace(names):
    """Makes namespaces, which go with the test."""
    made = []

    def make(suffix):
        made.append(Namespace(names(suffix)))
        return made[-1]

    yield make
    for each in made:
        each.remove()


class Weir:
    def __init__(self, folder, text, *arguments):
        (folder / "node.yaml").write_text(text)
        self.output = open(folder / "weir.out", "w+")
        self.process = subprocess.Popen([os.environ["WEIR"], "run", "node.yaml", "--json", *arguments], cwd=folder,
                                        stdout=self.output, stderr=subprocess.STDOUT, text=True)

    def text(self):
        self.output.flush()
        return pathlib.Path(self.output.name).read_text()

    def stop(self, with_signal=signal.SIGINT):
        """Ends it; its summary."""
        self.process.send_signal(with_signal)
        self.process.wait(20)
        text = self.text()
        assert self.process.returncode == 0, text
        return json.loads(text[text.index("{"):])


@pytest.fixture
def weir(tmp_path):
    """Starts weir on a node file: weir(text) -> Weir."""
    started = []

    def start(text, *arguments):
        started.append(Weir(tmp_path, text, *arguments))
        return started[-1]

    yield start
    for each in started:
        if each.process.poll() is None:
            each.process.kill()
            each.process.wait()
        each.output.close()
