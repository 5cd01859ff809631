#!/bin/bash
# compute_sanitizer.sh BIN_FOLDER [EVERY]: the op library's conformance cases on an NVIDIA GPU under
# memcheck and racecheck: bad addresses and races in shared memory. One case in EVERY of each group
# (24). 77 where the tool or the device is missing.
set -uo pipefail
bin=$1 every=${2:-24}
command -v compute-sanitizer >/dev/null || { echo "skipped: compute-sanitizer is not installed"; exit 77; }
HAL_BACKEND=cuda "$bin/hal-info" >/dev/null && HAL_BACKEND=cuda "$bin/vector_add" >/dev/null ||
    { echo "skipped: no device for cuda"; exit 77; }
worst=0
for tool in memcheck racecheck; do
    echo "== $tool"
    compute-sanitizer --tool $tool --target-processes all --error-exitcode 9 \
        "$bin/hal-conformance" --device cuda --level ops --every "$every" --timeout 240 2>&1 |
        grep -vE '^ok|^$' | tail -n 40
    [ "${PIPESTATUS[0]}" -eq 0 ] || worst=1
done
exit $worst
