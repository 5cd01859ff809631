#!/bin/bash
# two_devices.sh BACKEND BUILD_FOLDER OUT_FOLDER: what a machine with two devices of one plugin has to
# show: transfers between them, both ways, by the conformance tool and by the benchmark beside the
# driver's own calls; groups of a rank on each, in one process and in two, and their collectives, on
# cuda beside NCCL's own calls. Below six minutes; logs and JSON go to OUT_FOLDER. Exit status: 0 all
# well.
set -uo pipefail
[ $# -eq 3 ] || { sed -n '2,6s/^# //p' "$0"; exit 2; }
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

# finish LOG: shows failures and the last line.
finish() {
    grep -A 2 '^failed' "$1"
    tail -n 1 "$1"
}

log=$out/group-devices.log
timeout 120 "$build/bin/hal-conformance" --device "$backend:0" --level comm \
    --filter 'communicator/devices*' --json "${log%.log}.json" >"$log" 2>&1 || worst=1
finish "$log"
ranks=()
for rank in 0 1; do
    HAL_COMM=$rank/2:two-devices-$$ timeout 60 "$build/bin/hal-conformance" \
        --device "$backend:$rank" --level comm --filter communicator/launched \
        >"$out/group-process-$rank.log" 2>&1 &
    ranks+=($!)
done
for rank in 0 1; do
    wait "${ranks[$rank]}" || worst=1
    finish "$out/group-process-$rank.log"
done
raw=()
[ "$backend" = cuda ] && raw=(--raw)
for order in --any-order ''; do
    log=$out/collectives${order:+-any}.log
    timeout 100 "$build/bin/hal-bench" collectives --device "$backend:0" --spread ${order:+$order} \
        "${raw[@]}" --sizes 4,4096,65536,1048576,16777216,268435456 --seconds 0.3 \
        --json "${log%.log}.json" >"$log" 2>&1 || worst=1
    cat "$log"
done
exit $worst
