/* hal/ir.h of plugin ABI 1.0, without its comments; it never changes. */
#ifndef TESTS_ABI_FROZEN_HAL_IR_H
#define TESTS_ABI_FROZEN_HAL_IR_H

#include <hal/ir_opcodes.h>
#include <hal/ir_types.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define HAL_IR_NONE UINT32_MAX

#define HAL_IR_MAX_BINDINGS 24u
#define HAL_IR_MAX_SCALAR_BYTES 512u
#define HAL_IR_MAX_RECORDS (1u << 20)
#define HAL_IR_MAX_SHARED 64u
#define HAL_IR_MAX_SHARED_BYTES (1u << 24)
#define HAL_IR_MAX_GROUP_ITEMS (1u << 16)
#define HAL_IR_MAX_DEPTH 64u
#define HAL_IR_MAX_NAME 127u
#define HAL_IR_MAX_FRAGMENT_VALUES 64u

#define HAL_IR_EMULATED_SUBGROUP 32u

#define HAL_IR_MATRIX_LANES 32u

typedef uint32_t hal_ir_value;

#define HAL_IR_FAST 1u

enum {
    HAL_IR_ATOMIC_ADD = 0,
    HAL_IR_ATOMIC_MIN = 1,
    HAL_IR_ATOMIC_MAX = 2,
    HAL_IR_ATOMIC_AND = 3,
    HAL_IR_ATOMIC_OR = 4,
    HAL_IR_ATOMIC_XOR = 5,
    HAL_IR_ATOMIC_EXCHANGE = 6,
    HAL_IR_ATOMIC_COMPARE_EXCHANGE = 7,
    HAL_IR_ATOMIC_COUNT = 8
};
enum {
    HAL_IR_REDUCE_ADD = 0,
    HAL_IR_REDUCE_MIN = 1,
    HAL_IR_REDUCE_MAX = 2,
    HAL_IR_REDUCE_COUNT = 3
};

typedef struct hal_ir_record {
    uint16_t opcode;
    hal_type type;
    uint8_t width;
    uint32_t a, b, c, d;
    uint32_t aux;
    int32_t imm;
    uint32_t flags;
} hal_ir_record;

enum { HAL_ACCESS_READ = 1, HAL_ACCESS_WRITE = 2, HAL_ACCESS_READ_WRITE = 3 };

typedef struct hal_ir_memory {
    uint32_t name;
    uint32_t count;
    hal_type type;
    uint8_t access;
    uint8_t reserved[2];
} hal_ir_memory;

typedef struct hal_ir_scalar {
    uint32_t name;
    uint16_t offset;
    hal_type type;
    uint8_t reserved;
} hal_ir_scalar;

#define HAL_IR_FRAGMENT 1u

typedef struct hal_ir_kernel {
    uint32_t size;
    uint32_t version;
    uint32_t flags;
    uint32_t name;
    uint32_t group_size[3];
    uint32_t record_count;
    uint32_t memory_count;
    uint32_t binding_count;
    uint32_t scalar_count;
    uint32_t scalar_bytes;
    uint32_t constant_count;
    uint32_t name_bytes;
    uint32_t input_count;
    uint32_t output_count;
    uint32_t groups_per_unit;
    uint32_t reserved;
    const hal_ir_record *records;
    const hal_ir_memory *memories;
    const hal_ir_scalar *scalars;
    const uint64_t *constants;
    const char *names;
} hal_ir_kernel;

static inline int hal_ir_is_shared(const hal_ir_kernel *kernel, uint32_t index)
{
    return index >= kernel->binding_count;
}

static inline uint32_t hal_ir_group_items(const hal_ir_kernel *kernel)
{
    return kernel->group_size[0] * kernel->group_size[1] * kernel->group_size[2];
}

static inline uint32_t hal_ir_operands(const hal_ir_record *record, hal_ir_value operands[4])
{
    const hal_ir_value all[4] = {record->a, record->b, record->c, record->d};
    uint32_t count = 0;
    for (uint32_t i = 0; i < 4; i++) {
        if (all[i] != HAL_IR_NONE) {
            operands[count++] = all[i];
        }
    }
    return count;
}

static inline int hal_ir_opens_block(uint32_t opcode)
{
    return opcode == HAL_IR_FOR || opcode == HAL_IR_IF || opcode == HAL_IR_ELSE;
}
static inline int hal_ir_closes_block(uint32_t opcode)
{
    return opcode == HAL_IR_ELSE || opcode == HAL_IR_END;
}

#ifdef __cplusplus
}
#endif
#endif
