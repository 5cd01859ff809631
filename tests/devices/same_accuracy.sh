#!/bin/bash
# same_accuracy.sh DIGITS DATA: the digits example learns on the device of HAL_BACKEND as well as on
# the cpu: 0.3 points of accuracy between them at most, from the same seed.
set -euo pipefail
export LC_ALL=C
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
accuracy() { sed 's/.*"test_accuracy":\([0-9.]*\).*/\1/' "$folder/$1.json"; }

"$1" --data "$2" --json "$folder/device.json" | tail -n 8
HAL_BACKEND=cpu "$1" --data "$2" --json "$folder/cpu.json" >"$folder/log"
echo "accuracy on $HAL_BACKEND $(accuracy device), on the cpu $(accuracy cpu)"
awk -v a="$(accuracy device)" -v b="$(accuracy cpu)" \
    'BEGIN { d = a - b; exit !(a > 0.9 && d <= 0.003 && d >= -0.003) }'
