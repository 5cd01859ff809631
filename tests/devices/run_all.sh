#!/bin/bash
# run_all.sh BACKEND BUILD_FOLDER OUT_FOLDER [PART...]: what a new device has to show, in one call:
# what it is, the conformance tool, the examples, the trainings of digits and rnn, the benchmark. Each
# part has a time limit and a separate log in OUT_FOLDER; a table of exit states comes last.
# For machines that have the device and perhaps no compiler: the build folder's bin and lib, and
# examples where they were built, are all that is used. HAL_CACHE_DIR is kept in OUT_FOLDER.
# On macOS perl, which comes with it, does what date and timeout do elsewhere.
set -uo pipefail
[ $# -ge 3 ] || { sed -n '2,6s/^# //p' "$0"; exit 2; }
if [ "$(uname)" = Darwin ]; then
    milliseconds() { perl -MTime::HiRes=time -e 'printf "%d\n", 1000 * time'; }
    limited() { perl -e 'alarm shift; exec @ARGV or exit 127' "$@"; }
    processors() { sysctl -n hw.ncpu; }
else
    milliseconds() { date +%s%3N; }
    limited() { timeout "$@"; }
    processors() { nproc; }
fi
backend=$1 build=$(cd "$2" && pwd) out=$3
shift 3
parts=${*:-info core ops networks examples digits rnn bench stress}
bin=$build/bin
mkdir -p "$out/cache"
export HAL_BACKEND=$backend HAL_CACHE_DIR=$out/cache LD_LIBRARY_PATH=$build/lib:${LD_LIBRARY_PATH:-}
export DYLD_LIBRARY_PATH=$build/lib:${DYLD_LIBRARY_PATH:-}
table=()
worst=0

# run NAME SECONDS COMMAND...: its output goes to NAME.log.
run() {
    local name=$1 seconds=$2 began state
    shift 2
    began=$(milliseconds)
    limited "$seconds" "$@" >"$out/$name.log" 2>&1
    state=$?
    [ $state -eq 0 ] || worst=1
    table+=("$(printf '%-28s exit %-4s %8s ms' "$name" $state $(($(milliseconds) - began)))")
    [ $state -eq 0 ] || tail -n 5 "$out/$name.log" | cut -c 1-300
}

conformance() {
    run "conformance_$1" "$2" "$bin/hal-conformance" --device "$backend" --level "$1" \
        --jobs "$(processors)" --json "$out/conformance_$1.json"
    grep -E 'passed|failed' "$out/conformance_$1.log" | tail -n 2
}

# The native matrix products of the cuda plugin with each kind of tile: alone it chooses the portable
# kernel for products as small as those of the cases.
tiles() {
    local tile
    for tile in 128x1 208x1 96x1t 256x1t 128x2 64x3t 48x5 16x8t 64x1a 192x1tb 64x2tb 64x3m 128x7mt \
        128x2ma 256x1p 256x1bp 64x1tap s1 s2 s3 s4; do
        HAL_CUDA_GEMM=$tile run "tile_$tile" 60 "$bin/hal-conformance" --device "$backend" \
            --filter "$([ "${tile#s}" = "$tile" ] && echo native || echo gemm)" --jobs "$(processors)" --shrink 0
    done
}

# Networks, whose kernels depend on each other, more than the cuda plugin keeps chains of; with each way
# in which it submits them.
networks() {
    local way ways=("") names=()
    for batch in 1 64 512; do
        names+=("L8 B$batch H64" "L8 B$batch H256")
    done
    [[ $backend != cuda* ]] ||
        ways+=(HAL_CUDA_EARLY=1 HAL_CUDA_CHAIN=0 HAL_CUDA_KEEP=0 HAL_CUDA_POINTS=events)
    for way in "${ways[@]}"; do
        run "networks${way:+_$way}" 90 env ${way:+"$way"} "$bin/hal-conformance" --device "$backend" --shrink 0 \
            --level ops --filter 'ops/array_network*' --jobs "$(processors)"
        run "dense${way:+_$way}" 240 env ${way:+"$way"} "$bin/hal-bench" dense --device "$backend" \
            --seconds 0.01 --filter "$(IFS=,; echo "${names[*]}")"
    done
}

examples() {
    local example
    for example in arrays vector_add block_reduce matmul; do
        for place in "$build/examples/$example/$example" "$bin/$example"; do
            [ -x "$place" ] && run "example_$example" 60 "$place" && break
        done
    done
}

digits() {
    for place in "$build/examples/digits/digits" "$bin/digits"; do
        [ -x "$place" ] && run digits 120 "$place" && break
    done
    tail -n 3 "$out/digits.log" 2>/dev/null
}

# In the project's root, whose documentation it learns.
rnn() {
    [ -x "$bin/rnn" ] && run rnn 120 "$bin/rnn" --sample 200 --json "$out/rnn.json"
    tail -n 8 "$out/rnn.log" 2>/dev/null
}

bench() {
    local suite raw=() more
    [[ $backend == cpu* ]] || raw=(--raw)
    for suite in dispatch pointwise reduce gemm start sequential; do
        case $suite in
        dispatch) more=("${raw[@]}") ;;
        pointwise) more=("${raw[@]}" --sizes 67108864) ;;
        sequential)
            more=("${raw[@]}" --seconds 0.5)
            [[ $backend == cpu* ]] || more+=(--second cpu)
            ;;
        *) more=() ;;
        esac
        run "bench_$suite" 180 "$bin/hal-bench" "$suite" --device "$backend" "${more[@]}" \
            --json "$out/bench_$suite.json"
        tail -n 30 "$out/bench_$suite.log" | cut -c 1-160
    done
}

for part in $parts; do
    case $part in
    info) run info 30 "$bin/hal-info" && grep -A 2 -i 'not usable' "$out/info.log" ;;
    core) conformance core 240 ;;
    ops)
        conformance ops 240
        [[ $backend == cuda* ]] && tiles
        ;;
    networks) networks ;;
    stress) conformance stress 240 ;;
    examples) examples ;;
    digits) digits ;;
    rnn) rnn ;;
    bench) bench ;;
    *) echo "no part $part" >&2; worst=2 ;;
    esac
done
printf '%s\n' "${table[@]}"
exit $worst
