/* One kernel of a product, see task.h. */
#include "task.h"

#include "kernel.h"
#include "tiles.h"
#include "tensor/dispatch.h"
#include "tensor/kernel_cache.h"

#include <hal/profile.h>

#include <stddef.h>
#include <string.h>

/* A, B, C, the epilogue's inputs, scales and zeros or offsets. */
enum { MATRICES = 5 + OPS_GEMM_MAX_INPUTS };

static void matrix_place(const ops_bindings *bindings, uint32_t slot, const ops_matrix *matrix,
                         ops_gemm_place *place)
{
    *place = (ops_gemm_place){ops_base(bindings, slot, matrix->tensor), matrix->row_stride,
                              matrix->column_stride, matrix->batch_stride, matrix->separable};
}

/* The matrices of a task, and where their places are put. Returns how many there are. */
static uint32_t task_list_matrices(ops_gemm_task *t, const ops_matrix *matrices[MATRICES],
                                   ops_gemm_place *places[MATRICES])
{
    const ops_product *p = &t->product;
    const ops_matrix *first[3] = {&p->a, &p->b, &p->c};
    ops_gemm_place *first_places[3] = {&t->work.a, &t->work.b, &t->work.c};
    uint32_t count = 3 + p->options->input_count;
    for (uint32_t i = 0; i < count; i++) {
        matrices[i] = i < 3 ? first[i] : &p->inputs[i - 3];
        places[i] = i < 3 ? first_places[i] : &t->work.inputs[i - 3];
    }
    if (t->key.quantisation.format) {
        matrices[count] = &t->scales;
        places[count++] = &t->work.scales;
    }
    if (t->key.quantisation.has_zeros) {
        matrices[count] = &t->zeros;
        places[count++] = &t->work.zeros;
    }
    if (t->key.grouped) {
        matrices[count] = &t->offsets;
        places[count++] = &t->work.groups.offsets;
    }
    return count;
}

static hal_status task_bind(const ops_context *context, ops_gemm_task *t)
{
    const ops_product *p = &t->product;
    const ops_matrix *matrices[MATRICES];
    ops_gemm_place *places[MATRICES];
    uint8_t slots[MATRICES];
    const uint32_t count = task_list_matrices(t, matrices, places);
    t->bindings.count = 0;
    t->key.beta_is_zero = p->options->beta == 0;
    slots[2] = (uint8_t)ops_bind(context, &t->bindings, p->c.tensor,
                                 t->key.beta_is_zero ? HAL_ACCESS_WRITE : HAL_ACCESS_READ_WRITE);
    for (uint32_t i = 0; i < count; i++) {
        if (i != 2 && !(i == 0 && t->key.reduce_partials)) {
            slots[i] =
                (uint8_t)ops_bind(context, &t->bindings, matrices[i]->tensor, HAL_ACCESS_READ);
        }
    }
    if (t->key.reduce_partials) {
        slots[0] = slots[1];
    }
    ops_bindings_merge(&t->bindings, slots, count);
    if (t->bindings.count > context->info->max_bindings) {
        return hal_status_set(HAL_ERROR_UNSUPPORTED,
                              "ops_gemm: options.inputs: expected at most %u tensors, which %s "
                              "binds, got %u",
                              context->info->max_bindings, context->info->name, count);
    }
    for (uint32_t i = 0; i < count; i++) {
        matrix_place(&t->bindings, slots[i], matrices[i], places[i]);
    }
    const uint32_t listed = 3 + p->options->input_count;
    memcpy(t->key.slots, slots, listed);
    t->key.offset_slot = t->key.grouped ? slots[listed] : 0;
    if (t->key.grouped) {
        return HAL_OK;
    }
    t->key.quantisation.scale_slot = count > listed ? slots[listed] : 0;
    t->key.quantisation.zero_slot = count > listed + 1 ? slots[listed + 1] : 0;
    return HAL_OK;
}

static int64_t highest_index(const ops_matrix *matrix, int64_t base, uint32_t batch)
{
    const ops_gemm_separable *s = matrix->separable;
    if (s) { /* of C the columns alone, and the stride of columns is that of a line */
        const int64_t k =
            s->k.count ? ops_gemm_digits_reach(&s->k) : (matrix->rows - 1) * matrix->row_stride;
        const int64_t batches = ((int64_t)batch - 1) * matrix->batch_stride;
        return base + batches + k + ops_gemm_digits_reach(&s->line);
    }
    const int64_t reach[3] = {(matrix->rows - 1) * matrix->row_stride,
                              (matrix->columns - 1) * matrix->column_stride,
                              ((int64_t)batch - 1) * matrix->batch_stride};
    for (uint32_t i = 0; i < 3; i++) {
        base += reach[i] > 0 ? reach[i] : 0;
    }
    return base;
}

/* `width` is a power of two. */
static bool all_multiples(const int64_t *numbers, uint32_t count, uint32_t width)
{
    uint64_t bits = 0;
    for (uint32_t i = 0; i < count; i++) {
        bits |= (uint64_t)numbers[i];
    }
    return (bits & (width - 1)) == 0;
}

/* What the places of a separable operand are multiples of, bit by bit; of others, their stride. */
static int64_t far_bits(const ops_gemm_place *p, const ops_gemm_operand *operand,
                        int64_t far_stride)
{
    const ops_gemm_separable *s = p->separable;
    return s ? ops_gemm_digits_bits(&s->line, !operand->k_contiguous) |
                   ops_gemm_digits_bits(&s->k, operand->k_contiguous)
             : far_stride;
}

/* The most elements of one access. */
static uint32_t widest_access(hal_type type)
{
    enum { MOST = 8, BYTES = 16 };
    const uint32_t width = BYTES / hal_type_size(type);
    return width < MOST ? width : MOST;
}

/* Elements of one access to A or B. hal splits accesses that are too wide for the device. */
static uint8_t operand_width(const ops_gemm_task *t, const ops_gemm_place *p,
                             const ops_gemm_operand *operand, uint32_t slot, int64_t lines,
                             int64_t far_stride, bool is_b)
{
    const ops_gemm_tiles *tiles = &t->key.tiles;
    uint32_t size = hal_type_size(t->key.type_ab);
    uint32_t width = widest_access(t->key.type_ab);
    uint32_t block = is_b ? tiles->block_n : tiles->block_m;
    block = tiles->stages ? block : is_b ? tiles->strip_n : tiles->strip_m;
    block = operand->k_contiguous ? tiles->block_k : block;
    width = width < block ? width : block;
    const bool direct = !tiles->stages && !tiles->unroll;
    if (tiles->stages > 2 && operand->k_contiguous) {
        return 1; /* an asynchronous copy cannot transpose */
    }
    /* Direct kernels read the remainder of k one by one. */
    const int64_t steps = t->work.k | t->work.k_all;
    int64_t near = operand->k_contiguous ? (direct ? 0 : steps) : lines;
    int64_t numbers[5] = {near, p->base, far_bits(p, operand, far_stride), p->batch_stride,
                          (int64_t)(t->bindings.ranges[slot].offset / size)};
    if (operand->k_contiguous && lines == 1 && !p->separable) {
        numbers[2] = 0; /* there is no second line */
    }
    while (width > 1 && !all_multiples(numbers, 5, width)) {
        width /= 2;
    }
    return (uint8_t)(width ? width : 1);
}

/* Elements of the widest access to A or B that matrix units read through, of at most 16 bytes;
 * `start`: bits of the elements before the operand that count. */
static uint8_t unit_width(const ops_gemm_task *t, const ops_gemm_place *p,
                          const ops_gemm_operand *operand, int64_t start, bool is_b)
{
    const bool along_rows = is_b != operand->k_contiguous; /* of the matrix as it is */
    const uint32_t size = hal_type_size(t->key.type_ab);
    const int64_t near = operand->k_contiguous ? t->work.k | t->work.k_all
                         : is_b                ? t->work.n
                                               : t->work.m;
    const int64_t far_stride = along_rows ? p->row_stride : p->column_stride;
    const int64_t numbers[4] = {near, start, far_bits(p, operand, far_stride), p->batch_stride};
    uint32_t width = 16 / size;
    while (width > 1 && !all_multiples(numbers, 4, width)) {
        width /= 2;
    }
    return (uint8_t)width;
}

/* Halves are read as words of two, and strides count words, or one by one, as integers. */
static void bind_halves(ops_gemm_task *t, ops_gemm_place *p, uint32_t slot, uint32_t width)
{
    if (width == 1) {
        t->bindings.types[slot] = HAL_TYPE_U16;
        return;
    }
    t->bindings.types[slot] = HAL_TYPE_U32;
    p->base /= 2;
    p->row_stride /= 2;
    p->column_stride /= 2;
    p->batch_stride /= 2;
}

/* The base of an operand and the start of its binding, in elements, combined bit by bit. */
static int64_t start_bits(const ops_gemm_task *t, const ops_gemm_place *p, uint32_t slot)
{
    return p->base | (int64_t)(t->bindings.ranges[slot].offset / hal_type_size(t->key.type_ab));
}

/* Sets the widths that lengths and strides allow, which the choice of tiles depends on: where
 * operands begin has no part in the order of additions. */
static void set_choice_widths(const ops_gemm_task *t, ops_gemm_kernel_key *key)
{
    key->a.width = unit_width(t, &t->work.a, &key->a, 0, 0);
    key->b.width = unit_width(t, &t->work.b, &key->b, 0, 1);
}

/* Sets the widths of matrix units' accesses to A and B; returns the bytes of the narrower one. */
static uint32_t set_unit_widths(const ops_gemm_task *t, ops_gemm_kernel_key *key)
{
    const uint32_t slot_a = key->slots[0], slot_b = key->slots[1];
    key->a.width = unit_width(t, &t->work.a, &key->a, start_bits(t, &t->work.a, slot_a), 0);
    key->b.width = unit_width(t, &t->work.b, &key->b, start_bits(t, &t->work.b, slot_b), 1);
    if (slot_a == slot_b) {
        const uint8_t least = key->a.width < key->b.width ? key->a.width : key->b.width;
        key->a.width = key->b.width = least;
    }
    return ops_gemm_access_bytes(key);
}

/* Whether bindings and storage allow matrix units' accesses of that many bytes: halves inside of
 * words need 16-bit storage. */
static bool units_can_read(const ops_context *context, const ops_gemm_task *t, uint32_t access)
{
    return t->bindings.access[t->key.slots[0]] == HAL_ACCESS_READ &&
           t->bindings.access[t->key.slots[1]] == HAL_ACCESS_READ &&
           (access >= 4 || (context->info->storage_types & HAL_TYPE_BIT(HAL_TYPE_U16)));
}

/* Tiles are chosen as if operands began where vectors can. With narrower accesses twice as many
 * work-items share a tile, since each copies the same words of all its rows. Asynchronous copies
 * have whole words; single halves pass through registers. The order of additions is the same. */
static void fit_narrow_accesses(ops_gemm_kernel_key *key, uint32_t access)
{
    ops_gemm_tiles *tiles = &key->tiles;
    const bool shares = tiles->thread_n == 16 && tiles->block_n <= 128 && access < 16;
    const bool is_late = access == 2 && tiles->stages > 2;
    tiles->thread_n = (uint8_t)(shares ? tiles->thread_n / 2 : tiles->thread_n);
    tiles->stages = is_late ? 2 : tiles->stages;
    tiles->min_groups_per_unit = shares || is_late ? 1 : tiles->min_groups_per_unit;
}

/* Makes the accesses of tiles for matrix units. */
static void complete_matrix_units(ops_gemm_task *t)
{
    ops_gemm_kernel_key *key = &t->key;
    const uint32_t size = hal_type_size(key->type_ab);
    fit_narrow_accesses(key, set_unit_widths(t, key));
    if (size == 2 && !key->a.k_contiguous) {
        key->tiles.strip_m = 2; /* words of two rows */
    }
    if (size == 2) {
        bind_halves(t, &t->work.a, key->slots[0], key->a.width);
        bind_halves(t, &t->work.b, key->slots[1], key->b.width);
    }
}

/* Sets everything that does not depend on the choice of tiles. */
static void describe_work(ops_gemm_task *t)
{
    const ops_product *p = &t->product;
    const ops_gemm_options *options = p->options;
    ops_gemm_kernel_key *key = &t->key;
    ops_gemm_work *work = &t->work;
    work->alpha = options->alpha;
    work->beta = options->beta;
    work->m = (uint32_t)p->c.rows;
    work->n = (uint32_t)p->c.columns;
    work->k = (uint32_t)p->a.columns;
    work->k_all = t->k_all;
    work->part = work->k == t->k_all ? 0 : work->k;
    key->type_ab = p->a.tensor->type;
    key->type_c = p->c.tensor->type;
    key->accumulator = p->accumulator;
    key->alpha_is_one = options->alpha == 1;
    key->epilogue = options->epilogue;
    key->input_count = (uint8_t)options->input_count;
    key->split_k = t->k_all % (work->k ? work->k : 1) != 0 ||
                   (work->k != t->k_all && (p->a.separable || p->b.separable));
    key->scale_only = work->k == 0;
}

/* Chooses the width of indices and the steps of the further inputs. */
static void choose_indices(const ops_context *context, ops_gemm_task *t)
{
    const ops_product *p = &t->product;
    const ops_gemm_work *work = &t->work;
    ops_gemm_kernel_key *key = &t->key;
    int64_t far = highest_index(&p->a, work->a.base, p->batch), other;
    far = (other = highest_index(&p->b, work->b.base, p->batch)) > far ? other : far;
    far = (other = highest_index(&p->c, work->c.base, p->batch)) > far ? other : far;
    for (uint32_t i = 0; i < key->input_count; i++) {
        const ops_matrix *input = &p->inputs[i];
        far = (other = highest_index(input, work->inputs[i].base, p->batch)) > far ? other : far;
        key->row_step[i] = ops_inner_step(input->rows == 1 ? 0 : input->row_stride);
        key->column_step[i] = ops_inner_step(input->columns == 1 ? 0 : input->column_stride);
    }
    if (key->quantisation.format) {
        far = (other = highest_index(&t->scales, work->scales.base, p->batch)) > far ? other : far;
        other =
            key->quantisation.has_zeros ? highest_index(&t->zeros, work->zeros.base, p->batch) : 0;
        far = other > far ? other : far;
    }
    if (key->grouped) {
        far =
            (other = highest_index(&t->offsets, work->groups.offsets.base, 1)) > far ? other : far;
    }
    key->index64 = far >= context->tuning->index32_limit;
}

static void choose_digits(const ops_product *p, ops_gemm_kernel_key *key)
{
    const ops_gemm_separable *a = p->a.separable, *b = p->b.separable, *c = p->c.separable;
    key->a.line_digits = (uint8_t)(a ? a->line.count : 0);
    key->a.k_digits = (uint8_t)(a ? a->k.count : 0);
    key->b.line_digits = (uint8_t)(b ? b->line.count : 0);
    key->b.k_digits = (uint8_t)(b ? b->k.count : 0);
    key->c_digits = (uint8_t)(c ? c->line.count : 0);
}

/* Chooses the direction in which operands are contiguous. */
static void choose_directions(const hal_device_info *info, ops_gemm_task *t)
{
    const ops_product *p = &t->product;
    const ops_gemm_work *work = &t->work;
    ops_gemm_kernel_key *key = &t->key;
    key->fused = hal_type_is_float(key->accumulator) && (info->exactness & HAL_EXACT_FMA) != 0;
    key->a.k_contiguous = key->reduce_partials || p->a.column_stride == 1;
    /* A single column is contiguous both ways; GPUs read vectors along k. */
    key->b.k_contiguous = !key->reduce_partials &&
                          (p->b.column_stride != 1 ||
                           (info->kind != HAL_DEVICE_CPU && work->n == 1 && p->b.row_stride == 1));
    choose_digits(p, key);
}

static bool product_is_separable(const ops_product *p)
{
    return p->a.separable || p->b.separable;
}

/* The rows of a product: of groups, whose lengths the device knows, the mean. */
static uint32_t typical_rows(const ops_gemm_task *t)
{
    const uint32_t groups = t->key.grouped ? t->product.batch : 1;
    return (t->work.m + groups - 1) / groups;
}

/* What the choice of tiles depends on. */
ops_gemm_shape ops_gemm_task_shape(const ops_context *context, const ops_gemm_task *t)
{
    const ops_gemm_kernel_key *key = &t->key;
    const uint32_t precision = t->product.precision;
    ops_gemm_kernel_key units = *key;
    ops_gemm_shape shape = {.tuning = &context->tuning->gemm,
                            .m = typical_rows(t),
                            .n = t->work.n,
                            .k = t->work.k,
                            .batch = t->product.batch,
                            .precision = precision,
                            .type = key->type_ab,
                            .is_staged = product_is_separable(&t->product),
                            .a_k_contiguous = key->a.k_contiguous,
                            .b_k_contiguous = key->b.k_contiguous};
    const uint32_t access = set_unit_widths(t, &units);
    set_choice_widths(t, &units);
    shape.a_width = units.a.width;
    shape.b_width = units.b.width;
    if (ops_gemm_units_multiply(context->info, shape.tuning, precision, shape.m, shape.n, shape.k,
                                shape.type) &&
        units_can_read(context, t, access)) {
        shape.access = ops_gemm_access_bytes(&units);
    }
    return shape;
}

void ops_gemm_task_choose_tiles(const ops_context *context, const ops_gemm_task *t,
                                ops_gemm_tiles *tiles)
{
    const hal_device_info *info = context->info;
    const ops_gemm_tuning *tuning = &context->tuning->gemm;
    const ops_gemm_work *work = &t->work;
    const ops_gemm_kernel_key *key = &t->key;
    const uint32_t width = hal_type_size(key->type_ab), batch = t->product.batch;
    if (key->scale_only) {
        ops_gemm_choose_scale_tiles(info, tuning, work->m, work->n, tiles);
    } else if (key->reduce_partials) {
        ops_gemm_choose_reduce_tiles(info, tuning, work->m, work->n, work->k, width, tiles);
    } else if (ops_gemm_is_gpu(info)) {
        const ops_gemm_shape shape = ops_gemm_task_shape(context, t);
        ops_gemm_candidate candidate;
        ops_gemm_find_candidate(info, &shape, 0, 1, &candidate);
        *tiles = candidate.tiles;
    } else if (product_is_separable(&t->product)) {
        *tiles = ops_gemm_least_staged_tiles();
    } else {
        ops_gemm_choose_cpu_tiles(info, tuning, typical_rows(t), work->n, batch, width,
                                  key->b.k_contiguous, tiles);
    }
}

static void choose_operand_widths(ops_gemm_task *t)
{
    const ops_matrix *a = &t->product.a, *b = &t->product.b;
    ops_gemm_kernel_key *key = &t->key;
    key->a.width = operand_width(t, &t->work.a, &key->a, key->slots[0], t->work.m,
                                 key->a.k_contiguous ? a->row_stride : a->column_stride, 0);
    key->b.width = operand_width(t, &t->work.b, &key->b, key->slots[1], t->work.n,
                                 key->b.k_contiguous ? b->column_stride : b->row_stride, 1);
}

/* The neighbours of a row of C, at most `most`, that one access can store. */
static uint32_t store_width(const ops_gemm_task *t, uint32_t most)
{
    const ops_matrix *c = &t->product.c;
    const int64_t numbers[5] = {t->work.n, t->work.c.base, c->row_stride, c->batch_stride,
                                (int64_t)t->bindings.ranges[t->key.slots[2]].offset /
                                    hal_type_size(t->key.type_c)};
    const int64_t bits = c->separable ? ops_gemm_digits_bits(&c->separable->line, true) : 0;
    while (most > 1 && (c->column_stride != 1 || !all_multiples(numbers, 5, most) ||
                        !all_multiples(&bits, 1, most))) {
        most /= 2;
    }
    return most;
}

/* Where lanes have several neighbours of a row of C that they cannot store at once, each store of a
 * warp has gaps. Then neighbouring lanes have neighbouring columns, as far as B's reads from shared
 * memory, in more accesses, take less time than the stores (f32, H200: 4557 x 1723 x 47 takes 64 us
 * with strips of 4 columns, 47 with 2, 40 with 1; with k = 400 181, 163, 167). No access has more
 * than 16 bytes: that is two columns of F64. */
static void choose_strip(ops_gemm_task *t)
{
    enum { FEW_STEPS = 128, MANY_STEPS = 1024, BYTES = 16 };
    ops_gemm_tiles *tiles = &t->key.tiles;
    const uint32_t size = hal_type_size(t->key.type_c), access = BYTES / size;
    const uint32_t most = tiles->strip_n < access ? tiles->strip_n : access;
    const uint32_t width = store_width(t, most), k = t->work.k;
    const uint32_t steps = k <= FEW_STEPS ? 1 : k <= MANY_STEPS ? 2 : 4;
    const uint32_t least = steps < access ? steps : access;
    if (tiles->stages && !tiles->matrix && width < tiles->strip_n && least < tiles->strip_n) {
        tiles->strip_n = (uint8_t)(width > least ? width : least);
    }
}

/* Finds whether the matrices are multiples of the tiles, and chooses the accesses to C. */
static void choose_stores(ops_gemm_task *t)
{
    const ops_matrix *c = &t->product.c;
    const ops_gemm_work *work = &t->work;
    ops_gemm_kernel_key *key = &t->key;
    const ops_gemm_tiles *tiles = &key->tiles;
    const uint32_t turn = tiles->unroll
                              ? tiles->block_k * tiles->intra_group_split_k * tiles->unroll
                          : tiles->stages ? tiles->block_k
                                          : 1; /* direct: any remainder of k */
    key->whole = !key->grouped && work->m % tiles->block_m == 0 && work->n % tiles->block_n == 0 &&
                 work->k % turn == 0 && work->k_all % turn == 0;
    key->unit_c = c->column_stride == 1;
    key->width_c = (uint8_t)(store_width(t, tiles->strip_n) < tiles->strip_n ? 1 : tiles->strip_n);
}

static void emit_task(hal_ir_builder *b, const void *user)
{
    const ops_gemm_task *t = user;
    ops_declare_bindings(b, &t->bindings);
    ops_gemm_emit(b, &t->key);
}

hal_status ops_gemm_task_describe(const ops_context *context, ops_gemm_task *t)
{
    HAL_TRY(task_bind(context, t));
    describe_work(t);
    choose_indices(context, t);
    choose_directions(context->info, t);
    return HAL_OK;
}

/* Intra-group split-K, and kernels of few steps of k, in which a work-item adds all. */
static void slices_describe(const ops_gemm_task *t, uint32_t items, uint32_t rows,
                            ops_gemm_slices *s)
{
    const ops_gemm_tiles *tiles = &t->key.tiles;
    const uint32_t slices = tiles->intra_group_split_k, columns = OPS_GEMM_ANY_COLUMNS;
    const uint32_t lanes = items / slices, parts = ops_gemm_intra_group_parts(tiles);
    uint32_t lanes_n = 1;
    while (lanes_n < lanes && lanes_n * columns < t->work.n) {
        lanes_n *= 2;
    }
    *s = (ops_gemm_slices){.block_m = lanes / lanes_n * rows,
                           .block_n = lanes_n * columns,
                           .width = lanes * columns,
                           .steps = tiles->block_k,
                           .stride = slices * tiles->block_k,
                           .turn = slices * tiles->block_k * tiles->unroll,
                           .parts = parts,
                           .first_pairs = (uint32_t)__builtin_ctz(slices / parts),
                           .last_pairs = (uint32_t)__builtin_ctz(parts)};
    if (!tiles->unroll) { /* nothing fills k up */
        s->steps = s->stride = t->work.k;
        s->turn = 1;
    }
}

/* Tiles without staging become scalars of their general kernel, if the device has room. */
static void choose_any_slices(const hal_device_info *info, ops_gemm_task *t)
{
    enum { ROWS = 4 };
    const uint8_t rows = (uint8_t)(t->work.m == 1 || t->key.reduce_partials ? 1 : ROWS);
    const uint32_t columns = OPS_GEMM_ANY_COLUMNS;
    const uint32_t bytes = columns * ROWS * hal_type_size(t->key.accumulator);
    uint32_t items = OPS_GEMM_ANY_ITEMS;
    while (items > info->max_group_items || items > info->max_group_size[0] ||
           items * bytes > info->shared_bytes) {
        items /= 2;
    }
    if (t->key.tiles.intra_group_split_k > items) {
        return;
    }
    slices_describe(t, items, rows, &t->work.slices);
    t->key.tiles = (ops_gemm_tiles){.block_m = rows,
                                    .block_n = (uint16_t)columns,
                                    .block_k = 1,
                                    .intra_group_split_k = 1,
                                    .thread_m = rows,
                                    .thread_n = (uint8_t)columns,
                                    .strip_m = 1,
                                    .strip_n = 1,
                                    .lanes_m = 1,
                                    .lanes_n = (uint16_t)items,
                                    .unroll = 1,
                                    .any_slices = 1};
}

/* Whether a GPU's kernel stages nothing, and no matrix units multiply. */
static bool is_unstaged(const ops_gemm_kernel_key *key)
{
    const ops_gemm_tiles *tiles = &key->tiles;
    return !key->scale_only && !tiles->matrix &&
           (tiles->unroll > 0 || (tiles->stages == 0 && tiles->lanes_n > 0));
}

/* Whether zeros fill k up to whole tiles. */
static bool is_staged(const ops_gemm_tiles *tiles)
{
    return tiles->stages > 0 && tiles->unroll == 0 && tiles->matrix == 0;
}

/* Whether the text of a general kernel has loops over steps, rows and columns. */
static bool is_looped(const hal_device_info *info, const ops_gemm_kernel_key *key)
{
    const bool has_vectors = info->item_vector_bytes > 0 && !key->tiles.stages;
    return is_staged(&key->tiles) || (has_vectors && !key->scale_only && !key->tiles.matrix);
}

static void operand_generalise(ops_gemm_operand *operand)
{
    const uint8_t digits = operand->line_digits ? OPS_GEMM_MAX_DIGITS : 0;
    *operand =
        (ops_gemm_operand){.width = 1, .any_layout = 1, .line_digits = digits, .k_digits = digits};
}

/* The accesses of a class: single elements of any layout, through scalar strides. Processors, which
 * read rows of B as vectors, keep the layout of B, and whether vectors are as wide as they can be.
 */
static void complete_general(ops_gemm_task *t)
{
    ops_gemm_kernel_key *key = &t->key;
    const ops_gemm_tiles *tiles = &key->tiles;
    const uint32_t most = widest_access(key->type_ab);
    const bool is_wide = key->b.width == most && key->width_c == tiles->strip_n;
    key->whole = 0;
    if (tiles->any_slices || is_staged(tiles)) {
        t->work.slices.a_along_k = key->a.k_contiguous;
        t->work.slices.b_along_k = key->b.k_contiguous;
        operand_generalise(&key->b);
        key->width_c = 1;
        key->split_k = 1;
        key->unit_c = 0;
        key->c_digits = key->c_digits ? OPS_GEMM_MAX_DIGITS : 0;
        memset(key->row_step, OPS_INNER_ANY, key->input_count);
        memset(key->column_step, OPS_INNER_ANY, key->input_count);
        operand_generalise(&key->a);
        return;
    }
    key->b.width = is_wide ? key->b.width : 1;
    key->width_c = is_wide ? key->width_c : 1;
    if (tiles->stages || tiles->unroll) {
        key->a.width = 1;
    } else {
        operand_generalise(&key->a);
    }
}

hal_status ops_gemm_task_complete(const ops_context *context, ops_gemm_task *t)
{
    HAL_TRY(ops_gemm_task_describe(context, t));
    if (t->given) {
        t->key.tiles = *t->given;
    } else {
        ops_gemm_task_choose_tiles(context, t, &t->key.tiles);
    }
    if (t->is_general && is_unstaged(&t->key)) {
        choose_any_slices(context->info, t);
    } else if (t->is_general) {
        t->work.slices.turn = t->key.tiles.block_k;
        ops_gemm_generalise_tiles(context->info, &context->tuning->gemm, t->work.m,
                                  hal_type_size(t->key.type_ab), &t->key.tiles);
        t->key.in_loops = is_looped(context->info, &t->key);
    }
    choose_operand_widths(t);
    if (t->key.tiles.matrix) {
        complete_matrix_units(t);
    } else if (!t->is_general) {
        choose_strip(t);
    }
    choose_stores(t);
    if (t->is_general && !t->key.tiles.matrix && !t->key.scale_only) {
        complete_general(t);
    }
    return HAL_OK;
}

static void task_append_key(const ops_gemm_task *t, ops_cache_key *key)
{
    const ops_gemm_kernel_key *p = &t->key;
    ops_gemm_kernel_key same = *p;
    same.swapped &= p->epilogue != NULL; /* nothing else asks which the rows are */
    ops_cache_key_begin(key, OPS_FAMILY_GEMM);
    ops_cache_key_append(key, &same.tiles, sizeof same - offsetof(ops_gemm_kernel_key, tiles));
    ops_bindings_key(&t->bindings, p->slots, 3u + p->input_count, key);
    if (p->epilogue) {
        ops_cache_key_append(key, p->epilogue->hash, sizeof p->epilogue->hash);
    }
}

/* The bytes that take a device about as long as a general kernel takes longer: on an H200 2.5 times
 * as long in the median, and 5 times with few columns. And what planning again takes. */
static uint64_t task_bytes(const ops_context *context, const ops_gemm_task *t)
{
    enum { STEPS_OF_BYTE = 8, TIMES = 2, PLANNING_NS = 1000 };
    const uint64_t m = typical_rows(t), n = t->work.n, k = t->work.k ? t->work.k : 1;
    const uint64_t read = (m + n) * k * hal_type_size(t->key.type_ab);
    const uint64_t traffic = read + m * n * hal_type_size(t->key.type_c);
    return t->product.batch * (TIMES * traffic + m * n * k / STEPS_OF_BYTE) +
           PLANNING_NS * context->tuning->compile.bytes_per_ns;
}

hal_status ops_gemm_task_find_kernel(ops_context *context, ops_gemm_task *t, ops_entry **entry)
{
    ops_cache_key key;
    task_append_key(t, &key);
    if (t->key.quantisation.format) { /* shapes are scalars: it is that of a class */
        return ops_cache_get(context, &key, "gemm_quantised", emit_task, t, entry);
    }
    const char *name = t->key.grouped ? "gemm_grouped" : "gemm";
    HAL_TRY(
        ops_cache_get_special(context, &key, name, emit_task, t, task_bytes(context, t), entry));
    if (*entry) {
        return HAL_OK;
    }
    t->is_general = true;
    HAL_TRY(ops_gemm_task_complete(context, t));
    task_append_key(t, &key);
    return ops_cache_get(context, &key, name, emit_task, t, entry);
}

/* Tells the profile what a dispatch multiplies: `rows` from row_first on, for all of the grid's
 * batch, which of parts of k is one product. */
static void task_profile(const ops_gemm_task *t, const ops_entry *entry, const uint32_t grid[3],
                         uint32_t rows, const ops_block *block)
{
    const uint32_t rest = t->key.grouped ? t->work.m : t->work.m - t->work.row_first;
    const double steps = t->key.split_k ? t->k_all : (double)t->work.k * grid[2];
    const double count = (double)(rows < rest ? rows : rest) * t->work.n * steps;
    if (hal_profile_is_on() && !t->key.reduce_partials) {
        hal_profile_operations(entry->kernel, grid, block->bytes, ops_block_size(block), 2 * count,
                               t->key.type_ab, t->key.tiles.matrix);
    }
}

/* Records one dispatch, or several where rows or batches exceed the grid. */
hal_status ops_gemm_task_record(ops_context *context, ops_gemm_task *t, const ops_entry *entry,
                                ops_product_dispatch *kept)
{
    const uint32_t *limit = context->info->max_grid;
    const ops_gemm_tiles *s = &t->key.tiles;
    const uint32_t block_m = s->any_slices ? t->work.slices.block_m : s->block_m;
    const uint32_t block_n = s->any_slices ? t->work.slices.block_n : s->block_n;
    uint32_t columns = (t->work.n + block_n - 1) / block_n;
    /* Each group may have a tile that is not full. */
    const uint32_t rows = t->key.grouped ? t->work.m / block_m + t->product.batch
                                         : (t->work.m + block_m - 1) / block_m;
    const uint32_t batch_count = t->key.grouped ? 1 : t->product.batch;
    t->work.groups.count = t->product.batch;
    t->work.groups.block = block_m;
    if (columns > limit[0]) {
        return hal_status_set(HAL_ERROR_UNSUPPORTED,
                              "ops_gemm: c: expected fewer columns for the grid of %s, got %u",
                              context->info->name, t->work.n);
    }
    if (kept) {
        kept->kernel = NULL;
    }
    for (uint64_t batch = 0; batch < batch_count; batch += limit[2]) {
        for (uint64_t row = 0; row < rows; row += limit[1]) {
            uint64_t batches = batch_count - batch, tiles = rows - row;
            const uint32_t grid[3] = {columns, (uint32_t)(tiles < limit[1] ? tiles : limit[1]),
                                      (uint32_t)(batches < limit[2] ? batches : limit[2])};
            ops_block block;
            ops_block_begin(&block);
            t->work.row_first = (uint32_t)row * (t->key.grouped ? 1 : block_m);
            t->work.batch_first = t->batch_first + (uint32_t)batch;
            ops_gemm_put(&t->key, &t->work, &block);
            if (kept && !t->is_general && rows <= limit[1] && t->product.batch <= limit[2]) {
                ops_product_dispatch_set(kept, entry->kernel, grid, t->bindings.ranges,
                                         t->bindings.count, block.bytes, ops_block_size(&block));
            }
            task_profile(t, entry, grid, grid[1] * block_m, &block);
            HAL_TRY(ops_dispatch(context, entry, grid, &t->bindings, &block));
        }
    }
    return HAL_OK;
}
