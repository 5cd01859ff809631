/* Joined copies, see joined_copies.h. Each row of groups copies one range, whose binding it chooses
 * by its number. */
#include "joined_copies.h"

#include "tensor/bindings.h"
#include "tensor/dispatch.h"
#include "tensor/indexing.h"
#include "tensor/kernel_cache.h"
#include "tensor/plan_recorder.h"
#include "tensor/scalars.h"

#include <stdio.h>

/* Words of a work-item. */
#define ITEM_WORDS 4u

/* Fewer copies are recorded as commands. */
#define LEAST_JOINED 3u

/* Binding 0 is the target, binding 1 + i source i; those beyond the count have no buffer. */
typedef struct joined_plan {
    uint32_t sources, group;
    ops_bindings bindings;
} joined_plan;

/* What a group knows of its range, in words. */
typedef struct joined_values {
    hal_ir_value from[OPS_JOINED_COPIES], to[OPS_JOINED_COPIES], words[OPS_JOINED_COPIES];
    hal_ir_value number, lane, tile;
    uint32_t group;
} joined_values;

static uint32_t copies_most(const ops_context *context)
{
    const uint32_t bindings = context->info->max_bindings - 1;
    return bindings < OPS_JOINED_COPIES ? bindings : OPS_JOINED_COPIES;
}

static void emit_range(hal_ir_builder *b, const joined_values *values, uint32_t i)
{
    const uint32_t tile = values->group * ITEM_WORDS;
    const hal_ir_value start = hal_ir_mul(b, values->tile, hal_ir_u32(b, tile));
    const hal_ir_value first = hal_ir_add(b, start, values->lane);
    for (uint32_t k = 0; k < ITEM_WORDS; k++) {
        const hal_ir_value item = hal_ir_add(b, first, hal_ir_u32(b, k * values->group));
        const hal_ir_value guard = hal_ir_lt(b, item, values->words[i]);
        const hal_ir_value word =
            hal_ir_load_wide(b, 1 + i, hal_ir_add(b, values->from[i], item), 0, 1, guard);
        hal_ir_store_wide(b, 0, hal_ir_add(b, values->to[i], item), 0, guard, word);
    }
}

/* Emits the range of a group's number, by halving. */
static void emit_choice(hal_ir_builder *b, const joined_values *values, uint32_t begin,
                        uint32_t end)
{
    if (end - begin == 1) {
        emit_range(b, values, begin);
        return;
    }
    const uint32_t middle = begin + (end - begin) / 2;
    hal_ir_if(b, hal_ir_lt(b, values->number, hal_ir_u32(b, middle)));
    emit_choice(b, values, begin, middle);
    hal_ir_else(b);
    emit_choice(b, values, middle, end);
    hal_ir_end(b);
}

static void emit_copies(hal_ir_builder *b, const void *user)
{
    static const char *const names[3] = {"from", "to", "words"};
    const joined_plan *plan = user;
    joined_values values = {.group = plan->group};
    hal_ir_value *const scalars[3] = {values.from, values.to, values.words};
    hal_ir_group_size(b, plan->group, 1, 1);
    ops_declare_bindings(b, &plan->bindings);
    for (uint32_t i = 0; i < plan->sources; i++) {
        for (uint32_t k = 0; k < 3; k++) {
            char name[16];
            snprintf(name, sizeof name, "%s_%u", names[k], i);
            scalars[k][i] = hal_ir_scalar_value(b, name, HAL_TYPE_U32);
        }
    }
    values.tile = hal_ir_id(b, HAL_IR_GROUP_ID, 0);
    values.number = hal_ir_id(b, HAL_IR_GROUP_ID, 1);
    values.lane = hal_ir_id(b, HAL_IR_LOCAL_ID, 0);
    emit_choice(b, &values, 0, plan->sources);
}

/* A range of a binding's alignment around bytes of a buffer. Returns the first word of these. */
static uint32_t bind_range(const ops_context *context, hal_range *range, hal_buffer *buffer,
                           uint64_t begin, uint64_t end)
{
    const uint64_t start = begin & ~(uint64_t)(context->info->binding_alignment - 1);
    *range = (hal_range){buffer, start, end - start};
    return (uint32_t)((begin - start) / 4);
}

/* Binds the ranges and puts their places. Returns the words of the longest one. */
static uint32_t plan_bind(joined_plan *plan, const ops_joined_copies *copies, ops_block *block)
{
    const ops_context *context = copies->context;
    ops_bindings *bindings = &plan->bindings;
    uint64_t begin = UINT64_MAX, end = 0, longest = 0;
    for (uint32_t i = 0; i < copies->count; i++) {
        const ops_joined_copy *copy = &copies->copies[i];
        begin = copy->to_offset < begin ? copy->to_offset : begin;
        end = copy->to_offset + copy->bytes > end ? copy->to_offset + copy->bytes : end;
        longest = copy->bytes > longest ? copy->bytes : longest;
    }
    const uint32_t first = bind_range(context, &bindings->ranges[0], copies->to, begin, end);
    bindings->count = 1 + plan->sources;
    ops_block_begin(block);
    for (uint32_t i = 0; i < bindings->count; i++) {
        bindings->types[i] = HAL_TYPE_U32;
        bindings->access[i] = i ? HAL_ACCESS_READ : HAL_ACCESS_WRITE;
    }
    for (uint32_t i = 0; i < plan->sources; i++) {
        const ops_joined_copy none = {0};
        const ops_joined_copy *copy = i < copies->count ? &copies->copies[i] : &none;
        hal_range *range = &bindings->ranges[1 + i];
        uint32_t from = 0;
        *range = (hal_range){0};
        if (copy->bytes) {
            from = bind_range(context, range, copy->from, copy->from_offset,
                              copy->from_offset + copy->bytes);
        }
        ops_put_u32(block, from);
        ops_put_u32(block, copy->bytes ? first + (uint32_t)((copy->to_offset - begin) / 4) : 0);
        ops_put_u32(block, (uint32_t)(copy->bytes / 4));
    }
    return (uint32_t)(longest / 4);
}

static hal_status copies_record_kernel(const ops_joined_copies *copies)
{
    ops_context *context = copies->context;
    joined_plan plan = {.sources = copies_most(context), .group = ops_group_items(context->info)};
    ops_cache_key key;
    ops_entry *entry;
    ops_block block;
    const uint32_t words = plan_bind(&plan, copies, &block);
    const uint32_t form[2] = {plan.sources, plan.group};
    ops_cache_key_begin(&key, OPS_FAMILY_JOINED_COPIES);
    ops_cache_key_append(&key, form, sizeof form);
    HAL_TRY(ops_cache_get(context, &key, "joined_copies", emit_copies, &plan, &entry));
    const uint32_t grid[3] = {(uint32_t)ops_ceil_divide(words, plan.group * ITEM_WORDS),
                              copies->count, 1};
    return ops_dispatch(context, entry, grid, &plan.bindings, &block);
}

static hal_status copy_record(const ops_joined_copies *copies, const ops_joined_copy *copy)
{
    return ops_record_copy(copies->context, (hal_range){copy->from, copy->from_offset, copy->bytes},
                           (hal_range){copies->to, copy->to_offset, copy->bytes});
}

hal_status ops_joined_copies_add(ops_joined_copies *copies, const ops_joined_copy *copy)
{
    const ops_context *context = copies->context;
    if (copy->bytes > context->tuning->copy.max_joined_bytes || copies_most(context) < 2) {
        return copy_record(copies, copy);
    }
    copies->copies[copies->count++] = *copy;
    return copies->count == copies_most(context) ? ops_joined_copies_end(copies) : HAL_OK;
}

hal_status ops_joined_copies_end(ops_joined_copies *copies)
{
    hal_status status = HAL_OK;
    if (copies->count >= LEAST_JOINED) {
        status = copies_record_kernel(copies);
    }
    for (uint32_t i = 0; i < copies->count && copies->count < LEAST_JOINED && status == HAL_OK;
         i++) {
        status = copy_record(copies, &copies->copies[i]);
    }
    copies->count = 0;
    return status;
}
