/* matrix.c: the product of tiles that are distributed over a subgroup. Small whole numbers, whose
 * sums are exact in any order and with any rounding, so that one result is right. */
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

/* Two halves, or one float whose lowest 13 bits are not to count. */
static uint32_t word_of(hal_type type, const double *elements, uint32_t stride,
                        random_state *random)
{
    if (type == HAL_TYPE_F32) {
        const uint32_t noise = (uint32_t)random_bits(random, HAL_TYPE_U32) & 0x1fff;
        return (uint32_t)number_bits(type, elements[0]) | (elements[0] != 0 ? noise : 0);
    }
    return (uint32_t)number_bits(type, elements[0]) | (uint32_t)number_bits(type, elements[stride])
                                                          << 16;
}

static void spread(hal_type type, const tile *t, uint32_t *a, uint32_t *b, float *c,
                   random_state *random)
{
    const uint32_t each = type == HAL_TYPE_F32 ? 1 : 2;
    for (uint32_t lane = 0; lane < LANES; lane++) {
        const uint32_t g = lane / 4, word = lane % 4;
        for (uint32_t i = 0; i < 4; i++) {
            a[4 * lane + i] =
                word_of(type, &t->a[g + i % 2 * 8][(word + i / 2 * 4) * each], 1, random);
            c[4 * lane + i] = (float)t->c[g + i / 2 * 8][2 * word + i % 2];
        }
        for (uint32_t i = 0; i < 2; i++) {
            b[2 * lane + i] = word_of(type, &t->b[(word + i * 4) * each][g], 8, random);
        }
    }
}

static void multiply(const tile *t, uint32_t depth, float *expected)
{
    for (uint32_t lane = 0; lane < LANES; lane++) {
        for (uint32_t i = 0; i < 4; i++) {
            const uint32_t row = lane / 4 + i / 2 * 8, column = lane % 4 * 2 + i % 2;
            double sum = t->c[row][column];
            for (uint32_t k = 0; k < depth; k++) {
                sum += t->a[row][k] * t->b[k][column];
            }
            expected[4 * lane + i] = (float)sum;
        }
    }
}

static hal_ir_builder *build(case_run *run, hal_type type)
{
    hal_ir_builder *b = ir_begin(run, "matrix");
    hal_ir_group_size(b, SUBGROUPS * LANES, 1, 1);
    const hal_ir_memory_id tiles_a = hal_ir_binding(b, "a", HAL_TYPE_U32, HAL_ACCESS_READ),
                           tiles_b = hal_ir_binding(b, "b", HAL_TYPE_U32, HAL_ACCESS_READ),
                           tiles_c = hal_ir_binding(b, "c", HAL_TYPE_F32, HAL_ACCESS_READ),
                           out = hal_ir_binding(b, "out", HAL_TYPE_F32, HAL_ACCESS_WRITE);
    const hal_ir_value i = hal_ir_global_id(b, 0);
    const hal_ir_value four = hal_ir_mul(b, i, hal_ir_u32(b, 4)),
                       two = hal_ir_mul(b, i, hal_ir_u32(b, 2));
    const hal_ir_value left = hal_ir_load_wide(b, tiles_a, four, 0, 4, HAL_IR_NONE),
                       right = hal_ir_load_wide(b, tiles_b, two, 0, 2, HAL_IR_NONE),
                       sum = hal_ir_load_wide(b, tiles_c, four, 0, 4, HAL_IR_NONE);
    hal_ir_store_wide(b, out, four, 0, HAL_IR_NONE,
                      hal_ir_matrix_multiply(b, type, left, right, sum));
    return b;
}

static void run_matrix(case_run *run, const void *parameters)
{
    const hal_type type = *(const hal_type *)parameters;
    const uint32_t depth = type == HAL_TYPE_F32 ? 8 : 16;
    uint32_t a[TILES * LANES * 4], b[TILES * LANES * 2];
    float c[TILES * LANES * 4], expected[TILES * LANES * 4];
    random_state random = {run->seed};
    case_claim(run,
               (run->info->matrix_types & HAL_TYPE_BIT(type)) != 0 &&
                   run->info->subgroup_width == LANES,
               "matrix_multiply");
    for (uint32_t i = 0; i < TILES; i++) {
        tile t;
        make_tile(&t, &random, depth);
        spread(type, &t, a + i * LANES * 4, b + i * LANES * 2, c + i * LANES * 4, &random);
        multiply(&t, depth, expected + i * LANES * 4);
    }
    const red_zone zones[4] = {zone_create(run, sizeof a, a), zone_create(run, sizeof b, b),
                               zone_create(run, sizeof c, c),
                               zone_create(run, sizeof expected, NULL)};
    ir_run(run, build(run, type), GROUPS, zones, 4, NULL, 0);
    ir_check(run, &zones[3], HAL_TYPE_F32, expected, TILES * LANES * 4, "result");
}

void cases_ir_matrix(case_list *list)
{
    static const hal_type types[] = {HAL_TYPE_F16, HAL_TYPE_BF16, HAL_TYPE_F32};
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        case_add(list, run_matrix, &types[i], sizeof types[i], "ir/matrix_multiply(type=%s)",
                 hal_type_name(types[i]));
        case_covers(list, types[i], CASE_VALUES, "matrix_multiply");
    }
}
