#!/bin/bash
# probe.sh BIN_FOLDER CASE: hal-probe finds what a driver computes wrongly with constants where
# HAL_OPENCL_QUIRKS keeps the plugin from hiding them. hal-info says so, and the case of
# hal-conformance passes, as hal hides them; without the probe it fails.
set -euo pipefail
bin=$1 case=$2
unset HAL_PROBE
"$bin/hal-info" | grep "driver quirk  *constants_f32: " || {
    echo "hal-info has no quirk constants_f32"
    exit 1
}
"$bin/hal-conformance" --device "$HAL_BACKEND" --filter "$case"
if HAL_PROBE=off "$bin/hal-conformance" --device "$HAL_BACKEND" --filter "$case" --shrink 0; then
    echo "$case passes without the probe"
    exit 1
fi
