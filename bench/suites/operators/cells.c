/* The cells of hal-bench operators. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "suites/operators/operators.h"

/* Names of operations with the numbers of a cell. */
static const struct {
    const char *operation;
    int64_t numbers[OPERATOR_NUMBERS];
} fixed[] = {
    /* ResNet-50 */
    {"convolution", {1, 3, 224, 224, 64, 7, 2, 3, 1, 0}},
    {"convolution", {1, 64, 56, 56, 64, 1, 1, 0, 1, 0}},
    {"convolution", {1, 64, 56, 56, 64, 3, 1, 1, 1, 0}},
    {"convolution", {1, 64, 56, 56, 256, 1, 1, 0, 1, 0}},
    {"convolution", {1, 128, 56, 56, 128, 3, 2, 1, 1, 0}},
    {"convolution", {1, 128, 28, 28, 128, 3, 1, 1, 1, 0}},
    {"convolution", {1, 256, 14, 14, 256, 3, 1, 1, 1, 0}},
    {"convolution", {1, 512, 7, 7, 512, 3, 1, 1, 1, 0}},
    {"convolution", {1, 1024, 14, 14, 2048, 1, 2, 0, 1, 0}},
    {"convolution", {4, 64, 56, 56, 64, 3, 1, 1, 1, 1}},
    {"convolution", {4, 256, 14, 14, 256, 3, 1, 1, 1, 1}},
    /* ResNet-18, training with 128 images of 32 x 32 */
    {"convolution", {128, 3, 32, 32, 64, 3, 1, 1, 1, 0}},
    {"convolution", {128, 64, 32, 32, 64, 3, 1, 1, 1, 0}},
    {"convolution", {128, 64, 32, 32, 128, 3, 2, 1, 1, 0}},
    {"convolution", {128, 256, 8, 8, 256, 3, 1, 1, 1, 0}},
    {"convolution", {128, 512, 4, 4, 512, 3, 1, 1, 1, 0}},
    {"convolution_input", {128, 64, 32, 32, 64, 3, 1, 1, 1, 0}},
    {"convolution_input", {128, 64, 32, 32, 128, 3, 2, 1, 1, 0}},
    {"convolution_input", {128, 256, 8, 8, 256, 3, 1, 1, 1, 0}},
    {"convolution_input", {128, 512, 4, 4, 512, 3, 1, 1, 1, 0}},
    {"convolution_weights", {128, 64, 32, 32, 64, 3, 1, 1, 1, 0}},
    {"convolution_weights", {128, 64, 32, 32, 128, 3, 2, 1, 1, 0}},
    {"convolution_weights", {128, 64, 32, 32, 128, 1, 2, 0, 1, 0}},
    {"convolution_weights", {128, 256, 8, 8, 256, 3, 1, 1, 1, 0}},
    {"convolution_weights", {128, 512, 4, 4, 512, 3, 1, 1, 1, 0}},
    {"max_pool", {4, 64, 112, 112, 0, 3, 2, 1, 0, 0}},
    {"batch_norm", {4, 256, 56, 56}},
    /* MobileNetV3 */
    {"convolution", {1, 16, 112, 112, 16, 3, 1, 1, 16, 0}},
    {"convolution", {1, 64, 112, 112, 64, 3, 2, 1, 64, 0}},
    {"convolution", {1, 72, 56, 56, 72, 5, 2, 2, 72, 0}},
    {"convolution", {1, 120, 28, 28, 120, 5, 1, 2, 120, 0}},
    {"convolution", {1, 240, 28, 28, 240, 3, 2, 1, 240, 0}},
    {"convolution", {1, 672, 14, 14, 672, 5, 2, 2, 672, 0}},
    {"convolution", {1, 960, 7, 7, 960, 5, 1, 2, 960, 0}},
    {"convolution", {1, 64, 112, 112, 64, 3, 2, 1, 64, 1}},
    {"convolution", {1, 240, 28, 28, 240, 3, 1, 1, 240, 1}},
    {"convolution", {1, 960, 7, 7, 960, 5, 1, 2, 960, 1}},
    {"average_pool", {4, 960, 7, 7, 0, 7, 7, 0, 0, 0}},
    /* U-Net */
    {"convolution", {1, 1, 256, 256, 32, 3, 1, 1, 1, 0}},
    {"convolution", {1, 32, 256, 256, 32, 3, 1, 1, 1, 0}},
    {"convolution", {1, 192, 64, 64, 64, 3, 1, 1, 1, 0}},
    {"max_pool", {1, 64, 256, 256, 0, 2, 2, 0, 0, 0}},
    {"max_pool", {1, 64, 128, 128, 0, 2, 2, 0, 0, 1}},
    {"average_pool", {1, 64, 255, 255, 0, 3, 2, 1, 0, 0}},
    {"group_norm", {2, 64, 128, 128, 0, 0, 0, 0, 8, 0}},
    {"group_norm", {4, 128, 64, 64, 0, 0, 0, 0, 128, 0}},
    {"convolution", {2, 32, 28, 28, 64, 3, 1, 1, 4, 0}},
    {"sort", {1, 1000}},
    {"sort", {1, 65536}},
    {"sort", {1, 1000003}},
    {"sort", {64, 4096}},
    {"sort", {4096, 64}},
    {"sort", {1, 4194304}},
    {"top", {1, 1000000, 10}},
    {"top", {64, 50257, 50}},
    {"top", {1024, 1000, 5}},
    {"scatter_add", {1000, 64, 10000}},
    {"scatter_add", {1000000, 1, 1000000}},
    {"scatter_add", {64, 1024, 4096}},
    {"index_add", {50257, 64, 4096}},
    {"index_add", {1000, 128, 16384}},
    {"index_add", {30522, 768, 2048}},
};

static double draw_unit(uint64_t *state)
{
    return (double)(bench_word(state) >> 11) * 0x1p-53;
}

/* A number from `least` to `most` whose logarithm is uniform. */
static int64_t draw_number(uint64_t *state, double least, double most)
{
    return (int64_t)(least * pow((most + 1) / least, draw_unit(state)));
}

static void draw_image(uint64_t *state, operator_cell *cell, bool is_convolution)
{
    int64_t *n = cell->numbers;
    const int64_t channels = draw_number(state, 1, 512);
    const double side = sqrt(1.6e6 / (double)channels);
    n[0] = draw_number(state, 1, 4);
    n[1] = channels;
    n[2] = draw_number(state, 7, side < 256 ? fmax(side, 8) : 256);
    n[3] = draw_number(state, 7, side < 256 ? fmax(side, 8) : 256);
    n[4] = is_convolution ? draw_number(state, 1, 512) : 0;
    n[5] = draw_number(state, is_convolution ? 1 : 2, 7);
    n[6] = draw_number(state, 1, n[5] < 3 ? n[5] : 3);
    n[7] = n[5] / 2;
    n[9] = draw_unit(state) < 0.4;
    n[8] = is_convolution;
    if (is_convolution && draw_unit(state) < 0.4) { /* depthwise */
        n[8] = n[4] = n[1];
    }
}

static void cell_draw(uint64_t *state, operator_cell *cell)
{
    static const char *const names[] = {"convolution", "convolution", "max_pool",    "average_pool",
                                        "sort",        "top",         "scatter_add", "index_add"};
    const int kind = (int)(bench_word(state) >> 20 & 7);
    cell->kind = operator_kind_find(names[kind]);
    if (kind < 4) {
        draw_image(state, cell, kind < 2);
        return;
    }
    int64_t *n = cell->numbers;
    n[1] = draw_number(state, kind < 6 ? 16 : 1, kind < 6 ? 2000000 : 1000);
    n[0] = draw_number(state, 1, 2e6 / (double)n[1]);
    n[2] = kind < 6 ? draw_number(state, 1, n[1] < 100 ? (double)n[1] : 100)
                    : draw_number(state, 1, 2e6 / (double)n[1]);
}

/* "convolution f32 1x64x56x56x64x3x1x1x1x0" */
static void cell_name(operator_cell *cell, bool is_random)
{
    const char *rest = cell->kind->numbers;
    size_t length = (size_t)snprintf(cell->name, sizeof cell->name, "%s %s ", cell->kind->name,
                                     hal_type_name(cell->type));
    for (int i = 0; i < OPERATOR_NUMBERS && *rest; i++) {
        length += (size_t)snprintf(cell->name + length, sizeof cell->name - length, "%s%lld",
                                   i == 0 ? "" : "x", (long long)cell->numbers[i]);
        rest += strcspn(rest, " ");
        rest += strspn(rest, " ");
    }
    snprintf(cell->name + length, sizeof cell->name - length, "%s", is_random ? " random" : "");
}

/* Adds the cell for each type, where its name passes; one more is room for the next one. */
static int cell_add_types(const bench_options *options, const operator_cell *drawn,
                          operator_cell *cells)
{
    static const hal_type types[] = {HAL_TYPE_F32, HAL_TYPE_F16, HAL_TYPE_BF16};
    const bool has_types = strncmp(drawn->kind->name, "convolution", 11) == 0;
    int count = 0;
    for (int i = 0; i < (has_types ? OPERATOR_TYPES : 1); i++) {
        const char *name = hal_type_name(types[i]);
        operator_cell *cell = &cells[count];
        *cell = *drawn;
        cell->type = types[i];
        cell_name(cell, options->random > 0);
        count += (options->types && has_types ? bench_lists(options->types, name) : i == 0) &&
                 bench_name_passes(cell->name, options->filter);
    }
    return count;
}

int operator_cells_create(const bench_options *options, uint64_t seed, operator_cell **cells)
{
    enum { FIXED = sizeof fixed / sizeof fixed[0], MOST_DRAWS = 1000 };
    uint64_t state = bench_seed(seed);
    const int random = (int)options->random;
    const int wanted = random > 0 ? random : FIXED;
    int count = 0, found = 0;
    *cells = calloc((size_t)wanted * OPERATOR_TYPES + 1, sizeof **cells);
    for (int i = 0; *cells && found < wanted && i < (random > 0 ? wanted * MOST_DRAWS : wanted);
         i++) {
        operator_cell drawn = {.precision = options->precision}, *cell = &drawn;
        if (random > 0) {
            cell_draw(&state, cell);
        } else {
            cell->kind = operator_kind_find(fixed[i].operation);
            memcpy(cell->numbers, fixed[i].numbers, sizeof cell->numbers);
        }
        const int added = cell_add_types(options, cell, *cells + count);
        count += added;
        found += added > 0;
    }
    return *cells ? count : -1;
}

void operator_cells_print(const operator_cell *cells, int count, uint64_t seed)
{
    printf("{\"seed\": %llu, \"cells\": [", (unsigned long long)seed);
    for (int i = 0; i < count; i++) {
        printf("%s\n {\"case\": \"%s\", \"operation\": \"%s\", \"type\": \"%s\", \"numbers\": [",
               i == 0 ? "" : ",", cells[i].name, cells[i].kind->name, hal_type_name(cells[i].type));
        for (int k = 0; k < OPERATOR_NUMBERS; k++) {
            printf("%s%lld", k == 0 ? "" : ", ", (long long)cells[i].numbers[k]);
        }
        printf("]}");
    }
    printf("\n]}\n");
}
