#!/bin/bash
# array_api.sh FOLDER [ARGUMENTS]: the public suite of the array API standard against halyard, on the
# device of HAL_BACKEND, with ARGUMENTS of pytest. FOLDER is a checkout of array-api-tests with its
# submodule array-api. Tests in array_api.txt are expected to fail; others make the result 1.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
source=$(cd "$1" && pwd)
shift
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cp -r "$source/." "$work"
cd "$work"
python -m pip install -q -r requirements.txt
# The suite takes it that a library has a complex dtype: without one, two lookups at import fail.
sed -i 's/for dt in complex_dtypes\], key=lambda x: x\[1\]$/&, default=(real_float_dtypes[-1], 0)/' \
    array_api_tests/dtype_helpers.py
export ARRAY_API_TESTS_MODULE=halyard ARRAY_API_TESTS_VERSION=2025.12
export ARRAY_API_TESTS_SKIP_DTYPES=complex64,complex128 HAL_BACKEND=${HAL_BACKEND:-cpu}
python -m pytest array_api_tests -q -p no:cacheprovider -W ignore --tb=short --disable-deadline \
    --xfails-file="$here/array_api.txt" "$@"
