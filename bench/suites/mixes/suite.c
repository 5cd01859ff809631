/* Random eager programs on small arrays next to what pytorch/mixes.py measured. A program makes
 * its arrays anew, releases what it overwrites, and ends when all its variables are computed. The
 * time is that of an operation. */
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "harness/interrupt.h"
#include "suites/mixes/mixes.h"
#include "suites/sequential/sequential.h"
#include "suites/suites.h"

/* Results are checked after this many operations, beginning with the device's own numbers. */
enum { SEGMENT = 12 };

typedef struct mixes_run {
    bench_state *bench;
    const mixes_program *program;
    ops_array *inputs[MIXES_VARIABLES], *variables[MIXES_VARIABLES];
    int64_t shapes[MIXES_VARIABLES][2];
    estimate expected[MIXES_VARIABLES][MIXES_ELEMENTS];
    float numbers[MIXES_VARIABLES][MIXES_ELEMENTS];
} mixes_run;

static int64_t element_count(const mixes_run *run, int variable)
{
    return run->shapes[variable][0] * run->shapes[variable][1];
}

static void arrays_release(ops_array **arrays)
{
    for (int i = 0; i < MIXES_VARIABLES; i++) {
        ops_array_release(arrays[i]);
        arrays[i] = NULL;
    }
}

static bool inputs_make(mixes_run *run)
{
    for (int i = 0; i < MIXES_VARIABLES; i++) {
        for (int axis = 0; axis < 2; axis++) {
            run->shapes[i][axis] = mixes_has_axis(i, axis) ? run->program->shape[axis] : 1;
        }
        bench_random(HAL_TYPE_F32, run->numbers[i], (size_t)element_count(run, i),
                     run->program->seed + (uint64_t)i);
        run->inputs[i] = ops_array_from_host(run->bench->ops, HAL_TYPE_F32, 2, run->shapes[i],
                                             run->numbers[i]);
        if (!run->inputs[i]) {
            return bench_fail(run->bench, "%s: %s", run->program->name, hal_status_message());
        }
    }
    return true;
}

static void operation_run(mixes_run *run, const mixes_operation *operation)
{
    ops_array **variables = run->variables, *x = variables[operation->x], *made = NULL;
    float number;
    switch (operation->kind) {
    case MIXES_UNARY:
        made = ops_array_unary((ops_unary_function)operation->function, x);
        break;
    case MIXES_BINARY:
        made = ops_array_binary((ops_binary_function)operation->function, x,
                                variables[operation->y]);
        break;
    case MIXES_REDUCE:
        made = ops_array_reduce((ops_reduction)operation->function, operation->axis, 1, x);
        break;
    default:
        bench_ok(run->bench, ops_array_read(x, sizeof number, &number), "ops_array_read");
        return;
    }
    ops_array_release(variables[operation->target]);
    variables[operation->target] = made;
}

static bool variables_finish(mixes_run *run)
{
    return bench_ok(run->bench, ops_array_evaluate(run->variables, MIXES_VARIABLES),
                    run->program->name) &&
           bench_ok(run->bench, hal_queue_wait(run->bench->queue, HAL_WAIT_FOREVER),
                    "hal_queue_wait");
}

static void program_run(mixes_run *run)
{
    for (int i = 0; i < MIXES_VARIABLES; i++) {
        run->variables[i] = ops_array_retain(run->inputs[i]);
    }
    for (int i = 0; i < run->program->count && !run->bench->failed; i++) {
        operation_run(run, &run->program->operations[i]);
    }
    variables_finish(run);
}

static void calls_run(void *user, int calls)
{
    mixes_run *run = user;
    for (int i = 0; i < calls && !run->bench->failed; i++) {
        program_run(run);
        arrays_release(run->variables);
    }
}

/* The number of an element of `variable` for an element of `target`, which has its axes or more. */
static int64_t element_of(const mixes_run *run, int target, int64_t element, int variable)
{
    const int64_t row = element / run->shapes[target][1], column = element % run->shapes[target][1];
    const int64_t columns = run->shapes[variable][1];
    return (run->shapes[variable][0] > 1 ? row * columns : 0) + (columns > 1 ? column : 0);
}

static estimate reduce_element(const mixes_run *run, const mixes_operation *operation,
                               int64_t element)
{
    const int64_t *shape = run->shapes[operation->x];
    const int64_t count = shape[operation->axis], step = operation->axis == 0 ? shape[1] : 1;
    const estimate *x = run->expected[operation->x];
    const int64_t first = operation->axis == 0 ? element : element * shape[1];
    estimate result = x[first];
    double sum = 0.0, size = 0.0, error = 0.0;
    for (int64_t i = 0; i < count; i++) {
        const estimate *one = &x[first + i * step];
        sum += one->value;
        size += fabs(one->value) + one->error;
        error += one->error;
        if (operation->function != OPS_REDUCE_MEAN && i > 0) {
            result = estimate_binary(operation->function == OPS_REDUCE_MAX ? OPS_MAXIMUM
                                                                           : OPS_MINIMUM,
                                     result, *one);
        }
    }
    if (operation->function != OPS_REDUCE_MEAN) {
        return result;
    }
    /* Each of the additions rounds a partial sum, which is at most the sum of sizes. */
    const double rounding = (double)FLT_EPSILON * (double)(count + 1) * size;
    return (estimate){sum / (double)count, (error + rounding) / (double)count + (double)FLT_MIN};
}

static void operation_work_out(mixes_run *run, const mixes_operation *operation)
{
    static estimate result[MIXES_ELEMENTS];
    const int target = operation->target;
    const int64_t count = element_count(run, target);
    for (int64_t i = 0; i < count && operation->kind != MIXES_READ; i++) {
        const estimate x = run->expected[operation->x][element_of(run, target, i, operation->x)];
        if (operation->kind == MIXES_UNARY) {
            result[i] = estimate_unary((ops_unary_function)operation->function, x);
        } else if (operation->kind == MIXES_BINARY) {
            const estimate y =
                run->expected[operation->y][element_of(run, target, i, operation->y)];
            result[i] = estimate_binary((ops_binary_function)operation->function, x, y);
        } else {
            result[i] = reduce_element(run, operation, i);
        }
    }
    if (operation->kind != MIXES_READ) {
        memcpy(run->expected[target], result, (size_t)count * sizeof *result);
    }
}

static bool numbers_read(mixes_run *run, int variable, float *numbers)
{
    return bench_ok(run->bench,
                    ops_array_read(run->variables[variable],
                                   (uint64_t)element_count(run, variable) * sizeof *numbers,
                                   numbers),
                    run->program->name);
}

/* Leaves the numbers of all variables at the end in run->numbers. */
static bool segments_check(mixes_run *run)
{
    const mixes_program *program = run->program;
    bool well = true;
    for (int i = 0; i < MIXES_VARIABLES; i++) {
        run->variables[i] = ops_array_retain(run->inputs[i]);
    }
    for (int first = 0; first < program->count && well; first += SEGMENT) {
        for (int i = 0; i < MIXES_VARIABLES; i++) {
            for (int64_t e = 0; e < element_count(run, i); e++) {
                run->expected[i][e] = estimate_exact((double)run->numbers[i][e]);
            }
        }
        for (int i = first; i < program->count && i < first + SEGMENT; i++) {
            operation_run(run, &program->operations[i]);
            operation_work_out(run, &program->operations[i]);
        }
        for (int i = 0; i < MIXES_VARIABLES && well; i++) {
            well = !run->bench->failed && numbers_read(run, i, run->numbers[i]) &&
                   estimate_check(run->bench, program->name, run->numbers[i], run->expected[i],
                                  (int)element_count(run, i));
        }
    }
    arrays_release(run->variables);
    return well;
}

/* What was fused differently has the same bits. */
static bool bits_check(mixes_run *run)
{
    static float numbers[MIXES_ELEMENTS];
    bool well = true;
    program_run(run);
    for (int i = 0; i < MIXES_VARIABLES && well; i++) {
        well = !run->bench->failed && numbers_read(run, i, numbers) &&
               (memcmp(numbers, run->numbers[i],
                       (size_t)element_count(run, i) * sizeof *numbers) == 0 ||
                bench_fail(run->bench, "%s: variable %d has other bits than in segments",
                           run->program->name, i));
    }
    arrays_release(run->variables);
    return well;
}

static void program_add(mixes_run *run)
{
    bench_state *bench = run->bench;
    double first_ms = 0.0;
    bool well = inputs_make(run);
    if (well) {
        const double start = measure_now();
        calls_run(run, 1);
        first_ms = 1e3 * (measure_now() - start);
        well = !bench->failed && segments_check(run) && bits_check(run);
    }
    if (well) {
        measured one = {.function = calls_run, .user = run};
        measure_alternating(&one, 1, bench->options.seconds);
        bench_row *row = bench->failed ? NULL : bench_add(bench, run->program->name, HAL_TYPE_F32);
        if (row) {
            row->m = run->program->shape[0];
            row->n = run->program->shape[1];
            row->k = run->program->count;
            row->first_ms = first_ms;
            row->time = measure_divide(&one.time, run->program->count);
        }
    }
    arrays_release(run->inputs);
}

/* Calls `use` for each program that the options select. */
static void programs_each(const bench_options *options, void *user,
                          void (*use)(void *user, const mixes_program *program, uint64_t seed))
{
    static mixes_program program;
    const uint64_t seed = bench_seed_of(options);
    const int count = options->random > 0 ? (int)options->random : 24;
    const uint64_t most = options->largest > 0 && options->largest < MIXES_ELEMENTS
                              ? options->largest
                              : MIXES_ELEMENTS;
    for (int i = 0; i < count; i++) {
        mixes_draw(seed, i, most, &program);
        if (bench_name_passes(program.name, options->filter)) {
            use(user, &program, seed);
        }
    }
}

static void program_list(void *user, const mixes_program *program, uint64_t seed)
{
    int *count = user;
    printf(*count == 0 ? "{\"seed\": %llu, \"cells\": [\n" : ",\n", (unsigned long long)seed);
    mixes_print(program);
    (*count)++;
}

bool mixes_list(const bench_options *options)
{
    int count = 0;
    programs_each(options, &count, program_list);
    printf(count > 0 ? "\n]}\n" : "{\"cells\": []}\n");
    return true;
}

static void program_measure(void *user, const mixes_program *program, uint64_t seed)
{
    mixes_run *run = user;
    const bool failed_before = run->bench->failed;
    if (interrupt_was_asked()) {
        return;
    }
    if (run->bench->note_count == 0) {
        bench_note(run->bench, "Random programs: --seed %llu", (unsigned long long)seed);
    }
    run->bench->failed = false;
    run->program = program;
    program_add(run);
    run->bench->failed |= failed_before;
}

void suite_mixes(bench_state *bench)
{
    mixes_run *run = calloc(1, sizeof *run);
    if (!run) {
        bench_fail(bench, "out of memory");
        return;
    }
    run->bench = bench;
    interrupt_watch();
    programs_each(&bench->options, run, program_measure);
    free(run);
}
