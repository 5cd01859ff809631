/* wrap.c: a plugin around another one; wrap.h says what for. */
#include "wrap.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What goes with an object. */
typedef struct kept {
    struct kept *next;
    const void *object;
    max_align_t data[];
} kept;

static wrap_table inside;
static const hal_host *services;
static char name[64];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static kept *all;

static void read_name(void)
{
    Dl_info here;
    if (name[0] != '\0' || dladdr(&all, &here) == 0) {
        return;
    }
    const char *slash = strrchr(here.dli_fname, '/');
    const char *base = slash ? slash + 1 : here.dli_fname;
    base += strncmp(base, "hal_", 4) == 0 ? 4 : 0;
    snprintf(name, sizeof(name), "%.*s", (int)strcspn(base, "."), base);
}

/* At least a byte, so that null always means that there is no memory. */
static void *copy_of(const void *source, size_t bytes, size_t more)
{
    void *copy = malloc(bytes + more + 1);
    if (copy && bytes > 0) {
        memcpy(copy, source, bytes);
    }
    return copy;
}

wrap_table *wrap_open(const char *path, uint32_t host_abi, const hal_host *host,
                      hal_plugin_instance **instance)
{
    static wrap_table table;
    hal_plugin_create_function create = NULL;
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    void *symbol = library ? dlsym(library, HAL_PLUGIN_CREATE_SYMBOL) : NULL;
    if (!symbol) {
        host->log(host, HAL_LOG_ERROR, dlerror());
        return NULL;
    }
    memcpy(&create, &symbol, sizeof(create));
    const hal_plugin *given = create(host_abi, host, instance);
    if (!given) {
        return NULL;
    }
    read_name();
    services = host;
    hal_plugin_entries_read(&inside, given, *instance);
    hal_plugin_entries_extend(&inside);
    table = inside;
    table.name = name;
    table.build_id = name; /* what the cache keeps of one fault is not for another */
    return &table;
}

/* The tables that hal gets. */
static struct {
    hal_plugin table;
#define FIELD(extension, is, needed) hal_extension_##extension extension;
    HAL_EXTENSIONS(FIELD)
#undef FIELD
} offered;

static const void *query_extension(hal_plugin_instance *instance, const char *extension_name,
                                   uint32_t major)
{
    (void)instance;
#define FIND(extension, is, needed)                                   \
    if (strcmp(extension_name, is) == 0 && major == 1) {              \
        return offered.extension.version ? &offered.extension : NULL; \
    }
    HAL_EXTENSIONS(FIND)
#undef FIND
    return NULL;
}

const hal_plugin *wrap_plugin(const wrap_table *table)
{
    if (!table) {
        return NULL;
    }
    memset(&offered, 0, sizeof(offered));
    offered.table = (hal_plugin){.size = sizeof(hal_plugin),
                                 .abi = table->abi,
                                 .ir_version = table->ir_version,
                                 .name = table->name,
                                 .version = table->version,
                                 .build_id = table->build_id,
                                 .query_extension = query_extension};
#define COPY(entry) offered.table.entry = table->entry;
    HAL_REQUIRED_ENTRIES(COPY)
#undef COPY
#define COPY(extension, entry)                                   \
    offered.extension.entry = table->entry;                      \
    if (table->entry) {                                          \
        offered.extension.size = sizeof(offered.extension);      \
        offered.extension.version = HAL_EXTENSION_VERSION(1, 0); \
    }
    HAL_EXTENSION_ENTRIES(COPY)
#undef COPY
    return &offered.table;
}

const char *wrap_first_id(void)
{
    static hal_device_info infos[8];
    uint32_t count = 0;
    const hal_status status = inside.enumerate(inside.instance, infos, 8, &count);
    return status == HAL_OK && count > 0 ? infos[0].id : "";
}

const wrap_table *wrap_inside(void)
{
    return &inside;
}

hal_status wrap_fail(hal_status status, const char *message)
{
    return services->fail(services, status, message);
}

const hal_host *wrap_host(void)
{
    return services;
}

const char *wrap_name(void)
{
    read_name();
    return name;
}

bool wrap_batch_copy(wrap_batch *copy, const hal_batch *batch)
{
    *copy = (wrap_batch){.batch = *batch};
    copy->commands = copy_of(batch->commands, batch->command_count * sizeof(hal_command), 0);
    copy->bindings = copy_of(batch->bindings, batch->binding_count * sizeof(hal_binding), 0);
    copy->scalars = copy_of(batch->scalars, batch->scalar_bytes, 8);
    copy->batch.commands = copy->commands;
    copy->batch.bindings = copy->bindings;
    copy->batch.scalars = copy->scalars;
    if (!copy->commands || !copy->bindings || !copy->scalars) {
        wrap_batch_free(copy);
        return false;
    }
    memset(copy->scalars + batch->scalar_bytes, 0, 8);
    return true;
}

void wrap_batch_free(wrap_batch *copy)
{
    free(copy->commands);
    free(copy->bindings);
    free(copy->scalars);
}

bool wrap_ir_copy(wrap_ir *copy, const hal_ir_kernel *ir, uint32_t more)
{
    *copy = (wrap_ir){.ir = *ir};
    copy->records = copy_of(ir->records, ir->record_count * sizeof(hal_ir_record),
                            more * sizeof(hal_ir_record));
    copy->memories = copy_of(ir->memories, ir->memory_count * sizeof(hal_ir_memory), 0);
    copy->constants =
        copy_of(ir->constants, ir->constant_count * sizeof(uint64_t), more * sizeof(uint64_t));
    copy->ir.records = copy->records;
    copy->ir.memories = copy->memories;
    copy->ir.constants = copy->constants;
    if (!copy->records || !copy->memories || !copy->constants) {
        wrap_ir_free(copy);
        return false;
    }
    return true;
}

void wrap_ir_free(wrap_ir *copy)
{
    free(copy->records);
    free(copy->memories);
    free(copy->constants);
}

hal_ir_value wrap_ir_insert(wrap_ir *copy, uint32_t at, hal_ir_record record)
{
    hal_ir_record *records = copy->records;
    memmove(records + at + 1, records + at, (copy->ir.record_count - at) * sizeof(*records));
    records[at] = record;
    copy->ir.record_count++;
    for (uint32_t i = at + 1; i < copy->ir.record_count; i++) {
        uint32_t *operands[4] = {&records[i].a, &records[i].b, &records[i].c, &records[i].d};
        for (int k = 0; k < 4; k++) {
            *operands[k] += *operands[k] != HAL_IR_NONE && *operands[k] >= at;
        }
    }
    return at;
}

hal_ir_value wrap_ir_constant(wrap_ir *copy, uint32_t at, hal_type type, uint64_t bits)
{
    const uint32_t index = copy->ir.constant_count++;
    copy->constants[index] = bits;
    return wrap_ir_insert(copy, at,
                          (hal_ir_record){.opcode = HAL_IR_CONSTANT,
                                          .type = type,
                                          .width = 1,
                                          .a = HAL_IR_NONE,
                                          .b = HAL_IR_NONE,
                                          .c = HAL_IR_NONE,
                                          .d = HAL_IR_NONE,
                                          .aux = index});
}

hal_ir_value wrap_ir_operation(wrap_ir *copy, uint32_t at, uint16_t opcode, hal_type type,
                               hal_ir_value a, hal_ir_value b)
{
    return wrap_ir_insert(copy, at,
                          (hal_ir_record){.opcode = opcode,
                                          .type = type,
                                          .width = 1,
                                          .a = a,
                                          .b = b,
                                          .c = HAL_IR_NONE,
                                          .d = HAL_IR_NONE});
}

void *wrap_keep(const void *object, size_t bytes)
{
    void *found = wrap_find(object);
    if (found) {
        return found;
    }
    kept *made = calloc(1, sizeof(*made) + bytes);
    if (!made) {
        return NULL;
    }
    made->object = object;
    pthread_mutex_lock(&lock);
    made->next = all;
    all = made;
    pthread_mutex_unlock(&lock);
    return made->data;
}

void *wrap_find(const void *object)
{
    pthread_mutex_lock(&lock);
    kept *found = all;
    while (found && found->object != object) {
        found = found->next;
    }
    pthread_mutex_unlock(&lock);
    return found ? found->data : NULL;
}

void wrap_drop(const void *object)
{
    pthread_mutex_lock(&lock);
    kept **place = &all;
    while (*place && (*place)->object != object) {
        place = &(*place)->next;
    }
    kept *found = *place;
    if (found) {
        *place = found->next;
    }
    pthread_mutex_unlock(&lock);
    free(found);
}
