# Weir: the commands of daily work. `make help` lists them; the work itself is in CMake and scripts/.

JOBS    ?= $(shell nproc)
SECONDS ?= 300
PACKETS ?= 1000000
ROUNDS  ?= 20
CYCLES  ?= 1000
REQUESTS ?= 50000
PREFIX  ?= /usr/local
DESTDIR ?=

# One compiler cache for all checkouts.
export CCACHE_BASEDIR   := $(CURDIR)
export CCACHE_NOHASHDIR := 1

SHELL       := bash
.SHELLFLAGS := -euo pipefail -c
MAKEFLAGS   += --no-print-directory
.DEFAULT_GOAL := help
.PHONY: help setup setup-build setup-peers build demo all test test-property test-mutants test-asan test-tsan endurance \
        bench bench-live fuzz fuzz-api format format-check lint install clean

COMPILE = cmake --build $(1) -j $(JOBS) -- --quiet $(2)
PYTEST  = PYTHONDONTWRITEBYTECODE=1 /usr/bin/python3 -m pytest -s -p no:cacheprovider
CTEST   = ctest --test-dir $(1) --output-on-failure --no-tests=error --output-junit results.xml -j $(JOBS)

help:  ## This list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-15s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup:  ## Install the Debian packages Weir needs (scripts/packages.txt)
	@scripts/setup.sh

setup-build:
	@scripts/setup.sh build

setup-peers:
	@scripts/setup.sh build peers

build: build/build.ninja  ## Build the weir command (build/weir) and the examples
	@$(call COMPILE,build,cli/all examples/all)

demo: setup-peers build  ## A firewall and a switch on a capture of real traffic; as root also live, between namespaces
	@scripts/demo.sh
	@scripts/demo-live.sh

all: build/build.ninja
	@$(call COMPILE,build)

test: setup all  ## Build everything and run all tests
	@$(call CTEST,build)

test-property: setup all  ## The long run: cached = uncached = reference, PACKETS (1000000) random packets
	@WEIR_PROPERTY_PACKETS=$(PACKETS) ctest --test-dir build --verbose --no-tests=error -L '^property$$'

test-mutants: setup  ## Break each rule of the semantics in turn; the property test must notice
	@scripts/test-mutants.py

test-asan: setup build-asan/build.ninja  ## All tests under AddressSanitizer and UBSan
	@$(call COMPILE,build-asan)
	@$(call CTEST,build-asan)

test-tsan: setup build-tsan/build.ninja  ## All tests under ThreadSanitizer (clang)
	@$(call COMPILE,build-tsan)
	@$(call CTEST,build-tsan)

fuzz-api: setup all  ## REQUESTS (50000) random requests to a node's control socket, made from docs/openapi.yaml
	@WEIR=$(CURDIR)/build/weir WEIR_FUZZ_REQUESTS=$(REQUESTS) $(PYTEST) tests/control/test_fuzz.py

endurance: setup all  ## As root, under traffic: kill a node ROUNDS (20) times, add and remove ports CYCLES (1000) times
	@WEIR=$(CURDIR)/build/weir WEIR_ENDURANCE=$(ROUNDS) WEIR_CYCLES=$(CYCLES) $(PYTEST) tests/e2e/test_endurance.py \
	  tests/e2e/test_port_cycles.py

bench: build/build.ninja  ## Run the benchmarks
	@$(call COMPILE,build,bench/all)
	@scripts/bench.sh

bench-live: build/build.ninja  ## As root: benchmarks on real interfaces, between namespaces, against dpdk-testpmd and a bridge
	@scripts/setup.sh build peers live
	@$(call COMPILE,build,cli/all bench/all)
	@PYTHONDONTWRITEBYTECODE=1 /usr/bin/python3 bench/live/run.py

fuzz: setup build-fuzz/build.ninja  ## Run each fuzzer for SECONDS (300)
	@$(call COMPILE,build-fuzz)
	@scripts/fuzz.sh $(SECONDS)

format: setup  ## Format all C++ sources in place
	@scripts/format.sh

format-check: setup  ## Fail if a source is not formatted
	@scripts/format.sh --check

lint: setup build/build.ninja  ## Run clang-tidy over all C++ sources (FILES=REGEX for some)
	@scripts/lint.sh $(FILES)

install: build/build.ninja  ## Install to PREFIX (/usr/local), below DESTDIR
	@$(call COMPILE,build,cli/all weir_libraries)
	@DESTDIR=$(DESTDIR) cmake --install build --prefix $(PREFIX) | grep -c -e '-- Installing' -e '-- Up-to-date' | \
	  sed 's|.*|& files in $(DESTDIR)$(PREFIX)|'

clean:  ## Remove everything that was built
	@rm -rf build build-debug build-asan build-tsan build-fuzz build-mutants

# Ninja configures again by itself when a CMake file changes, but not when the presets do.
BUILDS = build build-asan build-tsan build-fuzz
$(BUILDS:=/build.ninja): CMakePresets.json | setup-build
	@cmake --preset $(or $(patsubst build-%,%,$(filter build-%,$(@D))),release) --log-level=WARNING >/dev/null
	@touch $@
