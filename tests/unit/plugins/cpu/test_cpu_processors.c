/* Quotas of control groups, read from folders that look like a system's. */
#include "cpu/threads/control_group.h"
#include "cpu/threads/processors.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "unit.h"

/* A system with more processors than a usual set has takes larger sets only. */
static size_t least_bytes;
enum { MANY = 1500 };

int __real_sched_getaffinity(pid_t thread, size_t bytes, cpu_set_t *set);
int __wrap_sched_getaffinity(pid_t thread, size_t bytes, cpu_set_t *set);

int __wrap_sched_getaffinity(pid_t thread, size_t bytes, cpu_set_t *set)
{
    if (bytes < least_bytes) {
        errno = EINVAL;
        return -1;
    }
    if (least_bytes == 0) {
        return __real_sched_getaffinity(thread, bytes, set);
    }
    memset(set, 0, bytes);
    for (size_t i = 0; i < MANY; i++) {
        CPU_SET_S(i, bytes, set);
    }
    CPU_SET_S(least_bytes * 8 - 1, bytes, set);
    return 0;
}

static char root[] = "/tmp/halyard-processors-XXXXXX";

/* Writes a file under `root`, and makes its folders. */
static void file_write(const char *path, const char *text)
{
    char full[512];
    assert_true((size_t)snprintf(full, sizeof(full), "%s/%s", root, path) < sizeof(full));
    for (char *slash = strchr(full + strlen(root) + 1, '/'); slash != NULL;
         slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        mkdir(full, 0700);
        *slash = '/';
    }
    FILE *file = fopen(full, "w");
    assert_non_null(file);
    fputs(text, file);
    assert_int_equal(fclose(file), 0);
}

static int root_make(void **state)
{
    strcpy(root + sizeof(root) - 7, "XXXXXX");
    return !mkdtemp(root);
}

static int root_remove(void **state)
{
    char command[sizeof(root) + 16];
    snprintf(command, sizeof(command), "rm -r '%s'", root);
    return system(command);
}

/* Of a nested group, the least limit above it counts, and the least that is left. */
static void test_memory(void **state)
{
    uint64_t limit = 0, left = 0;
    cpu_control_group_memory(root, &limit, &left);
    assert_true(limit == UINT64_MAX && left == UINT64_MAX);
    file_write("proc/self/cgroup", "0::/a/b\n");
    file_write("sys/fs/cgroup/a/b/memory.max", "max\n");
    file_write("sys/fs/cgroup/a/b/memory.current", "50\n");
    cpu_control_group_memory(root, &limit, &left);
    assert_true(limit == UINT64_MAX && left == UINT64_MAX);
    file_write("sys/fs/cgroup/a/memory.max", "536870912\n");
    file_write("sys/fs/cgroup/a/memory.current", "36870912\n");
    cpu_control_group_memory(root, &limit, &left);
    assert_true(limit == 536870912 && left == 500000000);
    file_write("sys/fs/cgroup/a/b/memory.max", "1000000000\n");
    file_write("sys/fs/cgroup/a/b/memory.current", "999999999\n");
    cpu_control_group_memory(root, &limit, &left);
    assert_true(limit == 536870912 && left == 1);
    /* Version 1, where what is used may exceed a limit that was lowered. */
    file_write("proc/self/cgroup", "3:cpu:/x\n4:memory:/x/y\n");
    file_write("sys/fs/cgroup/memory/x/y/memory.limit_in_bytes", "9223372036854771712\n");
    file_write("sys/fs/cgroup/memory/x/memory.limit_in_bytes", "1000\n");
    file_write("sys/fs/cgroup/memory/x/memory.usage_in_bytes", "2000\n");
    cpu_control_group_memory(root, &limit, &left);
    assert_true(limit == 1000 && left == 0);
}

static void test_version_2(void **state)
{
    assert_int_equal(cpu_processors_quota(root), UINT32_MAX);
    file_write("proc/self/cgroup", "0::/a/b\n");
    assert_int_equal(cpu_processors_quota(root), UINT32_MAX);
    file_write("sys/fs/cgroup/a/b/cpu.max", "max 100000\n");
    assert_int_equal(cpu_processors_quota(root), UINT32_MAX);
    file_write("sys/fs/cgroup/a/b/cpu.max", "400000 100000\n");
    assert_int_equal(cpu_processors_quota(root), 4);
    /* The least of the groups above counts; parts of a processor are rounded up. */
    file_write("sys/fs/cgroup/a/cpu.max", "150000 100000\n");
    assert_int_equal(cpu_processors_quota(root), 2);
    file_write("sys/fs/cgroup/a/cpu.max", "1000 100000\n");
    assert_int_equal(cpu_processors_quota(root), 1);
    file_write("sys/fs/cgroup/a/cpu.max", "no number\n");
    assert_int_equal(cpu_processors_quota(root), 4);
}

/* In a container the path of the group may be missing; the files of the group are at the root. */
static void test_container(void **state)
{
    file_write("proc/self/cgroup", "0::/system.slice/docker-1234.scope\n");
    file_write("sys/fs/cgroup/cpu.max", "300000 100000\n");
    assert_int_equal(cpu_processors_quota(root), 3);
    file_write("proc/self/cgroup", "0::/\n");
    assert_int_equal(cpu_processors_quota(root), 3);
}

static void test_version_1(void **state)
{
    file_write("proc/self/cgroup",
               "9:cpuset:/other\n4:cpu,cpuacct:/x\n3:memory:/x\n0::/unified\nwithout colons\n");
    file_write("sys/fs/cgroup/cpu,cpuacct/x/cpu.cfs_quota_us", "-1\n");
    file_write("sys/fs/cgroup/cpu,cpuacct/x/cpu.cfs_period_us", "100000\n");
    /* The folder of another controller does not count. */
    file_write("sys/fs/cgroup/cpuset/other/cpu.cfs_quota_us", "100000\n");
    file_write("sys/fs/cgroup/cpuset/other/cpu.cfs_period_us", "100000\n");
    assert_int_equal(cpu_processors_quota(root), UINT32_MAX);
    file_write("sys/fs/cgroup/cpu,cpuacct/x/cpu.cfs_quota_us", "250000\n");
    assert_int_equal(cpu_processors_quota(root), 3);
    file_write("sys/fs/cgroup/cpu,cpuacct/x/cpu.cfs_period_us", "0\n");
    assert_int_equal(cpu_processors_quota(root), UINT32_MAX);
}

static void test_this_machine(void **state)
{
    assert_true(cpu_processors_allowed() >= 1);
    assert_true(cpu_processors_quota("") >= 1);
}

static void test_many_processors(void **state)
{
    least_bytes = 4 * sizeof(cpu_set_t);
    assert_int_equal(cpu_processors_allowed(), MANY + 1);
    least_bytes = 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_memory, root_make, root_remove),
        cmocka_unit_test_setup_teardown(test_version_2, root_make, root_remove),
        cmocka_unit_test_setup_teardown(test_container, root_make, root_remove),
        cmocka_unit_test_setup_teardown(test_version_1, root_make, root_remove),
        cmocka_unit_test(test_this_machine),
        cmocka_unit_test(test_many_processors),
    };
    return cmocka_run_group_tests_name("cpu processors", tests, NULL, NULL);
}
