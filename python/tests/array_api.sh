#!/bin/bash
# array_api.sh FOLDER [ARGUMENTS]: the public suite of the array API standard against halyard, on the
# device of HAL_BACKEND, with ARGUMENTS of pytest. FOLDER is a checkout of array-api-tests with its
# submodule array-api. Tests in array_api.txt are expected to fail; others make the result 1. HAL_BACKEND
# begins with the name of a plugin.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
source=$(cd "$1" && pwd)
shift
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cp -r "$source/." "$work"
cd "$work"
python -m pip install -q -r requirements.txt
export ARRAY_API_TESTS_MODULE=halyard ARRAY_API_TESTS_VERSION=2025.12
export HAL_BACKEND=${HAL_BACKEND:-cpu}
sed -n "s/^${HAL_BACKEND%%:*}: //; /^array_api_tests/p" "$here/array_api.txt" >expected.txt
python -m pytest array_api_tests -q -p no:cacheprovider -W ignore --tb=short --disable-deadline \
    --xfails-file=expected.txt "$@"
