#!/bin/bash
# subdirectory.sh SOURCE_TREE COMPILER [TARGET]: Halyard as a sub-folder of another project, which
# it must not change. Without a TARGET all is built and the example runs on the default device; with
# one, that and the example, which runs on the template. The ctests `consumer_subdirectory` and
# `consumer_subdirectory_whole` run it.
. "$(dirname "$0")/common.sh"
source_tree=$1
compiler=$2
target=${3:-}

said=$(cmake -S "$source_tree/tests/consumer/parent" -B "$work/build" -G Ninja \
    -DCMAKE_C_COMPILER="$compiler" -DCMAKE_BUILD_TYPE=Debug \
    -DHALYARD="$source_tree" -DEXAMPLES="$source_tree/examples" 2>&1) || fail "$said"
[ ! -e "$work/build/compile_commands.json" ] || fail "compile_commands.json was not asked for"
if [ -n "$target" ]; then
    cmake --build "$work/build" --target vector_add "$target"
    export HAL_PLUGIN_PATH=$work/build/halyard/lib/halyard/template HAL_BACKEND=template
else
    cmake --build "$work/build"
fi
"$work/build/programs/vector_add"

echo "== tests and install rules are the project's own"
expect "$(ctest --test-dir "$work/build" -N)" "Total Tests: 0"
cmake --install "$work/build" --prefix "$work/prefix" >/dev/null
installed=$(cd "$work/prefix" && find . -type f)
[ "$installed" = ./bin/vector_add ] || fail "installed with the project: $installed"
