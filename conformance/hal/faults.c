/* faults.c: a call into the plugin fails, or the device is lost, at the n-th place of its kind, by
 * hal's fault layer; whatever it was, the program learns of it, everything can be given back, and
 * the next program on the device works. Each case has a process of its own, since the layer counts
 * from its beginning. */
#include <string.h>

#include "cases.h"
#include "hal/hal_case.h"

#define COUNT 300u
enum { MOST_FAULTS = 6 };

typedef struct fault {
    const char *kind; /* as HAL_FAULT has it */
    hal_status status;
    int number;
} fault;

/* A program on the device: two buffers, a kernel between them. */
typedef struct program {
    case_run run; /* what came of it: its own, since it may fail */
    hal_queue *other;
    hal_kernel *kernel;
    hal_buffer *x, *y;
} program;

static void begin_program(program *p, const case_run *run)
{
    *p = (program){.run = {.selection = run->selection, .name = run->name, .seed = run->seed}};
}

static void run_program(program *p)
{
    case_run *run = &p->run;
    if (!case_ok(run, hal_device_open(run->selection, &run->device), "hal_device_open") ||
        !case_ok(run, hal_queue_create(run->device, &run->queue), "hal_queue_create") ||
        !case_ok(run, hal_queue_create(run->device, &p->other), "hal_queue_create")) {
        return;
    }
    p->kernel = scale_kernel(run, run->device);
    p->x = p->kernel == NULL ? NULL : words_create(run, run->queue, COUNT, 5, 3);
    p->y = p->x == NULL ? NULL : words_create(run, p->other, COUNT, 0, 0);
    hal_point written;
    if (p->y != NULL && case_ok(run, hal_queue_flush(p->other, &written), "hal_queue_flush") &&
        case_ok(run, hal_queue_wait_point(run->queue, written), "hal_queue_wait_point") &&
        scale_dispatch(run, run->queue, p->kernel, p->x, p->y, COUNT, 2, 1)) {
        words_check(run, run->queue, p->y, COUNT, 11, 6, "the result");
    }
}

/* Every later call says so, on every queue. */
static void stays_lost(case_run *run, program *p)
{
    hal_buffer *buffer = NULL;
    uint32_t word = 0;
    const hal_status status = HAL_ERROR_DEVICE_LOST;
    if (p->run.queue == NULL) {
        return;
    }
    case_expect(run, hal_buffer_create(p->run.device, HAL_MEMORY_DEVICE, 1 << 20, &buffer), status,
                NULL, "hal_buffer_create on a lost device");
    case_expect(run, hal_queue_wait(p->run.queue, HAL_WAIT_FOREVER), status, NULL,
                "hal_queue_wait on a lost device");
    if (p->x != NULL) {
        case_expect(run, hal_queue_read(p->run.queue, p->x, 0, sizeof word, &word), status, NULL,
                    "hal_queue_read on a lost device");
    }
    hal_buffer_release(buffer);
}

static void end_program(program *p)
{
    hal_buffer_release(p->x);
    hal_buffer_release(p->y);
    hal_kernel_release(p->kernel);
    hal_queue_destroy(p->other);
    hal_queue_destroy(p->run.queue);
    hal_device_release(p->run.device);
}

static void run_fault(case_run *run, const void *parameters)
{
    const fault *tested = parameters;
    static program first, second;
    begin_program(&first, run);
    run_program(&first);
    const bool failed = !case_is_well(&first.run);
    if (failed && first.run.failure != tested->status) {
        case_fail(run, "with '%s' number %d failing: %s", tested->kind, tested->number,
                  first.run.detail);
    }
    /* A device that is done when it is looked at is never waited for. */
    case_check(run, failed || tested->number > 1 || strcmp(tested->kind, "wait") == 0,
               "the first '%s' failed, and nobody was told", tested->kind);
    if (failed && tested->status == HAL_ERROR_DEVICE_LOST) {
        stays_lost(run, &first);
    }
    end_program(&first);
    if (tested->status == HAL_ERROR_OUT_OF_MEMORY || !case_is_well(run)) {
        return; /* no memory for a second one */
    }
    begin_program(&second, run);
    run_program(&second);
    end_program(&second);
    /* A fault that the first did not reach hits the second. */
    if (failed && !case_is_well(&second.run)) {
        case_fail(run, "a second program, after '%s' number %d failed in the first: %s",
                  tested->kind, tested->number, second.run.detail);
    }
}

void cases_hal_faults(case_list *list)
{
    static const struct {
        const char *kind;
        hal_status status;
    } kinds[] = {{"allocation", HAL_ERROR_OUT_OF_MEMORY},
                 {"compile", HAL_ERROR_COMPILE},
                 {"submit", HAL_ERROR_INTERNAL},
                 {"wait", HAL_ERROR_INTERNAL},
                 {"lost", HAL_ERROR_DEVICE_LOST}};
    for (size_t k = 0; k < sizeof kinds / sizeof kinds[0]; k++) {
        for (int number = 1; number <= MOST_FAULTS; number++) {
            const fault tested = {kinds[k].kind, kinds[k].status, number};
            case_add(list, run_fault, &tested, sizeof tested, "faults/%s(number=%d)", tested.kind,
                     number);
            /* A single failed allocation is survived: the pool is trimmed and asked again. */
            case_has_faults(list, "%s:%d%s", tested.kind, number,
                            tested.status == HAL_ERROR_OUT_OF_MEMORY ? "+" : "");
        }
    }
}
