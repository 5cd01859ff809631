/* Writes a SPIR-V module: growing sections in the order of the specification, and types and
 * constants that are declared once.
 *
 * After a failed allocation `failed` is set and further calls have no effect, so only the end
 * checks it. Threads: each writer on one thread. */
#ifndef PLUGINS_VULKAN_LOWER_SPIRV_WRITER_H
#define PLUGINS_VULKAN_LOWER_SPIRV_WRITER_H

#include "lower/spirv.h"

#include <stdint.h>

/* In the order of a module. SPIRV_HEAD starts the main function and has its variables. */
typedef enum spirv_section {
    SPIRV_CAPABILITIES,
    SPIRV_EXTENSIONS,
    SPIRV_PREAMBLE, /* imports, memory model */
    SPIRV_ENTRY,
    SPIRV_MODES,
    SPIRV_NAMES,
    SPIRV_DECORATIONS,
    SPIRV_DECLARATIONS, /* types, constants, variables of the module */
    SPIRV_HEAD,
    SPIRV_BODY,
    SPIRV_SECTION_COUNT
} spirv_section;

typedef struct spirv_words {
    uint32_t *data;
    uint32_t count, capacity;
} spirv_words;

typedef struct spirv_writer {
    spirv_words sections[SPIRV_SECTION_COUNT];
    uint32_t last_id;
    uint32_t failed;
    uint32_t *unique; /* hash table of instructions in DECLARATIONS: their index there + 1 */
    uint32_t unique_count, unique_capacity;
} spirv_writer;

/* A new result id. */
uint32_t spirv_id(spirv_writer *writer);

/* Appends an instruction with its operands. */
void spirv_emit(spirv_writer *writer, spirv_section section, uint32_t opcode,
                const uint32_t *operands, uint32_t count);

/* Appends one whose operands end with a text: names, entry points, extensions. */
void spirv_emit_text(spirv_writer *writer, spirv_section section, uint32_t opcode,
                     const uint32_t *operands, uint32_t count, const char *text,
                     const uint32_t *after, uint32_t after_count);

/* Appends an instruction with a result of `type` to the body. Returns the result. */
uint32_t spirv_result(spirv_writer *writer, uint32_t opcode, uint32_t type,
                      const uint32_t *operands, uint32_t count);

/* A type (type 0) or a constant, declared by the first call. */
uint32_t spirv_unique(spirv_writer *writer, uint32_t opcode, uint32_t type,
                      const uint32_t *operands, uint32_t count);

/* Declares a capability or an extension of the module, once. */
void spirv_capability(spirv_writer *writer, uint32_t capability);
void spirv_extension(spirv_writer *writer, const char *name);

/* The words of the module, or null without memory. The caller frees them. */
uint32_t *spirv_finish(spirv_writer *writer, uint32_t *word_count);

/* Frees all memory of a writer that was initialised to {0}. */
void spirv_release(spirv_writer *writer);

/* The same with the operands as arguments. */
#define SPIRV_COUNT(...) ((uint32_t)(sizeof((uint32_t[]){__VA_ARGS__}) / sizeof(uint32_t)))
#define EMIT(writer, section, opcode, ...) \
    spirv_emit(writer, section, opcode, (uint32_t[]){__VA_ARGS__}, SPIRV_COUNT(__VA_ARGS__))
#define RESULT(writer, opcode, type, ...) \
    spirv_result(writer, opcode, type, (uint32_t[]){__VA_ARGS__}, SPIRV_COUNT(__VA_ARGS__))
#define UNIQUE(writer, opcode, type, ...) \
    spirv_unique(writer, opcode, type, (uint32_t[]){__VA_ARGS__}, SPIRV_COUNT(__VA_ARGS__))

#endif
