#!/usr/bin/env bash
# Formats all C++ sources in place; with --check only says which are not formatted, and fails if any is not.
set -euo pipefail
cd "$(dirname "$0")/.."

mode=(-i)
if [[ ${1:-} == --check ]]; then
  mode=(--dry-run --Werror)
fi
git ls-files -co --exclude-standard -z -- '*.h' '*.cc' '*.c' |
  xargs -0 --no-run-if-empty clang-format-19 "${mode[@]}"
