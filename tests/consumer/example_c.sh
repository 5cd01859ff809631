#!/bin/bash
# example_c.sh PREFIX COMPILER: the C example, copied out of the moved package into an empty folder
# and built by the commands of its README, passes parts of conformance: queues and points, which it
# runs on threads, and control flow, barriers and atomics, which it compiles.
. "$(dirname "$0")/common.sh"
prefix=$1
compiler=$2
export PATH=$prefix/bin:$PATH HAL_CACHE_DIR=$work/cache HAL_EXAMPLE_C_CC=$compiler

cp -r "$prefix/share/doc/halyard/example_c" "$work/example_c"
cd "$work/example_c"
cmake -S . -B build -G Ninja -DCMAKE_C_COMPILER="$compiler" -DCMAKE_C_FLAGS=-Werror \
    -DCMAKE_PREFIX_PATH="$prefix" >"$work/configure.log"
cmake --build build
nm --dynamic --defined-only build/hal_example_c.so | grep -qv ' hal_plugin_create$' &&
    fail "it shows more than hal_plugin_create"
for cases in 'queue/*' 'points/*' 'ir/shared*' 'ir/atomic*type=u64*' 'ir/control(for*'; do
    hal-conformance --plugin build/hal_example_c.so --device example_c --filter "$cases"
done

echo "== a compiler that is not there is a sentence"
said=$(HAL_EXAMPLE_C_CC=/nowhere/cc HAL_CACHE_DIR=off hal-conformance \
    --plugin build/hal_example_c.so --device example_c --filter 'ir/control(if)' || true)
expect "$said" "/nowhere/cc: No such file or directory; set HAL_EXAMPLE_C_CC"
