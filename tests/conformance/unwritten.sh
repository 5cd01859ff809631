#!/bin/bash
# unwritten.sh PROGRAM...: the exit status of each program when standard output is full, from the
# help, which all have, and from what some print after work.
set -euo pipefail
export LC_ALL=C
[ -w /dev/full ] || exit 77
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
export HAL_CACHE_DIR=$scratch/cache

# full PROGRAM ARGUMENTS...
full() {
    local status=0
    "$@" >/dev/full 2>"$scratch/error" || status=$?
    [ "$status" = 1 ] || [ "$status" = 2 ] || { echo "status $status into a full file: $*"; exit 1; }
    grep -q "standard output cannot be written" "$scratch/error" ||
        { echo "no reason is given: $*"; cat "$scratch/error"; exit 1; }
}

for program in "$@"; do
    full "$program" --help
    "$program" --help >"$scratch/help" || { echo "$program --help fails"; exit 1; }
    case $program in
        *hal-info) full "$program" --json ;;
        *hal-bench) full "$program" grid --list --seed 1 ;;
        *hal-conformance)
            full "$program" --list
            full "$program" --device cpu --filter device/nulls
            ;;
    esac
done
