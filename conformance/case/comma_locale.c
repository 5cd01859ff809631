/* comma_locale.c: see comma_locale.h. */
#include "case/comma_locale.h"

#include <locale.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* glibc's binary form of the category LC_NUMERIC: a magic number, the count of items, their
 * offsets, the items. No locale of the system has to be installed. */
static bool numeric_write(const char *path)
{
    struct {
        uint32_t magic, count, offsets[6];
        char point[4], thousands[4], grouping[4];
        uint32_t wide_point, wide_thousands;
        char codeset[8];
    } file = {.magic = 0x20031115 ^ LC_NUMERIC,
              .count = 6,
              .point = ",",
              .thousands = ".",
              .grouping = {3, 3},
              .wide_point = ',',
              .wide_thousands = '.',
              .codeset = "UTF-8"};
    const uint32_t base = 32;
    const uint32_t offsets[6] = {base, base + 4, base + 8, base + 12, base + 16, base + 20};
    memcpy(file.offsets, offsets, sizeof offsets);
    FILE *out = fopen(path, "wb");
    return out && (fwrite(&file, sizeof file, 1, out) == 1) + (fclose(out) == 0) == 2;
}

bool comma_locale_set(void)
{
    char folder[] = "/tmp/comma-locale-XXXXXX", inside[64], path[96], text[16];
    if (!mkdtemp(folder)) {
        return false;
    }
    snprintf(inside, sizeof inside, "%s/comma", folder);
    snprintf(path, sizeof path, "%s/LC_NUMERIC", inside);
    const bool is_written = mkdir(inside, 0700) == 0 && numeric_write(path) &&
                            setenv("LOCPATH", folder, 1) == 0 && setlocale(LC_NUMERIC, "comma");
    unlink(path);
    rmdir(inside);
    rmdir(folder);
    snprintf(text, sizeof text, "%.1f", 0.5);
    return is_written && strcmp(text, "0,5") == 0;
}
