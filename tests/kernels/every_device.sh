#!/bin/bash
# every_device.sh PROGRAM: the corpus is made for each device of the recorder, and is not thin.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
for device in full single subgroups weak copies matrices; do
    mkdir "$folder/$device"
    "$1" --device "$device" ir "$folder/$device"
    for family in chain gemm softmax sum copy gather order digits random; do
        compgen -G "$folder/$device/$family*" >/dev/null ||
            { echo "no kernel of family $family for $device"; exit 1; }
    done
    kernels=$(find "$folder/$device" -type f | wc -l)
    [ "$kernels" -ge 200 ] || { echo "only $kernels kernels for $device"; exit 1; }
done
