/* ir_fixture.h: kernels from the builder and from text. Included by the tests of the IR and of its
 * pages. */
#ifndef TESTS_UNIT_IR_FIXTURE_H
#define TESTS_UNIT_IR_FIXTURE_H

#include "unit.h"
#include <hal/ir_build.h>
#include <hal/types.h>
#include <stdlib.h>
#include <string.h>

static inline hal_ir_builder *ir_kernel_begin(void)
{
    hal_ir_builder *b = NULL;
    assert_ok(hal_ir_builder_create("k", &b));
    return b;
}

static inline hal_ir_builder *ir_fragment_begin(void)
{
    hal_ir_builder *b = NULL;
    assert_ok(hal_ir_builder_create_fragment("f", &b));
    return b;
}

static inline hal_ir_kernel *ir_finish(hal_ir_builder *b)
{
    hal_ir_kernel *kernel = NULL;
    assert_ok(hal_ir_builder_finish(b, &kernel));
    hal_ir_builder_destroy(b);
    return kernel;
}

static inline hal_ir_kernel *ir_read(const char *text)
{
    hal_ir_kernel *kernel = NULL;
    assert_ok(hal_ir_parse(text, strlen(text), &kernel));
    return kernel;
}

/* A device that has everything but matrix units. */
static inline hal_device_info ir_device(void)
{
    return (hal_device_info){.size = sizeof(hal_device_info),
                             .name = "Testbed",
                             .subgroup_width = 32,
                             .max_group_items = 1024,
                             .max_group_size = {1024, 1024, 64},
                             .shared_bytes = 48 << 10,
                             .max_bindings = HAL_IR_MAX_BINDINGS,
                             .max_vector_bytes = 64,
                             .storage_types = HAL_STORAGE_TYPES,
                             .arithmetic_types = HAL_STORAGE_TYPES,
                             .exactness = 15,
                             .features = HAL_FEATURE_ASYNC_COPY | HAL_FEATURE_ATOMIC_64};
}

/* How many records have an opcode. */
static inline uint32_t ir_count(const hal_ir_kernel *kernel, uint32_t opcode)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < kernel->record_count; i++) {
        count += kernel->records[i].opcode == opcode;
    }
    return count;
}

#endif
