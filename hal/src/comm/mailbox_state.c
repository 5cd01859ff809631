/* The first failure of a communicator. */
#include "mailbox_state.h"

#include <stdio.h>

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
