/* Growing text, and lists of words. */

#include "unit.h"
#include <stdio.h>
#include <string.h>

#include "base/list.h"
#include "base/text.h"

TEST(text_grows_by_what_is_added)
{
    hal_text text = {0};
    assert_string_equal(hal_text_get(&text), "");
    for (int i = 0; i < 1000; i++) {
        hal_text_add(&text, "%03d,", i);
    }
    assert_int_equal(text.failed, 0);
    assert_int_equal(text.length, 4000);
    assert_int_equal(strlen(hal_text_get(&text)), 4000);
    assert_memory_equal(hal_text_get(&text), "000,001,", 8);
    assert_string_equal(hal_text_get(&text) + 3992, "998,999,");
    hal_text_free(&text);
    assert_string_equal(hal_text_get(&text), "");
}

/* The words of a list with bars between them. */
static const char *words_of(const char *list)
{
    static char words[64];
    size_t at = 0;
    const char *word;
    words[0] = 0;
    for (size_t length; (length = hal_list_next(&list, &word)) > 0;) {
        at += (size_t)snprintf(words + at, sizeof words - at, "%s%.*s", at ? "|" : "", (int)length,
                               word);
    }
    assert_string_equal(list, "");
    assert_int_equal(hal_list_next(&list, &word), 0); /* the end stays the end */
    return words;
}

TEST(a_list_gives_its_words_and_no_empty_ones)
{
    assert_string_equal(words_of("one"), "one");
    assert_string_equal(words_of("one,two"), "one|two");
    assert_string_equal(words_of("one, two three"), "one|two|three");
    assert_string_equal(words_of(" ,, one ,,two, "), "one|two");
    assert_string_equal(words_of(""), "");
    assert_string_equal(words_of(","), "");
    assert_string_equal(words_of(" , "), "");
}

TEST(a_list_has_whole_words_only)
{
    const char *list = "native, ir,batches,,end";
    assert_true(hal_list_has(list, "native"));
    assert_true(hal_list_has(list, "ir"));
    assert_true(hal_list_has(list, "end"));
    assert_false(hal_list_has(list, "batch"));    /* the beginning of a word */
    assert_false(hal_list_has(list, "tive"));     /* its end */
    assert_false(hal_list_has(list, "ending"));   /* more than the list has */
    assert_false(hal_list_has(list, "ir,batches"));
    assert_false(hal_list_has(list, ""));
    assert_false(hal_list_has("", "ir"));
    assert_false(hal_list_has("", ""));
}

UNIT_MAIN(NULL, NULL)
