/* Direct reads: a rank copies data out of the memory of another rank's process, without a slot
 * between. The rank that publishes offers an address; it keeps the memory unchanged until all
 * targets have read it. A target that the system does not allow to read says so, and from then on
 * all ranks publish to slots. */
#ifndef HAL_SRC_COMM_DIRECT_H
#define HAL_SRC_COMM_DIRECT_H

#include "mailbox.h"
#include "segments.h"

#include <stdbool.h>

/* Writes a random key, and says on the mailbox how others recognise the memory of the rank's
 * process by it; `key` stays there as long as the rank publishes. Nothing within one process. */
void hal_direct_post(hal_mailbox *mailbox, uint32_t rank, uint64_t key[2]);

/* Whether ranks may offer memory in the steps of a call; equally on all ranks. */
bool hal_direct_is_possible(const hal_mailbox *mailbox, const hal_mailbox_call *call);

/* Whether a rank has been refused a read, so that all data goes to slots. */
bool hal_direct_is_refused(const hal_mailbox *mailbox);

/* Whether the rank offers `out` for a step of such a call: it is not too short, and all ranks can
 * read. */
bool hal_direct_is_worth(const hal_mailbox *mailbox, uint32_t rank, const hal_segments *out);

/* Offers `out`, or what the rank has put in its slot, for a step that is then published. */
void hal_direct_offer(const hal_mailbox *mailbox, uint32_t rank, uint64_t step,
                      const hal_segments *out);
void hal_direct_offer_slot(const hal_mailbox *mailbox, uint32_t rank, uint64_t step);

/* Whether rank q offers memory of its process for a step that it has published. */
bool hal_direct_is_offered(const hal_mailbox *mailbox, uint32_t q, uint64_t step);

/* Copies `bytes` that rank q offers to this rank. Returns 0 without them: the system refuses it, so
 * that q puts them in its slot, or the communicator has failed. */
bool hal_direct_read(const hal_mailbox *mailbox, uint32_t rank, uint32_t q, uint64_t step,
                     void *target, uint64_t bytes);

#endif
