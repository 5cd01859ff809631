/* Levels of Strassen's algorithm, see levels.h. The last level is within a task: all 7 sums of
 * A's and of B's blocks are packed in one pass, and a task multiplies a tile of each and combines
 * them in its cache. The products of a level before it are phases one after another, which read
 * sums of two blocks and are added to two blocks of C. So tasks of two products never write one
 * block at a time, and each element is summed in the same order by any number of threads.
 *
 * Block lengths are rounded up: what a block lacks at the edges of a matrix is 0 where it is
 * packed, and is not stored. */
#include "gemm/levels.h"

#include <string.h>

enum { PRODUCTS = 7, BLOCKS = 4, MAX_TERMS = 2 };

/* V. Strassen, Gaussian elimination is not optimal, Numerische Mathematik 13 (1969). Product r is
 * (sum of of_a[r][i] A_i) (sum of of_b[r][j] B_j) and is added to C_l with to_c[r][l]; blocks are
 * numbered by rows. Several levels are the Kronecker product of this table with itself. */
static const int8_t of_a[PRODUCTS][BLOCKS] = {{1, 0, 0, 1}, {0, 0, 1, 1}, {1, 0, 0, 0},
                                              {0, 0, 0, 1}, {1, 1, 0, 0}, {-1, 0, 1, 0},
                                              {0, 1, 0, -1}};
static const int8_t of_b[PRODUCTS][BLOCKS] = {{1, 0, 0, 1},  {1, 0, 0, 0}, {0, 1, 0, -1},
                                              {-1, 0, 1, 0}, {0, 0, 0, 1}, {1, 1, 0, 0},
                                              {0, 0, 1, 1}};
static const int8_t to_c[PRODUCTS][BLOCKS] = {{1, 0, 0, 1}, {0, 0, 1, -1}, {0, 1, 0, 1},
                                              {1, 0, 1, 0}, {-1, 1, 0, 0}, {0, 0, 0, 1},
                                              {1, 0, 0, 0}};

/* The product that has each sum of cpu_gemm_sums as a factor. */
static const int8_t a_products[PRODUCTS] = {0, 1, 2, 3, 4, 5, 6};
static const int8_t b_products[PRODUCTS] = {0, 6, 1, 4, 5, 3, 2};

/* A block of the level before the last that a product reads or is added to: its sign, and its place
 * in blocks. */
struct term {
    int sign, row, col;
};

/* The blocks with a coefficient in a product of the level before the last, a positive one first;
 * the whole matrix with one level. Returns their number. */
static int terms_of(const int8_t table[PRODUCTS][BLOCKS], int levels, int product,
                    struct term terms[MAX_TERMS])
{
    int count = 0;
    if (levels == 1) {
        terms[0] = (struct term){.sign = 1};
        return 1;
    }
    for (int pass = 1; pass >= -1; pass -= 2) {
        for (int block = 0; block < BLOCKS; block++) {
            if (table[product][block] == pass) {
                terms[count++] = (struct term){pass, block >> 1, block & 1};
            }
        }
    }
    return count;
}

/* Whether no product from `first` to `end` - 1 is added to a block of C. */
static bool block_is_untouched(int levels, int first, int end, const struct term *block)
{
    for (int product = first; product < end && levels > 1; product++) {
        if (to_c[product][block->row * 2 + block->col] != 0) {
            return false;
        }
    }
    return true;
}

/* What exists of `most` elements from `start` on. */
static int64_t part_of(int64_t length, int64_t start, int64_t most)
{
    return cpu_gemm_clamp(length - start, 0, most);
}

/* A matrix in the orientation in which it is packed. */
struct operand {
    const int8_t (*table)[BLOCKS];
    const int8_t *products; /* of each sum */
    const char *data;
    int64_t ld, rows, cols, block_rows, block_cols;
    bool turned;     /* stored by columns */
    bool is_swapped; /* the table's blocks are numbered by columns */
};

static struct operand a_of(const struct cpu_gemm_job *job)
{
    const struct cpu_gemm_plan *p = job->plan;
    const struct cpu_gemm_desc *d = &p->desc;
    const bool turned = d->transpose_a;
    return (struct operand){.table = of_a,
                            .products = a_products,
                            .data = job->args->a,
                            .ld = d->lda,
                            .rows = turned ? p->k : p->m,
                            .cols = turned ? p->m : p->k,
                            .block_rows = turned ? d->k : d->m,
                            .block_cols = turned ? d->m : d->k,
                            .is_swapped = turned};
}

static struct operand b_of(const struct cpu_gemm_job *job)
{
    const struct cpu_gemm_plan *p = job->plan;
    return (struct operand){.table = of_b,
                            .products = b_products,
                            .data = job->args->b,
                            .ld = p->desc.ldb,
                            .rows = p->k,
                            .cols = p->n,
                            .block_rows = p->desc.k,
                            .block_cols = p->desc.n,
                            .turned = p->desc.transpose_b};
}

/* A piece of every block: as many rows and columns, from `row` and `col` on. */
struct piece {
    int64_t row, col, rows, cols;
};

/* The place of a piece of block `last` of the last level, within block `term` of the one before. */
static struct piece piece_of(const struct operand *o, const struct term *term, int last,
                             const struct piece *piece)
{
    const int row =
        (o->is_swapped ? term->col : term->row) * 2 + (o->is_swapped ? last & 1 : last >> 1);
    const int col =
        (o->is_swapped ? term->row : term->col) * 2 + (o->is_swapped ? last >> 1 : last & 1);
    struct piece place = {.row = row * o->block_rows + piece->row,
                          .col = col * o->block_cols + piece->col};
    place.rows = part_of(o->rows, place.row, piece->rows);
    place.cols = part_of(o->cols, place.col, piece->cols);
    return place;
}

static const char *element_of(const struct operand *o, const struct piece *place, int64_t size)
{
    const int64_t at =
        o->turned ? place->col * o->ld + place->row : place->row * o->ld + place->col;
    return o->data + at * size;
}

/* The sum of a piece of `count` terms in memory, with 0 beyond the edges of the matrix. */
static void piece_gather(const struct cpu_gemm_plan *p, const struct operand *o,
                         const struct term *terms, int count, int last, const struct piece *piece,
                         char *to, char *turned)
{
    const int64_t ld = piece->cols;
    memset(to, 0, (size_t)(piece->rows * ld * p->size));
    for (int t = 0; t < count; t++) {
        const struct piece place = piece_of(o, &terms[t], last, piece);
        if (place.rows == 0 || place.cols == 0) {
            continue;
        }
        const char *from = element_of(o, &place, p->size);
        if (o->turned) {
            p->kernels->transpose(turned, ld, from, o->ld, p->desc.type_a, place.rows, place.cols);
            from = turned;
        }
        p->kernels->store(to, ld, p->desc.type_a, from, o->turned ? ld : o->ld, place.rows,
                          place.cols, terms[t].sign, 1);
    }
}

/* Packs the 7 sums of a piece, to `to` of the first product, `item` bytes apart. */
static void piece_pack(const struct cpu_gemm_job *job, const struct cpu_gemm_stage *s,
                       const struct operand *o, const struct piece *piece, char *to, int64_t item,
                       struct cpu_gemm_sums *sums, int slot)
{
    const struct cpu_gemm_plan *p = job->plan;
    struct term terms[MAX_TERMS];
    const int count = terms_of(o->table, p->desc.levels, s->product, terms);
    bool in_place = !o->turned;
    for (int i = 0; i < BLOCKS; i++) {
        struct piece places[MAX_TERMS];
        for (int t = 0; t < count; t++) {
            places[t] = piece_of(o, &terms[t], i, piece);
            in_place &= places[t].rows == piece->rows && places[t].cols == piece->cols;
        }
        sums->from[i].first = element_of(o, &places[0], p->size);
        sums->from[i].second = count > 1 ? element_of(o, &places[1], p->size) : NULL;
    }
    sums->sign = count > 1 ? terms[1].sign : 0;
    sums->ld = o->ld;
    if (!in_place) {
        const int64_t bytes = piece->rows * piece->cols * p->size;
        char *work = (char *)job->args->workspace + job->layout.scratch + slot * job->layout.slot;
        for (int i = 0; i < BLOCKS; i++) {
            char *sum = work + i * bytes;
            piece_gather(p, o, terms, count, i, piece, sum, work + BLOCKS * bytes);
            sums->from[i].first = sum;
            sums->from[i].second = NULL;
        }
        sums->ld = piece->cols;
    }
    for (int i = 0; i < PRODUCTS; i++) {
        sums->to[i] = to + o->products[i] * item;
    }
    sums->rows = piece->rows;
    sums->cols = piece->cols;
    p->kernels->sums(sums);
}

/* The k of a slab of the stage. */
static int64_t slab_length(const struct cpu_gemm_plan *p, const struct cpu_gemm_stage *s,
                           int64_t slab)
{
    return cpu_gemm_least(p->kc, s->k - slab * p->kc);
}

/* A strip of A, whose rows are along k. */
static void strip_pack(const struct cpu_gemm_job *job, const struct cpu_gemm_stage *s, int64_t unit,
                       int slot)
{
    const struct cpu_gemm_plan *p = job->plan;
    const struct operand a = a_of(job);
    const int64_t strips = s->strips, stride = cpu_gemm_a_stride(p);
    const int64_t slab = unit / strips, at = unit % strips * p->strip;
    const struct piece piece = {.row = s->m0 + at,
                                .col = s->k0 + slab * p->kc,
                                .rows = cpu_gemm_least(p->strip, s->m - at),
                                .cols = slab_length(p, s, slab)};
    struct cpu_gemm_sums sums = {.width = piece.cols, .ldo = stride};
    char *to = (char *)job->args->workspace + (slab * strips * p->strip + at) * stride * p->size;
    piece_pack(job, s, &a, &piece, to, job->layout.item_a, &sums, slot);
}

/* Neighbouring panels of `width` columns, of B or of transposed A, a few rows at a time. `across`
 * columns from `first` on are packed in this stage. */
static void panels_pack(const struct cpu_gemm_job *job, const struct cpu_gemm_stage *s,
                        const struct operand *o, int64_t unit, int64_t first, int64_t across,
                        int64_t width, char *to, int64_t item, int slot)
{
    const struct cpu_gemm_plan *p = job->plan;
    const int64_t wide = width * CPU_GEMM_LEVELS_PANELS, groups = cpu_gemm_ceil_div(across, wide);
    const int64_t slab = unit / groups, at = unit % groups * wide;
    const int64_t length = slab_length(p, s, slab);
    to += (slab * cpu_gemm_round_up(across, width) + at) * p->kc * p->size;
    for (int64_t row = 0; row < length; row += CPU_GEMM_LEVELS_ROWS) {
        const struct piece piece = {.row = s->k0 + slab * p->kc + row,
                                    .col = first + at,
                                    .rows = cpu_gemm_least(CPU_GEMM_LEVELS_ROWS, length - row),
                                    .cols = cpu_gemm_least(wide, across - at)};
        struct cpu_gemm_sums sums = {.width = width, .ldo = width, .panel = width * p->kc};
        piece_pack(job, s, o, &piece, to + row * width * p->size, item, &sums, slot);
    }
}

void cpu_gemm_levels_pack(const struct cpu_gemm_job *job, const struct cpu_gemm_stage *s,
                          int64_t unit, int slot)
{
    const struct cpu_gemm_plan *p = job->plan;
    const struct cpu_gemm_layout *layout = &job->layout;
    const int64_t of_a_units = s->units - s->panels * cpu_gemm_levels_slabs(p, s);
    char *work = job->args->workspace;
    if (unit >= of_a_units) {
        const struct operand b = b_of(job);
        panels_pack(job, s, &b, unit - of_a_units, s->n0, s->n, p->kernels->nr, work + layout->b,
                    layout->item_b, slot);
    } else if (p->desc.transpose_a) {
        const struct operand a = a_of(job);
        panels_pack(job, s, &a, unit, s->m0, s->m, p->strip, work, layout->item_a, slot);
    } else {
        strip_pack(job, s, unit, slot);
    }
}

/* Adds a tile of a combined product, from `row` and `col` of block `last` on, to the blocks of C.
 * The first product of a block applies beta, the last one the epilogue. */
static void tile_add(const struct cpu_gemm_job *job, const struct cpu_gemm_stage *s, int last,
                     const struct cpu_gemm_tile *tile)
{
    const struct cpu_gemm_plan *p = job->plan;
    const struct cpu_gemm_desc *d = &p->desc;
    struct term terms[MAX_TERMS];
    const int count = terms_of(to_c, d->levels, s->product, terms);
    for (int i = 0; i < count; i++) {
        const int64_t row = (terms[i].row * 2 + (last >> 1)) * d->m + tile->row;
        const int64_t col = (terms[i].col * 2 + (last & 1)) * d->n + tile->col;
        const int64_t rows = part_of(p->m, row, tile->rows), cols = part_of(p->n, col, tile->cols);
        if (rows == 0 || cols == 0) {
            continue;
        }
        char *c = (char *)job->args->c + (row * d->ldc + col) * p->size;
        const bool is_first = s->first && block_is_untouched(d->levels, 0, s->product, &terms[i]);
        p->kernels->store(c, d->ldc, d->type_c, tile->data, tile->ld, rows, cols, terms[i].sign,
                          is_first ? job->args->beta : 1);
        if (d->epilogue && s->last &&
            block_is_untouched(d->levels, s->product + 1, PRODUCTS, &terms[i])) {
            d->epilogue(job->args->user, &(struct cpu_gemm_tile){.data = c,
                                                                 .row = row,
                                                                 .col = col,
                                                                 .ld = d->ldc,
                                                                 .rows = (int)rows,
                                                                 .cols = (int)cols,
                                                                 .thread = tile->thread});
        }
    }
}

/* The packed sums of a product for one slab: all strips of the stage, all panels. */
static const char *part_of_a(const struct cpu_gemm_job *job, const struct cpu_gemm_stage *s,
                             int64_t product, int64_t slab)
{
    const struct cpu_gemm_plan *p = job->plan;
    const int64_t rows = cpu_gemm_round_up(s->m, p->strip);
    return (const char *)job->args->workspace + product * job->layout.item_a +
           slab * rows * cpu_gemm_a_stride(p) * p->size;
}

static const char *part_of_b(const struct cpu_gemm_job *job, const struct cpu_gemm_stage *s,
                             int64_t product, int64_t slab)
{
    const struct cpu_gemm_plan *p = job->plan;
    const int64_t columns = cpu_gemm_round_up(s->n, p->kernels->nr);
    return (const char *)job->args->workspace + job->layout.b + product * job->layout.item_b +
           slab * columns * p->kc * p->size;
}

void cpu_gemm_levels_multiply(const struct cpu_gemm_job *job, const struct cpu_gemm_stage *s,
                              int64_t unit, int slot)
{
    const struct cpu_gemm_plan *p = job->plan;
    const struct cpu_gemm_layout *layout = &job->layout;
    const int64_t across = cpu_gemm_ceil_div(s->n, job->task_n), size = p->size;
    const int64_t m = unit / across * job->task_m, n = unit % across * job->task_n;
    const int64_t rows = cpu_gemm_least(job->task_m, s->m - m), nr = p->kernels->nr;
    const int64_t cols = cpu_gemm_least(job->task_n, s->n - n), stride = cpu_gemm_a_stride(p);
    const int64_t slabs = cpu_gemm_levels_slabs(p, s);
    char *tiles = (char *)job->args->workspace + layout->scratch + slot * layout->slot;
    struct cpu_gemm_strip strip = {.cols = cols,
                                   .alpha = job->args->alpha,
                                   .b_row = nr,
                                   .b_panel = nr * p->kc,
                                   .a_row = p->desc.transpose_a ? 1 : stride,
                                   .a_col = p->desc.transpose_a ? p->strip : 1,
                                   .ldc = cols};
    const int64_t a_bytes = p->strip * stride * size;
    const int64_t b_bytes = cpu_gemm_ceil_div(cols, nr) * nr * p->kc * size;
    const int64_t strips = cpu_gemm_ceil_div(rows, p->strip);
    for (int64_t part = 0; part < PRODUCTS * slabs; part++) {
        const int64_t product = part / slabs, slab = part % slabs;
        const char *a = part_of_a(job, s, product, slab) + m * stride * size;
        const char *b = part_of_b(job, s, product, slab) + n * p->kc * size;
        const int64_t next = part + 1 < PRODUCTS * slabs ? part + 1 : part;
        const char *next_a = part_of_a(job, s, next / slabs, next % slabs) + m * stride * size;
        const char *next_b = part_of_b(job, s, next / slabs, next % slabs) + n * p->kc * size;
        strip.k = slab_length(p, s, slab);
        strip.beta = slab == 0 ? 0 : 1;
        strip.b = b;
        const int64_t turns = cpu_gemm_ceil_div(cols / nr, 2) * strip.k;
        for (int64_t i = 0; i < strips; i++) {
            const int64_t at = i * p->strip;
            strip.rows = (int)cpu_gemm_least(p->strip, rows - at);
            strip.a = a + at * stride * size;
            strip.c = tiles + (product * rows + at) * cols * size;
            strip.ahead[0].from = i + 1 < strips ? a + (at + p->strip) * stride * size : next_a;
            strip.ahead[0].step = cpu_gemm_ceil_div(a_bytes, turns + 1);
            strip.ahead[1].from = next_b + b_bytes / strips * i;
            strip.ahead[1].step = cpu_gemm_ceil_div(b_bytes / strips, turns + 1);
            p->kernels->strip(&strip);
        }
    }
    p->kernels->combine(tiles, rows * cols);
    for (int last = 0; last < BLOCKS; last++) {
        tile_add(job, s, last,
                 &(struct cpu_gemm_tile){.data = tiles + last * rows * cols * size,
                                         .row = s->m0 + m,
                                         .col = s->n0 + n,
                                         .ld = cols,
                                         .rows = (int)rows,
                                         .cols = (int)cols,
                                         .thread = slot});
    }
}

/* Adds a length to a set, unless it is 0 or a member. */
static int length_add(int64_t *lengths, int count, int64_t length)
{
    for (int i = 0; i < count; i++) {
        if (lengths[i] == length) {
            return count;
        }
    }
    if (length > 0) {
        lengths[count++] = length;
    }
    return count;
}

int cpu_gemm_levels_lengths(int levels, int64_t length, int64_t block, int64_t outer, int64_t task,
                            int64_t lengths[CPU_GEMM_LEVELS_LENGTHS])
{
    int count = 0;
    for (int i = 0; i < 1 << levels; i++) {
        const int64_t whole = part_of(length, i * block, block);
        const int64_t parts[2] = {cpu_gemm_least(outer, whole), whole % outer};
        for (int k = 0; k < 2; k++) {
            count = length_add(lengths, count, cpu_gemm_least(task, parts[k]));
            count = length_add(lengths, count, parts[k] % task);
        }
    }
    return count;
}
