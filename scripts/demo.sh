#!/usr/bin/env bash
# The demo: a firewall and a switch on a capture of real programs' traffic (examples/demo/README.md), once with the fast
# engine and once with the reference engine, whose output must be the same bytes.
set -euo pipefail
cd "$(dirname "$0")/.."
build=$(realpath "${WEIR_BUILD:-build}")
weir=$build/weir
telnet=58  # the number of the first packet to port 23 in carol.pcap

for needed in "$weir" examples/demo/firewall.yaml; do
  if [[ ! -e $needed ]]; then
    echo "demo: $needed is missing; run: make demo" >&2
    exit 1
  fi
done

# Each run has a folder of its own with the inputs in it; what leaves a port goes there too.
out=$build/demo
for run in core reference rate; do
  rm -rf "${out:?}/$run"
  mkdir -p "$out/$run"
  cp examples/demo/*.yaml examples/demo/{alice,bob,carol}.pcap "$out/$run"
done

title() { printf '\n== %s\n\n' "$*"; }
show() {
  printf '$ %s\n' "$*"
  "${@/#weir/$weir}"
}

title "Three hosts on a switch with a firewall: what got through, and what was dropped and why"
cd "$out/core"
show weir run firewall.yaml --rules >run.txt
sed '/^Rules$/,$d' run.txt

title "The rules it became (the most used ones), and all that each one looks at"
sed -n '/^Rules$/,$p' run.txt | sed -n '2,24p'

title "Why carol's first telnet packet was dropped"
show weir trace firewall.yaml --packet $telnet --port carol --after all

title "The rate: the same captures 3,000 times over, nothing written"
cd "$out/rate"
sed -i 's/,out=[a-z]*.out.pcap/,loop=3000/' firewall.yaml
show weir run firewall.yaml | sed -n -e 1p -e '/^Rule cache/,$p'

title "The same captures through the reference engine: the same bytes"
cd "$out/reference"
show weir run firewall.yaml --engine reference | sed -n -e 1p -e '/^Dropped/,/^$/p'
for output in ../core/*.out.pcap; do
  cmp "$output" "$(basename "$output")"
  echo "$(basename "$output"): the same $(stat -c %s "$output") bytes"
done
