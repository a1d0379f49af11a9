#!/usr/bin/env bash
# Runs clang-tidy (.clang-tidy) over the sources that the release build compiles.
#
#   scripts/lint.sh [REGEX]     only the files whose path matches
set -euo pipefail
cd "$(dirname "$0")/.."

log=$(mktemp)
trap 'rm -f "$log"' EXIT
status=0
run-clang-tidy-19 -quiet -p build -j "$(nproc)" "^$PWD/(bench|cli|examples|fuzz|tests|weir)/.*${1:-}" \
  >"$log" 2>/dev/null || status=$?
# Of its output only the findings: no command lines, no progress.
grep -vE '^(\[ *[0-9]+/[0-9]+\].*|clang-tidy-19 .*|Enabled checks:.*|Running clang-tidy for .*|[0-9]+ warnings? .*generated.*)?$' "$log" || true
if ((status != 0)); then
  echo "lint: clang-tidy found something (above)" >&2
  exit 1
fi
