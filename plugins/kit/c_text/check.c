/* Checks a dialect against a kernel before a word of it is written, so that a wrong letter or a
 * missing word is a message that names the field. */
#include <kit/c_text/state.h>

#include <stddef.h>
#include <stdio.h>
#include <string.h>

/* Letters of the types of a pattern. */
#define TYPES "TUAVfusm"

/* The fields that are patterns, with the letters that each may have; see c_text.h. */
static const struct {
    const char *name;
    size_t offset;
    const char *letters;
} patterns[] = {
#define PATTERN(field, letters)                           \
    {                                                     \
#field, offsetof(kit_c_dialect, field), (letters) \
    }
    PATTERN(scalar, "i" TYPES),
    PATTERN(local_id, "i"),
    PATTERN(group_id, "i"),
    PATTERN(group_count, "i"),
    PATTERN(fma, "abc" TYPES),
    PATTERN(multiply_high, "ab" TYPES),
    PATTERN(remainder, "ab" TYPES),
    PATTERN(narrow_f16, "a" TYPES),
    PATTERN(load_f16, "PSMN"),
    PATTERN(load_bf16, "PSMN"),
    PATTERN(store_f16, "PSMNX"),
    PATTERN(narrow_bf16, "a" TYPES),
    PATTERN(store_bf16, "PSMNX"),
    PATTERN(atomic[0], "cPSMTUo"),
    PATTERN(atomic[1], "cPSMTUo"),
    PATTERN(compare_exchange[0], "cdPSMTUo"),
    PATTERN(compare_exchange[1], "cdPSMTUo"),
    PATTERN(lane_id, ""),
    PATTERN(lane_count, ""),
    PATTERN(shuffle, "ab" TYPES),
    PATTERN(shuffle_xor, "ak" TYPES),
    PATTERN(matrix_multiply, "abci" TYPES),
    PATTERN(async_copy, ""),
    PATTERN(async_commit, ""),
    PATTERN(async_wait, "k"),
#undef PATTERN
};

static hal_status fail_field(const hal_host *host, const hal_ir_kernel *ir, const char *field,
                             uint32_t index, const char *expected, const char *got)
{
    char message[320], place[16] = "";
    if (index != HAL_IR_NONE) {
        snprintf(place, sizeof place, "[%u]", index);
    }
    snprintf(message, sizeof message, "kit_c_lower: kernel %s: dialect.%s%s: expected %s, got %s",
             ir->names + ir->name, field, place, expected, got);
    return host->fail(host, HAL_ERROR_UNSUPPORTED, message);
}

/* The first @ of a pattern with a letter that it may not have, or null. */
static const char *wrong_letter(const char *pattern, const char *letters)
{
    for (const char *at = pattern; at != NULL && (at = strchr(at, '@')) != NULL; at++) {
        if (at[1] == 0 || !strchr(letters, at[1])) {
            return at;
        }
    }
    return NULL;
}

static hal_status check_pattern(const hal_host *host, const hal_ir_kernel *ir, const char *field,
                                uint32_t index, const char *pattern, const char *letters)
{
    char expected[96], got[8];
    const char *wrong = wrong_letter(pattern, letters);
    if (!wrong) {
        return HAL_OK;
    }
    snprintf(expected, sizeof expected, "@ with one of the letters \"%s\"", letters);
    snprintf(got, sizeof got, "@%.1s", wrong + 1);
    return fail_field(host, ir, field, index, expected, got);
}

static hal_status check_patterns(const hal_host *host, const kit_c_dialect *dialect,
                                 const hal_ir_kernel *ir)
{
    hal_status status = HAL_OK;
    for (size_t i = 0; status == HAL_OK && i < sizeof patterns / sizeof patterns[0]; i++) {
        const char *pattern;
        memcpy(&pattern, (const char *)dialect + patterns[i].offset, sizeof pattern);
        status =
            check_pattern(host, ir, patterns[i].name, HAL_IR_NONE, pattern, patterns[i].letters);
    }
    for (uint32_t i = 0; status == HAL_OK && i < HAL_IR_MATH_COUNT; i++) {
        status = check_pattern(host, ir, "fast_math", i, dialect->fast_math[i], "ab" TYPES);
    }
    return status;
}

/* A word that the kernel needs; `index` is its place in an array. */
static hal_status check_word(const hal_host *host, const hal_ir_kernel *ir, const char *field,
                             uint32_t index, const char *word)
{
    return word != NULL
               ? HAL_OK
               : fail_field(host, ir, field, index, "a word, as the kernel needs it", "null");
}

static hal_status check_memory(const hal_host *host, const kit_c_dialect *d,
                               const hal_ir_kernel *ir)
{
    hal_status status = HAL_OK;
    for (uint32_t i = 0; status == HAL_OK && i < ir->memory_count; i++) {
        const hal_type type = ir->memories[i].type;
        const int shared = hal_ir_is_shared(ir, i);
        status = check_word(host, ir, "memory_types", type, d->memory_types[type]);
        if (status == HAL_OK) {
            status = check_word(host, ir, shared ? "shared" : "global", HAL_IR_NONE,
                                shared ? d->shared : d->global);
        }
        for (uint32_t k = 0; status == HAL_OK && shared && k < 2; k++) {
            status = check_word(host, ir, "shared_array", k, d->shared_array[k]);
        }
    }
    return status;
}

static hal_status check_vector(const hal_host *host, const kit_c_dialect *d,
                               const hal_ir_kernel *ir, const hal_ir_record *record)
{
    const int accesses = record->opcode == HAL_IR_LOAD || record->opcode == HAL_IR_STORE;
    hal_status status =
        accesses ? check_word(host, ir, "convert", HAL_IR_NONE, d->convert) : HAL_OK;
    for (uint32_t i = 0; status == HAL_OK && i < 2; i++) {
        status = check_word(host, ir, "vector", i, d->vector[i]);
    }
    for (uint32_t i = 0; status == HAL_OK && i < record->width; i++) {
        status = check_word(host, ir, "elements", i, d->elements[i]);
    }
    return status;
}

static hal_status check_record(const hal_host *host, const kit_c_dialect *d,
                               const hal_ir_kernel *ir, const hal_ir_record *record)
{
    hal_status status = HAL_OK;
    if (record->type != HAL_TYPE_NONE) {
        status = check_word(host, ir, "value_types", record->type, d->value_types[record->type]);
    }
    if (status == HAL_OK && record->width > 1) {
        status = check_vector(host, d, ir, record);
    }
    if (status == HAL_OK && record->opcode == HAL_IR_BARRIER) {
        for (uint32_t i = 0; status == HAL_OK && i < 2; i++) {
            status = check_word(host, ir, "barrier", i, d->barrier[i]);
        }
    }
    if (status == HAL_OK && record->opcode == HAL_IR_ATOMIC) {
        status =
            check_word(host, ir, "atomic_names", record->flags, d->atomic_names[record->flags]);
    }
    if (status == HAL_OK && record->opcode == HAL_IR_SUBGROUP_REDUCE && d->shuffle_xor) {
        status = check_word(host, ir, "lane_id", HAL_IR_NONE, d->lane_id);
        if (status == HAL_OK) {
            status = check_word(host, ir, "lane_count", HAL_IR_NONE, d->lane_count);
        }
        if (status == HAL_OK) {
            status = check_word(host, ir, "shuffle", HAL_IR_NONE, d->shuffle);
        }
    }
    return status;
}

hal_status kit_c_check(const hal_host *host, const kit_c_dialect *dialect, const hal_ir_kernel *ir)
{
    hal_status status = check_patterns(host, dialect, ir);
    for (uint32_t i = 0; status == HAL_OK && i < 2; i++) {
        status = check_word(host, ir, "bit_cast", i, dialect->bit_cast[i]);
    }
    if (status == HAL_OK) {
        status = check_memory(host, dialect, ir);
    }
    for (uint32_t i = 0; status == HAL_OK && i < ir->record_count; i++) {
        status = check_record(host, dialect, ir, &ir->records[i]);
    }
    return status;
}
