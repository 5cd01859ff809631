/* Products of the class EXACT, see exact.h.
 *
 * Rows of A and columns of B are scaled by powers of two to whole numbers of about 54 bits, whose
 * product is computed modulo 16 numbers of a byte, exactly, by products of bytes; the Chinese
 * remainder theorem gives the sum, which is rounded once.
 * Source: K. Ozaki, Y. Uchino, T. Imamura, "Ozaki Scheme II: A GEMM-oriented emulation of
 * floating-point matrix multiplication using an integer modular technique", arXiv 2504.08009, 2025.
 * The bound of each element is checked by one more product, of the highest 7 bits of magnitudes:
 * docs/exact.md. */
#include "exact.h"

#include "finish.h"
#include "lines.h"

#include "tensor/allocation.h"
#include "tensor/indexing.h"
#include "tensor/message.h"

enum { MIN_BLOCK = 32, MIN_STEPS = 17, LINE_BYTES = 4 * OPS_EXACT_LINE_WORDS, SUM_BYTES = 4 };

/* Memory of the block that is in work. */
typedef struct exact_memory {
    hal_buffer *classes[2], *planes[2]; /* of A and of B */
    hal_buffer *sums;
} exact_memory;

/* A part of k of a block of a product. */
typedef struct exact_part {
    ops_exact_lines lines[2]; /* of A, of B */
    ops_exact_finish finish;
} exact_part;

static uint32_t padded_steps(int64_t k)
{
    const int64_t most = k < OPS_EXACT_MAX_STEPS ? k : OPS_EXACT_MAX_STEPS;
    return (uint32_t)((most + OPS_EXACT_STEP_MULTIPLE - 1) / OPS_EXACT_STEP_MULTIPLE *
                      OPS_EXACT_STEP_MULTIPLE);
}

static uint64_t lines_bytes(const ops_exact_block *block, int64_t lines, int64_t k)
{
    return (uint64_t)(block->batch * lines) * OPS_EXACT_PLANES * padded_steps(k);
}

static uint64_t sums_bytes(const ops_exact_block *block)
{
    return (uint64_t)(block->batch * block->m * block->n) * OPS_EXACT_PLANES * SUM_BYTES;
}

static uint64_t block_bytes(const ops_exact_block *block, int64_t k)
{
    const uint64_t lines = (uint64_t)(block->batch * (block->m + block->n));
    return lines_bytes(block, block->m + block->n, k) + lines * LINE_BYTES + sums_bytes(block);
}

/* Halves a length of at least MIN_BLOCK, to a multiple of it. */
static int64_t halve(int64_t length)
{
    return (length / 2 + MIN_BLOCK - 1) / MIN_BLOCK * MIN_BLOCK;
}

/* Makes a block smaller; false where it is the smallest. */
static bool block_shrink(ops_exact_block *block)
{
    int64_t *longer = block->m > block->n ? &block->m : &block->n;
    if (block->batch > 1) {
        block->batch = (block->batch + 1) / 2;
    } else if (*longer > MIN_BLOCK) {
        *longer = halve(*longer);
    } else {
        return false;
    }
    return true;
}

ops_exact_block ops_exact_choose_block(const ops_context *context, const ops_exact_product *p)
{
    const int64_t k = p->a.shape[2];
    const uint64_t memory = context->info->memory_bytes / 8, all = UINT64_C(1) << 32;
    const uint64_t wanted = p->max_workspace ? p->max_workspace : memory ? memory : all;
    const uint64_t most = wanted < all ? wanted : all; /* so that words have indices of 32 bits */
    const int64_t *shape = p->c.shape;
    ops_exact_block block = {.batch = shape[0], .m = shape[1], .n = shape[2]};
    const int64_t limit = k < MIN_STEPS ? INT32_MAX : INT32_MAX / OPS_EXACT_PLANES;
    while (block.batch > limit / block.m || block.batch * block.m > limit / block.n ||
           (k >= MIN_STEPS && block_bytes(&block, k) > most)) {
        if (!block_shrink(&block)) {
            break;
        }
    }
    block.bytes = k < MIN_STEPS ? 0 : block_bytes(&block, k);
    return block;
}

static void memory_release(exact_memory *memory)
{
    for (uint32_t i = 0; i < 2; i++) {
        hal_buffer_release(memory->classes[i]);
        hal_buffer_release(memory->planes[i]);
    }
    hal_buffer_release(memory->sums);
    *memory = (exact_memory){0};
}

static hal_status memory_create(ops_context *context, const ops_exact_block *block, int64_t k,
                                exact_memory *memory)
{
    const int64_t lines[2] = {block->m, block->n};
    hal_status status = HAL_OK;
    *memory = (exact_memory){0};
    for (uint32_t i = 0; i < 2 && status == HAL_OK; i++) {
        const uint64_t classes = (uint64_t)(block->batch * lines[i]) * LINE_BYTES;
        status = ops_buffer_create(context, classes, &memory->classes[i]);
        if (status == HAL_OK) {
            status =
                ops_buffer_create(context, lines_bytes(block, lines[i], k), &memory->planes[i]);
        }
    }
    if (status == HAL_OK) {
        status = ops_buffer_create(context, sums_bytes(block), &memory->sums);
    }
    if (status != HAL_OK) {
        memory_release(memory);
    }
    return status;
}

/* Elements first to first + count - 1 along an axis. */
static void slice(ops_tensor *tensor, uint32_t axis, int64_t first, int64_t count)
{
    tensor->offset += first * tensor->stride[axis];
    tensor->shape[axis] = count;
}

/* A view whose lines are the columns. */
static ops_tensor transposed(const ops_tensor *tensor)
{
    ops_tensor view = *tensor;
    view.shape[1] = tensor->shape[2];
    view.shape[2] = tensor->shape[1];
    view.stride[1] = tensor->stride[2];
    view.stride[2] = tensor->stride[1];
    return view;
}

/* The planes of lines as matrices. */
static ops_tensor planes_tensor(const ops_exact_lines *lines)
{
    const int64_t *shape = lines->x.shape, steps = lines->steps;
    return (ops_tensor){lines->planes,
                        HAL_TYPE_I8,
                        3,
                        0,
                        {OPS_EXACT_PLANES * shape[0], shape[1], steps},
                        {shape[1] * steps, steps, 1}};
}

/* Multiplies the planes. */
static hal_status part_multiply(ops_context *context, const ops_exact_product *p,
                                const exact_part *part)
{
    const ops_tensor a = planes_tensor(&part->lines[0]), lines = planes_tensor(&part->lines[1]);
    const ops_tensor b = transposed(&lines);
    const int64_t m = a.shape[1], n = b.shape[2];
    const ops_tensor c = {part->finish.sums, HAL_TYPE_I32, 3, 0, {a.shape[0], m, n}, {m * n, n, 1}};
    ops_gemm_options options = OPS_GEMM_OPTIONS_DEFAULT;
    options.impl = p->impl;
    return p->multiply(context, &options, &a, &b, &c);
}

/* The bits of whole numbers of which k products are below a quarter of the moduli's product. */
static uint32_t bits_of(int64_t k)
{
    uint32_t log2 = 0;
    while (INT64_C(1) << log2 < k) {
        log2++;
    }
    return (123 - log2) / 2;
}

/* Records one part of k of the whole block; has_planes: those of A are there. */
static hal_status part_record(ops_context *context, const ops_exact_product *p, exact_part *part,
                              bool has_planes)
{
    const int64_t k = part->finish.a.shape[2];
    if (part->finish.sums) {
        part->finish.bits = bits_of(k);
        for (uint32_t i = has_planes ? 1 : 0; i < 2; i++) {
            HAL_TRY(ops_exact_lines_classify(context, &part->lines[i]));
            HAL_TRY(ops_exact_lines_split(context, &part->lines[i], part->finish.bits));
        }
        HAL_TRY(part_multiply(context, p, part));
    }
    return ops_exact_finish_record(context, &part->finish);
}

/* Sets the operands of a part of k of a block, which begins at first[3]. */
static void part_init(const ops_exact_product *p, const ops_exact_block *block,
                      const int64_t first[3], int64_t step, const exact_memory *memory,
                      exact_part *part)
{
    const int64_t k = p->a.shape[2];
    const int64_t length[3] = {block->batch, block->m, block->n};
    ops_exact_finish *f = &part->finish;
    int64_t count[3];
    *part = (exact_part){.finish = {.a = p->a, .b = transposed(&p->b), .c = p->c}};
    for (uint32_t i = 0; i < 3; i++) {
        const int64_t rest = p->c.shape[i] - first[i];
        count[i] = rest < length[i] ? rest : length[i];
        slice(&f->c, i, first[i], count[i]);
    }
    const int64_t steps = k - step < OPS_EXACT_MAX_STEPS ? k - step : OPS_EXACT_MAX_STEPS;
    ops_tensor *const operands[2] = {&f->a, &f->b};
    for (uint32_t i = 0; i < 2; i++) {
        slice(operands[i], 0, first[0], count[0]);
        slice(operands[i], 1, first[1 + i], count[1 + i]);
        slice(operands[i], 2, step, steps);
        part->lines[i] = (ops_exact_lines){.x = *operands[i],
                                           .classes = memory->classes[i],
                                           .planes = memory->planes[i],
                                           .steps = padded_steps(steps),
                                           .is_left = i == 0};
    }
    f->alpha = k > 0 ? p->alpha : 1;
    f->beta = step == 0 ? p->beta : 1;
    f->a_classes = memory->classes[0];
    f->b_classes = memory->classes[1];
    f->sums = memory->sums;
}

static hal_status record_blocks(ops_context *context, const ops_exact_product *p,
                                const ops_exact_block *block, const exact_memory *memory)
{
    const int64_t *shape = p->c.shape, k = p->a.shape[2];
    int64_t step = 0;
    do {
        int64_t first[3];
        for (first[0] = 0; first[0] < shape[0]; first[0] += block->batch) {
            for (first[1] = 0; first[1] < shape[1]; first[1] += block->m) {
                for (first[2] = 0; first[2] < shape[2]; first[2] += block->n) {
                    exact_part part;
                    part_init(p, block, first, step, memory, &part);
                    HAL_TRY(part_record(context, p, &part, first[2] > 0));
                }
            }
        }
        step += OPS_EXACT_MAX_STEPS;
    } while (step < k);
    return HAL_OK;
}

hal_status ops_exact_multiply(ops_context *context, const ops_exact_product *p)
{
    const int64_t k = p->a.shape[2];
    ops_exact_block block = ops_exact_choose_block(context, p);
    exact_memory memory = {0};
    hal_status status = HAL_OK;
    ops_message message;
    ops_message_save(&message);
    if (block.bytes > 0) {
        do {
            status = memory_create(context, &block, k, &memory);
        } while (status == HAL_ERROR_OUT_OF_MEMORY && block_shrink(&block));
        if (status == HAL_OK) {
            ops_message_restore(&message);
        }
    }
    if (block.bytes == 0 && p->impl == OPS_GEMM_NATIVE) {
        return hal_status_set(HAL_ERROR_UNSUPPORTED,
                              "ops_gemm: options.impl: expected OPS_GEMM_ANY or _PORTABLE with "
                              "HAL_GEMM_EXACT and a k below %d, got OPS_GEMM_NATIVE",
                              MIN_STEPS);
    }
    if (status == HAL_OK) {
        status = record_blocks(context, p, &block, &memory);
    }
    memory_release(&memory);
    return status;
}
