/* The form of the files that HAL_DUMP=batch writes and hal-replay runs again; docs/layers.md tells
 * how to make and use them. Stands alone.
 *
 * A file is a row of records and nothing between them; it may end after any of them, as the
 * process may. Numbers are little-endian and lie at any address; a string is a u32 of its bytes and
 * then those, without a closing zero.
 *
 *     file     = HAL_DUMP_MAGIC, u32 HAL_DUMP_VERSION, u32 0, records
 *     record   = u32 kind, u32 0, u64 bytes of the payload, payload
 *
 * What holds over the whole file: memory is zeros until a DATA or RESULT says otherwise, so both
 * together are what memory holds on the device that was recorded. A DATA comes before the BATCH
 * that meets those bytes, a RESULT after it, then its OUTCOME. A BATCH without an OUTCOME is the
 * last one of a process that ended in it. */
#ifndef HAL_DUMP_H
#define HAL_DUMP_H

/* What a file begins with: 8 bytes. */
#define HAL_DUMP_MAGIC "HALBATCH"

/* Raised whenever a reader of the version before could not read a file any more. */
#define HAL_DUMP_VERSION 3u

/* Kinds of records, and their payloads. */
enum {
    /* What the queue belonged to: string plugin, u32 index, string name, string driver, string
     * architecture, u32 subgroup_width, u32 exactness, string version of hal. The first record. */
    HAL_DUMP_DEVICE = 1,

    /* A kernel, before its first use: u64 id (not 0), u32 form (HAL_DUMP_KERNEL_*), string name,
     * and what the form says. */
    HAL_DUMP_KERNEL = 2,

    /* Memory, before its first use: u64 id (not 0), u64 bytes. */
    HAL_DUMP_MEMORY = 3,

    /* Memory that is no more: u64 id. */
    HAL_DUMP_FREE = 4,

    /* What memory holds, seen before a batch, where it is news: u64 id, u64 offset, bytes up to
     * the end of the payload. */
    HAL_DUMP_DATA = 5,

    /* What a queue ran in one piece: u64 number, u32 commands, and each command: u16
     * HAL_COMMAND_*, u16 flags, u32 bindings, u32 bytes of scalars, u32 grid[3], u32 0, u64
     * kernel (0: none); then its bindings, each u64 memory (0: none), u64 offset, u64 length, u32
     * HAL_ACCESS_*, u32 0; then its scalars. */
    HAL_DUMP_BATCH = 6,

    /* As DATA: what the batch changed, or what changed while it ran. */
    HAL_DUMP_RESULT = 7,

    /* How the batch ended: u32 hal_status, string with the sentence of a failure. */
    HAL_DUMP_OUTCOME = 8,

    /* With HAL_DUMP=calls, where a batch has one command: what memory holds now is the value of a
     * call of a library on top of hal (hal_profile_value): u64 number, u64 id, u64 offset, u64
     * bytes, u32 hal_type, string call, string with the calls of its group. */
    HAL_DUMP_VALUE = 9
};

/* Forms of a kernel. */
enum {
    /* string: the IR as it was built, as hal_ir_print writes it. */
    HAL_DUMP_KERNEL_IR = 1,

    /* string format, string entry, string with the signature's IR, code up to the end. */
    HAL_DUMP_KERNEL_NATIVE = 2,

    /* A plugin's own matrix product (hal_gemm_description): u32 type_a, type_b, type_c,
     * transpose_a, transpose_b, beta_is_zero, precision, levels, batch; i64 m, n, k, lda, ldb, ldc,
     * stride_a, stride_b, stride_c; u32 inputs, and each input: u32 type, i64 row, column, batch
     * stride; string with the epilogue's IR (empty: none); u64 bytes of workspace. */
    HAL_DUMP_KERNEL_GEMM = 3,

    /* A plugin's own attention (hal_attention_description): u32 type, causal, precision, batch,
     * outer; i64 m, n, d, e, and of q, k, v and y each: i64 row, batch, outer stride. */
    HAL_DUMP_KERNEL_ATTENTION = 4,

    /* A plugin's own product of groups of rows: as HAL_DUMP_KERNEL_GEMM, then u32 type_offsets. */
    HAL_DUMP_KERNEL_GROUPED_GEMM = 5
};

#endif
