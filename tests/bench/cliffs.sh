#!/bin/bash
# cliffs.sh HAL_BENCH: products whose sizes are neighbours take times that are neighbours (promise 20).
# On the cpu plugin, which has the largest tiles to fall from: from one size of a row to the next, by at
# most one more in a dimension, the least time per multiply-add may grow or fall by RATIO at most. The
# ctest `bench_cliffs` runs it; a row that fails is timed again, as other programs may have taken the
# processor: a cliff stays however often the least times are taken.
set -euo pipefail
export LC_ALL=C
bench=$1
ratio=2

# In each row every size but the first is one step from the one before it.
rows=(
    63,64,65,66,67 127,128,129,130 255,256,257,258 383,384,385 511,512,513
    1000x7x1000,1000x8x1000,1000x9x1000,1000x10x1000
    15x1000x1000,16x1000x1000,17x1000x1000
    300x300x31,300x300x32,300x300x33
    1000x31x17,1000x32x17,1000x33x17
)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# is_even ROW: 0 when no step of the row is a cliff by the least times of all its measurements.
is_even() {
    "$bench" gemm --device cpu --threads 1 --seconds 0.1 --sizes "$1" >>"$work/row"
    # gemm MxNxK  f32  median  min ...
    awk -v ratio="$ratio" '
        $1 == "gemm" && $3 == "f32" {
            split($2, size, "x")
            cost = $5 / (size[1] * size[2] * size[3])
            if (!($2 in least)) {
                name[++rows] = $2
                least[$2] = cost
            } else if (cost < least[$2]) {
                least[$2] = cost
            }
        }
        END {
            for (i = 2; i <= rows; i++) {
                before = least[name[i - 1]]
                cost = least[name[i]]
                if (cost > ratio * before || before > ratio * cost) {
                    printf "%s takes %.4g ps a multiply-add, %s took %.4g\n", name[i],
                           cost * 1e6, name[i - 1], before * 1e6
                    cliffs++
                }
            }
            exit rows < 3 || cliffs > 0
        }' "$work/row"
}

for row in "${rows[@]}"; do
    : >"$work/row"
    for ((try = 1; ; try++)); do
        ! is_even "$row" || break
        [ "$try" -lt 30 ] || {
            cat "$work/row"
            echo "cliffs: the sizes $row differ by more than $ratio, again and again"
            exit 1
        }
    done
done
echo "cliffs: none beyond $ratio in ${#rows[@]} rows"
