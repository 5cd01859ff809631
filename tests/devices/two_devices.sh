#!/bin/bash
# two_devices.sh BACKEND BUILD_FOLDER OUT_FOLDER: what a machine with two devices of one plugin has to
# show: transfers between them, both ways, by the conformance tool and by the benchmark beside the
# driver's own calls. Below two minutes; logs and JSON go to OUT_FOLDER. Exit status: 0 all well.
set -uo pipefail
[ $# -eq 3 ] || { sed -n '2,4s/^# //p' "$0"; exit 2; }
backend=$1 build=$(cd "$2" && pwd) out=$3
mkdir -p "$out"
export LD_LIBRARY_PATH=$build/lib:${LD_LIBRARY_PATH:-} HAL_CACHE_DIR=$out/cache
worst=0

for way in 0:1 1:0; do
    from=$backend:${way%:*} to=$backend:${way#*:}
    log=$out/conformance-${way/:/-}.log
    timeout 60 "$build/bin/hal-conformance" --device "$from" --filter transfer/ \
        --json "${log%.log}.json" >"$log" 2>&1 || worst=1
    grep -A 2 '^failed' "$log"
    tail -n 1 "$log"
    log=$out/transfer-${way/:/-}.log
    timeout 60 "$build/bin/hal-bench" transfer --device "$from" --to "$to" --raw --seconds 0.7 \
        --json "${log%.log}.json" >"$log" 2>&1 || worst=1
    cat "$log"
done
exit $worst
