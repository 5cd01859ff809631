#!/usr/bin/env bash
# Five seeds on the test digits reach a mean of 96.8 %, and the JSON has its members.
# usage: accuracy.sh PROGRAM DATA
set -euo pipefail
export LC_ALL=C
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"$1" --data "$2" --seeds 5 --json "$folder/result.json"
for member in device test_accuracy train_seconds step_us images_per_second; do
    grep -q "\"$member\":" "$folder/result.json" || { echo "the JSON lacks $member"; exit 1; }
done
accuracy=$(sed 's/.*"test_accuracy":\([0-9.]*\).*/\1/' "$folder/result.json")
echo "mean accuracy $accuracy, at least 0.968 is asked for"
awk -v a="$accuracy" 'BEGIN { exit !(a >= 0.968) }'
