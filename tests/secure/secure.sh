#!/usr/bin/env bash
# In a set-uid process no variable loads code, writes a file or makes calls fail: HAL_PLUGIN_PATH,
# LD_LIBRARY_PATH, HAL_CACHE_DIR, XDG_CACHE_HOME, HOME, HAL_TRACE, HAL_DUMP, HAL_LAYERS and HAL_FAULT do
# nothing, nor do the variables of plugins, such as HAL_CPU_ISA. HAL_BACKEND still chooses among the plugins that are installed. In the same process run
# plainly each of them does its work, so that this test can fail.
# usage: secure.sh PROGRAM PLUGINS OTHER-LIBRARY   PLUGINS: a folder of
# plugins; OTHER-LIBRARY: any that is not libm
set -euo pipefail
export LC_ALL=C
program=$1 plugins=$2 other=$3
nobody=65534
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

skip() {
    echo "skipped: $1"
    exit 77
}
fail() {
    echo "$1"
    sed 's/^/    /' "$folder"/*.out
    exit 1
}

[ "$(id -u)" = 0 ] || skip "only root can make a program set-uid for somebody else"
command -v setpriv >/dev/null || skip "setpriv is missing (package util-linux)"
chmod 755 "$folder"
setpriv --reuid="$nobody" --clear-groups test -x "$folder" ||
    skip "other users cannot enter ${TMPDIR:-/tmp}"
cp "$program" "$folder/see_variables"
chmod 4755 "$folder/see_variables"
mkdir "$folder/library"
cp "$other" "$folder/library/$(basename "$(ldd "$program" | awk '/libm[.]/ { print $3 }')")"
ln -s "$(realpath "$(dirname "$program")/halyard")" "$folder/halyard" # where the library looks for plugins

# run NAME COMMAND...: with every variable set to something that would be seen.
run() {
    local name=$1
    shift
    mkdir -m 777 "$folder/$name"
    env HAL_PLUGIN_PATH="$plugins" HAL_BACKEND=cpu HAL_CACHE_DIR="$folder/$name/cache" \
        XDG_CACHE_HOME="$folder/$name/xdg" HOME="$folder/$name/home" \
        HAL_TRACE="$folder/$name/trace.json" HAL_DUMP=ir,native,batch HAL_LAYERS=fault \
        HAL_FAULT=compile:1 "$@" >"$folder/$name.out" 2>&1 || true
}
sees() { grep -q "$2" "$folder/$1.out"; }
wrote() { [ -n "$(find "$folder/$1" -mindepth 1)" ]; }

run plainly "$program"
sees plainly "secure 0" || fail "run plainly, the process is secure"
sees plainly "path $plugins" || fail "HAL_PLUGIN_PATH does nothing"
sees plainly "HAL_FAULT=compile:1" || fail "HAL_LAYERS does nothing"
[ -s "$folder/plainly/trace.json" ] || fail "HAL_TRACE does nothing"
run dumping env -u HAL_FAULT -u HAL_LAYERS "$program"
sees dumping "kernel seen" || fail "HAL_DUMP does nothing"
[ -n "$(find "$folder/dumping/cache" -type f)" ] || fail "HAL_CACHE_DIR does nothing"
sees dumping "work done" || fail "the program does not work"
run other env LD_LIBRARY_PATH="$folder/library" "$program"
! sees other "device cpu" || fail "LD_LIBRARY_PATH does nothing"

run choosing env -u HAL_FAULT -u HAL_LAYERS HAL_CPU_ISA=none "$program"
sees choosing "device .*HAL_CPU_ISA: expected" || fail "HAL_CPU_ISA does nothing"

run setuid setpriv --reuid="$nobody" env LD_LIBRARY_PATH="$folder/library" HAL_CPU_ISA=none \
    "$folder/see_variables"
sees setuid "secure 1" || { sees setuid "secure 0" && skip "this place ignores set-uid bits"; } ||
    fail "the set-uid program does not run"
! sees setuid "HAL_CPU_ISA" || fail "HAL_CPU_ISA is heeded in a set-uid process"
sees setuid "device cpu" || fail "HAL_BACKEND is not heeded in a set-uid process"
sees setuid "work done" || fail "the set-uid program does not work"
! sees setuid "path $plugins" || fail "HAL_PLUGIN_PATH is heeded in a set-uid process"
! sees setuid "kernel seen" || fail "HAL_DUMP is heeded in a set-uid process"
! wrote setuid || fail "a set-uid process writes files: $(find "$folder/setuid")"
echo "set-uid: no variable but HAL_BACKEND is heeded"
