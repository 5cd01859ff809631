#!/usr/bin/env bash
# The mlp example learns; with products of the class NORMWISE it is as accurate as with strict ones
# within 0.3 points; a graph gives the bits of eager steps; wrong usage and bad data are refused.
# usage: accuracy.sh PROGRAM DATA
set -euo pipefail
export LC_ALL=C
train() { "$program" --data "$data" "$@" | tail -1; }
accuracy() { sed 's/^accuracy \([0-9.]*\) %.*/\1/' <<<"$1"; }
refused() { # STATUS TEXT OPTIONS...
    local status=0 wanted=$1 text=$2 output
    shift 2
    output=$("$program" "$@" 2>&1) || status=$?
    if [ "$status" != "$wanted" ] || ! grep -qF -- "$text" <<<"$output"; then
        echo "$*: status $status, expected $wanted and '$text' in: $output"
        exit 1
    fi
}
program=$1 data=$2

strict=$(train --precision strict)
normwise=$(train --precision normwise)
printf 'strict: %s\nnormwise: %s\n' "$strict" "$normwise"
awk -v s="$(accuracy "$strict")" -v n="$(accuracy "$normwise")" \
    'BEGIN { exit !(s >= 95 && n - s <= 0.3 && s - n <= 0.3) }' ||
    { echo "expected 95 % of both, and at most 0.3 points between them"; exit 1; }

graph=$(train --layers 2 --width 20 --epochs 2)
eager=$(train --layers 2 --width 20 --epochs 2 --eager)
printf 'graph: %s\neager: %s\n' "$graph" "$eager"
[ "${graph%,*}" = "${eager%,*}" ] || { echo "a graph and eager steps differ"; exit 1; }

refused 2 '--layers 17 is not understood' --layers 17
refused 2 '--precision best is not understood' --precision best
refused 1 'nowhere/train.csv: cannot open' --data nowhere
