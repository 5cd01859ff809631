/* case.c: reports of running cases and the list of cases. */
#include "case/case.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "math/number.h"
#include "math/random.h"

struct case_object {
    void (*release)(void *object);
    void *object;
};

_Noreturn static void report(case_run *run, case_status status, const char *format,
                             va_list arguments)
{
    run->status = status;
    vsnprintf(run->detail, sizeof run->detail, format, arguments);
    va_end(arguments);
    longjmp(*run->end, 1);
}

static char *print_name(const char *format, va_list arguments)
{
    char name[CASE_NAME_BYTES];
    vsnprintf(name, sizeof name, format, arguments);
    return strdup(name);
}

static int64_t size_in_name(const case_size *size, const char *name)
{
    const size_t length = strlen(size->key);
    const char *at = name;
    while ((at = strstr(at, size->key)) != NULL) {
        const bool begins = at > name && (at[-1] == '(' || at[-1] == ',');
        at += length;
        if (begins && *at == '=') {
            break;
        }
    }
    for (uint32_t i = 0; at && i <= size->place; i++) {
        at++; /* "=", then each "x" */
        char *end;
        const int64_t value = strtoll(at, &end, 10);
        if (end == at || value < 0 || value > INT32_MAX) {
            break;
        }
        if (i == size->place) {
            return value;
        }
        at = *end == 'x' ? end : NULL;
    }
    return size->least;
}

static void take_sizes(const case_family *family, const char *name, void *parameters)
{
    for (size_t i = 0; i < family->size_count; i++) {
        case_size_set(&family->sizes[i], parameters, size_in_name(&family->sizes[i], name));
    }
}

bool case_execute(case_run *run, case_function function, const void *parameters)
{
    jmp_buf end, *outer = run->end;
    run->end = &end;
    if (setjmp(end) == 0) {
        function(run, parameters);
    }
    run->end = outer;
    return run->status == CASE_PASSED;
}

void case_end_reported(case_run *run)
{
    if (run->status != CASE_PASSED) {
        longjmp(*run->end, 1);
    }
}

void case_release(case_run *run, size_t count)
{
    while (run->object_count > count) {
        const struct case_object *last = &run->objects[--run->object_count];
        last->release(last->object);
    }
    if (count == 0) {
        free(run->objects);
        run->objects = NULL;
        run->object_capacity = 0;
    }
}

void case_fail(case_run *run, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    report(run, CASE_FAILED, format, arguments);
}

void case_unsupported(case_run *run, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    report(run, CASE_UNSUPPORTED, format, arguments);
}

void case_claim(case_run *run, bool claimed, const char *what)
{
    if (!claimed && !run->lacking) {
        run->lacking = what;
    }
}

void case_claim_or_rewrite(case_run *run, bool claimed, const char *what)
{
    if (!claimed && !run->lacking) {
        run->lacking = what;
        run->may_work = true;
    }
}

bool case_has_compiler(const case_run *run)
{
    return run->info->kind != HAL_DEVICE_CPU ||
           (run->info->features & HAL_FEATURE_DRIVER_COMPILES) != 0;
}

void case_claim_arithmetic(case_run *run, hal_type type)
{
#define ROW(NAME, number, since, name, ...) [number] = "arithmetic of " #name,
    static const char *const texts[HAL_TYPE_COUNT] = {HAL_TYPE_TABLE(ROW)};
#undef ROW
    const hal_type value = hal_type_of_value(type);
    case_claim(run, (run->info->arithmetic_types & HAL_TYPE_BIT(value)) != 0, texts[value]);
}

void case_claim_storage(case_run *run, hal_type type)
{
#define ROW(NAME, number, since, name, ...) [number] = "storage of " #name,
    static const char *const texts[HAL_TYPE_COUNT] = {"storage", HAL_TYPE_TABLE(ROW)};
#undef ROW
    const bool claimed = (run->info->storage_types & HAL_TYPE_BIT(type)) != 0;
    /* The operator library holds F64 as words on any device, and may move them. */
    const bool is_words = type == HAL_TYPE_BOOL || type == HAL_TYPE_F64;
    if (hal_type_is_narrow_float(type) || is_words) {
        case_claim_or_rewrite(run, claimed, texts[type]);
    } else {
        case_claim(run, claimed, texts[type]);
    }
}

void case_ok(case_run *run, hal_status status, const char *what)
{
    if (status == HAL_ERROR_UNSUPPORTED && run->lacking) {
        case_unsupported(run, "%s: %s", run->lacking, hal_status_message());
    }
    if (status != HAL_OK) {
        run->failure = status;
        case_fail(run, "%s gave %s: %s", what, hal_status_name(status), hal_status_message());
    }
}

/* hal names the status where a plugin gives no message. */
static bool has_plugin_message(hal_status status, const char *message)
{
    const char *name = hal_status_name(status);
    const size_t length = strlen(message), named = strlen(name);
    return length <= named + 2 || strcmp(message + length - named, name) != 0 ||
           strncmp(message + length - named - 2, ": ", 2) != 0;
}

void case_expect(case_run *run, hal_status status, hal_status wanted, const char *mention,
                 const char *what)
{
    const char *message = hal_status_message();
    case_check(run, status == wanted, "%s gave %s instead of %s (%s)", what,
               hal_status_name(status), hal_status_name(wanted),
               status == HAL_OK ? "no error" : message);
    case_check(run, wanted == HAL_OK || message[0] != 0, "%s gave %s without a message", what,
               hal_status_name(status));
    case_check(run, wanted == HAL_OK || has_plugin_message(status, message),
               "%s failed without a message of the plugin: %s", what, message);
    case_check(run, wanted == HAL_OK || !mention || strstr(message, mention) != NULL,
               "%s: the message does not name '%s': %s", what, mention, message);
}

void case_own(case_run *run, void (*release)(void *object), void *object)
{
    if (run->object_count == run->object_capacity) {
        const size_t capacity = run->object_capacity == 0 ? 16 : 2 * run->object_capacity;
        struct case_object *objects = realloc(run->objects, capacity * sizeof *objects);
        if (!objects) {
            release(object);
            case_fail(run, "the host has no memory");
        }
        run->objects = objects;
        run->object_capacity = capacity;
    }
    run->objects[run->object_count++] = (struct case_object){release, object};
}

static void release_kernel(void *object)
{
    hal_kernel_release(object);
}

static void release_buffer(void *object)
{
    hal_buffer_release(object);
}

static void release_queue(void *object)
{
    hal_queue_destroy(object);
}

static void release_builder(void *object)
{
    hal_ir_builder_destroy(object);
}

static void release_ir(void *object)
{
    hal_ir_kernel_destroy(object);
}

void case_own_kernel(case_run *run, hal_kernel *kernel)
{
    case_own(run, release_kernel, kernel);
}

void case_own_builder(case_run *run, hal_ir_builder *builder)
{
    case_own(run, release_builder, builder);
}

void *case_allocate(case_run *run, size_t count, size_t bytes)
{
    void *memory = calloc(count == 0 ? 1 : count, bytes);
    case_check(run, memory != NULL, "the host has no memory for %zu elements of %zu bytes", count,
               bytes);
    case_own(run, free, memory);
    return memory;
}

hal_queue *case_queue(case_run *run, hal_device *device)
{
    hal_queue *queue = NULL;
    case_ok(run, hal_queue_create(device, &queue), "hal_queue_create");
    case_own(run, release_queue, queue);
    return queue;
}

hal_buffer *case_buffer(case_run *run, hal_device *device, hal_memory_kind kind, uint64_t bytes)
{
    hal_buffer *buffer = NULL;
    case_ok(run, hal_buffer_create(device, kind, bytes, &buffer), "hal_buffer_create");
    case_own(run, release_buffer, buffer);
    return buffer;
}

hal_ir_builder *case_builder(case_run *run, const char *name)
{
    hal_ir_builder *builder = NULL;
    case_ok(run, hal_ir_builder_create(name, &builder), "hal_ir_builder_create");
    case_own_builder(run, builder);
    return builder;
}

hal_ir_kernel *case_ir(case_run *run, hal_ir_builder *builder)
{
    hal_ir_kernel *ir = NULL;
    case_ok(run, hal_ir_builder_finish(builder, &ir), "hal_ir_builder_finish");
    case_own(run, release_ir, ir);
    return ir;
}

hal_kernel *case_kernel(case_run *run, hal_ir_builder *builder)
{
    hal_kernel *kernel = NULL;
    case_ok(run, hal_kernel_create(run->device, case_ir(run, builder), &kernel),
            "hal_kernel_create");
    case_own_kernel(run, kernel);
    return kernel;
}

void case_add(case_list *list, case_function function, const void *parameters, size_t bytes,
              const char *format, ...)
{
    if (list->count == list->capacity) {
        const size_t capacity = list->capacity == 0 ? 256 : 2 * list->capacity;
        case_entry *entries = realloc(list->entries, capacity * sizeof *entries);
        if (!entries) {
            list->out_of_memory = true;
            return;
        }
        list->entries = entries;
        list->capacity = capacity;
    }
    va_list arguments;
    va_start(arguments, format);
    case_entry entry = {.name = print_name(format, arguments),
                        .group = list->group,
                        .level = list->level,
                        .function = function};
    va_end(arguments);
    if (bytes > 0 && (entry.parameters = malloc(bytes)) != NULL) {
        memcpy(entry.parameters, parameters, bytes);
    }
    if (!entry.name || (bytes > 0 && !entry.parameters)) {
        free(entry.name);
        free(entry.parameters);
        list->out_of_memory = true;
        return;
    }
    list->entries[list->count++] = entry;
}

void case_add_member(case_list *list, const case_family *family, const void *parameters)
{
    char name[CASE_NAME_BYTES];
    family->print(parameters, list->seed, name, sizeof name);
    const size_t before = list->count;
    case_add(list, family->function, parameters, family->bytes, "%s", name);
    if (list->count > before) {
        list->entries[before].family = family;
    }
}

/* Tries the name's sizes with each case of a family; the right one then has the name. */
bool case_add_by_name(case_list *list, const char *name)
{
    for (size_t i = 0; i < list->count; i++) {
        const case_entry known = list->entries[i];
        uint8_t parameters[CASE_PARAMETER_BYTES];
        char made[CASE_NAME_BYTES];
        if (!known.family) {
            continue;
        }
        memcpy(parameters, known.parameters, known.family->bytes);
        take_sizes(known.family, name, parameters);
        known.family->print(parameters, list->seed, made, sizeof made);
        if (strcmp(made, name) == 0 && (!known.family->fits || known.family->fits(parameters))) {
            list->group = known.group;
            list->level = known.level;
            case_add_member(list, known.family, parameters);
            return true;
        }
    }
    return false;
}

uint64_t case_seed_of(const case_entry *entry, uint64_t seed)
{
    const case_family *family = entry->family;
    uint8_t parameters[CASE_PARAMETER_BYTES];
    char name[CASE_NAME_BYTES];
    if (!family || !family->one_stream) {
        return random_seed_of(seed, entry->name);
    }
    memcpy(parameters, entry->parameters, family->bytes);
    for (size_t i = 0; i < family->size_count; i++) {
        case_size_set(&family->sizes[i], parameters, family->sizes[i].least);
    }
    family->print(parameters, seed, name, sizeof name);
    return random_seed_of(seed, name);
}

int64_t case_size_get(const case_size *size, const void *parameters)
{
    const uint8_t *at = (const uint8_t *)parameters + size->offset;
    int64_t wide;
    int32_t narrow;
    switch (size->bytes) {
    case 1:
        return *at;
    case 4:
        memcpy(&narrow, at, sizeof narrow);
        return narrow;
    default:
        memcpy(&wide, at, sizeof wide);
        return wide;
    }
}

void case_size_set(const case_size *size, void *parameters, int64_t value)
{
    uint8_t *at = (uint8_t *)parameters + size->offset;
    switch (size->bytes) {
    case 1:
        *at = value != 0;
        break;
    case 4:
        memcpy(at, &(int32_t){(int32_t)value}, sizeof(int32_t));
        break;
    default:
        memcpy(at, &value, sizeof value);
    }
}

void case_covers(case_list *list, hal_type type, case_memory memory, const char *format, ...)
{
    if (list->count == 0 || list->out_of_memory) {
        return;
    }
    case_entry *entry = &list->entries[list->count - 1];
    case_cover *covers = realloc(entry->covers, (entry->cover_count + 1) * sizeof *covers);
    if (!covers) {
        list->out_of_memory = true;
        return;
    }
    entry->covers = covers;
    case_cover *cover = &covers[entry->cover_count++];
    *cover = (case_cover){.type = type, .memory = (uint8_t)memory};
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(cover->row, sizeof cover->row, format, arguments);
    va_end(arguments);
}

void case_has_faults(case_list *list, const char *format, ...)
{
    if (list->count > 0 && !list->out_of_memory) {
        va_list arguments;
        va_start(arguments, format);
        list->entries[list->count - 1].faults = print_name(format, arguments);
        va_end(arguments);
    }
}

void case_list_free(case_list *list)
{
    for (size_t i = 0; i < list->count; i++) {
        free(list->entries[i].name);
        free(list->entries[i].parameters);
        free(list->entries[i].covers);
        free(list->entries[i].faults);
    }
    free(list->entries);
    *list = (case_list){0};
}
