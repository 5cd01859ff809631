#!/bin/bash
# headers.sh COMPILER INCLUDES: the headers of the plugin interface, away from all others and with a
# compiler's own headers alone, in each language that they promise, every warning an error; and
# their layout as layout.c pins it. With that a plugin needs no other header (promise 18).
# headers.sh --self-test COMPILER INCLUDES: changes that break compiled plugins, each noticed.
set -euo pipefail
export LC_ALL=C
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

self_test=
if [ "$1" = --self-test ]; then
    self_test=yes
    shift
fi
c=$1 includes=$2
headers=(plugin.h plugin_interop.h plugin_entries.h types.h ir.h ir_opcodes.h ir_types.h status.h)

warnings=(-Wall -Wextra -Wpedantic -Wconversion -Wsign-conversion -Wshadow -Wcast-qual -Wcast-align
          -Wundef -Wpadded -Wdouble-promotion -Wwrite-strings -Werror)

# The C++ compiler that belongs to a C compiler, where it is installed.
plus_plus() {
    local name=${c##*/} folder=
    [ "$name" = "$c" ] || folder=${c%/*}/
    case $name in
        *clang*) name=${name/clang/clang++} ;;
        *gcc*) name=${name/gcc/g++} ;;
        cc) name=c++ ;;
        *) return 0 ;;
    esac
    command -v "$folder$name" || true
}

# compile COMPILER LANGUAGE STANDARD FILE FLAGS...
compile() {
    local compiler=$1 language=$2 standard=$3 file=$4
    shift 4
    "$compiler" -x "$language" "-std=$standard" "${warnings[@]}" -I "$scratch" "$@" -c -o /dev/null \
        "$file"
}

# Both in each language; the words of the compiler on the first failure.
check() {
    local standard cxx alone
    alone=(-ffreestanding -nostdinc -isystem "$("$c" -print-file-name=include)")
    for standard in c11 c17 c2x; do
        compile "$c" c $standard "$scratch/alone.c" "${alone[@]}" -Wstrict-prototypes || return 1
        compile "$c" c $standard "$here/layout.c" || return 1
    done
    cxx=$(plus_plus)
    if [ -z "$cxx" ]; then
        [ -n "$self_test" ] || echo "no C++ compiler beside $c: C alone was tried"
        return 0
    fi
    compile "$cxx" c++ c++17 "$scratch/alone.c" "${alone[@]}" || return 1
    compile "$cxx" c++ c++17 "$here/layout.c" || return 1
}

# Every name with a value and every structure has its line in layout.c, but those of the two tables,
# which have rules there.
complete() {
    local missing with=("$scratch"/hal/{plugin,types,ir,status}.h)
    missing=$(comm -23 \
        <({ grep -ohE 'HAL_[A-Z0-9_]+ = -?[0-9]' "${with[@]}" | sed 's/ .*//'
            grep -hE '^#define HAL_[A-Z0-9_]+ ' "${with[@]}" | grep -v __attribute__ |
                sed -E 's/^#define (\w+).*/\1/'
            sed -nE 's/^typedef struct (\w+) \{.*/\1/p' "${with[@]}"; } | sort -u) \
        <(sed -nE 's/^(VALUE|SIZE)\((sizeof )?(\w+), .*/\3/p' "$here/layout.c" | sort -u))
    [ -z "$missing" ] || { echo "layout.c has no line for" $missing; return 1; }
}

copy() {
    rm -rf "$scratch/hal"
    mkdir "$scratch/hal"
    cp "${headers[@]/#/$includes/hal/}" "$scratch/hal"
}

# noticed WHAT SED-SCRIPT: the change applies, and then the checks fail.
noticed() {
    copy
    sed -i -E "$2" "$scratch"/hal/*.h
    if cat "${headers[@]/#/$includes/hal/}" | cmp -s - <(cat "${headers[@]/#/$scratch/hal/}"); then
        echo "$1: the headers no longer have what this changes"
        return 1
    fi
    if { complete && check; } >/dev/null 2>&1; then
        echo "$1: nobody noticed"
        return 1
    fi
}

cat >"$scratch/alone.c" <<'C'
#include <hal/status.h>
#include <hal/plugin.h>
#include <hal/ir.h>
#include <hal/plugin.h>

int uses(const hal_plugin *table, const hal_ir_kernel *kernel, hal_type type);
int uses(const hal_plugin *table, const hal_ir_kernel *kernel, hal_type type)
{
    return HAL_PLUGIN_HAS(table, query_extension) && hal_ir_group_items(kernel) > 0 &&
           (HAL_TYPE_BIT(type) & HAL_TYPE_BIT(hal_type_of_value(type))) != 0;
}
C
copy
if [ -z "$self_test" ]; then
    complete
    check
    exit
fi
noticed "a field in another place" \
    's/^( *uint16_t) kind;/\1 other;/; s/^( *uint16_t) flags;/\1 kind;/; s/ other;/ flags;/'
noticed "a field in the middle" 's/^    uint32_t access; .*$/&\n    uint32_t extra[2];/'
noticed "a field at the end of what lies in arrays" 's/^\} hal_plugin_wait;/    uint64_t more;\n&/'
noticed "a field with another type of the same size" 's/int64_t m, n, k;/uint64_t m, n, k;/'
noticed "a hole" 's/uint8_t reserved\[2\];/uint8_t reserved[1];/'
noticed "two entries that changed places" \
    's/\(\*kernel_destroy\)/(*other)/; s/\(\*queue_destroy\)/(*kernel_destroy)/; s/\*other/*queue_destroy/'
noticed "another signature" 's/hal_status \(\*wait\)\(hal_plugin_queue \*queue, /&uint32_t more, /'
noticed "an entry of an extension in another place" \
    's/^    const char \*formats;$/    void *more;\n&/'
noticed "another name of an extension" 's/"hal.timing"/"hal.timings"/'
noticed "another number of an opcode" 's/X\(XOR, 34,/X(XOR, 39,/'
noticed "another number of a type" 's/X\(F64, 13,/X(F64, 14,/'
noticed "an opcode of a later minor" 's/X\(ADD, 16, 0,/X(ADD, 16, 99,/'
noticed "another value" 's/HAL_MEMORY_UPLOAD = 1/HAL_MEMORY_UPLOAD = 3/'
noticed "a value that nobody pinned" 's/    HAL_MEMORY_KIND_COUNT = 4/    HAL_MEMORY_OTHER = 9,\n&/'
noticed "a limit" 's/(#define HAL_IR_MAX_BINDINGS) 24u/\1 32u/'
noticed "another type of a status" 's/typedef int32_t hal_status/typedef int64_t hal_status/'
noticed "another header of hal" 's/#include <hal\/ir.h>/&\n#include <hal\/device.h>/'
noticed "a header of the system" 's/#include <stdint.h>/&\n#include <sys\/types.h>/'
if [ -n "$(plus_plus)" ]; then
    noticed "a word of C++" 's/const char \*entry,/const char *class,/'
fi
