/* Reading a file of HAL_DUMP=batch, which may come from anywhere: every length, count and number is
 * checked against the file before it is used. hal/dump.h has the form. Called by hal_replay.c,
 * replay_run.c and the fuzz target fuzz_replay_file. */
#ifndef HAL_TOOLS_REPLAY_FILE_H
#define HAL_TOOLS_REPLAY_FILE_H

#include <hal/plugin.h>

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
    replay_bytes ir; /* the kernel's, the signature's or the epilogue's */
    replay_bytes format, entry, code;
    hal_gemm_description gemm; /* without its epilogue */
    uint64_t workspace_bytes;
} replay_kernel;

/* A binding; memory 0: none. */
typedef struct replay_range {
    uint64_t memory, offset, length;
    uint32_t access;
} replay_range;

typedef struct replay_command {
    uint32_t kind; /* HAL_COMMAND_* */
    uint32_t flags, binding_count, grid[3], pattern;
    uint64_t kernel; /* 0: none */
    replay_range bindings[HAL_IR_MAX_BINDINGS];
    replay_bytes scalars;
} replay_command;

/* A record; what its kind has is filled in. */
typedef struct replay_record {
    uint32_t kind;     /* HAL_DUMP_* */
    uint64_t at;       /* its place in the file */
    uint64_t id;       /* of a memory; the number of a batch */
    uint64_t bytes;    /* of a memory */
    uint64_t offset;   /* of data */
    replay_bytes data; /* that a memory holds */
    uint32_t command_count;
    replay_bytes commands; /* for replay_next_command */
    hal_status status;     /* of an outcome */
    replay_bytes message;
    replay_device device;
    replay_kernel kernel;
} replay_record;

/* Begins with replay_file_begin; refers to the bytes, which stay the caller's. */
typedef struct replay_file {
    replay_bytes rest;
    uint64_t at;       /* bytes read */
    char message[192]; /* of the last failure */
} replay_file;

/* Reads the head. 0, and a message, for a file that is none. */
int replay_file_begin(replay_file *file, const void *data, uint64_t bytes);

/* The next record: 1; 0 at the end; -1, and a message, where the file is damaged or cut. */
int replay_file_next(replay_file *file, replay_record *record);

/* Takes the next of a batch's commands off `commands`; 0 when there is none. */
int replay_next_command(replay_bytes *commands, replay_command *command);

#endif
