#!/usr/bin/env bash
# Installs what is missing of scripts/packages.txt.
#
#   scripts/setup.sh [GROUP...]     groups: build, test, peers, live; all but live by default
set -euo pipefail
list="$(dirname "$0")/packages.txt"

if [[ ${1:-} == -h || ${1:-} == --help ]]; then
  sed -n '2,4s/^# \{0,1\}//p' "$0"
  exit 0
fi

declare -A packages=()
declare -A groups=()
while read -r word; do
  if [[ $word == \[*\] ]]; then
    group=${word:1:-1}
    groups[$group]=1
  elif [[ -n $word && (($# == 0 && "$group" != live) || " $* " == *" $group "*) ]]; then
    packages[$word]=1
  fi
done < <(sed 's/#.*//' "$list")
for wanted in "$@"; do
  if [[ -z ${groups[$wanted]:-} ]]; then
    echo "setup: there is no package group '$wanted' in $list; it has: ${!groups[*]}" >&2
    exit 2
  fi
done

if ! command -v dpkg-query >/dev/null; then
  echo "setup: this is not a Debian system. Install what these Debian packages hold, then go on: ${!packages[*]}" >&2
  exit 1
fi

installed=$(dpkg-query -W -f '${db:Status-Status} ${Package}\n' "${!packages[@]}" 2>/dev/null | sed -n 's/^installed //p' || true)
mapfile -t missing < <(comm -23 <(printf '%s\n' "${!packages[@]}" | sort -u) <(sort -u <<<"$installed"))
if ((${#missing[@]} == 0)); then
  exit 0
fi

if ((EUID != 0)); then
  echo "setup: ${#missing[@]} package(s) missing, and only root may install them. Run this, then try again:" >&2
  echo "  sudo apt-get update && sudo apt-get install -y --no-install-recommends ${missing[*]}" >&2
  exit 1
fi

echo "setup: installing ${missing[*]}"
export DEBIAN_FRONTEND=noninteractive
log=$(mktemp)
trap 'rm -f "$log"' EXIT
if ! { apt-get update -q && apt-get install -y -q --no-install-recommends "${missing[@]}"; } >"$log" 2>&1; then
  tail -n 20 "$log" >&2
  echo "setup: apt-get failed (its last lines are above). Check the machine's package sources, then try again." >&2
  exit 1
fi
