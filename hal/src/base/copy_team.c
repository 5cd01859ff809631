/* Copies by several threads, see copy_team.h. */
#include "copy_team.h"

#include "platform.h"

#include <signal.h>
#include <string.h>

/* Bytes of a transfer for each member, the caller included: starting a helper and waking it for
 * every piece takes as long as copying 1 to 2 MiB, which one half of 16 MiB has to outweigh. */
#define MEMBER_BYTES (UINT64_C(8) << 20)

/* Members take the next block of a copy, so that one who starts late delays nobody. */
#define BLOCK (UINT64_C(256) << 10)

/* More helpers gain little, as memory is the limit. */
enum { MAX_HELPERS = 3 };

struct hal_copy_team {
    pthread_mutex_t lock;
    pthread_cond_t begun, done;
    pthread_t helpers[MAX_HELPERS];
    uint32_t helper_count;
    uint32_t busy; /* members that copy a block */
    int ends;
    char *target;
    const char *source;
    uint64_t bytes, taken; /* of the copy; those of blocks that members took */
};

/* Copies blocks while there are any. The caller holds the lock. */
static void blocks_copy(hal_copy_team *team)
{
    while (team->taken < team->bytes) {
        const uint64_t start = team->taken, left = team->bytes - start;
        const uint64_t length = left < BLOCK ? left : BLOCK;
        team->taken += length;
        team->busy++;
        pthread_mutex_unlock(&team->lock);
        memcpy(team->target + start, team->source + start, length);
        pthread_mutex_lock(&team->lock);
        team->busy--;
    }
}

static void *helper_run(void *user)
{
    hal_copy_team *team = user;
    pthread_mutex_lock(&team->lock);
    while (!team->ends) {
        blocks_copy(team);
        if (team->busy == 0) {
            pthread_cond_signal(&team->done);
        }
        if (!team->ends) {
            pthread_cond_wait(&team->begun, &team->lock);
        }
    }
    pthread_mutex_unlock(&team->lock);
    return NULL;
}

/* Starts helpers, which take no signals. */
static void helpers_start(hal_copy_team *team, uint32_t count)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    while (team->helper_count < count &&
           pthread_create(&team->helpers[team->helper_count], NULL, helper_run, team) == 0) {
        team->helper_count++;
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

hal_copy_team *hal_copy_team_begin(uint64_t bytes)
{
    uint64_t helpers = bytes < 2 * MEMBER_BYTES ? 0 : bytes / MEMBER_BYTES - 1;
    helpers = helpers < MAX_HELPERS ? helpers : MAX_HELPERS;
    const uint32_t others = helpers > 0 ? hal_processor_count() - 1 : 0;
    helpers = helpers < others ? helpers : others;
    hal_copy_team *team = helpers > 0 ? calloc(1, sizeof *team) : NULL;
    if (team) {
        pthread_mutex_init(&team->lock, NULL);
        pthread_cond_init(&team->begun, NULL);
        pthread_cond_init(&team->done, NULL);
        helpers_start(team, (uint32_t)helpers);
    }
    return team;
}

void hal_copy_team_copy(hal_copy_team *team, void *target, const void *source, uint64_t bytes)
{
    if (!team || bytes < 2 * BLOCK) {
        memcpy(target, source, bytes);
        return;
    }
    pthread_mutex_lock(&team->lock);
    team->target = target;
    team->source = source;
    team->bytes = bytes;
    team->taken = 0;
    pthread_cond_broadcast(&team->begun);
    blocks_copy(team);
    while (team->busy > 0) {
        pthread_cond_wait(&team->done, &team->lock);
    }
    pthread_mutex_unlock(&team->lock);
}

void hal_copy_team_end(hal_copy_team *team)
{
    if (!team) {
        return;
    }
    pthread_mutex_lock(&team->lock);
    team->ends = 1;
    pthread_cond_broadcast(&team->begun);
    pthread_mutex_unlock(&team->lock);
    for (uint32_t i = 0; i < team->helper_count; i++) {
        pthread_join(team->helpers[i], NULL);
    }
    pthread_cond_destroy(&team->begun);
    pthread_cond_destroy(&team->done);
    pthread_mutex_destroy(&team->lock);
    free(team);
}
