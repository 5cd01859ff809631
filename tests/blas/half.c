/* Numbers of 16 bits of blas/src/half.h: each one, and what lies between two. */
#include "half.h"

#include <stdio.h>

static int failures;

static void expect(uint16_t got, uint16_t wanted, double value, const char *type)
{
    if (got != wanted && failures++ < 10) {
        printf("%s of %a: got %04x, expected %04x\n", type, value, got, wanted);
    }
}

/* A number, and what is just below, at and just above the middle between it and the next one. */
static void check(uint16_t bits, double (*load)(uint16_t), uint16_t (*store)(double),
                  uint16_t infinity, const char *type)
{
    const double value = load(bits), next = load(bits + 1);
    expect(store(value), bits, value, type);
    expect(store(-value), bits ^ 0x8000, -value, type);
    if (bits + 1 < infinity) {
        const double middle = value + (next - value) / 2;
        expect(store(nextafter(middle, 0)), bits, middle, type);
        expect(store(middle), bits + (bits & 1), middle, type);
        expect(store(nextafter(middle, next)), bits + 1, middle, type);
    }
}

int main(void)
{
    for (uint16_t bits = 0; bits < 0x7c00; bits++) {
        check(bits, blas_f16_load, blas_f16_store, 0x7c00, "F16");
    }
    for (uint16_t bits = 0; bits < 0x7f80; bits++) {
        check(bits, blas_bf16_load, blas_bf16_store, 0x7f80, "BF16");
    }
    expect(blas_f16_store(65519.99), 0x7bff, 65519.99, "F16");
    expect(blas_f16_store(65520), 0x7c00, 65520, "F16");
    expect(blas_f16_store((double)-INFINITY), 0xfc00, (double)-INFINITY, "F16");
    expect(blas_bf16_store(0x1.fefffffffp127), 0x7f7f, 0x1.fefffffffp127, "BF16");
    expect(blas_bf16_store(0x1.ffp127), 0x7f80, 0x1.ffp127, "BF16");
    expect(blas_bf16_store(1e300), 0x7f80, 1e300, "BF16");
    if (!isnan(blas_f16_load(blas_f16_store((double)NAN))) ||
        !isnan(blas_bf16_load(blas_bf16_store((double)NAN)))) {
        printf("a NaN became a number\n");
        failures++;
    }
    return failures > 0;
}
