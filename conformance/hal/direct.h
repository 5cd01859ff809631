/* direct.h: the plugin under test without hal in between: an instance with a host of the case,
 * which keeps what the plugin tells it, and can run out of memory. The file is the one that hal has
 * loaded. */
#ifndef CONFORMANCE_HAL_DIRECT_H
#define CONFORMANCE_HAL_DIRECT_H

#include <hal/plugin.h>
#include <pthread.h>

#include "case/case.h"

enum { DIRECT_QUEUES = 2, DIRECT_WORDS = 1024 };
#define DIRECT_LIMIT_NS UINT64_C(20000000000) /* of waits that have to end */

typedef struct direct {
    hal_host host; /* the first member: what the plugin passes back */
    const hal_plugin *table;
    /* hal_extension_NAME *NAME, of each extension; null: not offered, or without entries that hal
     * uses together, or no times are claimed. Ask for other entries by DIRECT_HAS. */
#define DIRECT_EXTENSION(extension, name, needed) const hal_extension_##extension *extension;
    HAL_EXTENSIONS(DIRECT_EXTENSION)
#undef DIRECT_EXTENSION
    hal_plugin_instance *instance;
    hal_plugin_device *device;
    hal_plugin_queue *queues[DIRECT_QUEUES];
    uint64_t submitted[DIRECT_QUEUES]; /* values */
    hal_plugin_memory *memory;         /* DIRECT_WORDS words, mapped */
    uint32_t *words;
    pthread_mutex_t lock; /* of what follows */
    char message[256];    /* of `fail`; empty: none since direct_forget */
    char failed[DIRECT_QUEUES][256];
    uint64_t reached[DIRECT_QUEUES]; /* as told by queue_reached */
    uint64_t allocations, live;      /* calls of `allocate`; what was not released */
    uint64_t fails_at;               /* number of the allocation that fails; 0: none */
    bool may_be_lost;                /* by a batch with an unknown command */
} direct;

/* Whether the plugin offers an entry of an extension. */
#define DIRECT_HAS(direct, extension, entry) \
    ((direct)->extension && HAL_PLUGIN_HAS((direct)->extension, entry))

/* Whether it offers both times of a report. */
#define DIRECT_HAS_CLOCKS(direct) \
    (DIRECT_HAS(direct, reports, clocks_read) && DIRECT_HAS(direct, reports, queue_time))

/* The file of the plugin under test. */
const char *direct_path(case_run *run);

/* A host without an instance, which stays as long as the process. */
direct *direct_host(case_run *run);

/* Makes an instance, without a device. */
void direct_instance(case_run *run, direct *opened);

/* Makes an instance and opens the device under test. Returns what the plugin does. */
hal_status direct_open(case_run *run, direct *opened);

/* An open device with memory and queues, which is closed at the case's end. */
direct *direct_opened(case_run *run);

/* The same, of one device for all cases of the process, as drivers take seconds to open one. After
 * a case that failed, or may have lost it, the next one opens another. Its queues have had
 * batches. */
direct *direct_shared(case_run *run);

/* Makes the memory and the queues of an opened device. Returns what the plugin does; what was made
 * before a failure remains. */
hal_status direct_make(direct *opened);

/* Destroys memory and queues. */
void direct_unmake(direct *opened);

/* Destroys what is there, the instance too; the second form is for case_own. */
void direct_close(direct *opened);
void direct_close_object(void *opened);

typedef enum direct_work {
    DIRECT_FILL,         /* of all words */
    DIRECT_FILL_UNKNOWN, /* and after it a command of a kind that no version has */
    DIRECT_UNKNOWN       /* that alone */
} direct_work;

hal_status direct_submit(direct *opened, uint32_t queue, uint32_t pattern, direct_work work);

/* A fill of a range of memory of the device; bytes is a multiple of 4. */
hal_status direct_fill(direct *opened, uint32_t queue, hal_plugin_memory *memory, uint64_t offset,
                       uint64_t bytes, uint32_t pattern);

/* A fill of all words by a batch that waits for values, which have been submitted. */
hal_status direct_submit_after(direct *opened, uint32_t queue, uint32_t pattern,
                               const hal_plugin_wait *waits, uint32_t wait_count);

/* Waits for the last value of a queue. */
hal_status direct_wait(direct *opened, uint32_t queue, uint64_t timeout_ns);

/* Makes the words those that batches wrote. */
void direct_see_words(case_run *run, direct *opened);

/* Reports unless all words have the value. */
void direct_check_words(case_run *run, direct *opened, uint32_t pattern, const char *what);

/* Forgets the message of `fail`. */
void direct_forget(direct *opened);

/* Whether a failed call on a queue has a message: its own, or that of the queue. */
bool direct_has_message(direct *opened, uint32_t queue);

/* Whether a text is UTF-8, of characters of up to 16 bits. */
bool direct_is_utf8(const char *text);

#endif
