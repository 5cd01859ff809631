#!/usr/bin/env bash
# The rnn example learns the documentation, eagerly as with a graph.
# usage: learns.sh PROGRAM PROJECT
set -euo pipefail
export LC_ALL=C
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
member() { sed "s/.*\"$2\": \([0-9.]*\).*/\1/" "$folder/$1.json"; }
train() { # NAME OPTIONS...
    local name=$1
    shift
    "$program" --data "$project" --json "$folder/$name.json" "$@" >"$folder/$name.log"
}
program=$1 project=$2

train long --steps 400 --every 50 --sample 200
cat "$folder/long.log"
first=$(member long first_loss) last=$(member long loss)
awk -v f="$first" -v l="$last" 'BEGIN { exit !(l < 2.6 && l < f - 0.5) }' ||
    { echo "the loss went from $first to $last; below 2.6 is asked for"; exit 1; }
# After the losses: an empty line, the sample, the end of its last line. A letter is a byte.
sample=$(sed '1,/^$/d' "$folder/long.log" | wc -c)
[ "$sample" = 201 ] || { echo "a sample of $((sample - 1)) letters instead of 200"; exit 1; }

train graph --steps 40 --every 20 --sample 0
train eager --steps 40 --every 20 --sample 0 --eager
[ "$(member graph loss)" = "$(member eager loss)" ] ||
    { echo "a graph's loss is $(member graph loss), an eager one $(member eager loss)"; exit 1; }

if "$program" --data "$folder/nothing" >"$folder/bad.log" 2>&1; then
    echo "a folder that does not exist is no error"
    exit 1
fi
grep -q "$folder/nothing/README.md" "$folder/bad.log" || { cat "$folder/bad.log"; exit 1; }
