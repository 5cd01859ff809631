/* The verifier: checks every rule of hal/ir.h. It trusts nothing except that arrays are as long as
 * their counts. Takes time linear in the records. */
#include "internal.h"
#include "base/sized.h"
#include "base/status.h"

#include <hal/ir_uniform.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* Size, version and pointers: checked before anything else is read. */
static bool check_shape(const hal_ir_kernel *kernel, hal_ir_problem *problem)
{
    if (kernel->size < HAL_IR_KERNEL_LEAST_BYTES || kernel->version < HAL_IR_LEAST_VERSION ||
        kernel->version > HAL_IR_VERSION) {
        return hal_ir_reject(problem,
                             "size and version: expected at least %zu bytes and version %u to "
                             "%u, got size %u, version %u",
                             HAL_IR_KERNEL_LEAST_BYTES, HAL_IR_LEAST_VERSION, HAL_IR_VERSION,
                             kernel->size, kernel->version);
    }
    if ((kernel->record_count > 0 && !kernel->records) ||
        (kernel->memory_count > 0 && !kernel->memories) ||
        (kernel->scalar_count > 0 && !kernel->scalars) ||
        (kernel->constant_count > 0 && !kernel->constants) || !kernel->names) {
        return hal_ir_reject(problem, "arrays: expected one for each count above 0, got null");
    }
    return true;
}

static bool verify_record(const hal_ir_kernel *kernel, uint32_t index, hal_ir_scope *scope,
                          hal_ir_place *places, hal_ir_problem *problem)
{
    const hal_ir_record *record = &kernel->records[index];
    hal_type type;
    uint32_t width;
    if (!hal_ir_check_record(kernel, index, record, &type, &width, problem)) {
        return false;
    }
    if (type != record->type || width != record->width) {
        return hal_ir_reject(problem, "result: expected type %u and width %u, got %u and %u", type,
                             width, record->type, record->width);
    }
    /* Before the record opens or closes a block: its operands belong to the blocks around it. */
    if (!hal_ir_scope_check(scope, kernel->records, places, index, record, problem)) {
        return false;
    }
    return hal_ir_scope_pass(scope, kernel->records, index, &places[index], problem);
}

static hal_status fail_record(const hal_ir_kernel *kernel, uint32_t record,
                              const hal_ir_problem *problem)
{
    const char *name = hal_ir_opcode_name(kernel->records[record].opcode);
    return hal_fail(HAL_ERROR_INVALID_IR, "%s %s, record %u (%s): %s",
                    kernel->flags & HAL_IR_FRAGMENT ? "fragment" : "kernel",
                    kernel->names + kernel->name, record, !name ? "?" : name, problem->text);
}

/* Each input and output of a fragment has one record. */
static bool check_fragment_values(const hal_ir_kernel *kernel, hal_ir_problem *problem)
{
    uint64_t inputs = 0, outputs = 0; /* HAL_IR_MAX_FRAGMENT_VALUES bits */
    uint32_t input_records = 0, output_records = 0;
    for (uint32_t i = 0; i < kernel->record_count; i++) {
        const hal_ir_record *record = &kernel->records[i];
        if (record->opcode == HAL_IR_INPUT) {
            inputs |= UINT64_C(1) << record->aux;
            input_records++;
        } else if (record->opcode == HAL_IR_OUTPUT) {
            outputs |= UINT64_C(1) << record->aux;
            output_records++;
        }
    }
    const uint32_t distinct_inputs = (uint32_t)__builtin_popcountll(inputs);
    const uint32_t distinct_outputs = (uint32_t)__builtin_popcountll(outputs);
    if (input_records != kernel->input_count || distinct_inputs != kernel->input_count) {
        return hal_ir_reject(problem, "inputs: expected one record of each of %u, got %u of %u",
                             kernel->input_count, input_records, distinct_inputs);
    }
    if (output_records != kernel->output_count || distinct_outputs != kernel->output_count) {
        return hal_ir_reject(problem, "outputs: expected one record of each of %u, got %u of %u",
                             kernel->output_count, output_records, distinct_outputs);
    }
    return true;
}

static hal_status verify_records(const hal_ir_kernel *kernel, uint32_t *wrong)
{
    hal_ir_problem problem;
    hal_ir_scope scope = {0};
    hal_ir_place *places = malloc((kernel->record_count + 1) * sizeof *places);
    if (!places) {
        return hal_fail(HAL_ERROR_OUT_OF_MEMORY, "hal_ir_verify: kernel %s: no host memory",
                        kernel->names + kernel->name);
    }
    hal_status status = HAL_OK;
    for (uint32_t i = 0; i < kernel->record_count && status == HAL_OK; i++) {
        if (!verify_record(kernel, i, &scope, places, &problem)) {
            *wrong = i;
            status = fail_record(kernel, i, &problem);
        }
    }
    free(places);
    if (status == HAL_OK && scope.depth > 0) {
        hal_ir_reject(&problem, "expected an end of the block");
        *wrong = scope.opener[scope.depth];
        status = fail_record(kernel, *wrong, &problem);
    }
    return status;
}

/* Groups with matrix units consist of whole subgroups. */
static hal_status verify_matrices(const hal_ir_kernel *kernel, uint32_t *wrong)
{
    const uint32_t items = hal_ir_group_items(kernel);
    for (uint32_t i = 0; i < kernel->record_count && items % HAL_IR_MATRIX_LANES != 0; i++) {
        if (kernel->records[i].opcode == HAL_IR_MATRIX_MULTIPLY) {
            hal_ir_problem problem;
            hal_ir_reject(&problem, "group size: expected a multiple of %u, got %u work-items",
                          HAL_IR_MATRIX_LANES, items);
            *wrong = i;
            return fail_record(kernel, i, &problem);
        }
    }
    return HAL_OK;
}

static bool is_convergent(const hal_ir_record *record)
{
    return (hal_ir_info_of(record->opcode)->traits & HAL_IR_TRAIT_CONVERGENT) != 0;
}

static bool has_convergent(const hal_ir_kernel *kernel)
{
    for (uint32_t i = 0; i < kernel->record_count; i++) {
        if (is_convergent(&kernel->records[i])) {
            return true;
        }
    }
    return false;
}

static hal_status verify_uniformity(const hal_ir_kernel *kernel, uint32_t *wrong)
{
    uint32_t *scratch = malloc(HAL_IR_UNIFORM_SCRATCH(kernel->record_count) * sizeof *scratch);
    uint8_t *uniform = malloc(kernel->record_count);
    hal_status status = HAL_OK;
    if (!scratch || !uniform) {
        status = hal_fail(HAL_ERROR_OUT_OF_MEMORY, "hal_ir_verify: kernel %s: no host memory",
                          kernel->names + kernel->name);
    } else {
        hal_ir_uniformity(kernel, scratch, uniform);
    }
    for (uint32_t i = 0; i < kernel->record_count && status == HAL_OK; i++) {
        if (is_convergent(&kernel->records[i]) && !(uniform[i] & HAL_IR_UNIFORM_CONTROL)) {
            hal_ir_problem problem;
            hal_ir_reject(&problem, "expected control that is uniform in the work-group; move it "
                                    "out of the if or for, or make their conditions and bounds "
                                    "uniform");
            *wrong = i;
            status = fail_record(kernel, i, &problem);
        }
    }
    free(scratch);
    free(uniform);
    return status;
}

static bool check_counts(const hal_ir_kernel *kernel, hal_ir_problem *problem)
{
    if ((kernel->flags & ~HAL_IR_FRAGMENT) != 0 || kernel->reserved != 0) {
        return hal_ir_reject(problem,
                             "flags: expected HAL_IR_FRAGMENT or 0, and reserved 0, got "
                             "0x%x and %u",
                             kernel->flags, kernel->reserved);
    }
    if (kernel->record_count > HAL_IR_MAX_RECORDS || kernel->constant_count > HAL_IR_MAX_RECORDS) {
        return hal_ir_reject(problem,
                             "records and constants: expected at most %u each, got %u "
                             "and %u",
                             HAL_IR_MAX_RECORDS, kernel->record_count, kernel->constant_count);
    }
    if (kernel->binding_count > HAL_IR_MAX_BINDINGS ||
        kernel->binding_count > kernel->memory_count ||
        kernel->memory_count - kernel->binding_count > HAL_IR_MAX_SHARED) {
        return hal_ir_reject(problem,
                             "memories: expected at most %u bindings and %u shared "
                             "arrays, got %u bindings of %u memories",
                             HAL_IR_MAX_BINDINGS, HAL_IR_MAX_SHARED, kernel->binding_count,
                             kernel->memory_count);
    }
    if (kernel->scalar_bytes > HAL_IR_MAX_SCALAR_BYTES ||
        kernel->scalar_count > HAL_IR_MAX_SCALAR_BYTES / 4) {
        return hal_ir_reject(problem,
                             "scalars: expected at most %u bytes, got %u scalars of %u "
                             "bytes",
                             HAL_IR_MAX_SCALAR_BYTES, kernel->scalar_count, kernel->scalar_bytes);
    }
    uint64_t items = 1;
    for (int i = 0; i < 3; i++) {
        items *= kernel->group_size[i];
        if (items == 0 || items > HAL_IR_MAX_GROUP_ITEMS) {
            return hal_ir_reject(problem,
                                 "group size: expected 1 to %u work-items, got %u x %u "
                                 "x %u",
                                 HAL_IR_MAX_GROUP_ITEMS, kernel->group_size[0],
                                 kernel->group_size[1], kernel->group_size[2]);
        }
    }
    if (!(kernel->flags & HAL_IR_FRAGMENT) &&
        (kernel->input_count != 0 || kernel->output_count != 0)) {
        return hal_ir_reject(problem, "only fragments have inputs and outputs");
    }
    return true;
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Every name is valid and ends inside the pool; those of memories and scalars differ. */
static bool check_names(const hal_ir_kernel *kernel, hal_ir_problem *problem)
{
    const char *declared[HAL_IR_MAX_BINDINGS + HAL_IR_MAX_SHARED + HAL_IR_MAX_SCALAR_BYTES / 4 + 1];
    uint32_t count = 0;
    if (kernel->name_bytes == 0 || kernel->names[kernel->name_bytes - 1] != 0) {
        return hal_ir_reject(problem, "names: expected a zero at the end");
    }
    for (uint32_t i = 0; i < 1 + kernel->memory_count + kernel->scalar_count; i++) {
        const uint32_t offset = i == 0 ? kernel->name
                                : i <= kernel->memory_count
                                    ? kernel->memories[i - 1].name
                                    : kernel->scalars[i - 1 - kernel->memory_count].name;
        if (offset >= kernel->name_bytes || !hal_ir_is_name(kernel->names + offset)) {
            return hal_ir_reject(problem,
                                 "name %u: expected a letter or _, then letters, digits "
                                 "and _, at byte %u of %u",
                                 i, offset, kernel->name_bytes);
        }
        if (i > 0) {
            declared[count++] = kernel->names + offset;
        }
    }
    qsort(declared, count, sizeof *declared, compare_names);
    for (uint32_t i = 1; i < count; i++) {
        if (strcmp(declared[i - 1], declared[i]) == 0) {
            return hal_ir_reject(problem, "name %s: expected one declaration, got two",
                                 declared[i]);
        }
    }
    return true;
}

static bool check_memories(const hal_ir_kernel *kernel, hal_ir_problem *problem)
{
    uint64_t shared_bytes = 0;
    for (uint32_t i = 0; i < kernel->memory_count; i++) {
        const hal_ir_memory *memory = &kernel->memories[i];
        const char *name = kernel->names + memory->name;
        const bool shared = hal_ir_is_shared(kernel, i);
        if (hal_type_size(memory->type) == 0) {
            return hal_ir_reject(problem, "memory %s: type: expected one of HAL_TYPE_*, got %u",
                                 name, memory->type);
        }
        if (memory->access == 0 || memory->access > HAL_ACCESS_READ_WRITE ||
            (shared && memory->access != HAL_ACCESS_READ_WRITE)) {
            return hal_ir_reject(problem, "memory %s: access: expected %s, got %u", name,
                                 shared ? "HAL_ACCESS_READ_WRITE" : "one of HAL_ACCESS_*",
                                 memory->access);
        }
        if ((memory->count != 0) != shared || memory->reserved[0] != 0 ||
            memory->reserved[1] != 0) {
            return hal_ir_reject(problem,
                                 "memory %s: count: expected %s and reserved 0 0, got "
                                 "%u and %u %u",
                                 name, shared ? "elements" : "0 for a binding", memory->count,
                                 memory->reserved[0], memory->reserved[1]);
        }
        shared_bytes += (uint64_t)memory->count * hal_type_size(memory->type);
    }
    if (shared_bytes > HAL_IR_MAX_SHARED_BYTES) {
        return hal_ir_reject(problem, "shared arrays: expected at most %u bytes, got %llu",
                             HAL_IR_MAX_SHARED_BYTES, (unsigned long long)shared_bytes);
    }
    return true;
}

static bool check_scalars(const hal_ir_kernel *kernel, hal_ir_problem *problem)
{
    uint32_t end = 0;
    for (uint32_t i = 0; i < kernel->scalar_count; i++) {
        const hal_ir_scalar *scalar = &kernel->scalars[i];
        const uint32_t bytes = hal_type_size(scalar->type);
        const char *name = kernel->names + scalar->name;
        if (scalar->type < HAL_TYPE_I32 || bytes == 0 ||
            hal_type_of_value(scalar->type) != scalar->type || scalar->reserved != 0) {
            return hal_ir_reject(problem,
                                 "scalar %s: type: expected a number type of 4 or 8 "
                                 "bytes and reserved 0, got %u and %u",
                                 name, scalar->type, scalar->reserved);
        }
        if (scalar->offset < end || scalar->offset % bytes != 0) {
            return hal_ir_reject(problem,
                                 "scalar %s: offset: expected a multiple of %u from %u "
                                 "on, got %u",
                                 name, bytes, end, scalar->offset);
        }
        end = scalar->offset + bytes;
    }
    if (end > kernel->scalar_bytes) {
        return hal_ir_reject(problem, "scalar_bytes: expected at least %u, got %u", end,
                             kernel->scalar_bytes);
    }
    return true;
}

static bool check_fragment(const hal_ir_kernel *kernel, hal_ir_problem *problem)
{
    if (kernel->memory_count != 0 || kernel->scalar_count != 0 || kernel->scalar_bytes != 0 ||
        kernel->groups_per_unit != 0 || kernel->group_size[0] != 1 || kernel->group_size[1] != 1 ||
        kernel->group_size[2] != 1) {
        return hal_ir_reject(problem, "a fragment has no memories, scalars or group size");
    }
    if (kernel->input_count > HAL_IR_MAX_FRAGMENT_VALUES ||
        kernel->output_count > HAL_IR_MAX_FRAGMENT_VALUES) {
        return hal_ir_reject(problem,
                             "inputs and outputs: expected at most %u each, got %u and "
                             "%u",
                             HAL_IR_MAX_FRAGMENT_VALUES, kernel->input_count, kernel->output_count);
    }
    return true;
}

hal_status hal_ir_verify(const hal_ir_kernel *kernel)
{
    uint32_t record;
    return hal_ir_verify_at(kernel, &record);
}

/* All but the records. */
static bool check_declarations(const hal_ir_kernel *kernel, hal_ir_problem *problem)
{
    return check_counts(kernel, problem) && check_names(kernel, problem) &&
           check_memories(kernel, problem) && check_scalars(kernel, problem) &&
           ((kernel->flags & HAL_IR_FRAGMENT) == 0 || check_fragment(kernel, problem));
}

/* What no record shows by itself. */
static hal_status verify_whole(const hal_ir_kernel *kernel, uint32_t *record)
{
    hal_ir_problem problem;
    if (!check_fragment_values(kernel, &problem)) {
        return hal_fail(HAL_ERROR_INVALID_IR, "fragment %s: %s", kernel->names + kernel->name,
                        problem.text);
    }
    const hal_status status = verify_matrices(kernel, record);
    return status == HAL_OK && has_convergent(kernel) ? verify_uniformity(kernel, record) : status;
}

static hal_status verify_kernel(const hal_ir_kernel *kernel, bool with_records, uint32_t *record)
{
    hal_ir_problem problem;
    *record = HAL_IR_NONE;
    if (!check_shape(kernel, &problem) || !check_declarations(kernel, &problem)) {
        return hal_fail(HAL_ERROR_INVALID_IR, "IR kernel: %s", problem.text);
    }
    const hal_status status = with_records ? verify_records(kernel, record) : HAL_OK;
    return status == HAL_OK ? verify_whole(kernel, record) : status;
}

hal_status hal_ir_verify_at(const hal_ir_kernel *kernel, uint32_t *record)
{
    if (!kernel) {
        return hal_fail(HAL_ERROR_INVALID_ARGUMENT,
                        "hal_ir_verify: kernel: expected a valid pointer, got null");
    }
    return verify_kernel(kernel, 1, record);
}

hal_status hal_ir_verify_appended(const hal_ir_kernel *kernel, uint32_t *record)
{
    return verify_kernel(kernel, 0, record);
}

bool hal_ir_is_name(const char *name)
{
    uint32_t length = 0;
    for (; name[length] != 0; length++) {
        const char c = name[length];
        const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
        const bool digit = c >= '0' && c <= '9';
        if (length == HAL_IR_MAX_NAME || !(letter || (digit && length > 0))) {
            return false;
        }
    }
    return length > 0;
}
