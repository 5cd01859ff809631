/* cover.h: the table opcode x type x memory kind: which cells have to be covered, written from
 * ir.h, and which cases cover them. A required cell without a case is an empty one. */
#ifndef CONFORMANCE_CASE_COVER_H
#define CONFORMANCE_CASE_COVER_H

#include <stdio.h>

#include "case/case.h"

/* The types of the operands of an opcode that computes one value from others of one type
 * (arithmetic, bits, comparisons, select, transcendental functions); 0 for the others. */
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
