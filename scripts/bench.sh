#!/usr/bin/env bash
# Runs every benchmark of the release build, in turn and alone: figures of two at a time would be worth nothing.
#
#   scripts/bench.sh [ARGUMENT...]     handed to each, e.g. --benchmark_filter=REGEX
set -euo pipefail
cd "$(dirname "$0")/.."

shopt -s nullglob
benchmarks=(build/bench/*_bench)
if ((${#benchmarks[@]} == 0)); then
  echo "bench: there is no benchmark in build/bench; run: make bench" >&2
  exit 1
fi
for benchmark in "${benchmarks[@]}"; do
  "$benchmark" "$@"
done
