#!/bin/bash
# validation.sh BIN_FOLDER COMMAND...: runs a command on lavapipe under the Khronos validation
# layer, with its checks of synchronisation. Any message of the layer ends the process that caused
# it, so the command fails; but not the ones that its own state was not there for 10 seconds, which
# is most likely a fault of the layer, as it says, on a busy machine. Ends with 77, and the reason, where driver or layer is missing; in
# continuous integration, which installs them, that is a failure.
set -euo pipefail
bin=$1
shift
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

missing() {
    echo "validation: $*"
    [ -n "${CI:-}" ] && exit 1
    exit 77
}

VK_ICD_FILENAMES=$(compgen -G '/usr/share/vulkan/icd.d/lvp_icd.*.json' | head -n 1) ||
    missing "no lvp_icd in /usr/share/vulkan/icd.d: mesa-vulkan-drivers"
layer=$(compgen -G '/usr/share/vulkan/explicit_layer.d/VkLayer_khronos_validation.json' ||
        compgen -G '/usr/local/share/vulkan/explicit_layer.d/VkLayer_khronos_validation.json') ||
    missing "no Khronos validation layer: vulkan-validationlayers"
cat >"$folder/vk_layer_settings.txt" <<'TEXT'
khronos_validation.debug_action = VK_DBG_LAYER_ACTION_LOG_MSG,VK_DBG_LAYER_ACTION_BREAK
khronos_validation.report_flags = error,warn,perf
khronos_validation.log_filename = stdout
khronos_validation.message_id_filter = UNASSIGNED-VkSemaphore-state-timeout,UNASSIGNED-VkFence-state-timeout,UNASSIGNED-VkQueue-state-timeout
TEXT
export VK_ICD_FILENAMES HAL_BACKEND=vulkan
export VK_LAYER_SETTINGS_PATH=$folder/vk_layer_settings.txt
export VK_INSTANCE_LAYERS=VK_LAYER_KHRONOS_validation
export VK_LAYER_ENABLES=VK_VALIDATION_FEATURE_ENABLE_SYNCHRONIZATION_VALIDATION_EXT
echo "layer $layer"
loaded=$(VK_LOADER_DEBUG=layer "$bin/vector_add" 2>&1) || { echo "$loaded"; exit 1; }
grep -q 'Inserted device layer "VK_LAYER_KHRONOS_validation"' <<<"$loaded" ||
    missing "the loader does not insert the layer"
"$@"
