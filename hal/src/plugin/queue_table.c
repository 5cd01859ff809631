/* Queues of plugins by their handle, see queue_table.h. */
#include "queue_table.h"

#include "base/fork.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct entry {
    struct entry *next;
    hal_plugin_queue *queue;
    _Atomic uint64_t *reached;
    uint64_t base;
    char *message; /* the first; null: none */
} entry;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
HAL_FORK_GUARD(lock, HAL_FORK_LEAF)
static entry *entries;

/* The caller holds the lock. */
static entry *entry_find(const hal_plugin_queue *queue)
{
    entry *e = entries;
    while (e && e->queue != queue) {
        e = e->next;
    }
    return e;
}

void hal_queue_table_add(hal_plugin_queue *queue, _Atomic uint64_t *reached, uint64_t base)
{
    entry *e = calloc(1, sizeof *e);
    if (!e) {
        return;
    }
    *e = (entry){.queue = queue, .reached = reached, .base = base};
    pthread_mutex_lock(&lock);
    e->next = entries;
    entries = e;
    pthread_mutex_unlock(&lock);
}

void hal_queue_table_remove(hal_plugin_queue *queue)
{
    pthread_mutex_lock(&lock);
    entry **at = &entries;
    while (*at && (*at)->queue != queue) {
        at = &(*at)->next;
    }
    entry *e = *at;
    if (e) {
        *at = e->next;
    }
    pthread_mutex_unlock(&lock);
    if (e) {
        free(e->message);
        free(e);
    }
}

void hal_queue_table_complete(hal_plugin_queue *queue, uint64_t value)
{
    pthread_mutex_lock(&lock);
    entry *e = entry_find(queue);
    if (e) {
        uint64_t reached = atomic_load(e->reached);
        while (reached < e->base + value &&
               !atomic_compare_exchange_weak(e->reached, &reached, e->base + value)) {
        }
    }
    pthread_mutex_unlock(&lock);
}

void hal_queue_table_fail(hal_plugin_queue *queue, const char *message)
{
    pthread_mutex_lock(&lock);
    entry *e = entry_find(queue);
    if (e && !e->message && message && message[0]) {
        e->message = strdup(message);
    }
    pthread_mutex_unlock(&lock);
}

bool hal_queue_table_message(const hal_plugin_queue *queue, char *message, size_t bytes)
{
    pthread_mutex_lock(&lock);
    const entry *e = entry_find(queue);
    const bool has = e && e->message;
    if (has) {
        snprintf(message, bytes, "%s", e->message);
    }
    pthread_mutex_unlock(&lock);
    return has;
}
