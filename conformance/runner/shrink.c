/* shrink.c: the search for the smallest case that fails.
 *
 * One size after the other goes down: first to its least value, then by powers of two, since what
 * goes wrong often does so for a remainder of one; what is small goes up from its least value, so
 * that the smallest is found. Over all sizes again until none goes down. */
#include "runner/shrink.h"

#include <string.h>

/* How far above its least value a size is small. */
enum { SMALL = 32 };

static void next_size(shrink *search)
{
    search->at++;
    search->step = 0;
}

/* 0: none */
static int64_t next_step(int64_t step, int64_t most)
{
    int64_t power = 1;
    while (2 * power < step) {
        power *= 2;
    }
    return most <= SMALL ? step - 1 : step > 1 ? power : 0;
}

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
        if (most <= 0) {
            next_size(search);
            continue;
        }
        search->step = search->step == 0 ? most : search->step;
        memcpy(search->tried, search->smallest, family->bytes);
        case_size_set(size, search->tried, value - search->step);
        if (!family->fits || family->fits(search->tried)) {
            return true;
        }
        shrink_tell(search, false);
    }
}

void shrink_tell(shrink *search, bool failed)
{
    const case_size *size = &search->family->sizes[search->at];
    const int64_t most = case_size_get(size, search->smallest) - size->least;
    if (failed) {
        memcpy(search->smallest, search->tried, search->family->bytes);
        search->went_down = true;
    }
    search->step = failed ? 0 : next_step(search->step, most);
    /* Of a small size, all that are smaller have been tried. */
    if ((failed && most <= SMALL) || (!failed && search->step == 0)) {
        next_size(search);
    }
}
