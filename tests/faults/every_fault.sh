#!/usr/bin/env bash
# Promises 4, 13 and 22: whichever allocation, compile, submit or wait of a program fails, and wherever its
# device is lost, it ends by itself, with what it says about errors and exit status 1, or it bears the
# failure and prints what it always prints: no signal, no hang and, under sanitizers, no leak.
# The n-th call fails, then all from the n-th on, for every n up to 40 and growing steps beyond, until
# the program makes fewer such calls.
# usage: every_fault.sh DEVICE MOST PROGRAM ARGUMENTS...   MOST: the n up to which each one is tried
set -uo pipefail
export LC_ALL=C
device=$1 most=$2 limit=120
shift 2
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
export HAL_BACKEND=$device HAL_CACHE_DIR=off
# Sanitizers have exit statuses of their own.
export ASAN_OPTIONS="${ASAN_OPTIONS:-}:exitcode=99" LSAN_OPTIONS="${LSAN_OPTIONS:-}:exitcode=98"
export UBSAN_OPTIONS="${UBSAN_OPTIONS:-}:exitcode=97"

fail() {
    echo "HAL_FAULT=$fault: $1"
    head -c 4000 "$folder/errors"
    exit 1
}

# What a program prints, but for times and speeds.
printed() {
    sed -E 's/ *[0-9.]+ us( +[0-9]+)?//g' "$folder/$1"
}

# What the message of a kind of fault has to say.
words() {
    case $1 in
        lost) echo 'fails by HAL_FAULT=lost:[0-9+]+|was lost earlier; release' ;;
        allocation) echo 'out of memory: [0-9]+ bytes .* requested, [0-9]+ of [0-9]+ free' ;;
        *) echo "fails by HAL_FAULT=$1:[0-9+]+" ;;
    esac
}

# try FAULT PROGRAM...: its exit status, 0 or 1; anything else ends the test.
try() {
    fault=$1
    shift
    HAL_LAYERS=fault HAL_FAULT=$fault timeout -k 5 "$limit" "$@" >"$folder/output" 2>"$folder/errors"
    status=$?
    runs=$((runs + 1))
    ! grep -qE 'Sanitizer|runtime error' "$folder/errors" || fail "a sanitizer's finding"
    case $status in
        0) [ "$(printed output)" = "$usual" ] || {
            diff <(echo "$usual") <(printed output) >"$folder/errors"
            fail "it succeeds with other results"
        } ;;
        1) grep -qE "$(words "${fault%%:*}")" "$folder/errors" || fail "its message does not tell" ;;
        124 | 137) fail "it hangs" ;;
        *) fail "it ends with status $status" ;;
    esac
}

runs=0
fault=none
timeout -k 5 "$limit" "$@" >"$folder/usual" 2>"$folder/errors" || fail "fails by itself"
usual=$(printed usual)
for kind in allocation compile submit wait lost; do
    n=1 borne=0
    while try "$kind:$n+" "$@" && [ "$status" -ne 0 ]; do
        try "$kind:$n" "$@"
        borne=$((borne + (status == 0)))
        n=$((n < most ? n + 1 : n * 3 / 2 + 1))
    done
    [ "$n" -gt 1 ] || fail "no $kind fails: the program has none, or does not care"
    echo "$kind: up to $n, $borne single ones borne"
done
echo "$runs runs"
