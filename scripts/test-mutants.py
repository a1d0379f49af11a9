#!/usr/bin/env python3
"""Shows that the property tests have teeth: builds Weir with one rule of its semantics left out at a time
(tests/property/mutants.py), and expects random programs alone to notice each time; of services, random traffic through
them.

    scripts/test-mutants.py [NAME...]      all mutants by default
    scripts/test-mutants.py --check        only sees to it that each one's text is found where it says
"""

import importlib.util
import os
import pathlib
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
WORK = ROOT / "build-mutants"
SOURCE = WORK / "source"
BUILD = WORK / "build"
SERVICES = "services"  # stands for the rule of those that random traffic through the services must notice
PACKETS = os.environ.get("WEIR_MUTANT_PACKETS", "1000000")


def mutants():
    spec = importlib.util.spec_from_file_location("mutants", ROOT / "tests/property/mutants.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.MUTANTS


def run(*command, **options):
    return subprocess.run(command, capture_output=True, text=True, **options)


def build():
    result = run("cmake", "--build", BUILD, "-j", str(os.cpu_count()), "--target", "property_test", "service_property_test")
    if result.returncode != 0:
        sys.exit(f"test-mutants: the build failed:\n{result.stdout[-3000:]}")


def property_test(rule=""):
    """None if it passes; else its first words about the failure."""
    program = "service_property_test" if rule == SERVICES else "property_test"
    environment = dict(os.environ, WEIR_PROPERTY_PACKETS=PACKETS, WEIR_PROPERTY_NO_SHRINK="1")
    try:
        result = run(BUILD / "tests/property" / program, "--gtest_filter=Property.*", env=environment, timeout=900)
    except subprocess.TimeoutExpired:
        return "it does not end"
    if result.returncode == 0:
        return None
    if result.returncode < 0:
        return f"it dies of signal {-result.returncode}"
    lines = [line for line in result.stdout.splitlines() if line.startswith("seed ")]
    return lines[0] if lines else "it fails"


def check(chosen):
    for name, (_, _, file, before, _) in chosen.items():
        if (ROOT / file).read_text().count(before) != 1:
            sys.exit(f"test-mutants: {name}: its text is not found once in {file}; bring mutants.py up to date")


def main():
    if sys.argv[1:] == ["--check"]:
        return check(mutants())
    chosen = {name: mutant for name, mutant in mutants().items() if not sys.argv[1:] or name in sys.argv[1:]}
    if not chosen:
        sys.exit("test-mutants: no such mutant; see tests/property/mutants.py")
    check(chosen)
    files = run("git", "ls-files", "-co", "--exclude-standard", cwd=ROOT).stdout.splitlines()
    for old in SOURCE.rglob("*") if SOURCE.exists() else []:
        if old.is_file() and str(old.relative_to(SOURCE)) not in files:
            old.unlink()
    for file in files:
        source, target = ROOT / file, SOURCE / file
        # A copy is as new as its content: an unchanged one is not built again, a changed one is.
        if source.is_file() and not (target.is_file() and target.read_bytes() == source.read_bytes()):
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, target)
            shutil.copymode(source, target)
    run("cmake", "--preset", "release", "-S", SOURCE, "-B", BUILD, "-DWEIR_BENCH=OFF", "-DWEIR_HEADER_CHECK=OFF",
        cwd=SOURCE, check=True)
    build()
    failure = property_test() or property_test(SERVICES)
    if failure:
        sys.exit(f"test-mutants: the property test fails without any mutant: {failure}")
    caught = 0
    for name, (rule, what, file, before, after) in chosen.items():
        path = SOURCE / file
        original = path.read_text()
        path.write_text(original.replace(before, after))
        build()
        failure = property_test(rule)
        path.write_text(original)
        caught += failure is not None
        print(f"rule {rule:8} {name:32} {'caught' if failure else 'SURVIVED':9} {what}"
              + (f"\n{'':47}{failure}" if failure else ""), flush=True)
    print(f"{caught} of {len(chosen)} mutants caught")
    return 0 if caught == len(chosen) else 1


if __name__ == "__main__":
    sys.exit(main())
