/* compare.h: what changed since an earlier report, the file that --json wrote. */
#ifndef CONFORMANCE_REPORT_COMPARE_H
#define CONFORMANCE_REPORT_COMPARE_H

#include "report/report.h"

typedef struct compare_report compare_report;

/* Reads an earlier report. Null with a message in `message`. Freed with compare_free. */
compare_report *compare_read(const char *path, char *message, size_t bytes);
void compare_free(compare_report *earlier);

typedef struct compare_counts {
    size_t newly_failing, newly_passing, newly_unsupported, added, gone, not_run, slower;
} compare_counts;

/* Prints differences, ignoring seeds, and returns their counts. A case that
 * `all` does not have any more is gone; one that was only not chosen is not run. Slower is one that
 * passed both times and takes more than twice as long and 50 ms longer. */
compare_counts compare_print(FILE *file, compare_report *earlier, const run_report *made,
                             const case_list *all);

#endif
