#!/bin/bash
# same_loss.sh RNN PROJECT: the rnn example learns on the device of HAL_BACKEND as on the cpu: after 60
# steps from the same seed their losses differ by 0.02 at most.
set -euo pipefail
export LC_ALL=C
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
loss() { sed 's/.*"loss": \([0-9.]*\).*/\1/' "$folder/$1.json"; }
options=(--data "$2" --steps 60 --every 20 --sample 0)

"$1" "${options[@]}" --json "$folder/device.json"
HAL_BACKEND=cpu "$1" "${options[@]}" --json "$folder/cpu.json" >"$folder/log"
echo "loss on $HAL_BACKEND $(loss device), on the cpu $(loss cpu)"
awk -v a="$(loss device)" -v b="$(loss cpu)" \
    'BEGIN { d = a - b; exit !(b < 4 && d <= 0.02 && d >= -0.02) }'
