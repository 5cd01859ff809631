/* values.c: the corner values of each value type. */
#include "ir/fixture.h"

static const uint64_t bools[] = {0, 1};
static const uint64_t words[] = {
    0,          1,          2,          3,          7,          31,         32,         33,
    63,         64,         255,        256,        65535,      65536,      0x7ffffffe, 0x7fffffff,
    0x80000000, 0x80000001, 0xfffffffe, 0xffffffff, 0x12345678, 0xdeadbeef, 0x55555555};
static const uint64_t longs[] = {0,
                                 1,
                                 2,
                                 3,
                                 31,
                                 32,
                                 63,
                                 64,
                                 65,
                                 0x7fffffff,
                                 0x80000000,
                                 0xffffffff,
                                 0x100000000,
                                 0x0020000000000001,
                                 0x7ffffffffffffffe,
                                 0x7fffffffffffffff,
                                 0x8000000000000000,
                                 0x8000000000000001,
                                 0xfffffffffffffffe,
                                 0xffffffffffffffff,
                                 0x123456789abcdef0,
                                 0xaaaaaaaaaaaaaaaa};

/* Zeros, denormals, the edges of the normal numbers, one and its neighbours, halves, the edges of
 * the integers, and what is not finite. */
static const uint64_t floats[] = {
    0x00000000, 0x80000000, 0x00000001, 0x80000001, 0x007fffff, 0x00800000, 0x80800000, 0x3f800000,
    0xbf800000, 0x3f7fffff, 0x3f800001, 0x3f000000, 0xbf000000, 0x3fc00000, 0x40200000, 0xc0200000,
    0x4b000001, 0x4b800000, 0x4efffffe, 0x4f000000, 0xcf000000, 0xcf000001, 0x4f7fffff, 0x4f800000,
    0x5effffff, 0x5f000000, 0xdf000000, 0x5f800000, 0x7f7fffff, 0xff7fffff, 0x7f800000, 0xff800000,
    0x7fc00000, 0xffc00000, 0x42b17218, 0xc2cff1b5, 0x3eaaaaab, 0x40490fdb};
static const uint64_t doubles[] = {
    0x0000000000000000, 0x8000000000000000, 0x0000000000000001, 0x8000000000000001,
    0x000fffffffffffff, 0x0010000000000000, 0x8010000000000000, 0x3ff0000000000000,
    0xbff0000000000000, 0x3fefffffffffffff, 0x3ff0000000000001, 0x3fe0000000000000,
    0xbfe0000000000000, 0x3ff8000000000000, 0x4004000000000000, 0xc004000000000000,
    0x4330000000000001, 0x41dfffffffc00000, 0x41e0000000000000, 0xc1e0000000000000,
    0xc1e0000000200000, 0x41efffffffe00000, 0x41f0000000000000, 0x43dfffffffffffff,
    0x43e0000000000000, 0xc3e0000000000000, 0x43f0000000000000, 0x47efffffe0000000,
    0x47effffff0000000, 0x3690000000000000, 0x7fefffffffffffff, 0xffefffffffffffff,
    0x7ff0000000000000, 0xfff0000000000000, 0x7ff8000000000000, 0xfff8000000000000,
    0x40862e42fefa39ef, 0x400921fb54442d18};

size_t ir_corners(hal_type type, const uint64_t **bits)
{
    switch (type) {
    case HAL_TYPE_BOOL:
        *bits = bools;
        return sizeof bools / sizeof bools[0];
    case HAL_TYPE_I32:
    case HAL_TYPE_U32:
        *bits = words;
        return sizeof words / sizeof words[0];
    case HAL_TYPE_I64:
    case HAL_TYPE_U64:
        *bits = longs;
        return sizeof longs / sizeof longs[0];
    case HAL_TYPE_F32:
        *bits = floats;
        return sizeof floats / sizeof floats[0];
    default:
        *bits = doubles;
        return sizeof doubles / sizeof doubles[0];
    }
}
