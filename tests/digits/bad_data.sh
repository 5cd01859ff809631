#!/usr/bin/env bash
# Each kind of bad data file is refused with file, line and reason, and exit status 1.
# usage: bad_data.sh PROGRAM DATA
set -euo pipefail
program=$1 data=$2
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

# expect NAME TEXT: the program, on the data in the folder, fails with TEXT in its message.
expect() {
    local status=0 output
    output=$("$program" --data "$folder" 2>&1 >/dev/null) || status=$?
    if [ "$status" != 1 ] || ! grep -qF -- "$2" <<<"$output"; then
        echo "$1: status $status, expected 1 and '$2' in: $output"
        exit 1
    fi
    echo "$1: $output"
}
# spoil COMMAND: train.csv as sed's COMMAND makes it of the good one.
spoil() { sed "$1" "$data/train.csv" >"$folder/train.csv"; }

cp "$data/test.csv" "$folder/"
expect 'missing file' 'train.csv: cannot open: No such file'
: >"$folder/train.csv"
expect 'empty file' 'train.csv: the file is empty'
spoil '17s/,[0-9]*$//'
expect 'short row' 'train.csv:17: the row ends after 64 of 65 values'
spoil '3s/^[0-9]*,/17,/'
expect 'grey out of range' 'train.csv:3: value 1 is 17, not in 0..16'
spoil '5s/^[0-9]*,/-1,/'
expect 'negative' 'train.csv:5: value 1 is -1, not in 0..16'
spoil '9s/[0-9]*$/10/'
expect 'class out of range' 'train.csv:9: value 65 is 10, not in 0..9'
spoil '2s/^[0-9]*,/x,/'
expect 'not a number' 'train.csv:2: value 1 is not a whole number'
spoil '2s/^[0-9]*,/0.5,/'
expect 'not whole' 'train.csv:2: value 1 is not a whole number'
spoil '4s/$/,1/'
expect 'long row' 'train.csv:4: value 65 is not a whole number that ends the row'
spoil '21,$d'
expect 'too few rows' 'need at least 64 rows each'
