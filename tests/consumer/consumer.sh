#!/bin/bash
# consumer.sh SOURCE_TREE BUILD_TREE COMPILER: the installed package, as its user meets it. The ctest
# `consumer` runs it.
set -euo pipefail
source_tree=$1
build_tree=$2
compiler=$3

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
unset HAL_BACKEND HAL_PLUGIN_PATH LD_LIBRARY_PATH
export HAL_CACHE_DIR=off

cmake --install "$build_tree" --prefix "$work/first" >"$work/install.log"
mv "$work/first" "$work/prefix"
prefix=$work/prefix

echo "== hal-info from the moved prefix"
"$prefix/bin/hal-info"

echo "== find_package"
cmake -S "$source_tree/examples/vector_add" -B "$work/build" -G Ninja \
    -DCMAKE_C_COMPILER="$compiler" -DCMAKE_PREFIX_PATH="$prefix" >"$work/configure.log"
cmake --build "$work/build"
"$(find "$work/build" -name vector_add -type f)"

echo "== pkg-config"
pc=$(find "$prefix" -name halyard-ops.pc)
export PKG_CONFIG_PATH=${pc%/*}
libdir=$(pkg-config --variable=libdir halyard)
# The flags are words to be split.
# shellcheck disable=SC2046
"$compiler" -std=c17 "$source_tree"/examples/vector_add/*.c -o "$work/by_pkg_config" \
    $(pkg-config --cflags --libs halyard-ops) -Wl,-rpath,"$libdir"
"$work/by_pkg_config"
