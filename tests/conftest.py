"""As root in CI a test that is skipped has failed, unless tests/allowed-skips.txt names it. Each test's nodes have their
control sockets in a folder of their own."""

import os
import pathlib
import subprocess
import tempfile

import pytest

ALLOWED = {
    line.strip()
    for line in (pathlib.Path(__file__).parent / "allowed-skips.txt").read_text().splitlines()
    if line.strip() and not line.startswith("#")
}


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    report = (yield).get_result()
    name = f"{item.path.name}::{item.name}"
    if report.skipped and os.environ.get("CI") and os.geteuid() == 0 and name not in ALLOWED:
        report.outcome = "failed"
        report.longrepr = f"{name} was skipped, which CI does not accept: {report.longrepr[-1]}"


@pytest.fixture(autouse=True)
def runtime_folder(monkeypatch):
    """Not below tmp_path: that is longer than a socket's path may be when a test's name is."""
    with tempfile.TemporaryDirectory(prefix="weir-") as folder:
        monkeypatch.setenv("XDG_RUNTIME_DIR", folder)
        yield pathlib.Path(folder)


@pytest.fixture
def weir(tmp_path):
    """Runs weir in a folder of its own: weir("run", "node.yaml") -> CompletedProcess."""

    def run(*arguments, **options):
        options = {"capture_output": True, "text": True, "timeout": 120, "cwd": tmp_path, **options}
        return subprocess.run([os.environ["WEIR"], *map(str, arguments)], **options)

    return run
