#!/bin/bash
# validated.sh BIN_FOLDER COMMAND...: a program of hal's on lavapipe with the Khronos validation layer
# on, which must not say a word. Ends with 77 where the layer is missing.
set -euo pipefail
folder=$(dirname "${BASH_SOURCE[0]}") bin=$1
shift
layer=/usr/share/vulkan/explicit_layer.d/VkLayer_khronos_validation.json
[ -e "$layer" ] || {
    echo "skipped: $layer is missing; Debian has it in vulkan-validationlayers"
    [ -z "${CI:-}" ] || exit 1
    exit 77
}
log=$(mktemp)
trap 'rm -f "$log"' EXIT
export VK_INSTANCE_LAYERS=VK_LAYER_KHRONOS_validation
export VK_LAYER_ENABLES=VK_VALIDATION_FEATURE_ENABLE_SYNCHRONIZATION_VALIDATION_EXT

# The loader must have taken the layer, else silence means nothing.
VK_LOADER_DEBUG=layer bash "$folder/software_device.sh" lavapipe "$bin" "$bin/hal-info" >"$log" 2>&1 ||
    { status=$?; cat "$log"; exit $status; }
grep -q 'Insert instance layer "VK_LAYER_KHRONOS_validation"' "$log" || { echo "the layer was not loaded"; exit 1; }

status=0
bash "$folder/software_device.sh" lavapipe "$bin" "$@" >"$log" 2>&1 || status=$?
if grep -qE 'Validation (Error|Warning)|VUID-|SYNC-HAZARD' "$log"; then
    grep -m 40 -E 'Validation|VUID-|SYNC-HAZARD' "$log"
    exit 1
fi
tail -n 5 "$log"
exit $status
