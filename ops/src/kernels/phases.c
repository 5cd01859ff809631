/* See phases.h. */
#include "phases.h"

int64_t ops_common_divisor(int64_t a, int64_t b)
{
    while (b != 0) {
        const int64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

/* Elements of the window that belong to one phase are so far apart. */
static int64_t tap_distance(const ops_phase_axis *a)
{
    return a->step / ops_common_divisor(a->dilation, a->step);
}

int64_t ops_phase_count(const ops_phase_axis *a)
{
    const int64_t apart = tap_distance(a);
    return apart < a->window ? apart : a->window;
}

/* number modulo the step, from 0 on. */
static int64_t modulo(const ops_phase_axis *a, int64_t number)
{
    return (number % a->step + a->step) % a->step;
}

/* Where element k of the window is modulo the step, from where element k - 1 is: no product beyond
 * 64 bits. */
static int64_t next_residue(const ops_phase_axis *a, int64_t residue)
{
    return (int64_t)(((uint64_t)residue + (uint64_t)(a->dilation % a->step)) % (uint64_t)a->step);
}

/* Of results from `first` on, whose first element of the window is `least`; ops_phase_count of them
 * or more: none. */
static ops_phase phase_from(const ops_phase_axis *a, int64_t first, int64_t least)
{
    ops_phase p = {.first = first, .tap_step = tap_distance(a)};
    p.places = a->results > first ? (a->results - first - 1) / a->step + 1 : 0;
    p.apart = a->dilation / ops_common_divisor(a->dilation, a->step);
    if (least < ops_phase_count(a)) {
        p.taps = (a->window - 1 - least) / p.tap_step + 1;
        p.tap = least + (p.taps - 1) * p.tap_step;
        p.position = (first + a->before - p.tap * a->dilation) / a->step;
    }
    return p;
}

ops_phase ops_phase_of_tap(const ops_phase_axis *a, int64_t least)
{
    int64_t first = modulo(a, -a->before);
    for (int64_t k = 0; k < least; k++) {
        first = next_residue(a, first);
    }
    return phase_from(a, first, least);
}

ops_phase ops_phase_of_result(const ops_phase_axis *a, int64_t first)
{
    const int64_t wanted = modulo(a, first + a->before), count = ops_phase_count(a);
    int64_t least = 0;
    for (int64_t residue = 0; least < count && residue != wanted; least++) {
        residue = next_residue(a, residue);
    }
    return phase_from(a, first, least);
}

bool ops_phase_reach(const ops_phase_axis *a, int64_t *before, int64_t *end)
{
    bool reads = false;
    for (int64_t least = 0; least < ops_phase_count(a); least++) {
        const ops_phase p = ops_phase_of_tap(a, least);
        const int64_t last = p.position + p.places + (p.taps - 1) * p.apart;
        if (p.places > 0) {
            *before = !reads || -p.position > *before ? -p.position : *before;
            *end = !reads || last > *end ? last : *end;
            reads = true;
        }
    }
    return reads;
}
