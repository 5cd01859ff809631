/* matrix.c: the product of tiles that are distributed over a subgroup. Small whole numbers, whose
 * sums are exact in any order and with any rounding, so that one result is right; of F64, whose
 * steps are FMA, also any numbers, one step for each element, so that no order plays a part. */
#include <math.h>
#include <string.h>

#include "case/cases.h"
#include "case/cover.h"
#include "ir/fixture.h"

#define GROUPS 2u
#define SUBGROUPS 2u
#define TILES (GROUPS * SUBGROUPS)
#define LANES HAL_IR_MATRIX_LANES

/* One tile's matrices. */
typedef struct tile {
    double a[16][16], b[16][8], c[16][8];
} tile;

/* Whole numbers from -8 to 8; memory beyond the depth is not used. */
static void make_tile(tile *made, random_state *random, uint32_t depth)
{
    memset(made, 0, sizeof *made);
    for (uint32_t i = 0; i < 16; i++) {
        for (uint32_t k = 0; k < depth; k++) {
            made->a[i][k] = (double)(int)random_between(random, -8.99, 8.99);
            if (i < 8) {
                made->b[k][i] = (double)(int)random_between(random, -8.99, 8.99);
            }
        }
        for (uint32_t j = 0; j < 8; j++) {
            made->c[i][j] = (double)(int)random_between(random, -100.0, 100.0);
        }
    }
}

/* Numbers of all sizes, of which each row of A has one: sums near C, far from it, and denormal. */
static void make_steps(tile *made, random_state *random)
{
    memset(made, 0, sizeof *made);
    for (uint32_t i = 0; i < 16; i++) {
        const int size = i % 8 < 4 ? -1040 : 0;
        made->a[i][i % 8] = random_between(random, 1.0, 2.0);
        for (uint32_t j = 0; j < 8; j++) {
            made->b[i % 8][j] = ldexp(random_between(random, -2.0, 2.0), size);
            made->c[i][j] = ldexp(random_between(random, -2.0, 2.0),
                                  size + (int)random_between(random, -30.0, 30.0));
        }
    }
}

/* Two halves, one float whose lowest 13 bits are not to count, or one double. */
static uint64_t word_of(hal_type type, const double *elements, uint32_t stride,
                        random_state *random)
{
    if (type == HAL_TYPE_F64) {
        return number_bits(type, elements[0]);
    }
    if (type == HAL_TYPE_F32) {
        const uint32_t noise = (uint32_t)random_bits(random, HAL_TYPE_U32) & 0x1fff;
        return (uint32_t)number_bits(type, elements[0]) | (elements[0] != 0 ? noise : 0);
    }
    return (uint32_t)number_bits(type, elements[0]) | (uint32_t)number_bits(type, elements[stride])
                                                          << 16;
}

/* The kernel's memory: words of A and B and numbers of C, the low bytes of each element. */
typedef struct tile_memory {
    hal_type type, sum;
    uint32_t each, bytes; /* elements of a word; bytes of a word and of a sum */
    unsigned char a[TILES * LANES * 4 * 8], b[TILES * LANES * 2 * 8];
    unsigned char c[TILES * LANES * 4 * 8], expected[TILES * LANES * 4 * 8];
} tile_memory;

static void put(const tile_memory *m, unsigned char *memory, uint32_t number, uint64_t bits)
{
    memcpy(memory + (size_t)number * m->bytes, &bits, m->bytes);
}

static void spread(tile_memory *m, uint32_t number, const tile *t, random_state *random)
{
    for (uint32_t lane = 0; lane < LANES; lane++) {
        const uint32_t g = lane / 4, word = lane % 4, at = number * LANES + lane;
        for (uint32_t i = 0; i < 4; i++) {
            const double *from = &t->a[g + i % 2 * 8][(word + i / 2 * 4) * m->each];
            put(m, m->a, 4 * at + i, word_of(m->type, from, 1, random));
            put(m, m->c, 4 * at + i, number_bits(m->sum, t->c[g + i / 2 * 8][2 * word + i % 2]));
        }
        for (uint32_t i = 0; i < 2; i++) {
            const double *from = &t->b[(word + i * 4) * m->each][g];
            put(m, m->b, 2 * at + i, word_of(m->type, from, 8, random));
        }
    }
}

static void multiply(tile_memory *m, uint32_t number, const tile *t)
{
    for (uint32_t lane = 0; lane < LANES; lane++) {
        for (uint32_t i = 0; i < 4; i++) {
            const uint32_t row = lane / 4 + i / 2 * 8, column = lane % 4 * 2 + i % 2;
            double sum = t->c[row][column];
            for (uint32_t k = 0; k < 8 * m->each; k++) {
                sum = fma(t->a[row][k], t->b[k][column], sum);
            }
            put(m, m->expected, 4 * (number * LANES + lane) + i, number_bits(m->sum, sum));
        }
    }
}

static hal_ir_builder *build(case_run *run, const tile_memory *m)
{
    hal_ir_builder *b = ir_begin(run, "matrix");
    const hal_type word = m->type == HAL_TYPE_F64 ? HAL_TYPE_F64 : HAL_TYPE_U32;
    hal_ir_group_size(b, SUBGROUPS * LANES, 1, 1);
    const hal_ir_memory_id tiles_a = hal_ir_binding(b, "a", word, HAL_ACCESS_READ),
                           tiles_b = hal_ir_binding(b, "b", word, HAL_ACCESS_READ),
                           tiles_c = hal_ir_binding(b, "c", m->sum, HAL_ACCESS_READ),
                           out = hal_ir_binding(b, "out", m->sum, HAL_ACCESS_WRITE);
    const hal_ir_value i = hal_ir_global_id(b, 0);
    const hal_ir_value four = hal_ir_mul(b, i, hal_ir_u32(b, 4)),
                       two = hal_ir_mul(b, i, hal_ir_u32(b, 2));
    const hal_ir_value left = hal_ir_load_wide(b, tiles_a, four, 0, 4, HAL_IR_NONE),
                       right = hal_ir_load_wide(b, tiles_b, two, 0, 2, HAL_IR_NONE),
                       sum = hal_ir_load_wide(b, tiles_c, four, 0, 4, HAL_IR_NONE);
    hal_ir_store_wide(b, out, four, 0, HAL_IR_NONE,
                      hal_ir_matrix_multiply(b, m->type, left, right, sum));
    return b;
}

static void run_matrix(case_run *run, const void *parameters)
{
    const hal_type type = *(const hal_type *)parameters;
    const hal_type sum = type == HAL_TYPE_F64 ? HAL_TYPE_F64 : HAL_TYPE_F32;
    tile_memory m = {.type = type,
                     .sum = sum,
                     .each = hal_type_size(type) == 2 ? 2 : 1,
                     .bytes = hal_type_size(sum)};
    random_state random = {run->seed};
    case_claim(run,
               (run->info->matrix_types & HAL_TYPE_BIT(type)) != 0 &&
                   run->info->subgroup_width == LANES,
               "matrix_multiply");
    for (uint32_t i = 0; i < TILES; i++) {
        tile t;
        if (type == HAL_TYPE_F64 && i % 2) {
            make_steps(&t, &random);
        } else {
            make_tile(&t, &random, 8 * m.each);
        }
        spread(&m, i, &t, &random);
        multiply(&m, i, &t);
    }
    const uint64_t quarter = (uint64_t)TILES * LANES * m.bytes;
    const red_zone zones[4] = {
        zone_create(run, 4 * quarter, m.a), zone_create(run, 2 * quarter, m.b),
        zone_create(run, 4 * quarter, m.c), zone_create(run, 4 * quarter, NULL)};
    ir_run(run, build(run, &m), GROUPS, zones, 4, NULL, 0);
    ir_check(run, &zones[3], sum, m.expected, TILES * LANES * 4, "result");
}

void cases_ir_matrix(case_list *list)
{
    static const hal_type types[] = {HAL_TYPE_F16, HAL_TYPE_BF16, HAL_TYPE_F32, HAL_TYPE_F64};
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        case_add(list, run_matrix, &types[i], sizeof types[i], "ir/matrix_multiply(type=%s)",
                 hal_type_name(types[i]));
        case_covers(list, types[i], CASE_VALUES, "matrix_multiply");
    }
}
