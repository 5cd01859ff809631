/* Philox on the host and in IR, see philox.h. */
#include "philox.h"

#define ROUNDS 10
#define MULTIPLIER_0 UINT32_C(0xD2511F53)
#define MULTIPLIER_1 UINT32_C(0xCD9E8D57)
#define WEYL_0 UINT32_C(0x9E3779B9) /* golden ratio */
#define WEYL_1 UINT32_C(0xBB67AE85) /* square root of 3, less 1 */

void ops_philox(const uint32_t counter[4], const uint32_t key[2], uint32_t words[4])
{
    uint32_t c0 = counter[0], c1 = counter[1], c2 = counter[2], c3 = counter[3];
    for (uint32_t round = 0; round < ROUNDS; round++) {
        uint64_t product_0 = (uint64_t)MULTIPLIER_0 * c0, product_1 = (uint64_t)MULTIPLIER_1 * c2;
        uint32_t k0 = key[0] + round * WEYL_0, k1 = key[1] + round * WEYL_1;
        c0 = (uint32_t)(product_1 >> 32) ^ c1 ^ k0;
        c2 = (uint32_t)(product_0 >> 32) ^ c3 ^ k1;
        c1 = (uint32_t)product_1;
        c3 = (uint32_t)product_0;
    }
    words[0] = c0;
    words[1] = c1;
    words[2] = c2;
    words[3] = c3;
}

void ops_philox_emit(hal_ir_builder *b, const hal_ir_value counter[4], const hal_ir_value key[2],
                     hal_ir_value words[4])
{
    hal_ir_value c[4] = {counter[0], counter[1], counter[2], counter[3]};
    hal_ir_value m0 = hal_ir_u32(b, MULTIPLIER_0), m1 = hal_ir_u32(b, MULTIPLIER_1);
    for (uint32_t round = 0; round < ROUNDS; round++) {
        hal_ir_value k0 = hal_ir_add(b, key[0], hal_ir_u32(b, round * WEYL_0));
        hal_ir_value k1 = hal_ir_add(b, key[1], hal_ir_u32(b, round * WEYL_1));
        hal_ir_value high_0 = hal_ir_mulhi(b, m0, c[0]), low_0 = hal_ir_mul(b, m0, c[0]);
        hal_ir_value high_1 = hal_ir_mulhi(b, m1, c[2]), low_1 = hal_ir_mul(b, m1, c[2]);
        c[0] = hal_ir_xor(b, hal_ir_xor(b, high_1, c[1]), k0);
        c[2] = hal_ir_xor(b, hal_ir_xor(b, high_0, c[3]), k1);
        c[1] = low_1;
        c[3] = low_0;
    }
    for (uint32_t i = 0; i < 4; i++) {
        words[i] = c[i];
    }
}
