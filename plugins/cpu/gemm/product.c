/* The gemm entry of the plugin's table: a native kernel with a plan and an epilogue, which queue.c
 * runs as one call. */
#include "gemm/gemm.h"
#include "gemm/epilogue.h"

#include <stdlib.h>
#include <string.h>

/* Workers of the epilogue, one per thread of the device. */
typedef struct cpu_crew {
    uint32_t count;
    cpu_worker workers[];
} cpu_crew;

typedef struct cpu_product {
    struct cpu_gemm_plan plan;
    bool beta_is_zero;
    bool has_epilogue;
    bool works_on_stack;
    cpu_epilogue epilogue;
    _Atomic(cpu_crew *) idle; /* one crew is cached; concurrent runs allocate more */
} cpu_product;

/* One run, for the callback of the epilogue. */
typedef struct cpu_product_run {
    const cpu_product *product;
    cpu_crew *crew;
    void *const *inputs;
} cpu_product_run;

enum { NAMED_BINDINGS = 4 }; /* A, B, C, workspace; then the inputs of the epilogue */

/* Workspaces up to so many bytes are on the stack of a run: a buffer would take as long as a small
 * product. */
enum { STACK_BYTES = CPU_GEMM_SINGLE_BYTES };

static bool gemm_type_of(hal_type from, enum cpu_gemm_type *to)
{
    switch (from) {
    case HAL_TYPE_F32:
        *to = CPU_GEMM_F32;
        return true;
    case HAL_TYPE_F64:
        *to = CPU_GEMM_F64;
        return true;
    case HAL_TYPE_F16:
        *to = CPU_GEMM_F16;
        return true;
    case HAL_TYPE_BF16:
        *to = CPU_GEMM_BF16;
        return true;
    default:
        return false;
    }
}

static void crew_free(cpu_crew *crew)
{
    for (uint32_t i = 0; crew && i < crew->count; i++) {
        cpu_worker_release(&crew->workers[i]);
    }
    free(crew);
}

/* The idle crew, or a new one; null without memory. */
static cpu_crew *crew_take(cpu_product *product, uint32_t count)
{
    const cpu_epilogue *epilogue = &product->epilogue;
    cpu_crew *taken = atomic_exchange(&product->idle, NULL);
    if (taken) {
        return taken;
    }
    taken = calloc(1, sizeof(*taken) + count * sizeof(cpu_worker));
    for (uint32_t i = 0; taken && i < count; i++) {
        if (!cpu_worker_reserve(&taken->workers[i], epilogue->arena_bytes, epilogue->slot_count,
                                epilogue->memory_count)) {
            crew_free(taken);
            return NULL;
        }
        taken->count = i + 1;
    }
    return taken;
}

static void crew_give(cpu_product *product, cpu_crew *crew)
{
    crew_free(atomic_exchange(&product->idle, crew));
}

static void product_release(void *state)
{
    cpu_product *product = state;
    crew_free(atomic_load(&product->idle));
    cpu_epilogue_release(&product->epilogue);
    free(product);
}

static void product_run_epilogue(void *user, const struct cpu_gemm_tile *tile)
{
    const cpu_product_run *here = user;
    const cpu_epilogue_tile at = {.tile = tile->data,
                                  .row = tile->row,
                                  .col = tile->col,
                                  .batch = tile->batch,
                                  .ld = tile->ld,
                                  .rows = (uint32_t)tile->rows,
                                  .cols = (uint32_t)tile->cols};
    cpu_epilogue_run(&here->product->epilogue, &here->crew->workers[tile->thread], here->inputs,
                     &at);
}

static hal_status product_run(const cpu_kernel *kernel, const cpu_native_call *call)
{
    cpu_product *state = kernel->native_state;
    hal_plugin_device *device = call->device;
    _Alignas(64) char stack[STACK_BYTES];
    double scale[2];
    memcpy(scale, call->scalars, sizeof(scale));
    cpu_product_run here = {.product = state, .inputs = call->memory + NAMED_BINDINGS};
    struct cpu_gemm_args args = {.a = call->memory[0],
                                 .b = call->memory[1],
                                 .c = call->memory[2],
                                 .alpha = scale[0],
                                 .beta = state->beta_is_zero ? 0 : scale[1],
                                 .user = &here,
                                 .workspace = state->works_on_stack ? stack : call->memory[3],
                                 .pool = call->pool,
                                 .threads = call->threads};
    if (state->has_epilogue) {
        here.crew = crew_take(state, device->threads);
        if (!here.crew) {
            return cpu_fail(HAL_ERROR_OUT_OF_MEMORY,
                            "gemm: no host memory for the epilogue's %u workers", device->threads);
        }
    }
    cpu_gemm_run(&state->plan, &args);
    if (state->has_epilogue) {
        crew_give(state, here.crew);
    }
    return HAL_OK;
}

static hal_status desc_of(const hal_plugin_device *device, const hal_gemm_description *from,
                          struct cpu_gemm_desc *to)
{
    *to = (struct cpu_gemm_desc){.transpose_a = from->transpose_a,
                                 .transpose_b = from->transpose_b,
                                 .m = from->m,
                                 .n = from->n,
                                 .k = from->k,
                                 .lda = from->lda,
                                 .ldb = from->ldb,
                                 .ldc = from->ldc,
                                 .batch = from->batch,
                                 .stride_a = from->stride_a,
                                 .stride_b = from->stride_b,
                                 .stride_c = from->stride_c,
                                 .levels = from->levels,
                                 .isa = device->gemm_isa,
                                 .epilogue = from->epilogue ? product_run_epilogue : NULL};
    if (!gemm_type_of(from->type_a, &to->type_a) || !gemm_type_of(from->type_b, &to->type_b) ||
        !gemm_type_of(from->type_c, &to->type_c)) {
        return cpu_fail(HAL_ERROR_UNSUPPORTED, "gemm: types: expected f32, f64, f16 or bf16");
    }
    if (from->candidate > 1) {
        return cpu_fail(HAL_ERROR_UNSUPPORTED, "gemm: candidate: expected 0 or 1: one kernel");
    }
    if (from->m > UINT32_MAX || from->n > UINT32_MAX) {
        return cpu_fail(HAL_ERROR_UNSUPPORTED, "gemm: sizes: expected m and n below 2^32");
    }
    return HAL_OK;
}

hal_status cpu_gemm(hal_plugin_device *device, const hal_gemm_description *description,
                    hal_plugin_kernel **kernel, uint64_t *workspace_bytes)
{
    struct cpu_gemm_desc desc;
    *kernel = NULL;
    *workspace_bytes = 0;
    hal_status status = desc_of(device, description, &desc);
    if (status != HAL_OK) {
        return status;
    }
    cpu_kernel *made = calloc(1, sizeof(*made));
    cpu_product *state = calloc(1, sizeof(*state));
    if (!made || !state) {
        free(made);
        free(state);
        return cpu_fail(HAL_ERROR_OUT_OF_MEMORY, "gemm: no host memory for a kernel");
    }
    made->native = product_run;
    made->native_release = product_release;
    made->native_state = state;
    made->number = cpu_kernel_number();
    state->beta_is_zero = description->beta_is_zero;
    state->has_epilogue = description->epilogue != NULL;
    const char *wrong = cpu_gemm_plan_make(&state->plan, &desc);
    if (wrong) {
        status = cpu_fail(HAL_ERROR_UNSUPPORTED, "%s", wrong);
    } else if (state->has_epilogue) {
        /* A run may share its work or not. */
        struct cpu_gemm_shape shapes[2 * CPU_GEMM_SHAPES];
        int count = cpu_gemm_tile_shapes(&state->plan, 1, shapes);
        count += cpu_gemm_tile_shapes(&state->plan, (int)device->threads, shapes + count);
        status = cpu_epilogue_make(&state->epilogue, description, device, shapes, count);
    }
    made->native_alone = state->plan.max_threads == 1;
    made->work = (uint64_t)state->plan.expected_ns;
    if (status != HAL_OK) {
        cpu_kernel_destroy(device, made);
        return status;
    }
    *workspace_bytes = (uint64_t)cpu_gemm_workspace_size(&state->plan, (int)device->threads);
    state->works_on_stack = *workspace_bytes <= STACK_BYTES;
    if (state->works_on_stack) {
        *workspace_bytes = 0;
    }
    *kernel = made;
    return HAL_OK;
}
