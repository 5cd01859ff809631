/* Kernels over the lines of an operand, see lines.h. */
#include "lines.h"

#include "operand.h"

#include "tensor/dispatch.h"
#include "tensor/divisor.h"
#include "tensor/indexing.h"
#include "tensor/kernel_cache.h"

enum { STEPS_OF_WORD = 4, WORDS_OF_TILE = 16, SIGNIFICAND_BITS = 53, WORD_BITS = 32 };

/* Lines that neighbouring work-items read, where these are neighbours in memory. */
enum { NEIGHBOURS = 32, LINES_OF_TILE = 16 };

/* What a kernel looks like. */
OPS_KEY_STRUCTURES_BEGIN
typedef struct lines_form {
    uint32_t line_items, step_items; /* work-items of a group along lines and along k */
    uint8_t index64;
    uint8_t is_left;
    uint8_t by_lines; /* neighbouring work-items have neighbouring lines, not steps */
    uint8_t slots[3]; /* bindings: x, classes, planes */
    uint8_t padding[2];
} lines_form;
OPS_KEY_STRUCTURES_END

typedef struct lines_pass {
    lines_form form;
    ops_bindings bindings;
    ops_exact_operand x;
    uint32_t lines, total; /* of a matrix, of the batch */
} lines_pass;

/* A line that a work-item works on, and its first step. */
typedef struct line_place {
    hal_ir_value line, inside, index;
} line_place;

static line_place emit_line(hal_ir_builder *b, const ops_exact_place *x, hal_ir_value line,
                            hal_ir_value total, hal_ir_value lines, const ops_divisor *divisor)
{
    line_place place = {.line = line};
    place.inside = hal_ir_lt(b, line, total);
    const hal_ir_value batch = ops_divisor_quotient(b, divisor, line);
    const hal_ir_value row = hal_ir_sub(b, line, hal_ir_mul(b, batch, lines));
    place.index = ops_exact_line_index(b, x, batch, row);
    return place;
}

/* The largest of the values that the work-items of a line have, in its first one. */
static hal_ir_value emit_largest(hal_ir_builder *b, const lines_form *form, hal_ir_memory_id shared,
                                 hal_ir_value line_item, hal_ir_value step_item, hal_ir_value value)
{
    const hal_ir_value first = hal_ir_mul(b, line_item, hal_ir_u32(b, form->step_items));
    const hal_ir_value own = hal_ir_add(b, first, step_item);
    hal_ir_store(b, shared, own, value);
    hal_ir_barrier(b);
    for (uint32_t half = form->step_items / 2; half > 0; half /= 2) {
        const hal_ir_value active = hal_ir_lt(b, step_item, hal_ir_u32(b, half));
        const hal_ir_value mine = hal_ir_load_wide(b, shared, own, 0, 1, active);
        const hal_ir_value other = hal_ir_load_wide(b, shared, own, (int32_t)half, 1, active);
        hal_ir_store_wide(b, shared, own, 0, active, hal_ir_max(b, mine, other));
        hal_ir_barrier(b);
    }
    return hal_ir_load(b, shared, first);
}

static void emit_classify(hal_ir_builder *b, const void *user)
{
    const lines_pass *p = user;
    const lines_form *form = &p->form;
    const uint32_t items = form->line_items * form->step_items;
    hal_ir_group_size(b, form->by_lines ? form->line_items : form->step_items,
                      form->by_lines ? form->step_items : form->line_items, 1);
    ops_declare_bindings(b, &p->bindings);
    const char *const names[OPS_EXACT_LINE_WORDS] = {"largest_class", "largest_end",
                                                     "largest_rest"};
    hal_ir_memory_id shared[OPS_EXACT_LINE_WORDS];
    hal_ir_value largest[OPS_EXACT_LINE_WORDS];
    for (uint32_t i = 0; i < OPS_EXACT_LINE_WORDS; i++) {
        shared[i] = hal_ir_shared(b, names[i], HAL_TYPE_U32, items);
    }
    const ops_exact_place x = ops_exact_operand_declare(b, &p->x, form->index64, 0);
    const hal_ir_value total = hal_ir_scalar_value(b, "total", HAL_TYPE_U32);
    const hal_ir_value lines = hal_ir_scalar_value(b, "lines", HAL_TYPE_U32);
    const hal_ir_value k = hal_ir_scalar_value(b, "k", HAL_TYPE_U32);
    const ops_divisor divisor = ops_divisor_declare(b, 0);
    const hal_ir_value line_item = hal_ir_id(b, HAL_IR_LOCAL_ID, form->by_lines ? 0 : 1);
    const hal_ir_value step_item = hal_ir_id(b, HAL_IR_LOCAL_ID, form->by_lines ? 1 : 0);
    hal_ir_value line = hal_ir_mul(b, ops_index_group(b), hal_ir_u32(b, form->line_items));
    line = hal_ir_add(b, line, line_item);
    const line_place place = emit_line(b, &x, line, total, lines, &divisor);
    const hal_ir_value zero = hal_ir_u32(b, 0), stride = hal_ir_u32(b, form->step_items);
    for (uint32_t i = 0; i < OPS_EXACT_LINE_WORDS; i++) {
        largest[i] = hal_ir_var(b, zero);
    }
    const hal_ir_value step = hal_ir_add(b, hal_ir_for(b, zero, k, stride), step_item);
    const hal_ir_value guard = hal_ir_and(b, place.inside, hal_ir_lt(b, step, k));
    const hal_ir_value index = ops_exact_step_index(b, &x, place.index, step);
    hal_ir_value found[OPS_EXACT_LINE_WORDS];
    found[OPS_EXACT_LINE_CLASS] = ops_f64_class(b, ops_exact_load(b, &x, index, guard));
    found[OPS_EXACT_LINE_END] = hal_ir_add(b, step, hal_ir_u32(b, 1));
    found[OPS_EXACT_LINE_REST] = hal_ir_sub(b, k, step);
    const hal_ir_value is_zero = hal_ir_eq(b, found[OPS_EXACT_LINE_CLASS], zero);
    for (uint32_t i = 0; i < OPS_EXACT_LINE_WORDS; i++) {
        const hal_ir_value counted = hal_ir_select(b, is_zero, zero, found[i]);
        hal_ir_set(b, largest[i], hal_ir_max(b, hal_ir_get(b, largest[i]), counted));
    }
    hal_ir_end(b);
    const hal_ir_value stores = hal_ir_and(b, place.inside, hal_ir_eq(b, step_item, zero));
    const hal_ir_value words = hal_ir_mul(b, place.line, hal_ir_u32(b, OPS_EXACT_LINE_WORDS));
    for (uint32_t i = 0; i < OPS_EXACT_LINE_WORDS; i++) {
        const hal_ir_value own = hal_ir_get(b, largest[i]);
        const hal_ir_value all = emit_largest(b, form, shared[i], line_item, step_item, own);
        hal_ir_store_wide(b, form->slots[1], words, (int32_t)i, stores, all);
    }
}

/* A number as a whole one: its words in two's complement, and the highest bits of its magnitude. */
typedef struct whole_number {
    hal_ir_value low, high, magnitude;
} whole_number;

static whole_number emit_whole(hal_ir_builder *b, ops_f64_words x, hal_ir_value line_class,
                               hal_ir_value bits)
{
    const hal_ir_value up = hal_ir_sub(b, bits, hal_ir_u32(b, SIGNIFICAND_BITS));
    const hal_ir_value down = hal_ir_sub(b, line_class, ops_f64_class(b, x));
    const ops_f64_words significand = ops_f64_significand(b, x, up);
    const ops_f64_words cut = ops_words_shift_right(b, significand, down);
    const hal_ir_value dropped =
        hal_ir_sub(b, bits, hal_ir_u32(b, OPS_EXACT_MAGNITUDE_BITS + WORD_BITS));
    const hal_ir_value mask = ops_f64_sign_mask(b, x), zero = hal_ir_u32(b, 0);
    whole_number whole;
    whole.magnitude = hal_ir_shr(b, cut.high, dropped);
    whole.low = hal_ir_sub(b, hal_ir_xor(b, cut.low, mask), mask);
    hal_ir_value carry = hal_ir_and(b, mask, hal_ir_u32(b, 1));
    carry = hal_ir_select(b, hal_ir_eq(b, cut.low, zero), carry, zero);
    whole.high = hal_ir_add(b, hal_ir_xor(b, cut.high, mask), carry);
    return whole;
}

/* The residue of a whole number times a factor, as the byte of the number nearest to 0: from parts
 * of 16 bits, of which the highest is signed. */
static hal_ir_value emit_residue(hal_ir_builder *b, const hal_ir_value parts[4], uint32_t p,
                                 uint32_t factor)
{
    const uint32_t base = (1u << 16) % p;
    uint32_t power = factor % p;
    hal_ir_value sum = HAL_IR_NONE;
    for (uint32_t i = 0; i < 4; i++) {
        const hal_ir_value term = hal_ir_mul(b, parts[i], hal_ir_u32(b, power));
        sum = i == 0 ? term : hal_ir_add(b, sum, term);
        if (i < 3) {
            power = power * base % p;
        }
    }
    /* The highest part is 2^15 too large. */
    const uint32_t excess = (1u << 15) % p * power % p;
    sum = hal_ir_add(b, sum, hal_ir_u32(b, p - excess));
    ops_divide_by_constant(b, p, &sum);
    const hal_ir_value is_upper = hal_ir_shr(b, sum, hal_ir_u32(b, 7));
    return hal_ir_add(b, sum, hal_ir_mul(b, is_upper, hal_ir_u32(b, 256 - p)));
}

static hal_ir_value emit_bytes(hal_ir_builder *b, const hal_ir_value bytes[STEPS_OF_WORD])
{
    hal_ir_value word = bytes[0];
    for (uint32_t i = 1; i < STEPS_OF_WORD; i++) {
        word = hal_ir_or(b, word, hal_ir_shl(b, bytes[i], hal_ir_u32(b, 8 * i)));
    }
    return word;
}

/* Writes the words of all planes of four steps, which are `plane` words apart. */
static void emit_planes(hal_ir_builder *b, const lines_form *form,
                        const whole_number wholes[STEPS_OF_WORD], hal_ir_value index,
                        hal_ir_value plane)
{
    ops_exact_moduli moduli;
    hal_ir_value parts[STEPS_OF_WORD][4], bytes[STEPS_OF_WORD];
    const hal_ir_value low = hal_ir_u32(b, 0xffff), half = hal_ir_u32(b, 16);
    ops_exact_moduli_init(&moduli);
    for (uint32_t i = 0; i < STEPS_OF_WORD; i++) {
        const hal_ir_value raised = hal_ir_xor(b, wholes[i].high, hal_ir_u32(b, 1u << 31));
        parts[i][0] = hal_ir_and(b, wholes[i].low, low);
        parts[i][1] = hal_ir_shr(b, wholes[i].low, half);
        parts[i][2] = hal_ir_and(b, wholes[i].high, low);
        parts[i][3] = hal_ir_shr(b, raised, half);
        bytes[i] = wholes[i].magnitude;
    }
    for (uint32_t j = 0; j < OPS_EXACT_MODULI; j++) {
        const ops_exact_modulus *m = &moduli.of[j];
        hal_ir_value residues[STEPS_OF_WORD];
        for (uint32_t i = 0; i < STEPS_OF_WORD; i++) {
            residues[i] = emit_residue(b, parts[i], m->p, form->is_left ? m->inverse : 1);
        }
        hal_ir_store(b, form->slots[2], index, emit_bytes(b, residues));
        index = hal_ir_add(b, index, plane);
    }
    hal_ir_store(b, form->slots[2], index, emit_bytes(b, bytes));
}

/* The scalars of a kernel that writes planes. */
typedef struct split_values {
    ops_exact_place x;
    hal_ir_value total, lines, k, bits;
    hal_ir_value words; /* of a line of a plane */
    hal_ir_value parts; /* of a line: its words, or groups of WORDS_OF_TILE */
    ops_divisor of_lines, of_parts;
} split_values;

static split_values emit_split_values(hal_ir_builder *b, const lines_pass *p)
{
    split_values s;
    s.x = ops_exact_operand_declare(b, &p->x, p->form.index64, 0);
    s.total = hal_ir_scalar_value(b, "total", HAL_TYPE_U32);
    s.lines = hal_ir_scalar_value(b, "lines", HAL_TYPE_U32);
    s.k = hal_ir_scalar_value(b, "k", HAL_TYPE_U32);
    s.of_lines = ops_divisor_declare(b, 0);
    s.words = hal_ir_scalar_value(b, "words", HAL_TYPE_U32);
    s.parts = hal_ir_scalar_value(b, "parts", HAL_TYPE_U32);
    s.of_parts = ops_divisor_declare(b, 1);
    s.bits = hal_ir_scalar_value(b, "bits", HAL_TYPE_U32);
    return s;
}

/* Splits a number in that of a line, or of lines, and that of a part. */
static hal_ir_value emit_part(hal_ir_builder *b, const split_values *s, hal_ir_value number,
                              hal_ir_value *part)
{
    const hal_ir_value line = ops_divisor_quotient(b, &s->of_parts, number);
    *part = hal_ir_sub(b, number, hal_ir_mul(b, line, s->parts));
    return line;
}

/* The numbers of a word of a line. */
static void emit_numbers(hal_ir_builder *b, const split_values *s, hal_ir_value line,
                         hal_ir_value word, ops_f64_words numbers[STEPS_OF_WORD])
{
    const line_place place = emit_line(b, &s->x, line, s->total, s->lines, &s->of_lines);
    const hal_ir_value first = hal_ir_mul(b, word, hal_ir_u32(b, STEPS_OF_WORD));
    for (uint32_t i = 0; i < STEPS_OF_WORD; i++) {
        const hal_ir_value step = hal_ir_add(b, first, hal_ir_u32(b, i));
        const hal_ir_value guard = hal_ir_and(b, place.inside, hal_ir_lt(b, step, s->k));
        const hal_ir_value index = ops_exact_step_index(b, &s->x, place.index, step);
        numbers[i] = ops_exact_load(b, &s->x, index, guard);
    }
}

/* The same of a tile, whose numbers neighbouring work-items load along the lines. `item`: of the
 * group; WORDS_OF_TILE of them are of one line. */
static void emit_numbers_by_tile(hal_ir_builder *b, const lines_form *form, const split_values *s,
                                 hal_ir_value first_line, hal_ir_value first_word,
                                 hal_ir_value item, ops_f64_words numbers[STEPS_OF_WORD])
{
    const uint32_t pitch = form->line_items + 1, count = pitch * WORDS_OF_TILE * STEPS_OF_WORD;
    const hal_ir_memory_id low = hal_ir_shared(b, "low", HAL_TYPE_U32, count);
    const hal_ir_memory_id high = hal_ir_shared(b, "high", HAL_TYPE_U32, count);
    const hal_ir_value rows = hal_ir_u32(b, pitch);
    hal_ir_value line_item = item, word_item = item;
    const hal_ir_value step_item = ops_divide_by_constant(b, form->line_items, &line_item);
    const hal_ir_value line_of_word = ops_divide_by_constant(b, WORDS_OF_TILE, &word_item);
    const hal_ir_value line = hal_ir_add(b, first_line, line_item);
    const line_place place = emit_line(b, &s->x, line, s->total, s->lines, &s->of_lines);
    const hal_ir_value first = hal_ir_mul(b, first_word, hal_ir_u32(b, STEPS_OF_WORD));
    for (uint32_t i = 0; i < STEPS_OF_WORD; i++) {
        const hal_ir_value own = hal_ir_add(b, step_item, hal_ir_u32(b, i * WORDS_OF_TILE));
        const hal_ir_value step = hal_ir_add(b, first, own);
        const hal_ir_value guard = hal_ir_and(b, place.inside, hal_ir_lt(b, step, s->k));
        const hal_ir_value index = ops_exact_step_index(b, &s->x, place.index, step);
        const ops_f64_words number = ops_exact_load(b, &s->x, index, guard);
        const hal_ir_value at = hal_ir_add(b, hal_ir_mul(b, own, rows), line_item);
        hal_ir_store(b, low, at, number.low);
        hal_ir_store(b, high, at, number.high);
    }
    hal_ir_barrier(b);
    const hal_ir_value word = hal_ir_mul(b, word_item, hal_ir_u32(b, STEPS_OF_WORD));
    for (uint32_t i = 0; i < STEPS_OF_WORD; i++) {
        const hal_ir_value step = hal_ir_add(b, word, hal_ir_u32(b, i));
        const hal_ir_value at = hal_ir_add(b, hal_ir_mul(b, step, rows), line_of_word);
        numbers[i].low = hal_ir_load(b, low, at);
        numbers[i].high = hal_ir_load(b, high, at);
    }
}

static void emit_split(hal_ir_builder *b, const void *user)
{
    const lines_pass *p = user;
    const lines_form *form = &p->form;
    const uint32_t items = form->line_items * form->step_items;
    ops_f64_words numbers[STEPS_OF_WORD];
    hal_ir_group_size(b, items, 1, 1);
    ops_declare_bindings(b, &p->bindings);
    const split_values s = emit_split_values(b, p);
    const hal_ir_value item = hal_ir_id(b, HAL_IR_LOCAL_ID, 0), group = ops_index_group(b);
    hal_ir_value line, word;
    if (form->by_lines) {
        const hal_ir_value words = hal_ir_u32(b, WORDS_OF_TILE);
        line = hal_ir_mul(b, emit_part(b, &s, group, &word), hal_ir_u32(b, form->line_items));
        word = hal_ir_mul(b, word, words);
        emit_numbers_by_tile(b, form, &s, line, word, item, numbers);
        hal_ir_value own_word = item;
        line = hal_ir_add(b, line, ops_divide_by_constant(b, WORDS_OF_TILE, &own_word));
        word = hal_ir_add(b, word, own_word);
    } else {
        const hal_ir_value first = hal_ir_mul(b, group, hal_ir_u32(b, items));
        line = emit_part(b, &s, hal_ir_add(b, first, item), &word);
        emit_numbers(b, &s, line, word, numbers);
    }
    const hal_ir_value is_line = hal_ir_lt(b, line, s.total);
    hal_ir_if(b, hal_ir_and(b, is_line, hal_ir_lt(b, word, s.words)));
    const hal_ir_value known = hal_ir_mul(b, line, hal_ir_u32(b, OPS_EXACT_LINE_WORDS));
    const hal_ir_value line_class =
        hal_ir_load_wide(b, form->slots[1], known, OPS_EXACT_LINE_CLASS, 1, HAL_IR_NONE);
    whole_number wholes[STEPS_OF_WORD];
    for (uint32_t i = 0; i < STEPS_OF_WORD; i++) {
        wholes[i] = emit_whole(b, numbers[i], line_class, s.bits);
    }
    const hal_ir_value index = hal_ir_add(b, hal_ir_mul(b, line, s.words), word);
    emit_planes(b, form, wholes, index, hal_ir_mul(b, s.total, s.words));
    hal_ir_end(b);
}

static void pass_begin(const ops_context *context, const ops_exact_lines *lines, bool splits,
                       lines_pass *p)
{
    const ops_tensor *x = &lines->x;
    memset(p, 0, sizeof *p);
    p->lines = (uint32_t)x->shape[1];
    p->total = (uint32_t)(x->shape[0] * x->shape[1]);
    ops_exact_operand_bind(context, &p->bindings, x, HAL_ACCESS_READ, &p->x);
    const int64_t words = (int64_t)OPS_EXACT_PLANES * p->total * (lines->steps / STEPS_OF_WORD);
    const int64_t known = (int64_t)OPS_EXACT_LINE_WORDS * p->total;
    const ops_tensor classes = {lines->classes, HAL_TYPE_U32, 1, 0, {known}, {1}};
    const ops_tensor planes = {lines->planes, HAL_TYPE_U32, 1, 0, {words}, {1}};
    p->form.slots[0] = p->x.slot;
    p->form.slots[1] = (uint8_t)ops_bind(context, &p->bindings, &classes,
                                         splits ? HAL_ACCESS_READ : HAL_ACCESS_WRITE);
    if (splits) {
        p->form.slots[2] = (uint8_t)ops_bind(context, &p->bindings, &planes, HAL_ACCESS_WRITE);
    }
    p->form.index64 = ops_exact_needs_index64(&p->bindings);
    p->form.by_lines = x->stride[2] != 1 && x->stride[1] == 1;
}

static void pass_put(const ops_exact_lines *lines, const lines_pass *p, ops_block *block)
{
    ops_block_begin(block);
    ops_exact_operand_put(&p->bindings, &p->x, p->form.index64, block);
    ops_put_u32(block, p->total);
    ops_put_u32(block, p->lines);
    ops_put_u32(block, (uint32_t)lines->x.shape[2]);
    ops_divisor_put(p->lines, block);
}

static void pass_key(const lines_pass *p, uint32_t family, ops_cache_key *key)
{
    ops_cache_key_begin(key, family);
    ops_cache_key_append(key, &p->form, sizeof p->form);
    ops_bindings_key(&p->bindings, p->form.slots, 3, key);
}

hal_status ops_exact_lines_classify(ops_context *context, const ops_exact_lines *lines)
{
    enum { APART = 4 };
    lines_pass p;
    pass_begin(context, lines, false, &p);
    p.form.line_items = p.form.by_lines ? NEIGHBOURS : 1;
    p.form.step_items = p.form.by_lines ? APART : NEIGHBOURS * APART;
    while (p.form.line_items * p.form.step_items > context->info->max_group_items) {
        p.form.step_items /= 2;
    }
    uint32_t grid[3];
    HAL_TRY(
        ops_grid_spread(context, "ops_gemm", ops_ceil_divide(p.total, p.form.line_items), grid));
    ops_cache_key key;
    ops_entry *entry;
    ops_block block;
    pass_key(&p, OPS_FAMILY_EXACT_CLASSES, &key);
    HAL_TRY(ops_cache_get(context, &key, "exact_classes", emit_classify, &p, &entry));
    pass_put(lines, &p, &block);
    return ops_dispatch(context, entry, grid, &p.bindings, &block);
}

hal_status ops_exact_lines_split(ops_context *context, const ops_exact_lines *lines, uint32_t bits)
{
    lines_pass p;
    pass_begin(context, lines, true, &p);
    const uint32_t words = lines->steps / STEPS_OF_WORD;
    const uint32_t parts = p.form.by_lines ? (words - 1) / WORDS_OF_TILE + 1 : words;
    p.form.is_left = lines->is_left;
    p.form.line_items = p.form.by_lines ? LINES_OF_TILE : 1;
    p.form.step_items = p.form.by_lines ? WORDS_OF_TILE : ops_group_items(context->info);
    while (p.form.line_items * p.form.step_items > context->info->max_group_items) {
        p.form.line_items /= 2;
    }
    const uint64_t groups = p.form.by_lines
                                ? ops_ceil_divide(p.total, p.form.line_items) * parts
                                : ops_ceil_divide((uint64_t)p.total * words, p.form.step_items);
    uint32_t grid[3];
    HAL_TRY(ops_grid_spread(context, "ops_gemm", groups, grid));
    ops_cache_key key;
    ops_entry *entry;
    ops_block block;
    pass_key(&p, OPS_FAMILY_EXACT_PLANES, &key);
    HAL_TRY(ops_cache_get(context, &key, "exact_planes", emit_split, &p, &entry));
    pass_put(lines, &p, &block);
    ops_put_u32(&block, words);
    ops_put_u32(&block, parts);
    ops_divisor_put(parts, &block);
    ops_put_u32(&block, bits);
    return ops_dispatch(context, entry, grid, &p.bindings, &block);
}
