/* What docs/plugin-abi.md promises to compiled plugins, as numbers: the size of each structure, the
 * place and type of each field, the value of each name, the signature of each entry. A minor only
 * appends, and then HAL_PLUGIN_ABI_MINOR, the sizes of the tables that grew and the names in _COUNT
 * change with it. headers.sh compiles this in each language that the headers promise; a change is
 * an error of the compiler that names it. */
#include <hal/plugin.h>
#include <hal/types.h>
#include <hal/ir.h>
#include <hal/status.h>
#include <stddef.h>

#ifdef __cplusplus
#include <type_traits>
#define ASSERT(what, words) static_assert(what, words)
#define SAME(name, is) ASSERT((std::is_same<name, is>::value), #name " is no longer " #is);
#define TYPE(structure, field, is) std::is_same<decltype(structure::field), is>::value
#else
#define ASSERT(what, words) _Static_assert(what, words)
#define SAME(name, is) ASSERT(_Generic((name *)0, is *: 1, default: 0), #name " is no longer " #is);
#define TYPE(structure, field, is) _Generic(&((structure *)0)->field, is *: 1, default: 0)
#endif

#define VALUE(name, is) ASSERT((name) == (is), #name " is no longer " #is);
#define FIELD(structure, field, is, at) \
    PLACE(structure, field, at) \
    ASSERT((TYPE(structure, field, is)), #structure "." #field " is no longer " #is);
#define ARRAY(structure, field, is, count, at) \
    typedef is pinned_##structure##_##field[count]; \
    FIELD(structure, field, pinned_##structure##_##field, at)

/* Places are those of 64-bit machines; on others pointers are shorter. */
#if UINTPTR_MAX == UINT64_MAX
#define SIZE(structure, bytes) \
    ASSERT(sizeof(structure) == (bytes), #structure " is no longer of " #bytes " bytes");
#define PLACE(structure, field, at) \
    ASSERT(offsetof(structure, field) == (at), #structure "." #field " is no longer at " #at);
#else
#define SIZE(structure, bytes)
#define PLACE(structure, field, at)
#endif
#define ENTRY(structure, field, at, result, arguments) \
    typedef result pinned_##structure##_##field arguments; \
    FIELD(structure, field, pinned_##structure##_##field *, at)

/* ---- hal/status.h ---- */
SAME(hal_status, int32_t)
VALUE(HAL_OK, 0)
VALUE(HAL_ERROR_INVALID_ARGUMENT, 1)
VALUE(HAL_ERROR_INVALID_IR, 2)
VALUE(HAL_ERROR_INVALID_STATE, 3)
VALUE(HAL_ERROR_UNSUPPORTED, 4)
VALUE(HAL_ERROR_OUT_OF_MEMORY, 5)
VALUE(HAL_ERROR_NOT_FOUND, 6)
VALUE(HAL_ERROR_LIBRARY_MISSING, 7)
VALUE(HAL_ERROR_DRIVER_MISSING, 8)
VALUE(HAL_ERROR_NO_DEVICE, 9)
VALUE(HAL_ERROR_TOO_OLD, 10)
VALUE(HAL_ERROR_TOO_NEW, 11)
VALUE(HAL_ERROR_BAD_PLUGIN, 12)
VALUE(HAL_ERROR_COMPILE, 13)
VALUE(HAL_ERROR_TIMEOUT, 14)
VALUE(HAL_ERROR_DEVICE_LOST, 15)
VALUE(HAL_ERROR_IO, 16)
VALUE(HAL_ERROR_INTERNAL, 17)
VALUE(HAL_STATUS_COUNT, 18)

/* ---- hal/ir.h ---- */
ASSERT(HAL_IR_VERSION >= 1, "HAL_IR_VERSION only grows");
VALUE(HAL_IR_NONE, 0xffffffffu)
VALUE(HAL_IR_MAX_BINDINGS, 24)
VALUE(HAL_IR_MAX_SCALAR_BYTES, 512)
VALUE(HAL_IR_MAX_RECORDS, 1048576)
VALUE(HAL_IR_MAX_SHARED, 64)
VALUE(HAL_IR_MAX_SHARED_BYTES, 16777216)
VALUE(HAL_IR_MAX_GROUP_ITEMS, 65536)
VALUE(HAL_IR_MAX_DEPTH, 64)
VALUE(HAL_IR_MAX_NAME, 127)
VALUE(HAL_IR_MAX_FRAGMENT_VALUES, 64)
VALUE(HAL_IR_EMULATED_SUBGROUP, 32)
VALUE(HAL_IR_MATRIX_LANES, 32)
SAME(hal_ir_value, uint32_t)
SAME(hal_type, uint8_t)

/* The tables of types and opcodes have the numbers themselves: here are the rules for their rows.
 * A row is not newer than this minor, and the rows of minor 0 never change: the sum notices a new
 * number, and a row that appeared or went. */
#define NOT_NEWER(NAME, number, since, ...) \
    ASSERT((since) <= HAL_PLUGIN_ABI_MINOR, #NAME " is newer than HAL_PLUGIN_ABI_MINOR");
#define IN_SUM(NAME, number, since, ...) +((since) == 0 ? (number) * sizeof(#NAME) : 0)
HAL_TYPE_TABLE(NOT_NEWER)
HAL_IR_OPCODE_TABLE(NOT_NEWER)
VALUE(HAL_TYPE_NONE, 0)
VALUE(0 HAL_TYPE_TABLE(IN_SUM), 483)
VALUE(0 HAL_IR_OPCODE_TABLE(IN_SUM), 22200)
VALUE(HAL_IR_MATH_FIRST, HAL_IR_EXP)
VALUE(HAL_IR_MATH_LAST, 109)
VALUE(HAL_IR_MATH_COUNT, 14)
VALUE(HAL_IR_FAST, 1)
VALUE(HAL_IR_ATOMIC_ADD, 0)
VALUE(HAL_IR_ATOMIC_MIN, 1)
VALUE(HAL_IR_ATOMIC_MAX, 2)
VALUE(HAL_IR_ATOMIC_AND, 3)
VALUE(HAL_IR_ATOMIC_OR, 4)
VALUE(HAL_IR_ATOMIC_XOR, 5)
VALUE(HAL_IR_ATOMIC_EXCHANGE, 6)
VALUE(HAL_IR_ATOMIC_COMPARE_EXCHANGE, 7)
VALUE(HAL_IR_ATOMIC_COUNT, 8)
VALUE(HAL_IR_REDUCE_ADD, 0)
VALUE(HAL_IR_REDUCE_MIN, 1)
VALUE(HAL_IR_REDUCE_MAX, 2)
VALUE(HAL_IR_REDUCE_COUNT, 3)

SIZE(hal_ir_record, 32)
FIELD(hal_ir_record, opcode, uint16_t, 0)
FIELD(hal_ir_record, type, hal_type, 2)
FIELD(hal_ir_record, width, uint8_t, 3)
FIELD(hal_ir_record, a, uint32_t, 4)
FIELD(hal_ir_record, b, uint32_t, 8)
FIELD(hal_ir_record, c, uint32_t, 12)
FIELD(hal_ir_record, d, uint32_t, 16)
FIELD(hal_ir_record, aux, uint32_t, 20)
FIELD(hal_ir_record, imm, int32_t, 24)
FIELD(hal_ir_record, flags, uint32_t, 28)

VALUE(HAL_ACCESS_READ, 1)
VALUE(HAL_ACCESS_WRITE, 2)
VALUE(HAL_ACCESS_READ_WRITE, 3)

SIZE(hal_ir_memory, 12)
FIELD(hal_ir_memory, name, uint32_t, 0)
FIELD(hal_ir_memory, count, uint32_t, 4)
FIELD(hal_ir_memory, type, hal_type, 8)
FIELD(hal_ir_memory, access, uint8_t, 9)
ARRAY(hal_ir_memory, reserved, uint8_t, 2, 10)

SIZE(hal_ir_scalar, 8)
FIELD(hal_ir_scalar, name, uint32_t, 0)
FIELD(hal_ir_scalar, offset, uint16_t, 4)
FIELD(hal_ir_scalar, type, hal_type, 6)
FIELD(hal_ir_scalar, reserved, uint8_t, 7)

VALUE(HAL_IR_FRAGMENT, 1)

SIZE(hal_ir_kernel, 112)
FIELD(hal_ir_kernel, size, uint32_t, 0)
FIELD(hal_ir_kernel, version, uint32_t, 4)
FIELD(hal_ir_kernel, flags, uint32_t, 8)
FIELD(hal_ir_kernel, name, uint32_t, 12)
ARRAY(hal_ir_kernel, group_size, uint32_t, 3, 16)
FIELD(hal_ir_kernel, record_count, uint32_t, 28)
FIELD(hal_ir_kernel, memory_count, uint32_t, 32)
FIELD(hal_ir_kernel, binding_count, uint32_t, 36)
FIELD(hal_ir_kernel, scalar_count, uint32_t, 40)
FIELD(hal_ir_kernel, scalar_bytes, uint32_t, 44)
FIELD(hal_ir_kernel, constant_count, uint32_t, 48)
FIELD(hal_ir_kernel, name_bytes, uint32_t, 52)
FIELD(hal_ir_kernel, input_count, uint32_t, 56)
FIELD(hal_ir_kernel, output_count, uint32_t, 60)
FIELD(hal_ir_kernel, groups_per_unit, uint32_t, 64)
FIELD(hal_ir_kernel, reserved, uint32_t, 68)
FIELD(hal_ir_kernel, records, const hal_ir_record *, 72)
FIELD(hal_ir_kernel, memories, const hal_ir_memory *, 80)
FIELD(hal_ir_kernel, scalars, const hal_ir_scalar *, 88)
FIELD(hal_ir_kernel, constants, const uint64_t *, 96)
FIELD(hal_ir_kernel, names, const char *, 104)

/* ---- hal/types.h and hal/plugin.h ---- */
VALUE(HAL_PLUGIN_ABI_MAJOR, 1)
VALUE(HAL_PLUGIN_ABI, HAL_PLUGIN_ABI_MAJOR << 16 | HAL_PLUGIN_ABI_MINOR)
VALUE(HAL_PLUGIN_ABI_MINOR, HAL_PLUGIN_ABI & 0xffff) /* grows with each release */
VALUE(HAL_DEVICE_DISCRETE, 1)
VALUE(HAL_DEVICE_INTEGRATED, 2)
VALUE(HAL_DEVICE_VIRTUAL, 3)
VALUE(HAL_DEVICE_SOFTWARE, 4)
VALUE(HAL_DEVICE_CPU, 5)
VALUE(HAL_EXACT_FMA, 1)
VALUE(HAL_EXACT_DIVIDE, 2)
VALUE(HAL_EXACT_SQRT, 4)
VALUE(HAL_EXACT_DENORMALS, 8)
VALUE(HAL_FEATURE_ASYNC_COPY, 1)
VALUE(HAL_FEATURE_ATOMIC_64, 2)
VALUE(HAL_FEATURE_MAP_DEVICE, 4)
VALUE(HAL_FEATURE_TIMESTAMPS, 8)
VALUE(HAL_FEATURE_FAST_MATH, 16)
VALUE(HAL_FEATURE_ZERO_COPY, 32)
VALUE(HAL_FEATURE_INDIRECT, 64)
VALUE(HAL_FEATURE_FILL_PATTERNS, 128)
VALUE(HAL_FEATURE_COPY_ROWS, 256)
VALUE(HAL_FEATURE_DRIVER_COMPILES, 512)
VALUE(HAL_FEATURE_VIRTUAL_MEMORY, 1024)
VALUE(HAL_FEATURE_INTEGER_PRODUCTS, 2048)
VALUE(HAL_FEATURE_GROUPED_PRODUCTS, 4096)
VALUE(HAL_DEVICE_INFO_MAX_BYTES, 2048)

SIZE(hal_device_info, 472)
FIELD(hal_device_info, size, uint32_t, 0)
FIELD(hal_device_info, kind, uint32_t, 4)
ARRAY(hal_device_info, name, char, 128, 8)
ARRAY(hal_device_info, id, char, 64, 136)
ARRAY(hal_device_info, driver, char, 64, 200)
ARRAY(hal_device_info, architecture, char, 64, 264)
FIELD(hal_device_info, memory_bytes, uint64_t, 328)
FIELD(hal_device_info, max_allocation, uint64_t, 336)
FIELD(hal_device_info, max_binding, uint64_t, 344)
FIELD(hal_device_info, binding_alignment, uint32_t, 352)
FIELD(hal_device_info, compute_units, uint32_t, 356)
FIELD(hal_device_info, subgroup_width, uint32_t, 360)
FIELD(hal_device_info, max_group_items, uint32_t, 364)
ARRAY(hal_device_info, max_group_size, uint32_t, 3, 368)
ARRAY(hal_device_info, max_grid, uint32_t, 3, 380)
FIELD(hal_device_info, shared_bytes, uint32_t, 392)
FIELD(hal_device_info, max_bindings, uint32_t, 396)
FIELD(hal_device_info, max_vector_bytes, uint32_t, 400)
FIELD(hal_device_info, preferred_group, uint32_t, 404)
FIELD(hal_device_info, storage_types, uint32_t, 408)
FIELD(hal_device_info, arithmetic_types, uint32_t, 412)
FIELD(hal_device_info, exactness, uint32_t, 416)
FIELD(hal_device_info, features, uint32_t, 420)
FIELD(hal_device_info, math_f32, uint32_t, 424)
FIELD(hal_device_info, math_f64, uint32_t, 428)
FIELD(hal_device_info, max_queues, uint32_t, 432)
FIELD(hal_device_info, matrix_types, uint32_t, 436)
FIELD(hal_device_info, item_vector_bytes, uint32_t, 440)
FIELD(hal_device_info, item_register_bytes, uint32_t, 444)
FIELD(hal_device_info, max_loop_iterations, uint32_t, 448)
FIELD(hal_device_info, wrong_constants, uint32_t, 452)
ARRAY(hal_device_info, reserved, uint32_t, 4, 456)

VALUE(HAL_MEMORY_DEVICE, 0)
VALUE(HAL_MEMORY_UPLOAD, 1)
VALUE(HAL_MEMORY_DOWNLOAD, 2)
VALUE(HAL_MEMORY_SHARED, 3)
VALUE(HAL_MEMORY_KIND_COUNT, 4)
VALUE(HAL_COMMAND_DISPATCH, 0)
VALUE(HAL_COMMAND_COPY, 1)
VALUE(HAL_COMMAND_FILL, 2)
VALUE(HAL_COMMAND_COLLECTIVE, 3)
VALUE(HAL_COMMAND_COPY_ROWS, 4)
VALUE(HAL_COMMAND_BARRIER, 1)
VALUE(HAL_COMMAND_INDIRECT, 2)
VALUE(HAL_BATCH_UNTIMED, 1)

SIZE(hal_binding, 32)
FIELD(hal_binding, memory, hal_plugin_memory *, 0)
FIELD(hal_binding, offset, uint64_t, 8)
FIELD(hal_binding, length, uint64_t, 16)
FIELD(hal_binding, access, uint32_t, 24)
FIELD(hal_binding, reserved, uint32_t, 28)

SIZE(hal_command, 48)
FIELD(hal_command, kind, uint16_t, 0)
FIELD(hal_command, flags, uint16_t, 2)
FIELD(hal_command, binding_count, uint16_t, 4)
FIELD(hal_command, scalar_bytes, uint16_t, 6)
FIELD(hal_command, binding_first, uint32_t, 8)
FIELD(hal_command, scalar_first, uint32_t, 12)
ARRAY(hal_command, grid, uint32_t, 3, 16)
FIELD(hal_command, reserved, uint32_t, 28)
FIELD(hal_command, kernel, hal_plugin_kernel *, 32)
ARRAY(hal_command, reserved_words, uint64_t, 1, 40)

SIZE(hal_plugin_copy_rows, 48)
FIELD(hal_plugin_copy_rows, row_bytes, uint64_t, 0)
FIELD(hal_plugin_copy_rows, source_pitch, uint64_t, 8)
FIELD(hal_plugin_copy_rows, target_pitch, uint64_t, 16)
FIELD(hal_plugin_copy_rows, source_slice, uint64_t, 24)
FIELD(hal_plugin_copy_rows, target_slice, uint64_t, 32)
FIELD(hal_plugin_copy_rows, rows, uint32_t, 40)
FIELD(hal_plugin_copy_rows, slices, uint32_t, 44)

SIZE(hal_batch, 48)
FIELD(hal_batch, size, uint32_t, 0)
FIELD(hal_batch, command_count, uint32_t, 4)
FIELD(hal_batch, binding_count, uint32_t, 8)
FIELD(hal_batch, scalar_bytes, uint32_t, 12)
FIELD(hal_batch, commands, const hal_command *, 16)
FIELD(hal_batch, bindings, const hal_binding *, 24)
FIELD(hal_batch, scalars, const uint8_t *, 32)
FIELD(hal_batch, flags, uint32_t, 40)
FIELD(hal_batch, reserved, uint32_t, 44)

VALUE(HAL_WAIT_QUEUE, 0)
VALUE(HAL_WAIT_FENCE, 1)
SIZE(hal_plugin_wait, 32)
FIELD(hal_plugin_wait, queue, hal_plugin_queue *, 0)
FIELD(hal_plugin_wait, value, uint64_t, 8)
FIELD(hal_plugin_wait, fence, hal_plugin_fence *, 16)
FIELD(hal_plugin_wait, kind, uint32_t, 24)
FIELD(hal_plugin_wait, reserved, uint32_t, 28)

SIZE(hal_plugin_collective, 32)
FIELD(hal_plugin_collective, comm, hal_plugin_comm *, 0)
FIELD(hal_plugin_collective, count, uint64_t, 8)
FIELD(hal_plugin_collective, kind, uint32_t, 16)
FIELD(hal_plugin_collective, reduction, uint32_t, 20)
FIELD(hal_plugin_collective, root, uint32_t, 24)
FIELD(hal_plugin_collective, type, uint32_t, 28)
VALUE(HAL_COLLECTIVE_ALL_REDUCE, 0)
VALUE(HAL_COLLECTIVE_ALL_GATHER, 1)
VALUE(HAL_COLLECTIVE_REDUCE_SCATTER, 2)
VALUE(HAL_COLLECTIVE_BROADCAST, 3)
VALUE(HAL_COLLECTIVE_REDUCE, 4)
VALUE(HAL_COLLECTIVE_ALL_TO_ALL, 5)
VALUE(HAL_COLLECTIVE_EXCHANGE, 6)
VALUE(HAL_REDUCE_SUM, 0)
VALUE(HAL_REDUCE_MEAN, 1)
VALUE(HAL_REDUCE_MIN, 2)
VALUE(HAL_REDUCE_MAX, 3)

SIZE(hal_plugin_comm_backend, 284)
FIELD(hal_plugin_comm_backend, size, uint32_t, 0)
FIELD(hal_plugin_comm_backend, version, uint32_t, 4)
ARRAY(hal_plugin_comm_backend, name, char, 16, 8)
ARRAY(hal_plugin_comm_backend, description, char, 232, 24)
FIELD(hal_plugin_comm_backend, sum_types, uint32_t, 256)
FIELD(hal_plugin_comm_backend, mean_types, uint32_t, 260)
FIELD(hal_plugin_comm_backend, min_max_types, uint32_t, 264)
FIELD(hal_plugin_comm_backend, reserved, uint32_t, 268)
FIELD(hal_plugin_comm_backend, ordered_types, uint32_t, 272)
FIELD(hal_plugin_comm_backend, ordered_bytes, uint32_t, 276)
FIELD(hal_plugin_comm_backend, ordered_ranks, uint32_t, 280)

SIZE(hal_plugin_comm_id, 256)
ARRAY(hal_plugin_comm_id, bytes, uint8_t, 256, 0)

SIZE(hal_gemm_input, 32)
FIELD(hal_gemm_input, type, hal_type, 0)
ARRAY(hal_gemm_input, reserved, uint8_t, 7, 1)
FIELD(hal_gemm_input, row_stride, int64_t, 8)
FIELD(hal_gemm_input, column_stride, int64_t, 16)
FIELD(hal_gemm_input, batch_stride, int64_t, 24)

VALUE(HAL_GEMM_STRICT, 0)
VALUE(HAL_GEMM_ACCURATE, 1)
VALUE(HAL_GEMM_FAST, 2)
VALUE(HAL_GEMM_NORMWISE, 3)
VALUE(HAL_GEMM_EXACT, 4)
VALUE(HAL_GEMM_MAX_INPUTS, 16)
VALUE(HAL_GEMM_MAX_LEVELS, 2)

SIZE(hal_gemm_description, 616)
FIELD(hal_gemm_description, size, uint32_t, 0)
FIELD(hal_gemm_description, type_a, hal_type, 4)
FIELD(hal_gemm_description, type_b, hal_type, 5)
FIELD(hal_gemm_description, type_c, hal_type, 6)
FIELD(hal_gemm_description, transpose_a, uint8_t, 7)
FIELD(hal_gemm_description, transpose_b, uint8_t, 8)
FIELD(hal_gemm_description, beta_is_zero, uint8_t, 9)
FIELD(hal_gemm_description, precision, uint8_t, 10)
FIELD(hal_gemm_description, levels, uint8_t, 11)
FIELD(hal_gemm_description, type_offsets, hal_type, 12)
ARRAY(hal_gemm_description, reserved, uint8_t, 3, 13)
FIELD(hal_gemm_description, batch, uint32_t, 16)
FIELD(hal_gemm_description, input_count, uint32_t, 20)
FIELD(hal_gemm_description, m, int64_t, 24)
FIELD(hal_gemm_description, n, int64_t, 32)
FIELD(hal_gemm_description, k, int64_t, 40)
FIELD(hal_gemm_description, lda, int64_t, 48)
FIELD(hal_gemm_description, ldb, int64_t, 56)
FIELD(hal_gemm_description, ldc, int64_t, 64)
FIELD(hal_gemm_description, stride_a, int64_t, 72)
FIELD(hal_gemm_description, stride_b, int64_t, 80)
FIELD(hal_gemm_description, stride_c, int64_t, 88)
ARRAY(hal_gemm_description, inputs, hal_gemm_input, HAL_GEMM_MAX_INPUTS, 96)
FIELD(hal_gemm_description, epilogue, const hal_ir_kernel *, 608)

SIZE(hal_attention_strides, 24)
FIELD(hal_attention_strides, row, int64_t, 0)
FIELD(hal_attention_strides, batch, int64_t, 8)
FIELD(hal_attention_strides, outer, int64_t, 16)

SIZE(hal_attention_description, 144)
FIELD(hal_attention_description, size, uint32_t, 0)
FIELD(hal_attention_description, type, hal_type, 4)
FIELD(hal_attention_description, causal, uint8_t, 5)
FIELD(hal_attention_description, precision, uint8_t, 6)
FIELD(hal_attention_description, reserved, uint8_t, 7)
FIELD(hal_attention_description, batch, uint32_t, 8)
FIELD(hal_attention_description, outer, uint32_t, 12)
FIELD(hal_attention_description, m, int64_t, 16)
FIELD(hal_attention_description, n, int64_t, 24)
FIELD(hal_attention_description, d, int64_t, 32)
FIELD(hal_attention_description, e, int64_t, 40)
FIELD(hal_attention_description, q, hal_attention_strides, 48)
FIELD(hal_attention_description, k, hal_attention_strides, 72)
FIELD(hal_attention_description, v, hal_attention_strides, 96)
FIELD(hal_attention_description, y, hal_attention_strides, 120)

VALUE(HAL_HANDLE_HOST, 0)
VALUE(HAL_HANDLE_NATIVE, 1)
VALUE(HAL_HANDLE_OPAQUE_FD, 2)
VALUE(HAL_HANDLE_DMA_BUF, 3)
VALUE(HAL_HANDLE_KIND_COUNT, 4)
VALUE(HAL_HANDLE_BIT(HAL_HANDLE_DMA_BUF), 8)
SIZE(hal_memory_handle, 48)
FIELD(hal_memory_handle, size, uint32_t, 0)
FIELD(hal_memory_handle, kind, uint32_t, 4)
FIELD(hal_memory_handle, handle, uint64_t, 8)
FIELD(hal_memory_handle, memory, uint64_t, 16)
FIELD(hal_memory_handle, offset, uint64_t, 24)
FIELD(hal_memory_handle, bytes, uint64_t, 32)
FIELD(hal_memory_handle, access, uint32_t, 40)
FIELD(hal_memory_handle, reserved, uint32_t, 44)
SIZE(hal_external_info, 32)
FIELD(hal_external_info, size, uint32_t, 0)
FIELD(hal_external_info, import_kinds, uint32_t, 4)
FIELD(hal_external_info, export_kinds, uint32_t, 8)
FIELD(hal_external_info, host_alignment, uint32_t, 12)
FIELD(hal_external_info, host_granularity, uint32_t, 16)
FIELD(hal_external_info, dlpack_kind, uint32_t, 20)
FIELD(hal_external_info, fence_imports, uint32_t, 24)
FIELD(hal_external_info, fence_exports, uint32_t, 28)

VALUE(HAL_LOG_ERROR, 1)
VALUE(HAL_LOG_WARN, 2)
VALUE(HAL_LOG_INFO, 3)
VALUE(HAL_LOG_DEBUG, 4)

VALUE(HAL_HOST_VALIDATE, 1)

SIZE(hal_host, 88)
FIELD(hal_host, size, uint32_t, 0)
FIELD(hal_host, abi, uint32_t, 4)
ENTRY(hal_host, allocate, 8, void *, (const hal_host *, uint64_t, uint64_t))
ENTRY(hal_host, release, 16, void, (const hal_host *, void *))
ENTRY(hal_host, log, 24, void, (const hal_host *, uint32_t, const char *))
ENTRY(hal_host, fail, 32, hal_status, (const hal_host *, hal_status, const char *))
ENTRY(hal_host, cache_load, 40, hal_status,
      (const hal_host *, const char *, const uint64_t [2], void **, uint64_t *))
ENTRY(hal_host, cache_store, 48, hal_status,
      (const hal_host *, const char *, const uint64_t [2], const void *, uint64_t))
FIELD(hal_host, flags, uint32_t, 56)
FIELD(hal_host, reserved, uint32_t, 60)
ENTRY(hal_host, report, 64, void, (const hal_host *, const char *))
ENTRY(hal_host, queue_reached, 72, void, (const hal_host *, hal_plugin_queue *, uint64_t))
ENTRY(hal_host, queue_failed, 80, void, (const hal_host *, hal_plugin_queue *, const char *))

SIZE(hal_plugin, 152)
FIELD(hal_plugin, size, uint32_t, 0)
FIELD(hal_plugin, abi, uint32_t, 4)
FIELD(hal_plugin, name, const char *, 8)
FIELD(hal_plugin, version, const char *, 16)
FIELD(hal_plugin, build_id, const char *, 24)
FIELD(hal_plugin, ir_version, uint32_t, 32)
FIELD(hal_plugin, reserved, uint32_t, 36)
ENTRY(hal_plugin, instance_destroy, 40, void, (hal_plugin_instance *))
ENTRY(hal_plugin, enumerate, 48, hal_status,
      (hal_plugin_instance *, hal_device_info *, uint32_t, uint32_t *))
ENTRY(hal_plugin, device_open, 56, hal_status,
      (hal_plugin_instance *, const char *, hal_plugin_device **))
ENTRY(hal_plugin, device_close, 64, void, (hal_plugin_device *))
ENTRY(hal_plugin, memory_allocate, 72, hal_status,
      (hal_plugin_device *, uint32_t, uint64_t, hal_plugin_memory **))
ENTRY(hal_plugin, memory_free, 80, void, (hal_plugin_device *, hal_plugin_memory *))
ENTRY(hal_plugin, memory_map, 88, hal_status, (hal_plugin_device *, hal_plugin_memory *, void **))
ENTRY(hal_plugin, kernel_create, 96, hal_status,
      (hal_plugin_device *, const hal_ir_kernel *, hal_plugin_kernel **))
ENTRY(hal_plugin, kernel_destroy, 104, void, (hal_plugin_device *, hal_plugin_kernel *))
ENTRY(hal_plugin, queue_create, 112, hal_status, (hal_plugin_device *, hal_plugin_queue **))
ENTRY(hal_plugin, queue_destroy, 120, void, (hal_plugin_device *, hal_plugin_queue *))
ENTRY(hal_plugin, submit, 128, hal_status,
      (hal_plugin_queue *, const hal_batch *, const hal_plugin_wait *, uint32_t, uint64_t))
ENTRY(hal_plugin, wait, 136, hal_status, (hal_plugin_queue *, uint64_t, uint64_t))
ENTRY(hal_plugin, query_extension, 144, const void *,
      (hal_plugin_instance *, const char *, uint32_t))

/* ---- Extensions ---- */
VALUE(HAL_EXTENSION_VERSION(1, 2), 0x10002u)
VALUE(sizeof HAL_EXTENSION_MEMORY_INFO, sizeof "hal.memory_info")
VALUE(sizeof HAL_EXTENSION_COHERENCE, sizeof "hal.coherence")
VALUE(sizeof HAL_EXTENSION_TIMING, sizeof "hal.timing")
VALUE(sizeof HAL_EXTENSION_NATIVE, sizeof "hal.native")
VALUE(sizeof HAL_EXTENSION_GEMM, sizeof "hal.gemm")
VALUE(sizeof HAL_EXTENSION_ATTENTION, sizeof "hal.attention")
VALUE(sizeof HAL_EXTENSION_PEERS, sizeof "hal.peers")
VALUE(sizeof HAL_EXTENSION_HOST_COPY, sizeof "hal.host_copy")
VALUE(sizeof HAL_EXTENSION_HANDLES, sizeof "hal.native_handles")
VALUE(sizeof HAL_EXTENSION_NATIVE_QUEUES, sizeof "hal.native_queues")
VALUE(sizeof HAL_EXTENSION_FENCES, sizeof "hal.fences")
VALUE(sizeof HAL_EXTENSION_REPORTS, sizeof "hal.reports")
VALUE(sizeof HAL_EXTENSION_QUIRKS, sizeof "hal.quirks")
VALUE(sizeof HAL_EXTENSION_VIRTUAL_MEMORY, sizeof "hal.virtual_memory")
VALUE(sizeof HAL_EXTENSION_EXTERNAL, sizeof "hal.external_memory")
VALUE(sizeof HAL_EXTENSION_COLLECTIVES, sizeof "hal.collectives")
VALUE(sizeof HAL_EXTENSION_FAULTS, sizeof "hal.faults")

SIZE(hal_extension_memory_info, 16)
FIELD(hal_extension_memory_info, size, uint32_t, 0)
FIELD(hal_extension_memory_info, version, uint32_t, 4)
ENTRY(hal_extension_memory_info, memory_info, 8, hal_status,
      (hal_plugin_device *, uint64_t *, uint64_t *))
SIZE(hal_extension_coherence, 24)
FIELD(hal_extension_coherence, size, uint32_t, 0)
FIELD(hal_extension_coherence, version, uint32_t, 4)
ENTRY(hal_extension_coherence, memory_flush, 8, hal_status,
      (hal_plugin_device *, hal_plugin_memory *, uint64_t, uint64_t))
ENTRY(hal_extension_coherence, memory_invalidate, 16, hal_status,
      (hal_plugin_device *, hal_plugin_memory *, uint64_t, uint64_t))
SIZE(hal_extension_timing, 16)
FIELD(hal_extension_timing, size, uint32_t, 0)
FIELD(hal_extension_timing, version, uint32_t, 4)
ENTRY(hal_extension_timing, queue_elapsed, 8, hal_status,
      (hal_plugin_queue *, uint64_t, uint64_t, uint64_t *))
SIZE(hal_extension_native, 24)
FIELD(hal_extension_native, size, uint32_t, 0)
FIELD(hal_extension_native, version, uint32_t, 4)
FIELD(hal_extension_native, formats, const char *, 8)
ENTRY(hal_extension_native, kernel_create_native, 16, hal_status,
      (hal_plugin_device *, const char *, const void *, uint64_t, const char *,
       const hal_ir_kernel *, hal_plugin_kernel **))
SIZE(hal_extension_gemm, 32)
FIELD(hal_extension_gemm, size, uint32_t, 0)
FIELD(hal_extension_gemm, version, uint32_t, 4)
ENTRY(hal_extension_gemm, gemm, 8, hal_status,
      (hal_plugin_device *, const hal_gemm_description *, hal_plugin_kernel **, uint64_t *))
ENTRY(hal_extension_gemm, gemm_estimate, 16, hal_status,
      (hal_plugin_device *, const hal_gemm_description *, double, double *))
ENTRY(hal_extension_gemm, gemm_workspace, 24, hal_status,
      (hal_plugin_device *, const hal_gemm_description *, uint64_t *))
SIZE(hal_extension_attention, 16)
FIELD(hal_extension_attention, size, uint32_t, 0)
FIELD(hal_extension_attention, version, uint32_t, 4)
ENTRY(hal_extension_attention, attention, 8, hal_status,
      (hal_plugin_device *, const hal_attention_description *, hal_plugin_kernel **))
SIZE(hal_extension_peers, 16)
FIELD(hal_extension_peers, size, uint32_t, 0)
FIELD(hal_extension_peers, version, uint32_t, 4)
ENTRY(hal_extension_peers, device_can_access_peer, 8, uint32_t,
      (hal_plugin_device *, hal_plugin_device *))
SIZE(hal_extension_host_copy, 16)
FIELD(hal_extension_host_copy, size, uint32_t, 0)
FIELD(hal_extension_host_copy, version, uint32_t, 4)
ENTRY(hal_extension_host_copy, host_copy, 8, void,
      (hal_plugin_device *, void *, const void *, uint64_t))
SIZE(hal_extension_faults, 16)
FIELD(hal_extension_faults, size, uint32_t, 0)
FIELD(hal_extension_faults, version, uint32_t, 4)
ENTRY(hal_extension_faults, queue_fail_next, 8, void, (hal_plugin_queue *))

SIZE(hal_extension_handles, 32)
FIELD(hal_extension_handles, size, uint32_t, 0)
FIELD(hal_extension_handles, version, uint32_t, 4)
ENTRY(hal_extension_handles, device_handle, 8, hal_status,
      (hal_plugin_device *, const char *, uint64_t *))
ENTRY(hal_extension_handles, queue_handle, 16, hal_status,
      (hal_plugin_queue *, const char *, uint64_t *))
ENTRY(hal_extension_handles, kernel_handle, 24, hal_status,
      (hal_plugin_device *, hal_plugin_kernel *, const char *, uint64_t *))
SIZE(hal_extension_native_queues, 32)
FIELD(hal_extension_native_queues, size, uint32_t, 0)
FIELD(hal_extension_native_queues, version, uint32_t, 4)
ENTRY(hal_extension_native_queues, queue_import, 8, hal_status,
      (hal_plugin_device *, const char *, uint64_t, hal_plugin_queue **))
ENTRY(hal_extension_native_queues, queue_wait_native, 16, hal_status,
      (hal_plugin_queue *, const char *, uint64_t))
ENTRY(hal_extension_native_queues, queue_block_native, 24, hal_status,
      (hal_plugin_queue *, const char *, uint64_t))
SIZE(hal_extension_virtual_memory, 48)
FIELD(hal_extension_virtual_memory, size, uint32_t, 0)
FIELD(hal_extension_virtual_memory, version, uint32_t, 4)
ENTRY(hal_extension_virtual_memory, part_bytes, 8, hal_status, (hal_plugin_device *, uint64_t *))
ENTRY(hal_extension_virtual_memory, memory_reserve, 16, hal_status,
      (hal_plugin_device *, uint64_t, hal_plugin_memory **))
ENTRY(hal_extension_virtual_memory, memory_commit, 24, hal_status,
      (hal_plugin_device *, hal_plugin_memory *, uint64_t, uint64_t))
ENTRY(hal_extension_virtual_memory, memory_decommit, 32, hal_status,
      (hal_plugin_device *, hal_plugin_memory *, uint64_t, uint64_t))
ENTRY(hal_extension_virtual_memory, memory_protect, 40, hal_status,
      (hal_plugin_device *, hal_plugin_memory *, uint64_t, uint64_t, uint32_t))
SIZE(hal_kernel_report, 48)
FIELD(hal_kernel_report, size, uint32_t, 0)
FIELD(hal_kernel_report, known, uint32_t, 4)
FIELD(hal_kernel_report, registers, uint32_t, 8)
FIELD(hal_kernel_report, from_cache, uint32_t, 12)
FIELD(hal_kernel_report, code_bytes, uint64_t, 16)
FIELD(hal_kernel_report, spilled_bytes, uint64_t, 24)
FIELD(hal_kernel_report, shared_bytes, uint64_t, 32)
FIELD(hal_kernel_report, compile_ns, uint64_t, 40)
SIZE(hal_clocks, 32)
FIELD(hal_clocks, size, uint32_t, 0)
FIELD(hal_clocks, reserved, uint32_t, 4)
FIELD(hal_clocks, host_ns, uint64_t, 8)
FIELD(hal_clocks, device_ns, uint64_t, 16)
FIELD(hal_clocks, deviation_ns, uint64_t, 24)
VALUE(HAL_REPORT_REGISTERS, 1)
VALUE(HAL_REPORT_CODE, 2)
VALUE(HAL_REPORT_SPILLS, 4)
VALUE(HAL_REPORT_SHARED, 8)
SIZE(hal_extension_reports, 32)
FIELD(hal_extension_reports, size, uint32_t, 0)
FIELD(hal_extension_reports, version, uint32_t, 4)
ENTRY(hal_extension_reports, kernel_report, 8, hal_status,
      (hal_plugin_device *, hal_plugin_kernel *, hal_kernel_report *))
ENTRY(hal_extension_reports, clocks_read, 16, hal_status, (hal_plugin_device *, hal_clocks *))
ENTRY(hal_extension_reports, queue_time, 24, hal_status,
      (hal_plugin_queue *, uint64_t, uint64_t *))
SIZE(hal_quirk, 24)
FIELD(hal_quirk, size, uint32_t, 0)
FIELD(hal_quirk, is_active, uint32_t, 4)
FIELD(hal_quirk, name, const char *, 8)
FIELD(hal_quirk, reason, const char *, 16)
SIZE(hal_extension_quirks, 16)
FIELD(hal_extension_quirks, size, uint32_t, 0)
FIELD(hal_extension_quirks, version, uint32_t, 4)
ENTRY(hal_extension_quirks, device_quirk, 8, hal_status,
      (hal_plugin_device *, uint32_t, hal_quirk *))

SIZE(hal_extension_fences, 56)
FIELD(hal_extension_fences, size, uint32_t, 0)
FIELD(hal_extension_fences, version, uint32_t, 4)
ENTRY(hal_extension_fences, fence_info, 8, hal_status,
      (hal_plugin_device *, uint32_t *, uint32_t *))
ENTRY(hal_extension_fences, fence_import, 16, hal_status,
      (hal_plugin_device *, uint32_t, uint64_t, hal_plugin_fence **))
ENTRY(hal_extension_fences, fence_create, 24, hal_status,
      (hal_plugin_device *, uint32_t, hal_plugin_fence **))
ENTRY(hal_extension_fences, fence_export, 32, hal_status,
      (hal_plugin_device *, hal_plugin_fence *, uint32_t, uint64_t *))
ENTRY(hal_extension_fences, fence_destroy, 40, void, (hal_plugin_device *, hal_plugin_fence *))
ENTRY(hal_extension_fences, queue_signal_fence, 48, hal_status,
      (hal_plugin_queue *, hal_plugin_fence *, uint64_t))
SIZE(hal_extension_external, 40)
FIELD(hal_extension_external, size, uint32_t, 0)
FIELD(hal_extension_external, version, uint32_t, 4)
ENTRY(hal_extension_external, external_info, 8, hal_status,
      (hal_plugin_device *, hal_external_info *))
ENTRY(hal_extension_external, memory_import, 16, hal_status,
      (hal_plugin_device *, const hal_memory_handle *, hal_plugin_memory **))
ENTRY(hal_extension_external, memory_export, 24, hal_status,
      (hal_plugin_device *, hal_plugin_memory *, uint32_t, hal_memory_handle *))
ENTRY(hal_extension_external, memory_allocate_shareable, 32, hal_status,
      (hal_plugin_device *, uint32_t, uint64_t, hal_plugin_memory **))
SIZE(hal_extension_collectives, 56)
FIELD(hal_extension_collectives, size, uint32_t, 0)
FIELD(hal_extension_collectives, version, uint32_t, 4)
ENTRY(hal_extension_collectives, comm_backend, 8, hal_status,
      (hal_plugin_instance *, hal_plugin_comm_backend *))
ENTRY(hal_extension_collectives, comm_id, 16, hal_status,
      (hal_plugin_instance *, hal_plugin_comm_id *))
ENTRY(hal_extension_collectives, comm_create, 24, hal_status,
      (hal_plugin_device *, const hal_plugin_comm_id *, uint32_t, uint32_t, hal_plugin_comm **))
ENTRY(hal_extension_collectives, comm_poll, 32, hal_status, (hal_plugin_comm *))
ENTRY(hal_extension_collectives, comm_abort, 40, void, (hal_plugin_comm *))
ENTRY(hal_extension_collectives, comm_destroy, 48, void, (hal_plugin_comm *))

typedef const hal_plugin *create(uint32_t, const hal_host *, hal_plugin_instance **);
SAME(hal_plugin_create_function, create *)
VALUE(sizeof HAL_PLUGIN_CREATE_SYMBOL, sizeof "hal_plugin_create")

/* plugin_entries.h lists each entry of the extensions. */
#define IN_TABLE(extension, name, needed) +(sizeof(hal_extension_##extension) - 8)
#define IN_LIST(extension, entry) +sizeof(void *)
ASSERT(0 HAL_EXTENSIONS(IN_TABLE) == 0 HAL_EXTENSION_ENTRIES(IN_LIST),
       "HAL_EXTENSION_ENTRIES is not what the tables of the extensions have");
