/* redzone.h: buffers with canaries before and after the range that a case uses, and the canary's
 * pattern as poison in outputs. */
#ifndef CONFORMANCE_CASE_REDZONE_H
#define CONFORMANCE_CASE_REDZONE_H

#include "case/canary.h"
#include "case/case.h"
#include "case/reference.h"

#define REDZONE_BYTES 256u

/* A range of a buffer. The range starts `lead` bytes after an aligned offset. */
typedef struct red_zone {
    hal_buffer *buffer;
    uint64_t offset; /* of the range */
    uint64_t bytes;  /* of the range */
    uint64_t total;  /* of the buffer */
} red_zone;

/* Makes a zone of `bytes` bytes holding `data`, poison when null; released at the case's end. */
red_zone zone_create(case_run *run, uint64_t bytes, const void *data);
red_zone zone_create_at(case_run *run, uint64_t lead, uint64_t bytes, const void *data);

hal_range zone_range(const red_zone *zone);

/* Waits, reads the range to `data` (may be null) and checks both canaries, a broken one of which is
 * reported under the name `what`. */
void zone_read(case_run *run, const red_zone *zone, void *data, const char *what);

/* Reports a comparison that failed. */
_Noreturn void case_report(case_run *run, const comparison *found, const char *what);

#endif
