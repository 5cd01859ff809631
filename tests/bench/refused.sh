#!/usr/bin/env bash
# hal-bench refuses words that it does not know, and says so when no case fits.
# usage: refused.sh HAL-BENCH
set -euo pipefail
export LC_ALL=C
bench=$1

# refused STATUS WORDS ARGUMENTS
refused() {
    local status=0 expected=$1 words=$2
    shift 2
    "$bench" "$@" --device cpu --seconds 0.001 >/dev/null 2>"$folder/error" || status=$?
    [ "$status" = "$expected" ] || { echo "$*: status $status instead of $expected"; exit 1; }
    grep -qF -- "$words" "$folder/error" || { echo "$*: no '$words' in:"; cat "$folder/error"; exit 1; }
}

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
refused 2 '--type: expected' gemm --sizes 8 --type f33
refused 2 '--type: expected' pointwise --sizes 8 --type f32,f33
refused 2 '--sizes: expected n or mxnxk of gemm, got 8x9' gemm --sizes 8x9
refused 2 '--cases: expected' sequential --cases chains
# A peer that is not there takes nothing from the figures of what is.
refused 1 'cu' gemm --sizes 8 --peer cublas --json "$folder/gemm.json"
grep -q '"median_us": [0-9.e-]*[1-9]' "$folder/gemm.json" || { cat "$folder/gemm.json"; exit 1; }
! grep -Eq '"gflops": [0-9.]*e[+]|"gflops": [0-9]{7}' "$folder/gemm.json" || {
    echo "a product that was not multiplied has a rate:"; cat "$folder/gemm.json"; exit 1; }
refused 1 'nothing was measured' dense --filter 'no such cell'
refused 1 'nothing was measured' grid --filter 'no such cell'
