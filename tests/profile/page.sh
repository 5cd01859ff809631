#!/bin/bash
# Profiles a short training and tests the page: page.sh RNN [--screenshots FOLDER]
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
HAL_PROFILE="$folder/page.html" "$1" --data "$root" --steps 12 --sample 40 --eager >/dev/null
[ $# -lt 3 ] || mkdir -p "$3"
python3 "$root/tests/profile/page_test.py" "$folder/page.html" "${@:2}"
