/* native_queues.c: order between hal's queues and queues of the driver. The driver's queue is that
 * of another queue of hal, and the memory has two buffers, so that hal itself orders nothing. */
#include <hal/hal.h>
#include <stdio.h>
#include <string.h>

#include "case/cases.h"
#include "hal/fixture.h"

enum { COUNT = 4096, STEPS = 200 };

typedef struct native_case {
    char type[64]; /* of the driver's queues */
    hal_queue *other;
    uint64_t native; /* of `other` */
    hal_kernel *kernel;
    hal_buffer *first, *second; /* of the same memory */
    hal_buffer *between, *result;
} native_case;

static void buffer_release(void *buffer)
{
    hal_buffer_release(buffer);
}

/* The first name that the message lists. */
static void type_find(case_run *run, char type[64])
{
    static const char before[] = "expected one of ";
    hal_queue *queue = NULL;
    case_expect(run, hal_queue_import_native(run->device, "no_such_type", 1, &queue),
                HAL_ERROR_UNSUPPORTED, "no_such_type", "a queue of an unknown type");
    const char *names = strstr(hal_status_message(), before);
    if (!names) {
        case_unsupported(run, "import of queues");
    }
    names += strlen(before);
    const size_t length = strcspn(names, ", ");
    case_check(run, length > 0 && length < 64, "the message lists no type: %s",
               hal_status_message());
    snprintf(type, 64, "%.*s", (int)length, names);
}

static void native_begin(case_run *run, native_case *is)
{
    hal_memory_handle handle = {0};
    type_find(run, is->type);
    is->other = case_queue(run, run->device);
    case_ok(run, hal_queue_get_native(is->other, is->type, &is->native), "hal_queue_get_native");
    is->kernel = scale_kernel(run, run->device);
    is->first = words_create(run, run->queue, COUNT, 0, 1);
    is->between = words_create(run, run->queue, COUNT, 0, 0);
    is->result = words_create(run, run->queue, COUNT, 0, 0);
    case_ok(run, hal_queue_wait(run->queue, HAL_WAIT_FOREVER), "hal_queue_wait");
    const hal_status status = hal_buffer_export(is->first, HAL_HANDLE_NATIVE, &handle);
    case_claim(run, status != HAL_ERROR_UNSUPPORTED, "export of native handles");
    case_ok(run, status, "hal_buffer_export");
    case_ok(run, hal_buffer_import(run->device, &handle, NULL, NULL, &is->second),
            "hal_buffer_import");
    case_own(run, buffer_release, is->second);
}

/* Adds 2 to each word STEPS times, which takes the device a while. */
static void work_submit(case_run *run, const native_case *is, hal_queue *queue)
{
    for (uint32_t i = 0; i < STEPS; i++) {
        scale_dispatch(run, queue, is->kernel, is->first, is->between, COUNT, 1, 1);
        scale_dispatch(run, queue, is->kernel, is->between, is->first, COUNT, 1, 1);
    }
    case_ok(run, hal_queue_flush(queue, NULL), "hal_queue_flush");
}

static void work_check(case_run *run, const native_case *is, hal_queue *queue, const char *what)
{
    scale_dispatch(run, queue, is->kernel, is->second, is->result, COUNT, 1, 0);
    words_check(run, queue, is->result, COUNT, 2 * STEPS, 1, what);
}

static void wait_native(case_run *run, const void *parameters)
{
    native_case is;
    native_begin(run, &is);
    work_submit(run, &is, is.other);
    case_ok(run, hal_queue_wait_native(run->queue, is.type, is.native), "hal_queue_wait_native");
    work_check(run, &is, run->queue, "what work of the driver's queue wrote");
    work_submit(run, &is, is.other);
    case_ok(run, hal_queue_wait_native(run->queue, is.type, is.native), "hal_queue_wait_native");
    case_ok(run, hal_queue_wait(run->queue, HAL_WAIT_FOREVER), "a wait without commands");
    words_check(run, is.other, is.second, COUNT, 4 * STEPS, 1, "what the host waited for");
    const hal_status lacks = HAL_ERROR_UNSUPPORTED, wrong = HAL_ERROR_INVALID_ARGUMENT;
    case_expect(run, hal_queue_wait_native(run->queue, "no_such_type", is.native), lacks,
                "no_such_type", "a wait for an unknown type");
    case_expect(run, hal_queue_wait_native(run->queue, NULL, is.native), wrong, "type",
                "a wait for a null type");
}

static void block_native(case_run *run, const void *parameters)
{
    native_case is;
    uint64_t native = 0;
    native_begin(run, &is);
    case_ok(run, hal_queue_get_native(run->queue, is.type, &native), "hal_queue_get_native");
    work_submit(run, &is, is.other);
    case_ok(run, hal_queue_block_native(is.other, is.type, native), "hal_queue_block_native");
    work_check(run, &is, run->queue, "what batches wrote that the driver's queue waits for");
    const hal_status lacks = HAL_ERROR_UNSUPPORTED;
    case_expect(run, hal_queue_block_native(is.other, "no_such_type", native), lacks,
                "no_such_type", "an unknown type that waits");
}

/* Batches of the imported queue and work of its owner, in turns. */
static void import_native(case_run *run, const void *parameters)
{
    native_case is;
    hal_queue *queue = NULL;
    native_begin(run, &is);
    case_expect(run, hal_queue_import_native(run->device, NULL, is.native, &queue),
                HAL_ERROR_INVALID_ARGUMENT, "type", "a queue of a null type");
    for (uint32_t turn = 0; turn < 3; turn++) {
        case_ok(run, hal_queue_import_native(run->device, is.type, is.native, &queue),
                "hal_queue_import_native");
        work_submit(run, &is, turn % 2 ? queue : is.other);
        hal_queue *const reader = turn % 2 ? is.other : queue;
        scale_dispatch(run, reader, is.kernel, is.second, is.result, COUNT, 1, 0);
        words_check(run, reader, is.result, COUNT, 2 * STEPS * (turn + 1), 1,
                    "what came before on the driver's queue");
        hal_queue_destroy(queue);
    }
    words_check(run, is.other, is.first, COUNT, 6 * STEPS, 1, "what the owner's queue reads");
}

void cases_hal_native_queues(case_list *list)
{
    case_add(list, wait_native, NULL, 0, "native_queues/wait");
    case_add(list, block_native, NULL, 0, "native_queues/block");
    case_add(list, import_native, NULL, 0, "native_queues/import");
}
