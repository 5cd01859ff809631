/* The seeds of the fuzz targets, without a fuzzer: each goes through its target as it is, cut short
 * at every length, and with single bytes changed. A target that finds a fault aborts. */

#include "unit.h"
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef int target(const uint8_t *data, size_t size);
target run_fuzz_ir_text, run_fuzz_ir_records, run_fuzz_ir_legalise, run_fuzz_ops_array,
    run_fuzz_replay_file;

/* A copy of exactly the bytes, so that a sanitizer sees a read beyond them. */
static void run_exactly(target *run, const uint8_t *data, size_t size)
{
    uint8_t *copy = malloc(size + (size == 0));
    memcpy(copy, data, size);
    run(copy, size);
    free(copy);
}

static void run_around(target *run, uint8_t *data, size_t size)
{
    run_exactly(run, data, size);
    for (size_t n = 0; n < size; n += 7) {
        run_exactly(run, data, n);
        const uint8_t kept = data[n];
        data[n] = (uint8_t)(n * 37 % 94 + 33);
        run_exactly(run, data, size);
        data[n] = kept;
    }
}

static void run_folder(target *run, const char *folder)
{
    int files = 0;
    DIR *entries = opendir(folder);
    assert_non_null(entries);
    for (struct dirent *entry; (entry = readdir(entries)) != NULL;) {
        char path[1024];
        uint8_t data[8192];
        if (entry->d_name[0] == '.') {
            continue;
        }
        snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        FILE *file = fopen(path, "rb");
        assert_non_null(file);
        const size_t size = fread(data, 1, sizeof data, file);
        fclose(file);
        run_around(run, data, size);
        files++;
    }
    closedir(entries);
    assert_true(files > 0);
}

TEST(text)
{
    run_folder(run_fuzz_ir_text, FUZZ_CORPUS "/fuzz_ir_text");
}

TEST(legalise)
{
    run_folder(run_fuzz_ir_legalise, FUZZ_CORPUS "/fuzz_ir_legalise");
}

TEST(records)
{
    /* An input is a list of changes of three bytes: record, field, value. Every field of every
     * record once, with several values. */
    static const int8_t values[] = {0, 1, 5, 17, 64, 127, -1, -2, -3, -128};
    for (uint32_t record = 0; record < 26; record++) {
        for (uint32_t field = 0; field < 14; field++) {
            for (size_t i = 0; i < sizeof values; i++) {
                const uint8_t change[3] = {(uint8_t)record, (uint8_t)field, (uint8_t)values[i]};
                run_exactly(run_fuzz_ir_records, change, sizeof change);
            }
        }
    }
}

TEST(arrays)
{
    run_folder(run_fuzz_ops_array, FUZZ_CORPUS "/fuzz_ops_array");
    /* Every call with every byte after it. */
    for (uint32_t call = 0; call < 24; call++) {
        for (uint32_t byte = 0; byte < 256; byte += 5) {
            uint8_t data[24] = {6, 0, 12, 2, 3, 4, 101, 1};
            memset(data + 8, (int)byte, sizeof data - 8);
            data[8] = data[16] = (uint8_t)call;
            run_exactly(run_fuzz_ops_array, data, sizeof data);
        }
    }
}

TEST(replays)
{
    run_folder(run_fuzz_replay_file, FUZZ_CORPUS "/fuzz_replay_file");
}

UNIT_MAIN(NULL, NULL)
