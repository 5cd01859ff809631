#!/usr/bin/env bash
# Exits 0 when hal-bench dense, ended by a signal, writes what it has measured.
# usage: interrupted.sh HAL-BENCH
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
fail() {
    echo "$1"
    cat "$folder/log"
    exit 1
}

"$1" dense --device cpu --threads 1 --seconds 0.5 --filter "B1 H64,B8 H64,B64 H64,B512 H64" \
    --json "$folder/rows.json" >"$folder/log" 2>&1 &
process=$!
# Bit 14 of the mask of caught signals: SIGTERM, which this shell catches, too, until it has become
# hal-bench.
until [ "$(cat "/proc/$process/comm")" = hal-bench ] &&
    mask=$(sed -n 's/^SigCgt:[[:space:]]*//p' "/proc/$process/status") && (((0x$mask >> 14) & 1)); do
    kill -0 "$process" || fail "hal-bench ended before it caught SIGTERM"
    sleep 0.05
done
sleep 1.5
kill -TERM "$process"
status=0
wait "$process" || status=$?
[ "$status" = 1 ] || fail "exit status $status instead of 1"
rows=$(grep -c '"case"' "$folder/rows.json" || true)
[ "$rows" -lt 32 ] || fail "all rows were measured"
grep -q "Interrupted by a signal: $rows rows" "$folder/rows.json" || fail "no note of $rows rows"
