/* Reads the project's documentation; used by main.c and train.c. */
#include "text.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PATH_BYTES 4096

typedef struct bytes {
    unsigned char *all;
    size_t count;
} bytes;

static int append_file(const char *path, bytes *read, char *error, size_t error_bytes)
{
    FILE *file = fopen(path, "rb");
    if (!file) {
        snprintf(error, error_bytes, "%s: cannot open: %s; --data names the folder", path,
                 strerror(errno));
        return 0;
    }
    int good = 1;
    for (size_t got = 1; good && got > 0;) {
        const size_t more = 1 << 16;
        unsigned char *grown = realloc(read->all, read->count + more);
        good = grown != NULL;
        if (good) {
            read->all = grown;
            got = fread(grown + read->count, 1, more, file);
            read->count += got;
        }
    }
    if (!good || ferror(file)) {
        snprintf(error, error_bytes, "%s: %s", path, good ? strerror(errno) : "out of memory");
        good = 0;
    }
    fclose(file);
    return good;
}

static int is_page(const struct dirent *entry)
{
    const size_t length = strlen(entry->d_name);
    return length > 3 && strcmp(entry->d_name + length - 3, ".md") == 0;
}

static int append_pages(const char *folder, bytes *read, char *error, size_t error_bytes)
{
    char docs[PATH_BYTES], path[PATH_BYTES + 300];
    struct dirent **entries = NULL;
    snprintf(docs, sizeof(docs), "%s/docs", folder);
    const int count = scandir(docs, &entries, is_page, alphasort);
    if (count < 0) {
        snprintf(error, error_bytes, "%s: cannot read: %s", docs, strerror(errno));
        return 0;
    }
    int good = 1;
    for (int i = 0; i < count; i++) {
        snprintf(path, sizeof(path), "%s/%s", docs, entries[i]->d_name);
        good = good && append_file(path, read, error, error_bytes);
        free(entries[i]);
    }
    free(entries);
    return good;
}

static int number_letters(const bytes *read, rnn_text *text)
{
    int occurs[256] = {0};
    text->letters = malloc((read->count + 1) * sizeof(*text->letters));
    if (!text->letters) {
        return 0;
    }
    for (size_t i = 0; i < read->count; i++) {
        occurs[read->all[i]] = 1;
    }
    for (int byte = 0; byte < 256; byte++) {
        text->letter_of[byte] = occurs[byte] ? text->letter_count : -1;
        if (occurs[byte]) {
            text->bytes[text->letter_count++] = (unsigned char)byte;
        }
    }
    for (size_t i = 0; i < read->count; i++) {
        text->letters[i] = text->letter_of[read->all[i]];
    }
    text->count = (int64_t)read->count;
    return 1;
}

int rnn_text_load(const char *folder, rnn_text *text, char *error, size_t error_bytes)
{
    char path[PATH_BYTES];
    bytes read = {0};
    *text = (rnn_text){0};
    snprintf(path, sizeof(path), "%s/README.md", folder);
    int good = append_file(path, &read, error, error_bytes) &&
               append_pages(folder, &read, error, error_bytes);
    if (good && !number_letters(&read, text)) {
        snprintf(error, error_bytes, "%s: out of memory", folder);
        good = 0;
    }
    free(read.all);
    return good;
}

void rnn_text_free(rnn_text *text)
{
    free(text->letters);
    *text = (rnn_text){0};
}

int64_t rnn_text_batch(const rnn_text *text, int64_t batch, int64_t steps, int64_t position,
                       int32_t *letters, int32_t *next)
{
    const int64_t length = (text->count - 1) / batch;
    for (int64_t step = 0; step < steps; step++) {
        for (int64_t stream = 0; stream < batch; stream++) {
            const int32_t *at = text->letters + stream * length + position + step;
            letters[step * batch + stream] = at[0];
            next[step * batch + stream] = at[1];
        }
    }
    position += steps;
    return position + steps <= length ? position : 0;
}
