#!/bin/bash
# process.sh DEVICE BIN_FOLDER PLUGINS_FOLDER PROGRAM ARGUMENTS...: runs a program of this folder on
# the device: cpu, template, example_c, or one of software_device.sh.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
device=$1 bin=$2 plugins=$3
shift 3
case "$device" in
    cpu)
        export HAL_BACKEND=cpu
        ;;
    template | example_c)
        export HAL_BACKEND=$device HAL_PLUGIN_PATH=$plugins/hal_$device.so
        [ -e "$HAL_PLUGIN_PATH" ] || exit 77
        ;;
    *)
        exec bash "$here/../devices/software_device.sh" "$device" "$bin" "$@"
        ;;
esac
exec "$@"
