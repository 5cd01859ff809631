/* cover.h: the table opcode x type x memory kind: which cells have to be covered, written from
 * ir.h, and which cases cover them. Called by main.c for --table; the cases say what they cover by
 * case_covers. A required cell without a case is an empty one. */
#ifndef HAL_CONFORMANCE_COVER_H
#define HAL_CONFORMANCE_COVER_H

#include <stdio.h>

#include "case.h"

/* Sets of types, as HAL_TYPE_BIT. */
#define COVER_INTEGERS                                                                      \
    (HAL_TYPE_BIT(HAL_TYPE_I32) | HAL_TYPE_BIT(HAL_TYPE_U32) | HAL_TYPE_BIT(HAL_TYPE_I64) | \
     HAL_TYPE_BIT(HAL_TYPE_U64))
#define COVER_FLOATS (HAL_TYPE_BIT(HAL_TYPE_F32) | HAL_TYPE_BIT(HAL_TYPE_F64))
#define COVER_NUMBERS (COVER_INTEGERS | COVER_FLOATS)
#define COVER_BOOL HAL_TYPE_BIT(HAL_TYPE_BOOL)
#define COVER_VALUES (COVER_NUMBERS | COVER_BOOL)
#define COVER_STORAGE                                                                       \
    (COVER_VALUES | HAL_TYPE_BIT(HAL_TYPE_I8) | HAL_TYPE_BIT(HAL_TYPE_U8) |                 \
     HAL_TYPE_BIT(HAL_TYPE_I16) | HAL_TYPE_BIT(HAL_TYPE_U16) | HAL_TYPE_BIT(HAL_TYPE_F16) | \
     HAL_TYPE_BIT(HAL_TYPE_BF16))

/* The types of one opcode that computes values: arithmetic, bits, comparisons, select and
 * transcendental functions (types of the operands); 0 for the others. */
uint32_t cover_types_of(uint32_t opcode);

/* Operands of such an opcode: 1, 2 or 3. */
unsigned cover_operands_of(uint32_t opcode);

/* Calls `visit` for every cell that has to be covered. */
void cover_each_cell(void (*visit)(void *user, const case_cover *cell), void *user);

/* Chooses a few of the cases, which cover every opcode x type x kind of memory and every value of
 * every parameter that all of them cover; the same ones each time. False: out of memory. */
bool cover_select(const case_entry *const *entries, size_t count, bool *chosen);

/* Prints the table; the number of empty cells. */
size_t cover_print(FILE *file, const case_list *list);

#endif
