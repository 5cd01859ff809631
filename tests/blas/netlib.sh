#!/bin/bash
# netlib.sh LIBRARY FOLDER WORK: the test programs of the reference implementation for level 3, BLAS and
# CBLAS, with 32-bit and with 64-bit integers, against LIBRARY on the device that HAL_BACKEND selects.
# FOLDER is a checkout of github.com/Reference-LAPACK/lapack; programs are built in WORK, by gfortran.
set -euo pipefail
library=$(realpath "$1") folder=$(realpath "$2") work=$3
mkdir -p "$work"
cd "$work"
export HALYARD_BLAS_DECIDE=${HALYARD_BLAS_DECIDE:-always}

blas=$folder/BLAS/TESTING cblas=$folder/CBLAS/testing
c_flags=(-w -O1 -DADD_ -DHAS_ATTRIBUTE_WEAK_SUPPORT -I. -I"$folder/CBLAS/include")
cp "$folder/CBLAS/include/cblas_mangling_with_flags.h.in" cblas_mangling.h
printf 'int CBLAS_CallFromC, RowMajorStrg;\n' >globals.c
gcc -c globals.c

# fortran SOURCE OBJECT BITS: with 64 bits all names of routines get the suffix _64.
fortran() {
    local flags=() symbol renames=()
    [ "$3" = 32 ] || flags=(-fdefault-integer-8)
    gfortran -w -O1 -std=legacy "${flags[@]}" -c "$1" -o "$2"
    [ "$3" = 64 ] || return 0
    for symbol in $(nm "$2" | sed -n 's/.* [UT] \([a-z0-9]*\)_$/\1/p'); do
        renames+=(--redefine-sym "${symbol}_=${symbol}_64_")
    done
    objcopy "${renames[@]}" "$2"
}

# What LIBRARY lacks: lsame, and routines that only the reference implementation has.
build_rest() {
    local bits=$1 source objects=() flags=()
    [ ! -e "rest_$bits.a" ] || return 0
    for source in "$folder"/BLAS/SRC/{lsame,[sdcz]skew*}.f; do
        [ -e "$source" ] || continue
        objects+=("$(basename "$source" .f)_rest_$bits.o")
        fortran "$source" "${objects[-1]}" "$bits"
    done
    [ "$bits" = 32 ] || flags=(-DWeirdNEC -DCBLAS_API64)
    for source in "$folder"/CBLAS/src/cblas_[sdcz]skew*.c; do
        [ -e "$source" ] || continue
        objects+=("$(basename "$source" .c)_rest_$bits.o")
        gcc "${c_flags[@]}" "${flags[@]}" -c "$source" -o "${objects[-1]}"
    done
    ar rc "rest_$bits.a" "${objects[@]}"
}

build_blas() {
    local program=xblat3$1_$2
    [ ! "$program" -nt "$library" ] || return 0
    fortran "$blas/$1blat3.f" "$program.o" "$2"
    gfortran "$program.o" -o "$program" "$library" "rest_$2.a" -Wl,-rpath,"$(dirname "$library")"
}

build_cblas() {
    local letter=$1 bits=$2 program=x$1cblat3_$2 flags=() objects=() source
    [ ! "$program" -nt "$library" ] || return 0
    [ "$bits" = 32 ] || flags=(-DWeirdNEC -DCBLAS_API64)
    for source in "c_${letter}blas3" "c_${letter}3chke" auxiliary c_xerbla; do
        gcc "${c_flags[@]}" "${flags[@]}" -c "$cblas/$source.c" -o "${source}_$bits.o"
        objects+=("${source}_$bits.o")
    done
    fortran "$cblas/c_${letter}blat3.f" "$program.o" "$bits"
    gfortran -rdynamic "$program.o" "${objects[@]}" globals.o -o "$program" "$library" \
        "rest_$bits.a" -Wl,-rpath,"$(dirname "$library")"
}

# judge PROGRAM OUTPUT: every routine says PASSED, twice or three times, and nothing else is told.
judge() {
    local passed faults
    passed=$(grep -c ' PASSED THE ' "$2" || true)
    grep -E 'FAIL|\*\*\*\*|SUSPECT|INSTEAD OF|NOT DETECTED|ABANDONED' "$2" |
        grep -vE '[^0-9]0 FAILED' >faults.txt || true
    faults=$(wc -l <faults.txt)
    printf '%-12s %s passed, %s faults\n' "$1" "$passed" "$faults"
    if [ "$passed" -eq 0 ] || [ "$faults" -gt 0 ]; then
        head -n 20 faults.txt
        failed=1
    fi
}

failed=0
for bits in 32 64; do
    build_rest "$bits"
    for letter in s d c z; do
        build_blas "$letter" "$bits"
        rm -f "${letter}blat3.out"
        "./xblat3${letter}_$bits" <"$blas/${letter}blat3.in" >out.txt 2>&1 || failed=1
        cat "${letter}blat3.out" >>out.txt
        judge "xblat3${letter}_$bits" out.txt
        build_cblas "$letter" "$bits"
        "./x${letter}cblat3_$bits" <"$cblas/${letter}in3" >out.txt 2>&1 || failed=1
        judge "x${letter}cblat3_$bits" out.txt
    done
done
exit $failed
