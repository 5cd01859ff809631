#!/bin/bash
# subdirectory.sh SOURCE_TREE COMPILER: Halyard as a sub-folder of another project, which it must not
# change. All is built and the example runs on the default device. The ctest `consumer_subdirectory`
# runs it.
. "$(dirname "$0")/common.sh"
source_tree=$1
compiler=$2

said=$(cmake -S "$source_tree/tests/consumer/parent" -B "$work/build" -G Ninja \
    -DCMAKE_C_COMPILER="$compiler" -DCMAKE_BUILD_TYPE=Debug \
    -DHALYARD="$source_tree" -DEXAMPLES="$source_tree/examples" 2>&1) || fail "$said"
[ ! -e "$work/build/compile_commands.json" ] || fail "compile_commands.json was not asked for"
cmake --build "$work/build"
"$work/build/programs/vector_add"

echo "== tests and install rules are the project's own"
expect "$(ctest --test-dir "$work/build" -N)" "Total Tests: 0"
cmake --install "$work/build" --prefix "$work/prefix" >/dev/null
installed=$(cd "$work/prefix" && find . -type f)
[ "$installed" = ./bin/vector_add ] || fail "installed with the project: $installed"
