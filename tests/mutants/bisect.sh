#!/usr/bin/env bash
# hal-replay --bisect names the opcode of a wrong plugin, and of a driver whose faults are not hidden: the case of
# hal-conformance that catches it is recorded on the cpu plugin, then bisected between that and the wrong one.
# usage: bisect.sh PROGRAMS MUTANTS [NAME...]
set -euo pipefail
programs=$1 mutants=$2
shift 2
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
export HAL_CACHE_DIR=off HAL_PROBE=off
unset HAL_BACKEND HAL_SANITIZE HAL_LAYERS HAL_DUMP
failed=0
icd=/etc/OpenCL/vendors/rusticl.icd
# name of the plugin, or of rusticl's quirk | case | opcode that the bisection has to name
while IFS='|' read -r name filter opcode; do
    if [ $# -gt 0 ] && ! grep -qw "$name" <<<"$*"; then continue; fi
    settings="HAL_PLUGIN_PATH=$mutants/hal_mutant_$name.so" device="mutant_$name"
    if [ "${name:0:8}" = rusticl: ]; then
        if [ ! -e "$icd" ]; then
            echo "skipped: $name: $icd is missing"
            continue
        fi
        settings="HAL_OPENCL_QUIRKS=-${name:8} OCL_ICD_VENDORS=$icd RUSTICL_ENABLE=llvmpipe" device=opencl
    fi
    rm -f "$folder"/*
    HAL_DUMP=batch HAL_DUMP_DIR=$folder "$programs/hal-conformance" --device cpu --filter "$filter" \
        >"$folder/log" 2>&1 || { cat "$folder/log"; exit 1; }
    status=0
    "$programs/hal-replay" "$(ls "$folder"/*.batch | head -n 1)" --bisect cpu --with "$settings $device" \
        --ulps 0 --reproducer "$folder/found" >"$folder/out" 2>&1 || status=$?
    again=0
    # shellcheck disable=SC2086
    env $settings "$programs/hal-replay" "$folder/found" --device "$device" --ulps 0 >"$folder/again" 2>&1 || again=$?
    if [ $status -eq 1 ] && [ $again -eq 1 ] && grep -Eq "record [0-9]+: (%[0-9]+ = )?$opcode " "$folder/out"; then
        echo "$name: $(grep -o 'record [0-9]*: .*' "$folder/out")"
    else
        echo "failed: $name: expected $opcode, status 1 and a reproducer (1), got $status, $again:"
        cat "$folder/out"
        failed=1
    fi
done <<'TABLE'
divide_ulp|ir/div(type=f32,seed=*|div
fma_apart|ir/fma(type=f32,seed=*|fma
min_nan|ir/min(type=f32,seed=*|min
cast_edge|ir/cast(from=f32,to=i32,seed=*|cast
rint_half|ir/rint(type=f32,seed=*|rint
divide_zero|ir/div(type=i32,seed=*|div
shift_64|ir/shl(type=u64,seed=*|shl
sub_saturates|ir/sub(type=u32,seed=*|sub
multiply_low|ir/mul(type=u64,seed=*|mul
remainder_sign|ir/rem(type=i32,seed=*|rem
abs_least|ir/abs(type=i32,seed=*|abs
mulhi_unsigned|ir/mulhi(type=i32,seed=*|mulhi
shr_logical|ir/shr(type=i32,seed=*|shr
less_signed|ir/lt(type=u32,seed=*|lt
popcount_low|ir/popcount(type=u64,seed=*|popcount
sqrt_ulp|ir/sqrt(type=f32,seed=*|sqrt
floor_towards_zero|ir/floor(type=f64,seed=*|floor
not_low|ir/not(type=u64,seed=*|not
rusticl:fma_of_zero|ir/fma(type=f32,seed=*|fma
rusticl:wrong_zeros|ir/constants(opcode=add,type=f32)|add
rusticl:wrong_widening|ir/constants(opcode=lt,type=i64,from=i32)|lt
TABLE
exit $failed
