/* cover_select.c: the few cases that cover what all of them cover (--cover). A case covers
 * features, which are texts: - a cell of the IR is two: opcode, kind of memory and type; and its
 * row, which may have a width and a guard, with the kind of memory; - a cell of an operator is
 * two, the row, and the type in the group of cases: an operator on each type is made of the IR's
 * cells; - each parameter in the name is one, with its value, such as "gemm(epilogue=relu";
 * without it if it is the seed, a size of a family, or a type at the level of the op library. The
 * choice is greedy: again and again the case that covers most of what is still uncovered, of
 * equals the first. */
#include "case/cover.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FEATURE_BYTES = 96 };

typedef struct feature {
    char text[FEATURE_BYTES];
    size_t number; /* of its case, then of the text among all texts */
} feature;

typedef struct feature_list {
    feature *items; /* those of a case follow each other */
    size_t count, capacity;
    bool out_of_memory;
} feature_list;

static HAL_PRINTF(3, 4) void feature_add(feature_list *list, size_t number, const char *format, ...)
{
    if (list->count == list->capacity) {
        const size_t capacity = list->capacity == 0 ? 4096 : 2 * list->capacity;
        feature *items = realloc(list->items, capacity * sizeof *items);
        if (!items) {
            list->out_of_memory = true;
            return;
        }
        list->items = items;
        list->capacity = capacity;
    }
    feature *added = &list->items[list->count++];
    added->number = number;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(added->text, sizeof added->text, format, arguments);
    va_end(arguments);
}

static bool is_number(const case_entry *entry, const char *key, int bytes)
{
    const case_family *family = entry->family;
    for (size_t i = 0; family && i < family->size_count; i++) {
        const case_size *size = &family->sizes[i];
        if (size->bytes > 1 && strlen(size->key) == (size_t)bytes &&
            strncmp(size->key, key, (size_t)bytes) == 0) {
            return true;
        }
    }
    return strncmp(key, "seed=", 5) == 0;
}

static bool is_type(const char *text, int bytes)
{
    for (hal_type type = HAL_TYPE_BOOL; type < HAL_TYPE_COUNT; type++) {
        const char *name = hal_type_name(type);
        if (strlen(name) == (size_t)bytes && strncmp(name, text, (size_t)bytes) == 0) {
            return true;
        }
    }
    return false;
}

static void add_parameter(feature_list *list, size_t number, const case_entry *entry, int operator,
                          const char * text, int bytes)
{
    const char *equals = memchr(text, '=', (size_t)bytes);
    const int key = !equals ? bytes : (int)(equals - text);
    const bool without_value =
        equals && (is_number(entry, text, key) || (entry->level == CASE_LEVEL_OPS &&
                                                           is_type(equals + 1, bytes - key - 1)));
    feature_add(list, number, "%.*s(%.*s", operator, entry->name, without_value ? key : bytes,
                text);
}

static void add_features(feature_list *list, size_t number, const case_entry *entry)
{
    const int operator=(int) strcspn(entry->name, "(");
    const char *text = entry->name + operator;
    feature_add(list, number, "%.*s", operator, entry->name);
    while (*text != 0 && *text != ')') {
        text++;
        const int bytes = (int)strcspn(text, ",)");
        add_parameter(list, number, entry, operator, text, bytes);
        text += bytes;
    }
    for (size_t i = 0; i < entry->cover_count; i++) {
        const case_cover *cover = &entry->covers[i];
        const char *type = hal_type_name(cover->type), *width = strstr(cover->row, " x");
        if (entry->level == CASE_LEVEL_OPS) {
            feature_add(list, number, "%s", cover->row);
            feature_add(list, number, "%s %s", entry->group, type);
        } else {
            const int bytes = !width ? (int)strlen(cover->row) : (int)(width - cover->row);
            feature_add(list, number, "%.*s %d %s", bytes, cover->row, cover->memory, type);
            feature_add(list, number, "%s %d", cover->row, cover->memory);
        }
    }
}

static int compare_features(const void *a, const void *b)
{
    return strcmp((*(feature *const *)a)->text, (*(feature *const *)b)->text);
}

/* Gives equal texts one number; how many texts there are. SIZE_MAX: out of memory. */
static size_t number_texts(const feature_list *list)
{
    feature **sorted = malloc((list->count + 1) * sizeof *sorted);
    size_t texts = 0;
    if (!sorted) {
        return SIZE_MAX;
    }
    for (size_t i = 0; i < list->count; i++) {
        sorted[i] = &list->items[i];
    }
    qsort(sorted, list->count, sizeof *sorted, compare_features);
    for (size_t i = 0; i < list->count; i++) {
        texts += i == 0 || strcmp(sorted[i]->text, sorted[i - 1]->text) != 0;
        sorted[i]->number = texts - 1;
    }
    free(sorted);
    return texts;
}

static size_t count_uncovered(const feature_list *list, size_t first, size_t end,
                              const bool *covered)
{
    size_t count = 0;
    for (size_t i = first; i < end; i++) {
        count += !covered[list->items[i].number];
    }
    return count;
}

/* `ends[i]` is the end of case i's features. */
static void choose_greedily(const feature_list *list, const size_t *ends, size_t count,
                            bool *covered, bool *chosen)
{
    for (;;) {
        size_t best = 0, most = 0;
        for (size_t i = 0; i < count; i++) {
            const size_t first = i == 0 ? 0 : ends[i - 1];
            const size_t gain =
                ends[i] - first <= most ? 0 : count_uncovered(list, first, ends[i], covered);
            if (gain > most) {
                best = i;
                most = gain;
            }
        }
        if (most == 0) {
            return;
        }
        chosen[best] = true;
        for (size_t i = best == 0 ? 0 : ends[best - 1]; i < ends[best]; i++) {
            covered[list->items[i].number] = true;
        }
    }
}

bool cover_select(const case_entry *const *entries, size_t count, bool *chosen)
{
    feature_list list = {0};
    size_t *ends = malloc((count + 1) * sizeof *ends);
    bool *covered = NULL;
    memset(chosen, 0, count * sizeof *chosen);
    for (size_t i = 0; ends && i < count; i++) {
        add_features(&list, i, entries[i]);
        ends[i] = list.count;
    }
    const bool listed = ends && !list.out_of_memory;
    const size_t texts = listed ? number_texts(&list) : SIZE_MAX;
    if (texts != SIZE_MAX && (covered = calloc(texts + 1, sizeof *covered)) != NULL) {
        choose_greedily(&list, ends, count, covered, chosen);
    }
    const bool well = covered != NULL;
    free(covered);
    free(ends);
    free(list.items);
    return well;
}
