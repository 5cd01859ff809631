#!/bin/bash
# programs.sh PREFIX COMPILER: an example of the moved package, built as its user does, by
# find_package and by pkg-config, and run. The ctest `consumer_programs` runs it. (promise 2: the
# plugins are found next to the library, wherever that was moved)
. "$(dirname "$0")/common.sh"
prefix=$1
compiler=$2

echo "== find_package"
cp -r "$prefix/share/doc/halyard/examples/matmul" "$work/matmul"
cmake -S "$work/matmul" -B "$work/build" -G Ninja -DCMAKE_C_COMPILER="$compiler" \
    -DCMAKE_PREFIX_PATH="$prefix" >"$work/configure.log"
cmake --build "$work/build"
"$(find "$work/build" -name matmul -type f)"

echo "== an example that shares a file with another one"
cp -r "$prefix/share/doc/halyard/examples" "$work/examples"
cmake -S "$work/examples/mlp" -B "$work/mlp" -G Ninja -DCMAKE_C_COMPILER="$compiler" \
    -DCMAKE_PREFIX_PATH="$prefix" >"$work/configure.log"
cmake --build "$work/mlp"
"$(find "$work/mlp" -name mlp -type f)" --data "$work/examples/digits/data" --epochs 1

echo "== find_package, another version or part"
cat >"$work/CMakeLists.txt" <<'TEXT'
cmake_minimum_required(VERSION 3.25)
project(parts LANGUAGES C)
find_package(halyard 99)
find_package(halyard COMPONENTS no_such_part)
if(halyard_FOUND)
    message(FATAL_ERROR "a part that is not there was found")
endif()
find_package(halyard 0.1 REQUIRED COMPONENTS ops kit)
TEXT
said=$(cmake -S "$work" -B "$work/parts" -DCMAKE_C_COMPILER="$compiler" \
    -DCMAKE_PREFIX_PATH="$prefix" 2>&1) || fail "$said"
expect "$said" 'compatible with requested version "99"'

echo "== pkg-config"
pc=$(find "$prefix" -name halyard-ops.pc)
export PKG_CONFIG_PATH=${pc%/*}
libdir=$(pkg-config --variable=libdir halyard)
[ -d "$(pkg-config --variable=plugindir halyard)" ] || fail "plugindir is no folder"
# The flags are words to be split.
# shellcheck disable=SC2046
"$compiler" -std=c17 "$work"/matmul/*.c -o "$work/by_pkg_config" \
    $(pkg-config --cflags --libs halyard-ops) -Wl,-rpath,"$libdir"
"$work/by_pkg_config"
