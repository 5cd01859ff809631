#!/usr/bin/env bash
# Two ranks of the mlp example end with the same loss and accuracy, bit by bit, as threads and as
# processes, as a graph and eager, whether they divide batches or layers; they are as accurate as one
# rank.
# usage: ranks.sh PROGRAM DATA
set -euo pipefail
export LC_ALL=C
program=$1 data=$2
train() { "$program" --data "$data" --epochs 3 --width 64 "$@"; }
outcome() { sed -n 's/^accuracy \(.*\) %, loss \(.*\), .*/\1 \2/p'; }

one=$(train | outcome)
threads=$(train --ranks 2 | outcome)
eager=$(train --ranks 2 --eager | outcome)
HAL_GROUP=1/2:mlp-$$ train >/dev/null &
other=$!
processes=$(HAL_GROUP=0/2:mlp-$$ train | outcome)
wait "$other"
echo "accuracy and loss: one $one, threads $threads, eager $eager, processes $processes"
[ -n "$threads" ] && [ "$threads" = "$processes" ] && [ "$threads" = "$eager" ] ||
    { echo "threads, processes and eager steps differ"; exit 1; }
awk -v a="${one% *}" -v b="${threads% *}" 'BEGIN { exit !(a >= 90 && a - b <= 1 && b - a <= 1) }' ||
    { echo "expected 90 %, and at most 1 point between one rank and two"; exit 1; }

one=$(train --layers 5 --width 100 | outcome)
threads=$(train --layers 5 --width 100 --ranks 2 --divide layers | outcome)
eager=$(train --layers 5 --width 100 --ranks 2 --divide layers --eager | outcome)
HAL_GROUP=1/2:mlp-layers-$$ train --layers 5 --width 100 --divide layers >/dev/null &
other=$!
processes=$(HAL_GROUP=0/2:mlp-layers-$$ train --layers 5 --width 100 --divide layers | outcome)
wait "$other"
echo "divided layers: one $one, threads $threads, eager $eager, processes $processes"
[ -n "$threads" ] && [ "$threads" = "$processes" ] && [ "$threads" = "$eager" ] ||
    { echo "threads, processes and eager steps differ"; exit 1; }
awk -v a="${one% *}" -v b="${threads% *}" 'BEGIN { exit !(a >= 90 && a - b <= 1 && b - a <= 1) }' ||
    { echo "expected 90 %, and at most 1 point between one rank and two"; exit 1; }

! train --ranks 3 >/dev/null 2>&1 || { echo "3 ranks do not divide a batch of 64"; exit 1; }
! train --ranks 3 --divide layers >/dev/null 2>&1 || { echo "3 ranks do not divide 64 hidden units"; exit 1; }
