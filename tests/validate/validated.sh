#!/usr/bin/env bash
# Programs that are right have no finding of the validate layer: examples, unit tests of the op
# library, and with "all" the trainings and every third case of hal-conformance, on the cpu plugin.
# With "checks" they have no finding of the sanitize layer, which its own conformance level tests.
# usage: validated.sh some|all|checks PROGRAMS TESTS PROJECT
set -euo pipefail
amount=$1 programs=$2 tests=$3 project=$4
layer=validate
[ "$amount" = checks ] && layer=sanitize
export HAL_BACKEND=cpu
if [ $layer = validate ]; then export HAL_LAYERS=validate; else export HAL_SANITIZE=bounds,init,race,math,nan; fi
unset HAL_LOG
log=$(mktemp)
trap 'rm -f "$log"' EXIT
run() {
    if ! "$@" >"$log" 2>&1; then
        tail -n 40 "$log"
        echo "failed: $*"
        exit 1
    fi
    if grep -a "$layer: " "$log"; then
        echo "a finding of: $*"
        exit 1
    fi
}
# The layer is on and would be heard: this reads uninitialised memory.
if [ $layer = validate ]; then
    "$tests/validate_provoked" >"$log" 2>&1
    grep -q "validate: .*ever written" "$log" || { echo "a wrong program had no finding"; exit 1; }
fi

run "$programs/vector_add"
run "$programs/block_reduce"
if [ "$amount" = checks ]; then
    run "$programs/arrays"
    run "$programs/matmul"
    run "$programs/mlp" --data "$project/examples/digits/data" --epochs 1
    # Some cases provoke findings, which they have to have: the program itself judges them all.
    "$programs/hal-conformance" --level core,ops --every 40 --shrink 0 >"$log" 2>&1 ||
        { grep -a -A 2 "^failed" "$log"; exit 1; }
    # The layer keeps nothing of kernels that are gone, and a group's work-items may not write one element.
    "$programs/hal-conformance" --filter "lifetimes/kernels_leave_nothing|ir/size*" --shrink 0 >"$log" 2>&1 ||
        { grep -a -A 2 "^failed" "$log"; exit 1; }
    export HAL_SANITIZE=bounds,init,race # the tests have operands outside of their functions' domains
    run "$tests/test_ops_pointwise"
fi
run "$tests/test_ops_functions"
[ "$amount" = all ] || exit 0
run "$programs/matmul"
run "$programs/digits" --data "$project/examples/digits/data"
run "$programs/mlp" --data "$project/examples/digits/data" --epochs 2
run "$programs/mlp" --data "$project/examples/digits/data" --epochs 2 --eager
run "$programs/rnn" --data "$project" --steps 40 --every 20 --sample 0
run "$programs/rnn" --data "$project" --steps 20 --every 20 --sample 0 --eager
# Not test_ops_array_memory, which counts allocations: the layer makes some.
for name in array functions gemm gemm_matrix index pointwise random reduce; do
    run "$tests/test_ops_$name"
done
run "$programs/hal-conformance" --device cpu --level core,ops --every 3 --shrink 0
