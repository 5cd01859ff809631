/* The memory of the machine is some number where the system tells none, as in a sandbox: a device
 * without memory is a wrong plugin. The system's calls are replaced. */
#include "cpu/memory.h"

#include <errno.h>
#include <stdio.h>
#include <sys/sysinfo.h>

#include "unit.h"

FILE *__wrap_fopen(const char *path, const char *mode);
int __wrap_sysinfo(struct sysinfo *info);

FILE *__wrap_fopen(const char *path, const char *mode)
{
    errno = EACCES;
    return NULL;
}

int __wrap_sysinfo(struct sysinfo *info)
{
    errno = EPERM;
    return -1;
}

TEST(test_a_sandbox_has_memory)
{
    uint64_t free_bytes = 0, total_bytes = 0;
    assert_true(cpu_memory_total() > 0);
    assert_int_equal(cpu_memory_info(NULL, &free_bytes, &total_bytes), HAL_OK);
    assert_int_equal(total_bytes, cpu_memory_total());
}

UNIT_MAIN(NULL, NULL)
