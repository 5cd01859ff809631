/* The verifier: whether a kernel keeps every rule of hal/ir.h. Called by finish and parse of the
 * builder, and by kernel creation for IR that comes from elsewhere. It trusts nothing but the
 * counts; its time is linear in the records, but for the names of at most a few hundred
 * declarations. */
#include "internal.h"
#include "base/sized.h"
#include "base/status.h"

#include <hal/ir_uniform.h>
#include <stdlib.h>
#include <string.h>

/* What has to hold before anything else of the structure may be read. */
static int check_shape(const hal_ir_kernel *kernel, hal_ir_problem *problem)
{
    if (kernel->size < HAL_IR_KERNEL_LEAST_BYTES || kernel->version < HAL_IR_LEAST_VERSION ||
        kernel->version > HAL_IR_VERSION) {
        return hal_ir_complain(problem,
                               "size %u, version %u; this hal reads versions %u to %u, at least "
                               "%zu bytes",
                               kernel->size, kernel->version, HAL_IR_LEAST_VERSION, HAL_IR_VERSION,
                               HAL_IR_KERNEL_LEAST_BYTES);
    }
    if ((kernel->record_count > 0 && kernel->records == NULL) ||
        (kernel->memory_count > 0 && kernel->memories == NULL) ||
        (kernel->scalar_count > 0 && kernel->scalars == NULL) ||
        (kernel->constant_count > 0 && kernel->constants == NULL) || kernel->names == NULL) {
        return hal_ir_complain(problem, "an array that is counted is null");
    }
    return 1;
}

static int check_record_at(const hal_ir_kernel *kernel, uint32_t index, hal_ir_scope *scope,
                           hal_ir_place *places, hal_ir_problem *problem)
{
    const hal_ir_record *record = &kernel->records[index];
    hal_type type;
    uint32_t width;
    if (!hal_ir_check_record(kernel, index, record, &type, &width, problem)) {
        return 0;
    }
    if (type != record->type || width != record->width) {
        return hal_ir_complain(problem, "the result is of type %u and width %u, not %u and %u",
                               type, width, record->type, record->width);
    }
    /* The operands are seen from outside of the block that the record may open, or close. */
    hal_ir_value operands[4];
    const uint32_t count = hal_ir_operands(record, operands);
    for (uint32_t k = 0; k < count; k++) {
        if (!hal_ir_scope_sees(scope, places[operands[k]])) {
            return hal_ir_complain(problem,
                                   "operand %%%u (%s) was made in a block that has ended; carry "
                                   "it out in a var",
                                   operands[k],
                                   hal_ir_opcode_name(kernel->records[operands[k]].opcode));
        }
    }
    if (record->opcode == HAL_IR_FOR && kernel->records[record->c].opcode == HAL_IR_CONSTANT) {
        const uint64_t step = kernel->constants[kernel->records[record->c].aux];
        if (step == 0 || (record->type == HAL_TYPE_I32 && step > INT32_MAX)) {
            return hal_ir_complain(problem, "the step is not above 0");
        }
    }
    return hal_ir_scope_pass(scope, kernel->records, index, &places[index], problem);
}

static hal_status reject(const hal_ir_kernel *kernel, uint32_t record,
                         const hal_ir_problem *problem)
{
    const char *name = hal_ir_opcode_name(kernel->records[record].opcode);
    return hal_fail(HAL_ERROR_INVALID_IR, "%s %s, record %u (%s): %s",
                    kernel->flags & HAL_IR_FRAGMENT ? "fragment" : "kernel",
                    kernel->names + kernel->name, record, name == NULL ? "?" : name,
                    problem->text);
}

/* A fragment's inputs and outputs: every number once. */
static int check_numbers_once(const hal_ir_kernel *kernel, hal_ir_problem *problem)
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
        return hal_ir_complain(problem, "of %u inputs %u are declared, in %u places; each is "
                                        "declared once",
                               kernel->input_count, distinct_inputs, input_records);
    }
    if (output_records != kernel->output_count || distinct_outputs != kernel->output_count) {
        return hal_ir_complain(problem, "of %u outputs %u are given, in %u places; each is given "
                                        "once",
                               kernel->output_count, distinct_outputs, output_records);
    }
    return 1;
}

static hal_status verify_records(const hal_ir_kernel *kernel, uint32_t *wrong)
{
    hal_ir_problem problem;
    hal_ir_scope scope = {0};
    hal_ir_place *places = malloc((kernel->record_count + 1) * sizeof *places);
    if (places == NULL) {
        return hal_fail(HAL_ERROR_OUT_OF_MEMORY, "verifying kernel %s: no host memory",
                        kernel->names + kernel->name);
    }
    hal_status status = HAL_OK;
    for (uint32_t i = 0; i < kernel->record_count && status == HAL_OK; i++) {
        if (!check_record_at(kernel, i, &scope, places, &problem)) {
            *wrong = i;
            status = reject(kernel, i, &problem);
        }
    }
    free(places);
    if (status == HAL_OK && scope.depth > 0) {
        hal_ir_complain(&problem, "the block has no end");
        *wrong = scope.opener[scope.depth];
        status = reject(kernel, *wrong, &problem);
    }
    if (status == HAL_OK && !check_numbers_once(kernel, &problem)) {
        status = hal_fail(HAL_ERROR_INVALID_IR, "fragment %s: %s", kernel->names + kernel->name,
                          problem.text);
    }
    return status;
}

static hal_status verify_uniformity(const hal_ir_kernel *kernel, uint32_t *wrong)
{
    uint32_t *scratch = malloc(HAL_IR_UNIFORM_SCRATCH(kernel->record_count) * sizeof *scratch);
    uint8_t *uniform = malloc(kernel->record_count);
    hal_status status = HAL_OK;
    if (scratch == NULL || uniform == NULL) {
        status = hal_fail(HAL_ERROR_OUT_OF_MEMORY, "verifying kernel %s: no host memory",
                          kernel->names + kernel->name);
    } else {
        hal_ir_uniformity(kernel, scratch, uniform);
    }
    for (uint32_t i = 0; i < kernel->record_count && status == HAL_OK; i++) {
        if ((hal_ir_info_of(kernel->records[i].opcode)->traits & HAL_IR_TRAIT_CONVERGENT) &&
            !(uniform[i] & HAL_IR_UNIFORM_CONTROL)) {
            hal_ir_problem problem;
            hal_ir_complain(&problem, "stands where work-items of one group may take different "
                                      "ways; move it out of the if or for, or make their "
                                      "conditions and bounds uniform");
            *wrong = i;
            status = reject(kernel, i, &problem);
        }
    }
    free(scratch);
    free(uniform);
    return status;
}

static int check_counts(const hal_ir_kernel *kernel, hal_ir_problem *problem)
{
    if ((kernel->flags & ~HAL_IR_FRAGMENT) != 0 || kernel->reserved != 0) {
        return hal_ir_complain(problem, "flags 0x%x or reserved %u are not known", kernel->flags,
                               kernel->reserved);
    }
    if (kernel->record_count > HAL_IR_MAX_RECORDS || kernel->constant_count > HAL_IR_MAX_RECORDS) {
        return hal_ir_complain(problem, "%u records and %u constants; at most %u each",
                               kernel->record_count, kernel->constant_count, HAL_IR_MAX_RECORDS);
    }
    if (kernel->binding_count > HAL_IR_MAX_BINDINGS ||
        kernel->binding_count > kernel->memory_count ||
        kernel->memory_count - kernel->binding_count > HAL_IR_MAX_SHARED) {
        return hal_ir_complain(problem, "%u memories with %u bindings; at most %u bindings and %u "
                                        "shared arrays",
                               kernel->memory_count, kernel->binding_count, HAL_IR_MAX_BINDINGS,
                               HAL_IR_MAX_SHARED);
    }
    if (kernel->scalar_bytes > HAL_IR_MAX_SCALAR_BYTES ||
        kernel->scalar_count > HAL_IR_MAX_SCALAR_BYTES / 4) {
        return hal_ir_complain(problem, "%u scalars of %u bytes; at most %u bytes",
                               kernel->scalar_count, kernel->scalar_bytes, HAL_IR_MAX_SCALAR_BYTES);
    }
    uint64_t items = 1;
    for (int i = 0; i < 3; i++) {
        items *= kernel->group_size[i];
        if (items == 0 || items > HAL_IR_MAX_GROUP_ITEMS) {
            return hal_ir_complain(problem, "group size %u x %u x %u; 1 to %u work-items",
                                   kernel->group_size[0], kernel->group_size[1],
                                   kernel->group_size[2], HAL_IR_MAX_GROUP_ITEMS);
        }
    }
    if (!(kernel->flags & HAL_IR_FRAGMENT) &&
        (kernel->input_count != 0 || kernel->output_count != 0)) {
        return hal_ir_complain(problem, "only fragments have inputs and outputs");
    }
    return 1;
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Every name is one and ends inside the pool; those of memories and scalars differ. */
static int check_names(const hal_ir_kernel *kernel, hal_ir_problem *problem)
{
    const char *declared[HAL_IR_MAX_BINDINGS + HAL_IR_MAX_SHARED + HAL_IR_MAX_SCALAR_BYTES / 4 + 1];
    uint32_t count = 0;
    if (kernel->name_bytes == 0 || kernel->names[kernel->name_bytes - 1] != 0) {
        return hal_ir_complain(problem, "the names do not end in a zero");
    }
    for (uint32_t i = 0; i < 1 + kernel->memory_count + kernel->scalar_count; i++) {
        const uint32_t offset = i == 0 ? kernel->name
                                : i <= kernel->memory_count
                                    ? kernel->memories[i - 1].name
                                    : kernel->scalars[i - 1 - kernel->memory_count].name;
        if (offset >= kernel->name_bytes || !hal_ir_is_name(kernel->names + offset)) {
            return hal_ir_complain(problem, "name %u, at byte %u of %u, is not a letter or _ "
                                            "followed by letters, digits and _",
                                   i, offset, kernel->name_bytes);
        }
        if (i > 0) {
            declared[count++] = kernel->names + offset;
        }
    }
    qsort(declared, count, sizeof *declared, compare_names);
    for (uint32_t i = 1; i < count; i++) {
        if (strcmp(declared[i - 1], declared[i]) == 0) {
            return hal_ir_complain(problem, "the name %s is given twice", declared[i]);
        }
    }
    return 1;
}

static int check_memories(const hal_ir_kernel *kernel, hal_ir_problem *problem)
{
    uint64_t shared_bytes = 0;
    for (uint32_t i = 0; i < kernel->memory_count; i++) {
        const hal_ir_memory *memory = &kernel->memories[i];
        const char *name = kernel->names + memory->name;
        const int shared = hal_ir_is_shared(kernel, i);
        if (hal_type_size(memory->type) == 0) {
            return hal_ir_complain(problem, "memory %s: %u is no type", name, memory->type);
        }
        if (memory->access == 0 || memory->access > HAL_ACCESS_READ_WRITE ||
            (shared && memory->access != HAL_ACCESS_READ_WRITE)) {
            return hal_ir_complain(problem, "memory %s: access %u is not fit for a %s", name,
                                   memory->access, shared ? "shared array" : "binding");
        }
        if ((memory->count != 0) != shared || memory->reserved[0] != 0 ||
            memory->reserved[1] != 0) {
            return hal_ir_complain(problem, "memory %s: a %s of %u elements, reserved %u %u", name,
                                   shared ? "shared array" : "binding", memory->count,
                                   memory->reserved[0], memory->reserved[1]);
        }
        shared_bytes += (uint64_t)memory->count * hal_type_size(memory->type);
    }
    if (shared_bytes > HAL_IR_MAX_SHARED_BYTES) {
        return hal_ir_complain(problem, "shared arrays of %llu bytes, at most %u",
                               (unsigned long long)shared_bytes, HAL_IR_MAX_SHARED_BYTES);
    }
    return 1;
}

static int check_scalars(const hal_ir_kernel *kernel, hal_ir_problem *problem)
{
    uint32_t end = 0;
    for (uint32_t i = 0; i < kernel->scalar_count; i++) {
        const hal_ir_scalar *scalar = &kernel->scalars[i];
        const uint32_t bytes = hal_type_size(scalar->type);
        const char *name = kernel->names + scalar->name;
        if (scalar->type < HAL_TYPE_I32 || bytes == 0 ||
            hal_type_of_value(scalar->type) != scalar->type || scalar->reserved != 0) {
            return hal_ir_complain(problem, "scalar %s: type %u, reserved %u", name, scalar->type,
                                   scalar->reserved);
        }
        if (scalar->offset < end || scalar->offset % bytes != 0) {
            return hal_ir_complain(problem, "scalar %s: offset %u is misaligned, or overlaps the "
                                            "scalar before it",
                                   name, scalar->offset);
        }
        end = scalar->offset + bytes;
    }
    if (end > kernel->scalar_bytes) {
        return hal_ir_complain(problem, "scalars end at byte %u of %u", end, kernel->scalar_bytes);
    }
    return 1;
}

static int check_fragment(const hal_ir_kernel *kernel, hal_ir_problem *problem)
{
    if (kernel->memory_count != 0 || kernel->scalar_count != 0 || kernel->scalar_bytes != 0 ||
        kernel->groups_per_unit != 0 || kernel->group_size[0] != 1 || kernel->group_size[1] != 1 ||
        kernel->group_size[2] != 1) {
        return hal_ir_complain(problem, "a fragment has no memories, scalars or group size");
    }
    if (kernel->input_count > HAL_IR_MAX_FRAGMENT_VALUES ||
        kernel->output_count > HAL_IR_MAX_FRAGMENT_VALUES) {
        return hal_ir_complain(problem, "%u inputs and %u outputs; at most %u each",
                               kernel->input_count, kernel->output_count,
                               HAL_IR_MAX_FRAGMENT_VALUES);
    }
    return 1;
}

hal_status hal_ir_verify(const hal_ir_kernel *kernel)
{
    uint32_t record;
    return hal_ir_verify_at(kernel, &record);
}

hal_status hal_ir_verify_at(const hal_ir_kernel *kernel, uint32_t *record)
{
    hal_ir_problem problem;
    *record = HAL_IR_NONE;
    if (kernel == NULL) {
        return hal_fail(HAL_ERROR_INVALID_ARGUMENT, "verifying IR: `kernel` is null");
    }
    if (!check_shape(kernel, &problem) || !hal_ir_check_declarations(kernel, &problem)) {
        return hal_fail(HAL_ERROR_INVALID_IR, "IR kernel: %s", problem.text);
    }
    hal_status status = verify_records(kernel, record);
    if (status == HAL_OK && !(kernel->flags & HAL_IR_FRAGMENT) && kernel->record_count > 0) {
        status = verify_uniformity(kernel, record);
    }
    return status;
}

int hal_ir_is_name(const char *name)
{
    uint32_t length = 0;
    for (; name[length] != 0; length++) {
        const char c = name[length];
        const int letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
        const int digit = c >= '0' && c <= '9';
        if (length == HAL_IR_MAX_NAME || !(letter || (digit && length > 0))) {
            return 0;
        }
    }
    return length > 0;
}

int hal_ir_check_declarations(const hal_ir_kernel *kernel, hal_ir_problem *problem)
{
    return check_counts(kernel, problem) && check_names(kernel, problem) &&
           check_memories(kernel, problem) && check_scalars(kernel, problem) &&
           ((kernel->flags & HAL_IR_FRAGMENT) == 0 || check_fragment(kernel, problem));
}
