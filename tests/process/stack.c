/* Calls of the library get along with a stack of 160 KiB. Drivers that compile on the calling
 * thread need more. devices: cpu template */
#include "process.h"

#include <pthread.h>
#include <string.h>
#include <sys/mman.h>

enum { PAGE = 4096, STACK = 160 << 10, PAINT = 0xa5 };

static void *work(void *unused)
{
    (void)unused;
    process_device opened = process_open();
    for (int i = 0; i < PROCESS_WORKS; i++) {
        if (process_has_work(i)) {
            process_work(&opened, i, 1000);
            process_work(&opened, i, process_large_count());
        }
    }
    process_close(&opened);
    return NULL;
}

int main(void)
{
    pthread_t thread;
    pthread_attr_t attributes;
    setenv("HAL_CACHE_DIR", "off", 1);
    /* Two pages that stay untouched: a frame that steps over one of them is seen as well. */
    uint8_t *memory =
        mmap(NULL, STACK + 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) {
        return PROCESS_SKIP;
    }
    memset(memory, PAINT, STACK + 2 * PAGE);
    mprotect(memory, PAGE, PROT_NONE);
    pthread_attr_init(&attributes);
    if (pthread_attr_setstack(&attributes, memory + 2 * PAGE, STACK) != 0 ||
        pthread_create(&thread, &attributes, work, NULL) != 0) {
        return PROCESS_SKIP;
    }
    pthread_join(thread, NULL);
    size_t unused = 0;
    while (unused < STACK + PAGE && memory[PAGE + unused] == PAINT) {
        unused++;
    }
    printf("of %d KiB of stack %zu KiB were used\n", STACK >> 10, (STACK + PAGE - unused) >> 10);
    if (unused <= PAGE) {
        process_fail("the stack was too small");
    }
    return process_end();
}
