/* State of the process and of the calling thread that drivers change: kept before a call into a
 * foreign library and restored after it. */
#ifndef PLUGINS_KIT_PROCESS_STATE_H
#define PLUGINS_KIT_PROCESS_STATE_H

#include <locale.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#if __has_include(<xlocale.h>)
#include <xlocale.h>
#endif

#ifdef __cplusplus
extern "C" {
#endif

enum { KIT_SIGNALS = 64, KIT_AFFINITY_BYTES = 1024 };

/* Of the calling thread. Other threads do not see it, so it is kept around every call. */
typedef struct kit_thread_state {
    sigset_t mask;
    stack_t alternate_stack;
    locale_t locale;
    long affinity_bytes; /* of `affinity`; 0: unknown */
    uint64_t affinity[KIT_AFFINITY_BYTES / sizeof(uint64_t)];
} kit_thread_state;

/* Of the process. Another thread that changes it meanwhile loses its change, so it is kept only
 * around calls that are known to change it. */
typedef struct kit_process_state {
    struct sigaction handlers[KIT_SIGNALS + 1];
    uint8_t is_kept[KIT_SIGNALS + 1];
    char *locale; /* null: unknown */
    int folder;   /* descriptor of the working folder; -1: unknown */
} kit_process_state;

/* Keeps the thread's state, then sets the locale "C". With `blocks_signals` the thread blocks all
 * signals but those of its own faults, and threads that it starts inherit that. */
void kit_thread_state_keep(kit_thread_state *state, bool blocks_signals);
void kit_thread_state_restore(kit_thread_state *state);

/* Null where the host has no memory: nothing is restored then. Restoring frees the state. */
kit_process_state *kit_process_state_keep(void);
void kit_process_state_restore(kit_process_state *state);

/* Gives rand and random other numbers, for a library that draws some, then the program its own
 * again. Another thread that draws meanwhile gets that library's. Calls nest, also of several
 * threads. */
void kit_numbers_keep(void);
void kit_numbers_restore(void);

#ifdef __cplusplus
}
#endif

#endif
