#!/usr/bin/env bash
# install_test.sh BUILD_FOLDER COMPILER
set -euo pipefail
build=$1
compiler=$2
app=$(cd "$(dirname "$0")/app" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

fail() {
  echo "install test: $*" >&2
  exit 1
}

cmake --install "$build" --prefix "$work/first" >"$work/install.log"
mv "$work/first" "$work/weir" # an installed copy may be moved
cd "$work/weir"
find . -type f | sort

[[ -z $(find include -path '*internal*') ]] || fail "an internal header was installed"
if grep -rlF -e "$build" -e "$work/first" --include='*.h' --include='*.cmake' --include='*.pc' .; then
  fail "these files name a folder of the machine that built them"
fi
if [[ -e $build/weir ]]; then
  bin/weir --version
fi

echo "-- by find_package"
cmake -G Ninja -S "$app" -B "$work/app" --log-level=WARNING -DCMAKE_CXX_COMPILER="$compiler" \
  -DCMAKE_PREFIX_PATH="$work/weir" >/dev/null
cmake --build "$work/app" -- --quiet
"$work/app/app"

echo "-- by pkg-config"
PKG_CONFIG_PATH=$(dirname "$(find "$PWD" -name weir.pc)")
export PKG_CONFIG_PATH
read -ra flags < <(pkg-config --cflags --libs weir)
"$compiler" -std=c++23 "$app/main.cc" -o "$work/app-pkg-config" "${flags[@]}"
"$work/app-pkg-config"
