"""Namespaces, veth pairs and processes, all of which go at the end."""

import os
import pathlib
import subprocess
import time

BUILD = pathlib.Path(__file__).resolve().parents[2] / "build"
WEIR = BUILD / "weir"


def program(name):
    return BUILD / "bench" / name


def run(*command):
    result = subprocess.run([str(part) for part in command], capture_output=True, text=True, timeout=120)
    if result.returncode != 0:
        raise SystemExit(f"{' '.join(map(str, command))}: {result.stdout}{result.stderr}")
    return result.stdout


def wait_for(condition, what, seconds=20):
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            raise SystemExit(f"bench: waited in vain: {what}")
        time.sleep(0.02)


class Network:
    def __init__(self):
        self.spaces, self.processes = [], []

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for process in reversed(self.processes):
            self.end(process)
        for space in self.spaces:
            subprocess.run(["ip", "netns", "delete", self.path(space)], check=False)

    @staticmethod
    def path(space):
        return f"weir-bench-{os.getpid()}-{space}"

    def space(self, name):
        run("ip", "netns", "add", self.path(name))
        self.spaces.append(name)
        self.on(name, "sysctl", "-qw", "net.ipv6.conf.all.disable_ipv6=1", "net.ipv6.conf.default.disable_ipv6=1")
        self.on(name, "ip", "link", "set", "lo", "up")

    def on(self, space, *command):
        return run("ip", "netns", "exec", self.path(space), *command)

    def start(self, space, *command, **options):
        options = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL, "text": True,
                   **options}
        process = subprocess.Popen(["ip", "netns", "exec", self.path(space), *map(str, command)], **options)
        self.processes.append(process)
        return process

    def end(self, process):
        """Ends it, if it still runs; its output."""
        if process in self.processes:
            self.processes.remove(process)
        if process.poll() is None:
            process.terminate()
        try:
            return process.communicate(timeout=20)[0]
        except subprocess.TimeoutExpired:
            process.kill()
            return process.communicate()[0]

    def pair(self, here, interface, there, far, far_address):
        run("ip", "link", "add", interface, "netns", self.path(here), "type", "veth", "peer", "name", far, "address",
            far_address, "netns", self.path(there))
        for space, name in ((here, interface), (there, far)):
            self.on(space, "ip", "link", "set", name, "up")

    def host(self, name, number, interface):
        """An address on an interface of a host: 10.0.0.NUMBER."""
        self.on(name, "ip", "address", "add", f"10.0.0.{number}/24", "dev", interface)
        self.on(name, "ip", "link", "set", interface, "up")

    def reaches(self, space, address):
        return subprocess.run(["ip", "netns", "exec", self.path(space), "ping", "-c", "1", "-W", "1", address],
                              capture_output=True, check=False).returncode == 0

    def weir(self, space, folder, ports, more=""):
        """Starts a switching node."""
        lines = "".join(f'  {name}: "{device}"\n' for name, device in ports.items())
        file = pathlib.Path(folder) / f"{space}.yaml"
        file.write_text(f"weir: 1\nports:\n{lines}services: {{l2_switch: {{}}}}\ncontrol: off\n{more}")
        return self.start(space, WEIR, "run", file)

    def bridge(self, space, interfaces):
        self.on(space, "ip", "link", "add", "br0", "type", "bridge")
        for name in ("br0", *interfaces):
            if name != "br0":
                self.on(space, "ip", "link", "set", name, "master", "br0")
            self.on(space, "ip", "link", "set", name, "up")
