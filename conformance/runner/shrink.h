/* shrink.h: looks for smaller sizes with which a case of a family still fails. It only proposes:
 * runner.c runs what it proposes, in the child, and tells both the child's copy and its own what
 * came of it, so that a crash is an answer like any other and the search continues after it. */
#ifndef CONFORMANCE_RUNNER_SHRINK_H
#define CONFORMANCE_RUNNER_SHRINK_H

#include "case/case.h"

typedef struct shrink {
    const case_family *family;              /* null: nothing is being shrunk */
    uint8_t smallest[CASE_PARAMETER_BYTES]; /* with which it failed */
    uint8_t tried[CASE_PARAMETER_BYTES];    /* proposed last */
    size_t at;                              /* the size that is made smaller now, */
    int64_t step;                           /* by so much; 0: not begun */
    bool went_down;                         /* some size did since the first was looked at */
} shrink;

void shrink_begin(shrink *search, const case_entry *failed);

/* Proposes the next parameters, in `tried`. False when no single size could be made smaller any
 * more. */
bool shrink_next(shrink *search);

/* Their results. */
void shrink_tell(shrink *search, bool failed);

#endif
