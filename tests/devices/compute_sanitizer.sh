#!/bin/bash
# compute_sanitizer.sh BIN_FOLDER OUT_FOLDER [TOOL...]: every conformance case of the op library on an
# NVIDIA GPU under memcheck and racecheck (or the tools that are named): bad addresses, and races in
# shared memory. Several processes side by side, one for a part of the cases; what the kernels
# compile to is cached by a run without a tool before. Logs go to OUT_FOLDER; EVERY=N takes one case
# in N, SECONDS_EACH limits a process (100). 77 where the tool or the device is missing. Racecheck does
# not know arrivals at barriers of other groups of a cluster: it reports races where the cuda plugin's
# matrix products add parts of k ("a block that might have already exited").
set -uo pipefail
export LC_ALL=C
[ $# -ge 2 ] || { sed -n '2,8s/^# //p' "$0"; exit 2; }
bin=$(cd "$1" && pwd) out=$2 every=${EVERY:-1} limit=${SECONDS_EACH:-100}
shift 2
tools=${*:-memcheck racecheck}
mkdir -p "$out"
export HAL_BACKEND=cuda HAL_CACHE_DIR=${HAL_CACHE_DIR:-$out/cache}
command -v compute-sanitizer >/dev/null || { echo "skipped: compute-sanitizer is not installed"; exit 77; }
"$bin/hal-info" >/dev/null && "$bin/vector_add" >/dev/null ||
    { echo "skipped: no device for cuda"; exit 77; }
worst=0

# Group and part; products take longest.
pieces=(ops/shapes:1/1 ops/reduce:1/1 ops/softmax:1/1 ops/index:1/1 ops/random:1/1
        ops/pointwise:1/3 ops/pointwise:2/3 ops/pointwise:3/3)
for i in 1 2 3 4 5 6 7 8; do
    pieces+=("ops/gemm:$i/8")
done

# piece TOOL GROUP:PART: one process and its log.
piece() {
    local tool=$1 group=${2%:*} part=${2#*:}
    local log=$out/$tool-${group#ops/}-${part%/*}.log
    timeout "$limit" compute-sanitizer --tool "$tool" --target-processes all --error-exitcode 9 \
        "$bin/hal-conformance" --device cuda --level ops --filter "$group" --part "$part" \
        --every "$every" --timeout "$limit" >"$log" 2>&1
    echo "exit $?" >>"$log"
}

began=$(date +%s)
timeout 100 "$bin/hal-conformance" --device cuda --level ops --every "$every" \
    --jobs "$(nproc)" >"$out/without.log" 2>&1 || worst=1
echo "without a tool: $(tail -n 1 "$out/without.log"), $(($(date +%s) - began)) s"
for tool in $tools; do
    began=$(date +%s)
    running=()
    for each in "${pieces[@]}"; do
        piece "$tool" "$each" &
        running+=($!)
    done
    wait "${running[@]}"
    logs=("$out/$tool"-*.log)
    cases=$(sed -n 's/^\([0-9]*\) cases: .*/\1/p' "${logs[@]}" | awk '{ sum += $1 } END { print sum + 0 }')
    ended=$(grep -lx 'exit 0' "${logs[@]}" | wc -l)
    echo "$tool: $cases cases in $ended of ${#pieces[@]} processes without a finding, $(($(date +%s) - began)) s"
    [ "$ended" -eq ${#pieces[@]} ] || worst=1
    for log in "${logs[@]}"; do
        grep -qx 'exit 0' "$log" && continue
        echo "== $log"
        grep -vE '^ok|^$' "$log" | tail -n 25 | cut -c 1-200
    done
done
exit $worst
