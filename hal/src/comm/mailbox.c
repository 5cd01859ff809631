/* Mailboxes of communicators, see mailbox.h. A mailbox between processes is a file of shared memory
 * that is unlinked as soon as all ranks have joined. Each rank locks one byte of it, and the rank
 * that creates it one more before others see it: the system drops the locks when the process ends,
 * which tells the others. */
#include "mailbox.h"

#include "base/cancel.h"
#include "base/fork.h"
#include "base/clock.h"
#include "base/number.h"
#include "base/platform.h"
#include "base/status.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define VERSION UINT64_C(0x68616c0000000005)
#define MAX_SLOT_BYTES (UINT64_C(2) << 20)
#define MAX_DATA_BYTES (UINT64_C(32) << 20) /* of all slots */
#define SLOT_ALIGNMENT UINT64_C(4096)
#define PAUSE_NS 200000
#define REMOVE_LOCK UINT64_C(1000000) /* byte that guards the removal of a mailbox */
#define CREATE_LOCK UINT64_C(1000001) /* byte that the rank that created it has locked */

static pthread_mutex_t local_lock = PTHREAD_MUTEX_INITIALIZER;
HAL_FORK_GUARD(local_lock, HAL_FORK_LAYER)
static hal_mailbox *local_mailboxes; /* that some ranks have not joined yet */

static uint64_t round_up(uint64_t value, uint64_t multiple)
{
    return (value + multiple - 1) / multiple * multiple;
}

static uint64_t slot_bytes_of(uint32_t count)
{
    const uint64_t share = MAX_DATA_BYTES / (2 * (uint64_t)count) / SLOT_ALIGNMENT * SLOT_ALIGNMENT;
    return share < MAX_SLOT_BYTES ? share : MAX_SLOT_BYTES;
}

static uint64_t header_bytes(uint32_t count)
{
    return round_up(sizeof(hal_mailbox_header) + count * sizeof(hal_mailbox_rank), SLOT_ALIGNMENT);
}

uint8_t *hal_mailbox_slot(const hal_mailbox *mailbox, uint32_t rank, uint64_t step)
{
    return (uint8_t *)mailbox->header + header_bytes(mailbox->count) +
           (2 * (uint64_t)rank + step % 2) * mailbox->slot_bytes;
}

static void name_of(const hal_comm_id *id, char name[32])
{
    snprintf(name, 32, "/hal-%02x%02x%02x%02x%02x%02x%02x%02x%02x%02x%02x%02x", id->bytes[0],
             id->bytes[1], id->bytes[2], id->bytes[3], id->bytes[4], id->bytes[5], id->bytes[6],
             id->bytes[7], id->bytes[8], id->bytes[9], id->bytes[10], id->bytes[11]);
}

static hal_mailbox *mailbox_allocate(const hal_comm_id *id, uint32_t count)
{
    hal_mailbox *mailbox = calloc(1, sizeof *mailbox);
    if (mailbox) {
        mailbox->id = *id;
        mailbox->count = count;
        mailbox->own = HAL_COMM_MAX_RANKS;
        mailbox->file = -1;
        mailbox->slot_bytes = slot_bytes_of(count);
        mailbox->bytes = header_bytes(count) + 2 * (uint64_t)count * mailbox->slot_bytes;
        atomic_store(&mailbox->references, 1);
    }
    return mailbox;
}

const char *hal_mailbox_backend(const hal_mailbox *mailbox)
{
    return mailbox->transport ? "mpi" : mailbox->file < 0 ? "host" : "shared";
}

static bool mailbox_map(hal_mailbox *mailbox)
{
    const int flags = mailbox->file < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED;
    void *memory = mmap(NULL, mailbox->bytes, PROT_READ | PROT_WRITE, flags, mailbox->file, 0);
    mailbox->header = memory == MAP_FAILED ? NULL : memory;
    return mailbox->header != NULL;
}

static void mailbox_unref(hal_mailbox *mailbox)
{
    HAL_UNCANCELLED;
    if (atomic_fetch_sub(&mailbox->references, 1) > 1) {
        return;
    }
    if (mailbox->transport) {
        hal_transport_close(mailbox->transport);
    }
    if (mailbox->header) {
        munmap(mailbox->header, mailbox->bytes);
    }
    if (mailbox->file >= 0) {
        close(mailbox->file);
    }
    free(mailbox);
}

static void mailbox_set_ready(hal_mailbox *mailbox)
{
    mailbox->header->count = mailbox->count;
    atomic_store_explicit(&mailbox->header->ready, VERSION, memory_order_release);
}

static hal_status fail_system(const char *function, const char *what)
{
    const int error = errno;
    const hal_status status = error == ENOMEM || error == ENOSPC   ? HAL_ERROR_OUT_OF_MEMORY
                              : error == ENOSYS || error == ENOENT ? HAL_ERROR_UNSUPPORTED
                                                                   : HAL_ERROR_IO;
    return hal_fail(status, "%s: shared memory of the communicator: %s: %s", function, what,
                    strerror(error));
}

/* Creates a file of shared memory that does not exist, with CREATE_LOCK before other processes see
 * it. Returns -1 with errno, EEXIST if there is one. */
static int file_create(const char *name)
{
    int file = -1;
#ifdef O_TMPFILE
    char path[64], unnamed[64];
    snprintf(path, sizeof path, "/dev/shm%s", name);
    file = open("/dev/shm", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (file >= 0) {
        snprintf(unnamed, sizeof unnamed, "/proc/self/fd/%d", file);
        if (hal_file_lock_byte(file, CREATE_LOCK) &&
            linkat(AT_FDCWD, unnamed, AT_FDCWD, path, AT_SYMLINK_FOLLOW) == 0) {
            return file;
        }
        const int error = errno;
        close(file);
        errno = error;
        if (error == EEXIST) {
            return -1;
        }
    }
#endif
    file = shm_open(name, O_RDWR | O_CREAT | O_EXCL, 0600);
    if (file >= 0) {
        hal_file_lock_byte(file, CREATE_LOCK);
    }
    return file;
}

/* Whether the rank that created the file has ended. Its name is gone before that, unless the rank
 * was killed. */
static bool creator_is_dead(const hal_mailbox *mailbox)
{
    return !hal_file_is_byte_locked(mailbox->file, CREATE_LOCK);
}

/* Waits until the rank that created the file has written its size and header; *stale: it has ended
 * before that. */
static hal_status mailbox_await_header(hal_mailbox *mailbox, uint64_t time_limit_ns,
                                       const char *function, bool *stale)
{
    const uint64_t begin = hal_clock_ns();
    struct stat found = {0};
    for (;;) {
        if (fstat(mailbox->file, &found) != 0 || found.st_uid != geteuid()) {
            return hal_fail(HAL_ERROR_IO,
                            "%s: id: expected shared memory of the same user, got that of another",
                            function);
        }
        if ((uint64_t)found.st_size >= sizeof(hal_mailbox_header)) {
            break;
        }
        *stale = creator_is_dead(mailbox);
        if (*stale) {
            return HAL_OK;
        }
        if (hal_clock_ns() - begin > time_limit_ns) {
            return hal_fail(HAL_ERROR_TIMEOUT, "%s: id: the rank that came first did not finish",
                            function);
        }
        hal_pause_ns(PAUSE_NS);
    }
    if ((uint64_t)found.st_size != mailbox->bytes) {
        return hal_fail(HAL_ERROR_INVALID_ARGUMENT,
                        "%s: count: expected the count of the rank that came first, got %u",
                        function, mailbox->count);
    }
    if (!mailbox_map(mailbox)) {
        return fail_system(function, "mmap");
    }
    while (atomic_load_explicit(&mailbox->header->ready, memory_order_acquire) != VERSION) {
        *stale = creator_is_dead(mailbox);
        if (*stale) {
            return HAL_OK;
        }
        if (hal_clock_ns() - begin > time_limit_ns) {
            return hal_fail(HAL_ERROR_TIMEOUT, "%s: id: the rank that came first did not finish",
                            function);
        }
        hal_pause_ns(PAUSE_NS);
    }
    return HAL_OK;
}

/* A process does not see its own lock. */
bool hal_mailbox_is_rank_dead(const hal_mailbox *mailbox, uint32_t rank)
{
    const hal_mailbox_rank *other = hal_mailbox_rank_at(mailbox, rank);
    return mailbox->file >= 0 && rank != mailbox->own && atomic_load(&other->joined) == 2 &&
           !atomic_load(&other->left) && !hal_file_is_byte_locked(mailbox->file, rank);
}

/* Whether a rank of an existing mailbox has ended: the mailbox is left over from a job of the same
 * name that was killed while it started. */
static bool mailbox_is_stale(const hal_mailbox *mailbox)
{
    bool stale = creator_is_dead(mailbox);
    for (uint32_t q = 0; q < mailbox->count; q++) {
        stale |= hal_mailbox_is_rank_dead(mailbox, q) != 0;
    }
    return stale;
}

/* Of the ranks that see a stale mailbox, the one with the lock removes it. */
static void mailbox_remove_stale(hal_mailbox *mailbox, const char *name)
{
    struct stat found = {0};
    if (!hal_file_lock_byte(mailbox->file, REMOVE_LOCK)) {
        hal_pause_ns(PAUSE_NS);
    } else if (fstat(mailbox->file, &found) == 0 && found.st_nlink > 0) {
        shm_unlink(name);
    }
    if (mailbox->header) {
        munmap(mailbox->header, mailbox->bytes);
    }
    close(mailbox->file);
    mailbox->header = NULL;
    mailbox->file = -1;
}

static hal_status mailbox_open_shared(hal_mailbox *mailbox, uint64_t time_limit_ns,
                                      const char *function)
{
    char name[32];
    name_of(&mailbox->id, name);
    while ((mailbox->file = file_create(name)) < 0) {
        if (errno != EEXIST) {
            return fail_system(function, "shm_open");
        }
        mailbox->file = shm_open(name, O_RDWR, 0600);
        if (mailbox->file < 0 && errno != ENOENT) {
            return fail_system(function, "shm_open");
        }
        if (mailbox->file >= 0) {
            bool stale = false;
            HAL_TRY(mailbox_await_header(mailbox, time_limit_ns, function, &stale));
            if (!stale && !mailbox_is_stale(mailbox)) {
                return HAL_OK;
            }
            mailbox_remove_stale(mailbox, name);
        }
    }
    /* Memory that is not reserved would end the process by a signal when it is short. */
    errno = hal_file_reserve(mailbox->file, mailbox->bytes);
    if (errno != 0 || !mailbox_map(mailbox)) {
        const hal_status status = fail_system(function, "reserving");
        shm_unlink(name);
        return status;
    }
    mailbox_set_ready(mailbox);
    return HAL_OK;
}

/* The local mailbox of the id, which waits for more ranks, or a new one. */
static hal_status mailbox_open_local(hal_mailbox *made, hal_mailbox **mailbox, const char *function)
{
    pthread_mutex_lock(&local_lock);
    for (hal_mailbox *other = local_mailboxes; other; other = other->next) {
        if (memcmp(&other->id, &made->id, sizeof made->id) == 0) {
            atomic_fetch_add(&other->references, 1);
            *mailbox = other;
        }
    }
    hal_status status = HAL_OK;
    if (*mailbox == made) {
        if (mailbox_map(made)) {
            mailbox_set_ready(made);
            made->next = local_mailboxes;
            local_mailboxes = made;
        } else {
            status = fail_system(function, "mmap");
        }
    }
    pthread_mutex_unlock(&local_lock);
    if (*mailbox != made) {
        mailbox_unref(made);
    }
    return status;
}

/* No other process can open the mailbox from now on. */
static void mailbox_hide(hal_mailbox *mailbox)
{
    if (mailbox->file >= 0) {
        char name[32];
        name_of(&mailbox->id, name);
        shm_unlink(name);
        return;
    }
    pthread_mutex_lock(&local_lock);
    for (hal_mailbox **at = &local_mailboxes; *at; at = &(*at)->next) {
        if (*at == mailbox) {
            *at = mailbox->next;
            break;
        }
    }
    pthread_mutex_unlock(&local_lock);
}

static hal_status mailbox_join(hal_mailbox *mailbox, uint32_t rank, const char *function)
{
    hal_mailbox_header *header = mailbox->header;
    uint32_t expected = 0;
    if (header->count != mailbox->count) {
        return hal_fail(HAL_ERROR_INVALID_ARGUMENT,
                        "%s: count: expected %u, the count of the rank that came first, got %u",
                        function, header->count, mailbox->count);
    }
    if (!atomic_compare_exchange_strong(&header->ranks[rank].joined, &expected, 1)) {
        return hal_fail(HAL_ERROR_INVALID_ARGUMENT,
                        "%s: rank: expected one that no other caller has, got %u", function, rank);
    }
    if (mailbox->file >= 0) {
        hal_file_lock_byte(mailbox->file, rank);
        mailbox->own = rank;
    }
    atomic_store(&header->ranks[rank].joined, 2);
    if (atomic_fetch_add(&header->joined, 1) + 1 == mailbox->count) {
        mailbox_hide(mailbox);
    }
    return HAL_OK;
}

hal_status hal_mailbox_open(const hal_comm_id *id, uint32_t rank, uint32_t count, bool shared,
                            uint64_t time_limit_ns, const char *function, hal_mailbox **mailbox)
{
    hal_mailbox *made = mailbox_allocate(id, count);
    if (!made) {
        return hal_fail(HAL_ERROR_OUT_OF_MEMORY, "%s: no host memory", function);
    }
    *mailbox = made;
    hal_status status = shared ? mailbox_open_shared(made, time_limit_ns, function)
                               : mailbox_open_local(made, mailbox, function);
    if (status == HAL_OK) {
        status = mailbox_join(*mailbox, rank, function);
    }
    if (status != HAL_OK) {
        mailbox_unref(*mailbox);
        *mailbox = NULL;
    }
    return status;
}

hal_status hal_mailbox_create_linked(hal_transport *transport, const char *function,
                                     hal_mailbox **mailbox)
{
    static const hal_comm_id no_id;
    const uint32_t count = hal_transport_count(transport);
    hal_mailbox *made = mailbox_allocate(&no_id, count);
    if (made) {
        made->slot_bytes = MAX_SLOT_BYTES;
        made->bytes = header_bytes(count);
    }
    if (!made || !mailbox_map(made)) {
        free(made);
        hal_transport_close(transport);
        return hal_fail(HAL_ERROR_OUT_OF_MEMORY, "%s: no host memory", function);
    }
    made->transport = transport;
    mailbox_set_ready(made);
    for (uint32_t q = 0; q < count; q++) {
        atomic_store(&made->header->ranks[q].joined, 2);
    }
    atomic_store(&made->header->joined, count);
    hal_transport_attach(transport, made->header);
    *mailbox = made;
    return HAL_OK;
}

void hal_mailbox_post_offer(hal_mailbox *mailbox, uint32_t rank, const hal_mailbox_offer *offer,
                            const hal_plugin_comm_id *id)
{
    hal_mailbox_rank *own = hal_mailbox_rank_at(mailbox, rank);
    own->offer = *offer;
    if (id) {
        mailbox->header->backend_id = *id;
    }
    atomic_store_explicit(&own->backend, HAL_MAILBOX_BACKEND_OFFERED, memory_order_release);
    if (mailbox->transport) {
        hal_transport_send_backend(mailbox->transport, HAL_MAILBOX_BACKEND_OFFERED, offer, id);
    }
}

void hal_mailbox_post_backend(hal_mailbox *mailbox, uint32_t rank, uint32_t state)
{
    hal_mailbox_rank *own = hal_mailbox_rank_at(mailbox, rank);
    atomic_store_explicit(&own->backend, state, memory_order_release);
    if (mailbox->transport) {
        hal_transport_send_backend(mailbox->transport, state, &own->offer, NULL);
    }
}

void hal_mailbox_fail(hal_mailbox *mailbox, uint32_t rank, hal_status status, const char *message)
{
    char text[HAL_MAILBOX_MESSAGE_BYTES];
    snprintf(text, sizeof text, "rank %u of %u: %s", rank, mailbox->count, message);
    if (hal_mailbox_header_fail(mailbox->header, rank, status, text) && mailbox->transport) {
        hal_transport_send_failure(mailbox->transport, rank, status, text);
    }
}

hal_status hal_mailbox_check(hal_mailbox *mailbox, const char *function)
{
    const hal_mailbox_header *header = mailbox->header;
    const hal_status status =
        mailbox->transport ? hal_transport_update(mailbox->transport) : HAL_OK;
    if (status != HAL_OK) {
        char message[256];
        snprintf(message, sizeof message, "%s", hal_status_message());
        hal_mailbox_fail(mailbox, hal_transport_rank(mailbox->transport), status, message);
    }
    if (atomic_load_explicit(&header->failure, memory_order_acquire) != 2) {
        return HAL_OK;
    }
    return hal_fail(header->failed_status, "%s: comm: %.*s", function,
                    (int)sizeof header->message - 1, header->message);
}

/* Ends the communicator because ranks are missing, on all ranks with the same message. */
static void mailbox_fail_missing(hal_mailbox *mailbox, uint64_t time_limit_ns)
{
    char missing[128] = "", message[320];
    uint32_t first = mailbox->count;
    for (uint32_t r = 0; r < mailbox->count; r++) {
        const size_t used = strlen(missing);
        if (atomic_load(&mailbox->header->ranks[r].joined) < 2) {
            first = r < first ? r : first;
            snprintf(missing + used, sizeof missing - used, " %u", r);
        }
    }
    snprintf(
        message, sizeof message,
        "expected all %u ranks within %s s, missing are ranks%s; the processes of a communicator "
        "are on one host",
        mailbox->count, HAL_NUMBER((double)time_limit_ns / 1e9, 1), missing);
    if (first < mailbox->count) {
        hal_mailbox_fail(mailbox, first, HAL_ERROR_TIMEOUT, message);
    }
}

hal_status hal_mailbox_wait_joined(hal_mailbox *mailbox, uint64_t time_limit_ns,
                                   const char *function)
{
    const uint64_t begin = hal_clock_ns();
    while (atomic_load(&mailbox->header->joined) < mailbox->count) {
        if (hal_clock_ns() - begin > time_limit_ns) {
            mailbox_fail_missing(mailbox, time_limit_ns);
        }
        const hal_status status = hal_mailbox_check(mailbox, function);
        if (status != HAL_OK) {
            mailbox_hide(mailbox);
            return status;
        }
        hal_pause_ns(PAUSE_NS);
    }
    return HAL_OK;
}

void hal_mailbox_close(hal_mailbox *mailbox, uint32_t rank)
{
    atomic_store(&mailbox->header->ranks[rank].left, 1);
    if (atomic_load(&mailbox->header->joined) < mailbox->count) {
        hal_mailbox_fail(mailbox, rank, HAL_ERROR_INVALID_STATE,
                         "left before all ranks had joined the communicator");
        mailbox_hide(mailbox);
    }
    mailbox_unref(mailbox);
}
