#!/bin/bash
# prefix.sh SOURCE_TREE BUILD_TREE PREFIX PYTHON: installs, moves what came to PREFIX, and looks at it
# there. The other tests of this folder use that prefix. The ctest `consumer_prefix` runs it.
. "$(dirname "$0")/common.sh"
source_tree=$1
build_tree=$2
prefix=$3
python=$4

cmake --install "$build_tree" --prefix "$work/first" --strip >"$work/install.log"
rm -rf "$prefix"
mkdir -p "${prefix%/*}"
mv "$work/first" "$prefix"

echo "== hal-info from the moved prefix"
"$prefix/bin/hal-info" >/dev/null

echo "== SONAMEs and links"
for library in libhalyard libhalyard_ops; do
    file=$(find "$prefix" -name "$library.so")
    readelf --dynamic "$file" | grep -q "SONAME.*\[$library\.so\.0\]" ||
        fail "$file has another SONAME than $library.so.0"
    [ "$(readlink "$file")" = "$library.so.0" ] || fail "$file is no link to $library.so.0"
    [ -e "$file.0" ] || fail "$file.0 is missing"
done
libdir=${file%/*}
"$python" -B "$source_tree/tests/lint/binaries.py" "$prefix" "$libdir"

echo "== headers below include/halyard alone"
[ "$(ls "$prefix/include")" = halyard ] || fail "include has $(ls "$prefix/include")"

echo "== no folder of this machine"
if grep -rlaF -e "$source_tree" -e "$build_tree" -e "$work" "$prefix"; then
    fail "these files name a folder of the build"
fi
for file in "$prefix"/bin/* "$libdir"/*.so "$libdir"/halyard/plugins/*.so; do
    run_path=$(readelf --dynamic "$file" | sed -n 's/.*R\(UN\)\?PATH.*\[\(.*\)\]/\2/p')
    case ":$run_path" in
        *:/*) fail "$file looks for libraries in $run_path" ;;
    esac
done

echo "== a man page for each program"
for program in "$prefix"/bin/*; do
    [ -e "$prefix/share/man/man1/${program##*/}.1" ] || fail "${program##*/} has no man page"
done
