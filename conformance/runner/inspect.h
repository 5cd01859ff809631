/* inspect.h: a first look at the device under test, in a child process, so that the program itself
 * never loads a plugin. */
#ifndef CONFORMANCE_RUNNER_INSPECT_H
#define CONFORMANCE_RUNNER_INSPECT_H

#include "report/report.h"

/* Opens `selection` (null: the default choice, or, with `plugin_path`, the first device of that
 * file) and tells what it is; it may take `seconds` to answer. False with a message in
 * `message`. */
bool inspect_device(const char *selection, const char *plugin_path, unsigned seconds,
                    report_device *device, char *message, size_t bytes);

#endif
