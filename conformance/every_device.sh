#!/bin/bash
# every_device.sh BIN_FOLDER: hal-conformance at every level on every device that hal-info lists, but
# for processors with a graphics driver: tests/devices runs those one after the other. Of the cpu
# plugin's levels, only those that ./dev test does not run.
# ./dev check runs it as the ctest conformance_every_device.
set -euo pipefail
bin=$1

mapfile -t devices < <("$bin/hal-info" --json | python3 -c '
import json, sys
for plugin in json.load(sys.stdin)["plugins"]:
    for device in plugin["devices"]:
        if plugin["name"] == "cpu" or device["kind"] not in ("cpu", "software"):
            print(device["device"])')
[ ${#devices[@]} -gt 0 ] || {
    echo "hal-info lists no device" >&2
    exit 1
}
for device in "${devices[@]}"; do
    levels=(core ops stress)
    [ "${device%%:*}" != cpu ] || levels=(stress)
    for level in "${levels[@]}"; do
        echo "== hal-conformance --device $device --level $level"
        "$bin/hal-conformance" --device "$device" --level "$level"
    done
done
