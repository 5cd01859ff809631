/* Executable memory of the cpu plugin, also where the system refuses one way or all. */
#include "unit.h"
#include "jit/encoder/code_memory.h"

#include <errno.h>
#include <stdbool.h>
#include <sys/mman.h>

static bool refuse_protect, refuse_file;

int __real_mprotect(void *address, size_t bytes, int protection);
int __wrap_mprotect(void *address, size_t bytes, int protection);
int __real_memfd_create(const char *name, unsigned flags);
int __wrap_memfd_create(const char *name, unsigned flags);

int __wrap_mprotect(void *address, size_t bytes, int protection)
{
    errno = EACCES;
    return refuse_protect ? -1 : __real_mprotect(address, bytes, protection);
}

int __wrap_memfd_create(const char *name, unsigned flags)
{
    errno = EACCES;
    return refuse_file ? -1 : __real_memfd_create(name, flags);
}

/* Code that returns 42. */
static const uint8_t answer[] = {0xb8, 42, 0, 0, 0, 0xc3};

static void check_answer(void)
{
    void *code = cpu_code_create(answer, sizeof(answer));
    assert_non_null(code);
    int (*run)(void);
    memcpy(&run, &code, sizeof(run));
    assert_int_equal(run(), 42);
    cpu_code_destroy(code, sizeof(answer));
}

TEST(code_runs)
{
    refuse_protect = refuse_file = false;
    check_answer();
}

TEST(code_runs_from_a_file_where_pages_may_not_become_executable)
{
    refuse_protect = true;
    refuse_file = false;
    check_answer();
}

TEST(refused_memory_is_null)
{
    refuse_protect = refuse_file = true;
    assert_null(cpu_code_create(answer, sizeof(answer)));
    cpu_code_destroy(NULL, sizeof(answer));
}

UNIT_MAIN(NULL, NULL)
