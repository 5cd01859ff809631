/* mock_shim.h: a shim without Metal that writes down what a batch encodes and lets the test say how
 * command buffers end. */
#ifndef TESTS_UNIT_PLUGINS_METAL_MOCK_SHIM_H
#define TESTS_UNIT_PLUGINS_METAL_MOCK_SHIM_H

#include <metal/driver.h>

typedef struct mock_state {
    char calls[1 << 14]; /* a word for each call of an encoder or command buffer */
    int objects;         /* references that are not released */
    int commits;
    uint64_t allocated;      /* bytes of buffers */
    metal_progress progress; /* what committed commands are at; events follow when they end */
    long error_code;         /* of METAL_FAILED */
    int no_commands, no_encoder, no_buffer;
    int archives_written, archives_used, libraries;
    uint64_t max_group_items, subgroup_width;
} mock_state;
extern mock_state mock;

/* As after the start of the process. */
void mock_reset(void);

#endif
