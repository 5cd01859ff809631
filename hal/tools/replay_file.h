/* Parses a file of HAL_DUMP=batch, which is not trusted: every length, count and number is checked
 * before use. hal/dump.h has the format. */
#ifndef HAL_TOOLS_REPLAY_FILE_H
#define HAL_TOOLS_REPLAY_FILE_H

#include <hal/plugin.h>
#include <stdbool.h>

/* Bytes of the file; text without a closing zero. */
typedef struct replay_bytes {
    const uint8_t *data;
    uint64_t count;
} replay_bytes;

typedef struct replay_device {
    replay_bytes plugin, name, driver, architecture, version;
    uint32_t index, subgroup_width, exactness;
} replay_device;

typedef struct replay_kernel {
    uint64_t id;
    uint32_t form; /* HAL_DUMP_KERNEL_* */
    replay_bytes name;
    replay_bytes ir; /* of the kernel, the native kernel's bindings, or the epilogue */
    replay_bytes format, entry, code;
    hal_gemm_description gemm; /* without its epilogue */
    uint64_t workspace_bytes;
    hal_attention_description attention;
} replay_kernel;

/* A binding; memory 0: none. */
typedef struct replay_range {
    uint64_t memory, offset, length;
    uint32_t access;
} replay_range;

typedef struct replay_command {
    uint32_t kind; /* HAL_COMMAND_* */
    uint32_t flags, binding_count, grid[3];
    uint64_t kernel; /* 0: none */
    replay_range bindings[HAL_IR_MAX_BINDINGS + 1];
    replay_bytes scalars;
} replay_command;

/* What memory holds: the value of a call. */
typedef struct replay_value {
    uint64_t number, memory, offset, bytes;
    uint32_t type;
    replay_bytes call, group;
} replay_value;

/* A record; the fields of its kind are set. */
typedef struct replay_record {
    uint32_t kind;     /* HAL_DUMP_* */
    uint64_t at;       /* offset in the file */
    uint64_t id;       /* of a memory; the number of a batch */
    uint64_t bytes;    /* of a memory */
    uint64_t offset;   /* of data */
    replay_bytes data; /* contents of a memory */
    uint32_t command_count;
    replay_bytes commands; /* for replay_next_command */
    hal_status status;     /* of an outcome */
    replay_bytes message;
    replay_device device;
    replay_kernel kernel;
    replay_value value;
} replay_record;

/* Refers to the caller's bytes. */
typedef struct replay_file {
    replay_bytes rest;
    uint64_t at;       /* bytes read */
    char message[192]; /* of the last failure */
} replay_file;

/* Parses the header. Returns 0 with a message for an invalid file. */
bool replay_file_begin(replay_file *file, const void *data, uint64_t bytes);

/* Parses the next record. Returns 1, 0 at the end, -1 with a message for a damaged file. */
int replay_file_next(replay_file *file, replay_record *record);

/* Removes the next command from a batch's `commands`. Returns 0 at the end. */
bool replay_next_command(replay_bytes *commands, replay_command *command);

#endif
