#!/usr/bin/env bash
# Runs every fuzzer of build-fuzz for a while, in turn.
#
#   scripts/fuzz.sh [SECONDS]     for each fuzzer; 300 by default
#
# A fuzzer NAME_fuzz starts from fuzz/corpus/NAME and what earlier runs found (build-fuzz/corpus/NAME). An input that
# breaks something is kept in build-fuzz/findings; when it is mended, put it into fuzz/corpus/NAME. The words of
# fuzz/NAME.dict, if there is one, are built into inputs.
set -euo pipefail
cd "$(dirname "$0")/.."
seconds=${1:-300}

shopt -s nullglob
fuzzers=(build-fuzz/fuzz/*_fuzz)
if ((${#fuzzers[@]} == 0)); then
  echo "fuzz: there is no fuzzer in build-fuzz/fuzz; run: make fuzz" >&2
  exit 1
fi
mkdir -p build-fuzz/findings
failed=()
for fuzzer in "${fuzzers[@]}"; do
  name=$(basename "$fuzzer" _fuzz)
  mkdir -p "build-fuzz/corpus/$name"
  seeds=(fuzz/corpus/"$name"/)
  [[ -d ${seeds[0]} ]] || seeds=()
  words=()
  [[ ! -f fuzz/$name.dict ]] || words=(-dict="fuzz/$name.dict")
  echo "$name: $seconds seconds"
  if ! "$fuzzer" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 -verbosity=0 -print_final_stats=1 \
    "${words[@]}" -artifact_prefix="build-fuzz/findings/$name-" "build-fuzz/corpus/$name" "${seeds[@]}"; then
    failed+=("$name")
  fi
done
if ((${#failed[@]} > 0)); then
  echo "fuzz: found something with ${failed[*]}; the inputs are in build-fuzz/findings" >&2
  exit 1
fi
echo "${#fuzzers[@]} fuzzers, $seconds seconds each, no finding"
