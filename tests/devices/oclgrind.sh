#!/bin/bash
# oclgrind.sh PROGRAM: a program of hal's on the OpenCL simulator, which finds data races, accesses
# out of bounds and reads of what nobody wrote. Fails on any of its messages. Ends with 77 where the
# simulator is missing.
#
# Uninitialised values are looked for in a second run, with accesses of single elements: Oclgrind
# 21.10 takes any vector that is put together from scalars for uninitialised when it is stored, as in
#     __kernel void k(__global uint *x) { *(__global uint4 *)x = (uint4)(x[0], x[1], x[2], x[3]); }
# Random numbers run without the optimiser, which makes an instruction of their shifts, llvm.fshl,
# that Oclgrind does not have.
set -euo pipefail
library=/usr/lib/oclgrind/liboclgrind-rt-icd.so
[ -e "$library" ] || { echo "skipped: $library is missing; Debian has it in oclgrind"; exit 77; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
echo "$library" >"$folder/oclgrind.icd"
export OCL_ICD_VENDORS=$folder/oclgrind.icd HAL_BACKEND=opencl HAL_CACHE_DIR=off
export OCLGRIND_DATA_RACES=1 OCLGRIND_CHECK_API=1 OCLGRIND_MAX_ERRORS=20

# run FAMILIES [SETTING...]: the simulator's log stays empty.
run() {
    local families=$1 log=$folder/log
    shift
    rm -f "$log"
    env "OCLGRIND_LOG=$log" "$@" "$program" "$families"
    [ -e "$log" ] || { echo "the simulator wrote no log: it did not run"; exit 1; }
    [ ! -s "$log" ] || { head -n 60 "$log"; exit 1; }
}

program=$1
scalar=HAL_OPENCL_QUIRKS=scalar_access
run most
run most OCLGRIND_UNINITIALIZED=1 $scalar
run random OCLGRIND_BUILD_OPTIONS=-cl-opt-disable
run random OCLGRIND_BUILD_OPTIONS=-cl-opt-disable OCLGRIND_UNINITIALIZED=1 $scalar
echo "no message of the simulator"
