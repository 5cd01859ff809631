/* Products of the class NORMWISE where device memory runs out at each allocation in turn: a product
 * that succeeds is right, by levels or as an ordinary one. Each case runs in a new process,
 * because the fault layer counts allocations from the process's start. */
#include "ops_fixture.h"

#include <sys/wait.h>
#include <unistd.h>

enum { LENGTH = 65, PITCH = 2 * LENGTH, MOST_ALLOCATIONS = 20 };

/* How a case ends. */
enum { WAS_RIGHT, WAS_WRONG, FAILED_BEFORE, FAILED_IN_PRODUCT, FAILED_AFTER, OTHER_ERROR };

/* A with a stride of 2 in both axes, so that every product of a part of it needs a copy. */
typedef struct operands {
    ops_tensor a, b, c;
    float host_a[LENGTH * 2 * PITCH], host_b[LENGTH * LENGTH], host_c[LENGTH * LENGTH];
} operands;

static hal_status operands_make(operands *o)
{
    const int64_t shape[2] = {LENGTH, LENGTH}, wide[2] = {2 * LENGTH, PITCH};
    hal_status status = ops_tensor_create(test_context, HAL_TYPE_F32, 2, wide, &o->a);
    status = status ? status : ops_tensor_create(test_context, HAL_TYPE_F32, 2, shape, &o->b);
    status = status ? status : ops_tensor_create(test_context, HAL_TYPE_F32, 2, shape, &o->c);
    for (int i = 0; i < LENGTH * 2 * PITCH; i++) {
        o->host_a[i] = (float)(i % 7 - 3);
    }
    for (int i = 0; i < LENGTH * LENGTH; i++) {
        o->host_b[i] = (float)(i % 5 - 2);
        o->host_c[i] = (float)(i % 3);
    }
    status = status ? status : ops_tensor_write(test_context, &o->a, o->host_a, sizeof o->host_a);
    status = status ? status : ops_tensor_write(test_context, &o->b, o->host_b, sizeof o->host_b);
    status = status ? status : ops_tensor_write(test_context, &o->c, o->host_c, sizeof o->host_c);
    memcpy(o->a.shape, shape, sizeof shape);
    o->a.stride[0] = 2 * PITCH;
    o->a.stride[1] = 2;
    return status;
}

/* Whether `got` is C + A B; small whole numbers are exact. */
static int result_is_right(const operands *o, const float *got)
{
    int is_right = 1;
    for (int i = 0; i < LENGTH * LENGTH; i++) {
        float sum = o->host_c[i];
        for (int k = 0; k < LENGTH; k++) {
            sum += o->host_a[i / LENGTH * 2 * PITCH + 2 * k] * o->host_b[k * LENGTH + i % LENGTH];
        }
        is_right = is_right && got[i] == sum;
    }
    return is_right;
}

/* The process of a case: from the allocation of that number on, none succeeds. */
static int run_case(int number)
{
    static operands o;
    static float got[LENGTH * LENGTH];
    ops_gemm_options options = OPS_GEMM_OPTIONS_DEFAULT;
    char fault[32];
    snprintf(fault, sizeof fault, "allocation:%d+", number);
    setenv("HAL_LAYERS", "fault", 1);
    setenv("HAL_FAULT", fault, 1);
    if (open_context(NULL) || operands_make(&o)) {
        return FAILED_BEFORE;
    }
    options.precision = HAL_GEMM_NORMWISE;
    options.beta = 1;
    options.levels = 1;
    const hal_status status = ops_gemm(test_context, &options, &o.a, &o.b, &o.c);
    if (status) {
        return status == HAL_ERROR_OUT_OF_MEMORY ? FAILED_IN_PRODUCT : OTHER_ERROR;
    }
    if (ops_tensor_read(test_context, &o.c, sizeof got, got)) {
        return FAILED_AFTER;
    }
    return result_is_right(&o, got) ? WAS_RIGHT : WAS_WRONG;
}

TEST(what_succeeds_is_right)
{
    int ends[OTHER_ERROR + 1] = {0};
    for (int number = 1; number <= MOST_ALLOCATIONS; number++) {
        const pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0) {
            _exit(run_case(number));
        }
        int status = -1;
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_true(WIFEXITED(status) && WEXITSTATUS(status) <= OTHER_ERROR);
        ends[WEXITSTATUS(status)]++;
    }
    assert_int_equal(ends[WAS_WRONG] + ends[FAILED_AFTER] + ends[OTHER_ERROR], 0);
    assert_true(ends[FAILED_IN_PRODUCT] > 0);
    assert_true(ends[WAS_RIGHT] > 0);
}

UNIT_MAIN(NULL, NULL)
