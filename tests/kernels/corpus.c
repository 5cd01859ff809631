/* corpus.c: drives the op library over the recording plugin; corpus.h says who calls it. */
#include "corpus.h"

#include <dlfcn.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "corpus_cases.h"
#include "recorder.h"

/* The state of the plugin that hal will load: the loader returns the same instance twice. */
static recorder_state *find_recorder(corpus *c)
{
    void *library = dlopen(RECORDER_FOLDER "/hal_recorder.so", RTLD_NOW | RTLD_LOCAL);
    recorder_state *state = !library ? NULL : dlsym(library, RECORDER_STATE_SYMBOL);
    if (!state) {
        snprintf(c->message, c->bytes, "%s", dlerror());
    }
    return state;
}

static void take(void *user, const hal_ir_kernel *kernel)
{
    corpus *c = user;
    char name[96];
    if (c->made++ == 0) {
        snprintf(name, sizeof name, "%s", c->label);
    } else {
        snprintf(name, sizeof name, "%s_%d", c->label, c->made);
    }
    c->visit(c->user, name, kernel);
}

static void release_tensors(corpus *c)
{
    for (int i = 0; i < c->tensor_count; i++) {
        ops_tensor_release(&c->tensors[i]);
    }
    c->tensor_count = 0;
}

/* A kernel has the name of what asked for it, so it is compiled within the call, as hal does where
 * there is one processor. */
static void use_one_processor(void)
{
    cpu_set_t allowed, one;
    int first = 0;
    if (sched_getaffinity(0, sizeof allowed, &allowed) == 0) {
        while (first < CPU_SETSIZE - 1 && !CPU_ISSET(first, &allowed)) {
            first++;
        }
        CPU_ZERO(&one);
        CPU_SET(first, &one);
        sched_setaffinity(0, sizeof one, &one);
    }
}

static bool run(corpus *c, const char *device)
{
    use_one_processor();
    char selection[64];
    hal_device *opened = NULL;
    hal_queue *queue = NULL;
    snprintf(selection, sizeof selection, "recorder:%s", device);
    snprintf(c->label, sizeof c->label, "device %s", device);
    corpus_did(c, hal_device_open(selection, &opened));
    if (!c->failed) {
        c->info = hal_device_get_info(opened);
        corpus_did(c, hal_queue_create(opened, &queue));
    }
    if (!c->failed) {
        corpus_did(c, ops_context_create(queue, &c->ops));
    }
    ops_context_set_kernels(c->ops, OPS_KERNELS_SPECIAL);
    if (!c->failed) {
        cases_pointwise(c);
        cases_reduce(c);
        cases_gemm(c);
        cases_index(c);
        cases_network(c);
        cases_attention(c);
    }
    release_tensors(c);
    ops_context_destroy(c->ops);
    hal_queue_destroy(queue);
    hal_device_release(opened);
    return !c->failed;
}

bool corpus_make(const char *device, bool all, corpus_visit visit, void *user, char *message,
                 size_t bytes)
{
    corpus c = {.all = all, .visit = visit, .user = user, .message = message, .bytes = bytes};
    setenv("HAL_PLUGIN_PATH", RECORDER_FOLDER, 1);
    setenv("HAL_CACHE_DIR", "off", 1);
    recorder_state *recorder = find_recorder(&c);
    if (!recorder) {
        return false;
    }
    *recorder = (recorder_state){.made = take, .user = &c};
    const bool well = run(&c, device);
    *recorder = (recorder_state){NULL, NULL};
    return well;
}

void corpus_case(corpus *c, const char *format, ...)
{
    va_list arguments;
    release_tensors(c);
    va_start(arguments, format);
    vsnprintf(c->label, sizeof c->label, format, arguments);
    va_end(arguments);
    c->made = 0;
}

ops_tensor corpus_tensor(corpus *c, hal_type type, uint32_t rank, const int64_t *shape)
{
    ops_tensor made = {0};
    if (c->failed) {
        return made;
    }
    if (c->tensor_count == CORPUS_TENSORS) {
        c->failed = true;
        snprintf(c->message, c->bytes, "%s: more than %d tensors", c->label, CORPUS_TENSORS);
        return made;
    }
    corpus_did(c, ops_tensor_create(c->ops, type, rank, shape, &made));
    if (!c->failed) {
        c->tensors[c->tensor_count++] = made;
    }
    return made;
}

ops_tensor corpus_vector(corpus *c, hal_type type, int64_t length)
{
    return corpus_tensor(c, type, 1, &length);
}

ops_tensor corpus_matrix(corpus *c, hal_type type, int64_t rows, int64_t columns)
{
    return corpus_tensor(c, type, 2, (const int64_t[]){rows, columns});
}

void corpus_did(corpus *c, hal_status status)
{
    if (status != HAL_OK && !c->failed) {
        c->failed = true;
        snprintf(c->message, c->bytes, "%s: %s: %s", c->label, hal_status_name(status),
                 hal_status_message());
    }
}

/* F64 kernels need a fused multiply-add, which cannot be emulated. */
bool corpus_computes(const corpus *c, hal_type type)
{
    if (type == HAL_TYPE_F64 && (c->info->exactness & HAL_EXACT_FMA) == 0) {
        return false;
    }
    return (c->info->arithmetic_types & HAL_TYPE_BIT(hal_type_of_value(type))) != 0;
}
