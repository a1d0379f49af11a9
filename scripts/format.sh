#!/usr/bin/env bash
# Formats all C++ sources in place; with --check only says which are not formatted, and fails if any is not.
set -euo pipefail
cd "$(dirname "$0")/.."

mode=(-i)
if [[ ${1:-} == --check ]]; then
  mode=(--dry-run --Werror)
fi
find bench cli compat examples fuzz tests weir \( -name '*.h' -o -name '*.cc' -o -name '*.c' \) -print0 2>/dev/null |
  xargs -0 --no-run-if-empty clang-format-19 "${mode[@]}"
