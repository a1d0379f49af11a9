#!/usr/bin/env bash
# The live part of the demo, as root: three hosts (network namespaces) on a node with a firewall and a switch, real ping,
# TCP and UDP; then the same hosts on a Linux bridge, to compare. Everything it makes is removed again.
set -euo pipefail
cd "$(dirname "$0")/.."
build=$(realpath "${WEIR_BUILD:-build}")
weir=$build/weir
seconds=${WEIR_DEMO_SECONDS:-2}
# From 10.77.0.2 to port 23 of 10.77.0.3, a TCP SYN.
telnet_syn=02000000000302000000000208004500002800010000400666310a4d00020a4d00039c400017000000000000000050022000deec0000

if ((EUID != 0)); then
  echo "The live part makes network namespaces: run make demo as root to see it."
  exit 0
fi

id=$$
try=weir-$id-try
if ! { ip netns add "$try" && ip netns exec "$try" true; } 2>/dev/null; then
  ip netns delete "$try" 2>/dev/null || true
  echo "The live part needs network namespaces, which cannot be made here (in a container, run it privileged)."
  exit 0
fi
ip netns delete "$try"
hosts=(alice bob carol)
out=$build/demo/live
node=
rm -rf "${out:?}"
mkdir -p "$out"

ns() { echo "weir-$id-$1"; }
within() { ip netns exec "$(ns "$1")" "${@:2}"; }
port() { echo "wd${id}${1:0:1}"; }
clean_up() {
  [[ -z $node ]] || kill -KILL "$node" 2>/dev/null || true
  for host in "${hosts[@]}"; do
    ip link delete "$(port "$host")" 2>/dev/null || true
    ip netns delete "$(ns "$host")" 2>/dev/null || true
  done
  ip link delete "wd${id}br" 2>/dev/null || true
}
trap clean_up EXIT

title() { printf '\n== %s\n\n' "$*"; }
wait_until() {
  for _ in $(seq 150); do
    if "$@" >/dev/null 2>&1; then return; fi
    sleep 0.1
  done
  echo "demo: waited in vain for: $*" >&2
  cat "$out/run.txt" >&2
  exit 1
}

number=1
for host in "${hosts[@]}"; do
  ip netns add "$(ns "$host")"
  ip link add "$(port "$host")" type veth peer name eth0 netns "$(ns "$host")"
  ip link set "$(port "$host")" up
  within "$host" ip address add "10.77.0.$number/24" dev eth0
  within "$host" ip link set lo up
  within "$host" ip link set eth0 up
  number=$((number + 1))
done

cat >"$out/live.yaml" <<END
weir: 1
node: demo
ports:
  alice: "xdp:$(port alice)"
  bob: "xdp:$(port bob)"
  carol: "xdp:$(port carol)"
services:
  acl_firewall: {rules: acl.yaml, default: allow}
  l2_switch: {}
END
cat >"$out/acl.yaml" <<END
- {name: no telnet, action: deny, protocol: tcp, dst_port: 23}
- {name: no UDP 4444, action: deny, protocol: udp, dst_port: 4444}
END

rtt() { within alice ping -q -c 200 -i 0.002 10.77.0.2 | sed -n 's|^rtt [^=]*= \([^/]*\)/\([^/]*\)/.*|least \1 ms, mean \2 ms|p'; }
rate() {
  within bob iperf3 -s -1 >/dev/null &
  wait_until within bob sh -c 'ss -Hltn "sport = :5201" | grep -q .'
  within alice iperf3 -c 10.77.0.2 -t "$seconds" -J | sed -n '/"sum_received"/,/}/s|.*"bits_per_second":[^0-9]*\([0-9]*\).*|\1|p' |
    awk '{ printf "%.2f Gbit/s\n", $1 / 1e9 }'
  wait
}

title "Three hosts on a node, their interfaces taken by AF_XDP"
(cd "$out" && exec "$weir" run live.yaml --rules >run.txt 2>log.txt) &
node=$!
wait_until within alice ping -c 1 -W 1 10.77.0.3
grep -o 'xdp:.*queue.*' "$out/log.txt" || true
echo
within alice ping -c 3 -i 0.2 10.77.0.2

title "What the firewall denies does not arrive: telnet to carol, UDP to port 4444"
within bob timeout 1 bash -c 'exec 3<>/dev/tcp/10.77.0.3/23' 2>/dev/null && exit 1 || echo "telnet: no answer"
within bob bash -c 'echo hello >/dev/udp/10.77.0.3/4444'
echo "UDP: sent, and dropped (see below)"

title "Why telnet is denied: the node is asked, while it runs, about a packet like bob's"
show() {
  printf '$ %s\n' "$*"
  (cd "$out" && "${@/#weir/$weir}")
}
show weir trace --node demo --port bob --packet "$telnet_syn"
echo
show weir show ports --node demo

title "The firewall's rules change while packets run: telnet is allowed"
printf -- '- {name: no UDP 4444, action: deny, protocol: udp, dst_port: 4444}\n' >"$out/acl.yaml"
show weir apply live.yaml --node demo
telnet=$(within bob timeout 5 bash -c 'exec 3<>/dev/tcp/10.77.0.3/23' 2>&1 || true)
[[ $telnet == *refused* ]] || { echo "demo: telnet got no answer: $telnet" >&2; exit 1; }
echo "telnet: carol answers (that nobody listens there)"

title "Round trip and rate through the node"
echo "ping, 200 times:  $(rtt)"
node_rate=$(rate 2>/dev/null) || node_rate="failed"
echo "TCP, ${seconds} s:         $node_rate"

kill -INT "$node"
wait "$node" || { cat "$out/log.txt" >&2; exit 1; }
node=
title "What the node counted"
sed '/^Rules$/,$d' "$out/run.txt"
title "The rules it had (the most used), and all that each one looks at"
sed -n '/^Rules$/,$p' "$out/run.txt" | sed -n '2,16p'

title "The same hosts on a Linux bridge"
ip link add "wd${id}br" type bridge
ip link set "wd${id}br" up
for host in "${hosts[@]}"; do
  ip link set "$(port "$host")" master "wd${id}br"
  within "$host" ethtool -K eth0 tx on tx-vlan-offload on >/dev/null 2>&1 || true
done
wait_until within alice ping -c 1 -W 1 10.77.0.2
echo "ping, 200 times:  $(rtt)"
echo "TCP, ${seconds} s:         $(rate 2>/dev/null)  (the bridge passes unsegmented frames without checksums; AF_XDP cannot)"
