#!/usr/bin/env bash
# Shows that the property test has teeth: builds Weir with one rule of its semantics left out at a time, and expects
# the test to fail each time.
#
#   scripts/test-mutants.sh [NAME...]     all of tests/property/mutants.txt by default
#
# A line of mutants.txt is NAME, the rule of docs/architecture.md, "Semantics", and what is left out. The code leaves it
# out where WEIR_MUTANT_NAME is defined.
set -euo pipefail
cd "$(dirname "$0")/.."
list=tests/property/mutants.txt
build="build-mutants"

if [[ ! -r $list ]]; then
  echo "test-mutants: there is no $list" >&2
  exit 1
fi
log=$(mktemp)
trap 'rm -f "$log"' EXIT

# build_mutant FLAG: in one folder, so that only what the flag changes is compiled again (ccache tells).
build_mutant() {
  cmake --preset release -B $build --log-level=WARNING -DWEIR_BENCH=OFF -DWEIR_HEADER_CHECK=OFF \
    -DCMAKE_CXX_FLAGS="$1" >/dev/null
  if ! cmake --build $build -j "$(nproc)" --target property_test >"$log" 2>&1; then
    tail -n 20 "$log"
    echo "test-mutants: the build with '$1' failed (above)" >&2
    exit 1
  fi
}
passes() { timeout 600 $build/tests/property/property_test >"$log" 2>&1; }

build_mutant ""
if ! passes; then
  tail -n 20 "$log"
  echo "test-mutants: the property test fails without any mutant (above)" >&2
  exit 1
fi
caught=0 total=0
while read -r name rule what; do
  if [[ $name == \#* || -z $name || ($# -gt 0 && " $* " != *" $name "*) ]]; then continue; fi
  total=$((total + 1))
  build_mutant "-DWEIR_MUTANT_$name"
  if passes; then
    printf '%-24s rule %-4s SURVIVED  %s\n' "$name" "$rule" "$what"
  else
    caught=$((caught + 1))
    printf '%-24s rule %-4s caught    %s\n' "$name" "$rule" "$what"
  fi
done <$list
echo "$caught of $total mutants caught"
((caught == total && total > 0))
