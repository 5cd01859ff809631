/* recorder.h: what corpus.c and the plugin hal_recorder.so say to each other. The plugin's devices
 * claim what GPUs of several kinds claim, run nothing, and hand every kernel over as it comes, so
 * that the op library's kernels can be compiled for hardware that is not there. corpus.c finds the
 * state with dlopen and dlsym(RECORDER_STATE_SYMBOL). */
#ifndef TESTS_KERNELS_RECORDER_H
#define TESTS_KERNELS_RECORDER_H

#include <hal/plugin.h>

#define RECORDER_STATE_SYMBOL "recorder_state_of_plugin"

typedef struct recorder_state {
    /* Called with each kernel that hal makes on a device, as hal hands it to a plugin. */
    void (*made)(void *user, const hal_ir_kernel *kernel);
    void *user;
} recorder_state;

#endif
