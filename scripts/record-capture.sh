#!/usr/bin/env bash
# Records the demo's captures from real programs: three hosts (network namespaces) talk through a bridge, and what each
# host sends is written to its own file, as a switch would receive it on that host's port.
#
#   scripts/record-capture.sh [FOLDER]     root only; FOLDER is examples/demo by default
#
# Needs the packages of group [peers]. Touches nothing outside its own namespaces, which are removed on exit.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
folder=${1:-$here/../examples/demo}

if ((EUID != 0)); then
  echo "record-capture: making network namespaces needs root. Run: sudo $0 $*" >&2
  exit 1
fi
"$here/setup.sh" peers
mkdir -p "$folder"

hosts=(alice bob carol)
prefix=weir-rec-$$
work=$(mktemp -d)

finish() {
  local status=$?
  trap - EXIT
  for namespace in $(ip netns list | awk -v p="$prefix-" 'index($1, p) == 1 { print $1 }'); do
    ip netns pids "$namespace" | xargs -r kill 2>/dev/null || true
    ip netns del "$namespace"
  done
  wait
  if ((status != 0 && status != 130)); then
    echo "record-capture: failed; the last lines of the programs' output:" >&2
    tail -n 5 "$work"/*.log >&2 || true
  fi
  rm -rf "$work"
  exit $status
}
trap finish EXIT
trap 'exit 130' INT TERM

# on HOST COMMAND...: runs it there; its output is of interest only if it fails.
on() {
  local namespace=$prefix-$1
  shift
  echo "+ $*" >>"$work/commands.log"
  ip netns exec "$namespace" "$@" >>"$work/commands.log" 2>&1
}

# serve HOST COMMAND...: the same in the background, until the end.
serve() {
  local namespace=$prefix-$1
  shift
  ip netns exec "$namespace" "$@" >>"$work/$(basename "$1").log" 2>&1 &
}

# try HOST COMMAND...: the same for what is meant to fail.
try() { ! on "$@" || { echo "record-capture: this was meant to fail: $*" >&2; exit 1; }; }

until_true() {
  for _ in {1..100}; do
    if "$@" &>/dev/null; then return; fi
    sleep 0.05
  done
  echo "record-capture: still not true after 5 seconds: $*" >&2
  exit 1
}

# Offloads would leave checksums to a card that is not there, and join segments to frames that no wire carries.
plain_frames() {
  on "$1" ethtool -K "$2" tx off tso off gso off gro off rxvlan off txvlan off
}

# --- the network -----------------------------------------------------------------------------------------------------
ip netns add "$prefix-switch"
on switch ip link add br0 type bridge mcast_snooping 0
on switch sysctl -qw net.ipv6.conf.all.disable_ipv6=1
on switch ip link set br0 up
number=0
for host in "${hosts[@]}"; do
  number=$((number + 1))
  ip netns add "$prefix-$host"
  on "$host" sysctl -qw net.ipv6.conf.default.accept_ra=0
  on switch ip link add "$host" type veth peer name eth0 address "02:00:00:00:00:0$number" netns "$prefix-$host"
  plain_frames switch "$host"
  plain_frames "$host" eth0
  on switch ip link set "$host" master br0 up
  on "$host" ip link set lo up
  on "$host" ip address add "10.0.0.$number/24" dev eth0
  on "$host" ip address add "fd00::$number/64" dev eth0 nodad
done

for host in "${hosts[@]}"; do
  ip netns exec "$prefix-switch" tcpdump -i "$host" -Q in --immediate-mode -U -w "$work/$host.pcap" \
    --time-stamp-precision=micro >"$work/tcpdump-$host.log" 2>&1 &
done
for host in "${hosts[@]}"; do
  until_true grep -q "listening on" "$work/tcpdump-$host.log"
done

number=0
for host in "${hosts[@]}"; do
  number=$((number + 1))
  on "$host" ip link set eth0 up
  if [[ $host != carol ]]; then
    serve "$host" "$here/vlan-interface.py" eth0 100
    until_true on "$host" ip link show eth0.100
    on "$host" ip address add "10.0.100.$number/24" dev eth0.100
    on "$host" ip link set eth0.100 up
  fi
done

# --- the servers, all on bob -----------------------------------------------------------------------------------------
mkdir "$work/www"
{ echo "<h1>bob</h1>"; seq -s ' ' 600; } >"$work/www/index.html"
serve bob python3 -u -m http.server 80 --bind :: --directory "$work/www"
serve bob dnsmasq --keep-in-foreground --no-resolv --no-hosts --conf-file=/dev/null --pid-file= --user=root \
  --listen-address=10.0.0.2 --bind-interfaces --local=/weir.test/ \
  --host-record=bob.weir.test,10.0.0.2,fd00::2 --txt-record=weir.test,"an open, software-defined DPU"
serve bob iperf3 --server
serve bob python3 -c '
import socketserver
class Telnet(socketserver.BaseRequestHandler):
    def handle(self):
        self.request.sendall(b"bob login: ")
socketserver.TCPServer(("", 23), Telnet).serve_forever()'
until_true on bob bash -c 'for port in 80 53 5201 23; do ss -Hltn "sport = :$port" | grep -q . || exit 1; done'
# Link-local addresses are tentative for a second or so.
until_true bash -c "! ip -n $prefix-alice -6 address show tentative | grep -q . &&
                    ! ip -n $prefix-bob -6 address show tentative | grep -q ."

# --- the traffic -----------------------------------------------------------------------------------------------------
echo "recording..."
on alice ping -c 3 -i 0.2 10.0.0.2 # ARP first
on alice ping -c 2 -i 0.2 -s 1400 10.0.0.3
on alice ping -c 3 -i 0.2 fd00::2 # neighbour discovery first
on carol ping -c 2 -i 0.2 fd00::1
on alice dig +tries=1 @10.0.0.2 bob.weir.test A bob.weir.test AAAA weir.test TXT
on alice dig +tries=1 @10.0.0.2 nobody.weir.test
on carol dig +tries=1 +tcp @10.0.0.2 bob.weir.test
on alice curl -sSo /dev/null http://10.0.0.2/
on carol curl -sSo /dev/null http://10.0.0.2/
on alice curl -sSo /dev/null "http://[fd00::2]/" # TCP over IPv6
on alice iperf3 --client 10.0.0.2 -n 48K -l 4K -M 536
on carol iperf3 --client 10.0.0.2 --udp -n 8K -l 512
on alice ping -c 2 -i 0.2 10.0.100.2 # in VLAN 100
on alice curl -sSo /dev/null http://10.0.100.2/
try carol curl -sSo /dev/null http://10.0.0.2:8081/                            # nobody listens: RST
on carol bash -c 'curl -sSo /dev/null telnet://10.0.0.2:23 </dev/null'         # what a firewall should not let through
on carol bash -c 'exec 9<>/dev/tcp/10.0.0.2/23; head -c 11 <&9'     # once more, from another source port
on carol bash -c 'for i in 1 2 3; do echo "beacon $i" >/dev/udp/10.0.0.1/4444; sleep 0.05; done' || true # and this
sleep 0.3

# --- the captures ----------------------------------------------------------------------------------------------------
for pid in $(ip netns pids "$prefix-switch"); do
  kill -INT "$pid"
done
for host in "${hosts[@]}"; do
  until_true grep -q "packets captured" "$work/tcpdump-$host.log"
  grep -q "^0 packets dropped by kernel" "$work/tcpdump-$host.log"
done
"$here/check-capture.py" "$work"/{alice,bob,carol}.pcap
for host in "${hosts[@]}"; do
  install -m 644 "$work/$host.pcap" "$folder/$host.pcap"
done
