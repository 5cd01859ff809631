#!/usr/bin/env bash
# Two ranks of the mlp example end with the same loss and accuracy, bit by bit, as threads and as
# processes, as a graph and eager, whether they divide batches or layers. The loss is that of one rank,
# which sees all data, but for rounding: without a sum over the ranks it is that of half the data.
# usage: ranks.sh PROGRAM DATA
set -euo pipefail
export LC_ALL=C
program=$1 data=$2
train() { "$program" --data "$data" --epochs 3 --width 64 "$@"; }
# usage: is_as_one_rank "ACCURACY LOSS" "ACCURACY LOSS"
is_as_one_rank() {
    awk -v one="$1" -v two="$2" 'BEGIN {
        split(one, a); split(two, b); accuracy = a[1] - b[1]; loss = (a[2] - b[2]) / a[2]
        exit !(a[1] >= 90 && accuracy <= 1 && accuracy >= -1 && loss < 1e-3 && loss > -1e-3) }' ||
        { echo "expected 90 %, and at most 1 point and a thousandth of the loss between one rank and two"; exit 1; }
}
outcome() { sed -n 's/^accuracy \(.*\) %, loss \(.*\), .*/\1 \2/p'; }

one=$(train | outcome)
threads=$(train --ranks 2 | outcome)
eager=$(train --ranks 2 --eager | outcome)
HAL_COMM=1/2:mlp-$$ train >/dev/null &
other=$!
processes=$(HAL_COMM=0/2:mlp-$$ train | outcome)
wait "$other"
echo "accuracy and loss: one $one, threads $threads, eager $eager, processes $processes"
[ -n "$threads" ] && [ "$threads" = "$processes" ] && [ "$threads" = "$eager" ] ||
    { echo "threads, processes and eager steps differ"; exit 1; }
is_as_one_rank "$one" "$threads"

one=$(train --layers 5 --width 100 | outcome)
threads=$(train --layers 5 --width 100 --ranks 2 --divide layers | outcome)
eager=$(train --layers 5 --width 100 --ranks 2 --divide layers --eager | outcome)
HAL_COMM=1/2:mlp-layers-$$ train --layers 5 --width 100 --divide layers >/dev/null &
other=$!
processes=$(HAL_COMM=0/2:mlp-layers-$$ train --layers 5 --width 100 --divide layers | outcome)
wait "$other"
echo "divided layers: one $one, threads $threads, eager $eager, processes $processes"
[ -n "$threads" ] && [ "$threads" = "$processes" ] && [ "$threads" = "$eager" ] ||
    { echo "threads, processes and eager steps differ"; exit 1; }
is_as_one_rank "$one" "$threads"

! train --ranks 3 >/dev/null 2>&1 || { echo "3 ranks do not divide a batch of 64"; exit 1; }
! train --ranks 3 --divide layers >/dev/null 2>&1 || { echo "3 ranks do not divide 64 hidden units"; exit 1; }
