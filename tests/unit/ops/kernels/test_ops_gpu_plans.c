/* What GPUs compute in a group: which outputs of softmax, so that work-items keep their rows, and
 * which lines of elementwise kernels, so that few work-items are idle. */
#include "unit.h"

#include "kernels/elementwise.h"
#include "kernels/fold.h"

static const hal_device_info gpu = {.kind = HAL_DEVICE_DISCRETE,
                                    .compute_units = 132,
                                    .max_grid = {0x7fffffff, 65535, 65535},
                                    .max_group_items = 1024,
                                    .max_group_size = {1024, 1024, 64},
                                    .preferred_group = 256,
                                    .subgroup_width = 32,
                                    .max_vector_bytes = 16};

typedef struct keep_case {
    int64_t size[2], length, stride; /* of the outputs, in rows; of the axis */
    uint32_t bytes;                  /* of an element */
    uint32_t outputs, along;
} keep_case;

static const keep_case keeps[] = {
    {{64, 512}, 1000, 512, 4, 16, 32},  {{64, 512}, 300, 512, 4, 16, 32},
    {{64, 512}, 1500, 512, 4, 8, 64},   {{64, 512}, 3000, 512, 4, 32, 16}, /* too long */
    {{64, 512}, 1000, 512, 2, 32, 16},                                     /* lines too narrow */
    {{64, 2562}, 630, 2562, 4, 32, 16},                                    /* inside sectors */
};

TEST(softmax_keeps_lines_of_whole_sectors)
{
    const ops_context context = {.info = &gpu, .tuning = &ops_tuning_gpu};
    for (size_t i = 0; i < sizeof keeps / sizeof *keeps; i++) {
        const keep_case *c = &keeps[i];
        ops_space space = {.rank = 2, .view_count = 1, .size = {c->size[0], c->size[1]}};
        space.stride[0][0] = c->length * c->size[1];
        space.stride[0][1] = 1;
        const ops_axis axis = {.length = c->length, .stride = {c->stride}, .step = {OPS_INNER_ANY}};
        ops_reduce_layout group;
        ops_reduce_layout_choose(&context, &space, &axis, HAL_TYPE_F32, &group);
        const uint32_t along = group.along;
        ops_reduce_layout_keep(&context, &space, &axis, c->bytes, HAL_TYPE_F32, &group);
        if (group.outputs != c->outputs || group.along != c->along) {
            fail_msg("%lld elements of %u bytes: %u outputs x %u (before %u)", (long long)c->length,
                     c->bytes, group.outputs, group.along, along);
        }
    }
}

/* x + y, with one y for each line. */
typedef struct lines_case {
    int64_t size[3];
    uint32_t bytes, group, repeat;
} lines_case;

static const lines_case lines[] = {
    {{3878, 26, 274}, 2, 160, 4}, /* of 26 lines four at a time, though 13 times two would do */
    {{1000, 64, 512}, 4, 128, 1},
    {{1000, 20, 743}, 2, 256, 7},
};

TEST(lines_leave_few_idle)
{
    const ops_context context = {.info = &gpu, .tuning = &ops_tuning_gpu};
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        const lines_case *c = &lines[i];
        const uint32_t sizes[3] = {c->bytes, c->bytes, c->bytes};
        const ops_elementwise_use use = {
            .function = "test", .widest = 16 / c->bytes, .loaded = 3, .sizes = sizes};
        ops_space space = {.rank = 3, .view_count = 3};
        int64_t stride = 1;
        for (int d = 3; d-- > 0;) {
            space.size[d] = c->size[d];
            space.stride[0][d] = space.stride[2][d] = stride;
            stride *= c->size[d];
        }
        space.stride[1][1] = 1;
        ops_elementwise_plan plan;
        assert_int_equal(ops_elementwise_plan_init(&context, &use, &space, &plan), HAL_OK);
        if (!plan.rows || plan.group != c->group || plan.repeat != c->repeat) {
            fail_msg("%lld x %lld: group of %u, repeat %u", (long long)c->size[1],
                     (long long)c->size[2], plan.group, plan.repeat);
        }
    }
}

UNIT_MAIN(NULL, NULL)
