#!/bin/bash
# amd.sh PROGRAM [OPTIONS...]: makes the op library's kernels into pipelines with Mesa's compiler
# for AMD GPUs, for two generations of hardware that is not there; PROGRAM is kernel-corpus. No
# kernel may fail, spill or need scratch memory. Ends with 77, and the reason, where the driver is
# missing; in continuous integration, which installs it, that is a failure.
set -euo pipefail
export LC_ALL=C
program=$1
shift
icd=$(compgen -G '/usr/share/vulkan/icd.d/radeon_icd.*.json' | head -n 1) || {
    echo "no radeon_icd in /usr/share/vulkan/icd.d: mesa-vulkan-drivers"
    [ -n "${CI:-}" ] && exit 1
    exit 77
}
log=$(mktemp)
trap 'rm -f "$log"' EXIT
export VK_ICD_FILENAMES=$icd RADV_DEBUG=shaderstats,nocache HAL_CACHE_DIR=off
for family in navi21 vega10; do
    RADV_FORCE_FAMILY=$family "$program" "$@" --create vulkan:0 >"$log" 2>&1 || {
        grep -v '^ \|^\*' "$log" | tail -n 20
        exit 1
    }
    grep '^kernel-corpus' "$log"
    kernels=$(grep -c 'Spilled VGPRs:' "$log" || true)
    spilling=$(grep -cE '(Spilled [SV]GPRs|Scratch size): [1-9]' "$log" || true)
    echo "$family: $kernels pipelines, $spilling spill or need scratch memory, at most" \
        "$(awk '/^ *VGPRs:/ { if ($2 > m) m = $2 } END { print m + 0 }' "$log") vector registers"
    [ "$kernels" -gt 0 ] && [ "$spilling" -eq 0 ]
done
