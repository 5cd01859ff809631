/* join.c: what torch_sequential.py measured, as peers of the rows of the same case; bench.h says
 * who calls it. The file is JSON with "rows": objects that have "case", "peer", "median_us",
 * "min_us", "spread_us"; whatever else it holds is passed over. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"

enum { MAX_DEPTH = 32, MAX_BYTES = 16 << 20 };

/* Rest of the text. */
typedef struct scanner {
    const char *at;
    int depth;
} scanner;

typedef struct joined_row {
    char name[96], peer[32];
    measurement time;
} joined_row;

typedef bool (*member_function)(scanner *s, const char *key, void *user);

static bool skip(scanner *s);

static char *load(const char *path)
{
    FILE *file = fopen(path, "r");
    if (file == NULL) {
        return NULL;
    }
    char *text = malloc(MAX_BYTES + 1);
    if (text != NULL) {
        text[fread(text, 1, MAX_BYTES, file)] = 0;
    }
    fclose(file);
    return text;
}

static void skip_space(scanner *s)
{
    s->at += strspn(s->at, " \t\r\n");
}

static bool scan_word(scanner *s, const char *word)
{
    const size_t length = strlen(word);
    skip_space(s);
    if (strncmp(s->at, word, length) != 0) {
        return false;
    }
    s->at += length;
    return true;
}

/* Cut to fit; escapes are kept as they stand, since no name that is compared has any. */
static bool scan_string(scanner *s, char *text, size_t bytes)
{
    size_t count = 0;
    if (!scan_word(s, "\"")) {
        return false;
    }
    while (*s->at != '"') {
        const size_t length = s->at[0] == '\\' ? 2 : 1;
        if (s->at[0] == 0 || s->at[length - 1] == 0) {
            return false;
        }
        if (count + length < bytes) {
            memcpy(text + count, s->at, length);
            count += length;
        }
        s->at += length;
    }
    text[count] = 0;
    s->at++;
    return true;
}

static bool scan_object(scanner *s, member_function member, void *user)
{
    char key[64];
    if (!scan_word(s, "{") || s->depth == MAX_DEPTH) {
        return false;
    }
    if (scan_word(s, "}")) {
        return true;
    }
    s->depth++;
    do {
        if (!scan_string(s, key, sizeof key) || !scan_word(s, ":") || !member(s, key, user)) {
            return false;
        }
    } while (scan_word(s, ","));
    s->depth--;
    return scan_word(s, "}");
}

static bool scan_number(scanner *s, double *number)
{
    char *end;
    skip_space(s);
    *number = strtod(s->at, &end);
    const bool well = end != s->at;
    s->at = end;
    return well;
}

static bool skip_member(scanner *s, const char *key, void *user)
{
    (void)key;
    (void)user;
    return skip(s);
}

/* Any value. */
static bool skip(scanner *s)
{
    char text[1];
    double number;
    skip_space(s);
    if (*s->at == '{') {
        return scan_object(s, skip_member, NULL);
    }
    if (*s->at == '"') {
        return scan_string(s, text, sizeof text);
    }
    if (scan_word(s, "[")) {
        bool well = s->depth++ < MAX_DEPTH;
        if (well && !scan_word(s, "]")) {
            do {
                well = skip(s);
            } while (well && scan_word(s, ","));
            well = well && scan_word(s, "]");
        }
        s->depth--;
        return well;
    }
    return scan_word(s, "true") || scan_word(s, "false") || scan_word(s, "null") ||
           scan_number(s, &number);
}

static bool row_member(scanner *s, const char *key, void *user)
{
    joined_row *row = user;
    if (strcmp(key, "case") == 0) {
        return scan_string(s, row->name, sizeof row->name);
    }
    if (strcmp(key, "peer") == 0) {
        return scan_string(s, row->peer, sizeof row->peer);
    }
    if (strcmp(key, "median_us") == 0) {
        return scan_number(s, &row->time.median_us);
    }
    if (strcmp(key, "min_us") == 0) {
        return scan_number(s, &row->time.min_us);
    }
    if (strcmp(key, "spread_us") == 0) {
        return scan_number(s, &row->time.spread_us);
    }
    return skip(s);
}

/* A case's variants follow it after a comma. */
static void attach(bench_state *bench, const joined_row *joined)
{
    const size_t length = strlen(joined->name);
    for (int i = 0; i < bench->row_count; i++) {
        bench_row *row = &bench->rows[i];
        const bool same = strncmp(row->name, joined->name, length) == 0 &&
                          (row->name[length] == 0 || row->name[length] == ',');
        if (same && length > 0 && joined->time.median_us > 0.0 &&
            row->peer_count < BENCH_MAX_PEERS) {
            bench_peer *peer = bench_add_peer(row, joined->peer, &joined->time);
            peer->ratio = joined->time.median_us / row->time.median_us;
        }
    }
}

static bool scan_rows(bench_state *bench, scanner *s)
{
    if (!scan_word(s, "[")) {
        return false;
    }
    if (scan_word(s, "]")) {
        return true;
    }
    do {
        joined_row row = {.name = ""};
        if (!scan_object(s, row_member, &row)) {
            return false;
        }
        attach(bench, &row);
    } while (scan_word(s, ","));
    return scan_word(s, "]");
}

static bool file_member(scanner *s, const char *key, void *user)
{
    return strcmp(key, "rows") == 0 ? scan_rows(user, s) : skip(s);
}

bool bench_join(bench_state *bench, const char *path)
{
    char *text = load(path);
    if (text == NULL) {
        return bench_fail(bench, "cannot read %s: %s", path, strerror(errno));
    }
    scanner s = {.at = text};
    const bool well = scan_object(&s, file_member, bench);
    if (!well) {
        bench_fail(bench, "%s: no JSON as torch_sequential.py writes it, from byte %td on", path,
                   s.at - text);
    }
    free(text);
    return well;
}
