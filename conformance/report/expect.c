/* expect.c: known failures; expect.h says what the file looks like. */
#include "report/expect.h"

#include <errno.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Splits the line after the name and returns the reason, or null. */
static char *reason_of(char *line)
{
    char *gap = strstr(line, "  ");
    char *tab = strchr(line, '\t');
    if (!gap || (tab && tab < gap)) {
        gap = tab;
    }
    if (!gap) {
        return NULL;
    }
    *gap++ = 0;
    gap += strspn(gap, " \t");
    return *gap == 0 ? NULL : gap;
}

static bool read_line(char *line, expect_list *list)
{
    line[strcspn(line, "\r\n")] = 0;
    line += strspn(line, " \t");
    if (line[0] == 0 || line[0] == '#') {
        return true;
    }
    char *reason = reason_of(line);
    if (!reason) {
        return false;
    }
    expectation *items = realloc(list->items, (list->count + 1) * sizeof *items);
    if (!items) {
        return false;
    }
    list->items = items;
    items[list->count++] = (expectation){.pattern = strdup(line), .reason = strdup(reason)};
    return items[list->count - 1].pattern && items[list->count - 1].reason != NULL;
}

bool expect_read(const char *path, expect_list *list, char *message, size_t bytes)
{
    *list = (expect_list){0};
    FILE *file = fopen(path, "r");
    if (!file) {
        snprintf(message, bytes, "cannot read %s: %s", path, strerror(errno));
        return false;
    }
    char line[1024];
    bool well = true;
    for (unsigned number = 1; well && fgets(line, sizeof line, file) != NULL; number++) {
        well = read_line(line, list);
        if (!well) {
            snprintf(message, bytes,
                     "%s:%u: write a case's name, two spaces and the reason of its failure", path,
                     number);
        }
    }
    fclose(file);
    return well;
}

void expect_free(expect_list *list)
{
    for (size_t i = 0; i < list->count; i++) {
        free(list->items[i].pattern);
        free(list->items[i].reason);
    }
    free(list->items);
    *list = (expect_list){0};
}

const expectation *expect_find(const expect_list *list, const char *name)
{
    for (size_t i = 0; i < list->count; i++) {
        if (expect_fits(&list->items[i], name)) {
            return &list->items[i];
        }
    }
    return NULL;
}

bool expect_fits(const expectation *one, const char *name)
{
    const char *pattern = one->pattern;
    if (fnmatch(pattern, name, 0) == 0) {
        return true;
    }
    const char *seed = strstr(name, ",seed=");
    const size_t length = strlen(pattern);
    if (!seed || length == 0) {
        return false;
    }
    /* "gemm(m=1" and "gemm(m=1)" both stand for "gemm(m=1,seed=7)". */
    const size_t stem = pattern[length - 1] == ')' ? length - 1 : length;
    return stem == (size_t)(seed - name) && strncmp(pattern, name, stem) == 0;
}
