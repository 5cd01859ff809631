#!/bin/bash
# replay.sh BIN_FOLDER DATA EXAMPLE...: what examples run on the cpu plugin runs again with hal-replay on
# the device of HAL_BACKEND, within its bounds; the layers watch both. The example digits trains on
# the front of DATA.
set -euo pipefail
bin=$1 data=$2
shift 2
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
mkdir "$folder/data"
head -n 129 "$data/train.csv" >"$folder/data/train.csv"
head -n 65 "$data/test.csv" >"$folder/data/test.csv"

# Runs a command under the validate layer, which must have no finding.
watched() {
    local status=0
    HAL_LAYERS=validate "$@" >"$folder/log" 2>&1 || status=$?
    if [ $status != 0 ] || grep -aq "validate: " "$folder/log"; then
        cat "$folder/log"
        echo "failed, or has a finding: $*"
        exit 1
    fi
}

for example in "$@"; do
    arguments=()
    [ "$example" != digits ] || arguments=(--data "$folder/data")
    HAL_BACKEND=cpu HAL_DUMP=batch HAL_DUMP_DIR=$folder HAL_TRACE=$folder/trace.json \
        watched "$bin/$example" "${arguments[@]}"
    files=("$folder"/*.batch)
    [ ${#files[@]} = 1 ] || { echo "$example left ${#files[@]} files" && exit 1; }
    echo "== $example"
    watched "$bin/hal-replay" "${files[0]}"
    cat "$folder/log"
    rm "${files[0]}"
done
