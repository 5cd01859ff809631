#!/bin/bash
# kit.sh COMPILER KIT_FOLDER INCLUDES: a plugin in C++ uses the kit, which is C: its headers compile
# as C++17, and each of their functions has its C name there.
set -euo pipefail
export LC_ALL=C
c=$1 kit=$2 includes=$3
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
case ${c##*/} in
    *clang*) plus=${c/clang/clang++} ;;
    *gcc*) plus=${c/gcc/g++} ;;
    *) plus=${c%cc}c++ ;;
esac
command -v "$plus" >/dev/null || { echo "no $plus"; exit 77; }
command -v nm >/dev/null || { echo "no nm"; exit 77; }
count=0
for header in "$kit"/*.h; do
    {
        echo "#include \"${header##*/}\""
        # Declarations of functions begin in the first column and are not inline.
        sed -nE '/^static inline/d; s/^[a-z_].*\b(kit_[a-z0-9_]+)\(.*/extern void *use_\1; void *use_\1 = (void *)\&\1;/p' \
            "$header"
    } >"$scratch/use.cpp"
    "$plus" -std=c++17 -fpermissive -w -I "$kit" -I "$includes" -c -o "$scratch/use.o" \
        "$scratch/use.cpp"
    if nm -u "$scratch/use.o" | grep '_Z.*kit_'; then
        echo "${header##*/}: functions without extern \"C\""
        exit 1
    fi
    count=$((count + $(grep -c '^extern void' "$scratch/use.cpp" || true)))
done
[ "$count" -ge 20 ] || { echo "only $count functions were found"; exit 1; }
echo "$count functions"
