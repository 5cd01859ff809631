/* The reference interpreter. Each work-item of a group has a program counter and runs until it
 * reaches a barrier or a subgroup operation. When all work-items have reached it, the operation is
 * executed for the group and they continue. */
#include "interpret.h"

#include "interpret_value.h"

#include <math.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* An asynchronous copy before its wait. */
typedef struct copy {
    uint32_t shared, binding, width, set;
    uint64_t to, from;
    int guarded_off;
    const hal_ir_record *record;
} copy;

typedef struct item {
    uint32_t at; /* the record that is next */
    uint32_t local[3];
    uint32_t sets; /* of asynchronous copies, committed so far */
    copy *copies;
    uint32_t copy_count, copy_capacity;
    uint64_t *values;
} item;

typedef struct run {
    const kit_dispatch *dispatch;
    const hal_ir_kernel *kernel;
    kit_problem *problem;
    uint32_t items, lanes;
    uint32_t group[3];
    uint32_t *slots;   /* where each record's value begins in an item's values */
    uint32_t *matches; /* of FOR, IF, ELSE: the closing record; of END: the opening one */
    item *work;
    uint64_t *values;
    uint8_t *shared;
    uint64_t shared_offsets[HAL_IR_MAX_SHARED];
    uint64_t *gathered;  /* one value of each work-item */
    uint32_t *in_flight; /* asynchronous copies to the element at each byte of `shared` */
} run;

static hal_status fail(run *r, const item *w, hal_status status, const char *format, ...)
{
    char text[200];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    const char *name = r->kernel->names + r->kernel->name;
    if (!w) {
        snprintf(r->problem->text, sizeof r->problem->text, "kernel %.60s: %s", name, text);
    } else {
        snprintf(r->problem->text, sizeof r->problem->text,
                 "kernel %.60s, record %u, group %u %u %u, work-item %u %u %u: %s", name, w->at,
                 r->group[0], r->group[1], r->group[2], w->local[0], w->local[1], w->local[2],
                 text);
    }
    return status;
}

static void number_values(run *r, uint32_t *count)
{
    for (uint32_t i = 0; i < r->kernel->record_count; i++) {
        const hal_ir_record *record = &r->kernel->records[i];
        r->slots[i] = *count;
        *count += record->type == HAL_TYPE_NONE ? 0 : record->width;
    }
}

static void match_blocks(run *r)
{
    uint32_t open[HAL_IR_MAX_DEPTH];
    uint32_t depth = 0;
    for (uint32_t i = 0; i < r->kernel->record_count; i++) {
        const uint32_t opcode = r->kernel->records[i].opcode;
        if (hal_ir_closes_block(opcode)) {
            r->matches[open[--depth]] = i;
            r->matches[i] = open[depth];
        }
        if (hal_ir_opens_block(opcode)) {
            open[depth++] = i;
        }
    }
}

static hal_status prepare(run *r)
{
    const hal_ir_kernel *kernel = r->kernel;
    const uint32_t width = r->dispatch->subgroup_width;
    uint32_t value_count = 0;
    uint64_t shared_bytes = 0;
    r->items = hal_ir_group_items(kernel);
    r->lanes = width == 0 ? HAL_IR_EMULATED_SUBGROUP : width;
    for (uint32_t i = kernel->binding_count; i < kernel->memory_count; i++) {
        r->shared_offsets[i - kernel->binding_count] = shared_bytes;
        shared_bytes +=
            (uint64_t)kernel->memories[i].count * hal_type_size(kernel->memories[i].type);
    }
    r->slots = malloc((kernel->record_count + 1) * sizeof *r->slots);
    r->matches = malloc((kernel->record_count + 1) * sizeof *r->matches);
    r->work = calloc(r->items, sizeof *r->work);
    r->gathered = malloc(r->items * sizeof *r->gathered);
    r->shared = malloc(shared_bytes + 1);
    r->in_flight = calloc(shared_bytes + 1, sizeof *r->in_flight);
    if (!r->slots || !r->matches || !r->work || !r->gathered || !r->shared || !r->in_flight) {
        return fail(r, NULL, HAL_ERROR_OUT_OF_MEMORY, "no host memory");
    }
    number_values(r, &value_count);
    match_blocks(r);
    r->values = calloc((size_t)r->items * value_count + 1, sizeof *r->values);
    if (!r->values) {
        return fail(r, NULL, HAL_ERROR_OUT_OF_MEMORY, "no host memory");
    }
    for (uint32_t i = 0; i < r->items; i++) {
        item *w = &r->work[i];
        w->values = r->values + (size_t)i * value_count;
        w->local[0] = i % kernel->group_size[0];
        w->local[1] = i / kernel->group_size[0] % kernel->group_size[1];
        w->local[2] = i / kernel->group_size[0] / kernel->group_size[1];
    }
    /* Shared memory is not initialised: a premature read has to be visible. */
    memset(r->shared, 0xa5, shared_bytes + 1);
    return HAL_OK;
}

static bool meets(uint32_t opcode)
{
    return opcode == HAL_IR_BARRIER || opcode == HAL_IR_SHUFFLE || opcode == HAL_IR_SHUFFLE_XOR ||
           opcode == HAL_IR_SUBGROUP_REDUCE || opcode == HAL_IR_MATRIX_MULTIPLY;
}

/* A single value, as the witness leaves it. */
static uint64_t seen(const run *r, const hal_ir_record *record, uint64_t value)
{
    if (r->dispatch->witness) {
        r->dispatch->witness(r->dispatch->witness_user, r->kernel, record, &value, 1);
    }
    return value;
}

/* Whether a work-item has reached an operation of the whole group. */
static bool stands(const run *r, const item *w)
{
    const hal_ir_record *record = &r->kernel->records[w->at];
    return meets(record->opcode) && (record->opcode != HAL_IR_BARRIER || seen(r, record, 1));
}

static uint64_t sign_extended(hal_type type, uint64_t bits)
{
    return type == HAL_TYPE_I32 ? (uint64_t)(int64_t)(int32_t)(uint32_t)bits : bits;
}

static hal_status enter_loop(run *r, item *w, const hal_ir_record *record)
{
    const uint64_t first = seen(r, record, w->values[r->slots[record->a]]);
    const int64_t start = (int64_t)sign_extended(record->type, first);
    const int64_t end = (int64_t)sign_extended(record->type, w->values[r->slots[record->b]]);
    const int64_t by = (int64_t)sign_extended(record->type, w->values[r->slots[record->c]]);
    if (by <= 0) {
        return fail(r, w, HAL_ERROR_INVALID_ARGUMENT, "the step is %lld, not above 0",
                    (long long)by);
    }
    w->values[r->slots[w->at]] = first;
    w->at = start < end ? w->at + 1 : r->matches[w->at] + 1;
    return HAL_OK;
}

static hal_status next_round(run *r, item *w, uint32_t loop)
{
    const hal_ir_record *record = &r->kernel->records[loop];
    const int64_t end = (int64_t)sign_extended(record->type, w->values[r->slots[record->b]]);
    const int64_t by = (int64_t)sign_extended(record->type, w->values[r->slots[record->c]]);
    const int64_t next = (int64_t)sign_extended(record->type, w->values[r->slots[loop]]) + by;
    if (next > (record->type == HAL_TYPE_I32 ? INT32_MAX : (int64_t)UINT32_MAX)) {
        return fail(r, w, HAL_ERROR_INVALID_ARGUMENT,
                    "the value of the for would be %lld, beyond its type", (long long)next);
    }
    w->values[r->slots[loop]] = (uint32_t)next;
    w->at = next < end ? loop + 1 : w->at + 1;
    return HAL_OK;
}

static hal_status step_control(run *r, item *w, const hal_ir_record *record)
{
    const uint32_t match = r->matches[w->at];
    const hal_ir_record *other = &r->kernel->records[match];
    switch (record->opcode) {
    case HAL_IR_FOR:
        return enter_loop(r, w, record);
    case HAL_IR_IF:
        /* To the records after ELSE, or to END itself. */
        if (seen(r, record, w->values[r->slots[record->a]])) {
            w->at++;
        } else if (other->opcode == HAL_IR_ELSE) {
            w->at = seen(r, other, 1) ? match + 1 : r->matches[match];
        } else {
            w->at = match;
        }
        return HAL_OK;
    case HAL_IR_ELSE: /* from the first part: skips the second; the match of an ELSE is its END */
        w->at = match;
        return HAL_OK;
    default:
        if (other->opcode == HAL_IR_FOR) {
            return next_round(r, w, match);
        }
        w->at++;
        return HAL_OK;
    }
}

/* The first element of an access, if all of the access is within its memory. */
static hal_status locate(run *r, item *w, uint32_t memory, hal_ir_value index, int32_t offset,
                         uint32_t width, uint64_t *element)
{
    const hal_ir_kernel *kernel = r->kernel;
    const hal_ir_memory *m = &kernel->memories[memory];
    const hal_type index_type = kernel->records[index].type;
    const uint64_t bits = w->values[r->slots[index]];
    const int64_t at = (int64_t)sign_extended(index_type, bits);
    const uint64_t count = hal_ir_is_shared(kernel, memory)
                               ? m->count
                               : r->dispatch->bindings[memory].bytes / hal_type_size(m->type);
    int64_t sum = 0;
    if ((index_type == HAL_TYPE_U64 && at < 0) || __builtin_add_overflow(at, offset, &sum) ||
        sum < 0 || count < width || (uint64_t)sum > count - width) {
        return fail(r, w, HAL_ERROR_INVALID_ARGUMENT,
                    "%s[%lld %c %lld], width %u, is outside of its %llu elements",
                    kernel->names + m->name, (long long)at, offset < 0 ? '-' : '+',
                    offset < 0 ? -(long long)offset : (long long)offset, width,
                    (unsigned long long)count);
    }
    if (sum % width != 0) {
        return fail(r, w, HAL_ERROR_INVALID_ARGUMENT,
                    "%s[%lld] is not aligned to the width %u of the access",
                    kernel->names + m->name, (long long)sum, width);
    }
    *element = (uint64_t)sum;
    return HAL_OK;
}

static void show(const run *r, const hal_ir_record *record, uint64_t *values)
{
    if (r->dispatch->witness) {
        r->dispatch->witness(r->dispatch->witness_user, r->kernel, record, values, record->width);
    }
}

static uint8_t *address_of(run *r, uint32_t memory, uint64_t element)
{
    const hal_ir_kernel *kernel = r->kernel;
    const uint64_t offset = element * hal_type_size(kernel->memories[memory].type);
    if (hal_ir_is_shared(kernel, memory)) {
        return r->shared + r->shared_offsets[memory - kernel->binding_count] + offset;
    }
    return (uint8_t *)r->dispatch->bindings[memory].data + offset;
}

static uint64_t read_element(run *r, uint32_t memory, uint64_t element)
{
    const hal_type type = r->kernel->memories[memory].type;
    const uint8_t *bytes = address_of(r, memory, element);
    switch (hal_type_size(type)) {
    case 1:
        return kit_from_storage(type, bytes[0]);
    case 2: {
        uint16_t stored;
        memcpy(&stored, bytes, sizeof stored);
        return kit_from_storage(type, stored);
    }
    case 4: {
        uint32_t stored;
        memcpy(&stored, bytes, sizeof stored);
        return stored;
    }
    default: {
        uint64_t stored;
        memcpy(&stored, bytes, sizeof stored);
        return stored;
    }
    }
}

static void write_element(run *r, uint32_t memory, uint64_t element, uint64_t value)
{
    const hal_type type = r->kernel->memories[memory].type;
    const uint64_t stored = kit_to_storage(type, value);
    uint8_t *bytes = address_of(r, memory, element);
    switch (hal_type_size(type)) {
    case 1:
        bytes[0] = (uint8_t)stored;
        break;
    case 2:
        memcpy(bytes, &(uint16_t){(uint16_t)stored}, 2);
        break;
    case 4:
        memcpy(bytes, &(uint32_t){(uint32_t)stored}, 4);
        break;
    default:
        memcpy(bytes, &stored, 8);
        break;
    }
}

/* Counts an asynchronous copy as in flight, or with -1 no longer. */
static void count_copy(run *r, const copy *one, int by)
{
    const uint32_t size = hal_type_size(r->kernel->memories[one->shared].type);
    const uint64_t first = r->shared_offsets[one->shared - r->kernel->binding_count];
    for (uint32_t i = 0; i < one->width; i++) {
        r->in_flight[first + (one->to + i) * size] += (uint32_t)by;
    }
}

/* Whether a copy of any work-item of the group to the elements is in flight. */
static bool has_copy_in_flight(const run *r, uint32_t memory, uint64_t element, uint32_t width)
{
    if (!hal_ir_is_shared(r->kernel, memory)) {
        return false;
    }
    const uint32_t size = hal_type_size(r->kernel->memories[memory].type);
    const uint64_t first = r->shared_offsets[memory - r->kernel->binding_count];
    uint32_t count = 0;
    for (uint32_t i = 0; i < width; i++) {
        count |= r->in_flight[first + (element + i) * size];
    }
    return count != 0;
}

/* The first element of a load, store or atomic. */
static hal_status locate_access(run *r, item *w, const hal_ir_record *record, uint32_t width,
                                uint64_t *element)
{
    const hal_status status = locate(r, w, record->aux, record->a, record->imm, width, element);
    if (status == HAL_OK && has_copy_in_flight(r, record->aux, *element, width)) {
        return fail(r, w, HAL_ERROR_INVALID_ARGUMENT,
                    "%s[%llu], width %u: a copy to it is in flight",
                    r->kernel->names + r->kernel->memories[record->aux].name,
                    (unsigned long long)*element, width);
    }
    return status;
}

static hal_status load_or_store(run *r, item *w, const hal_ir_record *record)
{
    const int load = record->opcode == HAL_IR_LOAD;
    uint64_t stored[8];
    uint64_t *value = &w->values[r->slots[load ? w->at : record->c]];
    uint64_t element = 0;
    if (record->b != HAL_IR_NONE && !w->values[r->slots[record->b]]) {
        if (load) {
            memset(value, 0, record->width * sizeof *value);
        }
        return HAL_OK;
    }
    hal_status status = locate_access(r, w, record, record->width, &element);
    if (!load) {
        memcpy(stored, value, record->width * sizeof *value);
        value = stored;
        show(r, record, value);
    }
    for (uint32_t i = 0; i < record->width && status == HAL_OK; i++) {
        if (load) {
            value[i] = read_element(r, record->aux, element + i);
        } else {
            write_element(r, record->aux, element + i, value[i]);
        }
    }
    if (load && status == HAL_OK) {
        show(r, record, value);
    }
    return status;
}

static hal_status do_atomic(run *r, item *w, const hal_ir_record *record)
{
    static const uint32_t opcodes[HAL_IR_ATOMIC_EXCHANGE] = {HAL_IR_ADD, HAL_IR_MIN, HAL_IR_MAX,
                                                             HAL_IR_AND, HAL_IR_OR,  HAL_IR_XOR};
    uint64_t *out = &w->values[r->slots[w->at]];
    uint64_t element = 0;
    *out = 0;
    if (record->b != HAL_IR_NONE && !w->values[r->slots[record->b]]) {
        return HAL_OK;
    }
    HAL_TRY(locate_access(r, w, record, 1, &element));
    const uint64_t old = read_element(r, record->aux, element);
    uint64_t fresh = w->values[r->slots[record->c]];
    if (record->flags < HAL_IR_ATOMIC_EXCHANGE) {
        fresh = kit_combine(opcodes[record->flags], record->type, old, fresh);
    } else if (record->flags == HAL_IR_ATOMIC_COMPARE_EXCHANGE &&
               old != w->values[r->slots[record->d]]) {
        fresh = old;
    }
    write_element(r, record->aux, element, seen(r, record, fresh));
    *out = old;
    return HAL_OK;
}

/* Executed by the wait, as late as possible. */
static hal_status begin_copy(run *r, item *w, const hal_ir_record *record)
{
    copy made = {.shared = record->aux,
                 .binding = (uint32_t)record->imm,
                 .width = record->width,
                 .set = w->sets,
                 .record = record,
                 .guarded_off = record->b != HAL_IR_NONE && !w->values[r->slots[record->b]]};
    hal_status status = locate(r, w, made.shared, record->a, 0, made.width, &made.to);
    if (status == HAL_OK && !made.guarded_off) {
        status = locate(r, w, made.binding, record->d, 0, made.width, &made.from);
    }
    if (status == HAL_OK && w->copy_count == w->copy_capacity) {
        const uint32_t larger = w->copy_capacity == 0 ? 8 : 2 * w->copy_capacity;
        copy *copies = realloc(w->copies, larger * sizeof *copies);
        if (!copies) {
            return fail(r, w, HAL_ERROR_OUT_OF_MEMORY, "no host memory");
        }
        w->copies = copies;
        w->copy_capacity = larger;
    }
    if (status == HAL_OK) {
        w->copies[w->copy_count++] = made;
        count_copy(r, &made, 1);
    }
    return status;
}

static void wait_for_copies(run *r, item *w, uint32_t under_way)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < w->copy_count; i++) {
        const copy *one = &w->copies[i];
        if (one->set >= w->sets || w->sets - one->set <= under_way) {
            w->copies[kept++] = *one;
            continue;
        }
        count_copy(r, one, -1);
        for (uint32_t k = 0; k < one->width; k++) {
            const uint64_t value =
                one->guarded_off ? 0 : read_element(r, one->binding, one->from + k);
            write_element(r, one->shared, one->to + k, seen(r, one->record, value));
        }
    }
    w->copy_count = kept;
}

static hal_status step_memory(run *r, item *w, const hal_ir_record *record)
{
    switch (record->opcode) {
    case HAL_IR_LOAD:
    case HAL_IR_STORE:
        return load_or_store(r, w, record);
    case HAL_IR_ATOMIC:
        return do_atomic(r, w, record);
    case HAL_IR_ASYNC_COPY:
        return begin_copy(r, w, record);
    case HAL_IR_ASYNC_COMMIT:
        w->sets++;
        return HAL_OK;
    default:
        wait_for_copies(r, w, (uint32_t)record->imm);
        return HAL_OK;
    }
}

static uint64_t input_of(const run *r, const item *w, const hal_ir_record *record)
{
    const hal_ir_kernel *kernel = r->kernel;
    uint64_t value = 0;
    switch (record->opcode) {
    case HAL_IR_CONSTANT:
        return kernel->constants[record->aux];
    case HAL_IR_SCALAR:
        memcpy(&value, (const char *)r->dispatch->scalars + kernel->scalars[record->aux].offset,
               hal_type_size(record->type));
        return value;
    case HAL_IR_LOCAL_ID:
        return w->local[record->aux];
    case HAL_IR_GROUP_ID:
        return r->group[record->aux];
    case HAL_IR_GROUP_COUNT:
        return r->dispatch->grid[record->aux];
    default: /* HAL_IR_LANE_ID */
        return (uint32_t)(w - r->work) % r->lanes;
    }
}

static void pack(const run *r, item *w, const hal_ir_record *record, uint64_t *out)
{
    hal_ir_value operands[4];
    const uint32_t count = hal_ir_operands(record, operands);
    for (uint32_t i = 0; i < count; i++) {
        const uint32_t width = r->kernel->records[operands[i]].width;
        memcpy(out + i * width, &w->values[r->slots[operands[i]]], width * sizeof *out);
    }
}

/* A record other than an operation of the group. */
static hal_status step(run *r, item *w)
{
    const hal_ir_kernel *kernel = r->kernel;
    const hal_ir_record *record = &kernel->records[w->at];
    uint64_t *out = &w->values[r->slots[w->at]];
    const uint64_t a = record->a == HAL_IR_NONE ? 0 : w->values[r->slots[record->a]];
    const uint64_t b = record->b == HAL_IR_NONE ? 0 : w->values[r->slots[record->b]];
    const uint64_t c = record->c == HAL_IR_NONE ? 0 : w->values[r->slots[record->c]];
    if (record->opcode >= HAL_IR_FOR && record->opcode <= HAL_IR_END) {
        return step_control(r, w, record);
    }
    if (record->opcode >= HAL_IR_LOAD && record->opcode <= HAL_IR_ASYNC_WAIT) {
        const hal_status status = step_memory(r, w, record);
        w->at += status == HAL_OK;
        return status;
    }
    switch (record->opcode) {
    case HAL_IR_CONSTANT:
    case HAL_IR_SCALAR:
    case HAL_IR_LOCAL_ID:
    case HAL_IR_GROUP_ID:
    case HAL_IR_GROUP_COUNT:
    case HAL_IR_LANE_ID:
        *out = input_of(r, w, record);
        break;
    case HAL_IR_SELECT:
        *out = a ? b : c;
        break;
    case HAL_IR_PACK:
        pack(r, w, record, out);
        break;
    case HAL_IR_EXTRACT:
        *out = w->values[r->slots[record->a] + (uint32_t)record->imm];
        break;
    case HAL_IR_VAR:
    case HAL_IR_GET:
        *out = a;
        break;
    case HAL_IR_BARRIER: /* passed by */
        break;
    case HAL_IR_SET:
        w->values[r->slots[record->a]] = b;
        break;
    default:
        *out = kit_operate(record, kernel->records[record->a].type, a, b, c);
        break;
    }
    if (record->type != HAL_TYPE_NONE) {
        show(r, record, out);
    }
    w->at++;
    return HAL_OK;
}

static hal_status run_to_meeting(run *r, item *w)
{
    hal_status status = HAL_OK;
    while (status == HAL_OK && w->at < r->kernel->record_count && !stands(r, w)) {
        status = step(r, w);
    }
    return status;
}

/* The elements of a word, `stride` apart. */
static void take_word(hal_type type, uint64_t word, double *elements, uint32_t stride)
{
    if (type == HAL_TYPE_F64) {
        memcpy(elements, &word, sizeof word);
        return;
    }
    const uint32_t each = type == HAL_TYPE_F32 ? 1 : 2;
    for (uint32_t i = 0; i < each; i++) {
        const uint64_t stored = each == 1 ? word & 0xffffe000 : word >> 16 * i & 0xffff;
        const uint32_t bits = (uint32_t)kit_from_storage(type, stored);
        float value;
        memcpy(&value, &bits, sizeof value);
        elements[i * stride] = value;
    }
}

/* An element of C and the sum of products: of F64 by FMA; else in double, rounded once. */
static uint64_t add_products(hal_type type, uint64_t bits, const double *a, const double *b,
                             uint32_t depth)
{
    double sum;
    float single;
    uint32_t word = (uint32_t)bits;
    if (type == HAL_TYPE_F64) {
        memcpy(&sum, &bits, sizeof sum);
        for (uint32_t k = 0; k < depth; k++) {
            sum = fma(a[k], b[k * 8], sum);
        }
        memcpy(&bits, &sum, sizeof sum);
        return bits;
    }
    memcpy(&single, &word, sizeof single);
    sum = single;
    for (uint32_t k = 0; k < depth; k++) {
        sum += a[k] * b[k * 8];
    }
    single = (float)sum;
    memcpy(&word, &single, sizeof word);
    return word;
}

/* C + A B over 32 lanes, as ir.h lays the tiles out. */
static void meet_matrices(run *r, uint32_t first, const hal_ir_record *record, uint32_t index)
{
    double a[16][16], b[16][8];
    const hal_type type = (hal_type)record->aux;
    const uint32_t each = hal_type_size(type) == 2 ? 2 : 1;
    for (uint32_t lane = 0; lane < HAL_IR_MATRIX_LANES; lane++) {
        const uint64_t *values = r->work[first + lane].values;
        const uint32_t g = lane / 4, t = lane % 4;
        for (uint32_t i = 0; i < 4; i++) {
            take_word(type, values[r->slots[record->a] + i],
                      &a[g + i % 2 * 8][(t + i / 2 * 4) * each], 1);
        }
        for (uint32_t i = 0; i < 2; i++) {
            take_word(type, values[r->slots[record->b] + i], &b[(t + 4 * i) * each][g], 8);
        }
    }
    for (uint32_t lane = 0; lane < HAL_IR_MATRIX_LANES; lane++) {
        uint64_t *values = r->work[first + lane].values;
        for (uint32_t i = 0; i < 4; i++) {
            const uint32_t row = lane / 4 + i / 2 * 8, column = lane % 4 * 2 + i % 2;
            values[r->slots[index] + i] = add_products(type, values[r->slots[record->c] + i],
                                                       a[row], &b[0][column], 8 * each);
        }
        show(r, record, &values[r->slots[index]]);
    }
}

static void meet_subgroup(run *r, uint32_t first, const hal_ir_record *record, uint32_t index)
{
    static const uint32_t opcodes[HAL_IR_REDUCE_COUNT] = {HAL_IR_ADD, HAL_IR_MIN, HAL_IR_MAX};
    const uint32_t left = r->items - first;
    const uint32_t lanes = left < r->lanes ? left : r->lanes;
    uint64_t *values = r->gathered + first;
    if (record->opcode == HAL_IR_SUBGROUP_REDUCE) {
        /* The reduction of a butterfly in lane 0; missing lanes take no part. */
        for (uint32_t distance = 1; distance < lanes; distance *= 2) {
            for (uint32_t lane = 0; lane + distance < lanes; lane += 2 * distance) {
                values[lane] = kit_combine(opcodes[record->aux], record->type, values[lane],
                                           values[lane + distance]);
            }
        }
    }
    for (uint32_t lane = 0; lane < lanes; lane++) {
        item *w = &r->work[first + lane];
        uint32_t source = 0;
        if (record->opcode == HAL_IR_SHUFFLE) {
            source = (uint32_t)w->values[r->slots[record->b]] % r->lanes;
        } else if (record->opcode == HAL_IR_SHUFFLE_XOR) {
            source = (lane ^ (uint32_t)record->imm) % r->lanes;
        }
        w->values[r->slots[index]] = values[source < lanes ? source : lane];
        show(r, record, &w->values[r->slots[index]]);
    }
}

/* All work-items have reached one barrier or subgroup operation. */
static hal_status meet(run *r)
{
    const uint32_t index = r->work[0].at;
    const hal_ir_record *record = &r->kernel->records[index];
    if (record->opcode == HAL_IR_MATRIX_MULTIPLY) {
        if (r->lanes != HAL_IR_MATRIX_LANES) {
            return fail(r, &r->work[0], HAL_ERROR_INVALID_ARGUMENT,
                        "matrices lie over %u lanes, a subgroup has %u", HAL_IR_MATRIX_LANES,
                        r->lanes);
        }
        for (uint32_t first = 0; first < r->items; first += r->lanes) {
            meet_matrices(r, first, record, index);
        }
    } else if (record->opcode != HAL_IR_BARRIER) {
        for (uint32_t i = 0; i < r->items; i++) {
            r->gathered[i] = r->work[i].values[r->slots[record->a]];
        }
        for (uint32_t first = 0; first < r->items; first += r->lanes) {
            meet_subgroup(r, first, record, index);
        }
    }
    for (uint32_t i = 0; i < r->items; i++) {
        r->work[i].at++;
    }
    return HAL_OK;
}

static hal_status run_group(run *r)
{
    for (uint32_t i = 0; i < r->items; i++) {
        r->work[i].at = 0;
        r->work[i].sets = 0;
        while (r->work[i].copy_count > 0) {
            count_copy(r, &r->work[i].copies[--r->work[i].copy_count], -1);
        }
    }
    hal_status status = HAL_OK;
    while (status == HAL_OK) {
        for (uint32_t i = 0; i < r->items && status == HAL_OK; i++) {
            status = run_to_meeting(r, &r->work[i]);
        }
        for (uint32_t i = 1; i < r->items && status == HAL_OK; i++) {
            if (r->work[i].at != r->work[0].at) {
                status = fail(r, &r->work[i], HAL_ERROR_INVALID_ARGUMENT,
                              "stands here while another work-item of its group is at record %u",
                              r->work[0].at);
            }
        }
        if (status == HAL_OK && r->work[0].at == r->kernel->record_count) {
            break;
        }
        status = status == HAL_OK ? meet(r) : status;
    }
    return status;
}

static void release(run *r)
{
    for (uint32_t i = 0; r->work && i < r->items; i++) {
        free(r->work[i].copies);
    }
    free(r->slots);
    free(r->matches);
    free(r->work);
    free(r->values);
    free(r->shared);
    free(r->in_flight);
    free(r->gathered);
}

hal_status kit_interpret(const kit_dispatch *dispatch, kit_problem *problem)
{
    run r = {.dispatch = dispatch, .kernel = dispatch->kernel, .problem = problem};
    problem->text[0] = 0;
    hal_status status = prepare(&r);
    for (uint32_t z = 0; z < dispatch->grid[2] && status == HAL_OK; z++) {
        for (uint32_t y = 0; y < dispatch->grid[1] && status == HAL_OK; y++) {
            for (uint32_t x = 0; x < dispatch->grid[0] && status == HAL_OK; x++) {
                r.group[0] = x;
                r.group[1] = y;
                r.group[2] = z;
                status = run_group(&r);
            }
        }
    }
    release(&r);
    return status;
}

hal_status kit_evaluate(const hal_ir_kernel *fragment, const uint64_t *inputs, uint64_t *outputs)
{
    kit_problem problem;
    const kit_dispatch dispatch = {.kernel = fragment, .grid = {1, 1, 1}};
    run r = {.dispatch = &dispatch, .kernel = fragment, .problem = &problem};
    hal_status status = prepare(&r);
    for (uint32_t i = 0; i < fragment->record_count && status == HAL_OK; i++) {
        const hal_ir_record *record = &fragment->records[i];
        item *w = &r.work[0];
        w->at = i;
        if (record->opcode == HAL_IR_INPUT) {
            w->values[r.slots[i]] = inputs[record->aux];
        } else if (record->opcode == HAL_IR_OUTPUT) {
            outputs[record->aux] = w->values[r.slots[record->a]];
        } else {
            status = step(&r, w);
        }
    }
    release(&r);
    return status;
}
