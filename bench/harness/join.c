/* Adds what a program of peers/pytorch measured as peers of the rows of the same case. The file is
 * JSON with "rows", an array of flat objects that have "case", "peer", "median_us", "min_us" and
 * "spread_us"; anything else in it is ignored. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/bench.h"

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

/* The text after `"key":` in an object; null if it has none. */
static const char *member_find(const char *object, const char *key)
{
    char quoted[32];
    snprintf(quoted, sizeof quoted, "\"%s\"", key);
    const char *at = strstr(object, quoted);
    if (!at) {
        return NULL;
    }
    at += strlen(quoted);
    at += strspn(at, " \t\r\n");
    return *at == ':' ? at + 1 + strspn(at + 1, " \t\r\n") : NULL;
}

/* Copies a string without escapes, as the names of cases and peers are. */
static bool member_string(const char *object, const char *key, char *text, size_t bytes)
{
    const char *at = member_find(object, key);
    if (!at || *at != '"') {
        return false;
    }
    snprintf(text, bytes, "%.*s", (int)strcspn(at + 1, "\""), at + 1);
    return true;
}

static double member_number(const char *object, const char *key)
{
    const char *at = member_find(object, key);
    return at ? strtod(at, NULL) : 0.0;
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

/* Attaches the objects from `at` on; false unless the array ends. */
static bool rows_attach(bench_state *bench, char *at)
{
    for (;;) {
        at += strcspn(at, "{]");
        if (*at != '{') {
            return *at == ']';
        }
        char *end = strchr(at, '}'), name[96], peer[32];
        if (!end) {
            return false;
        }
        *end = 0;
        if (member_string(at, "case", name, sizeof name) &&
            member_string(at, "peer", peer, sizeof peer)) {
            const measurement time = {.median_us = member_number(at, "median_us"),
                                      .min_us = member_number(at, "min_us"),
                                      .spread_us = member_number(at, "spread_us")};
            row_attach(bench, name, peer, &time);
        }
        at = end + 1;
    }
}

bool bench_join(bench_state *bench, const char *path)
{
    char *text = file_load(path);
    if (!text) {
        return bench_fail(bench, "cannot read %s: %s", path, strerror(errno));
    }
    const char *rows = member_find(text, "rows");
    const bool well = (rows && *rows == '[' && rows_attach(bench, text + (rows - text))) ||
                      bench_fail(bench, "%s: no JSON as pytorch/sequential.py writes it", path);
    free(text);
    return well;
}
