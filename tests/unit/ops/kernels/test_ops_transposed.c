/* Which inputs go through shared memory: those whose direct reads touch that many sectors more that
 * writing and reading shared memory costs less. And in which tiles: those whose sides are long in
 * the memory of input and output. */
#include "unit.h"

#include "kernels/transposed.h"
#include "tensor/context.h"

typedef struct staging_case {
    const char *what;
    int64_t size[4], stride[4];
    uint32_t bytes; /* of an element */
    uint32_t run;   /* elements of the staged dimension in a tile; 0: not staged */
} staging_case;

/* The output is contiguous. Sizes of 1 come first where there are fewer dimensions. */
static const staging_case cases[] = {
    {"exp f16 7x1139x464x3@3102", {3, 1139, 7, 464}, {1, 1392, 1585488, 3}, 2, 0},
    {"copy f32 64x256x257x3@0312", {1, 64, 3, 65792}, {0, 197376, 1, 3}, 4, 3},
    {"i8, a step of 3", {1, 1, 3, 65792}, {0, 0, 1, 3}, 1, 0},
    {"f32, a step of 2", {1, 1, 2, 65536}, {0, 0, 1, 2}, 4, 0},
    {"f64, a step of 2", {1, 1, 2, 65536}, {0, 0, 1, 2}, 8, 0},
    {"f64, a step of 3", {1, 1, 3, 65536}, {0, 0, 1, 3}, 8, 3},
    {"f16, a step of 5", {1, 1, 5, 65536}, {0, 0, 1, 5}, 2, 5},
    {"f16, runs of 3 far apart", {1, 1, 3, 65536}, {0, 0, 1, 999}, 2, 3},
    {"copy f32 1048576x16@10", {1, 1, 16, 1048576}, {0, 0, 1, 16}, 4, 16},
    {"copy f32 100x101x102x17@3120", {17, 101, 102, 100}, {1, 1734, 17, 175134}, 4, 17},
    {"copy f16 4096x4096@10", {1, 1, 4096, 4096}, {0, 0, 1, 4096}, 2, 64},
    {"copy f16 4097x4095@10", {1, 1, 4097, 4095}, {0, 0, 1, 4097}, 2, 64},
    {"contiguous", {1, 1, 4096, 4096}, {0, 0, 4096, 1}, 2, 0},
};

static void choose(const staging_case *c, uint32_t kind, ops_elementwise_plan *plan)
{
    const hal_device_info info = {.kind = kind, .compute_units = 4, .shared_bytes = 49152};
    const ops_context context = {.info = &info, .tuning = ops_tuning_select(&info)};
    const uint32_t sizes[2] = {c->bytes, c->bytes};
    const ops_elementwise_use use = {.widest = 16 / c->bytes, .loaded = 1, .sizes = sizes};
    ops_space space = {.rank = 4, .view_count = 2};
    int64_t stride = 1;
    for (int i = 4; i-- > 0;) {
        space.size[i] = c->size[i];
        space.stride[0][i] = c->stride[i];
        space.stride[1][i] = stride;
        stride *= c->size[i];
    }
    *plan = (ops_elementwise_plan){.group = 256, .width = 1};
    ops_transposed_choose(&context, &use, &space, plan);
}

TEST(stages_where_sectors_are_saved)
{
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ops_elementwise_plan plan;
        choose(&cases[i], HAL_DEVICE_DISCRETE, &plan);
        if (plan.staged != (cases[i].run > 0) || plan.tile[1] != cases[i].run) {
            fail_msg("%s: staged %u, tile of %u x %u", cases[i].what, plan.staged, plan.tile[0],
                     plan.tile[1]);
        }
    }
}

/* Elements of a tile that follow each other in memory: of the input and of the output. */
typedef struct tile_case {
    const char *what;
    int64_t size[4], stride[4];
    uint32_t bytes;    /* of an element */
    uint32_t tile[3];  /* columns, rows, layers */
    uint32_t joint[2]; /* axes that are one dimension */
    uint32_t width[2]; /* elements of an access */
} tile_case;

static const tile_case tiles[] = {
    {"bf16 @210", {1, 566, 70837, 6}, {0, 1, 566, 40093742}, 2, {6, 64, 8}, {1, 1}, {2, 2}},
    {"f32 @3120", {1, 17, 10302, 100}, {0, 1, 17, 175134}, 4, {56, 17, 4}, {2, 1}, {2, 4}},
    {"f16 @0231", {1, 64, 65792, 3}, {0, 197376, 1, 65792}, 2, {3, 1024, 1}, {1, 2}, {4, 8}},
    {"f32 @0312", {1, 64, 3, 65792}, {0, 197376, 1, 3}, 4, {1024, 3, 1}, {2, 1}, {4, 4}},
    {"f16 @10", {1, 1, 4096, 4096}, {0, 0, 1, 4096}, 2, {64, 64, 1}, {1, 1}, {4, 8}},
    {"f16 @10, ragged lines", {1, 1, 4097, 4095}, {0, 0, 1, 4097}, 2, {128, 64, 1}, {1, 1}, {1, 1}},
    {"f32 @10, whole sectors", {1, 1, 4097, 4096}, {0, 0, 1, 4097}, 4, {64, 64, 1}, {1, 1}, {1, 4}},
    {"not continued", {1, 64, 70, 5}, {0, 9000, 1, 100}, 2, {5, 70, 1}, {1, 2}, {2, 2}},
};

TEST(continues_short_sides)
{
    for (size_t i = 0; i < sizeof tiles / sizeof *tiles; i++) {
        const tile_case *t = &tiles[i];
        staging_case c = {.what = t->what, .bytes = t->bytes};
        memcpy(c.size, t->size, sizeof c.size);
        memcpy(c.stride, t->stride, sizeof c.stride);
        ops_elementwise_plan plan;
        choose(&c, HAL_DEVICE_DISCRETE, &plan);
        const uint32_t joint[2] = {plan.loaded.joint, plan.computed.joint};
        const uint32_t width[2] = {plan.staged_width, plan.width};
        if (memcmp(plan.tile, t->tile, sizeof t->tile) || memcmp(joint, t->joint, sizeof joint) ||
            memcmp(width, t->width, sizeof width)) {
            fail_msg("%s: %u x %u x %u, joint %u and %u, widths %u and %u", t->what, plan.tile[0],
                     plan.tile[1], plan.tile[2], joint[0], joint[1], width[0], width[1]);
        }
    }
}

TEST(stages_nothing_on_processors)
{
    ops_elementwise_plan plan;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        choose(&cases[i], HAL_DEVICE_CPU, &plan);
        assert_int_equal(plan.staged, 0);
        choose(&cases[i], HAL_DEVICE_SOFTWARE, &plan);
        assert_int_equal(plan.staged, 0);
    }
}

UNIT_MAIN(NULL, NULL)
