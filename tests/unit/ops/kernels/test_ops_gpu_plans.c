/* What GPUs compute in a group: which outputs of softmax, so that work-items keep their rows. */
#include "unit.h"

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
    const ops_context context = {.info = &gpu};
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

UNIT_MAIN(NULL, NULL)
