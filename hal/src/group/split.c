/* Division of groups. All ranks write color and key to the board, wait for each other, and find
 * their new group without further messages. Called by programs through hal/group.h. */
#include "group.h"

#include "core/held.h"
#include "core/hooks.h"

#include "base/clock.h"
#include "base/platform.h"
#include "base/status.h"

#include <stdio.h>
#include <string.h>

#define PAUSE_NS 50000

typedef struct split_place {
    uint32_t rank, count; /* of the new group */
} split_place;

static void split_post(hal_group *group, int32_t color, int32_t key)
{
    hal_board_rank *own = hal_board_rank_at(group->board, group->rank);
    const uint64_t number = ++group->last_split;
    own->colors[number % 2] = color;
    own->keys[number % 2] = key;
    atomic_store_explicit(&own->split, number, memory_order_release);
}

/* Waits until all ranks have posted. The ranks of this process may have collectives in flight that
 * others wait for. Errors: TIMEOUT, those of the group. */
static hal_status split_await(hal_group *group)
{
    const hal_board *board = group->board;
    const uint64_t begin = hal_clock_ns();
    for (uint32_t q = 0; q < group->count;) {
        hal_status status = hal_board_check(board, "hal_group_split");
        if (status != HAL_OK) {
            return status;
        }
        if (atomic_load_explicit(&hal_board_rank_at(board, q)->split, memory_order_acquire) >=
            group->last_split) {
            q++;
            continue;
        }
        if (hal_board_is_rank_dead(board, q) || hal_clock_ns() - begin > group->time_limit_ns) {
            char message[128];
            snprintf(message, sizeof message,
                     "it did not call hal_group_split number %llu within %.3f s, or has ended",
                     (unsigned long long)group->last_split, (double)group->time_limit_ns / 1e9);
            hal_board_fail(group->board, q, HAL_ERROR_TIMEOUT, message);
        }
        hal_held_advance();
        hal_pause_ns(PAUSE_NS);
    }
    return HAL_OK;
}

/* The rank's place among those of its color: by key, then by old rank. */
static split_place split_find(const hal_group *group)
{
    const uint64_t side = group->last_split % 2;
    const hal_board_rank *own = hal_board_rank_at(group->board, group->rank);
    split_place place = {0};
    for (uint32_t q = 0; q < group->count; q++) {
        const hal_board_rank *other = hal_board_rank_at(group->board, q);
        if (other->colors[side] == own->colors[side]) {
            const int32_t key = other->keys[side], own_key = own->keys[side];
            place.count++;
            place.rank += key < own_key || (key == own_key && q < group->rank);
        }
    }
    return place;
}

/* The id of the new group, from that of the old one, the number of the split and the color. */
static hal_group_id split_id(const hal_group *group)
{
    const uint64_t side = group->last_split % 2;
    const uint32_t color = (uint32_t)hal_board_rank_at(group->board, group->rank)->colors[side];
    hal_group_id id = group->board->id;
    for (uint32_t word = 0; word < sizeof id.bytes / 8; word++) {
        uint64_t value;
        memcpy(&value, id.bytes + 8 * word, 8);
        value ^= (group->last_split << 32 | color) + word;
        value *= UINT64_C(0x9e3779b97f4a7c15);
        value ^= value >> 29;
        value *= UINT64_C(0xbf58476d1ce4e5b9);
        value ^= value >> 32;
        memcpy(id.bytes + 8 * word, &value, 8);
    }
    return id;
}

/* Joins the new board; does not wait for its other ranks. */
static hal_status split_join(hal_group *group, hal_group **split)
{
    const hal_group_id id = split_id(group);
    const split_place place = split_find(group);
    hal_board *board = NULL;
    hal_status status = HAL_OK;
    if (place.count > 1) {
        status = hal_board_open(&id, place.rank, place.count, group->board->file >= 0,
                                group->time_limit_ns, "hal_group_split", &board);
    }
    return status == HAL_OK ? hal_group_make(group->device, board, place.rank, place.count,
                                             group->time_limit_ns, "hal_group_split", split)
                            : status;
}

static hal_status split_check(hal_group *const *groups, uint32_t count, const int32_t *colors,
                              const int32_t *keys, hal_group **split)
{
    if (!groups || !colors || !keys || !split || count == 0) {
        return hal_null_argument("hal_group_split", !groups   ? "groups"
                                                    : !colors ? "colors"
                                                    : !keys   ? "keys"
                                                    : !split  ? "split"
                                                              : "count");
    }
    for (uint32_t i = 0; i < count; i++) {
        if (!groups[i]) {
            return hal_null_argument("hal_group_split", "groups");
        }
        if (groups[i]->count != groups[0]->count ||
            (groups[i]->board &&
             memcmp(&groups[i]->board->id, &groups[0]->board->id, sizeof(hal_group_id)) != 0)) {
            return hal_fail(HAL_ERROR_INVALID_ARGUMENT,
                            "hal_group_split: groups: expected ranks of one group, got another in "
                            "groups[%u]",
                            i);
        }
        split[i] = NULL;
    }
    return HAL_OK;
}

/* A group of one rank. */
static hal_status split_single(hal_group *group, int32_t color, hal_group **split)
{
    const hal_status status = hal_group_check(group, "hal_group_split");
    return status != HAL_OK || color < 0
               ? status
               : hal_group_make(group->device, NULL, 0, 1, group->time_limit_ns, "hal_group_split",
                                split);
}

hal_status hal_group_split(hal_group *const *groups, uint32_t count, const int32_t *colors,
                           const int32_t *keys, hal_group **split)
{
    hal_status status = split_check(groups, count, colors, keys, split);
    if (status != HAL_OK) {
        return status;
    }
    if (!groups[0]->board) {
        return split_single(groups[0], colors[0], split);
    }
    for (uint32_t i = 0; i < count; i++) {
        split_post(groups[i], colors[i], keys[i]);
    }
    status = split_await(groups[0]);
    for (uint32_t i = 0; status == HAL_OK && i < count; i++) {
        if (colors[i] >= 0) {
            status = split_join(groups[i], &split[i]);
        }
    }
    for (uint32_t i = 0; status == HAL_OK && i < count; i++) {
        if (split[i] && split[i]->board) {
            status =
                hal_board_wait_joined(split[i]->board, split[i]->time_limit_ns, "hal_group_split");
        }
    }
    for (uint32_t i = 0; status != HAL_OK && i < count; i++) {
        hal_group_destroy(split[i]);
        split[i] = NULL;
    }
    return status == HAL_OK ? HAL_OK : hal_group_fail(groups[0], status);
}
