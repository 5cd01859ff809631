/* contract.h: the sentences of the plugin contract that a case proves, from docs/contract.md. */
#ifndef CONFORMANCE_REPORT_CONTRACT_H
#define CONFORMANCE_REPORT_CONTRACT_H

#include <stddef.h>

/* Writes the numbers and sentences that the case proves, at most three of them: "MEM-3: what the
 * host wrote ...". "" where the contract says nothing of it. */
void contract_sentences(const char *case_name, char *text, size_t bytes);

/* Writes the numbers of all sentences that the case proves, with commas: "MEM-3, MEM-4". */
void contract_numbers(const char *case_name, char *text, size_t bytes);

#endif
