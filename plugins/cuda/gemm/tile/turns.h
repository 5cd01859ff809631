/* Warpgroups that take turns: each multiplies tiles of its own, of 64 rows, and stores one while
 * the other multiplies.
 *
 * A group (of a pair: each of both) has tiles 0, 1, ... n - 1 in the order of the producer; n is at
 * least 1, as there are no more groups than tiles. The first multiplying warpgroup has the even
 * ones, the second one the odd ones. All have `count` stages, and the ring has the stages of all
 * tiles in order, so the producer and the converting warps are those of other kernels. A warpgroup
 * knows its place: tile i begins at stage i * count of the whole order, which is slot i * count
 * modulo S of the ring's S slots, in round i * count / S, whose lowest bit is the parity. It steps
 * through its own stages one by one and skips those of the other warpgroup at once.
 *
 * The turns are two named barriers, of 256 work-items: FIRST_TURN for the even tiles, the next one
 * for the odd tiles. A warpgroup waits (bar.sync) before tile i. The other one arrives (bar.arrive)
 * when it has seen the last stage of tile i - 1 and issued its multiplication; the second one
 * arrives once more when it begins, for tile 0. Nobody arrives after tile n - 1.
 *
 * - Each wait has one arrival of each warp of the other warpgroup, for any n, even or odd: that for
 *   tile 0 at the start, that for tile i > 0 after tile i - 1, if there is a tile i. So no barrier
 *   is left with arrivals when the kernel ends. With n = 1 the second warpgroup arrives and ends.
 * - Arrivals for tile i do not count for tile i - 2, which has the same barrier. A warp arrives for
 *   tile i after its wait for tile i - 1, which needs the arrivals of all warps of the other
 *   warpgroup; those arrived after their wait for tile i - 2.
 * - A wait for `full` or `converted` tells a round from the one before it by the parity, but not
 *   from earlier ones. It begins when the round before has completed: the stage of that round is
 *   earlier in the order, so this warp saw it, or those of the other warpgroup did before they
 *   arrived; bar.arrive and bar.sync order what both see of shared memory. The next round cannot
 *   complete before the wait has ended, as it needs the release by this very warp.
 * - A stage is multiplied by one warpgroup, or by the same one of both groups of a pair, as these
 *   have equal numbers of tiles. So four warps of each group release it, each once; of a pair they
 *   release it in both groups. Releases of two rounds of a slot do not mix: a warp multiplies the
 *   later one when its group's producer has filled it, which waited before for all releases of the
 *   earlier one, of both groups.
 * - There is no deadlock. Let j be the first stage that a warp of the group, or pair, has not yet
 *   released. All before j are released, so each producer, which waits for nothing else, gets as
 *   far as to fill j and the stage after it (S is at least 3); the converting warps wait for `full`
 *   alone. Inside a tile a warpgroup waits for these two stages only: a stage is released
 *   when the multiplication of the next one was issued, or at the end of the tile. Where j begins
 *   tile i, the warpgroup first ends tile i - 2, whose epilogue waits for its own warps and stores,
 *   and has its turn, as the warps of the other one arrive before they release stage j - 1. So j is
 *   released.
 * - The end is that of other kernels: a warpgroup waits until its stores have read shared memory,
 *   and a pair's producers until all stages were read in both groups, so that neither arrives at
 *   barriers of a group that has ended.
 * - A warpgroup has its own box of C, and a barrier of its own for it (1 or 2). The work-item that
 *   stores it waits until the store before has read it, of the same tile or the one before. */
#ifndef PLUGINS_CUDA_GEMM_TILE_TURNS_H
#define PLUGINS_CUDA_GEMM_TILE_TURNS_H

#include "gemm/tile/key.h"

#include <kit/text.h>

/* Whether a kernel whose warpgroups take turns can have the rest of the key. */
bool cuda_gemm_turns_are_supported(const cuda_gemm_key *key);

/* The functions below write nothing for other kernels, but cuda_gemm_turns_next. */

/* Writes what a warpgroup does once: the first one has the first tile and the first turn. */
void cuda_gemm_turns_begin(kit_text *t, const cuda_gemm_key *key);

/* Writes the wait for the turn, before the first stage of a tile; and the end of the turn, when the
 * last stage has arrived and its multiplication was issued. */
void cuda_gemm_turns_wait(kit_text *t, const cuda_gemm_key *key);
void cuda_gemm_turns_pass(kit_text *t, const cuda_gemm_key *key);

/* Writes what keeps the release of a pair's last stage before the epilogue. */
void cuda_gemm_turns_released(kit_text *t, const cuda_gemm_key *key);

/* Writes: %tile is the next tile of the warpgroup, and %slot and %parity are those of its first
 * stage. */
void cuda_gemm_turns_next(kit_text *t, const cuda_gemm_key *key);

#endif
