/* native_queues.c: order between hal's queues and queues of the driver. The driver's queue is that
 * of another queue of hal, and the memory has two buffers, so that hal itself orders nothing. */
#include <hal/hal.h>
#include <stdio.h>
#include <string.h>

#include "case/cases.h"
#include "hal/alias.h"

typedef struct native_case {
    alias work;
    char type[64];   /* of the driver's queues */
    uint64_t native; /* of the queue of the work */
} native_case;

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
    type_find(run, is->type);
    alias_begin(run, &is->work);
    case_ok(run, hal_queue_get_native(is->work.other, is->type, &is->native),
            "hal_queue_get_native");
}

/* The owner of the driver's queue has to have submitted it. */
static void work_flush(case_run *run, const native_case *is, hal_queue *queue)
{
    alias_submit(run, &is->work, queue);
    case_ok(run, hal_queue_flush(queue, NULL), "hal_queue_flush");
}

static void wait_native(case_run *run, const void *parameters)
{
    native_case is;
    native_begin(run, &is);
    work_flush(run, &is, is.work.other);
    case_ok(run, hal_queue_wait_native(run->queue, is.type, is.native), "hal_queue_wait_native");
    alias_check(run, &is.work, run->queue, 1, "what work of the driver's queue wrote");
    work_flush(run, &is, is.work.other);
    case_ok(run, hal_queue_wait_native(run->queue, is.type, is.native), "hal_queue_wait_native");
    case_ok(run, hal_queue_wait(run->queue, HAL_WAIT_FOREVER), "a wait without commands");
    words_check(run, is.work.other, is.work.second, ALIAS_COUNT, 4 * ALIAS_STEPS, 1,
                "what the host waited for");
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
    work_flush(run, &is, is.work.other);
    case_ok(run, hal_queue_block_native(is.work.other, is.type, native), "hal_queue_block_native");
    alias_check(run, &is.work, run->queue, 1,
                "what batches wrote that the driver's queue waits for");
    const hal_status lacks = HAL_ERROR_UNSUPPORTED;
    case_expect(run, hal_queue_block_native(is.work.other, "no_such_type", native), lacks,
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
        work_flush(run, &is, turn % 2 ? queue : is.work.other);
        hal_queue *const reader = turn % 2 ? is.work.other : queue;
        alias_check(run, &is.work, reader, turn + 1, "what came before on the driver's queue");
        hal_queue_destroy(queue);
    }
    words_check(run, is.work.other, is.work.first, ALIAS_COUNT, 6 * ALIAS_STEPS, 1,
                "what the owner's queue reads");
}

void cases_hal_native_queues(case_list *list)
{
    case_add(list, wait_native, NULL, 0, "native_queues/wait");
    case_add(list, block_native, NULL, 0, "native_queues/block");
    case_add(list, import_native, NULL, 0, "native_queues/import");
}
