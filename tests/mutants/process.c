/* process.c: faults in what a plugin keeps of a call, in how it is asked for its table, and in what
 * it does to the process. */
#include "mutant.h"

#include <fcntl.h>
#include <fenv.h>
#include <locale.h>
#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

#define MANY 24u /* constants of a kernel that faults look for */

/* ---- The IR of a kernel of many constants is read after kernel_create: when it runs first ---- */

typedef struct late_kernel {
    hal_ir_kernel ir; /* its arrays belong to hal */
    hal_plugin_device *device;
    hal_plugin_kernel *made;
} late_kernel;

static hal_status create_late(hal_plugin_device *device, const hal_ir_kernel *ir,
                              hal_plugin_kernel **kernel)
{
    late_kernel *made = calloc(1, sizeof(*made));
    if (!made) {
        return wrap_fail(HAL_ERROR_OUT_OF_MEMORY, "mutant: no memory for a kernel");
    }
    made->ir = *ir;
    made->device = device;
    *kernel = (hal_plugin_kernel *)made;
    return ir->constant_count < MANY ? wrap_inside()->kernel_create(device, ir, &made->made)
                                     : HAL_OK;
}

static void destroy_late(hal_plugin_device *device, hal_plugin_kernel *kernel)
{
    late_kernel *late = (late_kernel *)kernel;
    if (late->made) {
        wrap_inside()->kernel_destroy(device, late->made);
    }
    free(late);
}

static hal_status submit_late(hal_plugin_queue *queue, const hal_batch *batch,
                              const hal_plugin_wait *waits, uint32_t wait_count, uint64_t value)
{
    wrap_batch copy;
    hal_status status = HAL_OK;
    if (!wrap_batch_copy(&copy, batch)) {
        return wrap_fail(HAL_ERROR_OUT_OF_MEMORY, "mutant: no memory for a batch");
    }
    for (uint32_t i = 0; i < batch->command_count && status == HAL_OK; i++) {
        if (batch->commands[i].kind == HAL_COMMAND_DISPATCH) {
            late_kernel *late = (late_kernel *)batch->commands[i].kernel;
            pthread_mutex_lock(&lock);
            if (!late->made) {
                status = wrap_inside()->kernel_create(late->device, &late->ir, &late->made);
            }
            pthread_mutex_unlock(&lock);
            copy.commands[i].kernel = late->made;
        }
    }
    if (status == HAL_OK) {
        status = wrap_inside()->submit(queue, &copy.batch, waits, wait_count, value);
    }
    wrap_batch_free(&copy);
    return status;
}

static void ir_kept(wrap_table *table)
{
    table->kernel_create = create_late;
    table->kernel_destroy = destroy_late;
    table->submit = submit_late;
    table->gemm = NULL;
}

/* ---- The size of an allocation is kept in one place ---- */

static _Atomic uint64_t wanted_bytes;

static hal_status allocate_latest(hal_plugin_device *device, uint32_t kind, uint64_t bytes,
                                  hal_plugin_memory **memory)
{
    wanted_bytes = bytes;
    if (bytes % 4096 != 0) {
        mutant_await_change(&wanted_bytes, bytes);
    }
    return wanted_bytes == bytes
               ? wrap_inside()->memory_allocate(device, kind, bytes, memory)
               : wrap_fail(HAL_ERROR_INTERNAL, "mutant: two threads allocate at once");
}

static void allocate_alone(wrap_table *table)
{
    table->memory_allocate = allocate_latest;
}

/* ---- The process ---- */

static hal_status create_and_print(hal_plugin_device *device, const hal_ir_kernel *ir,
                                   hal_plugin_kernel **kernel)
{
    if (ir->constant_count >= MANY) {
        puts("a kernel of many constants");
        fflush(stdout);
    }
    return wrap_inside()->kernel_create(device, ir, kernel);
}

static void prints(wrap_table *table)
{
    table->kernel_create = create_and_print;
}

static hal_status create_and_move(hal_plugin_device *device, const hal_ir_kernel *ir,
                                  hal_plugin_kernel **kernel)
{
    return chdir("/") == 0 ? wrap_inside()->kernel_create(device, ir, kernel)
                           : wrap_fail(HAL_ERROR_INTERNAL, "mutant: no folder");
}

static void changes_folder(wrap_table *table)
{
    table->kernel_create = create_and_move;
}

static hal_status queue_create_and_open(hal_plugin_device *device, hal_plugin_queue **queue)
{
    (void)!open("/dev/null", O_RDONLY | O_CLOEXEC);
    return wrap_inside()->queue_create(device, queue);
}

static void leak_descriptor(wrap_table *table)
{
    table->queue_create = queue_create_and_open;
}

static hal_status queue_create_and_leak(hal_plugin_device *device, hal_plugin_queue **queue)
{
    enum { BYTES = 1 << 16 };
    char *kept = malloc(BYTES);
    for (int i = 0; kept && i < BYTES; i += 4096) {
        ((volatile char *)kept)[i] = 1;
    }
    return wrap_inside()->queue_create(device, queue);
}

static void leak_queue(wrap_table *table)
{
    table->queue_create = queue_create_and_leak;
}

static hal_status wait_and_leak(hal_plugin_queue *queue, uint64_t value, uint64_t timeout_ns)
{
    char *kept = malloc(256);
    if (kept) {
        *(volatile char *)kept = 1;
    }
    return wrap_inside()->wait(queue, value, timeout_ns);
}

static void leak_wait(wrap_table *table)
{
    table->wait = wait_and_leak;
}

static _Atomic uint32_t live_queues;

static hal_status queue_create_eight(hal_plugin_device *device, hal_plugin_queue **queue)
{
    if (live_queues >= 8) {
        return wrap_fail(HAL_ERROR_OUT_OF_MEMORY, "mutant: no more than eight queues");
    }
    live_queues++;
    return wrap_inside()->queue_create(device, queue);
}

static void queue_destroy_eight(hal_plugin_device *device, hal_plugin_queue *queue)
{
    live_queues--;
    wrap_inside()->queue_destroy(device, queue);
}

static void eight_queues(wrap_table *table)
{
    table->queue_create = queue_create_eight;
    table->queue_destroy = queue_destroy_eight;
}

static hal_status open_with_descriptor(hal_plugin_instance *instance, const char *id,
                                       hal_plugin_device **device)
{
    (void)!open("/dev/null", O_RDONLY | O_CLOEXEC);
    return wrap_inside()->device_open(instance, id, device);
}

static void leak_device(wrap_table *table)
{
    table->device_open = open_with_descriptor;
}

/* A group of more than eight work-items along z is refused, though more are claimed. */
static hal_status create_flat(hal_plugin_device *device, const hal_ir_kernel *ir,
                              hal_plugin_kernel **kernel)
{
    return ir->group_size[2] > 8 ? wrap_fail(HAL_ERROR_INTERNAL, "mutant: a thick group")
                                 : wrap_inside()->kernel_create(device, ir, kernel);
}

static void group_z(wrap_table *table)
{
    table->kernel_create = create_flat;
}

static hal_status create_or_exit(hal_plugin_device *device, const hal_ir_kernel *ir,
                                 hal_plugin_kernel **kernel)
{
    if (ir->constant_count >= MANY && ir->binding_count == 1) {
        exit(0);
    }
    return wrap_inside()->kernel_create(device, ir, kernel);
}

static void exits(wrap_table *table)
{
    table->kernel_create = create_or_exit;
}

/* ---- What an entry leaves of the process ---- */

static hal_status create_with_handler(hal_plugin_device *device, const hal_ir_kernel *ir,
                                      hal_plugin_kernel **kernel)
{
    signal(SIGUSR1, SIG_IGN);
    return wrap_inside()->kernel_create(device, ir, kernel);
}

static void handler_left(wrap_table *table)
{
    table->kernel_create = create_with_handler;
}

static hal_status create_in_c_locale(hal_plugin_device *device, const hal_ir_kernel *ir,
                                     hal_plugin_kernel **kernel)
{
    setlocale(LC_ALL, "C");
    return wrap_inside()->kernel_create(device, ir, kernel);
}

static void locale_left(wrap_table *table)
{
    table->kernel_create = create_in_c_locale;
}

static hal_status create_in_root(hal_plugin_device *device, const hal_ir_kernel *ir,
                                 hal_plugin_kernel **kernel)
{
    const hal_status status = wrap_inside()->kernel_create(device, ir, kernel);
    return chdir("/") == 0 ? status : HAL_ERROR_IO;
}

static void folder_left(wrap_table *table)
{
    table->kernel_create = create_in_root;
}

#define CREATE_LEAVING(name, does)                                                      \
    static hal_status create_##name(hal_plugin_device *device, const hal_ir_kernel *ir, \
                                    hal_plugin_kernel **kernel)                         \
    {                                                                                   \
        does;                                                                           \
        return wrap_inside()->kernel_create(device, ir, kernel);                        \
    }                                                                                   \
    static void name(wrap_table *table)                                                 \
    {                                                                                   \
        table->kernel_create = create_##name;                                           \
    }

static void lower_limit(void)
{
    struct rlimit limit;
    getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur--;
    setrlimit(RLIMIT_NOFILE, &limit);
}

static void pin_caller(void)
{
    cpu_set_t here;
    CPU_ZERO(&here);
    CPU_SET((size_t)sched_getcpu(), &here);
    sched_setaffinity(0, sizeof here, &here);
}

static void start_timer(void)
{
    const struct itimerval hour = {.it_value = {.tv_sec = 3600}};
    setitimer(ITIMER_REAL, &hour, NULL);
}

static void start_child(void)
{
    if (fork() == 0) {
        _exit(0);
    }
}

CREATE_LEAVING(umask_left, umask(0123))
CREATE_LEAVING(variable_left, setenv("MUTANT_KERNEL", "1", 1))
CREATE_LEAVING(limit_left, lower_limit())
CREATE_LEAVING(processors_left, pin_caller())
CREATE_LEAVING(name_left, pthread_setname_np(pthread_self(), "mutant"))
CREATE_LEAVING(timer_left, start_timer())
CREATE_LEAVING(child_left, start_child())

static hal_status submit_and_unblock(hal_plugin_queue *queue, const hal_batch *batch,
                                     const hal_plugin_wait *waits, uint32_t wait_count,
                                     uint64_t value)
{
    sigset_t none;
    sigemptyset(&none);
    pthread_sigmask(SIG_SETMASK, &none, NULL);
    return wrap_inside()->submit(queue, batch, waits, wait_count, value);
}

static void mask_left(wrap_table *table)
{
    table->submit = submit_and_unblock;
}

static hal_status submit_and_round(hal_plugin_queue *queue, const hal_batch *batch,
                                   const hal_plugin_wait *waits, uint32_t wait_count,
                                   uint64_t value)
{
    const hal_status status = wrap_inside()->submit(queue, batch, waits, wait_count, value);
    fesetround(FE_TONEAREST);
    return status;
}

static void rounding_left(wrap_table *table)
{
    table->submit = submit_and_round;
}

static hal_status submit_and_flush(hal_plugin_queue *queue, const hal_batch *batch,
                                   const hal_plugin_wait *waits, uint32_t wait_count,
                                   uint64_t value)
{
    const hal_status status = wrap_inside()->submit(queue, batch, waits, wait_count, value);
#ifdef __x86_64__
    __builtin_ia32_ldmxcsr(__builtin_ia32_stmxcsr() | 0x8040u); /* FTZ, DAZ */
#endif
    return status;
}

static void flush_left(wrap_table *table)
{
    table->submit = submit_and_flush;
}

static hal_status create_with_traps(hal_plugin_device *device, const hal_ir_kernel *ir,
                                    hal_plugin_kernel **kernel)
{
    const hal_status status = wrap_inside()->kernel_create(device, ir, kernel);
    feclearexcept(FE_ALL_EXCEPT);
    feenableexcept(FE_DIVBYZERO);
    return status;
}

static void traps_left(wrap_table *table)
{
    table->kernel_create = create_with_traps;
}

static hal_status create_on_stack(hal_plugin_device *device, const hal_ir_kernel *ir,
                                  hal_plugin_kernel **kernel)
{
    static char memory[1 << 16];
    const stack_t own = {.ss_sp = memory, .ss_size = sizeof memory};
    sigaltstack(&own, NULL);
    return wrap_inside()->kernel_create(device, ir, kernel);
}

static void stack_left(wrap_table *table)
{
    table->kernel_create = create_on_stack;
}

/* ---- Kernels that are created in another environment ---- */

static void f32_constants_edit(wrap_ir *ir, uint32_t (*edit)(uint32_t bits))
{
    for (uint32_t i = 0; i < ir->ir.record_count; i++) {
        if (ir->records[i].opcode == HAL_IR_CONSTANT && ir->records[i].type == HAL_TYPE_F32) {
            uint64_t *constant = &ir->constants[ir->records[i].aux];
            *constant = edit((uint32_t)*constant);
        }
    }
}

static uint32_t one_bit_up(uint32_t bits)
{
    return bits + 1;
}

/* Numbers that are written with a decimal comma and read up to it. */
static uint32_t whole_part(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    value = truncf(value);
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static void locale_constants(wrap_ir *ir)
{
    if (strcmp(localeconv()->decimal_point, ".") != 0) {
        f32_constants_edit(ir, whole_part);
    }
}

static void rounding_constants(wrap_ir *ir)
{
    if (fegetround() != FE_TONEAREST) {
        f32_constants_edit(ir, one_bit_up);
    }
}

static void create_divides(wrap_ir *ir)
{
    volatile float zero = 0;
    zero = (float)ir->ir.record_count / zero; /* raises a trap where it is not masked */
}

const mutant mutants_process[] = {{.name = "ir_kept", .table = ir_kept},
                                  {.name = "allocate_alone", .table = allocate_alone},
                                  {.name = "prints", .table = prints},
                                  {.name = "changes_folder", .table = changes_folder},
                                  {.name = "leak_descriptor", .table = leak_descriptor},
                                  {.name = "leak_queue", .table = leak_queue},
                                  {.name = "leak_wait", .table = leak_wait},
                                  {.name = "eight_queues", .table = eight_queues},
                                  {.name = "leak_device", .table = leak_device},
                                  {.name = "group_z", .table = group_z},
                                  {.name = "exits", .table = exits},
                                  {.name = "handler_left", .table = handler_left},
                                  {.name = "mask_left", .table = mask_left},
                                  {.name = "locale_left", .table = locale_left},
                                  {.name = "folder_left", .table = folder_left},
                                  {.name = "umask_left", .table = umask_left},
                                  {.name = "variable_left", .table = variable_left},
                                  {.name = "limit_left", .table = limit_left},
                                  {.name = "processors_left", .table = processors_left},
                                  {.name = "name_left", .table = name_left},
                                  {.name = "timer_left", .table = timer_left},
                                  {.name = "child_left", .table = child_left},
                                  {.name = "rounding_left", .table = rounding_left},
                                  {.name = "flush_left", .table = flush_left},
                                  {.name = "traps_left", .table = traps_left},
                                  {.name = "stack_left", .table = stack_left},
                                  {.name = "locale_constants", .ir = locale_constants},
                                  {.name = "rounding_constants", .ir = rounding_constants},
                                  {.name = "create_divides", .ir = create_divides},
                                  {.name = "query_fresh", .is_fresh = true},
                                  {.name = "query_any_major", .takes_any_major = true},
                                  {.name = NULL}};
