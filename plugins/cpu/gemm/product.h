/* A native matrix product of the plugin's gemm entry: a plan and an epilogue. */
#ifndef PLUGINS_CPU_GEMM_PRODUCT_H
#define PLUGINS_CPU_GEMM_PRODUCT_H

#include "gemm/plan.h"
#include "gemm/types.h"
#include "lanes/steps.h"
#include "threads/pool.h"

#include <hal/plugin.h>

typedef struct cpu_product cpu_product;

/* Workspaces up to this size are the caller's: a buffer would take as long as a small product. */
enum { CPU_PRODUCT_WORKSPACE = CPU_GEMM_SINGLE_BYTES };

typedef struct cpu_product_options {
    const cpu_lanes *lanes; /* of the epilogue */
    enum cpu_gemm_isa isa;
    bool compiles;    /* the epilogue to machine code */
    uint32_t threads; /* of the device */
} cpu_product_options;

/* Plans a product. `workspace_bytes`: of the fourth binding of a run; 0: it needs none. Errors:
 * UNSUPPORTED, OUT_OF_MEMORY. */
hal_status cpu_product_create(const hal_gemm_description *description,
                              const cpu_product_options *options, cpu_product **product,
                              uint64_t *workspace_bytes);
void cpu_product_destroy(cpu_product *product);

/* Nanoseconds that one thread is expected to need; whether more threads cost more than they
 * gain. */
uint64_t cpu_product_work(const cpu_product *product);
bool cpu_product_is_alone(const cpu_product *product);

/* A run: the addresses of the bindings (null where the length is 0), and the pool with the number
 * of threads to use, null for the calling thread alone. */
typedef struct cpu_product_call {
    cpu_thread_pool *pool;
    uint32_t threads;
    void *const *memory;
    void *workspace; /* CPU_PRODUCT_WORKSPACE bytes, aligned to 64: of products that bind none */
    const uint8_t *scalars;
} cpu_product_call;

/* Threads: any; several runs of a product at a time. */
hal_status cpu_product_run(cpu_product *product, const cpu_product_call *call);

#endif
