/* Measuring the competitors of hal-bench in turns. */
#include "unit.h"

#include <harness/measure.h>

enum { COUNT = 300, KEPT = 2 };

static void add_calls(void *user, int calls)
{
    *(long *)user += calls;
}

/* More than take turns at length, of which none has the time 0. */
TEST(every_competitor_is_measured)
{
    static measured competitors[COUNT];
    static long calls[COUNT];
    for (int i = 0; i < COUNT; i++) {
        competitors[i] = (measured){.function = add_calls, .user = &calls[i]};
    }
    measure_screened(competitors, COUNT, KEPT, 1e-6);
    int lengthy = 0;
    for (int i = 0; i < COUNT; i++) {
        assert_true(calls[i] > 0);
        assert_true(competitors[i].time.runs > 0);
        assert_true(competitors[i].time.median_us > 0);
        lengthy += competitors[i].time.runs > 3;
    }
    assert_true(competitors[0].time.runs > 3 && competitors[1].time.runs > 3);
    assert_in_range(lengthy, KEPT + 1, KEPT + 5);
}

UNIT_MAIN(NULL, NULL)
