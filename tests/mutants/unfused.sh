#!/usr/bin/env bash
# hal-replay --unfused: a plugin that contracts a product and a sum within one kernel is named with the fused kernel and
# its call, the reproducer shows it again, and runs of a right plugin are equal to the last bit.
# usage: unfused.sh PROGRAM HAL-REPLAY MUTANTS
set -euo pipefail
program=$1 replay=$2 mutants=$3
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
export HAL_CACHE_DIR=off HAL_PROBE=off
unset HAL_SANITIZE HAL_LAYERS HAL_TRACE HAL_PROFILE

# record DEVICE NAME: two recordings, fused and unfused
record() {
    for words in calls calls,unfused; do
        mkdir -p "$folder/$2/$words"
        HAL_BACKEND=$1 HAL_DUMP=$words HAL_DUMP_DIR=$folder/$2/$words "$program"
    done
    fused=$(echo "$folder/$2/calls/"*.batch) unfused=$(echo "$folder/$2/calls,unfused/"*.batch)
}

# expect STATUS WORDS ARGUMENTS...
expect() {
    local status=0 wanted=$1 words=$2
    shift 2
    "$replay" "$@" >"$folder/out" 2>&1 || status=$?
    if [ "$status" -ne "$wanted" ] || ! grep -q -e "$words" "$folder/out"; then
        echo "failed: hal-replay $*: expected status $wanted and \"$words\", got $status:"
        cat "$folder/out"
        exit 1
    fi
}

record cpu right
expect 0 "^4 values are within the bound; 0 are in" "$fused" --unfused "$unfused" --ulps 0
expect 0 "" "$fused" --device cpu --ulps 0
right=$unfused
HAL_PLUGIN_PATH=$mutants/hal_mutant_contract.so record mutant_contract wrong
expect 1 "^first difference: call 4, max: batch [0-9]*, kernel chain, of the calls mul add max$" \
    "$fused" --unfused "$unfused" --ulps 0 --reproducer "$folder/found"
expect 0 "values are within" "$unfused" --unfused "$right" --ulps 0
# The other device has the unfused result: the reproducer shows no difference there.
expect 0 "" "$folder/found" --device cpu --ulps 0
HAL_PLUGIN_PATH=$mutants/hal_mutant_contract.so expect 1 "" "$folder/found" --device mutant_contract --ulps 0
expect 1 "record [0-9]*: %[0-9]* = add f32" "$folder/found" --bisect cpu --ulps 0 \
    --with "HAL_PLUGIN_PATH=$mutants/hal_mutant_contract.so mutant_contract" --reproducer "$folder/again"
expect 2 "record with HAL_DUMP=calls" "$folder/found" --unfused "$right"
