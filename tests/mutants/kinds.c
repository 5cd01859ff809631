/* kinds.c: faults that show only at a limit, after many calls, in another process, or with two
 * kernels that differ in one thing. */
#include "mutant.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* ---- Widths ---- */

static hal_binding *bindings_of(wrap_batch *batch, uint32_t command)
{
    return &batch->bindings[batch->commands[command].binding_first];
}

/* The offset of a kernel's binding, and of a copy, is kept in 26 bits. */
static void offset_26_bits(wrap_batch *batch)
{
    for (uint32_t i = 0; i < batch->batch.command_count; i++) {
        for (uint32_t k = 0; k < batch->commands[i].binding_count; k++) {
            bindings_of(batch, i)[k].offset &= 0x3ffffff;
        }
    }
}

/* Kernels reach the first 64 MiB of a binding: what is beyond has no effect. */
static void binding_64_mib(wrap_batch *batch)
{
    for (uint32_t i = 0; i < batch->batch.command_count; i++) {
        hal_command *command = &batch->commands[i];
        if (command->kind == HAL_COMMAND_DISPATCH && command->scalar_bytes == 8 &&
            command->binding_count == 1) {
            uint32_t *base = (uint32_t *)(void *)(batch->scalars + command->scalar_first);
            *base &= (64u << 20) / 4 - 1;
        }
    }
}

/* The length of a fill is kept in 26 bits. */
static void fill_26_bits(wrap_batch *batch)
{
    for (uint32_t i = 0; i < batch->batch.command_count; i++) {
        if (batch->commands[i].kind == HAL_COMMAND_FILL) {
            bindings_of(batch, i)->length &= 0x3ffffff;
        }
    }
}

/* The lengths of commands of one kind are kept in 32 bits. */
static void lengths_cut(wrap_batch *batch, uint16_t kind)
{
    for (uint32_t i = 0; i < batch->batch.command_count; i++) {
        hal_binding *binding = bindings_of(batch, i);
        const uint16_t count = batch->commands[i].binding_count;
        for (uint16_t k = 0; k < count && batch->commands[i].kind == kind; k++) {
            binding[k].length &= UINT32_MAX;
        }
    }
}

static void fill_32_bits(wrap_batch *batch)
{
    lengths_cut(batch, HAL_COMMAND_FILL);
}

static void copy_32_bits(wrap_batch *batch)
{
    lengths_cut(batch, HAL_COMMAND_COPY);
}

/* A fill with a longer pattern than a word repeats its first word. */
static void fill_words(wrap_batch *batch)
{
    for (uint32_t i = 0; i < batch->batch.command_count; i++) {
        const hal_command *command = &batch->commands[i];
        uint8_t *pattern = batch->scalars + command->scalar_first;
        for (uint32_t k = 4; command->kind == HAL_COMMAND_FILL && k < command->scalar_bytes; k++) {
            pattern[k] = pattern[k - 4];
        }
    }
}

/* A fill with bytes or halves writes whole words only. */
static void fill_whole_words(wrap_batch *batch)
{
    for (uint32_t i = 0; i < batch->batch.command_count; i++) {
        if (batch->commands[i].kind == HAL_COMMAND_FILL && batch->commands[i].scalar_bytes < 4) {
            hal_binding *binding = bindings_of(batch, i);
            binding->length -= binding->length % 4;
        }
    }
}

/* The length of a copy is kept in 26 bits. */
static void copy_26_bits(wrap_batch *batch)
{
    for (uint32_t i = 0; i < batch->batch.command_count; i++) {
        if (batch->commands[i].kind == HAL_COMMAND_COPY) {
            bindings_of(batch, i)[0].length &= 0x3ffffff;
            bindings_of(batch, i)[1].length &= 0x3ffffff;
        }
    }
}

/* The place of a command's scalars is kept in 16 bits. */
static void scalars_16_bits(wrap_batch *batch)
{
    for (uint32_t i = 0; i < batch->batch.command_count; i++) {
        batch->commands[i].scalar_first &= 0xffff;
    }
}

/* The place of a command's bindings is kept in 14 bits. */
static void bindings_14_bits(wrap_batch *batch)
{
    for (uint32_t i = 0; i < batch->batch.command_count; i++) {
        batch->commands[i].binding_first &= 0x3fff;
    }
}

/* The groups of grids of three dimensions are counted in 16 bits: the last ones are lost. */
static void grid_product(wrap_batch *batch)
{
    for (uint32_t i = 0; i < batch->batch.command_count; i++) {
        uint32_t *grid = batch->commands[i].grid;
        const uint64_t groups = (uint64_t)grid[0] * grid[1] * grid[2];
        if (groups > 0xffff && grid[2] > 1) {
            grid[2]--;
        }
    }
}

static hal_status allocate_to_256_mib(hal_plugin_device *device, uint32_t kind, uint64_t bytes,
                                      hal_plugin_memory **memory)
{
    return bytes > UINT64_C(256) << 20
               ? wrap_fail(HAL_ERROR_OUT_OF_MEMORY, "mutant: more than 256 MiB")
               : wrap_inside()->memory_allocate(device, kind, bytes, memory);
}

static void allocation_256_mib(wrap_table *table)
{
    table->memory_allocate = allocate_to_256_mib;
}

static hal_status create_short(hal_plugin_device *device, const hal_ir_kernel *ir,
                               hal_plugin_kernel **kernel)
{
    return ir->record_count > 0xffff ? wrap_fail(HAL_ERROR_UNSUPPORTED, "mutant: too many records")
                                     : wrap_inside()->kernel_create(device, ir, kernel);
}

static void records_16_bits(wrap_table *table)
{
    table->kernel_create = create_short;
}

static hal_status create_18_bits(hal_plugin_device *device, const hal_ir_kernel *ir,
                                 hal_plugin_kernel **kernel)
{
    return ir->record_count >> 18 ? wrap_fail(HAL_ERROR_UNSUPPORTED, "mutant: too many records")
                                  : wrap_inside()->kernel_create(device, ir, kernel);
}

static void records_18_bits(wrap_table *table)
{
    table->kernel_create = create_18_bits;
}

/* ---- What is claimed fails at the end, or as the 257th at once ---- */

static hal_status allocate_a_part(hal_plugin_device *device, uint32_t kind, uint64_t bytes,
                                  hal_plugin_memory **memory)
{
    uint64_t free_bytes = 0, total = 0;
    wrap_inside()->memory_info(device, &free_bytes, &total);
    return bytes / 2 > free_bytes / 3
               ? wrap_fail(HAL_ERROR_OUT_OF_MEMORY, "mutant: more than two thirds of what is free")
               : wrap_inside()->memory_allocate(device, kind, bytes, memory);
}

static void allocation_part(wrap_table *table)
{
    table->memory_allocate = allocate_a_part;
}

enum { MOST_OBJECTS = 256 };

static _Atomic int live_memories, live_kernels, most_kernels;

static hal_status allocate_few(hal_plugin_device *device, uint32_t kind, uint64_t bytes,
                               hal_plugin_memory **memory)
{
    if (live_memories >= MOST_OBJECTS) {
        return wrap_fail(HAL_ERROR_OUT_OF_MEMORY, "mutant: the table of memories is full");
    }
    const hal_status status = wrap_inside()->memory_allocate(device, kind, bytes, memory);
    live_memories += status == HAL_OK;
    return status;
}

static void free_one(hal_plugin_device *device, hal_plugin_memory *memory)
{
    live_memories -= memory != NULL;
    wrap_inside()->memory_free(device, memory);
}

static void memories_256(wrap_table *table)
{
    table->memory_allocate = allocate_few;
    table->memory_free = free_one;
}

static hal_status create_few(hal_plugin_device *device, const hal_ir_kernel *ir,
                             hal_plugin_kernel **kernel)
{
    if (live_kernels >= most_kernels) {
        return wrap_fail(HAL_ERROR_OUT_OF_MEMORY, "mutant: the table of kernels is full");
    }
    const hal_status status = wrap_inside()->kernel_create(device, ir, kernel);
    live_kernels += status == HAL_OK;
    return status;
}

static void destroy_one(hal_plugin_device *device, hal_plugin_kernel *kernel)
{
    live_kernels -= kernel != NULL;
    wrap_inside()->kernel_destroy(device, kernel);
}

static void kernels_limit(wrap_table *table, int most)
{
    most_kernels = most;
    table->kernel_create = create_few;
    table->kernel_destroy = destroy_one;
}

static void kernels_256(wrap_table *table)
{
    kernels_limit(table, MOST_OBJECTS);
}

static void kernels_600(wrap_table *table)
{
    kernels_limit(table, 600);
}

static void constants_12_bits(wrap_ir *ir)
{
    for (uint32_t i = 0; i < ir->ir.record_count; i++) {
        if (ir->records[i].opcode == HAL_IR_CONSTANT) {
            ir->records[i].aux &= 0xfff;
        }
    }
}

/* The kernel is created on a thread with a small stack, in a call for each operation of a chain. */
typedef struct creation {
    hal_plugin_device *device;
    const hal_ir_kernel *ir;
    hal_plugin_kernel *kernel;
    hal_status status;
} creation;

static uint32_t chain_length(const hal_ir_kernel *ir, uint32_t record)
{
    volatile char frame[256] = {0};
    const hal_ir_record *one = &ir->records[record];
    const bool is_chain = one->opcode == HAL_IR_XOR || one->opcode == HAL_IR_MUL;
    return is_chain && one->a < record ? 1 + chain_length(ir, one->a) + (uint32_t)frame[3] : 0;
}

static void *create_in_thread(void *argument)
{
    creation *made = argument;
    uint32_t longest = 0;
    for (uint32_t i = made->ir->record_count; i-- > 0 && made->ir->record_count > 2000;) {
        if (made->ir->records[i].opcode == HAL_IR_STORE) {
            const uint32_t length = chain_length(made->ir, made->ir->records[i].b);
            longest = length > longest ? length : longest;
        }
    }
    made->status = longest == UINT32_MAX
                       ? HAL_ERROR_INTERNAL
                       : wrap_inside()->kernel_create(made->device, made->ir, &made->kernel);
    return NULL;
}

static hal_status create_on_small_stack(hal_plugin_device *device, const hal_ir_kernel *ir,
                                        hal_plugin_kernel **kernel)
{
    enum { STACK = 256 * 1024 };
    creation made = {.device = device, .ir = ir};
    pthread_attr_t attributes;
    pthread_t thread;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, STACK);
    const bool started = pthread_create(&thread, &attributes, create_in_thread, &made) == 0;
    pthread_attr_destroy(&attributes);
    if (!started) {
        return wrap_fail(HAL_ERROR_INTERNAL, "mutant: no thread");
    }
    pthread_join(thread, NULL);
    *kernel = made.kernel;
    return made.status;
}

static void small_stack(wrap_table *table)
{
    table->kernel_create = create_on_small_stack;
}

/* ---- Mapped memory ---- */

static hal_status allocate_with_kind(hal_plugin_device *device, uint32_t kind, uint64_t bytes,
                                     hal_plugin_memory **memory)
{
    const hal_status status = wrap_inside()->memory_allocate(device, kind, bytes, memory);
    uint32_t *known = status == HAL_OK ? wrap_keep(*memory, sizeof(*known)) : NULL;
    if (known) {
        *known = kind;
    }
    return status;
}

static void free_with_kind(hal_plugin_device *device, hal_plugin_memory *memory)
{
    wrap_drop(memory);
    wrap_inside()->memory_free(device, memory);
}

static bool is_mapped(const hal_binding *binding)
{
    const uint32_t *kind = binding->memory ? wrap_find(binding->memory) : NULL;
    return kind && *kind != HAL_MEMORY_DEVICE;
}

/* Kernels write to mapped memory at an offset 4 bytes later. */
static void offset_of_mapped(wrap_batch *batch)
{
    for (uint32_t i = 0; i < batch->batch.command_count; i++) {
        for (uint32_t k = 0; k < batch->commands[i].binding_count; k++) {
            hal_binding *binding = &bindings_of(batch, i)[k];
            if (batch->commands[i].kind == HAL_COMMAND_DISPATCH && is_mapped(binding) &&
                binding->access == HAL_ACCESS_WRITE && binding->offset > 0 && binding->length > 4) {
                binding->offset += 4;
                binding->length -= 4;
            }
        }
    }
}

static hal_status submit_mapped(hal_plugin_queue *queue, const hal_batch *batch,
                                const hal_plugin_wait *waits, uint32_t wait_count, uint64_t value)
{
    wrap_batch copy;
    if (!wrap_batch_copy(&copy, batch)) {
        return wrap_fail(HAL_ERROR_OUT_OF_MEMORY, "mutant: no memory for a batch");
    }
    offset_of_mapped(&copy);
    const hal_status status = wrap_inside()->submit(queue, &copy.batch, waits, wait_count, value);
    wrap_batch_free(&copy);
    return status;
}

static void mapped_offset(wrap_table *table)
{
    table->memory_allocate = allocate_with_kind;
    table->memory_free = free_with_kind;
    table->submit = submit_mapped;
}

/* Mapped memory that a kernel only writes loses what the kernel does not write. */
static hal_status submit_discarding(hal_plugin_queue *queue, const hal_batch *batch,
                                    const hal_plugin_wait *waits, uint32_t wait_count,
                                    uint64_t value)
{
    for (uint32_t i = 0; i < batch->command_count; i++) {
        const hal_command *command = &batch->commands[i];
        for (uint32_t k = 0; k < command->binding_count; k++) {
            const hal_binding *binding = &batch->bindings[command->binding_first + k];
            hal_plugin_device *const *device = binding->memory ? wrap_find(binding->memory) : NULL;
            void *pointer = NULL;
            if (command->kind == HAL_COMMAND_DISPATCH && device && binding->length > 4096 &&
                binding->access == HAL_ACCESS_WRITE &&
                wrap_inside()->memory_map(*device, binding->memory, &pointer) == HAL_OK) {
                memset((char *)pointer + binding->offset, 0, binding->length);
            }
        }
    }
    return wrap_inside()->submit(queue, batch, waits, wait_count, value);
}

static hal_status allocate_noting_mapped(hal_plugin_device *device, uint32_t kind, uint64_t bytes,
                                         hal_plugin_memory **memory)
{
    const hal_status status = wrap_inside()->memory_allocate(device, kind, bytes, memory);
    hal_plugin_device **owner =
        status == HAL_OK && kind != HAL_MEMORY_DEVICE ? wrap_keep(*memory, sizeof(*owner)) : NULL;
    if (owner) {
        *owner = device;
    }
    return status;
}

static void mapped_discards(wrap_table *table)
{
    table->memory_allocate = allocate_noting_mapped;
    table->memory_free = free_with_kind;
    table->submit = submit_discarding;
}

/* ---- Leaks ---- */

static hal_status submit_and_open(hal_plugin_queue *queue, const hal_batch *batch,
                                  const hal_plugin_wait *waits, uint32_t wait_count, uint64_t value)
{
    (void)!open("/dev/null", O_RDONLY | O_CLOEXEC); /* fails when there are no more */
    return wrap_inside()->submit(queue, batch, waits, wait_count, value);
}

static void leak_batch_descriptor(wrap_table *table)
{
    table->submit = submit_and_open;
}

static void *sleep_for_ever(void *argument)
{
    for (;;) {
        pause();
    }
    return argument;
}

static hal_status queue_create_with_thread(hal_plugin_device *device, hal_plugin_queue **queue)
{
    enum { STACK = 64 * 1024 };
    pthread_attr_t attributes;
    pthread_t thread;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, STACK);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    pthread_create(&thread, &attributes, sleep_for_ever, NULL);
    pthread_attr_destroy(&attributes);
    return wrap_inside()->queue_create(device, queue);
}

static void leak_thread(wrap_table *table)
{
    table->queue_create = queue_create_with_thread;
}

/* Each kernel leaves a page of code; neighbours differ, so that the system cannot join them. */
static hal_status create_and_map(hal_plugin_device *device, const hal_ir_kernel *ir,
                                 hal_plugin_kernel **kernel)
{
    static _Atomic uint32_t turn;
    const int protection = turn++ % 2 == 0 ? PROT_READ : PROT_READ | PROT_EXEC;
    (void)!mmap(NULL, 4096, protection, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return wrap_inside()->kernel_create(device, ir, kernel);
}

static void leak_mapping(wrap_table *table)
{
    table->kernel_create = create_and_map;
}

static hal_status submit_and_leak_waits(hal_plugin_queue *queue, const hal_batch *batch,
                                        const hal_plugin_wait *waits, uint32_t wait_count,
                                        uint64_t value)
{
    for (uint32_t i = 0; i < wait_count; i++) {
        char *kept = malloc(256);
        if (kept) {
            *(volatile char *)kept = 1;
        }
    }
    return wrap_inside()->submit(queue, batch, waits, wait_count, value);
}

static void leak_cross_wait(wrap_table *table)
{
    table->submit = submit_and_leak_waits;
}

/* ---- Words, and the process ---- */

static hal_status allocate_silently(hal_plugin_device *device, uint32_t kind, uint64_t bytes,
                                    hal_plugin_memory **memory)
{
    return bytes > UINT64_C(256) << 20
               ? HAL_ERROR_OUT_OF_MEMORY
               : wrap_inside()->memory_allocate(device, kind, bytes, memory);
}

static void no_words(wrap_table *table)
{
    table->memory_allocate = allocate_silently;
}

static hal_status open_and_warn(hal_plugin_instance *instance, const char *id,
                                hal_plugin_device **device)
{
    fputs("mutant: opening a device\n", stderr);
    return wrap_inside()->device_open(instance, id, device);
}

static void warns(wrap_table *table)
{
    table->device_open = open_and_warn;
}

static hal_status create_and_warn(hal_plugin_device *device, const hal_ir_kernel *ir,
                                  hal_plugin_kernel **kernel)
{
    fputs("mutant: creating a kernel\n", stderr);
    return wrap_inside()->kernel_create(device, ir, kernel);
}

static void kernel_warns(wrap_table *table)
{
    table->kernel_create = create_and_warn;
}

/* One of 720 orders: two of them would often be the same in all of a few processes. */
static hal_status enumerate_by_process(hal_plugin_instance *instance, hal_device_info *infos,
                                       uint32_t capacity, uint32_t *count)
{
    enum { DEVICES = 6, ORDERS = 720 };
    const hal_status status = wrap_inside()->enumerate(instance, infos, capacity, count);
    if (status == HAL_OK && capacity >= DEVICES) {
        static atomic_int of_process;
        struct timespec now;
        int first = 0, order = 0;
        clock_gettime(CLOCK_MONOTONIC, &now);
        atomic_compare_exchange_strong(&of_process, &first, 1 + (int)(now.tv_nsec / 100 % ORDERS));
        order = of_process - 1;
        char names[DEVICES] = "abcdef";
        for (int i = 0; i < DEVICES; i++) {
            const int left = DEVICES - i, taken = i + order % left;
            const char name = names[taken];
            names[taken] = names[i];
            names[i] = name;
            order /= left;
            infos[i] = infos[0];
            snprintf(infos[i].id, sizeof infos[i].id, "%c of six", name);
        }
    }
    *count = DEVICES;
    return status;
}

static hal_status open_any(hal_plugin_instance *instance, const char *id,
                           hal_plugin_device **device)
{
    (void)id;
    return wrap_inside()->device_open(instance, wrap_first_id(), device);
}

static void order_of_process(wrap_table *table)
{
    table->enumerate = enumerate_by_process;
    table->device_open = open_any;
}

static hal_status info_all_free(hal_plugin_device *device, uint64_t *free_bytes,
                                uint64_t *total_bytes)
{
    const hal_status status = wrap_inside()->memory_info(device, free_bytes, total_bytes);
    *free_bytes = *total_bytes;
    return status;
}

static void memory_all_free(wrap_table *table)
{
    table->memory_info = info_all_free;
}

static hal_status elapsed_in_steps(hal_plugin_queue *queue, uint64_t first, uint64_t second,
                                   uint64_t *nanoseconds)
{
    const hal_status status = wrap_inside()->queue_elapsed(queue, first, second, nanoseconds);
    *nanoseconds -= *nanoseconds % 1000000;
    return status;
}

static void elapsed_coarse(wrap_table *table)
{
    table->queue_elapsed = elapsed_in_steps;
}

/* ---- Caches whose key lacks something ---- */

enum { LACKS_TYPE = 1, LACKS_IMMEDIATE = 2, LACKS_FLAGS = 4, LACKS_PLACE = 8, LACKS_OPCODE = 16 };

typedef struct known_kernel {
    struct known_kernel *next;
    uint32_t record_count, constant_count, memory_count, lacking;
    const uint64_t *constants;
    hal_ir_record records[];
} known_kernel;

static known_kernel *known_kernels;

/* The record as the cache compares it. */
static hal_ir_record record_key(hal_ir_record record, uint32_t lacking)
{
    record.type = (lacking & LACKS_TYPE) != 0 ? 0 : record.type;
    record.imm = (lacking & LACKS_IMMEDIATE) != 0 ? 0 : record.imm;
    record.flags = (lacking & LACKS_FLAGS) != 0 ? 0 : record.flags;
    record.aux = (lacking & LACKS_PLACE) != 0 && record.opcode != HAL_IR_CONSTANT ? 0 : record.aux;
    record.opcode = (lacking & LACKS_OPCODE) != 0 ? 0 : record.opcode;
    return record;
}

static bool keys_are_equal(const known_kernel *known, const wrap_ir *ir, uint32_t lacking)
{
    if (known->record_count != ir->ir.record_count || known->lacking != lacking ||
        known->constant_count != ir->ir.constant_count ||
        known->memory_count != ir->ir.memory_count ||
        memcmp(known->constants, ir->constants, known->constant_count * sizeof(uint64_t)) != 0) {
        return false;
    }
    for (uint32_t i = 0; i < known->record_count; i++) {
        const hal_ir_record a = record_key(known->records[i], lacking);
        const hal_ir_record b = record_key(ir->records[i], lacking);
        if (memcmp(&a, &b, sizeof a) != 0) {
            return false;
        }
    }
    return true;
}

/* Takes the records of the first kernel with the same key; only of kernels of a pair. */
static void cache_take(wrap_ir *ir, uint32_t lacking)
{
    if (strcmp(ir->ir.names + ir->ir.name, "pair") != 0) {
        return;
    }
    pthread_mutex_lock(&lock);
    known_kernel *known = known_kernels;
    while (known && !keys_are_equal(known, ir, lacking)) {
        known = known->next;
    }
    const size_t bytes = ir->ir.record_count * sizeof(hal_ir_record);
    const size_t constant_bytes = ir->ir.constant_count * sizeof(uint64_t);
    uint64_t *constants = known ? NULL : malloc(constant_bytes + 1);
    if (known) {
        memcpy(ir->records, known->records, bytes);
    } else if (constants && (known = malloc(sizeof(*known) + bytes)) != NULL) {
        *known = (known_kernel){.next = known_kernels,
                                .record_count = ir->ir.record_count,
                                .constant_count = ir->ir.constant_count,
                                .memory_count = ir->ir.memory_count,
                                .lacking = lacking,
                                .constants = constants};
        memcpy(known->records, ir->records, bytes);
        memcpy(constants, ir->constants, constant_bytes);
        known_kernels = known;
    }
    pthread_mutex_unlock(&lock);
}

static void cache_type(wrap_ir *ir)
{
    cache_take(ir, LACKS_TYPE);
}

static void cache_immediate(wrap_ir *ir)
{
    cache_take(ir, LACKS_IMMEDIATE);
}

static void cache_flags(wrap_ir *ir)
{
    cache_take(ir, LACKS_FLAGS);
}

static void cache_place(wrap_ir *ir)
{
    cache_take(ir, LACKS_PLACE);
}

static void cache_opcode(wrap_ir *ir)
{
    cache_take(ir, LACKS_OPCODE);
}

/* A kernel of another process in the cache on disk is wrong: its first constant is one more. */
static hal_status create_from_disk(hal_plugin_device *device, const hal_ir_kernel *ir,
                                   hal_plugin_kernel **kernel)
{
    hal_device_info info = {0};
    uint32_t count = 0;
    uint64_t key[2] = {UINT64_C(0xcbf29ce484222325), ir->record_count}, bytes = 0;
    void *data = NULL;
    wrap_ir copy;
    if (ir->constant_count == 0 ||
        wrap_inside()->enumerate(wrap_inside()->instance, &info, 1, &count) != HAL_OK ||
        !wrap_ir_copy(&copy, ir, 0)) {
        return wrap_inside()->kernel_create(device, ir, kernel);
    }
    for (uint32_t i = 0; i < ir->constant_count; i++) {
        key[0] = (key[0] ^ ir->constants[i]) * UINT64_C(0x100000001b3);
    }
    for (size_t i = 0; i < ir->record_count * sizeof(hal_ir_record); i++) {
        key[1] = (key[1] ^ ((const uint8_t *)ir->records)[i]) * UINT64_C(0x100000001b3);
    }
    const pid_t own = getpid();
    pid_t maker = own;
    if (wrap_host()->cache_load(wrap_host(), info.id, key, &data, &bytes) == HAL_OK) {
        memcpy(&maker, data, sizeof maker);
        wrap_host()->release(wrap_host(), data);
    } else {
        wrap_host()->cache_store(wrap_host(), info.id, key, &own, sizeof own);
    }
    copy.constants[0] += maker != own;
    const hal_status status = wrap_inside()->kernel_create(device, &copy.ir, kernel);
    wrap_ir_free(&copy);
    return status;
}

static void cache_warm(wrap_table *table)
{
    table->kernel_create = create_from_disk;
}

/* ---- Contraction where a product has more than one use ---- */

static void contract_shared(wrap_ir *ir)
{
    for (uint32_t i = 0; i < ir->ir.record_count; i++) {
        hal_ir_record *sum = &ir->records[i];
        if (sum->opcode != HAL_IR_ADD || sum->type != HAL_TYPE_F32) {
            continue;
        }
        const hal_ir_record product = ir->records[sum->a];
        uint32_t uses = 0;
        for (uint32_t k = 0; k < ir->ir.record_count; k++) {
            const hal_ir_record *one = &ir->records[k];
            uses += (one->a == sum->a) + (one->b == sum->a);
        }
        if (product.opcode == HAL_IR_MUL && uses > 1) {
            sum->opcode = HAL_IR_FMA;
            sum->c = sum->b;
            sum->a = product.a;
            sum->b = product.b;
        }
    }
}

const mutant mutants_kinds[] = {BATCH(offset_26_bits),
                                BATCH(binding_64_mib),
                                BATCH(fill_26_bits),
                                BATCH(fill_32_bits),
                                BATCH(copy_32_bits),
                                BATCH(fill_words),
                                BATCH(fill_whole_words),
                                BATCH(copy_26_bits),
                                BATCH(scalars_16_bits),
                                BATCH(bindings_14_bits),
                                BATCH(grid_product),
                                TABLE(allocation_256_mib),
                                TABLE(records_16_bits),
                                TABLE(records_18_bits),
                                TABLE(allocation_part),
                                TABLE(memories_256),
                                TABLE(kernels_256),
                                TABLE(kernels_600),
                                IR(constants_12_bits),
                                TABLE(small_stack),
                                TABLE(mapped_offset),
                                TABLE(mapped_discards),
                                TABLE(leak_batch_descriptor),
                                TABLE(leak_thread),
                                TABLE(leak_mapping),
                                TABLE(leak_cross_wait),
                                TABLE(no_words),
                                TABLE(warns),
                                TABLE(kernel_warns),
                                TABLE(order_of_process),
                                TABLE(memory_all_free),
                                TABLE(elapsed_coarse),
                                IR(cache_type),
                                IR(cache_immediate),
                                IR(cache_flags),
                                IR(cache_place),
                                IR(cache_opcode),
                                TABLE(cache_warm),
                                IR(contract_shared),
                                {.name = NULL}};
