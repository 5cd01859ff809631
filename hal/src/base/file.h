/* Files that hal reads and writes in a program that it does not own: no descriptor below 3, and no
 * signal for a file that grows beyond the process's limit. */
#ifndef HAL_SRC_BASE_FILE_H
#define HAL_SRC_BASE_FILE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* As open, with O_CLOEXEC. The descriptor is above 2: a program that has closed a standard stream
 * and writes to it does not write into the file. Returns -1 with errno. */
int hal_file_open(const char *path, int flags, mode_t mode);

/* Creates a file with a name that no other has, for the user alone. `name` ends in XXXXXX, which
 * are replaced. Returns -1 with errno. */
int hal_file_create_unique(char *name);

/* Reads `bytes` bytes; false at the end of the file, or with errno. */
bool hal_file_read(int file, void *data, uint64_t bytes);

/* Writes all bytes; false with errno. RLIMIT_FSIZE gives EFBIG: SIGXFSZ does not reach the
 * program. */
bool hal_file_write(int file, const void *data, uint64_t bytes);

/* The same at an offset of the file. */
bool hal_file_write_at(int file, const void *data, uint64_t bytes, off_t offset);

#endif
