#!/bin/bash
# Wrong versions of driver.m (mutants.txt) are each noticed: compiled, linked with the plugin's
# other objects, and met by the test that the list names, which passes with the right version.
# usage: mutants.sh BIN TEST-PLUGIN LIST SHIM OBJECTS -- COMPILE... -- LINK...
# BIN has hal-conformance; OBJECTS is a file with one object a line; both commands get -o FILE and
# what they read.
set -euo pipefail
export LC_ALL=C
bin=$1 test_plugin=$2 list=$3 shim=$4 objects=$5
shift 6
compile=() link=()
while [ "$1" != -- ]; do
    compile+=("$1")
    shift
done
shift
link=("$@")
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
mapfile -t plain <"$objects"

# build SCRIPT: hal_metal.so from the shim as the script changes it.
build() {
    sed "$1" "$shim" >"$folder/driver.m"
    "${compile[@]}" -w -c "$folder/driver.m" -o "$folder/shim.o" &&
        mkdir -p "$folder/plugin" &&
        "${link[0]}" "$folder/shim.o" "${plain[@]}" "${link[@]:1}" -o "$folder/plugin/hal_metal.so"
}

# meets TEST: its exit status.
meets() {
    case $1 in
        plugin) HAL_PLUGIN_PATH=$folder/plugin timeout -k 5 "$limit" "$test_plugin" ;;
        watched) HAL_PLUGIN_PATH=$folder/plugin METAL_STANDIN_WATCH=1 timeout -k 5 "$limit" "$test_plugin" ;;
        core:*) timeout -k 5 $((6 * limit)) "$bin/hal-conformance" --plugin "$folder/plugin/hal_metal.so" --shrink 0 \
            --timeout "$limit" --level core --jobs 2 --filter "${1#core:}" ;;
    esac >"$folder/log" 2>&1
}

build "" || { echo "the shim itself does not build"; exit 1; }
limit=60
tests=$(sed -n 's/^[a-z_]* | \([^|]*\) | .*/\1/p' "$list" | sort -u)
while read -r test; do
    meets "$test" || { echo "$test fails without a fault"; tail -n 20 "$folder/log"; exit 1; }
done <<<"$tests"
failed=0 count=0 limit=10 # a wrong version may hang, with every signal blocked: -k
while IFS= read -r line; do
    [[ $line != '#'* ]] || continue
    name=${line%% |*} rest=${line#* | }
    test=${rest%% | *} script=${rest#* | }
    count=$((count + 1))
    if ! build "$script"; then
        echo "$name: does not build" && failed=1
    elif cmp -s "$folder/driver.m" "$shim"; then
        echo "$name: changes nothing: the shim no longer has these words" && failed=1
    elif meets "$test"; then
        echo "$name: not noticed by $test" && failed=1
    else
        echo "$name: $test: $(grep -m1 -aE 'metal stand-in:|Error|ERROR|failed|Segmentation' "$folder/log" | cut -c1-110)"
    fi
done <"$list"
echo "$count wrong versions"
[ "$count" -ge 10 ] && exit "$failed"
