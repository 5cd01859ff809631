/* See index_task.h. */
#include "index_task.h"

#include "tensor/dispatch.h"
#include "tensor/overlap.h"

#include <string.h>

hal_status ops_check_indices(const ops_context *context, const char *function,
                             const ops_tensor *indices)
{
    hal_status status = ops_check_tensor(context, function, "indices", indices);
    if (status == HAL_OK && indices->type != HAL_TYPE_I32 && indices->type != HAL_TYPE_I64) {
        status = ops_invalid("%s: indices: expected i32 or i64, got %s", function,
                             hal_type_name(indices->type));
    }
    return status;
}

hal_status ops_check_apart(const char *function, const char *argument, const ops_tensor *in,
                           const ops_tensor *out)
{
    return ops_overlap(in, out)
               ? ops_invalid("%s: y: expected memory that %s does not use, got an overlap",
                             function, argument)
               : HAL_OK;
}

static void tensor_add(const ops_context *context, ops_index_task *t, const ops_tensor *tensor,
                       const ops_tensor *view, uint32_t access)
{
    const uint32_t number = ops_space_add(&t->space, view, 0);
    t->slots[number] = (uint8_t)ops_bind(context, &t->bindings, tensor, access);
    t->offsets[t->tensor_count] = view->offset;
    t->empty |= (uint32_t)(ops_tensor_get_element_count(view) == 0) << t->tensor_count;
    t->tensor_count++;
}

void ops_index_add(const ops_context *context, ops_index_task *t, const ops_tensor *tensor,
                   uint32_t access)
{
    tensor_add(context, t, tensor, tensor, access);
}

void ops_index_add_view(const ops_context *context, ops_index_task *t, const ops_tensor *tensor,
                        const ops_tensor *view, uint32_t access)
{
    tensor_add(context, t, tensor, view, access);
}

static uint32_t scalar_count(const ops_index_task *t)
{
    uint32_t count = 0;
    while (count < OPS_INDEX_SCALARS && t->scalar_names[count]) {
        count++;
    }
    return count;
}

static void emit_task(hal_ir_builder *b, const void *user)
{
    const ops_index_task *t = user;
    ops_index_body body = {.task = t};
    ops_layout_values values;
    ops_declare_bindings(b, &t->bindings);
    ops_elementwise_declare(b, &t->space, &t->plan, &values);
    const hal_type type = t->scalar_type ? t->scalar_type : values.type;
    for (uint32_t i = 0; i < scalar_count(t); i++) {
        body.scalars[i] = hal_ir_scalar_value(b, t->scalar_names[i], type);
    }
    ops_elementwise_emit(b, &t->plan, &values, t->slots, t->bindings.types, t->body, &body);
}

ops_tensor ops_index_spread(const ops_tensor *space, const ops_tensor *of, uint32_t count,
                            const int64_t *strides)
{
    ops_tensor view = *space;
    view.buffer = of->buffer;
    view.type = of->type;
    view.offset = of->offset;
    memset(view.stride, 0, sizeof view.stride);
    for (uint32_t i = 0; i < count; i++) {
        view.stride[i] = strides[i];
    }
    return view;
}

hal_status ops_index_prepare(ops_context *context, ops_index_task *t, uint32_t widest,
                             ops_block *block, ops_entry **entry)
{
    uint64_t starts[OPS_MAX_VIEWS] = {0};
    uint32_t sizes[OPS_MAX_VIEWS] = {0}, size = 1;
    for (uint32_t i = 0; i < t->tensor_count; i++) {
        const uint32_t slot = t->slots[i], bytes = hal_type_size(t->bindings.types[slot]);
        starts[i] = t->bindings.ranges[slot].offset / bytes;
        t->space.base[i] = t->empty >> i & 1 ? 0 : t->offsets[i] - (int64_t)starts[i];
        sizes[i] = bytes;
        size = bytes > size ? bytes : size;
    }
    const uint32_t most = ops_elementwise_widest(context, size);
    ops_space_collapse(&t->space, 0);
    const ops_elementwise_use use = {.function = t->function,
                                     .widest = widest < most ? widest : most,
                                     .starts = starts,
                                     .reserved = scalar_count(t) * (uint32_t)sizeof(uint64_t),
                                     .reach = t->reach,
                                     .loaded = t->loaded,
                                     .repeatable = t->repeatable,
                                     .indexed = t->indexed,
                                     .work = t->work,
                                     .sizes = sizes};
    const ops_elementwise_kernel kernel = {.name = t->name, .emit = emit_task, .user = t};
    ops_cache_key key;
    ops_cache_key_begin(&key, t->family);
    ops_cache_key_append(&key, &t->variant, sizeof t->variant);
    ops_cache_key_append(&key, t->form, t->form_bytes);
    ops_bindings_key(&t->bindings, t->slots, t->tensor_count, &key);
    HAL_TRY(ops_elementwise_find_kernel(context, &use, &kernel, &key, &t->space, &t->plan, entry));
    ops_block_begin(block);
    ops_elementwise_put(&t->space, &t->plan, block);
    return HAL_OK;
}

hal_status ops_index_record(ops_context *context, ops_index_task *t, uint32_t widest)
{
    ops_block block;
    ops_entry *entry;
    hal_status status = ops_index_prepare(context, t, widest, &block, &entry);
    return status != HAL_OK ? status
                            : ops_dispatch(context, entry, t->plan.grid, &t->bindings, &block);
}

hal_ir_value ops_index_comparable(hal_ir_builder *b, const ops_element_iter *iter,
                                  hal_ir_value index, hal_ir_value *other)
{
    const bool is_64 =
        hal_ir_type_of(b, index) == HAL_TYPE_I64 || iter->values->type == HAL_TYPE_U64;
    const hal_type type = is_64 ? HAL_TYPE_U64 : HAL_TYPE_U32;
    *other = ops_value_cast(b, type, *other);
    return ops_value_cast(b, type, index);
}
