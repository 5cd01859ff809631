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
    uint32_t rank, count;                  /* of the new group */
    uint32_t members[HAL_GROUP_MAX_RANKS]; /* old ranks in the order of the new ones */
} split_place;

static hal_status split_post(hal_group *group, int32_t color, int32_t key)
{
    hal_board_rank *own = hal_board_rank_at(group->board, group->rank);
    const uint64_t number = ++group->last_split;
    own->colors[number % 2] = color;
    own->keys[number % 2] = key;
    atomic_store_explicit(&own->split, number, memory_order_release);
    if (group->board->link &&
        hal_link_send_split(group->board->link, number, color, key) != HAL_OK) {
        return hal_board_check(group->board, "hal_group_split"); /* sees the error of the link */
    }
    return HAL_OK;
}

/* Waits until all ranks have posted. The ranks of this process may have collectives in flight that
 * others wait for. Errors: TIMEOUT, those of the group. */
static hal_status split_await(hal_group *group)
{
    hal_board *board = group->board;
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

/* Whether rank p precedes rank q in a new group: by key, then by old rank. */
static int split_precedes(const hal_group *group, uint32_t p, uint32_t q)
{
    const uint64_t side = group->last_split % 2;
    const int32_t one = hal_board_rank_at(group->board, p)->keys[side];
    const int32_t other = hal_board_rank_at(group->board, q)->keys[side];
    return one < other || (one == other && p < q);
}

/* The rank's place among those of its color. */
static void split_find(const hal_group *group, split_place *place)
{
    const uint64_t side = group->last_split % 2;
    const hal_board_rank *own = hal_board_rank_at(group->board, group->rank);
    *place = (split_place){0};
    for (uint32_t q = 0; q < group->count; q++) {
        if (hal_board_rank_at(group->board, q)->colors[side] == own->colors[side]) {
            uint32_t at = place->count++;
            for (; at > 0 && split_precedes(group, q, place->members[at - 1]); at--) {
                place->members[at] = place->members[at - 1];
            }
            place->members[at] = q;
        }
    }
    while (place->members[place->rank] != group->rank) {
        place->rank++;
    }
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
    split_place place;
    hal_board *board = NULL;
    hal_status status = HAL_OK;
    split_find(group, &place);
    if (place.count > 1 && group->board->link) {
        hal_link *link = NULL;
        status = hal_link_divide(group->board->link, place.members, place.rank, place.count,
                                 group->last_split, &link);
        if (status == HAL_OK) {
            status = hal_board_create_linked(link, "hal_group_split", &board);
        }
    } else if (place.count > 1) {
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
             (groups[i]->board->link != groups[0]->board->link ||
              memcmp(&groups[i]->board->id, &groups[0]->board->id, sizeof(hal_group_id)) != 0))) {
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
    for (uint32_t i = 0; status == HAL_OK && i < count; i++) {
        status = split_post(groups[i], colors[i], keys[i]);
    }
    status = status == HAL_OK ? split_await(groups[0]) : status;
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
    if (status == HAL_OK) {
        status = hal_group_start(split, count, "hal_group_split");
    }
    for (uint32_t i = 0; status != HAL_OK && i < count; i++) {
        hal_group_destroy(split[i]);
        split[i] = NULL;
    }
    return status == HAL_OK ? HAL_OK : hal_group_fail(groups[0], status);
}
