#!/bin/bash
# oclgrind.sh PROGRAM: a program of hal's on the OpenCL simulator, which finds data races, accesses
# out of bounds and reads of unwritten memory. Fails on any of its messages. Ends with 77 where the
# simulator is missing.
#
# Uninitialised values are looked for in a second run, with accesses of single elements: Oclgrind
# 21.10 takes any vector that is put together from scalars for uninitialised when it is stored, as in
#     __kernel void k(__global uint *x) { *(__global uint4 *)x = (uint4)(x[0], x[1], x[2], x[3]); }
# One processor, since hal compiles on more than one thread where there are more, and the simulator's
# compiler is for one.
# The optimiser is off, since it makes instructions that Oclgrind does not have (llvm.fshl and
# llvm.usub.sat).
set -euo pipefail
library=/usr/lib/oclgrind/liboclgrind-rt-icd.so
[ -e "$library" ] || { echo "skipped: $library is missing; Debian has it in oclgrind"; exit 77; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
echo "$library" >"$folder/oclgrind.icd"
export OCL_ICD_VENDORS=$folder/oclgrind.icd HAL_BACKEND=opencl HAL_CACHE_DIR=off
export OCLGRIND_DATA_RACES=1 OCLGRIND_CHECK_API=1 OCLGRIND_MAX_ERRORS=20

export OCLGRIND_BUILD_OPTIONS=-cl-opt-disable

# run [SETTING...]: the simulator's log stays empty.
run() {
    rm -f "$folder/log"
    env "OCLGRIND_LOG=$folder/log" "$@" taskset -c "$processor" "$program"
    [ -e "$folder/log" ] || { echo "the simulator wrote no log: it did not run"; exit 1; }
    [ ! -s "$folder/log" ] || { head -n 60 "$folder/log"; exit 1; }
}

program=$1
processor=$(taskset -cp $$ | sed 's/.*: //; s/[-,].*//')
run
run OCLGRIND_UNINITIALIZED=1 HAL_OPENCL_QUIRKS=scalar_access
echo "no message of the simulator"
