/* Fuzz target: a plugin's table and device descriptions. A table of any stated size, in memory of
 * just that size, with any entries missing and any texts, is accepted or refused with a message; so
 * are the devices that it enumerates. Accepted descriptions become those of the mock plugin, on
 * whose device hal and the op library then compute or return UNSUPPORTED. Run by ./dev check as the
 * ctest fuzz_plugin_table. */
#include <dlfcn.h>
#include <ops/ops.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plugin/loader.h"
#include "mock.h"
#include "plugin/registry.h"

enum { TEXT_BYTES = 64, STRIDE_MOST = HAL_DEVICE_INFO_MAX_BYTES };

/* The devices of an input, for `enumerate`. */
typedef struct answer {
    hal_device_info info;
    uint32_t stride, count, growth;
    hal_status status;
} answer;

typedef struct source {
    const uint8_t *data, *end;
} source;

static mock_state *mock;
static answer answered;
static const hal_plugin *table, *older;

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(int holds)
{
    if (!holds) {
        fprintf(stderr, "The last message of hal: %s\n", hal_status_message());
        abort();
    }
}

static void find_mock(void)
{
    if (!mock) {
        setenv("HAL_PLUGIN_PATH", TEST_PLUGINS "/mock", 1);
        void *library = dlopen(TEST_PLUGINS "/mock/hal_mock.so", RTLD_NOW | RTLD_LOCAL);
        must(library != NULL);
        mock = dlsym(library, MOCK_STATE_SYMBOL);
        must(mock != NULL);
    }
}

static uint32_t next(source *from)
{
    return from->data < from->end ? *from->data++ : 0;
}

/* A non-null address: only `enumerate` is called. */
static void *entry_of(void)
{
    static char place;
    return &place;
}

static hal_status enumerate(hal_plugin_instance *instance, hal_device_info *infos,
                            uint32_t capacity, uint32_t *count)
{
    (void)instance;
    const uint32_t stride = answered.stride < STRIDE_MOST ? answered.stride : STRIDE_MOST;
    answered.info.size = answered.stride;
    *count = answered.count;
    answered.count += answered.growth;
    for (uint32_t i = 0; i < *count && i < capacity; i++) {
        memcpy((char *)infos + (size_t)i * stride, &answered.info,
               stride < sizeof *infos ? stride : sizeof *infos);
    }
    return answered.status;
}

static void next_text(source *from, char text[TEXT_BYTES])
{
    uint32_t length = next(from) % TEXT_BYTES;
    for (uint32_t i = 0; i < length; i++) {
        text[i] = (char)next(from);
    }
    text[length] = 0;
}

/* A table with memory of its stated size and with or without each entry. */
static hal_plugin *make_table(source *from, char texts[3][TEXT_BYTES])
{
    static const uint32_t versions[] = {HAL_PLUGIN_ABI,           HAL_PLUGIN_ABI + 1, 0, UINT32_MAX,
                                        HAL_PLUGIN_ABI + 0x10000, HAL_PLUGIN_ABI - 1};
    const uint32_t choice = next(from);
    uint32_t bytes = choice % 4 ? (uint32_t)sizeof(hal_plugin) : next(from) % 512;
    hal_plugin whole = {.size = bytes, .abi = versions[choice / 4 % 4 ? 0 : choice / 16 % 6]};
    void *const entry = entry_of();
    char *words = (char *)&whole;
    for (uint32_t at = offsetof(hal_plugin, instance_destroy); at + sizeof entry <= sizeof whole;
         at += sizeof entry) {
        memcpy(words + at, &entry, sizeof entry);
    }
    whole.query_extension = NULL;
    whole.ir_version = next(from) % 8 ? HAL_IR_VERSION : 0;
    for (uint32_t holes = next(from) % 4; holes > 0; holes--) {
        const uint32_t at = next(from) % (sizeof whole / sizeof entry - 1) + 1;
        memset(words + at * sizeof entry, 0, sizeof entry);
    }
    whole.enumerate = whole.enumerate ? enumerate : NULL;
    const char **const places[3] = {&whole.name, &whole.version, &whole.build_id};
    for (int i = 0; i < 3; i++) {
        const uint32_t how = next(from);
        snprintf(texts[i], TEXT_BYTES, "fuzzed");
        if (how % 4 == 0) {
            next_text(from, texts[i]);
        }
        *places[i] = how % 16 == 15 ? NULL : texts[i];
    }
    hal_plugin *made = calloc(1, bytes < sizeof bytes ? sizeof bytes : bytes);
    must(made != NULL);
    memcpy(made, &whole, bytes < sizeof whole ? bytes : sizeof whole);
    memcpy(made, &bytes, sizeof bytes);
    return made;
}

/* A small number, a power of two, one next to it, or all bits. */
static uint64_t next_number(source *from)
{
    const uint32_t byte = next(from);
    const uint64_t power = UINT64_C(1) << (byte % 64);
    return byte < 64    ? byte
           : byte < 128 ? power
           : byte < 192 ? power - 1
           : byte < 255 ? power + 1
                        : UINT64_MAX;
}

static void change_number(source *from, hal_device_info *info)
{
    enum { SIZES = 3, WORDS = (sizeof *info - offsetof(hal_device_info, binding_alignment)) / 4 };
    const uint32_t at = next(from) % (WORDS + SIZES + 1);
    const uint64_t number = next_number(from);
    if (at == WORDS + SIZES) {
        info->kind = (uint32_t)number;
    } else if (at >= WORDS) {
        uint64_t *const sizes[SIZES] = {&info->memory_bytes, &info->max_allocation,
                                        &info->max_binding};
        *sizes[at - WORDS] = number;
    } else {
        const uint32_t word = (uint32_t)number;
        memcpy((char *)&info->binding_alignment + 4 * at, &word, sizeof word);
    }
}

/* The numbers of a description: each is a word of 32 bits, the sizes of memory are two. */
static void change_info(source *from, hal_device_info *info)
{
    for (uint32_t changes = next(from) % 12; changes > 0; changes--) {
        change_number(from, info);
    }
    if (next(from) % 4 == 0) { /* texts that do not end */
        memset(info->name, 'x', sizeof info->name);
        memset(info->id, 'y', sizeof info->id);
        memset(info->driver, 'z', sizeof info->driver);
        memset(info->architecture, 'w', sizeof info->architecture);
    }
}

static void describe(source *from)
{
    const uint32_t choice = next(from);
    answered = (answer){.info = mock->infos[3], .count = 1, .stride = sizeof(hal_device_info)};
    answered.status = choice % 16 == 15 ? (hal_status)(int32_t)next_number(from) : HAL_OK;
    if (choice % 8 == 7) {
        answered.count = (uint32_t)next_number(from);
        answered.growth = next(from) % 3;
    }
    if (choice % 8 == 6) {
        answered.stride = (uint32_t)next_number(from);
    }
    change_info(from, &answered.info);
}

static const hal_plugin *query(uint32_t host_abi, const hal_host *host,
                               hal_plugin_instance **instance)
{
    static char place;
    *instance = (hal_plugin_instance *)(void *)&place;
    must(host && host->size == sizeof *host);
    return host_abi == HAL_PLUGIN_ABI ? table : older;
}

/* Whether table and devices were accepted. */
static int take(source *from)
{
    hal_module *module = hal_module_create(next(from) % 4 ? "/fuzzed/hal_fuzzed.so" : "/other.so");
    must(module != NULL);
    hal_status status = hal_module_ask(module, query);
    if (status == HAL_OK) {
        must(module->loaded && module->table.name && module->table.version &&
             module->table.build_id);
        status = hal_module_enumerate(module);
    }
    if (status == HAL_OK) {
        must(module->info_count > 0 && !module->message);
        answered.info = module->infos[0];
        must(strlen(answered.info.name) < sizeof answered.info.name);
    } else {
        must(module->message && module->message[0] && module->status == status);
        must(status > HAL_OK && status < HAL_STATUS_COUNT);
    }
    free(module->infos);
    free(module->extensions);
    free(module->message);
    free(module->path);
    free(module);
    return status == HAL_OK;
}

/* The registry asks the mock plugin for its devices anew; none is open. */
static void forget_devices(void)
{
    hal_strings paths = {0};
    hal_modules modules = {0};
    hal_registry_lock();
    must(hal_registry_find("mock", &paths, &modules) == HAL_OK && modules.count == 1);
    modules.items[0]->enumerated = 0;
    free(modules.items[0]->infos);
    modules.items[0]->infos = NULL;
    hal_registry_unlock();
    free(modules.items);
    hal_strings_free(&paths);
}

/* One operation of each family, as each takes its own kernels. */
static void compute(hal_queue *queue, uint32_t what)
{
    static const int64_t shape[2] = {5, 70}, other_shape[2] = {70, 5};
    static const float numbers[350];
    float read[350];
    ops_context *context = NULL;
    must(ops_context_create(queue, &context) == HAL_OK && ops_scope_begin(context) == HAL_OK);
    ops_array *x = ops_array_from_host(context, HAL_TYPE_F32, 2, shape, numbers);
    ops_array *y = ops_array_from_host(context, HAL_TYPE_F32, 2, other_shape, numbers);
    ops_array *made = what % 7 == 0   ? ops_add(ops_exp(x), x)
                      : what % 7 == 1 ? ops_reduce_sum(x, 1)
                      : what % 7 == 2 ? ops_array_softmax(1, x)
                      : what % 7 == 3 ? ops_matmul(x, y)
                      : what % 7 == 4 ? ops_add(x, ops_array_transpose(y, 0, 1))
                      : what % 7 == 5 ? ops_array_cast(HAL_TYPE_F16, x)
                                      : ops_array_uniform(context, HAL_TYPE_F32, 2, shape,
                                                          (ops_random_key){1, 2}, 0, 1);
    const uint64_t bytes =
        (uint64_t)ops_array_get_element_count(made) * hal_type_size(ops_array_get_type(made));
    if (!made || ops_array_read(made, bytes, read) != HAL_OK) {
        must(hal_status_message()[0] != 0);
    }
    ops_scope_end(context);
    ops_context_destroy(context);
}

/* Runs operations on the mock plugin's first device with the description. */
static void work(const hal_device_info *info, uint32_t what)
{
    hal_device *device = NULL;
    hal_queue *queue = NULL;
    forget_devices();
    mock->infos[0] = *info;
    mock->device_count = 1;
    if (hal_device_open("mock:0", &device) != HAL_OK) {
        must(hal_status_message()[0] != 0);
        return;
    }
    must(hal_queue_create(device, &queue) == HAL_OK);
    compute(queue, what);
    hal_queue_destroy(queue);
    hal_device_release(device);
    if (mock->misuses || mock->problem[0]) {
        fprintf(stderr, "The mock plugin: %s%s\n", mock->misuse, mock->problem);
        abort();
    }
    must(mock->live_devices == 0 && mock->live_queues == 0 && mock->live_kernels == 0 &&
         mock->live_memories == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    source from = {data, data + size};
    char texts[3][TEXT_BYTES];
    find_mock();
    hal_plugin *made = make_table(&from, texts);
    describe(&from);
    table = next(&from) % 8 ? made : NULL;
    older = next(&from) % 2 ? made : NULL;
    const int taken = take(&from);
    free(made);
    if (taken) {
        work(&answered.info, next(&from));
    }
    return 0;
}
