/* Executable memory, see code_memory.h. */
#include "jit/encoder/code_memory.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static size_t page_round(size_t bytes)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    return (bytes + page - 1) / page * page;
}

/* Anonymous pages that become executable after they are written. */
static void *code_protect(const void *code, size_t bytes)
{
    const size_t size = page_round(bytes);
    void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) {
        return NULL;
    }
    memcpy(memory, code, bytes);
    if (mprotect(memory, size, PROT_READ | PROT_EXEC) != 0) {
        munmap(memory, size);
        return NULL;
    }
    return memory;
}

/* A file in memory, written through the descriptor and mapped executable, for policies that forbid
 * pages which were once writable. */
static void *code_map_file(const void *code, size_t bytes)
{
#if defined(MFD_CLOEXEC)
    const size_t size = page_round(bytes);
    const int file = memfd_create("halyard-kernel", MFD_CLOEXEC);
    if (file < 0) {
        return NULL;
    }
    void *memory = MAP_FAILED;
    size_t written = 0;
    while (written < bytes) {
        const ssize_t count = write(file, (const char *)code + written, bytes - written);
        if (count <= 0) {
            break;
        }
        written += (size_t)count;
    }
    if (written == bytes && ftruncate(file, (off_t)size) == 0) {
        memory = mmap(NULL, size, PROT_READ | PROT_EXEC, MAP_PRIVATE, file, 0);
    }
    close(file);
    return memory == MAP_FAILED ? NULL : memory;
#else
    (void)code;
    (void)bytes;
    return NULL;
#endif
}

void *cpu_code_create(const void *code, size_t bytes)
{
    void *memory = code_protect(code, bytes);
    return memory ? memory : code_map_file(code, bytes);
}

void cpu_code_destroy(void *code, size_t bytes)
{
    if (code) {
        munmap(code, page_round(bytes));
    }
}
