/* Products of quantised weights, see ops/quantised.h: the kernel of emit_quantised.c for few rows;
 * else quantised_copied.c. */
#include "quantised.h"

#include "check.h"
#include "quantised_decode.h"
#include "record.h"
#include "tensor/loop_limit.h"
#include "tensor/overlap.h"

#include <stdio.h>

enum { MAX_UNROLL = 4 };

/* A checked call. */
typedef struct quantised_call {
    const ops_gemm_options *options;
    const ops_tensor *a, *c;
    ops_quantised_weights weights;
    int64_t m, batch;
    ops_tensor scales, zeros; /* of length 1 along k where one block has all of it */
} quantised_call;

/* Options that a product of quantised weights takes. */
static hal_status check_options(const ops_gemm_options **options)
{
    const ops_tensor *none = NULL;
    HAL_TRY(ops_gemm_resolve(options, &none));
    const ops_gemm_options *o = *options;
    HAL_TRY(ops_gemm_check_options(o));
    if (o->prepared || o->levels || o->a_sums || o->c_sums || o->config) {
        return ops_invalid("ops_gemm_quantised: options.%s: expected none, got one",
                           o->prepared ? "prepared"
                           : o->levels ? "levels"
                           : o->a_sums ? "a_sums"
                           : o->c_sums ? "c_sums"
                                       : "config");
    }
    return HAL_OK;
}

static hal_status call_check(const ops_context *context, const ops_gemm_options *options,
                             const ops_tensor *a, const ops_quantised *b, const ops_tensor *c,
                             quantised_call *call)
{
    HAL_TRY(check_options(&options));
    HAL_TRY(ops_quantised_check(context, "ops_gemm_quantised", "b", b, &call->weights));
    HAL_TRY(ops_check_tensor(context, "ops_gemm", "a", a));
    if (a->type != HAL_TYPE_F32 && a->type != HAL_TYPE_F16 && a->type != HAL_TYPE_BF16) {
        return ops_invalid("ops_gemm_quantised: a: expected f32, f16 or bf16, got %s",
                           hal_type_name(a->type));
    }
    const ops_tensor layout = ops_quantised_layout(&call->weights, a->type);
    HAL_TRY(ops_gemm_check_matrices(context, options, a, &layout, c));
    if (ops_overlap(&b->values, c) || ops_overlap(&b->scales, c) ||
        (b->zeros && ops_overlap(b->zeros, c))) {
        return ops_invalid("ops_gemm: c: expected memory that b does not use, got an overlap");
    }
    call->options = options;
    call->a = a;
    call->c = c;
    call->m = c->shape[c->rank - 2];
    call->batch = c->rank == 3 ? c->shape[0] : 1;
    return HAL_OK;
}

/* Whether numbers are all multiples of `of`, a power of two. */
static bool are_multiples(const int64_t *numbers, uint32_t count, int64_t of)
{
    int64_t bits = 0;
    for (uint32_t i = 0; i < count; i++) {
        bits |= numbers[i];
    }
    return (bits & (of - 1)) == 0;
}

static bool is_power_of_two(int64_t x)
{
    return x > 0 && (x & (x - 1)) == 0;
}

/* Rows up to which decoding in each product takes less time than a copy of the weights, or that the
 * kernel decodes weights for. */
static int64_t most_rows(const ops_context *context, const ops_gemm_options *options)
{
    return options->impl == OPS_GEMM_PORTABLE ? OPS_GEMM_QUANTISED_ROWS
                                              : context->tuning->gemm.quantised_rows;
}

/* Whether a kernel reads the packed weights of a call of few enough rows. */
static bool call_is_packed(const ops_context *context, const quantised_call *call)
{
    const ops_quantised_weights *w = &call->weights;
    const ops_tensor *v = &w->values;
    const int64_t row = v->shape[v->rank - 2] == 1 ? 1 : v->stride[v->rank - 2];
    const int64_t column = v->shape[v->rank - 1] == 1 ? 1 : v->stride[v->rank - 1];
    const bool has_blocks = w->block != w->k;
    const int64_t steps = ops_loop_limit(context, 0, 64);
    return call->options->impl != OPS_GEMM_NATIVE && (row == 1 || column == 1) &&
           steps >= w->k / OPS_GEMM_QUANTISED_STEPS &&
           (!has_blocks || (is_power_of_two(w->block) && w->block >= OPS_GEMM_QUANTISED_STEPS));
}

/* The product whose B is the bytes of the weights: as many rows as there are bytes. */
static void call_make_product(const quantised_call *call, ops_product *product)
{
    const ops_quantised_weights *w = &call->weights;
    const int64_t packed = 8 / w->bits, shape[3] = {call->batch, w->k / packed, w->n};
    ops_tensor whole = ops_quantised_layout(w, call->a->type);
    ops_product_init(product, call->options, call->a, &whole, call->c);
    const bool is_unread = product->a.columns == 0;
    product->b = ops_matrix_of(&w->values, shape);
    product->b.rows = is_unread ? 0 : product->b.rows;
}

/* Whether B can be read by words: each begins at a multiple of its bytes, and none is cut. */
static bool b_has_words(const ops_gemm_task *t, uint32_t bits)
{
    const ops_gemm_place *b = &t->work.b;
    const ops_gemm_kernel_key *key = &t->key;
    const bool along = key->b.k_contiguous;
    const int64_t bytes = along ? OPS_GEMM_QUANTISED_STEPS * bits / 8 : 4;
    const int64_t numbers[] = {b->base, b->batch_stride,
                               (int64_t)t->bindings.ranges[key->slots[1]].offset,
                               !along           ? b->row_stride
                               : t->work.n == 1 ? 0
                                                : b->column_stride};
    const int64_t length = along ? t->work.k : t->work.n;
    return are_multiples(numbers, 4, bytes) &&
           length % (along ? OPS_GEMM_QUANTISED_STEPS : OPS_GEMM_QUANTISED_COLUMNS) == 0;
}

/* Binds B as words, in which its strides count. */
static void b_set_words(ops_gemm_task *t)
{
    ops_gemm_place *b = &t->work.b;
    t->bindings.types[t->key.slots[1]] = HAL_TYPE_U32;
    t->key.quantisation.by_words = 1;
    b->base /= 4;
    b->batch_stride /= 4;
    b->row_stride = t->key.b.k_contiguous ? 1 : b->row_stride / 4;
    b->column_stride = t->key.b.k_contiguous ? b->column_stride / 4 : 1;
}

/* Elements of an access to A. */
static uint8_t a_width(const ops_gemm_task *t)
{
    const ops_gemm_place *a = &t->work.a;
    const uint32_t size = hal_type_size(t->key.type_ab), most = 16 / size;
    const int64_t numbers[] = {a->base, a->batch_stride, t->work.m > 1 ? a->row_stride : 0,
                               (int64_t)(t->bindings.ranges[t->key.slots[0]].offset / size),
                               t->work.k};
    uint32_t width = most < OPS_GEMM_QUANTISED_STEPS ? most : OPS_GEMM_QUANTISED_STEPS;
    while (width > 1 && !are_multiples(numbers, 5, width)) {
        width /= 2;
    }
    return t->key.a.k_contiguous ? (uint8_t)width : 1;
}

/* Work-items of a group: as few as have the partial sums of all rows in shared memory, since groups
 * that end leave room for others in small steps. */
static uint32_t choose_items(const hal_device_info *info, uint32_t rows)
{
    const uint32_t bytes = rows * OPS_GEMM_QUANTISED_COLUMNS * 4;
    uint32_t items = 128;
    while (items > 1 && (items > info->max_group_items || items > info->max_group_size[0] ||
                         items * bytes > info->shared_bytes)) {
        items /= 2;
    }
    return items;
}

/* Groups that a unit has at once: what registers allow on GPUs. */
static uint32_t resident_groups(uint32_t rows)
{
    return rows == 1 ? 5 : rows <= 4 ? 4 : 2;
}

/* The time of a product by so many slices, in turns of one group while its unit has as many as it
 * can. A group that is alone is bound by latency: it takes as long as some. */
static uint64_t slices_time(const ops_context *context, const ops_gemm_task *t, uint32_t rows,
                            uint32_t items, uint32_t slices)
{
    enum { GROUP_TURNS = 6, ALONE = 3 }; /* of the start and the end of a group */
    const uint32_t units = context->info->compute_units ? context->info->compute_units : 1;
    const uint32_t columns = items / slices * OPS_GEMM_QUANTISED_COLUMNS;
    const uint64_t groups =
        ops_gemm_blocks(t->work.n, columns) * ops_gemm_blocks(t->work.m, rows) * t->product.batch;
    const uint64_t turns =
        ops_gemm_blocks(t->work.k, slices * OPS_GEMM_QUANTISED_STEPS) + GROUP_TURNS;
    const uint64_t most = ops_gemm_blocks(groups, units), at_once = resident_groups(rows);
    const uint64_t rest = most % at_once, alone = rest && rest < ALONE ? ALONE : rest;
    const uint64_t time = (most / at_once * at_once + alone) * turns;
    /* Rows of B are read in pieces of less than 16 bytes. */
    const bool is_narrow = !t->key.b.k_contiguous && columns < OPS_GEMM_QUANTISED_COLUMNS * 4;
    return is_narrow ? time + time / 4 : time;
}

/* The slices of k that a group sums, of those by which neighbours read whole lines of memory. */
static uint32_t choose_slices(const ops_context *context, const ops_gemm_task *t, uint32_t rows,
                              uint32_t items)
{
    enum { LINE_SLICES = 32 };
    const uint32_t along = t->key.b.k_contiguous ? LINE_SLICES : 1;
    const uint32_t first = along < items ? along : items;
    uint32_t best = first;
    uint64_t least = slices_time(context, t, rows, items, first);
    for (uint32_t slices = 2 * first; slices <= items; slices *= 2) {
        const uint64_t time = slices_time(context, t, rows, items, slices);
        best = time < least ? slices : best;
        least = time < least ? time : least;
    }
    while (best > 1 && best / 2 * OPS_GEMM_QUANTISED_STEPS >= t->work.k) {
        best /= 2;
    }
    return best;
}

static void choose_tiles(const ops_context *context, ops_gemm_task *t, uint32_t bits)
{
    uint32_t rows = 1;
    while (rows < OPS_GEMM_QUANTISED_ROWS && rows < t->work.m) {
        rows *= 2;
    }
    const uint32_t items = choose_items(context->info, rows);
    const uint32_t slices = choose_slices(context, t, rows, items), lanes = items / slices;
    uint32_t unroll = bits == 4 && rows <= 2 ? MAX_UNROLL : 2;
    while (unroll > 1 && (uint64_t)unroll * slices * OPS_GEMM_QUANTISED_STEPS > t->work.k) {
        unroll /= 2;
    }
    t->key.tiles = (ops_gemm_tiles){.block_m = (uint16_t)rows,
                                    .block_n = (uint16_t)(lanes * OPS_GEMM_QUANTISED_COLUMNS),
                                    .block_k = OPS_GEMM_QUANTISED_STEPS,
                                    .intra_group_split_k = (uint16_t)slices,
                                    .lanes_m = 1,
                                    .lanes_n = (uint16_t)lanes,
                                    .thread_m = (uint8_t)rows,
                                    .thread_n = OPS_GEMM_QUANTISED_COLUMNS,
                                    .strip_m = 1,
                                    .strip_n = OPS_GEMM_QUANTISED_COLUMNS,
                                    .min_groups_per_unit = (uint8_t)resident_groups(rows),
                                    .unroll = (uint8_t)unroll};
    t->key.whole = t->work.k % (slices * unroll * OPS_GEMM_QUANTISED_STEPS) == 0;
}

/* The places of a matrix of blocks; a length of 1 broadcasts. */
static ops_matrix blocks_matrix(const quantised_call *call, const ops_tensor *t)
{
    const ops_quantised_weights *w = &call->weights;
    const int64_t shape[3] = {call->batch, w->block ? w->k / w->block : 1, w->n};
    ops_matrix m = ops_matrix_of(t, shape);
    m.column_stride = t->shape[t->rank - 1] == 1 ? 0 : m.column_stride;
    return m;
}

/* Describes the kernel that reads the packed weights of a call; false where a copy of them is
 * expected to be faster, or nothing else computes it. With a k of 0 nothing is read. */
static hal_status task_make(const ops_context *context, const quantised_call *call,
                            ops_gemm_task *t, bool *is_packed)
{
    const ops_quantised_weights *w = &call->weights;
    const ops_quantised *q = w->given;
    const bool is_unread = w->k == 0 || call->options->alpha == 0;
    const bool has_few =
        is_unread || (call->m <= most_rows(context, call->options) && !context->quantised.copied);
    const bool has_units =
        !is_unread &&
        ops_quantised_units_serve(context, call->options->precision, call->a->type, call->m, w);
    *is_packed = call_is_packed(context, call) && (has_few || has_units);
    if (!*is_packed) {
        return HAL_OK;
    }
    call_make_product(call, &t->product);
    t->key = (ops_gemm_kernel_key){
        .quantisation = {.format = (uint8_t)q->format,
                         .is_blocked = w->block != w->k,
                         .has_zeros = q->zeros != NULL,
                         .scales_are_exponents = q->scales.type == HAL_TYPE_U8,
                         .has_denormals = ops_quantised_is_float(q->format) &&
                                          (context->info->exactness & HAL_EXACT_DENORMALS)}};
    t->given = NULL;
    t->k_all = (uint32_t)t->product.a.columns;
    t->batch_first = 0;
    t->is_general = false;
    t->scales = blocks_matrix(call, &q->scales);
    t->zeros = blocks_matrix(call, q->zeros ? q->zeros : &q->scales);
    HAL_TRY(ops_gemm_task_describe(context, t));
    t->work.zero = q->zero;
    t->work.block_shift = t->key.quantisation.is_blocked ? (uint32_t)__builtin_ctzll(w->block) : 0;
    const ops_gemm_place *a = &t->work.a, *b = &t->work.b;
    t->key.a = (ops_gemm_operand){.k_contiguous = a->column_stride == 1,
                                  .any_layout = a->column_stride != 1};
    t->key.b = (ops_gemm_operand){.k_contiguous = b->row_stride == 1 &&
                                                  (b->column_stride != 1 || t->work.n == 1),
                                  .width = 1};
    t->key.unit_c = t->product.c.column_stride == 1;
    t->key.width_c = 1;
    if (has_units && ops_quantised_units_complete(context, w, t)) {
        return HAL_OK;
    }
    *is_packed = has_few;
    t->key.a.width = a_width(t);
    if (b_has_words(t, w->bits)) {
        b_set_words(t);
    }
    choose_tiles(context, t, w->bits);
    return HAL_OK;
}

static ops_quantised_copied call_copied(const quantised_call *call)
{
    return (ops_quantised_copied){call->options, call->a, call->c, &call->weights};
}

hal_status ops_gemm_quantised(ops_context *context, const ops_gemm_options *options,
                              const ops_tensor *a, const ops_quantised *b, const ops_tensor *c)
{
    quantised_call call;
    ops_gemm_task t;
    ops_entry *entry;
    bool is_packed;
    HAL_TRY(call_check(context, options, a, b, c, &call));
    if (call.m == 0 || call.weights.n == 0 || call.batch == 0) {
        return HAL_OK;
    }
    HAL_TRY(task_make(context, &call, &t, &is_packed));
    if (!is_packed) {
        const ops_quantised_copied copied = call_copied(&call);
        return ops_quantised_copied_run(context, &copied);
    }
    HAL_TRY(ops_gemm_task_find_kernel(context, &t, &entry));
    return ops_gemm_task_record(context, &t, entry, NULL);
}

hal_status ops_gemm_quantised_describe(ops_context *context, const ops_gemm_options *options,
                                       const ops_tensor *a, const ops_quantised *b,
                                       const ops_tensor *c, uint64_t bytes, char *text)
{
    quantised_call call;
    ops_gemm_task t;
    if (!text || bytes == 0) {
        return ops_invalid("ops_gemm_quantised_describe: text: expected memory for a line, got %s",
                           text ? "0 bytes" : "null");
    }
    text[0] = 0;
    HAL_TRY(call_check(context, options, a, b, c, &call));
    const ops_quantised_weights *w = &call.weights;
    const int count =
        snprintf(text, bytes, "%lld x %lld x %lld, %u bits, blocks of %lld: ", (long long)call.m,
                 (long long)w->n, (long long)w->k, w->bits, (long long)w->block);
    char *end = text + ((uint64_t)count < bytes ? (uint64_t)count : bytes - 1);
    const uint64_t left = bytes - (uint64_t)(end - text);
    bool is_packed;
    HAL_TRY(task_make(context, &call, &t, &is_packed));
    if (!is_packed) {
        const ops_quantised_copied copied = call_copied(&call);
        const int64_t columns = ops_quantised_copied_columns(context, &copied);
        snprintf(end, left, "copied as %s%s", hal_type_name(a->type),
                 columns < w->n ? ", in pieces" : "");
        return HAL_OK;
    }
    const ops_gemm_tiles *tiles = &t.key.tiles;
    snprintf(end, left, "packed%s, along %s by %s, %u rows x %u columns, %u slices of k, unroll %u",
             t.key.unit_words ? " for matrix units" : "", t.key.b.k_contiguous ? "k" : "rows",
             t.key.quantisation.by_words ? "words" : "bytes", tiles->block_m, tiles->block_n,
             tiles->intra_group_split_k, tiles->unroll);
    return HAL_OK;
}
