/* Prints and asserts in kernels, see report.h: records that write a report, and the table of
 * formats, which live as long as the process. */
#include "report.h"

#include "internal.h"
#include "base/fork.h"
#include "base/map.h"
#include "base/number.h"
#include "base/text.h"

#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

typedef struct report_form {
    char *kernel, *format;
    uint32_t count;
    hal_type types[HAL_IR_REPORT_VALUES];
} report_form;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
HAL_FORK_GUARD(lock, HAL_FORK_LEAF)
static hal_map forms;

/* A conversion of a format: `letter` 0 at the end of the text. */
typedef struct conversion {
    const char *begin, *end;
    int precision; /* below 0: none */
    char letter;
} conversion;

/* The next conversion; one that is not allowed has the letter '?'. */
static conversion conversion_next(const char *at)
{
    conversion found = {.begin = strchr(at, '%'), .precision = -1};
    if (!found.begin) {
        found.begin = found.end = at + strlen(at);
        return found;
    }
    const char *end = found.begin + 1;
    if (*end == '.' && end[1] >= '0' && end[1] <= '9') {
        found.precision = end[1] - '0';
        end += 2;
    }
    found.letter = *end && strchr("duxfeg%", *end) ? *end : '?';
    if (found.precision >= 0 && !strchr("feg", found.letter)) {
        found.letter = '?';
    }
    found.end = *end ? end + 1 : end;
    return found;
}

static bool type_fits(hal_type type, char letter)
{
    return hal_type_is_float(type) == (letter == 'f' || letter == 'e' || letter == 'g');
}

/* Checks a format against the types of its values. */
static bool format_check(hal_ir_builder *b, const char *format, const report_form *form)
{
    uint32_t used = 0;
    for (conversion c = conversion_next(format); c.letter; c = conversion_next(c.end)) {
        if (c.letter == '?') {
            hal_ir_builder_fail(b, HAL_ERROR_INVALID_ARGUMENT,
                                "report: format: expected %%d %%u %%x %%f %%e %%g or %%%%, got "
                                "\"%.4s\" in \"%.80s\"",
                                c.begin, format);
            return false;
        }
        if (c.letter == '%') {
            continue;
        }
        if (used >= form->count || !type_fits(form->types[used], c.letter)) {
            hal_ir_builder_fail(b, HAL_ERROR_INVALID_ARGUMENT,
                                "report: values: expected one for %%%c, value %u of \"%.80s\", got "
                                "%s",
                                c.letter, used, format,
                                used < form->count ? hal_type_name(form->types[used]) : "none");
            return false;
        }
        used++;
    }
    if (used != form->count) {
        hal_ir_builder_fail(b, HAL_ERROR_INVALID_ARGUMENT,
                            "report: values: expected %u, as \"%.80s\" has conversions, got %u",
                            used, format, form->count);
        return false;
    }
    return true;
}

static uint64_t form_key(const report_form *form, bool is_assert)
{
    const XXH64_hash_t name = XXH3_64bits(form->kernel, strlen(form->kernel));
    const XXH64_hash_t text =
        XXH3_64bits_withSeed(form->format, strlen(form->format), name + form->count);
    const uint64_t key = XXH3_64bits_withSeed(form->types, sizeof form->types, text);
    return (key & ~UINT64_C(1)) | (is_assert ? 1 : 0);
}

/* Keeps a format, once. Returns its key; 0 without memory. */
static uint64_t form_keep(const report_form *form, bool is_assert)
{
    const uint64_t key = form_key(form, is_assert);
    pthread_mutex_lock(&lock);
    bool is_kept = hal_map_get(&forms, key) != NULL;
    report_form *kept = is_kept ? NULL : malloc(sizeof *kept);
    if (kept) {
        *kept = *form;
        kept->kernel = strdup(form->kernel);
        kept->format = strdup(form->format);
        is_kept = kept->kernel && kept->format && hal_map_put(&forms, key, kept);
        if (!is_kept) {
            free(kept->kernel);
            free(kept->format);
            free(kept);
        }
    }
    pthread_mutex_unlock(&lock);
    return is_kept ? key : 0;
}

/* The binding of reports; NONE, and an error, before hal_ir_reports. */
static hal_ir_memory_id reports_find(hal_ir_builder *b)
{
    const hal_ir_kernel *view = hal_ir_builder_view(b);
    for (uint32_t i = 0; i < view->binding_count; i++) {
        if (strcmp(view->names + view->memories[i].name, HAL_IR_REPORTS) == 0) {
            return i;
        }
    }
    hal_ir_builder_fail(b, HAL_ERROR_INVALID_ARGUMENT,
                        "report: expected a call of hal_ir_reports before the first one");
    return HAL_IR_NONE;
}

static void report_emit(hal_ir_builder *b, hal_ir_memory_id reports, uint64_t key,
                        const hal_ir_value *values, uint32_t count)
{
    enum { WORDS = sizeof(hal_ir_report_entry) / 4 };
    const hal_ir_value zero = hal_ir_u32(b, 0);
    const hal_ir_value number = hal_ir_atomic(b, HAL_IR_ATOMIC_ADD, reports, zero, HAL_IR_NONE,
                                              hal_ir_u32(b, 1), HAL_IR_NONE);
    hal_ir_if(b, hal_ir_lt(b, number, hal_ir_u32(b, HAL_IR_REPORTS_MOST)));
    hal_ir_value words[WORDS];
    words[0] = hal_ir_u32(b, (uint32_t)key);
    words[1] = hal_ir_u32(b, (uint32_t)(key >> 32));
    words[2] = hal_ir_load(b, reports, hal_ir_u32(b, 1));
    for (uint32_t i = 0; i < 3; i++) {
        words[3 + i] = hal_ir_id(b, HAL_IR_GROUP_ID, i);
    }
    words[6] = hal_ir_item_number(b, hal_ir_builder_view(b)->group_size);
    words[7] = zero;
    for (uint32_t i = 0; i < HAL_IR_REPORT_VALUES; i++) {
        hal_ir_value_words(b, i < count ? values[i] : HAL_IR_NONE, &words[8 + 2 * i]);
    }
    const hal_ir_value at = hal_ir_add(b, hal_ir_mul(b, number, hal_ir_u32(b, WORDS)),
                                       hal_ir_u32(b, sizeof(hal_ir_report_head) / 4));
    for (uint32_t i = 0; i < WORDS; i += 4) {
        hal_ir_store_wide(b, reports, at, (int32_t)i, HAL_IR_NONE, hal_ir_pack(b, 4, words + i));
    }
    hal_ir_end(b);
}

/* The key of a report's format, 0 after an error. */
static uint64_t report_begin(hal_ir_builder *b, const char *format, const hal_ir_value *values,
                             uint32_t count, bool is_assert, hal_ir_memory_id *reports)
{
    report_form form = {.count = count, .format = (char *)format};
    if (!hal_ir_builder_is_usable(b) || (*reports = reports_find(b)) == HAL_IR_NONE) {
        return 0;
    }
    if (!format || (count > 0 && !values) || count > HAL_IR_REPORT_VALUES) {
        hal_ir_builder_fail(b, HAL_ERROR_INVALID_ARGUMENT,
                            "report: expected a format and at most %u values, got %u%s",
                            HAL_IR_REPORT_VALUES, count,
                            !format || (count > 0 && !values) ? " and a null pointer" : "");
        return 0;
    }
    for (uint32_t i = 0; i < count; i++) {
        form.types[i] = hal_ir_type_of(b, values[i]);
    }
    if (!format_check(b, format, &form)) {
        return 0;
    }
    const hal_ir_kernel *view = hal_ir_builder_view(b);
    form.kernel = (char *)view->names + view->name;
    const uint64_t key = form_keep(&form, is_assert);
    if (key == 0) {
        hal_ir_builder_fail(b, HAL_ERROR_OUT_OF_MEMORY, "no host memory");
    }
    return key;
}

void hal_ir_reports(hal_ir_builder *builder)
{
    hal_ir_binding(builder, HAL_IR_REPORTS, HAL_TYPE_U32, HAL_ACCESS_READ_WRITE);
}

void hal_ir_printf(hal_ir_builder *builder, const char *format, const hal_ir_value *values,
                   uint32_t count)
{
    hal_ir_memory_id reports;
    const uint64_t key = report_begin(builder, format, values, count, false, &reports);
    if (key != 0) {
        report_emit(builder, reports, key, values, count);
    }
}

void hal_ir_assert(hal_ir_builder *builder, hal_ir_value condition, const char *format,
                   const hal_ir_value *values, uint32_t count)
{
    hal_ir_memory_id reports;
    const uint64_t key = report_begin(builder, format, values, count, true, &reports);
    if (key != 0) {
        hal_ir_if(builder, hal_ir_not(builder, condition));
        report_emit(builder, reports, key, values, count);
        hal_ir_end(builder);
    }
}

bool hal_ir_has_reports(const hal_ir_kernel *kernel)
{
    const hal_ir_memory *last =
        kernel->binding_count > 0 ? &kernel->memories[kernel->binding_count - 1] : NULL;
    return last && last->type == HAL_TYPE_U32 && last->access == HAL_ACCESS_READ_WRITE &&
           strcmp(kernel->names + last->name, HAL_IR_REPORTS) == 0;
}

void hal_ir_value_words(hal_ir_builder *b, hal_ir_value value, hal_ir_value words[2])
{
    const hal_type type = hal_ir_type_of(b, value);
    words[0] = words[1] = hal_ir_u32(b, 0);
    if (value == HAL_IR_NONE) {
        return;
    }
    if (hal_type_size(type) < 8) {
        words[0] = type == HAL_TYPE_BOOL ? hal_ir_cast(b, HAL_TYPE_U32, value)
                                         : hal_ir_bitcast(b, HAL_TYPE_U32, value);
        return;
    }
    const hal_ir_value bits = hal_ir_bitcast(b, HAL_TYPE_U64, value);
    words[0] = hal_ir_cast(b, HAL_TYPE_U32, bits);
    words[1] = hal_ir_cast(b, HAL_TYPE_U32, hal_ir_shr(b, bits, hal_ir_u64(b, 32)));
}

hal_ir_value hal_ir_item_number(hal_ir_builder *b, const uint32_t group_size[3])
{
    hal_ir_value item = HAL_IR_NONE;
    for (uint32_t i = 3; i-- > 0;) {
        if (group_size[i] > 1) {
            const hal_ir_value id = hal_ir_id(b, HAL_IR_LOCAL_ID, i);
            item = item == HAL_IR_NONE
                       ? id
                       : hal_ir_add(b, hal_ir_mul(b, item, hal_ir_u32(b, group_size[i])), id);
        }
    }
    return item == HAL_IR_NONE ? hal_ir_u32(b, 0) : item;
}

/* The sign of a NaN has no meaning. */
static void add_float(hal_text *text, double value, int precision)
{
    hal_text_add(text, "%s", value != value ? "nan" : HAL_NUMBER(value, precision));
}

/* A float as its conversion says; %x of an integer has its sign in the bits. */
static void add_converted(hal_text *text, const conversion *c, hal_type type,
                          const uint32_t words[2])
{
    const uint64_t bits = words[0] | (uint64_t)words[1] << 32;
    double number;
    float single;
    if (hal_type_is_float(type)) {
        memcpy(&single, words, sizeof single);
        memcpy(&number, &bits, sizeof number);
        number = type == HAL_TYPE_F32 ? (double)single : number;
        add_float(text, number, c->precision);
    } else if (c->letter == 'x') {
        hal_text_add(text, "%llx", (unsigned long long)bits);
    } else {
        hal_ir_add_value_text(text, type, words);
    }
}

void hal_ir_add_value_text(hal_text *text, hal_type type, const uint32_t words[2])
{
    const uint64_t bits = words[0] | (uint64_t)words[1] << 32;
    double number = 0;
    float single = 0;
    switch (type) {
    case HAL_TYPE_F32:
        memcpy(&single, words, sizeof single);
        add_float(text, (double)single, -1);
        break;
    case HAL_TYPE_F64:
        memcpy(&number, &bits, sizeof number);
        add_float(text, number, -1);
        break;
    case HAL_TYPE_I32:
        hal_text_add(text, "%d", (int32_t)words[0]);
        break;
    case HAL_TYPE_I64:
        hal_text_add(text, "%lld", (long long)bits);
        break;
    default:
        hal_text_add(text, "%llu", (unsigned long long)bits);
        break;
    }
}

void hal_ir_report_add_text(hal_text *text, const hal_ir_report_entry *entry)
{
    const uint64_t key = entry->form[0] | (uint64_t)entry->form[1] << 32;
    pthread_mutex_lock(&lock);
    const report_form *form = hal_map_get(&forms, key);
    pthread_mutex_unlock(&lock); /* forms are never freed */
    hal_text_add(text, "%s, group (%u, %u, %u), item %u: ", form ? form->kernel : "a kernel",
                 entry->group[0], entry->group[1], entry->group[2], entry->item);
    if (!form) {
        hal_text_add(text, "words");
        for (uint32_t i = 0; i < HAL_IR_REPORT_VALUES; i++) {
            hal_text_add(text, " %x %x", entry->values[i][0], entry->values[i][1]);
        }
        return;
    }
    uint32_t used = 0;
    const char *at = form->format;
    for (conversion c = conversion_next(at);; c = conversion_next(at)) {
        hal_text_add(text, "%.*s", (int)(c.begin - at), at);
        at = c.end;
        if (c.letter == 0) {
            break;
        }
        if (c.letter == '%') {
            hal_text_add(text, "%%");
        } else {
            add_converted(text, &c, form->types[used], entry->values[used]);
            used++;
        }
    }
}
