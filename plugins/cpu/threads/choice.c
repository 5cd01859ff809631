/* The choice of a thread count, see thread_choice.h. Ordinary runs use the best count known and
 * keep its mean cost. Now and then a trial of a few runs measures another count; a budget bounds
 * the time that trials lose, so exploration costs a few percent whatever the other counts take. */
#include "threads/choice.h"

enum {
    WARM_UP = 3,         /* first runs of a choice, of which the least counts */
    TRIAL_SAMPLES = 5,   /* of which the worst is dropped */
    TRIAL_INTERVAL = 64, /* ordinary runs before the next count in turn is measured */
    TRIAL_PAUSE = 4,     /* ordinary runs between any two trials */
    PROBATION = 256,     /* runs after a change in which its gain or loss goes to the budget */
    MEAN_START = 8,      /* runs that the mean cost remembers in the first runs after a change */
    MEAN_EARLY = 32,     /* these first runs */
    MEAN_LENGTH = 64,    /* runs that the mean cost of the best count remembers */
    FORGET_INTERVAL = 64 /* ordinary runs after which old bad costs move towards the best */
};

static const float BUDGET_RATE = 0.02F;  /* of the time of ordinary runs */
static const float BUDGET_START = 8.0F;  /* ordinary runs */
static const float BUDGET_LIMIT = 64.0F; /* ordinary runs */
static const float UNKNOWN_COST = 2.0F;  /* of the best: expected of a count without a sample */
static const float MARGIN = 0.9F;        /* another count must take less than this of the best */
static const float GIVE_UP = 1.25F;      /* a trial ends early above this */
static const float OUTLIER = 16.0F;      /* a sample counts as at most this many times the mean */

static float least(float a, float b)
{
    return a < b ? a : b;
}

static void best_change(thread_choice *choice, uint32_t index)
{
    choice->rival = choice->best;
    choice->rival_cost = choice->cost[choice->best];
    choice->best = (uint8_t)index;
    choice->settled = 0;
}

static void trial_begin(thread_choice *choice, uint32_t index)
{
    choice->trial = (uint8_t)index;
    choice->trial_left = TRIAL_SAMPLES;
    choice->trial_taken = 0;
    choice->trial_sum = choice->trial_max = choice->trial_min = 0;
}

static void trial_end(thread_choice *choice, float cost)
{
    choice->cost[choice->trial] = cost;
    choice->trial_left = 0;
    choice->quiet = 0;
    if (cost < MARGIN * choice->cost[choice->best]) {
        best_change(choice, choice->trial);
    }
}

/* What a trial of a count is expected to lose, in costs; 0 if it is expected to gain. A trial of a
 * bad count ends after two samples. */
static float trial_loss(const thread_choice *choice, uint32_t index)
{
    const float best = choice->cost[choice->best];
    const float cost = choice->cost[index] > 0 ? choice->cost[index] : UNKNOWN_COST * best;
    return cost > best ? 2 * (cost - best) : 0;
}

/* Index of the count that promises the most over the best, or the best itself. */
static uint32_t promising_count(const thread_choice *choice, uint32_t length)
{
    uint32_t found = choice->best;
    for (uint32_t i = 0; i < length; i++) {
        if (choice->cost[i] > 0 && choice->cost[i] < MARGIN * choice->cost[choice->best] &&
            choice->cost[i] < choice->cost[found]) {
            found = i;
        }
    }
    return found;
}

/* Index of a neighbour of the best count that has no sample, or the best itself. */
static uint32_t unknown_neighbour(const thread_choice *choice, uint32_t length)
{
    const uint32_t best = choice->best;
    if (best > 0 && choice->cost[best - 1] <= 0) {
        return best - 1;
    }
    return best + 1 < length && choice->cost[best + 1] <= 0 ? best + 1 : best;
}

/* Index of the next count whose turn it is to be measured again. */
static uint32_t next_in_turn(const thread_choice *choice, uint32_t length)
{
    const uint32_t index = (choice->turn + 1U) % length;
    return index == choice->best ? (index + 1) % length : index;
}

/* Old costs are forgotten slowly: a count that was bad under another load is measured again. */
static void forget_bad_costs(thread_choice *choice, uint32_t length)
{
    const float best = choice->cost[choice->best];
    for (uint32_t i = 0; i < length; i++) {
        if (choice->cost[i] > best) {
            choice->cost[i] -= (choice->cost[i] - best) / 8;
        }
    }
}

static void trial_note(thread_choice *choice, float cost, float units)
{
    const float best = choice->cost[choice->best];
    choice->budget -= cost > best ? (cost - best) * units : 0;
    choice->trial_min = choice->trial_taken == 0 ? cost : least(choice->trial_min, cost);
    choice->trial_max = cost > choice->trial_max ? cost : choice->trial_max;
    choice->trial_sum += cost;
    choice->trial_taken++;
    choice->trial_left--;
    if (choice->trial_left == 0) {
        trial_end(choice, (choice->trial_sum - choice->trial_max) / (TRIAL_SAMPLES - 1));
    } else if (choice->trial_taken >= 2 && choice->trial_min > GIVE_UP * best) {
        trial_end(choice, choice->trial_min);
    }
}

/* A new best count proves itself: if the one before was better, the choice returns to it. */
static void probation_note(thread_choice *choice, float cost, float units)
{
    if (choice->rival_cost <= 0) {
        return;
    }
    choice->budget += (choice->rival_cost - cost) * units;
    if (MARGIN * choice->cost[choice->best] > choice->rival_cost) {
        best_change(choice, choice->rival);
        choice->rival_cost = 0;
        choice->quiet = 0;
    } else if (choice->settled >= PROBATION) {
        choice->rival_cost = 0;
    }
}

static void best_note(thread_choice *choice, uint32_t length, float cost, float units)
{
    float *mean = &choice->cost[choice->best];
    choice->settled += choice->settled < UINT16_MAX;
    choice->quiet += choice->quiet < UINT16_MAX;
    if (choice->warm_up > 0) {
        *mean = choice->warm_up == WARM_UP ? cost : least(*mean, cost);
        choice->budget = BUDGET_START * *mean * units;
        choice->warm_up--;
        return;
    }
    const float clamped = least(cost, OUTLIER * *mean);
    *mean += (clamped - *mean) / (choice->settled < MEAN_EARLY ? MEAN_START : MEAN_LENGTH);
    choice->budget += BUDGET_RATE * clamped * units;
    if (choice->settled % FORGET_INTERVAL == 0) {
        forget_bad_costs(choice, length);
    }
    probation_note(choice, cost, units);
    choice->budget = least(choice->budget, BUDGET_LIMIT * choice->cost[choice->best] * units);
}

void thread_counts_init(thread_counts *counts, uint32_t threads)
{
    const uint32_t half = (threads + 1) / 2;
    counts->length = 0;
    for (uint32_t count = 1; count < half; count *= 2) {
        counts->threads[counts->length++] = count;
    }
    if (half < threads) {
        counts->threads[counts->length++] = half;
    }
    counts->threads[counts->length++] = threads;
}

uint32_t thread_counts_find(const thread_counts *counts, uint32_t threads)
{
    uint32_t index = counts->length - 1;
    while (index > 0 && counts->threads[index] > threads) {
        index--;
    }
    return index;
}

void thread_choice_init(thread_choice *choice, uint32_t start)
{
    *choice = (thread_choice){
        .best = (uint8_t)start, .turn = (uint8_t)start, .warm_up = WARM_UP, .settled = PROBATION};
}

uint32_t thread_choice_next(thread_choice *choice, const thread_counts *counts)
{
    const uint32_t length = counts->length;
    if (choice->trial_left > 0) {
        return choice->trial;
    }
    if (length == 1 || choice->warm_up > 0 || choice->quiet < TRIAL_PAUSE) {
        return choice->best;
    }
    uint32_t index = promising_count(choice, length);
    if (index == choice->best) {
        index = unknown_neighbour(choice, length);
        if (index == choice->best && choice->quiet >= TRIAL_INTERVAL) {
            index = next_in_turn(choice, length);
        }
        if (index == choice->best || choice->budget < trial_loss(choice, index) * choice->units) {
            return choice->best;
        }
        choice->turn = (uint8_t)index;
    }
    trial_begin(choice, index);
    return index;
}

void thread_choice_note(thread_choice *choice, const thread_counts *counts, uint32_t used,
                        double nanoseconds, double expected, double units)
{
    const float cost = (float)((nanoseconds + 1) / units);
    choice->units = (float)units;
    if (used != 0 && !choice->one_measured) {
        choice->cost[0] = (float)((expected + 1) / units);
    }
    choice->one_measured |= used == 0;
    if (choice->trial_left > 0 && used == choice->trial) {
        trial_note(choice, cost, (float)units);
    } else if (used == choice->best) {
        best_note(choice, counts->length, cost, (float)units);
    }
}
