/* finding.c: findings of the layers validate and sanitize. */
#include "runner/finding.h"

#include "case/provoke.h"

#include <hal/hal.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char first[1024]; /* since the last query; "": none */
static uint64_t counted;
static unsigned allowed, provoked_checks; /* PROVOKE_* */
static uint64_t provoked_count;

/* From any thread. */
static void hear(void *user, hal_log_level level, const char *message)
{
    static const char *const names[] = {"", "error", "warn", "info", "debug"};
    fprintf(stderr, "halyard %s: %s\n", names[level <= HAL_LOG_DEBUG ? level : HAL_LOG_DEBUG],
            message);
    const bool is_total = strstr(message, " times more") != NULL; /* of a finding that was told */
    if (!is_total &&
        (strncmp(message, "validate: ", 10) == 0 || strncmp(message, "sanitize: ", 10) == 0)) {
        const unsigned check = provoke_check_of(message);
        pthread_mutex_lock(&lock);
        if (check & allowed) {
            provoked_checks |= check;
            provoked_count++;
        } else if (first[0] == 0) {
            snprintf(first, sizeof first, "the %.8s layer found: %s", message, message + 10);
        }
        pthread_mutex_unlock(&lock);
    }
}

void finding_listen(void)
{
    counted = hal_validate_get_finding_count();
    first[0] = 0;
    provoked_count = provoked_checks = 0;
    hal_log_set_callback(hear, NULL, 0);
}

void finding_allow(unsigned checks)
{
    pthread_mutex_lock(&lock);
    allowed = checks;
    pthread_mutex_unlock(&lock);
}

bool finding_take(char *text, size_t bytes, unsigned *provoked)
{
    const uint64_t now = hal_validate_get_finding_count();
    pthread_mutex_lock(&lock);
    const bool has_others = now != counted + provoked_count;
    counted = now;
    *provoked = provoked_checks;
    provoked_count = provoked_checks = 0;
    if (!has_others) {
        pthread_mutex_unlock(&lock);
        return false;
    }
    /* A finding is counted before it is said, perhaps on another thread. */
    snprintf(text, bytes, "%s", first[0] ? first : "a layer found something: see the log");
    first[0] = 0;
    pthread_mutex_unlock(&lock);
    return true;
}
