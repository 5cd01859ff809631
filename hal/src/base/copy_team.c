/* Copies by several threads, see copy_team.h. */
#include "copy_team.h"

#include "platform.h"

#include <signal.h>
#include <string.h>

/* Below, starting threads costs more than they save. */
#define MIN_TOTAL (UINT64_C(2) << 20)
#define MIN_COPY (UINT64_C(256) << 10)

/* Threads that copy, with the caller: more gain little, as memory is the limit. */
enum { MEMBERS = 4 };

struct hal_copy_team {
    pthread_mutex_t lock;
    pthread_cond_t begun, done;
    pthread_t helpers[MEMBERS - 1];
    uint32_t helper_count;
    uint32_t joined; /* helpers that took their number */
    uint32_t busy;   /* helpers that copy */
    uint64_t round;  /* of copies; UINT64_MAX: the team ends */
    char *target;
    const char *source;
    uint64_t bytes;
};

/* Copies one of the parts that members share a copy out in; parts begin at cache lines. */
static void part_copy(const hal_copy_team *team, uint32_t part)
{
    const uint64_t share = (team->bytes / (team->helper_count + 1) + 63) / 64 * 64;
    const uint64_t start = part * share;
    if (start < team->bytes) {
        const uint64_t left = team->bytes - start;
        const int is_last = part == team->helper_count;
        memcpy(team->target + start, team->source + start, left < share || is_last ? left : share);
    }
}

static void *helper_run(void *user)
{
    hal_copy_team *team = user;
    uint64_t seen = 0;
    pthread_mutex_lock(&team->lock);
    const uint32_t part = ++team->joined;
    for (;;) {
        while (team->round == seen) {
            pthread_cond_wait(&team->begun, &team->lock);
        }
        seen = team->round;
        if (seen == UINT64_MAX) {
            break;
        }
        pthread_mutex_unlock(&team->lock);
        part_copy(team, part);
        pthread_mutex_lock(&team->lock);
        if (--team->busy == 0) {
            pthread_cond_signal(&team->done);
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
    const uint32_t processors = hal_processor_count();
    const uint32_t members = processors < MEMBERS ? processors : MEMBERS;
    hal_copy_team *team = bytes >= MIN_TOTAL && members > 1 ? calloc(1, sizeof *team) : NULL;
    if (team) {
        pthread_mutex_init(&team->lock, NULL);
        pthread_cond_init(&team->begun, NULL);
        pthread_cond_init(&team->done, NULL);
        helpers_start(team, members - 1);
    }
    return team;
}

void hal_copy_team_copy(hal_copy_team *team, void *target, const void *source, uint64_t bytes)
{
    if (!team || team->helper_count == 0 || bytes < MIN_COPY) {
        memcpy(target, source, bytes);
        return;
    }
    pthread_mutex_lock(&team->lock);
    team->target = target;
    team->source = source;
    team->bytes = bytes;
    team->busy = team->helper_count;
    team->round++;
    pthread_cond_broadcast(&team->begun);
    pthread_mutex_unlock(&team->lock);
    part_copy(team, 0);
    pthread_mutex_lock(&team->lock);
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
    team->round = UINT64_MAX;
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
