#!/usr/bin/env bash
# Two ranks train the same network, bit by bit, as threads and as processes; it is as accurate as
# that of one rank. A rank that is killed ends the other one.
# usage: ranks.sh PROGRAM DATA
set -euo pipefail
export LC_ALL=C
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

value_of() {
    sed "s/.*\"$2\":\([-+.0-9e]*\).*/\1/" "$folder/$1.json"
}

"$1" --data "$2" --device cpu --ranks 2 --json "$folder/threads.json"
HAL_COMM=1/2:ranks-$$ "$1" --data "$2" --device cpu &
other=$!
HAL_COMM=0/2:ranks-$$ "$1" --data "$2" --device cpu --json "$folder/processes.json"
wait "$other"
"$1" --data "$2" --device cpu --json "$folder/one.json"
for member in loss test_accuracy; do
    threads=$(value_of threads $member) processes=$(value_of processes $member)
    echo "$member: one $(value_of one $member), threads $threads, processes $processes"
    [ "$threads" = "$processes" ] || { echo "$member differs"; exit 1; }
done
awk -v a="$(value_of one test_accuracy)" -v b="$(value_of threads test_accuracy)" \
    'BEGIN { exit !(a - b < 0.01 && b - a < 0.01) }' || { echo "the accuracy differs"; exit 1; }

HAL_COMM=1/2:killed-$$ "$1" --data "$2" --device cpu --seeds 100 >"$folder/log" 2>&1 &
other=$!
HAL_COMM=0/2:killed-$$ "$1" --data "$2" --device cpu --seeds 100 >"$folder/first" 2>&1 &
first=$!
until grep -q "learning from" "$folder/first"; do
    sleep 0.05
done
sleep 0.3
kill -KILL "$other"
! wait "$first" || { echo "a rank goes on without the other"; exit 1; }
grep -q "rank 1 of 2" "$folder/first" || { cat "$folder/first"; exit 1; }
