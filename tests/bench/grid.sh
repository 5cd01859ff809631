#!/usr/bin/env bash
# Exits 0 when hal-bench grid measures and checks small cells on the cpu, two runs of one seed have
# the same cells, and --join sorts the rows by their worst ratio.
# usage: grid.sh HAL-BENCH
set -euo pipefail
export LC_ALL=C
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
fail() {
    echo "$1"
    exit 1
}

options=(--seed 3 --largest 70000)
"$1" grid "${options[@]}" --list >"$folder/cells.json"
listed=$(grep -o '"case": "[^"]*"' "$folder/cells.json" | sort)
random=$(echo "$listed" | grep -c ' random"')
[ "$random" -ge 5 ] || fail "$random random cells have at most 70000 elements"
cat >"$folder/join.json" <<'JSON'
{"rows": [{"case": "gelu f32 1024", "peer": "other", "median_us": 1e-3, "min_us": 1e-3},
          {"case": "neg f32 1024", "peer": "other", "median_us": 1e9, "min_us": 1e9}]}
JSON
"$1" grid --device cpu "${options[@]}" --seconds 0.001 --second cpu --join "$folder/join.json" \
    --json "$folder/rows.json" | tee "$folder/log"
measured=$(grep -o '"case": "[^"]*"' "$folder/rows.json" | sort)
[ "$listed" = "$measured" ] || fail "the measured cells differ from the listed ones"
first=$(grep -o '"case": "[^"]*"' "$folder/rows.json" | head -1)
[ "$first" = '"case": "gelu f32 1024"' ] || fail "the first row is not the worst, but $first"
grep -q 'All cells over other: 2 cells, worst 0.00, .* 1 at 0.9 or more (50%)' "$folder/log" ||
    fail "the joined ratios are not summed up"
grep -q '"cpu": {"median_us"' "$folder/rows.json" || fail "the second device has no figures"

filtered=$("$1" grid "${options[@]}" --list --filter 'argmax,neg f32' | grep '"case"')
[ -z "$(echo "$filtered" | grep -vE '"case": "(argmax|neg f32)')" ] || fail "other cells pass --filter"
[ "$(echo "$filtered" | grep -c 'neg f32 1024"')" = 1 ] || fail "a cell of --filter is missing"

small=$("$1" grid --seed 4 --largest 900 --random 30 --list | grep '"case"')
[ "$(echo "$small" | grep -c ' random"')" = 30 ] || fail "--random 30 lists other cells: $small"
