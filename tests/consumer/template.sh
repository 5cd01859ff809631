#!/bin/bash
# template.sh PREFIX COMPILER: the template, copied out of the moved package into an
# empty folder and built there, by find_package and by pkg-config with a plain compiler line; each
# is loaded by name and passes conformance. The ctest `consumer_template` runs it. (promises 12, 18,
# 19 and 25: it is software and no default; built from what is installed; the installed tool takes
# --plugin; it shows no other symbol)
. "$(dirname "$0")/common.sh"
prefix=$1
compiler=$2
export PATH=$prefix/bin:$PATH

# works FILE I: the device is the template's, and the I-th quarter of the core cases passes on it.
works() {
    nm --dynamic --defined-only "$1" | grep -qv ' hal_plugin_create$' &&
        fail "$1 shows more than hal_plugin_create"
    expect "$(HAL_PLUGIN_PATH=$1 HAL_BACKEND=template hal-info)" "template:0"
    hal-conformance --plugin "$1" --device template --level core --part "$2/8"
}

cp -r "$prefix/share/doc/halyard/template" "$work/template"
cd "$work/template"
echo "== find_package"
cmake -S . -B "$work/build" -G Ninja -DCMAKE_C_COMPILER="$compiler" -DCMAKE_C_FLAGS=-Werror \
    -DCMAKE_PREFIX_PATH="$prefix" >"$work/configure.log"
cmake --build "$work/build"
works "$work/build/hal_template.so" 1

echo "== installed into the package's own prefix, and found there without a variable"
cp -r "$prefix" "$work/own"
cmake --install "$work/build" --prefix "$work/own"
said=$("$work/own/bin/hal-info")
expect "$said" "template:0"
[[ $said != *"Choice without a selection: template"* ]] || fail "the template is the default"
rm "$(find "$work/own" -name hal_template.so)"
[[ $("$work/own/bin/hal-info") != *template:0* ]] || fail "template:0 came from somewhere else"

echo "== pkg-config"
pc=$(find "$prefix" -name halyard-kit.pc)
export PKG_CONFIG_PATH=${pc%/*}
# The flags are words to be split.
# shellcheck disable=SC2046
"$compiler" -std=c17 -Wall -Wextra -Wpedantic -Werror -O2 -fPIC -shared -fvisibility=hidden \
    -Wl,--build-id,-z,defs *.c -o "$work/hal_template.so" \
    $(pkg-config --cflags --libs halyard-kit)
works "$work/hal_template.so" 2
