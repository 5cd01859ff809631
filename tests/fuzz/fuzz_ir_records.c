/* Fuzz target: the verifier and hostile records. Fields of a valid kernel are overwritten; its
 * arrays have exactly the counts that it claims, so that the address sanitizer sees every read
 * beyond them. A kernel that is still accepted must print and read back to the same kernel. Run by
 * ./dev check as the ctest fuzz_ir_records. */
#include <hal/ir_build.h>
#include <stdlib.h>
#include <string.h>

static const char good_text[] = "kernel good\n"
                                "group 64 1 1\n"
                                "binding x f16 read\n"
                                "binding y f32 read_write\n"
                                "shared tile u32 64\n"
                                "scalar n u32 0\n"
                                "scalar alpha f64 8\n"
                                "  %0 = scalar u32 n\n"
                                "  %1 = scalar f64 alpha\n"
                                "  %2 = local_id u32 x\n"
                                "  %3 = constant u32 1\n"
                                "  %4 = lt bool %2, %0\n"
                                "  %5 = load f32x4 x[%2 + 8] if %4\n"
                                "  %6 = extract f32 %5, 3\n"
                                "  %7 = fma f32 %6, %6, %6\n"
                                "  %8 = exp f32 %7\n"
                                "  %9 = var f32 %8\n"
                                "  %10 = for u32 %3, %0, %3\n"
                                "    %11 = get f32 %9\n"
                                "    if %4\n"
                                "      set %9, %11\n"
                                "    else\n"
                                "      %15 = atomic add u32 tile[%2], %10\n"
                                "    end\n"
                                "    barrier\n"
                                "  end\n"
                                "  %19 = pack f32x2 %8, %6\n"
                                "  store y[%2], %19\n"
                                "  %21 = subgroup_reduce max u32 %2\n"
                                "  %22 = cast f64 %21\n"
                                "  %23 = mul f64 %22, %1\n";

/* An element of an input: a field of the kernel or of a record, and its new value. */
typedef struct {
    uint8_t record;
    uint8_t field;
    int8_t value;
} change;

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* NULL for 0 bytes. */
static void *exact_copy(const void *data, size_t size)
{
    void *copy = size ? malloc(size) : NULL;
    if (copy) {
        memcpy(copy, data, size);
    }
    return copy;
}

/* Counts only shrink, since hal_ir_verify trusts them. */
static void change_kernel(hal_ir_kernel *kernel, uint8_t field, uint32_t value)
{
    switch (field % 14) {
    case 0:
        kernel->size = value;
        break;
    case 1:
        kernel->version = value;
        break;
    case 2:
        kernel->flags = value;
        break;
    case 3:
        kernel->name = value;
        break;
    case 4:
        kernel->group_size[value % 3] = value;
        break;
    case 5:
        kernel->record_count = value % (kernel->record_count + 1);
        break;
    case 6:
        kernel->memory_count = value % (kernel->memory_count + 1);
        break;
    case 7:
        kernel->binding_count = value;
        break;
    case 8:
        kernel->scalar_count = value % (kernel->scalar_count + 1);
        break;
    case 9:
        kernel->scalar_bytes = value;
        break;
    case 10:
        kernel->constant_count = value % (kernel->constant_count + 1);
        break;
    case 11:
        kernel->name_bytes = value % (kernel->name_bytes + 1);
        break;
    case 12:
        kernel->input_count = value;
        break;
    default:
        kernel->output_count = value;
        break;
    }
}

static void apply(hal_ir_kernel *kernel, hal_ir_record *records, change wanted)
{
    /* Small values are offsets of valid numbers; others are HAL_IR_NONE, single bits and limits. */
    const uint32_t value = wanted.value == -1    ? HAL_IR_NONE
                           : wanted.value == -2  ? INT32_MAX
                           : wanted.value < -100 ? UINT32_C(1) << (wanted.value & 31)
                                                 : (uint32_t)(int32_t)wanted.value;
    if (wanted.record >= kernel->record_count) {
        change_kernel(kernel, wanted.field, value);
        return;
    }
    hal_ir_record *record = &records[wanted.record];
    switch (wanted.field % 11) {
    case 0:
        record->opcode = (uint16_t)value;
        break;
    case 1:
        record->type = (uint8_t)value;
        break;
    case 2:
        record->width = (uint8_t)value;
        break;
    case 3:
        record->a = value;
        break;
    case 4:
        record->b = value;
        break;
    case 5:
        record->c = value;
        break;
    case 6:
        record->d = value;
        break;
    case 7:
        record->aux = value;
        break;
    case 8:
        record->imm = (int32_t)value;
        break;
    case 9:
        record->flags = value;
        break;
    default:
        *record = records[(uint8_t)wanted.value % kernel->record_count];
        break;
    }
}

static void must_read_back(const hal_ir_kernel *kernel)
{
    char *text = NULL;
    hal_ir_kernel *copy = NULL;
    if (hal_ir_print(kernel, &text) != HAL_OK ||
        hal_ir_parse(text, strlen(text), &copy) != HAL_OK) {
        abort();
    }
    uint64_t hash[2], hash_of_copy[2];
    hal_ir_hash(kernel, hash);
    hal_ir_hash(copy, hash_of_copy);
    if (memcmp(hash, hash_of_copy, sizeof(hash)) != 0) {
        abort();
    }
    free(text);
    hal_ir_kernel_destroy(copy);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static hal_ir_kernel *good;
    if (!good && hal_ir_parse(good_text, strlen(good_text), &good) != HAL_OK) {
        abort();
    }
    hal_ir_kernel kernel = *good;
    hal_ir_record *records = exact_copy(good->records, good->record_count * sizeof(*records));
    for (size_t i = 0; i + sizeof(change) <= size; i += sizeof(change)) {
        change next;
        memcpy(&next, data + i, sizeof(next));
        apply(&kernel, records, next);
    }
    kernel.records = exact_copy(records, kernel.record_count * sizeof(*records));
    kernel.memories = exact_copy(good->memories, kernel.memory_count * sizeof(*good->memories));
    kernel.scalars = exact_copy(good->scalars, kernel.scalar_count * sizeof(*good->scalars));
    kernel.constants = exact_copy(good->constants, kernel.constant_count * sizeof(uint64_t));
    kernel.names = exact_copy(good->names, kernel.name_bytes);
    if (hal_ir_verify(&kernel) == HAL_OK) {
        must_read_back(&kernel);
    }
    free((void *)kernel.records);
    free((void *)kernel.memories);
    free((void *)kernel.scalars);
    free((void *)kernel.constants);
    free((void *)kernel.names);
    free(records);
    return 0;
}
