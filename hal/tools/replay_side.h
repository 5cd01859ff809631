/* A side of hal-replay --bisect: a process of its own, with its own variables and perhaps of
 * another build, that runs single commands on one device. */
#ifndef HAL_TOOLS_REPLAY_SIDE_H
#define HAL_TOOLS_REPLAY_SIDE_H

#include <hal/plugin.h>
#include <stdbool.h>
#include <sys/types.h>

enum { REPLAY_SIDE_BINDINGS = HAL_IR_MAX_BINDINGS + 1 };

/* A dispatch, a copy or a fill, with all that it needs. Numbers and bytes cross processes. */
typedef struct replay_work {
    uint32_t kind; /* HAL_COMMAND_* */
    uint32_t binding_count, scalar_bytes, ir_bytes;
    uint32_t grid[3];
    uint32_t access[REPLAY_SIDE_BINDINGS];
    uint64_t bytes[REPLAY_SIDE_BINDINGS];
    const char *ir; /* of a dispatch */
    const uint8_t *scalars;
    const uint8_t *data[REPLAY_SIDE_BINDINGS]; /* before the command */
} replay_work;

typedef struct replay_side {
    const char *words; /* of the command line */
    pid_t process;
    int channel;
    uint32_t lanes; /* of a subgroup */
} replay_side;

/* Starts a side. `words`: variables as NAME=VALUE, then the path of another hal-replay if one has a
 * slash, then the selection of the device; separated by spaces. `words` stays valid.
 * Errors: INTERNAL, those of hal_device_open. */
hal_status replay_side_start(replay_side *side, const char *words);

/* Runs a command. `results` receives the contents of all bindings, in memory of the caller.
 * Errors: those of the device with its message; DEVICE_LOST where the process has ended. */
hal_status replay_side_run(replay_side *side, const replay_work *work,
                           uint8_t *const results[REPLAY_SIDE_BINDINGS]);

void replay_side_end(replay_side *side);

/* The process of a side: serves a channel until its end. Returns the exit status. */
int replay_side_serve(int channel, const char *selection);

#endif
