/* Parts of the PTX of attention that several files write, and those of one file for text.c.
 *
 * Registers of a work-item that multiplies: %s are the scores of a tile, then their weights, %p
 * the weights as words of the tensors' type, %o the sums of the result. Register 4 i + r of %s and
 * %o is of column 8 i + 2 (lane mod 4) + r mod 2, in row lane / 4 of the warp's 16 rows for r < 2,
 * else 8 rows on (PTX ISA, wgmma m64nNk16). */
#ifndef PLUGINS_CUDA_ATTENTION_PARTS_H
#define PLUGINS_CUDA_ATTENTION_PARTS_H

#include "attention/key.h"

#include <kit/text.h>

/* Waits until the phase of parity `parity` of the barrier at register `barrier` plus `offset` is
 * over. `name` is a label that no other wait has. */
void cuda_attention_write_wait(kit_text *t, const cuda_attention_key *key, const char *name,
                               const char *barrier, uint32_t offset, const char *parity);

/* The next stage: registers `slot` and `parity`. */
void cuda_attention_write_next(kit_text *t, const char *slot, const char *parity);

/* %tile: the first tile of the group, and the next one; from %tiles on there is none. */
void cuda_attention_write_first_tile(kit_text *t);
void cuda_attention_write_next_tile(kit_text *t);

/* Where tile %tile lies: %row, %batch, %outer, and %count, the tiles of keys that this group
 * computes for it, from tile %begin on. */
void cuda_attention_write_place(kit_text *t, const cuda_attention_key *key);

void cuda_attention_write_producer(kit_text *t, const cuda_attention_key *key);

/* Products of a tile, see multiply.c. */
void cuda_attention_multiply_begin(kit_text *t, const cuda_attention_key *key);
void cuda_attention_write_scores(kit_text *t, const cuda_attention_key *key);
void cuda_attention_write_result(kit_text *t, const cuda_attention_key *key, const char *adds);

/* The softmax of a tile, see softmax.c. */
void cuda_attention_softmax_begin(kit_text *t);
void cuda_attention_softmax_tile(kit_text *t, const cuda_attention_key *key, const char *name);
void cuda_attention_softmax_hold(kit_text *t, const cuda_attention_key *key);
void cuda_attention_write_weights(kit_text *t, const cuda_attention_key *key);
void cuda_attention_write_rescale(kit_text *t, const cuda_attention_key *key);

/* Stores the tile's part of y, see store.c; %sum: of all lanes of a row; %at: row %own_row of y. */
void cuda_attention_write_store(kit_text *t, const cuda_attention_key *key);
void cuda_attention_write_totals(kit_text *t);
void cuda_attention_write_row_address(kit_text *t);

/* The same where several groups share the keys of the tile, see split.c. */
void cuda_attention_write_split(kit_text *t, const cuda_attention_key *key);

#endif
