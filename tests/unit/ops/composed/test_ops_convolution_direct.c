/* Convolutions and transposed ones without a product, as every kind of device: every bit of sums
 * of whole numbers. */
#include "ops/composed/convolution_trial.h"

/* Groups, steps up to 3 and dilation, one channel per group, windows that need a loop, more results
 * than a work-item has. */
static void draw_direct(trial *t, int turn)
{
    draw(t, false);
    t->type = turn % 5 == 3 ? HAL_TYPE_F64 : turn % 5 == 4 ? HAL_TYPE_F16 : HAL_TYPE_F32;
    t->groups = number(1, 4);
    t->inputs = turn % 3 == 0 ? 1 : number(1, 4);
    t->outputs = number(1, turn % 4 == 0 ? 11 : 3);
    t->images = t->rank == 3 ? 1 : t->images;
    for (uint32_t i = 0; i < t->rank; i++) {
        t->window[i] = number(1, t->rank == 1 ? 31 : t->rank == 2 ? 7 : 3);
        t->stride[i] = number(1, 3);
        t->dilation[i] = number(1, t->rank == 1 ? 3 : 2);
        t->before[i] = number(0, 3);
        t->after[i] = number(0, 3);
        t->length[i] = (t->window[i] - 1) * t->dilation[i] + number(1, t->rank == 1 ? 40 : 6);
    }
}

static void results_are_exact(void **state)
{
    state_of_numbers = 11;
    for (int i = 0; i < 120; i++) {
        trial t;
        draw_direct(&t, i);
        check_way(&t, i % 2 ? INPUT : FORWARD, OPS_CONVOLUTION_DIRECT);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(results_are_exact)};
    return RUN_ON_ALL(tests);
}
