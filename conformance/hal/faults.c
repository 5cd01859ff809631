/* faults.c: the n-th call of a kind into the plugin fails, or the device is lost, by hal's fault
 * layer. The program gets an error, everything can be released, and the next program on the device
 * works. Each case has a separate process, since the layer counts from its beginning. */
#include <string.h>

#include "case/cases.h"
#include "hal/fixture.h"

#define COUNT 300u
enum { MOST_FAULTS = 6, REOPENED = 2 };

typedef struct fault {
    const char *kind; /* as HAL_FAULT has it */
    hal_status status;
    int number;
} fault;

/* A program on the device: two buffers, a kernel between them. Its run is separate, since it may
 * fail. */
typedef struct program {
    case_run run;
    hal_buffer *x;
} program;

static void run_program(case_run *run, const void *parameters)
{
    program *p = *(program *const *)parameters;
    hal_point written;
    device_open_here(run);
    hal_queue *other = case_queue(run, run->device);
    hal_kernel *kernel = scale_kernel(run, run->device);
    p->x = words_create(run, run->queue, COUNT, 5, 3);
    hal_buffer *y = words_create(run, other, COUNT, 0, 0);
    case_ok(run, hal_queue_flush(other, &written), "hal_queue_flush");
    case_ok(run, hal_queue_wait_point(run->queue, written), "hal_queue_wait_point");
    scale_dispatch(run, run->queue, kernel, p->x, y, COUNT, 2, 1);
    words_check(run, run->queue, y, COUNT, 11, 6, "the result");
}

/* True when the program had no failure. */
static bool program_execute(program *p, const case_run *run)
{
    *p = (program){.run = {.selection = run->selection, .name = run->name, .seed = run->seed}};
    return case_execute(&p->run, run_program, &p);
}

/* Every later call says so, on every queue. */
static void lost_check(case_run *run, const program *p)
{
    hal_buffer *buffer = NULL;
    uint32_t word = 0;
    const hal_status status = HAL_ERROR_DEVICE_LOST;
    if (!p->run.queue) {
        return;
    }
    case_expect(run, hal_buffer_create(p->run.device, HAL_MEMORY_DEVICE, 1 << 20, &buffer), status,
                NULL, "hal_buffer_create on a lost device");
    case_expect(run, hal_queue_wait(p->run.queue, HAL_WAIT_FOREVER), status, NULL,
                "hal_queue_wait on a lost device");
    if (p->x) {
        case_expect(run, hal_queue_read(p->run.queue, p->x, 0, sizeof word, &word), status, NULL,
                    "hal_queue_read on a lost device");
    }
}

static void run_fault(case_run *run, const void *parameters)
{
    const fault *tested = parameters;
    static program first, second;
    const bool failed = !program_execute(&first, run);
    case_check(run, !failed || first.run.failure == tested->status,
               "with '%s' number %d failing: %s", tested->kind, tested->number, first.run.detail);
    /* A plugin is not asked to wait for a device that a poll finds idle. */
    case_check(run, failed || tested->number > 1 || strcmp(tested->kind, "wait") == 0,
               "the first '%s' failed, and no call reported it", tested->kind);
    if (failed && tested->status == HAL_ERROR_DEVICE_LOST) {
        lost_check(run, &first);
    }
    /* Not each second program opens the device again: that takes seconds with some drivers. */
    const bool keeps = tested->number > REOPENED && tested->status != HAL_ERROR_DEVICE_LOST;
    hal_device *kept = keeps && first.run.device ? hal_device_retain(first.run.device) : NULL;
    case_release(&first.run, 0);
    if (tested->status == HAL_ERROR_OUT_OF_MEMORY) {
        hal_device_release(kept);
        return; /* no memory for a second one */
    }
    const bool worked = program_execute(&second, run);
    case_release(&second.run, 0);
    hal_device_release(kept);
    /* A fault that the first did not reach hits the second. */
    case_check(run, !failed || worked,
               "a second program, after '%s' number %d failed in the first: %s", tested->kind,
               tested->number, second.run.detail);
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
