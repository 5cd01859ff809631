/* json.h: asserts that text is JSON. Included by tests of programs and layers that write it. */
#ifndef TESTS_UNIT_JSON_H
#define TESTS_UNIT_JSON_H

#include "unit.h"
#include <stdlib.h>
#include <string.h>

/* These return the text after a value and the space that follows it. */
static inline const char *json_space(const char *at)
{
    return at + strspn(at, " \t\r\n");
}

static inline const char *json_string(const char *at)
{
    assert_int_equal(*at, '"');
    for (at++; *at != '"'; at++) {
        assert_true((unsigned char)*at >= 0x20);
        at += *at == '\\';
    }
    return json_space(at + 1);
}

static inline const char *json_value(const char *at)
{
    char *end;
    const char closing = *at == '{' ? '}' : ']';
    if (*at == '"') {
        return json_string(at);
    }
    if (*at != '{' && *at != '[') {
        static const char *const words[] = {"null", "true", "false"};
        for (int i = 0; i < 3; i++) {
            if (strncmp(at, words[i], strlen(words[i])) == 0) {
                return json_space(at + strlen(words[i]));
            }
        }
        strtod(at, &end);
        assert_ptr_not_equal(end, at);
        return json_space(end);
    }
    at = json_space(at + 1);
    for (int first = 1; *at != closing; first = 0) {
        if (!first) {
            assert_int_equal(*at, ',');
            at = json_space(at + 1);
        }
        if (closing == '}') {
            at = json_string(at);
            assert_int_equal(*at, ':');
            at = json_space(at + 1);
        }
        at = json_value(at);
    }
    return json_space(at + 1);
}

static inline void assert_json(const char *text)
{
    const char *end = json_value(json_space(text));
    if (*end) {
        fail_msg("expected JSON, got: %s", end);
    }
}

#endif
