#!/bin/bash
# debian.sh BUILD_TREE COMPILER: makes the Debian packages, unpacks runtime, tools and the
# cpu plugin alone into an empty root, and runs hal-info and an example there; the example is built
# against the unpacked -dev package. The ctest `consumer_debian` runs it.
. "$(dirname "$0")/common.sh"
build_tree=$1
compiler=$2
for tool in dpkg-deb dpkg-shlibdeps file; do
    command -v "$tool" >/dev/null || { echo "skipped: no $tool (dpkg, dpkg-dev, file)"; exit 77; }
done

echo "== cpack"
cpack --config "$build_tree/CPackConfig.cmake" -B "$work/packages" >"$work/cpack.log" 2>&1 ||
    fail "$(cat "$work/cpack.log")"
cd "$work/packages"
package() { echo "$1"_[0-9]*.deb; }

echo "== one package for each plugin, and no file in two packages"
for plugin in "$build_tree"/lib/halyard/plugins/hal_*.so; do
    name=${plugin##*/hal_}
    [ -e "$(package "halyard-plugin-${name%.so}")" ] || fail "$name has no package"
done
for deb in *.deb; do
    dpkg-deb --contents "$deb" | awk '$1 !~ /^d/ {print $6}'
done | sort >files
[ -z "$(uniq -d files)" ] || fail "in two packages: $(uniq -d files)"
[ "$(grep -c '/copyright$' files)" = "$(find . -maxdepth 1 -name '*.deb' | wc -l)" ] || fail "no copyright"

echo "== dependencies"
version=$(dpkg-deb --field "$(package libhalyard0)" Version)
depends() { dpkg-deb --field "$(package "$1")" Depends; }
expect "$(depends libhalyard0)" libc6
expect "$(depends libhalyard-dev)" "libhalyard0 (= $version)"
expect "$(depends halyard-tools)" "libhalyard0 (= $version)"
expect "$(depends halyard-plugin-cpu)" libc6
expect "$(depends halyard-plugin-cpu)" "libhalyard0 (>= $version)"

echo "== runtime, tools and one plugin in an empty root"
root=$work/root
for name in libhalyard0 halyard-tools halyard-plugin-cpu; do
    dpkg-deb --extract "$(package $name)" "$root"
done
"$root/usr/bin/hal-info" --json >"$work/info.json"
plugins=$(grep -o '"path": *"[^"]*"' "$work/info.json")
[ "$plugins" = "\"path\": \"$(find "$root" -name hal_cpu.so)\"" ] ||
    fail "hal-info sees other plugins than the cpu's: $plugins"

echo "== an example, built with the -dev package, run with the others"
dpkg-deb --extract "$(package libhalyard0)" "$work/dev"
dpkg-deb --extract "$(package libhalyard-dev)" "$work/dev"
pc=$(find "$work/dev" -name halyard.pc)
export PKG_CONFIG_PATH=${pc%/*}
# The flags are words to be split.
# shellcheck disable=SC2046
"$compiler" -std=c17 "$work/dev/usr/share/doc/halyard/examples/vector_add/main.c" \
    -o "$root/usr/bin/vector_add" \
    $(pkg-config --cflags --libs halyard)
rm -r "$work/dev"
libdir=$(find "$root" -name libhalyard.so.0)
LD_LIBRARY_PATH=${libdir%/*} "$root/usr/bin/vector_add"

echo "== the example as somebody's package: dpkg-shlibdeps knows what it depends on"
dpkg-deb --control "$(package libhalyard0)" "$work/control"
for library in libhalyard libhalyard_ops; do
    expect "$(cat "$work/control/shlibs")" "$library 0 libhalyard0 (>= $version)"
done
mkdir -p "$work/theirs/debian"
cd "$work/theirs"
printf 'Source: theirs\n\nPackage: theirs\nArchitecture: any\n' >debian/control
expect "$(dpkg-shlibdeps -O -L"$work/control/shlibs" -l"${libdir%/*}" "$root/usr/bin/vector_add" 2>&1)" \
    "libhalyard0 (>= $version)"
