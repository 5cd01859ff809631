/* files.h: how many files were ever seen in the folders where programs leave temporary ones. Other
 * programs remove theirs meanwhile, so that the number of those that are there tells little. */
#ifndef CONFORMANCE_HAL_FILES_H
#define CONFORMANCE_HAL_FILES_H

#include <stdint.h>

/* Hashes of folder and name; all 0 at first. What is beyond its size is not counted. */
enum { FILES_SLOTS = 1 << 16, FILES_MOST = FILES_SLOTS / 4 * 3 };

typedef struct files {
    uint32_t count;
    uint64_t slots[FILES_SLOTS]; /* 0: empty */
} files;

/* Looks, allocating nothing that stays; how many different files all looks have seen. */
uint32_t files_seen(files *seen);

#endif
