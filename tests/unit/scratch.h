/* scratch.h: files and folders that a unit test makes for itself, in TMPDIR or else in /tmp.
 * Included by the tests that write files. */
#ifndef TESTS_UNIT_SCRATCH_H
#define TESTS_UNIT_SCRATCH_H

#include <linux/capability.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { SCRATCH_BYTES = 200 };

/* Writes TMPDIR/halyard-NAME-XXXXXX. */
static inline char *scratch_template(char path[SCRATCH_BYTES], const char *name)
{
    const char *folder = getenv("TMPDIR");
    const int length = snprintf(path, SCRATCH_BYTES, "%s/halyard-%s-XXXXXX",
                                !folder || folder[0] == 0 ? "/tmp" : folder, name);
    if (length >= SCRATCH_BYTES) {
        fprintf(stderr, "TMPDIR is too long for the tests: %s\n", folder);
        abort();
    }
    return path;
}

/* Makes an empty folder; its path, or null with errno. */
static inline char *scratch_folder(char path[SCRATCH_BYTES], const char *name)
{
    return mkdtemp(scratch_template(path, name));
}

/* Makes an empty file; its descriptor, or -1 with errno. */
static inline int scratch_file(char path[SCRATCH_BYTES], const char *name)
{
    return mkstemp(scratch_template(path, name));
}

/* Makes the modes of files hold for this thread also when it runs as root; false: as before. */
static inline void scratch_obey_modes(bool obey)
{
    enum { OVERRIDES = 1 << CAP_DAC_OVERRIDE | 1 << CAP_DAC_READ_SEARCH };
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3];
    if (syscall(SYS_capget, &header, data) == 0) {
        data[0].effective &= ~(uint32_t)OVERRIDES;
        data[0].effective |= obey ? 0 : data[0].permitted & OVERRIDES;
        syscall(SYS_capset, &header, data);
    }
}

#endif
