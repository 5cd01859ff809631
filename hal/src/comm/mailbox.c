/* Boards of groups, see board.h. A board between processes is a file of shared memory that is
 * unlinked as soon as all ranks have joined. Each rank locks one byte of it: the system drops the
 * lock when the process ends, which tells the others. Called by the sources of this folder. */
#include "board.h"

#include "base/clock.h"
#include "base/platform.h"
#include "base/status.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define VERSION UINT64_C(0x68616c0000000004)
#define MAX_SLOT_BYTES (UINT64_C(2) << 20)
#define MAX_DATA_BYTES (UINT64_C(32) << 20) /* of all slots */
#define SLOT_ALIGNMENT UINT64_C(4096)
#define PAUSE_NS 200000
#define REMOVE_LOCK UINT64_C(1000000) /* byte that guards the removal of a board */

static pthread_mutex_t local_lock = PTHREAD_MUTEX_INITIALIZER;
static hal_board *local_boards; /* that some ranks have not joined yet */

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
    return round_up(sizeof(hal_board_header) + count * sizeof(hal_board_rank), SLOT_ALIGNMENT);
}

uint8_t *hal_board_slot(const hal_board *board, uint32_t rank, uint64_t step)
{
    return (uint8_t *)board->header + header_bytes(board->count) +
           (2 * (uint64_t)rank + step % 2) * board->slot_bytes;
}

static void name_of(const hal_group_id *id, char name[32])
{
    snprintf(name, 32, "/hal-%02x%02x%02x%02x%02x%02x%02x%02x%02x%02x%02x%02x", id->bytes[0],
             id->bytes[1], id->bytes[2], id->bytes[3], id->bytes[4], id->bytes[5], id->bytes[6],
             id->bytes[7], id->bytes[8], id->bytes[9], id->bytes[10], id->bytes[11]);
}

static hal_board *board_allocate(const hal_group_id *id, uint32_t count)
{
    hal_board *board = calloc(1, sizeof *board);
    if (board) {
        board->id = *id;
        board->count = count;
        board->own = HAL_GROUP_MAX_RANKS;
        board->file = -1;
        board->slot_bytes = slot_bytes_of(count);
        board->bytes = header_bytes(count) + 2 * (uint64_t)count * board->slot_bytes;
        atomic_store(&board->references, 1);
    }
    return board;
}

const char *hal_board_engine(const hal_board *board)
{
    return board->link ? "mpi" : board->file < 0 ? "host" : "shared";
}

static int board_map(hal_board *board)
{
    const int flags = board->file < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED;
    void *memory = mmap(NULL, board->bytes, PROT_READ | PROT_WRITE, flags, board->file, 0);
    board->header = memory == MAP_FAILED ? NULL : memory;
    return board->header != NULL;
}

static void board_unref(hal_board *board)
{
    if (atomic_fetch_sub(&board->references, 1) > 1) {
        return;
    }
    if (board->link) {
        hal_link_close(board->link);
    }
    if (board->header) {
        munmap(board->header, board->bytes);
    }
    if (board->file >= 0) {
        close(board->file);
    }
    free(board);
}

static void board_set_ready(hal_board *board)
{
    board->header->count = board->count;
    atomic_store_explicit(&board->header->ready, VERSION, memory_order_release);
}

static hal_status fail_system(const char *function, const char *what)
{
    const int error = errno;
    const hal_status status = error == ENOMEM || error == ENOSPC ? HAL_ERROR_OUT_OF_MEMORY
                              : error == ENOSYS                  ? HAL_ERROR_UNSUPPORTED
                                                                 : HAL_ERROR_IO;
    return hal_fail(status, "%s: shared memory of the group: %s: %s", function, what,
                    strerror(error));
}

/* Waits until the rank that created the file has written its size and header. */
static hal_status board_await_header(hal_board *board, uint64_t time_limit_ns, const char *function)
{
    const uint64_t begin = hal_clock_ns();
    struct stat found = {0};
    for (;;) {
        if (fstat(board->file, &found) != 0 || found.st_uid != geteuid()) {
            return hal_fail(HAL_ERROR_IO,
                            "%s: id: expected shared memory of the same user, got that of another",
                            function);
        }
        if ((uint64_t)found.st_size >= sizeof(hal_board_header)) {
            break;
        }
        if (hal_clock_ns() - begin > time_limit_ns) {
            return hal_fail(HAL_ERROR_TIMEOUT, "%s: id: the rank that came first did not finish",
                            function);
        }
        hal_pause_ns(PAUSE_NS);
    }
    if ((uint64_t)found.st_size != board->bytes) {
        return hal_fail(HAL_ERROR_INVALID_ARGUMENT,
                        "%s: count: expected the count of the rank that came first, got %u",
                        function, board->count);
    }
    if (!board_map(board)) {
        return fail_system(function, "mmap");
    }
    while (atomic_load_explicit(&board->header->ready, memory_order_acquire) != VERSION) {
        if (hal_clock_ns() - begin > time_limit_ns) {
            return hal_fail(HAL_ERROR_TIMEOUT, "%s: id: the rank that came first did not finish",
                            function);
        }
        hal_pause_ns(PAUSE_NS);
    }
    return HAL_OK;
}

/* A process does not see its own lock. */
int hal_board_is_rank_dead(const hal_board *board, uint32_t rank)
{
    const hal_board_rank *other = hal_board_rank_at(board, rank);
    return board->file >= 0 && rank != board->own && atomic_load(&other->joined) == 2 &&
           !atomic_load(&other->left) && !hal_file_is_byte_locked(board->file, rank);
}

/* Whether a rank of an existing board has ended: the board is left over from a job of the same name
 * that was killed while it started. Of the ranks that see it, the one with the lock removes it. */
static int board_remove_stale(hal_board *board, const char *name)
{
    int stale = 0;
    for (uint32_t q = 0; q < board->count; q++) {
        stale |= hal_board_is_rank_dead(board, q);
    }
    if (!stale) {
        return 0;
    }
    struct stat found = {0};
    if (!hal_file_lock_byte(board->file, REMOVE_LOCK)) {
        hal_pause_ns(PAUSE_NS);
    } else if (fstat(board->file, &found) == 0 && found.st_nlink > 0) {
        shm_unlink(name);
    }
    munmap(board->header, board->bytes);
    close(board->file);
    board->header = NULL;
    board->file = -1;
    return 1;
}

static hal_status board_open_shared(hal_board *board, uint64_t time_limit_ns, const char *function)
{
    char name[32];
    name_of(&board->id, name);
    while ((board->file = shm_open(name, O_RDWR | O_CREAT | O_EXCL, 0600)) < 0) {
        if (errno != EEXIST) {
            return fail_system(function, "shm_open");
        }
        board->file = shm_open(name, O_RDWR, 0600);
        if (board->file < 0 && errno != ENOENT) {
            return fail_system(function, "shm_open");
        }
        if (board->file >= 0) {
            const hal_status status = board_await_header(board, time_limit_ns, function);
            if (status != HAL_OK || !board_remove_stale(board, name)) {
                return status;
            }
        }
    }
    /* Memory that is not reserved would end the process by a signal when it is short. */
    errno = hal_file_reserve(board->file, board->bytes);
    if (errno != 0 || !board_map(board)) {
        const hal_status status = fail_system(function, "reserving");
        shm_unlink(name);
        return status;
    }
    board_set_ready(board);
    return HAL_OK;
}

/* The local board of the id, which waits for more ranks, or a new one. */
static hal_status board_open_local(hal_board *made, hal_board **board, const char *function)
{
    pthread_mutex_lock(&local_lock);
    for (hal_board *other = local_boards; other; other = other->next) {
        if (memcmp(&other->id, &made->id, sizeof made->id) == 0) {
            atomic_fetch_add(&other->references, 1);
            *board = other;
        }
    }
    hal_status status = HAL_OK;
    if (*board == made) {
        if (board_map(made)) {
            board_set_ready(made);
            made->next = local_boards;
            local_boards = made;
        } else {
            status = fail_system(function, "mmap");
        }
    }
    pthread_mutex_unlock(&local_lock);
    if (*board != made) {
        board_unref(made);
    }
    return status;
}

/* No other process can open the board from now on. */
static void board_hide(hal_board *board)
{
    if (board->file >= 0) {
        char name[32];
        name_of(&board->id, name);
        shm_unlink(name);
        return;
    }
    pthread_mutex_lock(&local_lock);
    for (hal_board **at = &local_boards; *at; at = &(*at)->next) {
        if (*at == board) {
            *at = board->next;
            break;
        }
    }
    pthread_mutex_unlock(&local_lock);
}

static hal_status board_join(hal_board *board, uint32_t rank, const char *function)
{
    hal_board_header *header = board->header;
    uint32_t expected = 0;
    if (header->count != board->count) {
        return hal_fail(HAL_ERROR_INVALID_ARGUMENT,
                        "%s: count: expected %u, the count of the rank that came first, got %u",
                        function, header->count, board->count);
    }
    if (!atomic_compare_exchange_strong(&header->ranks[rank].joined, &expected, 1)) {
        return hal_fail(HAL_ERROR_INVALID_ARGUMENT,
                        "%s: rank: expected one that no other caller has, got %u", function, rank);
    }
    if (board->file >= 0) {
        hal_file_lock_byte(board->file, rank);
        board->own = rank;
    }
    atomic_store(&header->ranks[rank].joined, 2);
    if (atomic_fetch_add(&header->joined, 1) + 1 == board->count) {
        board_hide(board);
    }
    return HAL_OK;
}

hal_status hal_board_open(const hal_group_id *id, uint32_t rank, uint32_t count, int shared,
                          uint64_t time_limit_ns, const char *function, hal_board **board)
{
    hal_board *made = board_allocate(id, count);
    if (!made) {
        return hal_fail(HAL_ERROR_OUT_OF_MEMORY, "%s: no host memory", function);
    }
    *board = made;
    hal_status status = shared ? board_open_shared(made, time_limit_ns, function)
                               : board_open_local(made, board, function);
    if (status == HAL_OK) {
        status = board_join(*board, rank, function);
    }
    if (status != HAL_OK) {
        board_unref(*board);
        *board = NULL;
    }
    return status;
}

hal_status hal_board_create_linked(hal_link *link, const char *function, hal_board **board)
{
    static const hal_group_id no_id;
    const uint32_t count = hal_link_count(link);
    hal_board *made = board_allocate(&no_id, count);
    if (made) {
        made->slot_bytes = MAX_SLOT_BYTES;
        made->bytes = header_bytes(count);
    }
    if (!made || !board_map(made)) {
        free(made);
        hal_link_close(link);
        return hal_fail(HAL_ERROR_OUT_OF_MEMORY, "%s: no host memory", function);
    }
    made->link = link;
    board_set_ready(made);
    for (uint32_t q = 0; q < count; q++) {
        atomic_store(&made->header->ranks[q].joined, 2);
    }
    atomic_store(&made->header->joined, count);
    hal_link_attach(link, made->header);
    *board = made;
    return HAL_OK;
}

int hal_board_header_fail(hal_board_header *header, uint32_t rank, hal_status status,
                          const char *text)
{
    uint32_t expected = 0;
    if (!atomic_compare_exchange_strong(&header->failure, &expected, 1)) {
        return 0;
    }
    header->failed_rank = rank;
    header->failed_status = status;
    snprintf(header->message, sizeof header->message, "%s", text);
    atomic_store_explicit(&header->failure, 2, memory_order_release);
    return 1;
}

void hal_board_post_offer(hal_board *board, uint32_t rank, const hal_board_offer *offer,
                          const hal_plugin_group_id *id)
{
    hal_board_rank *own = hal_board_rank_at(board, rank);
    own->offer = *offer;
    if (id) {
        board->header->engine_id = *id;
    }
    atomic_store_explicit(&own->engine, HAL_BOARD_ENGINE_OFFERED, memory_order_release);
    if (board->link) {
        hal_link_send_engine(board->link, HAL_BOARD_ENGINE_OFFERED, offer, id);
    }
}

void hal_board_post_engine(hal_board *board, uint32_t rank, uint32_t state)
{
    hal_board_rank *own = hal_board_rank_at(board, rank);
    atomic_store_explicit(&own->engine, state, memory_order_release);
    if (board->link) {
        hal_link_send_engine(board->link, state, &own->offer, NULL);
    }
}

void hal_board_fail(hal_board *board, uint32_t rank, hal_status status, const char *message)
{
    char text[HAL_BOARD_MESSAGE_BYTES];
    snprintf(text, sizeof text, "rank %u of %u: %s", rank, board->count, message);
    if (hal_board_header_fail(board->header, rank, status, text) && board->link) {
        hal_link_send_failure(board->link, rank, status, text);
    }
}

hal_status hal_board_check(hal_board *board, const char *function)
{
    const hal_board_header *header = board->header;
    const hal_status status = board->link ? hal_link_update(board->link) : HAL_OK;
    if (status != HAL_OK) {
        char message[256];
        snprintf(message, sizeof message, "%s", hal_status_message());
        hal_board_fail(board, hal_link_rank(board->link), status, message);
    }
    if (atomic_load_explicit(&header->failure, memory_order_acquire) != 2) {
        return HAL_OK;
    }
    return hal_fail(header->failed_status, "%s: group: %.*s", function,
                    (int)sizeof header->message - 1, header->message);
}

/* Ends the group because ranks are missing, on all ranks with the same message. */
static void board_fail_missing(hal_board *board, uint64_t time_limit_ns)
{
    char missing[128] = "", message[320];
    uint32_t first = board->count;
    for (uint32_t r = 0; r < board->count; r++) {
        const size_t used = strlen(missing);
        if (atomic_load(&board->header->ranks[r].joined) < 2) {
            first = r < first ? r : first;
            snprintf(missing + used, sizeof missing - used, " %u", r);
        }
    }
    snprintf(message, sizeof message,
             "expected all %u ranks within %.1f s, missing are ranks%s; the processes of a group "
             "are on one host",
             board->count, (double)time_limit_ns / 1e9, missing);
    if (first < board->count) {
        hal_board_fail(board, first, HAL_ERROR_TIMEOUT, message);
    }
}

hal_status hal_board_wait_joined(hal_board *board, uint64_t time_limit_ns, const char *function)
{
    const uint64_t begin = hal_clock_ns();
    while (atomic_load(&board->header->joined) < board->count) {
        if (hal_clock_ns() - begin > time_limit_ns) {
            board_fail_missing(board, time_limit_ns);
        }
        const hal_status status = hal_board_check(board, function);
        if (status != HAL_OK) {
            board_hide(board);
            return status;
        }
        hal_pause_ns(PAUSE_NS);
    }
    return HAL_OK;
}

void hal_board_close(hal_board *board, uint32_t rank)
{
    atomic_store(&board->header->ranks[rank].left, 1);
    if (atomic_load(&board->header->joined) < board->count) {
        hal_board_fail(board, rank, HAL_ERROR_INVALID_STATE,
                       "left before all ranks had joined the group");
        board_hide(board);
    }
    board_unref(board);
}
