/* Whether memory of the program was written since it was last looked at, as the kernel's page
 * tables tell. Used for operands that stay on the device. */
#ifndef BLAS_SRC_WATCH_H
#define BLAS_SRC_WATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Memory from first on, up to but not including last. */
typedef struct blas_span {
    uintptr_t first, last;
} blas_span;

/* The whole pages around memory. */
blas_span blas_watch_pages(const void *data, size_t bytes);

static inline bool blas_span_overlaps(blas_span x, blas_span y)
{
    return x.first < y.last && y.first < x.last;
}

/* Whether the kernel can tell (Linux 6.7 with userfaultfd's asynchronous write protection and
 * PAGEMAP_SCAN). A forked child asks anew. Threads: any. */
bool blas_watch_is_available(void);

/* Marks pages as not written. Those that were written since they were marked, by whomever, are
 * passed to `written`, since others may be waiting to hear of them; that and marking is one step.
 * False: the kernel refuses. Threads: any, one at a time. */
bool blas_watch_mark(blas_span pages, void (*written)(blas_span pages));

/* Whether these pages are the private memory that was marked, and nothing was written to them:
 * not by the program, by read() and other calls into the kernel, nor by unmapping, moving or
 * dropping pages. Threads: any. */
bool blas_watch_is_clean(blas_span pages);

/* Watches pages no longer; all of them count as written then. Threads: any. */
void blas_watch_end(blas_span pages);

#endif
