/* unlinked.c: uses a library that the mutant is not linked with: it loads only into programs that
 * have it. */
#include <hal/status.h>

const char *mutant_needs_hal(hal_status status);

__attribute__((used)) const char *mutant_needs_hal(hal_status status)
{
    return hal_status_name(status);
}
