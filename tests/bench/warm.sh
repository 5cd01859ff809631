#!/usr/bin/env bash
# hal-warm fills the compile cache: a second process compiles no kernel for the same programs, nor for
# other shapes of them.
# usage: software_device.sh DEVICE BIN warm.sh HAL-WARM PROGRAMS SHAPES; PROGRAMS: all, or a list with commas
set -euo pipefail
export LC_ALL=C
warm=$1 programs=$2 shapes=$3
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
filter=()
[ "$programs" = all ] || filter=(--filter "$programs")
export HAL_CACHE_DIR=$folder/cache
"$warm" "${filter[@]}" --shapes "$shapes" | tee "$folder/first"
grep -q '[1-9][0-9]* compiled' "$folder/first" || { echo "nothing was compiled"; exit 1; }
"$warm" "${filter[@]}" --shapes 3 --seed 7 | tee "$folder/second"
if grep -v ' 0 compiled' "$folder/second"; then
    echo "the second process compiled kernels"
    exit 1
fi
