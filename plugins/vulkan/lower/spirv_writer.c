/* Growing sections, and a hash table over the declarations. */
#include "lower/spirv_writer.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { FIRST_CAPACITY = 256, HEADER_WORDS = 5 };

/* Room for `count` more words, or null. */
static uint32_t *section_reserve(spirv_writer *writer, spirv_section section, uint32_t count)
{
    spirv_words *words = &writer->sections[section];
    if (count >= 1u << 16) { /* longer than an instruction may be */
        writer->failed = 1;
    }
    if (writer->failed) {
        return NULL;
    }
    if (words->count + count > words->capacity) {
        uint32_t capacity = words->capacity == 0 ? FIRST_CAPACITY : 2 * words->capacity;
        capacity = capacity < words->count + count ? words->count + count : capacity;
        uint32_t *data = realloc(words->data, capacity * sizeof *data);
        if (!data) {
            writer->failed = 1;
            return NULL;
        }
        words->data = data;
        words->capacity = capacity;
    }
    words->count += count;
    return words->data + words->count - count;
}

static uint32_t instruction_hash(uint32_t opcode, uint32_t type, const uint32_t *operands,
                                 uint32_t count)
{
    uint32_t hash = (opcode * 31 + type) * 0x9e3779b1u;
    for (uint32_t i = 0; i < count; i++) {
        hash = (hash ^ operands[i]) * 0x85ebca6bu;
        hash ^= hash >> 15;
    }
    return hash ^ hash >> 13;
}

static bool grow_unique(spirv_writer *writer)
{
    const spirv_words *declared = &writer->sections[SPIRV_DECLARATIONS];
    const uint32_t old = writer->unique_capacity;
    const uint32_t capacity = old == 0 ? FIRST_CAPACITY : 2 * old;
    uint32_t *table = writer->failed ? NULL : calloc(capacity, sizeof *table);
    if (!table) {
        writer->failed = 1;
        return false;
    }
    for (uint32_t i = 0; i < old; i++) {
        if (writer->unique[i] == 0) {
            continue;
        }
        const uint32_t *place = declared->data + writer->unique[i] - 1;
        const uint32_t opcode = place[0] & 0xffff, length = place[0] >> 16;
        const int typed =
            opcode >= SPV_OP_CONSTANT_TRUE && opcode != SPV_OP_TYPE_COOPERATIVE_MATRIX;
        uint32_t at = instruction_hash(opcode, typed ? place[1] : 0, place + (typed ? 3 : 2),
                                       length - (typed ? 3 : 2)) &
                      (capacity - 1);
        while (table[at] != 0) {
            at = (at + 1) & (capacity - 1);
        }
        table[at] = writer->unique[i];
    }
    free(writer->unique);
    writer->unique = table;
    writer->unique_capacity = capacity;
    return true;
}

static bool same(const uint32_t *place, uint32_t opcode, uint32_t type, const uint32_t *operands,
                 uint32_t count)
{
    const uint32_t before = type != 0 ? 3 : 2;
    return place[0] == ((count + before) << 16 | opcode) && (type == 0 || place[1] == type) &&
           (count == 0 || memcmp(place + before, operands, count * sizeof *operands) == 0);
}

uint32_t spirv_id(spirv_writer *writer)
{
    return ++writer->last_id;
}

void spirv_emit(spirv_writer *writer, spirv_section section, uint32_t opcode,
                const uint32_t *operands, uint32_t count)
{
    uint32_t *place = section_reserve(writer, section, count + 1);
    if (place) {
        place[0] = (count + 1) << 16 | opcode;
        if (count > 0) {
            memcpy(place + 1, operands, count * sizeof *operands);
        }
    }
}

void spirv_emit_text(spirv_writer *writer, spirv_section section, uint32_t opcode,
                     const uint32_t *operands, uint32_t count, const char *text,
                     const uint32_t *after, uint32_t after_count)
{
    const size_t bytes = strlen(text);
    const uint32_t words = (uint32_t)(bytes / 4 + 1), all = 1 + count + words + after_count;
    uint32_t *place = section_reserve(writer, section, all);
    if (!place) {
        return;
    }
    place[0] = all << 16 | opcode;
    if (count > 0) {
        memcpy(place + 1, operands, count * sizeof *operands);
    }
    memset(place + 1 + count, 0, words * sizeof *place);
    memcpy(place + 1 + count, text, bytes);
    if (after_count > 0) {
        memcpy(place + 1 + count + words, after, after_count * sizeof *after);
    }
}

uint32_t spirv_result(spirv_writer *writer, uint32_t opcode, uint32_t type,
                      const uint32_t *operands, uint32_t count)
{
    const uint32_t id = spirv_id(writer);
    uint32_t *place = section_reserve(writer, SPIRV_BODY, count + 3);
    if (place) {
        place[0] = (count + 3) << 16 | opcode;
        place[1] = type;
        place[2] = id;
        memcpy(place + 3, operands, count * sizeof *operands);
    }
    return id;
}

/* Types have their result first, constants their type and then their result. */
uint32_t spirv_unique(spirv_writer *writer, uint32_t opcode, uint32_t type,
                      const uint32_t *operands, uint32_t count)
{
    spirv_words *declared = &writer->sections[SPIRV_DECLARATIONS];
    if (2 * writer->unique_count >= writer->unique_capacity && !grow_unique(writer)) {
        return spirv_id(writer);
    }
    const uint32_t mask = writer->unique_capacity - 1;
    uint32_t at = instruction_hash(opcode, type, operands, count) & mask;
    while (writer->unique[at] != 0) {
        const uint32_t *place = declared->data + writer->unique[at] - 1;
        if (same(place, opcode, type, operands, count)) {
            return place[type != 0 ? 2 : 1];
        }
        at = (at + 1) & mask;
    }
    const uint32_t id = spirv_id(writer), length = count + (type != 0 ? 3 : 2);
    uint32_t *place = section_reserve(writer, SPIRV_DECLARATIONS, length);
    if (place) {
        *place = length << 16 | opcode;
        place += type != 0 ? 1 : 0;
        *place = type != 0 ? type : *place;
        place[1] = id;
        if (count > 0) {
            memcpy(place + 2, operands, count * sizeof *operands);
        }
        writer->unique[at] = declared->count - length + 1;
        writer->unique_count++;
    }
    return id;
}

void spirv_capability(spirv_writer *writer, uint32_t capability)
{
    const spirv_words *words = &writer->sections[SPIRV_CAPABILITIES];
    for (uint32_t i = 1; i < words->count; i += 2) {
        if (words->data[i] == capability) {
            return;
        }
    }
    EMIT(writer, SPIRV_CAPABILITIES, SPV_OP_CAPABILITY, capability);
}

void spirv_extension(spirv_writer *writer, const char *name)
{
    const spirv_words *words = &writer->sections[SPIRV_EXTENSIONS];
    for (uint32_t i = 0; i < words->count; i += words->data[i] >> 16) {
        if (strcmp((const char *)(words->data + i + 1), name) == 0) {
            return;
        }
    }
    spirv_emit_text(writer, SPIRV_EXTENSIONS, SPV_OP_EXTENSION, NULL, 0, name, NULL, 0);
}

uint32_t *spirv_finish(spirv_writer *writer, uint32_t *word_count)
{
    uint32_t total = HEADER_WORDS;
    for (int i = 0; i < SPIRV_SECTION_COUNT; i++) {
        total += writer->sections[i].count;
    }
    uint32_t *module = writer->failed ? NULL : malloc(total * sizeof *module);
    *word_count = 0;
    if (!module) {
        writer->failed = 1;
        return NULL;
    }
    const uint32_t header[HEADER_WORDS] = {SPV_MAGIC, SPV_VERSION_1_5, 0, writer->last_id + 1, 0};
    memcpy(module, header, sizeof header);
    *word_count = HEADER_WORDS;
    for (int i = 0; i < SPIRV_SECTION_COUNT; i++) {
        const spirv_words *words = &writer->sections[i];
        if (words->count > 0) {
            memcpy(module + *word_count, words->data, words->count * sizeof *module);
        }
        *word_count += words->count;
    }
    return module;
}

void spirv_release(spirv_writer *writer)
{
    for (int i = 0; i < SPIRV_SECTION_COUNT; i++) {
        free(writer->sections[i].data);
    }
    free(writer->unique);
    *writer = (spirv_writer){0};
}
