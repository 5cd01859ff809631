/* random.c: the counter-based generator: the published answers of Philox 4x32-10, the same numbers
 * however a tensor is cut, and the distribution of the floats. */
#include <math.h>
#include <string.h>

#include "case/cases.h"
#include "ops/fixture.h"

#define SAMPLES 65536

/* J. K. Salmon and others, "Parallel Random Numbers: As Easy as 1, 2, 3", SC 2011. */
static void philox(const uint32_t counter[4], const uint32_t key[2], uint32_t result[4])
{
    uint32_t c[4] = {counter[0], counter[1], counter[2], counter[3]};
    uint32_t k[2] = {key[0], key[1]};
    for (int round = 0; round < 10; round++) {
        const uint64_t one = UINT64_C(0xd2511f53) * c[0], two = UINT64_C(0xcd9e8d57) * c[2];
        const uint32_t next[4] = {(uint32_t)(two >> 32) ^ c[1] ^ k[0], (uint32_t)two,
                                  (uint32_t)(one >> 32) ^ c[3] ^ k[1], (uint32_t)one};
        memcpy(c, next, sizeof c);
        k[0] += 0x9e3779b9u;
        k[1] += 0xbb67ae85u;
    }
    memcpy(result, c, sizeof c);
}

/* The reference of this file itself, against the answers published with the paper. */
static void run_known(case_run *run, const void *parameters)
{
    static const struct {
        uint32_t counter[4], key[2], answer[4];
    } known[] = {
        {{0, 0, 0, 0}, {0, 0}, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
        {{0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff},
         {0xffffffff, 0xffffffff},
         {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
        {{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
         {0xa4093822, 0x299f31d0},
         {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
    };
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        uint32_t result[4];
        philox(known[i].counter, known[i].key, result);
        case_check(run, memcmp(result, known[i].answer, sizeof result) == 0,
                   "answer %zu is %08x %08x %08x %08x", i, result[0], result[1], result[2],
                   result[3]);
    }
}

static operand make_numbers(case_run *run, hal_type type, ops_random_key key, int64_t count,
                            double low, double high)
{
    operand made = operand_create(run, type, 1, &count, LAYOUT_PLAIN);
    operand_poison(run, &made);
    case_ok(run, ops_random_uniform(run->ops, key, low, high, &made.tensor), "ops_random_uniform");
    operand_download(run, &made, "numbers");
    return made;
}

/* Element i is word i mod 4 of the block with counter {i / 4, stream} and the seed as key. */
static void run_numbers(case_run *run, const void *parameters)
{
    static const ops_random_key keys[3] = {
        {0, 0}, {42, 7}, {UINT64_C(0x123456789abcdef0), UINT64_C(0xfedcba9876543210)}};
    const ops_random_key key = keys[*(const uint64_t *)parameters];
    enum { COUNT = 4099 };
    uint32_t expected[COUNT + 4];
    for (uint32_t i = 0; i < COUNT; i += 4) {
        const uint32_t counter[4] = {i / 4, 0, (uint32_t)key.stream, (uint32_t)(key.stream >> 32)};
        const uint32_t seed[2] = {(uint32_t)key.seed, (uint32_t)(key.seed >> 32)};
        philox(counter, seed, expected + i);
    }
    for (int t = 0; t < 2; t++) {
        const hal_type type = t == 0 ? HAL_TYPE_U32 : HAL_TYPE_I32;
        const operand y = make_numbers(run, type, key, COUNT, 0.0, 1.0);
        operand_check_bits(run, &y, expected, false, hal_type_name(type));
    }
}

/* A shorter tensor has the first numbers of a longer one. */
static void run_prefix(case_run *run, const void *parameters)
{
    const ops_random_key key = {run->seed, 3};
    const operand longer = make_numbers(run, HAL_TYPE_F32, key, 5003, 0.0, 1.0);
    const operand shorter = make_numbers(run, HAL_TYPE_F32, key, 1001, 0.0, 1.0);
    operand_check_bits(run, &shorter, longer.elements, false,
                       "the first numbers of a longer tensor");
}

/* Numbers in [0, 1) are multiples of 2^-24, of F64 2^-53, and half of them odd ones: within nine
 * standard deviations. */
static void run_digits(case_run *run, const void *parameters)
{
    const hal_type type = *(const hal_type *)parameters;
    const ops_random_key key = {run->seed, 4};
    case_claim_arithmetic(run, type);
    const operand y = make_numbers(run, type, key, 4096, 0.0, 1.0);
    int odd = 0, between = 0;
    for (size_t i = 0; i < 4096; i++) {
        const double value = ldexp(operand_get(&y, i), type == HAL_TYPE_F64 ? 53 : 24);
        between += value != floor(value);
        odd += fmod(value, 2.0) == 1.0;
    }
    case_check(run, between == 0, "%d of 4096 numbers have more bits than stated", between);
    case_check(run, odd > 1760 && odd < 2336, "%d of 4096 numbers have a last bit of 1", odd);
}

static void run_streams(case_run *run, const void *parameters)
{
    const ops_random_key keys[2] = {{run->seed, 1}, {run->seed, 2}};
    const operand one = make_numbers(run, HAL_TYPE_U32, keys[0], 4096, 0.0, 1.0);
    const operand two = make_numbers(run, HAL_TYPE_U32, keys[1], 4096, 0.0, 1.0);
    size_t same = 0;
    for (size_t i = 0; i < 4096; i++) {
        same += number_load(HAL_TYPE_U32, one.elements, i) ==
                number_load(HAL_TYPE_U32, two.elements, i);
    }
    case_check(run, same < 3, "%zu of 4096 numbers are equal in two streams", same);
}

/* All in [low, high), mean and variance within five standard errors. Numbers round to nearest: that
 * adds a twelfth of a step's square to the variance at most. The last number takes half a step more
 * than others, as high is excluded. */
static void run_uniform(case_run *run, const void *parameters)
{
    const hal_type type = *(const hal_type *)parameters;
    const ops_random_key key = {run->seed, 0};
    case_claim_storage(run, type);
    case_claim_arithmetic(run, type);
    const operand y = make_numbers(run, type, key, SAMPLES, -1.0, 3.0);
    double sum = 0.0, squares = 0.0;
    size_t outside = 0;
    for (size_t i = 0; i < SAMPLES; i++) {
        const double value = operand_get(&y, i);
        outside += !(value >= -1.0 && value < 3.0);
        sum += value;
        squares += (value - 1.0) * (value - 1.0);
    }
    const double mean = sum / SAMPLES, variance = squares / SAMPLES;
    case_check(run, outside == 0, "%zu of %d are not in [-1, 3)", outside, SAMPLES);
    const double step = 4.0 * ldexp(1.0, -hal_type_float_format(type).digits);
    case_check(run, fabs(mean - 1.0) < 0.023 + step * step / 8, "the mean is %g instead of 1",
               mean);
    case_check(run, fabs(variance - 4.0 / 3.0) < 0.025 + step * step / 4,
               "the variance is %g instead of 4/3", variance);
}

/* The moments within five standard errors. */
static void run_normal(case_run *run, const void *parameters)
{
    const hal_type type = *(const hal_type *)parameters;
    const int64_t shape[1] = {SAMPLES + 1};
    const ops_random_key key = {run->seed, 0};
    case_claim_storage(run, type);
    case_claim_arithmetic(run, type);
    operand y = operand_create(run, type, 1, shape, LAYOUT_PLAIN);
    operand_poison(run, &y);
    case_ok(run, ops_random_normal(run->ops, key, 2.0, 0.5, &y.tensor), "ops_random_normal");
    operand_download(run, &y, "result");
    double moments[5] = {0.0};
    size_t wild = 0;
    for (size_t i = 0; i < SAMPLES; i++) {
        const double value = (operand_get(&y, i) - 2.0) / 0.5;
        double power = 1.0;
        wild += !(fabs(value) < 7.0);
        for (int k = 0; k < 5; k++, power *= value) {
            moments[k] += power / SAMPLES;
        }
    }
    case_check(run, wild == 0, "%zu of %d are further than 7 deviations away", wild, SAMPLES);
    case_check(run, fabs(moments[1]) < 0.02, "the mean is off by %g deviations", moments[1]);
    case_check(run, fabs(moments[2] - 1.0) < 0.03, "the variance is %g times the wanted one",
               moments[2]);
    case_check(run, fabs(moments[3]) < 0.08, "the third moment is %g", moments[3]);
    case_check(run, fabs(moments[4] - 3.0) < 0.2, "the fourth moment is %g instead of 3",
               moments[4]);
}

static void run_permutation(case_run *run, const void *parameters)
{
    enum { COUNT = 1000 };
    const int64_t shape[1] = {COUNT};
    const ops_random_key key = {run->seed, 5};
    uint8_t seen[COUNT] = {0};
    size_t in_place = 0;
    operand y = operand_create(run, HAL_TYPE_I32, 1, shape, LAYOUT_PLAIN);
    operand_poison(run, &y);
    case_ok(run, ops_random_permutation(run->ops, key, &y.tensor), "ops_random_permutation");
    operand_download(run, &y, "result");
    for (size_t i = 0; i < COUNT; i++) {
        const double value = operand_get(&y, i);
        case_check(run, value >= 0.0 && value < COUNT && seen[(size_t)value] == 0,
                   "number %zu is %g, out of range or there before", i, value);
        seen[(size_t)value] = 1;
        in_place += value == (double)i;
    }
    case_check(run, in_place < 20, "%zu of %d stayed in place", in_place, COUNT);
}

void cases_ops_random(case_list *list)
{
    case_add(list, run_known, NULL, 0, "ops/random(known_answers)");
    for (uint64_t seed = 0; seed < 3; seed++) {
        case_add(list, run_numbers, &seed, sizeof seed, "ops/random_bits(key=%u)", (unsigned)seed);
    }
    case_add(list, run_prefix, NULL, 0, "ops/random(prefix)");
    case_add(list, run_streams, NULL, 0, "ops/random(streams)");
    for (size_t i = 0; i < 2; i++) {
        const hal_type type = i == 0 ? HAL_TYPE_F32 : HAL_TYPE_F64;
        case_add(list, run_digits, &type, sizeof type, "ops/random(digits,type=%s)",
                 hal_type_name(type));
    }
    for (hal_type type = HAL_TYPE_BOOL; type < HAL_TYPE_COUNT; type++) {
        if (!hal_type_is_float(type)) {
            continue;
        }
        case_add(list, run_uniform, &type, sizeof type, "ops/random_uniform(type=%s)",
                 hal_type_name(type));
        case_add(list, run_normal, &type, sizeof type, "ops/random_normal(type=%s)",
                 hal_type_name(type));
    }
    case_add(list, run_permutation, NULL, 0, "ops/random_permutation(1000)");
}
