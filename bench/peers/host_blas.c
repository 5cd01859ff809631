/* BLAS libraries of the host. */
#include "peers/host_blas.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "peers/library.h"

static const struct {
    const char *name, *file, *variable, *set_threads, *package;
} known[] = {
    {"openblas", "libopenblas.so.0", "OPENBLAS_NUM_THREADS", "openblas_set_num_threads",
     "libopenblas0-pthread"},
    {"blis", "libblis.so.4", "BLIS_NUM_THREADS", "bli_thread_set_num_threads", "libblis4-pthread"},
};
enum { KNOWN = sizeof known / sizeof known[0] };

static int find(const char *name)
{
    for (int i = 0; i < KNOWN; i++) {
        if (strcmp(known[i].name, name) == 0) {
            return i;
        }
    }
    return -1;
}

bool peer_is_known(const char *name)
{
    return find(name) >= 0;
}

bool peer_open(const char *name, int threads, peer_blas *peer, char *message, size_t bytes)
{
    const int which = find(name);
    char count[16];
    *peer = (peer_blas){0};
    if (which < 0) {
        snprintf(message, bytes, "no peer is called %s; there are openblas and blis", name);
        return false;
    }
    snprintf(peer->name, sizeof peer->name, "%s", name);
    snprintf(count, sizeof count, "%d", threads);
    setenv(known[which].variable, count, 1);
    void (*set_threads)(long) = NULL;
    char reason[256];
    const library_symbol symbols[] = {{&peer->sgemm, "cblas_sgemm"},
                                      {&peer->dgemm, "cblas_dgemm"},
                                      {&set_threads, known[which].set_threads}};
    if (!library_open(known[which].file, symbols, 3, reason, sizeof reason)) {
        snprintf(message, bytes, "%s: %s; Debian has it in %s", name, reason, known[which].package);
        return false;
    }
    set_threads(threads);
    return true;
}
