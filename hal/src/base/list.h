/* Lists of words, separated by commas and spaces, of variables, plugins and command lines:
 *
 *     const char *rest = "a, b", *word;
 *     for (size_t length; (length = hal_list_next(&rest, &word)) > 0;) { ... } */
#ifndef HAL_SRC_BASE_LIST_H
#define HAL_SRC_BASE_LIST_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

/* Sets *word to the next word and *rest to the text after it. Returns its length; 0 at the end. */
static inline size_t hal_list_next(const char **rest, const char **word)
{
    *word = *rest + strspn(*rest, ", ");
    const size_t length = strcspn(*word, ", ");
    *rest = *word + length;
    return length;
}

static inline bool hal_list_has(const char *list, const char *word)
{
    const size_t wanted = strlen(word);
    const char *item;
    for (size_t length; (length = hal_list_next(&list, &item)) > 0;) {
        if (length == wanted && strncmp(item, word, length) == 0) {
            return true;
        }
    }
    return false;
}

#endif
