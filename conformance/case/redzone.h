/* redzone.h: buffers with canaries before and after the range that a case uses, and poison in
 * outputs. Every halfword of canary and poison is a NaN in all float types (and no BOOL), so that
 * reads outside of the range and unwritten outputs are visible in the result. Called by the cases;
 * canary_first_broken also by the unit test. */
#ifndef HAL_CONFORMANCE_REDZONE_H
#define HAL_CONFORMANCE_REDZONE_H

#include "case.h"
#include "reference.h"

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

/* Fills memory with the canary; finds the first byte that differs, or `bytes`. */
void canary_fill(void *memory, uint64_t bytes);
uint64_t canary_first_broken(const void *memory, uint64_t bytes);

#endif
