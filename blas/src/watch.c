/* The kernel marks pages as not written, and takes the mark away before a write, see watch.h. No
 * thread and no signal handler takes part, so that writes within the kernel are seen as well. */
#include "watch.h"

#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <pthread.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Of linux/userfaultfd.h and linux/fs.h from Linux 6.7 on. */
#define USER_MODE_ONLY 1
#define FEATURE_WP_ASYNC (1u << 15)
#define IS_WPALLOWED 1u
#define IS_WRITTEN 2u
#define IS_FILE 4u
#define IS_PRESENT 8u
#define SCAN_MARKS 1u /* pages that match are marked */

typedef struct page_region {
    uint64_t first, last, categories;
} page_region;

typedef struct scan_arguments {
    uint64_t size, flags, first, last, walked, regions, region_count, max_pages;
    uint64_t inverted, all_of, any_of, returned;
} scan_arguments;
#define PAGEMAP_SCAN_IOCTL _IOWR('f', 16, scan_arguments)

static pthread_once_t once = PTHREAD_ONCE_INIT;
static int faults = -1, pagemap = -1; /* file descriptors; -1: the kernel cannot tell */
static pid_t owner;                   /* the process whose memory they are about */

/* The parent's descriptors are about the parent's memory. */
static void reset_in_child(void)
{
    if (faults >= 0) {
        close(faults);
        close(pagemap);
    }
    faults = pagemap = -1;
    once = (pthread_once_t)PTHREAD_ONCE_INIT;
}

static void watch_open(void)
{
    static bool is_registered;
    struct uffdio_api api = {.api = UFFD_API,
                             .features = UFFD_FEATURE_PAGEFAULT_FLAG_WP | FEATURE_WP_ASYNC};
    is_registered = is_registered || pthread_atfork(NULL, NULL, reset_in_child) == 0;
    faults = (int)syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK | USER_MODE_ONLY);
    pagemap = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
    if (!is_registered || faults < 0 || pagemap < 0 || ioctl(faults, UFFDIO_API, &api) != 0) {
        if (faults >= 0) {
            close(faults);
        }
        if (pagemap >= 0) {
            close(pagemap);
        }
        faults = pagemap = -1;
    }
    owner = getpid();
}

bool blas_watch_is_available(void)
{
    pthread_once(&once, watch_open);
    return faults >= 0 && owner == getpid();
}

blas_span blas_watch_pages(const void *data, size_t bytes)
{
    const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), at = (uintptr_t)data;
    return (blas_span){at / page * page, (at + bytes + page - 1) / page * page};
}

bool blas_watch_mark(blas_span pages, void (*written)(blas_span pages))
{
    struct uffdio_register range = {.range = {pages.first, pages.last - pages.first},
                                    .mode = UFFDIO_REGISTER_MODE_WP};
    if (!blas_watch_is_available() || ioctl(faults, UFFDIO_REGISTER, &range) != 0) {
        return false;
    }
    for (uintptr_t at = pages.first; at < pages.last;) {
        page_region regions[16];
        scan_arguments scan = {.size = sizeof scan,
                               .flags = SCAN_MARKS,
                               .first = at,
                               .last = pages.last,
                               .regions = (uintptr_t)regions,
                               .region_count = 16,
                               .all_of = IS_WRITTEN,
                               .returned = IS_WRITTEN};
        const int count = ioctl(pagemap, PAGEMAP_SCAN_IOCTL, &scan);
        if (count < 0 || scan.walked <= at) {
            return false;
        }
        for (int i = 0; i < count; i++) {
            written((blas_span){regions[i].first, regions[i].last});
        }
        at = scan.walked;
    }
    return true;
}

bool blas_watch_is_clean(blas_span pages)
{
    page_region found = {0};
    scan_arguments scan = {.size = sizeof scan,
                           .first = pages.first,
                           .last = pages.last,
                           .regions = (uintptr_t)&found,
                           .region_count = 1,
                           .inverted = IS_WRITTEN | IS_FILE,
                           .all_of = IS_WPALLOWED | IS_WRITTEN | IS_FILE | IS_PRESENT,
                           .returned = IS_WPALLOWED};
    return blas_watch_is_available() && ioctl(pagemap, PAGEMAP_SCAN_IOCTL, &scan) == 1 &&
           found.first == pages.first && found.last == pages.last;
}

void blas_watch_end(blas_span pages)
{
    struct uffdio_range range = {pages.first, pages.last - pages.first};
    if (blas_watch_is_available()) {
        ioctl(faults, UFFDIO_UNREGISTER, &range); /* it fails where they are unmapped */
    }
}
