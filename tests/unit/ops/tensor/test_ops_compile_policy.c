/* The compile policy: when special kernels replace general ones, with times that the test gives. */
#include "unit.h"

#include "tensor/compile_policy.h"

#define MS UINT64_C(1000000)

static const uint64_t shape[2] = {3, 5}, other_shape[2] = {4, 6};

static ops_compile_policy *policy_make(const ops_compile_tuning *tuning, uint32_t item_vector_bytes,
                                       uint32_t processors)
{
    const hal_device_info info = {.item_vector_bytes = item_vector_bytes};
    ops_compile_policy *policy = ops_compile_policy_create(tuning, &info, 0);
    assert_non_null(policy);
    policy->processors = processors;
    return policy;
}

/* Calls until a special kernel pays, each of which a general one makes `cost_ns` longer. */
static uint64_t calls_until_special(ops_compile_policy *policy, const uint64_t key[2],
                                    uint64_t cost_ns)
{
    uint64_t calls = 0;
    for (bool pays = false, is_first; !pays; calls++) {
        pays = ops_compile_policy_charge(policy, key, cost_ns, &is_first);
        assert_int_equal(is_first, calls == 0);
        assert_true(calls < 1000000);
    }
    return calls;
}

/* In the background: the price is the compilation's time over the processors. */
static void slow_compilers_are_charged_a_processor(void **state)
{
    const ops_compile_tuning *tuning = &ops_tuning_gpu.compile;
    for (uint32_t processors = 1; processors <= 8; processors *= 2) {
        ops_compile_policy *policy = policy_make(tuning, 0, processors);
        assert_true(ops_compile_policy_is_slow(policy));
        assert_true(ops_compile_policy_generalises(policy));
        for (int i = 0; i < 100; i++) { /* the average forgets what was expected */
            ops_compile_policy_add_time(policy, 80 * MS, true);
        }
        const uint64_t cost = ops_compile_policy_general_ns(policy, 1000 * tuning->bytes_per_ns);
        assert_int_equal(cost, tuning->general_ns + 1000);
        const uint64_t price = policy->compile_ns / processors;
        assert_in_range(policy->compile_ns, 79 * MS, 80 * MS);
        assert_int_equal(calls_until_special(policy, shape, cost), (price + cost - 1) / cost);
        /* Each shape pays for itself, until it is forgotten. */
        assert_true(calls_until_special(policy, other_shape, cost) > 1);
        ops_compile_policy_forget(policy, shape);
        bool is_first;
        assert_false(ops_compile_policy_charge(policy, shape, cost, &is_first));
        assert_false(is_first);
        ops_compile_policy_destroy(policy);
    }
}

/* While fewer kernels are compiled than there are compilers, an eighth of the price is enough. */
static void idle_compilers_are_cheap(void **state)
{
    const hal_device_info info = {0};
    ops_compile_policy *policy = ops_compile_policy_create(&ops_tuning_gpu.compile, &info, 15);
    assert_non_null(policy);
    assert_int_equal(policy->processors, 8);
    const uint64_t price = policy->compile_ns / 8;
    policy->pending = 14;
    assert_int_equal(calls_until_special(policy, shape, 1000), (price / 8 + 999) / 1000);
    policy->pending = 15;
    assert_int_equal(calls_until_special(policy, other_shape, 1000), price / 1000);
    /* The same of a fused kernel instead of three. */
    const uint64_t plan[2] = {7, 8}, other_plan[2] = {9, 10};
    policy->recent_compile_ns = price * 8;
    policy->eager_plans = 0;
    const uint64_t uses = price / (2 * policy->tuning->launch_ns);
    for (uint64_t i = 1; i < uses; i++) {
        assert_int_not_equal(ops_defer_compile(policy, plan, 3, 0), OPS_DEFER_REQUESTED);
    }
    assert_int_equal(ops_defer_compile(policy, plan, 3, 0), OPS_DEFER_REQUESTED);
    policy->pending = 14;
    for (uint64_t i = 1; i < (uses + 7) / 8; i++) {
        assert_int_not_equal(ops_defer_compile(policy, other_plan, 3, 0), OPS_DEFER_REQUESTED);
    }
    assert_int_equal(ops_defer_compile(policy, other_plan, 3, 0), OPS_DEFER_REQUESTED);
    ops_compile_policy_destroy(policy);
}

/* Where the compiler is fast, the call compiles: the price is the whole time. */
static void fast_compilers_are_charged_the_call(void **state)
{
    ops_compile_policy *policy = policy_make(&ops_tuning_processor.compile, 0, 8);
    const uint64_t guess = ops_tuning_processor.compile.guessed_ns;
    assert_true(ops_compile_policy_generalises(policy));
    assert_int_equal(calls_until_special(policy, shape, 1000), guess / 1000);
    for (int i = 0; i < 100; i++) {
        ops_compile_policy_add_time(policy, 500000, true);
    }
    assert_false(ops_compile_policy_is_slow(policy));
    assert_in_range(calls_until_special(policy, other_shape, 1000), 490, 500);
    ops_compile_policy_destroy(policy);
}

/* A shape that occurs once compiles nothing, however large it is. */
static void first_calls_are_general(void **state)
{
    ops_compile_policy *policy = policy_make(&ops_tuning_processor.compile, 0, 2);
    assert_int_equal(calls_until_special(policy, shape, 1000 * MS), 2);
    policy->requests = true;
    assert_int_equal(calls_until_special(policy, other_shape, 1), 1);
    ops_compile_policy_destroy(policy);
}

/* Shapes of one special kernel, each of which has another cost: their charges add up, but none of
 * them has it made before one returns, or before they have cost a multiple of its price. */
static void shapes_that_occur_once_share_a_kernel(void **state)
{
    const uint64_t price = ops_tuning_processor.compile.guessed_ns;
    for (int returns = 0; returns < 2; returns++) {
        ops_compile_policy *policy = policy_make(&ops_tuning_processor.compile, 0, 2);
        uint64_t spent = 0, cost = price / 4;
        bool is_first, pays = false;
        for (; !pays && spent < 100 * price; cost++) {
            pays = ops_compile_policy_charge(policy, shape, cost, &is_first);
            assert_int_equal(is_first, spent == 0);
            spent += cost;
            if (returns && spent > 2 * price && !pays) {
                pays = ops_compile_policy_charge(policy, shape, price / 4, &is_first);
                assert_true(pays);
            }
        }
        assert_in_range(spent, returns ? 2 * price : OPS_SHARED_PRICES * price,
                        (returns ? 3 : OPS_SHARED_PRICES + 1) * price);
        ops_compile_policy_destroy(policy);
    }
}

/* What compilations take decides where no driver is expected to be slow. */
static void measured_times_decide(void **state)
{
    ops_compile_policy *policy = policy_make(&ops_tuning_processor.compile, 0, 2);
    ops_compile_policy_add_time(policy, 50 * MS, true);
    assert_true(ops_compile_policy_is_slow(policy)); /* such as a C compiler */
    ops_compile_policy_destroy(policy);
    policy = policy_make(&ops_tuning_processor.compile, 0, 2);
    ops_compile_policy_add_time(policy, 15000, true); /* such as an interpreter */
    assert_false(ops_compile_policy_generalises(policy));
    ops_compile_policy_destroy(policy);
    policy = policy_make(&ops_tuning_processor.compile, 64, 2); /* vectors of work-items */
    ops_compile_policy_add_time(policy, 1 * MS, true);
    assert_true(ops_compile_policy_is_slow(policy));
    ops_compile_policy_destroy(policy);
}

/* All general kernels of a plan are replaced together. */
static void plans_pay_for_all_their_kernels(void **state)
{
    ops_compile_policy *policy = policy_make(&ops_tuning_gpu.compile, 0, 4);
    const uint64_t price = policy->compile_ns / 4;
    assert_false(ops_compile_policy_is_due(policy, 3 * price - 1, 3));
    assert_true(ops_compile_policy_is_due(policy, 3 * price, 3));
    policy->specialises = true;
    assert_false(ops_compile_policy_generalises(policy));
    policy->specialises = false;
    policy->choice = OPS_KERNELS_GENERAL;
    assert_false(ops_compile_policy_is_due(policy, UINT64_MAX, 1));
    policy->choice = OPS_KERNELS_SPECIAL;
    assert_false(ops_compile_policy_generalises(policy));
    ops_compile_policy_destroy(policy);
}

/* A deferred plan is compiled for the whole time of a compilation by the call, and for that of one
 * processor in the background; in its first use only for the whole. */
static void deferred_plans_are_requested_for_a_processor(void **state)
{
    const uint64_t cost = ops_tuning_gpu.compile.launch_ns; /* of two kernels without bytes */
    for (uint32_t processors = 1; processors <= 8; processors *= 2) {
        ops_compile_policy *policy = policy_make(&ops_tuning_gpu.compile, 0, processors);
        policy->recent_compile_ns = ops_tuning_gpu.compile.fast_ns;
        policy->eager_plans = 0;
        const uint64_t price = policy->recent_compile_ns / processors;
        uint64_t uses = 1;
        ops_compile_decision decision = ops_defer_compile(policy, shape, 2, 0);
        assert_int_equal(decision, OPS_DEFER_FIRST);
        for (; uses == 1 || decision == OPS_DEFER_AGAIN; uses++) {
            decision = ops_defer_compile(policy, shape, 2, 0);
        }
        assert_int_equal(decision, processors > 1 ? OPS_DEFER_REQUESTED : OPS_COMPILE_NOW);
        assert_int_equal(uses, price / cost);
        assert_int_equal(ops_defer_compile(policy, shape, 2, 0), decision);
        ops_compile_policy_fail(policy, shape); /* it stays in single kernels */
        assert_int_equal(ops_defer_compile(policy, shape, 2, 0), OPS_DEFER_AGAIN);
        const uint64_t bytes = policy->recent_compile_ns * ops_tuning_gpu.compile.bytes_per_ns;
        assert_int_equal(ops_defer_compile(policy, other_shape, 2, bytes), OPS_COMPILE_NOW);
        ops_compile_policy_destroy(policy);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(slow_compilers_are_charged_a_processor),
        cmocka_unit_test(idle_compilers_are_cheap),
        cmocka_unit_test(fast_compilers_are_charged_the_call),
        cmocka_unit_test(first_calls_are_general),
        cmocka_unit_test(shapes_that_occur_once_share_a_kernel),
        cmocka_unit_test(measured_times_decide),
        cmocka_unit_test(plans_pay_for_all_their_kernels),
        cmocka_unit_test(deferred_plans_are_requested_for_a_processor),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
