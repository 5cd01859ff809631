/* assert_json.h: asserts that text is JSON, by the reader of conformance. Included by tests of
 * programs and layers that write it. */
#ifndef TESTS_UNIT_ASSERT_JSON_H
#define TESTS_UNIT_ASSERT_JSON_H

#include "unit.h"

#include "json.h"

static inline void assert_json(const char *text)
{
    char message[256];
    json_value *root = json_read(text, message, sizeof message);
    if (!root) {
        fail_msg("%s in %s", message, text);
    }
    json_free(root);
}

#endif
