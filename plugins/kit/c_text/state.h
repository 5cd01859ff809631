/* State of one C-family lowering, and what its files offer to each other: c_text/hide.c is at the
 * bottom, then c_text/write.c; c_text/value.c and c_text/memory.c use them, and c_text.c uses all
 * of them. */
#ifndef PLUGINS_KIT_C_TEXT_STATE_H
#define PLUGINS_KIT_C_TEXT_STATE_H

#include <kit/c_text.h>

typedef struct kit_c_state {
    const kit_c_dialect *dialect;
    const hal_ir_kernel *ir;
    kit_text *text;
    uint32_t depth;
    uint32_t bindings_meet; /* a barrier has to order accesses to bindings too */
} kit_c_state;

/* The meaning of the letters of a pattern. */
typedef struct kit_c_words {
    char operands[4][40];
    hal_type type, from; /* of the result, of operand a */
    uint32_t width, aux;
    int32_t imm;
    const char *place, *space, *element, *value, *operation;
} kit_c_words;

/* c_text/check.c: UNSUPPORTED, naming the field, for a dialect that cannot write the kernel. */
hal_status kit_c_check(const hal_host *host, const kit_c_dialect *dialect, const hal_ir_kernel *ir);

/* c_text/write.c */
void kit_c_put(kit_c_state *state, const char *bytes);
void kit_c_put_number(kit_c_state *state, uint64_t number);
void kit_c_expand(kit_c_state *state, const char *pattern, const kit_c_words *words);
/* The literal of a constant. */
void kit_c_literal(const kit_c_state *state, hal_ir_value value, char name[40]);
/* The text of a value: its name, or a literal. */
void kit_c_name(const kit_c_state *state, hal_ir_value value, char name[40]);
/* Type names of values; vectors of BOOL are bytes. */
void kit_c_put_type(kit_c_state *state, hal_type type, uint32_t width);
/* "const TYPE vN = ", on a new line. */
void kit_c_declare(kit_c_state *state, hal_ir_value value, const char *qualifier);
void kit_c_new_line(kit_c_state *state);

/* c_text/hide.c: whether the dialect hides a value, which a literal cannot be then. */
bool kit_c_is_hidden(const kit_c_state *state, hal_ir_value value);

/* c_text/value.c: the pattern of a pure operation; null: none. */
const char *kit_c_pattern(const kit_c_state *state, const hal_ir_record *record);
/* A value rounded to BF16, as 16 bits. */
extern const char kit_c_bits_of_bf16[];

/* c_text/memory.c: statements of accesses and asynchronous copies; false when the dialect lacks
 * them. */
bool kit_c_load(kit_c_state *state, hal_ir_value value);
bool kit_c_store(kit_c_state *state, const hal_ir_record *record);
bool kit_c_atomic(kit_c_state *state, hal_ir_value value);
bool kit_c_async_copy(kit_c_state *state, const hal_ir_record *record);

#endif
