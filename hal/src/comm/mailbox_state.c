/* The first failure of a communicator, and why ranks are held back. */
#include "mailbox_state.h"

#include <stdio.h>
#include <string.h>

bool hal_mailbox_header_fail(hal_mailbox_header *header, uint32_t rank, hal_status status,
                             const char *text)
{
    uint32_t expected = 0;
    if (!atomic_compare_exchange_strong(&header->failure, &expected, 1)) {
        return false;
    }
    header->failed_rank = rank;
    header->failed_status = status;
    snprintf(header->message, sizeof header->message, "%s", text);
    atomic_store_explicit(&header->failure, 2, memory_order_release);
    return true;
}

void hal_mailbox_write_held(hal_mailbox_rank *own, uint64_t step, const hal_wait_chain *chain)
{
    hal_mailbox_held *held = &own->held;
    const uint64_t sequence = atomic_load_explicit(&held->sequence, memory_order_relaxed);
    atomic_store_explicit(&held->sequence, sequence + 1, memory_order_relaxed);
    atomic_thread_fence(memory_order_release);
    held->step = step;
    held->chain = *chain;
    atomic_store_explicit(&held->sequence, sequence + 2, memory_order_release);
}

void hal_mailbox_read_held(hal_mailbox_rank *rank, uint64_t step, hal_wait_chain *chain)
{
    hal_mailbox_held *held = &rank->held;
    const uint64_t sequence = atomic_load_explicit(&held->sequence, memory_order_acquire);
    const uint64_t held_step = held->step;
    *chain = held->chain;
    atomic_thread_fence(memory_order_acquire);
    const bool is_whole = sequence > 0 && sequence % 2 == 0 &&
                          atomic_load_explicit(&held->sequence, memory_order_relaxed) == sequence;
    if (!is_whole || held_step > step || chain->count > HAL_MAX_CYCLE) {
        chain->count = 0;
    }
    for (uint32_t i = 0; i < chain->count; i++) {
        chain->notes[i].words[HAL_WAIT_WORDS - 1] = 0;
    }
}
