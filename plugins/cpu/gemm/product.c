/* Native matrix products with their epilogues. */
#include "gemm/product.h"

#include "gemm/epilogue.h"
#include "gemm/gemm.h"
#include "gemm/groups.h"
#include "status.h"

#include <stdlib.h>
#include <string.h>

/* Workers of the epilogue, one per thread of the device. */
typedef struct product_workers {
    uint32_t count;
    cpu_worker workers[];
} product_workers;

struct cpu_product {
    struct cpu_gemm_groups groups; /* its plan is that of a product without groups, too */
    uint32_t input_count;
    bool has_groups;
    uint32_t threads;
    bool beta_is_zero;
    bool has_epilogue;
    bool binds_no_workspace;
    cpu_epilogue epilogue;
    _Atomic(product_workers *) idle; /* one set is cached; concurrent runs allocate more */
};

/* One run, for the callback of the epilogue. */
typedef struct product_context {
    const cpu_product *product;
    product_workers *set;
    void *const *inputs;
} product_context;

enum { NAMED_BINDINGS = 4 }; /* A, B, C, workspace; then the inputs of the epilogue */

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
    case HAL_TYPE_I8:
        *to = CPU_GEMM_I8;
        return true;
    case HAL_TYPE_U8:
        *to = CPU_GEMM_U8;
        return true;
    case HAL_TYPE_I32:
    case HAL_TYPE_U32:
        *to = CPU_GEMM_I32;
        return true;
    default:
        return false;
    }
}

static void workers_free(product_workers *set)
{
    for (uint32_t i = 0; set && i < set->count; i++) {
        cpu_worker_release(&set->workers[i]);
    }
    free(set);
}

/* The idle workers, or new ones; null without memory. */
static product_workers *workers_take(cpu_product *product, uint32_t count)
{
    const cpu_epilogue *epilogue = &product->epilogue;
    product_workers *taken = atomic_exchange(&product->idle, NULL);
    if (taken) {
        return taken;
    }
    taken = calloc(1, sizeof(*taken) + count * sizeof(cpu_worker));
    for (uint32_t i = 0; taken && i < count; i++) {
        if (!cpu_worker_reserve(&taken->workers[i], epilogue->arena_bytes, epilogue->slot_count,
                                epilogue->memory_count)) {
            workers_free(taken);
            return NULL;
        }
        taken->count = i + 1;
    }
    return taken;
}

static void workers_return(cpu_product *product, product_workers *set)
{
    workers_free(atomic_exchange(&product->idle, set));
}

static void product_run_epilogue(void *user, const struct cpu_gemm_tile *tile)
{
    const product_context *here = user;
    const cpu_epilogue_tile at = {.tile = tile->data,
                                  .row = tile->row,
                                  .col = tile->col,
                                  .batch = tile->batch,
                                  .ld = tile->ld,
                                  .rows = (uint32_t)tile->rows,
                                  .cols = (uint32_t)tile->cols};
    cpu_epilogue_run(&here->product->epilogue, &here->set->workers[tile->thread], here->inputs,
                     &at);
}

static hal_status desc_of(const hal_gemm_description *from, enum cpu_gemm_isa isa,
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
                                 .isa = isa,
                                 .epilogue = from->epilogue ? product_run_epilogue : NULL};
    if (!gemm_type_of(from->type_a, &to->type_a) || !gemm_type_of(from->type_b, &to->type_b) ||
        !gemm_type_of(from->type_c, &to->type_c)) {
        return cpu_fail(HAL_ERROR_UNSUPPORTED,
                        "gemm: types: expected f32, f64, f16, bf16, i8, u8, i32 or u32");
    }
    if (to->type_a >= CPU_GEMM_I8 && to->type_c != CPU_GEMM_I32 && !from->beta_is_zero) {
        return cpu_fail(HAL_ERROR_UNSUPPORTED, "gemm: beta: expected 0 for sums of i32 that become "
                                               "floats");
    }
    if (from->m > UINT32_MAX || from->n > UINT32_MAX) {
        return cpu_fail(HAL_ERROR_UNSUPPORTED, "gemm: sizes: expected m and n below 2^32");
    }
    return HAL_OK;
}

static hal_status product_plan(cpu_product *product, const hal_gemm_description *description,
                               const struct cpu_gemm_desc *desc, const cpu_product_options *options)
{
    struct cpu_gemm_plan *plan = &product->groups.plan;
    const bool is_wide = description->type_offsets == HAL_TYPE_I64;
    const char *wrong = product->has_groups ? cpu_gemm_groups_make(&product->groups, desc, is_wide,
                                                                   (int)options->threads)
                                            : cpu_gemm_plan_make(plan, desc);
    if (wrong) {
        return cpu_fail(HAL_ERROR_UNSUPPORTED, "%s", wrong);
    }
    if (!product->has_epilogue) {
        return HAL_OK;
    }
    /* A run may share its work or not. */
    struct cpu_gemm_shape shapes[2 * CPU_GEMM_SHAPES];
    int count = 0;
    if (product->has_groups) {
        count = cpu_epilogue_any_shapes(desc->n, shapes);
    } else {
        count = cpu_gemm_tile_shapes(plan, 1, shapes);
        count += cpu_gemm_tile_shapes(plan, (int)options->threads, shapes + count);
    }
    const cpu_executable_options pieces = {.lanes = options->lanes, .compiles = options->compiles};
    return cpu_epilogue_make(&product->epilogue, description, &pieces, shapes, count);
}

hal_status cpu_product_create(const hal_gemm_description *description,
                              const cpu_product_options *options, cpu_product **product,
                              uint64_t *workspace_bytes)
{
    struct cpu_gemm_desc desc;
    *product = NULL;
    *workspace_bytes = 0;
    HAL_TRY(desc_of(description, options->isa, &desc));
    cpu_product *made = calloc(1, sizeof(*made));
    if (!made) {
        return cpu_fail(HAL_ERROR_OUT_OF_MEMORY, "gemm: no host memory for a kernel");
    }
    made->threads = options->threads;
    made->beta_is_zero = description->beta_is_zero;
    made->has_epilogue = description->epilogue != NULL;
    made->has_groups = description->type_offsets != HAL_TYPE_NONE;
    made->input_count = description->input_count;
    const hal_status status = product_plan(made, description, &desc, options);
    if (status != HAL_OK) {
        cpu_product_destroy(made);
        return status;
    }
    const int threads = (int)options->threads;
    const uint64_t bytes =
        (uint64_t)(made->has_groups ? cpu_gemm_groups_workspace_size(&made->groups, threads)
                                    : cpu_gemm_workspace_size(&made->groups.plan, threads));
    made->binds_no_workspace = bytes <= CPU_PRODUCT_WORKSPACE;
    *workspace_bytes = made->binds_no_workspace ? 0 : bytes;
    *product = made;
    return HAL_OK;
}

void cpu_product_destroy(cpu_product *product)
{
    if (product) {
        workers_free(atomic_load(&product->idle));
        cpu_epilogue_release(&product->epilogue);
        free(product);
    }
}

uint64_t cpu_product_work(const cpu_product *product)
{
    return (uint64_t)product->groups.plan.expected_ns;
}

bool cpu_product_is_alone(const cpu_product *product)
{
    return product->groups.plan.max_threads == 1;
}

hal_status cpu_product_run(cpu_product *product, const cpu_product_call *call)
{
    double scale[2];
    memcpy(scale, call->scalars, sizeof(scale));
    product_context here = {.product = product, .inputs = call->memory + NAMED_BINDINGS};
    struct cpu_gemm_args args = {.a = call->memory[0],
                                 .b = call->memory[1],
                                 .c = call->memory[2],
                                 .alpha = scale[0],
                                 .beta = product->beta_is_zero ? 0 : scale[1],
                                 .user = &here,
                                 .workspace = product->binds_no_workspace ? call->workspace
                                                                          : call->memory[3],
                                 .pool = call->pool,
                                 .threads = call->threads};
    if (product->has_epilogue) {
        here.set = workers_take(product, product->threads);
        if (!here.set) {
            return cpu_fail(HAL_ERROR_OUT_OF_MEMORY,
                            "gemm: no host memory for the epilogue's %u workers", product->threads);
        }
    }
    if (product->has_groups) {
        cpu_gemm_groups_run(&product->groups, &args,
                            call->memory[NAMED_BINDINGS + product->input_count]);
    } else {
        cpu_gemm_run(&product->groups.plan, &args);
    }
    if (product->has_epilogue) {
        workers_return(product, here.set);
    }
    return HAL_OK;
}
