#!/bin/bash
# software_device.sh DEVICE BIN_FOLDER COMMAND...: runs a command on pocl, rusticl or both (OpenCL) or on
# lavapipe (Vulkan), whatever other drivers the machine has. Ends with 77, and the reason, where the
# driver is missing; in continuous integration, which installs it, that is a failure.
set -euo pipefail
device=$1 bin=$2
shift 2

no_device() {
    echo "$device: $*"
    [ -n "${CI:-}" ] && exit 1
    exit 77
}

case "$device" in
    pocl)
        plugin=opencl
        export OCL_ICD_VENDORS=/etc/OpenCL/vendors/pocl.icd
        [ -e "$OCL_ICD_VENDORS" ] || no_device "$OCL_ICD_VENDORS is missing: pocl-opencl-icd"
        ;;
    rusticl)
        plugin=opencl
        export OCL_ICD_VENDORS=/etc/OpenCL/vendors/rusticl.icd RUSTICL_ENABLE=llvmpipe
        [ -e "$OCL_ICD_VENDORS" ] || no_device "$OCL_ICD_VENDORS is missing: mesa-opencl-icd"
        ;;
    pocl_and_rusticl) # two drivers in one process
        plugin=opencl
        export OCL_ICD_VENDORS=/etc/OpenCL/vendors RUSTICL_ENABLE=llvmpipe
        export HAL_OPENCL_QUIRKS=${HAL_OPENCL_QUIRKS:-own_cache}
        for driver in pocl rusticl; do
            [ -e "$OCL_ICD_VENDORS/$driver.icd" ] || no_device "$OCL_ICD_VENDORS/$driver.icd is missing"
        done
        ;;
    lavapipe)
        plugin=vulkan
        VK_ICD_FILENAMES=$(compgen -G '/usr/share/vulkan/icd.d/lvp_icd.*.json' | head -n 1) ||
            no_device "no lvp_icd in /usr/share/vulkan/icd.d: mesa-vulkan-drivers"
        export VK_ICD_FILENAMES
        ;;
    *)
        echo "software_device.sh knows pocl, rusticl, pocl_and_rusticl and lavapipe, not '$device'" >&2
        exit 2
        ;;
esac
# Each test has a compile cache of its own, and would ask the driver again.
export HAL_BACKEND=$plugin HAL_PROBE=off
listed=$("$bin/hal-info" --json || true)
grep -q "\"device\": \"$plugin:0\"" <<<"$listed" ||
    no_device "plugin $plugin: no device found: $(grep "hal_$plugin.so" <<<"$listed")"
exec "$@"
