/* Direct reads, see direct.h. Each read copies the key of the process as well, which tells one that
 * ended and whose number another process got, and one of another container. */
#include "direct.h"

#include "base/log.h"
#include "base/platform.h"

#include <string.h>
#include <unistd.h>

/* Bytes of a call's count from which on direct reads are faster. Less stays in the caches of the
 * processors, where slots are faster. */
#define DIRECT_BYTES (UINT64_C(2) << 20)
#define DIRECT_SEGMENT_BYTES (UINT64_C(32) << 10) /* for a rank; less is not worth a system call */

void hal_direct_post(hal_mailbox *mailbox, uint32_t rank, uint64_t key[2])
{
    hal_mailbox_process *process = &hal_mailbox_rank_at(mailbox, rank)->process;
    if (mailbox->file < 0 || getentropy(process->key, sizeof process->key) != 0) {
        return;
    }
    memcpy(key, process->key, sizeof process->key);
    process->key_address = (uint64_t)(uintptr_t)key;
    process->id = (uint64_t)getpid();
}

bool hal_direct_is_possible(const hal_mailbox *mailbox, const hal_mailbox_call *call)
{
    return mailbox->file >= 0 && call->count >= DIRECT_BYTES / hal_type_size((hal_type)call->type);
}

bool hal_direct_is_refused(const hal_mailbox *mailbox)
{
    for (uint32_t q = 0; q < mailbox->count; q++) {
        if (atomic_load_explicit(&hal_mailbox_rank_at(mailbox, q)->needs_slots,
                                 memory_order_acquire)) {
            return true;
        }
    }
    return false;
}

bool hal_direct_is_worth(const hal_mailbox *mailbox, uint32_t rank, const hal_segments *out)
{
    return out->count > 0 && out->bytes >= DIRECT_SEGMENT_BYTES &&
           hal_mailbox_rank_at(mailbox, rank)->process.id != 0 && !hal_direct_is_refused(mailbox);
}

static hal_mailbox_source *source_at(const hal_mailbox *mailbox, uint32_t rank, uint64_t step)
{
    return &hal_mailbox_rank_at(mailbox, rank)->sources[step % 2];
}

void hal_direct_offer(const hal_mailbox *mailbox, uint32_t rank, uint64_t step,
                      const hal_segments *out)
{
    hal_mailbox_source *source = source_at(mailbox, rank, step);
    source->stride = out->count > 1 ? out->stride : 0;
    atomic_store_explicit(&source->address, (uint64_t)(uintptr_t)out->host, memory_order_release);
}

void hal_direct_offer_slot(const hal_mailbox *mailbox, uint32_t rank, uint64_t step)
{
    atomic_store_explicit(&source_at(mailbox, rank, step)->address, 0, memory_order_release);
}

bool hal_direct_is_offered(const hal_mailbox *mailbox, uint32_t q, uint64_t step)
{
    return atomic_load_explicit(&source_at(mailbox, q, step)->address, memory_order_acquire) != 0;
}

bool hal_direct_read(const hal_mailbox *mailbox, uint32_t rank, uint32_t q, uint64_t step,
                     void *target, uint64_t bytes)
{
    hal_mailbox_rank *own = hal_mailbox_rank_at(mailbox, rank);
    const hal_mailbox_process *process = &hal_mailbox_rank_at(mailbox, q)->process;
    const hal_mailbox_source *source = source_at(mailbox, q, step);
    const uint64_t address = atomic_load_explicit(&source->address, memory_order_acquire);
    if (address == 0 || atomic_load_explicit(&own->needs_slots, memory_order_relaxed)) {
        return false;
    }
    uint64_t key[2] = {0};
    const struct iovec to[2] = {{target, bytes}, {key, sizeof key}};
    const struct iovec from[2] = {{(void *)(uintptr_t)(address + rank * source->stride), bytes},
                                  {(void *)(uintptr_t)process->key_address, sizeof key}};
    const int error = hal_process_read((int64_t)process->id, to, from, 2);
    if (error == 0 && memcmp(key, process->key, sizeof key) == 0) {
        /* A rank that fails may reuse its memory: the failure is on the mailbox before that. */
        atomic_thread_fence(memory_order_acquire);
        return atomic_load_explicit(&mailbox->header->failure, memory_order_relaxed) == 0;
    }
    hal_log(HAL_LOG_INFO, "communicator: rank %u of %u cannot read memory of rank %u: %s", rank,
            mailbox->count, q, error ? strerror(error) : "another process");
    atomic_store_explicit(&own->needs_slots, 1, memory_order_release);
    return false;
}
