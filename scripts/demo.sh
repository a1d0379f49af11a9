#!/usr/bin/env bash
# The demo: a firewall and a switch on a capture of real programs' traffic (examples/demo/README.md), once with the fast
# engine and once with the reference engine, whose output must be the same bytes.
set -euo pipefail
cd "$(dirname "$0")/.."
weir=$PWD/build/weir
node=firewall.yaml
telnet=58  # the number of the first packet to port 23 in carol.pcap

for needed in "$weir" examples/demo/$node; do
  if [[ ! -e $needed ]]; then
    echo "demo: $needed is missing; run: make demo" >&2
    exit 1
  fi
done

# Each run has a folder of its own with the inputs in it; what leaves a port goes there too.
for engine in core reference; do
  rm -rf "build/demo/$engine"
  mkdir -p "build/demo/$engine"
  cp examples/demo/*.yaml examples/demo/*.pcap "build/demo/$engine"
done

title() { printf '\n== %s\n' "$*"; }

title "A firewall and a switch on what three hosts sent (examples/demo/README.md)"
(cd build/demo/core && "$weir" run $node)

title "Why the first telnet packet was dropped"
(cd build/demo/core && "$weir" trace $node --packet $telnet)

title "The same from the reference engine"
(cd build/demo/reference && "$weir" run $node --engine reference >/dev/null)
for output in build/demo/core/*.out.pcap; do
  cmp "$output" "build/demo/reference/$(basename "$output")"
  echo "$(basename "$output"): the same $(stat -c %s "$output") bytes"
done
