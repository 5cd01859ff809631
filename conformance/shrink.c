/* shrink.c: the search for the smallest case that fails; shrink.h says who calls it.
 *
 * One size after the other goes down, first to its least value, then by half of that way, and so
 * on to steps of one; over all sizes again until none goes down. */
#include "shrink.h"

#include <string.h>

static void next_size(shrink *search);

void shrink_begin(shrink *search, const case_entry *failed)
{
    *search = (shrink){.family = failed->family};
    memcpy(search->smallest, failed->parameters, failed->family->bytes);
}

bool shrink_next(shrink *search)
{
    const case_family *family = search->family;
    for (;;) {
        if (search->at == family->size_count) {
            if (!search->went_down) {
                return false;
            }
            search->at = 0;
            search->went_down = false;
        }
        const case_size *size = &family->sizes[search->at];
        const int64_t value = case_size_get(size, search->smallest), most = value - size->least;
        if (search->step == 0 || search->step > most) {
            search->step = most;
        }
        if (most <= 0) {
            next_size(search);
            continue;
        }
        memcpy(search->tried, search->smallest, family->bytes);
        case_size_set(size, search->tried, value - search->step);
        if (family->fits == NULL || family->fits(search->tried)) {
            return true;
        }
        shrink_tell(search, false);
    }
}

void shrink_tell(shrink *search, bool failed)
{
    if (failed) {
        memcpy(search->smallest, search->tried, search->family->bytes);
        search->went_down = true;
    } else if (search->step > 1) {
        search->step /= 2;
    } else {
        next_size(search);
    }
}

static void next_size(shrink *search)
{
    search->at++;
    search->step = 0;
}
