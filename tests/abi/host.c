/* A host of minor 0: its hal_host ends before the fields of later minors, and a plugin of any minor
 * works with it.
 *
 *     abi_host_0 PLUGIN.so   each device of the plugin
 *
 * Everything that it passes ends at a page that cannot be read. Status 77: there is no device. */
#include "../plugins/open.h"

#include <hal/plugin.h>

#include <dlfcn.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define ITEMS 256u
#define GROUP 64u
#define BYTES (ITEMS * sizeof(int32_t))

static hal_plugin_entries entries;
static const hal_plugin_entries *plugin;
static char sentence[1024];

static void host_free(const hal_host *host, void *memory)
{
    (void)host;
    free(memory);
}

static void *allocate(const hal_host *host, uint64_t bytes, uint64_t alignment)
{
    (void)host;
    void *memory = NULL;
    const uint64_t least = alignment < sizeof(void *) ? sizeof(void *) : alignment;
    return posix_memalign(&memory, least, bytes ? bytes : 1) == 0 ? memory : NULL;
}

static void log_line(const hal_host *host, uint32_t level, const char *message)
{
    (void)host;
    (void)level;
    fprintf(stderr, "%s\n", message);
}

static hal_status fail(const hal_host *host, hal_status status, const char *message)
{
    (void)host;
    snprintf(sentence, sizeof sentence, "%s", message);
    return status;
}

static hal_status cache_load(const hal_host *host, const char *device_id, const uint64_t key[2],
                             void **data, uint64_t *bytes)
{
    (void)host;
    (void)device_id;
    (void)key;
    *data = NULL;
    *bytes = 0;
    return HAL_ERROR_NOT_FOUND;
}

static hal_status cache_store(const hal_host *host, const char *device_id, const uint64_t key[2],
                              const void *data, uint64_t bytes)
{
    (void)host;
    (void)device_id;
    (void)key;
    (void)data;
    (void)bytes;
    return HAL_OK;
}

static void report(const hal_host *host, const char *message)
{
    (void)host;
    fprintf(stderr, "%s\n", message);
}

static void queue_reached(const hal_host *host, hal_plugin_queue *queue, uint64_t value)
{
    (void)host;
    (void)queue;
    (void)value;
}

static void queue_failed(const hal_host *host, hal_plugin_queue *queue, const char *message)
{
    (void)host;
    (void)queue;
    snprintf(sentence, sizeof sentence, "%s", message);
}

static void expect(int right, const char *what)
{
    if (!right) {
        printf("%s: %s: %s\n", plugin ? plugin->name : "no table", what, sentence);
        exit(1);
    }
}

static void does(hal_status status, const char *what)
{
    expect(status == HAL_OK, what);
}

/* A copy that ends where a page begins that nobody may read. */
static void *at_the_edge(const void *data, size_t bytes)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    char *pages = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    expect(pages != MAP_FAILED && mprotect(pages + page, page, PROT_NONE) == 0, "two pages");
    return memcpy(pages + page - bytes, data, bytes);
}

#define VALUE(op, of, x, y, index)                                                      \
    {                                                                                   \
        .opcode = (op), .type = (of), .width = 1, .a = (x), .b = (y), .c = HAL_IR_NONE, \
        .d = HAL_IR_NONE, .aux = (index)                                                \
    }

/* out[i] = in[i] + addend, the scalar. */
static const hal_ir_kernel *add_kernel(void)
{
    static const hal_ir_record records[] = {
        VALUE(HAL_IR_GROUP_ID, HAL_TYPE_U32, HAL_IR_NONE, HAL_IR_NONE, 0),
        VALUE(HAL_IR_CONSTANT, HAL_TYPE_U32, HAL_IR_NONE, HAL_IR_NONE, 0),
        VALUE(HAL_IR_MUL, HAL_TYPE_U32, 0, 1, 0),
        VALUE(HAL_IR_LOCAL_ID, HAL_TYPE_U32, HAL_IR_NONE, HAL_IR_NONE, 0),
        VALUE(HAL_IR_ADD, HAL_TYPE_U32, 2, 3, 0),
        VALUE(HAL_IR_LOAD, HAL_TYPE_I32, 4, HAL_IR_NONE, 0),
        VALUE(HAL_IR_SCALAR, HAL_TYPE_I32, HAL_IR_NONE, HAL_IR_NONE, 0),
        VALUE(HAL_IR_ADD, HAL_TYPE_I32, 5, 6, 0),
        {.opcode = HAL_IR_STORE,
         .width = 1,
         .a = 4,
         .b = HAL_IR_NONE,
         .c = 7,
         .d = HAL_IR_NONE,
         .aux = 1},
    };
    static const char names[] = "add\0in\0out\0addend";
    static const hal_ir_memory memories[] = {
        {.name = 4, .type = HAL_TYPE_I32, .access = HAL_ACCESS_READ},
        {.name = 7, .type = HAL_TYPE_I32, .access = HAL_ACCESS_WRITE},
    };
    static const hal_ir_scalar scalars[] = {{.name = 11, .type = HAL_TYPE_I32}};
    static const uint64_t constants[] = {GROUP};
    const hal_ir_kernel kernel = {.size = sizeof kernel,
                                  .version = HAL_IR_VERSION,
                                  .group_size = {GROUP, 1, 1},
                                  .record_count = sizeof records / sizeof *records,
                                  .memory_count = 2,
                                  .binding_count = 2,
                                  .scalar_count = 1,
                                  .scalar_bytes = sizeof(int32_t),
                                  .constant_count = 1,
                                  .name_bytes = sizeof names,
                                  .records = records,
                                  .memories = memories,
                                  .scalars = scalars,
                                  .constants = constants,
                                  .names = names};
    return at_the_edge(&kernel, sizeof kernel);
}

/* Upload, kernel, fill, download, in two batches of which the second waits for the first. */
static void run(hal_plugin_device *device)
{
    hal_plugin_kernel *kernel = NULL;
    hal_plugin_queue *queues[2];
    hal_plugin_memory *memory[4];
    int32_t *mapped[4] = {NULL};
    static const uint32_t kinds[] = {HAL_MEMORY_UPLOAD, HAL_MEMORY_DEVICE, HAL_MEMORY_DEVICE,
                                     HAL_MEMORY_DOWNLOAD};
    does(plugin->kernel_create(device, add_kernel(), &kernel), "kernel_create");
    for (int i = 0; i < 2; i++) {
        does(plugin->queue_create(device, &queues[i]), "queue_create");
    }
    for (int i = 0; i < 4; i++) {
        does(plugin->memory_allocate(device, kinds[i], BYTES, &memory[i]), "memory_allocate");
        if (kinds[i] != HAL_MEMORY_DEVICE) {
            does(plugin->memory_map(device, memory[i], (void **)&mapped[i]), "memory_map");
        }
    }
    for (int32_t i = 0; i < (int32_t)ITEMS; i++) {
        mapped[0][i] = 3 * i;
    }
    const hal_binding bindings[] = {
        {memory[0], 0, BYTES, HAL_ACCESS_READ, 0},      {memory[1], 0, BYTES, HAL_ACCESS_WRITE, 0},
        {memory[1], 0, BYTES, HAL_ACCESS_READ, 0},      {memory[2], 0, BYTES, HAL_ACCESS_WRITE, 0},
        {memory[2], 0, BYTES / 4, HAL_ACCESS_WRITE, 0}, {memory[2], 0, BYTES, HAL_ACCESS_READ, 0},
        {memory[3], 0, BYTES, HAL_ACCESS_WRITE, 0},
    };
    const hal_command commands[] = {
        {.kind = HAL_COMMAND_COPY, .binding_count = 2},
        {.kind = HAL_COMMAND_DISPATCH,
         .flags = HAL_COMMAND_BARRIER,
         .binding_count = 2,
         .scalar_bytes = sizeof(int32_t),
         .binding_first = 2,
         .grid = {ITEMS / GROUP, 1, 1},
         .kernel = kernel},
        {.kind = HAL_COMMAND_FILL,
         .flags = HAL_COMMAND_BARRIER,
         .binding_count = 1,
         .binding_first = 4,
         .scalar_bytes = sizeof(uint32_t),
         .scalar_first = 8},
        {.kind = HAL_COMMAND_COPY, .binding_count = 2, .binding_first = 5},
    };
    const int32_t scalars[4] = {7, 0, 0x01020304, 0}; /* the addend, the pattern */
    hal_batch batch = {.size = sizeof batch,
                       .command_count = 3,
                       .binding_count = sizeof bindings / sizeof *bindings,
                       .scalar_bytes = sizeof scalars,
                       .commands = at_the_edge(commands, sizeof commands),
                       .bindings = at_the_edge(bindings, sizeof bindings),
                       .scalars = at_the_edge(scalars, sizeof scalars)};
    does(plugin->submit(queues[0], at_the_edge(&batch, sizeof batch), NULL, 0, 1), "submit");
    const hal_plugin_wait after = {.queue = queues[0], .value = 1};
    batch.command_count = 1;
    batch.commands = at_the_edge(&commands[3], sizeof *commands);
    does(plugin->submit(queues[1], at_the_edge(&batch, sizeof batch),
                        at_the_edge(&after, sizeof after), 1, 1),
         "submit after another queue");
    does(plugin->wait(queues[1], 1, UINT64_MAX), "wait");
    for (int32_t i = 0; i < (int32_t)ITEMS; i++) {
        expect(mapped[3][i] == (i < (int32_t)ITEMS / 4 ? 0x01020304 : 3 * i + 7), "a number");
    }
    does(plugin->wait(queues[0], 1, UINT64_MAX), "wait");
    for (int i = 0; i < 4; i++) {
        plugin->memory_free(device, memory[i]);
    }
    for (int i = 0; i < 2; i++) {
        plugin->queue_destroy(device, queues[i]);
    }
    plugin->kernel_destroy(device, kernel);
}

int main(int argc, char **argv)
{
    const uint32_t host_abi = HAL_PLUGIN_ABI_MAJOR << 16; /* minor 0 */
    const size_t host_bytes =
        offsetof(hal_host, queue_failed) + sizeof(((hal_host *)NULL)->queue_failed);
    const hal_host services = {.size = (uint32_t)host_bytes,
                               .abi = host_abi,
                               .allocate = allocate,
                               .release = host_free,
                               .log = log_line,
                               .fail = fail,
                               .cache_load = cache_load,
                               .cache_store = cache_store,
                               .report = report,
                               .queue_reached = queue_reached,
                               .queue_failed = queue_failed};
    void *library = argc == 2 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : NULL;
    hal_plugin_create_function create = NULL;
    if (library) {
        *(void **)&create = dlsym(library, HAL_PLUGIN_CREATE_SYMBOL);
    }
    expect(create != NULL, "usage: abi_host_0 PLUGIN.so");
    expect(plugin_create(&entries, create, at_the_edge(&services, host_bytes)),
           "hal_plugin_create");
    plugin = &entries;
    expect(plugin->abi >> 16 == HAL_PLUGIN_ABI_MAJOR && plugin->size >= sizeof(hal_plugin),
           "the table");

    enum { ROOM = 16 };
    static char records[ROOM * HAL_DEVICE_INFO_MAX_BYTES];
    uint32_t count = 0;
    const hal_status status = plugin_list(plugin, (hal_device_info *)(void *)records, ROOM, &count);
    if (status != HAL_OK || count == 0) {
        printf("%s: no device: %s\n", plugin->name, sentence);
        return 77;
    }
    for (uint32_t i = 0; i < count && i < ROOM; i++) {
        uint32_t stride;
        hal_device_info info;
        memcpy(&stride, records, sizeof stride);
        memcpy(&info, records + (size_t)i * stride, sizeof info);
        expect(stride >= sizeof info && info.max_group_items >= GROUP, "the device's record");
        hal_plugin_device *device = NULL;
        does(plugin_open(plugin, i, &device), "device_open");
        run(device);
        plugin->device_close(device);
        printf("%s:%u, %s: works with a host of minor 0\n", plugin->name, i, info.name);
    }
    return 0;
}
