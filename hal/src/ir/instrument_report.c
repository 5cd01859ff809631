/* Reports of kernels with checks, see instrument.h: those of a block are written after one branch,
 * by one piece of code for all places, so that checks neither take the block apart nor keep
 * registers that it needs. */
#include "instrument.h"

#include "report.h"

#include <string.h>

/* What is written of a fault. */
typedef struct report_words {
    hal_ir_value site, record;
    hal_ir_value values[6]; /* of index, x and y */
} report_words;

enum { WORDS = sizeof(report_words) / sizeof(hal_ir_value) };

/* Counts a fault and describes the first one. */
static void report_write(hal_ir_instrumentation *s, const report_words *report)
{
    hal_ir_builder *b = s->b;
    const hal_ir_memory_id reports = s->from->binding_count;
    const hal_ir_value one = hal_ir_u32(b, 1), zero = hal_ir_u32(b, 0);
    const hal_ir_value site = hal_ir_mul(b, report->site, hal_ir_u32(b, HAL_IR_REPORT_WORDS));
    const hal_ir_value before =
        hal_ir_atomic(b, HAL_IR_ATOMIC_ADD, reports, site, HAL_IR_NONE, one, HAL_IR_NONE);
    hal_ir_if(b, hal_ir_eq(b, before, zero));
    hal_ir_atomic(b, HAL_IR_ATOMIC_ADD, reports, zero, HAL_IR_NONE, one, HAL_IR_NONE);
    const hal_ir_value words[12] = {hal_ir_dispatch_name(s),
                                    hal_ir_id(b, HAL_IR_GROUP_ID, 0),
                                    hal_ir_id(b, HAL_IR_GROUP_ID, 1),
                                    hal_ir_id(b, HAL_IR_GROUP_ID, 2),
                                    hal_ir_item_number(b, s->from->group_size),
                                    report->values[0],
                                    report->values[1],
                                    report->record,
                                    report->values[2],
                                    report->values[3],
                                    report->values[4],
                                    report->values[5]};
    for (uint32_t i = 0; i < 3; i++) {
        hal_ir_store_wide(b, reports, site, (int32_t)(4 + 4 * i), HAL_IR_NONE,
                          hal_ir_pack(b, 4, words + 4 * i));
    }
    hal_ir_end(b);
}

static hal_ir_value pending_wrong(hal_ir_builder *b, const hal_ir_pending *report)
{
    return report->is_right ? hal_ir_and_maybe(b, hal_ir_not(b, report->condition), report->guard)
                            : report->condition;
}

static report_words words_of_pending(hal_ir_builder *b, const hal_ir_pending *report)
{
    report_words words = {.site = report->number > 0 ? hal_ir_u32(b, report->number) : report->site,
                          .record = hal_ir_u32(b, report->record)};
    hal_ir_value_words(b, report->index, words.values);
    hal_ir_value_words(b, report->x, words.values + 2);
    hal_ir_value_words(b, report->y, words.values + 4);
    return words;
}

/* Whether a report of the block is wrong. Those that say what is right are combined by their
 * guards, which most accesses of a block share. */
static hal_ir_value pending_any(hal_ir_instrumentation *s, uint32_t count)
{
    hal_ir_builder *b = s->b;
    hal_ir_value any = HAL_IR_NONE;
    bool is_taken[HAL_IR_MAX_PENDING] = {false};
    for (uint32_t i = 0; i < count; i++) {
        const hal_ir_pending *report = &s->pending[i];
        if (is_taken[i]) {
            continue;
        }
        hal_ir_value wrong = report->condition;
        if (report->is_right) {
            hal_ir_value all = report->condition;
            for (uint32_t k = i + 1; k < count; k++) {
                if (s->pending[k].is_right && s->pending[k].guard == report->guard) {
                    is_taken[k] = true;
                    all = hal_ir_and(b, all, s->pending[k].condition);
                }
            }
            wrong = hal_ir_and_maybe(b, hal_ir_not(b, all), report->guard);
        }
        any = any == HAL_IR_NONE ? wrong : hal_ir_or(b, any, wrong);
    }
    return any;
}

/* The number-th of the words; equal neighbours are one choice. below[i]: whether the number is less
 * than i. */
static hal_ir_value word_choose(hal_ir_builder *b, hal_ir_value number, hal_ir_value *below,
                                const hal_ir_value *words, uint32_t count)
{
    hal_ir_value chosen = words[count - 1];
    for (uint32_t i = count - 1; i > 0; i--) {
        if (words[i - 1] == words[i]) {
            continue;
        }
        if (below[i] == HAL_IR_NONE) {
            below[i] = hal_ir_lt(b, number, hal_ir_u32(b, i));
        }
        chosen = hal_ir_select(b, below[i], words[i - 1], chosen);
    }
    return chosen;
}

/* A bit for each report of the block: whether it is wrong. */
static hal_ir_value pending_bits(hal_ir_instrumentation *s, uint32_t count)
{
    hal_ir_builder *b = s->b;
    hal_ir_value bits = HAL_IR_NONE;
    for (uint32_t i = 0; i < count; i++) {
        const hal_ir_value one = hal_ir_select(b, pending_wrong(b, &s->pending[i]),
                                               hal_ir_u32(b, 1U << i), hal_ir_u32(b, 0));
        bits = bits == HAL_IR_NONE ? one : hal_ir_or(b, bits, one);
    }
    return bits;
}

/* The site of the number-th report, if each one's is the next of that before it; else NONE. */
static hal_ir_value site_of_number(const hal_ir_instrumentation *s, hal_ir_value number,
                                   uint32_t count)
{
    const uint32_t first = s->pending[0].number;
    for (uint32_t i = 0; i < count; i++) {
        if (first == 0 || s->pending[i].number != first + i) {
            return HAL_IR_NONE;
        }
    }
    return hal_ir_add(s->b, number, hal_ir_u32(s->b, first));
}

/* `count`, which no compiler knows to be a constant: it would unroll the loop. */
static hal_ir_value loop_end(hal_ir_instrumentation *s, uint32_t count)
{
    hal_ir_builder *b = s->b;
    return hal_ir_select(b, hal_ir_never(s), hal_ir_u32(b, 0), hal_ir_u32(b, count));
}

/* Writes several reports by a loop: one piece of code for each would be most of the kernel. */
static void reports_write(hal_ir_instrumentation *s, uint32_t count)
{
    hal_ir_builder *b = s->b;
    hal_ir_value words[WORDS][HAL_IR_MAX_PENDING], below[HAL_IR_MAX_PENDING], chosen[WORDS];
    for (uint32_t i = 0; i < count; i++) {
        const report_words report = words_of_pending(b, &s->pending[i]);
        memcpy(chosen, &report, sizeof report);
        for (uint32_t k = 0; k < WORDS; k++) {
            words[k][i] = chosen[k];
        }
        below[i] = HAL_IR_NONE;
    }
    const hal_ir_value bits = pending_bits(s, count), one = hal_ir_u32(b, 1);
    const hal_ir_value number = hal_ir_for(b, hal_ir_u32(b, 0), loop_end(s, count), one);
    hal_ir_if(b, hal_ir_eq(b, hal_ir_and(b, hal_ir_shr(b, bits, number), one), one));
    for (uint32_t k = 0; k < WORDS; k++) {
        chosen[k] = k == 0 ? site_of_number(s, number, count) : HAL_IR_NONE;
        if (chosen[k] == HAL_IR_NONE) {
            chosen[k] = word_choose(b, number, below, words[k], count);
        }
    }
    report_words report;
    memcpy(&report, chosen, sizeof report);
    report_write(s, &report);
    hal_ir_end(b);
    hal_ir_end(b);
}

static void reports_write_each(hal_ir_instrumentation *s, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        const report_words report = words_of_pending(s->b, &s->pending[i]);
        hal_ir_if(s->b, pending_wrong(s->b, &s->pending[i]));
        report_write(s, &report);
        hal_ir_end(s->b);
    }
}

void hal_ir_reports_end(hal_ir_instrumentation *s)
{
    const uint32_t count = s->pending_count;
    s->pending_count = 0;
    if (count == 0) {
        return;
    }
    hal_ir_if(s->b, pending_any(s, count));
    if (count == 1) {
        const report_words report = words_of_pending(s->b, &s->pending[0]);
        report_write(s, &report);
    } else if (s->has_room_for_loops) {
        reports_write(s, count);
    } else {
        reports_write_each(s, count);
    }
    hal_ir_end(s->b);
}

static void pending_add(hal_ir_instrumentation *s, const hal_ir_pending *report)
{
    if (s->pending_count == HAL_IR_MAX_PENDING) {
        hal_ir_reports_end(s);
    }
    s->pending[s->pending_count++] = *report;
}

void hal_ir_report_of(hal_ir_instrumentation *s, hal_ir_value site, hal_ir_value wrong,
                      hal_ir_value index, hal_ir_value x, hal_ir_value y)
{
    pending_add(s, &(hal_ir_pending){.site = site,
                                     .condition = wrong,
                                     .guard = HAL_IR_NONE,
                                     .index = index,
                                     .x = x,
                                     .y = y,
                                     .record = s->index});
}

void hal_ir_report_at(hal_ir_instrumentation *s, uint32_t site, hal_ir_value wrong,
                      hal_ir_value index, hal_ir_value x, hal_ir_value y)
{
    pending_add(s, &(hal_ir_pending){.number = site + 1,
                                     .condition = wrong,
                                     .guard = HAL_IR_NONE,
                                     .index = index,
                                     .x = x,
                                     .y = y});
}

void hal_ir_report_fault(hal_ir_instrumentation *s, hal_ir_fault fault, hal_ir_value wrong,
                         uint32_t memory, hal_ir_value index, hal_ir_value x, hal_ir_value y)
{
    hal_ir_report_at(s, hal_ir_site_add(s, fault, memory), wrong, index, x, y);
}

void hal_ir_report_unless(hal_ir_instrumentation *s, hal_ir_fault fault, hal_ir_value right,
                          hal_ir_value guard, uint32_t memory, hal_ir_value index, hal_ir_value x)
{
    pending_add(s, &(hal_ir_pending){.number = hal_ir_site_add(s, fault, memory) + 1,
                                     .condition = right,
                                     .guard = guard,
                                     .is_right = true,
                                     .index = index,
                                     .x = x,
                                     .y = HAL_IR_NONE});
}
