/* Makes distortion matrices on the host; used by network.c's caller before training. */
#include "distort.h"

#include "data.h"

#include <math.h>
#include <string.h>

/* A number in [-limit, limit). Source: SplitMix64, G. L. Steele, D. Lea, C. H. Flood, "Fast
 * Splittable Pseudorandom Number Generators", OOPSLA 2014. */
static double between(uint64_t *state, double limit)
{
    uint64_t z = (*state += UINT64_C(0x9e3779b97f4a7c15));
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    z ^= z >> 31;
    return ((double)(z >> 11) * 0x1p-52 - 1) * limit;
}

static void add_sample(float *matrix, int target, int row, int column, double weight)
{
    if (row >= 0 && row < DIGITS_SIDE && column >= 0 && column < DIGITS_SIDE) {
        matrix[(row * DIGITS_SIDE + column) * DIGITS_PIXELS + target] += (float)weight;
    }
}

/* Each target pixel is a bilinear sample of the source; column j of the matrix has its weights. */
static void make_one(uint64_t *state, distort_limits limits, float *matrix)
{
    const double middle = (DIGITS_SIDE - 1) / 2.0;
    double turn = between(state, limits.turn);
    double slant = between(state, limits.turn);
    double scale = 1 + between(state, limits.scale);
    double shift_row = between(state, limits.shift), shift_column = between(state, limits.shift);
    double cosine = cos(turn) / scale, sine = sin(turn) / scale;

    memset(matrix, 0, sizeof(float) * DIGITS_PIXELS * DIGITS_PIXELS);
    for (int target = 0; target < DIGITS_PIXELS; target++) {
        double y = target / DIGITS_SIDE - middle, x = target % DIGITS_SIDE - middle;
        double row = cosine * y - sine * x + middle + shift_row;
        double column = sine * y + cosine * x + slant * y + middle + shift_column;
        int top = (int)floor(row), left = (int)floor(column);
        double down = row - top, right = column - left;
        add_sample(matrix, target, top, left, (1 - down) * (1 - right));
        add_sample(matrix, target, top, left + 1, (1 - down) * right);
        add_sample(matrix, target, top + 1, left, down * (1 - right));
        add_sample(matrix, target, top + 1, left + 1, down * right);
    }
}

void distort_make(uint64_t seed, distort_limits limits, int64_t count, float *matrices)
{
    uint64_t state = seed;
    for (int64_t i = 0; i < count; i++) {
        make_one(&state, limits, matrices + i * DIGITS_PIXELS * DIGITS_PIXELS);
    }
}
