/* random.c: the seeded generator. */
#include "math/random.h"

#include <math.h>

#include "math/number.h"

uint64_t random_seed_of(uint64_t seed, const char *name)
{
    random_state random = {seed};
    uint64_t mixed = random_next(&random);
    for (const char *c = name; *c != 0; c++) {
        random.state = mixed ^ (uint8_t)*c;
        mixed = random_next(&random);
    }
    return mixed;
}

uint64_t random_next(random_state *random)
{
    random->state += UINT64_C(0x9e3779b97f4a7c15);
    uint64_t x = random->state;
    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}

uint64_t random_below(random_state *random, uint64_t limit)
{
    return limit == 0 ? 0 : random_next(random) % limit;
}

double random_between(random_state *random, double low, double high)
{
    return low + (high - low) * ((double)(random_next(random) >> 11) * 0x1p-53);
}

uint64_t random_bits(random_state *random, hal_type type)
{
    if (type == HAL_TYPE_BOOL) {
        return random_next(random) & 1;
    }
    uint64_t bits = random_next(random) & number_mask(type);
    if (!hal_type_is_float(type)) {
        /* One in four is small, so that equal operands and short shifts occur. */
        return random_below(random, 4) == 0 ? bits & 63 : bits;
    }
    if (random_below(random, 2) == 0) {
        return number_bits(type, random_between(random, -1000.0, 1000.0));
    }
    while (isnan(number_value(type, bits))) {
        bits = random_next(random) & number_mask(type);
    }
    return bits;
}

void random_fill(random_state *random, hal_type type, double low, double high, void *elements,
                 size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const double x = random_between(random, low, high);
        number_put(type, elements, i, hal_type_is_float(type) ? x : floor(x));
    }
}
