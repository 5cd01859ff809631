/* Adds what a program of peers/pytorch measured as peers of the rows of the same case. The file is
 * JSON with "rows", an array of flat objects that have "case", "peer", "median_us", "min_us" and
 * "spread_us"; anything else in it is ignored. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/bench.h"
#include "json.h"

enum { MAX_BYTES = 16 << 20 };

static char *file_load(const char *path)
{
    FILE *file = fopen(path, "r");
    if (!file) {
        return NULL;
    }
    char *text = malloc(MAX_BYTES + 1);
    if (text) {
        text[fread(text, 1, MAX_BYTES, file)] = 0;
    }
    fclose(file);
    return text;
}

static double member_number(const json_value *object, const char *key)
{
    const json_value *found = json_find(object, key);
    return found && found->kind == JSON_NUMBER ? found->number : 0.0;
}

/* The variants of a case follow its name after a comma. */
static void row_attach(bench_state *bench, const char *name, const char *peer_name,
                       const measurement *time)
{
    const size_t length = strlen(name);
    for (int i = 0; i < bench->row_count; i++) {
        bench_row *row = &bench->rows[i];
        const bool same = strncmp(row->name, name, length) == 0 &&
                          (row->name[length] == 0 || row->name[length] == ',');
        if (same && length > 0 && time->median_us > 0.0 && row->peer_count < BENCH_MAX_PEERS) {
            bench_peer *peer = bench_add_peer(row, peer_name, time);
            peer->ratio = time->median_us / row->time.median_us;
        }
    }
}

bool bench_join(bench_state *bench, const char *path)
{
    char message[256] = "no rows", *text = file_load(path);
    if (!text) {
        return bench_fail(bench, "cannot read %s: %s", path, strerror(errno));
    }
    json_value *file = json_read(text, message, sizeof message);
    const json_value *rows = json_find(file, "rows");
    const bool well = (rows && rows->kind == JSON_ARRAY) ||
                      bench_fail(bench, "%s: expected JSON of a program of bench/peers/pytorch: %s",
                                 path, message);
    for (const json_value *row = well ? rows->first : NULL; row; row = row->next) {
        const measurement time = {.median_us = member_number(row, "median_us"),
                                  .min_us = member_number(row, "min_us"),
                                  .spread_us = member_number(row, "spread_us")};
        row_attach(bench, json_text_of(row, "case"), json_text_of(row, "peer"), &time);
    }
    json_free(file);
    free(text);
    return well;
}
