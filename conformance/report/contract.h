/* contract.h: the sentences of the plugin contract that a case proves, from docs/contract.md. */
#ifndef CONFORMANCE_REPORT_CONTRACT_H
#define CONFORMANCE_REPORT_CONTRACT_H

#include <stddef.h>

/* Writes the numbers and sentences that the case proves, at most three of them: "MEM-3: what the
 * host wrote ...". "" where the contract says nothing of it. */
void contract_sentences(const char *case_name, char *text, size_t bytes);

#endif
