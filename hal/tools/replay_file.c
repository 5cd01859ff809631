/* Parses files of HAL_DUMP=batch, see replay_file.h. */
#include "replay_file.h"

#include <hal/dump.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/* The unread part of a payload; `bad` is set, for good, at its end or by invalid data. */
typedef struct payload {
    replay_bytes left;
    int bad;
} payload;

enum { HEAD_BYTES = 16, RECORD_HEAD_BYTES = 16 };

static replay_bytes take_bytes(payload *from, uint64_t count)
{
    replay_bytes taken = {from->left.data, count};
    if (from->bad || count > from->left.count) {
        from->bad = 1;
        return (replay_bytes){from->left.data, 0};
    }
    from->left.data += count;
    from->left.count -= count;
    return taken;
}

static uint64_t take(payload *from, uint32_t bytes)
{
    const replay_bytes taken = take_bytes(from, bytes);
    uint64_t value = 0;
    for (uint32_t i = 0; i < taken.count; i++) {
        value |= (uint64_t)taken.data[i] << (8 * i);
    }
    return value;
}

static uint32_t take_u32(payload *from)
{
    return (uint32_t)take(from, 4);
}

static uint64_t take_u64(payload *from)
{
    return take(from, 8);
}

static replay_bytes take_string(payload *from)
{
    return take_bytes(from, take_u32(from));
}

static void read_device(payload *from, replay_device *device)
{
    device->plugin = take_string(from);
    device->index = take_u32(from);
    device->name = take_string(from);
    device->driver = take_string(from);
    device->architecture = take_string(from);
    device->subgroup_width = take_u32(from);
    device->exactness = take_u32(from);
    device->version = take_string(from);
}

static replay_bytes take_rest(payload *from)
{
    return take_bytes(from, from->left.count);
}

/* hal checks the description. */
static void read_gemm(payload *from, replay_kernel *kernel)
{
    hal_gemm_description *gemm = &kernel->gemm;
    uint32_t kinds[9];
    int64_t sizes[9];
    for (uint32_t i = 0; i < 9; i++) {
        kinds[i] = take_u32(from);
        from->bad |= i < 8 && kinds[i] > UINT8_MAX;
    }
    for (uint32_t i = 0; i < 9; i++) {
        sizes[i] = (int64_t)take_u64(from);
    }
    *gemm = (hal_gemm_description){
        .size = sizeof *gemm,
        .type_a = (hal_type)kinds[0],
        .type_b = (hal_type)kinds[1],
        .type_c = (hal_type)kinds[2],
        .transpose_a = (uint8_t)kinds[3],
        .transpose_b = (uint8_t)kinds[4],
        .beta_is_zero = (uint8_t)kinds[5],
        .precision = (uint8_t)kinds[6],
        .levels = (uint8_t)kinds[7],
        .batch = kinds[8],
        .m = sizes[0],
        .n = sizes[1],
        .k = sizes[2],
        .lda = sizes[3],
        .ldb = sizes[4],
        .ldc = sizes[5],
        .stride_a = sizes[6],
        .stride_b = sizes[7],
        .stride_c = sizes[8],
    };
    gemm->input_count = take_u32(from);
    if (gemm->input_count > HAL_GEMM_MAX_INPUTS) {
        from->bad = 1;
        return;
    }
    for (uint32_t i = 0; i < gemm->input_count; i++) {
        const uint32_t type = take_u32(from);
        hal_gemm_input *input = &gemm->inputs[i];
        from->bad |= type >= HAL_TYPE_COUNT;
        input->type = (hal_type)type;
        input->row_stride = (int64_t)take_u64(from);
        input->column_stride = (int64_t)take_u64(from);
        input->batch_stride = (int64_t)take_u64(from);
    }
    kernel->ir = take_string(from);
    kernel->workspace_bytes = take_u64(from);
}

static void read_offsets(payload *from, hal_gemm_description *gemm)
{
    const uint32_t type = take_u32(from);
    from->bad |= type != HAL_TYPE_I32 && type != HAL_TYPE_I64;
    gemm->type_offsets = (hal_type)type;
}

static void read_attention(payload *from, hal_attention_description *d)
{
    uint32_t kinds[5];
    int64_t sizes[4];
    hal_attention_strides strides[4];
    for (uint32_t i = 0; i < 5; i++) {
        kinds[i] = take_u32(from);
        from->bad |= i < 3 && kinds[i] > UINT8_MAX;
    }
    for (uint32_t i = 0; i < 4; i++) {
        sizes[i] = (int64_t)take_u64(from);
    }
    for (uint32_t i = 0; i < 4; i++) {
        strides[i].row = (int64_t)take_u64(from);
        strides[i].batch = (int64_t)take_u64(from);
        strides[i].outer = (int64_t)take_u64(from);
    }
    *d = (hal_attention_description){.size = sizeof *d,
                                     .type = (hal_type)kinds[0],
                                     .causal = (uint8_t)kinds[1],
                                     .precision = (uint8_t)kinds[2],
                                     .batch = kinds[3],
                                     .outer = kinds[4],
                                     .m = sizes[0],
                                     .n = sizes[1],
                                     .d = sizes[2],
                                     .e = sizes[3],
                                     .q = strides[0],
                                     .k = strides[1],
                                     .v = strides[2],
                                     .y = strides[3]};
}

static void read_kernel(payload *from, replay_kernel *kernel)
{
    kernel->id = take_u64(from);
    kernel->form = take_u32(from);
    kernel->name = take_string(from);
    from->bad |= kernel->id == 0;
    switch (kernel->form) {
    case HAL_DUMP_KERNEL_IR:
        kernel->ir = take_string(from);
        break;
    case HAL_DUMP_KERNEL_NATIVE:
        kernel->format = take_string(from);
        kernel->entry = take_string(from);
        kernel->ir = take_string(from);
        kernel->code = take_rest(from);
        break;
    case HAL_DUMP_KERNEL_GEMM:
        read_gemm(from, kernel);
        break;
    case HAL_DUMP_KERNEL_GROUPED_GEMM:
        read_gemm(from, kernel);
        read_offsets(from, &kernel->gemm);
        break;
    case HAL_DUMP_KERNEL_ATTENTION:
        read_attention(from, &kernel->attention);
        break;
    default:
        from->bad = 1;
    }
}

static bool command_is_valid(const replay_command *command)
{
    switch (command->kind) {
    case HAL_COMMAND_DISPATCH:
        return command->kernel != 0 &&
               (!(command->flags & HAL_COMMAND_INDIRECT) || command->binding_count > 0);
    case HAL_COMMAND_COPY:
    case HAL_COMMAND_COPY_ROWS:
        return command->binding_count == 2;
    case HAL_COMMAND_FILL:
        return command->binding_count == 1;
    default:
        return false;
    }
}

/* Bytes of a fill. */
static bool pattern_is_valid(uint32_t bytes)
{
    return bytes == 1 || bytes == 2 || bytes == 4 || bytes == 8 || bytes == 16;
}

static void read_command(payload *from, replay_command *command)
{
    memset(command, 0, sizeof *command);
    command->kind = (uint32_t)take(from, 2);
    command->flags = (uint32_t)take(from, 2);
    command->binding_count = take_u32(from);
    const uint32_t scalar_bytes = take_u32(from);
    for (uint32_t i = 0; i < 3; i++) {
        command->grid[i] = take_u32(from);
    }
    take_u32(from);
    command->kernel = take_u64(from);
    const uint32_t most = HAL_IR_MAX_BINDINGS + ((command->flags & HAL_COMMAND_INDIRECT) != 0);
    if (command->binding_count > most || scalar_bytes > HAL_IR_MAX_SCALAR_BYTES ||
        !command_is_valid(command)) {
        from->bad = 1;
        return;
    }
    for (uint32_t i = 0; i < command->binding_count; i++) {
        replay_range *range = &command->bindings[i];
        range->memory = take_u64(from);
        range->offset = take_u64(from);
        range->length = take_u64(from);
        range->access = take_u32(from);
        take_u32(from);
        from->bad |= (range->memory == 0) != (range->length == 0);
        from->bad |= range->length > UINT64_MAX - range->offset;
    }
    command->scalars = take_bytes(from, scalar_bytes);
    from->bad |= command->kind == HAL_COMMAND_FILL && !pattern_is_valid(scalar_bytes);
    from->bad |=
        command->kind == HAL_COMMAND_COPY_ROWS && scalar_bytes != sizeof(hal_plugin_copy_rows);
}

/* Parses every command, so that replay_next_command cannot fail. */
static void read_batch(payload *from, replay_record *record)
{
    record->id = take_u64(from);
    record->command_count = take_u32(from);
    record->commands = from->left;
    for (uint32_t c = 0; !from->bad && c < record->command_count; c++) {
        replay_command command;
        read_command(from, &command);
    }
}

static void read_value(payload *from, replay_value *value)
{
    value->number = take_u64(from);
    value->memory = take_u64(from);
    value->offset = take_u64(from);
    value->bytes = take_u64(from);
    value->type = take_u32(from);
    value->call = take_string(from);
    value->group = take_string(from);
    from->bad |= value->type >= HAL_TYPE_COUNT || value->bytes == 0;
}

static bool read_payload(payload *from, replay_record *record)
{
    switch (record->kind) {
    case HAL_DUMP_DEVICE:
        read_device(from, &record->device);
        break;
    case HAL_DUMP_KERNEL:
        read_kernel(from, &record->kernel);
        break;
    case HAL_DUMP_MEMORY:
        record->id = take_u64(from);
        record->bytes = take_u64(from);
        from->bad |= record->id == 0 || record->bytes == 0;
        break;
    case HAL_DUMP_FREE:
        record->id = take_u64(from);
        break;
    case HAL_DUMP_DATA:
    case HAL_DUMP_RESULT:
        record->id = take_u64(from);
        record->offset = take_u64(from);
        record->data = take_rest(from);
        break;
    case HAL_DUMP_BATCH:
        read_batch(from, record);
        break;
    case HAL_DUMP_OUTCOME:
        record->status = (hal_status)take_u32(from);
        record->message = take_string(from);
        break;
    case HAL_DUMP_VALUE:
        read_value(from, &record->value);
        break;
    default:
        return false;
    }
    return !from->bad && from->left.count == 0;
}

bool replay_file_begin(replay_file *file, const void *data, uint64_t bytes)
{
    payload from = {{data, bytes}, 0};
    *file = (replay_file){.at = HEAD_BYTES};
    if (bytes < HEAD_BYTES || memcmp(data, HAL_DUMP_MAGIC, 8) != 0) {
        snprintf(file->message, sizeof file->message,
                 "expected a file of HAL_DUMP=batch, which begins with " HAL_DUMP_MAGIC);
        return false;
    }
    take_bytes(&from, 8);
    const uint32_t version = take_u32(&from);
    take_u32(&from);
    if (version != HAL_DUMP_VERSION) {
        snprintf(file->message, sizeof file->message,
                 "expected version %u, got %u: use the hal-replay of the library that wrote the "
                 "file",
                 HAL_DUMP_VERSION, version);
        return false;
    }
    file->rest = from.left;
    return true;
}

int replay_file_next(replay_file *file, replay_record *record)
{
    payload from = {file->rest, 0};
    memset(record, 0, sizeof *record);
    record->at = file->at;
    if (file->rest.count == 0) {
        return 0;
    }
    record->kind = take_u32(&from);
    take_u32(&from);
    const uint64_t bytes = take_u64(&from);
    payload content = {take_bytes(&from, bytes), from.bad};
    if (from.bad) {
        snprintf(file->message, sizeof file->message,
                 "truncated file: the record at byte %llu is incomplete",
                 (unsigned long long)file->at);
        return -1;
    }
    if (!read_payload(&content, record)) {
        snprintf(file->message, sizeof file->message,
                 "damaged file: the record at byte %llu, of kind %u, is invalid",
                 (unsigned long long)file->at, record->kind);
        return -1;
    }
    file->rest = from.left;
    file->at += RECORD_HEAD_BYTES + bytes;
    return 1;
}

bool replay_next_command(replay_bytes *commands, replay_command *command)
{
    payload from = {*commands, 0};
    if (commands->count == 0) {
        return false;
    }
    read_command(&from, command);
    *commands = from.left;
    return !from.bad;
}
