/* Loads and stores of the elements of a work-item, see element.h. */
#include "element.h"

void ops_neighbours_load(hal_ir_builder *b, hal_ir_memory_id memory, hal_ir_value index,
                         uint32_t width, hal_ir_value guard, hal_ir_value *elements)
{
    const hal_ir_value loaded = hal_ir_load_wide(b, memory, index, 0, width, guard);
    for (uint32_t i = 0; i < width; i++) {
        elements[i] = width == 1 ? loaded : hal_ir_extract(b, loaded, i);
    }
}

void ops_neighbours_store(hal_ir_builder *b, hal_ir_memory_id memory, hal_ir_value index,
                          uint32_t width, hal_ir_value guard, const hal_ir_value *elements)
{
    const hal_ir_value stored = width == 1 ? elements[0] : hal_ir_pack(b, width, elements);
    hal_ir_store_wide(b, memory, index, 0, guard, stored);
}

/* The index of a work-item's element in a view. */
static hal_ir_value element_index(hal_ir_builder *b, const ops_element_iter *iter, uint32_t view,
                                  uint32_t element)
{
    if (element == 0) {
        return iter->index[view];
    }
    return ops_layout_step(b, iter->layout, iter->values, view, iter->index[view],
                           ops_index_constant(b, iter->values->type, element));
}

/* One row of a work-item's elements. */
static ops_element_iter element_row(const ops_element_iter *iter, uint32_t view, uint32_t row)
{
    ops_element_iter part = *iter;
    part.several = NULL;
    part.width = iter->several->vector;
    part.guard = iter->several->guard[row];
    part.index[view] = iter->several->index[view][row];
    return part;
}

static void neighbours_load(hal_ir_builder *b, const ops_element_iter *iter, uint32_t view,
                            hal_ir_memory_id memory, hal_ir_value *elements)
{
    uint32_t inner = iter->layout->inner[view];
    if (inner == OPS_INNER_ONE && iter->width > 1) {
        ops_neighbours_load(b, memory, iter->index[view], iter->width, iter->guard, elements);
        return;
    }
    for (uint32_t i = 0; i < iter->width; i++) {
        elements[i] =
            inner == OPS_INNER_ZERO && i > 0
                ? elements[0]
                : hal_ir_load_wide(b, memory, element_index(b, iter, view, i), 0, 1, iter->guard);
    }
}

static void neighbours_store(hal_ir_builder *b, const ops_element_iter *iter, uint32_t view,
                             hal_ir_memory_id memory, const hal_ir_value *elements)
{
    if (iter->layout->inner[view] == OPS_INNER_ONE && iter->width > 1) {
        ops_neighbours_store(b, memory, iter->index[view], iter->width, iter->guard, elements);
        return;
    }
    for (uint32_t i = 0; i < iter->width; i++) {
        hal_ir_store_wide(b, memory, element_index(b, iter, view, i), 0, iter->guard, elements[i]);
    }
}

void ops_element_load(hal_ir_builder *b, const ops_element_iter *iter, uint32_t view,
                      hal_ir_memory_id memory, hal_ir_value *elements)
{
    const ops_element_rows *rows = iter->several;
    if (!rows) {
        neighbours_load(b, iter, view, memory, elements);
        return;
    }
    for (uint32_t i = 0; i < iter->width; i++) {
        const uint32_t row = i / rows->vector;
        if (rows->staged >> view & 1) {
            elements[i] =
                hal_ir_load_wide(b, rows->memory[view], rows->place[i], 0, 1, rows->in_tile[row]);
        } else if (i % rows->vector == 0) {
            const ops_element_iter part = element_row(iter, view, row);
            neighbours_load(b, &part, view, memory, elements + i);
        }
    }
}

void ops_element_store(hal_ir_builder *b, const ops_element_iter *iter, uint32_t view,
                       hal_ir_memory_id memory, const hal_ir_value *elements)
{
    const ops_element_rows *rows = iter->several;
    if (!rows) {
        neighbours_store(b, iter, view, memory, elements);
        return;
    }
    for (uint32_t i = 0; i < iter->width; i += rows->vector) {
        const ops_element_iter part = element_row(iter, view, i / rows->vector);
        neighbours_store(b, &part, view, memory, elements + i);
    }
}
