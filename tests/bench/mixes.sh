#!/usr/bin/env bash
# Exits 0 when hal-bench mixes runs and checks random programs on the cpu, the listed programs are
# the measured ones, and --join sorts the rows by their worst ratio.
# usage: mixes.sh HAL-BENCH
set -euo pipefail
export LC_ALL=C
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
fail() {
    echo "$1"
    exit 1
}

options=(--seed 5 --random 6)
"$1" mixes "${options[@]}" --list >"$folder/cells.json"
listed=$(grep -o '"case": "[^"]*"' "$folder/cells.json" | sort)
[ "$(echo "$listed" | wc -l)" = 6 ] || fail "not six programs are listed"
for kind in unary binary reduce read; do
    grep -q "\"$kind\"" "$folder/cells.json" || fail "no program has an operation of kind $kind"
done
name=$(grep -o '"case": "mix 3:[^"]*"' "$folder/cells.json")
cat >"$folder/join.json" <<JSON
{"rows": [{$name, "peer": "other", "median_us": 1e-3, "min_us": 1e-3}]}
JSON
"$1" mixes --device cpu "${options[@]}" --seconds 0.001 --join "$folder/join.json" \
    --json "$folder/rows.json" | tee "$folder/log"
measured=$(grep -o '"case": "[^"]*"' "$folder/rows.json" | sort)
[ "$listed" = "$measured" ] || fail "the measured programs differ from the listed ones"
first=$(grep -o '"case": "[^"]*"' "$folder/rows.json" | head -1)
[ "$first" = "$name" ] || fail "the first row is not the worst, but $first"
grep -q 'All cells over other: 1 cells, worst 0.0' "$folder/log" ||
    fail "the joined ratios are not summed up"
