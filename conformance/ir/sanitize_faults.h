/* sanitize_faults.h: kernels with a fault each, and without it, for the cases of level sanitize. */
#ifndef CONFORMANCE_IR_SANITIZE_FAULTS_H
#define CONFORMANCE_IR_SANITIZE_FAULTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { SANITIZE_BINDINGS = 3, SANITIZE_WORDS = 4, SANITIZE_TEXT_BYTES = 4096 };

/* A kernel as text in which @ stands for `wrong` or `right`. It is dispatched over 4 groups of 64
 * work-items; a binding has 256 elements unless `bytes` says otherwise. */
typedef struct sanitize_fault {
    const char *name;
    const char *check; /* of HAL_SANITIZE */
    const char *text;  /* what follows the head that sanitize_faults.c describes */
    const char *right, *wrong;
    uint32_t bytes[SANITIZE_BINDINGS];     /* of a binding; 0: 1024 */
    uint32_t unwritten[SANITIZE_BINDINGS]; /* with the fault, the last bytes of a binding */
    bool has_more; /* another finding follows from it: of elements that stay unwritten */
    const char *words[SANITIZE_WORDS]; /* of the finding */
} sanitize_fault;

extern const sanitize_fault sanitize_faults[];
extern const size_t sanitize_fault_count;

/* The whole text of the kernel, with `part` (the fault's `wrong` or `right`) in place of @. */
void sanitize_fault_text(const sanitize_fault *fault, const char *part,
                         char text[static SANITIZE_TEXT_BYTES]);

#endif
