/* The cells of hal-bench grid. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "suites/grid/grid.h"

enum { RANDOM_CELLS = 40 };

/* Shapes as "4096x64"; "4096x64@10" has its axes permuted. Types: f is f32, h f16, b bf16. The
 * sizes are those of networks, powers of two, and odd ones next to them. */
static const struct {
    const char *operation, *x, *y;
    int axis;
    const char *types;
} fixed[] = {
    {"copy", "1024", NULL, 0, "f"},
    {"copy", "1000003", NULL, 0, "fh"},
    {"copy", "16777216", NULL, 0, "fhb"},
    {"copy", "268435456", NULL, 0, "f"},
    {"copy", "4096x4096@10", NULL, 0, "fhb"},
    {"copy", "4097x4095@10", NULL, 0, "fh"},
    {"copy", "1048576x16@10", NULL, 0, "f"},
    {"copy", "16x1048576@10", NULL, 0, "f"},
    {"copy", "32x512x16x64@0213", NULL, 0, "fh"},
    {"copy", "64x3x256x257@0231", NULL, 0, "fh"},
    {"copy", "64x256x257x3@0312", NULL, 0, "f"},
    {"copy", "256x256x256@210", NULL, 0, "fb"},
    {"copy", "100x101x102x17@3120", NULL, 0, "f"},
    {"neg", "1024", NULL, 0, "f"},
    {"neg", "4096x4096@10", NULL, 0, "fhb"},
    {"neg", "1024x1024@10", NULL, 0, "f"},
    {"exp", "16777216", NULL, 0, "fb"},
    {"tanh", "16777216", NULL, 0, "fh"},
    {"gelu", "1024", NULL, 0, "f"},
    {"gelu", "65536", NULL, 0, "f"},
    {"gelu", "1024x1024", NULL, 0, "f"},
    {"gelu", "4096x4096", NULL, 0, "fhb"},
    {"gelu", "8x1023x3072", NULL, 0, "fh"},
    {"add", "1024", "1024", 0, "f"},
    {"add", "65537", "65537", 0, "f"},
    {"add", "1000003", "1000003", 0, "fh"},
    {"add", "16777216", "16777216", 0, "fhb"},
    {"add", "134217728", "134217728", 0, "f"},
    {"add", "4096x4096", "4096", 0, "fb"},
    {"add", "4096x4096", "4096x1", 0, "f"},
    {"add", "32x128x56x57", "128x1x1", 0, "fh"},
    {"add", "4096x1", "1x4099", 0, "f"},
    {"add", "4096x4096", "4096x4096@10", 0, "fhb"},
    {"add", "512x384x100", "100x384x512@210", 0, "f"},
    {"chain", "16777216", "16777216", 0, "fhb"},
    {"chain", "67108864", "67108864", 0, "f"},
    {"chain", "3000001", "3000001", 0, "f"},
    {"chain", "1024x1024", "1024x1024", 0, "f"},
    {"where", "4096x4096", "4096x4096", 0, "fh"},
    {"sum", "1024", NULL, 0, "f"},
    {"sum", "1024x1024", NULL, 1, "f"},
    {"sum", "1024x1024", NULL, 0, "f"},
    {"sum", "4096x4096", NULL, 1, "fb"},
    {"sum", "4096x4096", NULL, 0, "fb"},
    {"sum", "262144x64", NULL, 1, "fh"},
    {"sum", "262144x64", NULL, 0, "f"},
    {"sum", "64x262144", NULL, 0, "f"},
    {"sum", "1x16777216", NULL, 1, "f"},
    {"sum", "134217728", NULL, 0, "f"},
    {"sum", "3x5000011", NULL, 1, "f"},
    {"sum", "256x257x255", NULL, 1, "fh"},
    {"sum", "131073x127", NULL, 1, "f"},
    {"mean", "4096x4096", NULL, 1, "fb"},
    {"max", "4096x4096", NULL, 0, "f"},
    {"max", "4096x4096", NULL, 1, "f"},
    {"argmax", "4096x4096", NULL, 1, "f"},
    {"argmax", "4096x4096", NULL, 0, "f"},
    {"argmax", "262144x64", NULL, 1, "f"},
    {"argmax", "32x128256", NULL, 1, "fb"},
    {"argmax", "1x16777216", NULL, 1, "f"},
    {"argmax", "1024x1024", NULL, 1, "f"},
    {"variance", "4096x4096", NULL, 1, "f"},
    {"variance", "262144x64", NULL, 1, "f"},
    {"softmax", "32x128256", NULL, 1, "fhb"},
    {"softmax", "1x16777216", NULL, 1, "f"},
    {"softmax", "16x1048577", NULL, 1, "f"},
    {"softmax", "4096x4096", NULL, 1, "fhb"},
    {"softmax", "4096x4096", NULL, 0, "f"},
    {"softmax", "262144x64", NULL, 1, "fh"},
    {"softmax", "262144x64", NULL, 0, "f"},
    {"softmax", "64x1000x512", NULL, 1, "fb"},
    {"softmax", "4x630x2562", NULL, 1, "fb"},
    {"softmax", "65x1025", NULL, 1, "f"},
    {"softmax", "1024x1024", NULL, 1, "f"},
    {"softmax", "1024x1024", NULL, 0, "f"},
    {"softmax", "65536x64", NULL, 1, "f"},
    {"softmax", "8x16x1000x1000", NULL, 3, "h"},
    {"log_softmax", "2048x50257", NULL, 1, "fb"},
    {"layer_norm", "4096x4096", NULL, 1, "fhb"},
    {"layer_norm", "262144x64", NULL, 1, "f"},
    {"layer_norm", "8192x768", NULL, 1, "fh"},
    {"layer_norm", "16x1048577", NULL, 1, "f"},
    {"layer_norm", "64x768x512", NULL, 1, "fb"},
    {"layer_norm", "1000x40000", NULL, 1, "fh"},
    {"layer_norm", "64x768", NULL, 1, "f"},
    {"layer_norm", "1024x1024", NULL, 1, "f"},
    {"rms_norm", "4096x4096", NULL, 1, "fb"},
    {"rms_norm", "4099x5120", NULL, 1, "b"},
    {"l2_norm", "100000x128", NULL, 1, "fh"},
    {"gather", "1009x37", "333", 0, "fhb"},
    {"gather", "5003x20", "1000", 0, "fb"},
    {"gather", "20011x1", "4099", 0, "fhb"},
    {"gather", "50257x768", "8192", 0, "fh"},
    {"gather", "1000000x64", "262144", 0, "f"},
    {"concatenate", "4096x4096", "4096x4096", 0, "f"},
    {"concatenate", "4096x4095", "4096x33", 1, "fh"},
    {"write", "16384", NULL, 0, "f"},
    {"write", "1048576", NULL, 0, "f"},
    {"write", "67108864", NULL, 0, "f"},
    {"read", "16384", NULL, 0, "f"},
    {"read", "1048576", NULL, 0, "f"},
    {"read", "67108864", NULL, 0, "f"},
    {"upload", "262144", NULL, 0, "f"},
    {"upload", "67108864", NULL, 0, "f"},
    {"download", "262144", NULL, 0, "f"},
    {"download", "67108864", NULL, 0, "f"},
};

static grid_input input_parse(const char *text)
{
    grid_input input = {0};
    while (text && *text != 0 && *text != '@') {
        char *end;
        input.order[input.rank] = input.rank;
        input.shape[input.rank++] = strtoll(text, &end, 10);
        text = end + (*end == 'x');
    }
    for (int i = 0; text && *text == '@' && i < input.rank; i++) {
        input.order[i] = text[1 + i] - '0';
    }
    return input;
}

int64_t grid_input_count(const grid_input *input)
{
    int64_t count = 1;
    for (int i = 0; i < input->rank; i++) {
        count *= input->shape[i];
    }
    return count;
}

int64_t grid_input_length(const grid_input *input, int axis)
{
    return input->shape[input->order[axis]];
}

static bool grid_is_permuted(const grid_input *input)
{
    bool is = false;
    for (int i = 0; i < input->rank; i++) {
        is |= input->order[i] != i;
    }
    return is;
}

hal_type grid_result_type(const grid_cell *cell)
{
    return strcmp(cell->operation->name, "argmax") == 0 ? (hal_type)HAL_TYPE_I32 : cell->type;
}

int grid_result_shape(const grid_cell *cell, int64_t shape[GRID_RANK])
{
    const grid_input *x = &cell->x, *y = &cell->y;
    const grid_kind kind = cell->operation->kind;
    int rank = 0;
    for (int i = 0; i < x->rank; i++) {
        if (kind != GRID_REDUCTION || i != cell->axis) {
            shape[rank++] = grid_input_length(x, i);
        }
    }
    for (int i = 0; kind == GRID_POINTWISE && i < y->rank; i++) {
        int64_t *length = &shape[rank - y->rank + i];
        *length = *length == 1 ? grid_input_length(y, i) : *length;
    }
    if (kind == GRID_GATHER) {
        shape[cell->axis] = y->shape[0];
    } else if (kind == GRID_CONCATENATE) {
        shape[cell->axis] += grid_input_length(y, cell->axis);
    }
    return rank;
}

static int64_t result_count(const grid_cell *cell)
{
    int64_t shape[GRID_RANK], count = 1;
    const int rank = grid_result_shape(cell, shape);
    for (int i = 0; i < rank; i++) {
        count *= shape[i];
    }
    return count;
}

double grid_cell_bytes(const grid_cell *cell)
{
    const double size = hal_type_size(cell->type), results = (double)result_count(cell);
    const double of_x = size * (double)grid_input_count(&cell->x);
    const double of_y = cell->y.rank > 0 ? size * (double)grid_input_count(&cell->y) : 0.0;
    switch (cell->operation->kind) {
    case GRID_GATHER:
        return 2.0 * size * results + 4.0 * (double)grid_input_count(&cell->y);
    case GRID_WRITE:
    case GRID_READ:
    case GRID_UPLOAD:
    case GRID_DOWNLOAD:
        return of_x;
    default:
        return of_x + of_y + results * hal_type_size(grid_result_type(cell));
    }
}

/* Appends "4096x64@10" to the name. */
static void name_append_input(char name[96], const grid_input *input)
{
    size_t length = strlen(name);
    for (int i = 0; i < input->rank; i++) {
        length += (size_t)snprintf(name + length, 96 - length, "%c%lld", i == 0 ? ' ' : 'x',
                                   (long long)input->shape[i]);
    }
    for (int i = 0; i < input->rank && grid_is_permuted(input); i++) {
        length += (size_t)snprintf(name + length, 96 - length, "%s%d", i == 0 ? "@" : "",
                                   input->order[i]);
    }
}

static void cell_name(grid_cell *cell)
{
    const grid_kind kind = cell->operation->kind;
    snprintf(cell->name, sizeof cell->name, "%s %s", cell->operation->name,
             hal_type_name(cell->type));
    name_append_input(cell->name, &cell->x);
    name_append_input(cell->name, &cell->y);
    const size_t length = strlen(cell->name);
    char axis[16] = "";
    if (kind == GRID_REDUCTION || kind == GRID_ROWS || kind == GRID_CONCATENATE) {
        snprintf(axis, sizeof axis, " axis %d", cell->axis);
    }
    snprintf(cell->name + length, sizeof cell->name - length, "%s%s", axis,
             cell->is_random ? " random" : "");
}

static double draw_unit(uint64_t *state)
{
    return (double)(bench_word(state) >> 11) * 0x1p-53;
}

static void order_draw(uint64_t *state, grid_input *input)
{
    for (int i = input->rank - 1; i > 0; i--) {
        const int j = (int)(draw_unit(state) * (i + 1)), kept = input->order[i];
        input->order[i] = input->order[j];
        input->order[j] = kept;
    }
}

/* The second operand: of the same shape, with some axes of length 1, or permuted in memory. */
static void second_draw(uint64_t *state, grid_cell *cell)
{
    const int way = (int)(draw_unit(state) * 3.0);
    grid_input *y = &cell->y;
    *y = cell->x;
    for (int i = 0; i < y->rank && way == 1; i++) {
        y->shape[i] = draw_unit(state) < 0.5 ? 1 : y->shape[i];
    }
    if (way == 2) {
        order_draw(state, y);
        for (int i = 0; i < y->rank; i++) {
            y->shape[y->order[i]] = cell->x.shape[i];
        }
    }
}

/* An operation on about 2^least to 2^most elements; the logarithm is uniform, and shared out among
 * the axes by random weights. */
static void cell_draw(uint64_t *state, double least, double most, grid_cell *cell)
{
    static const hal_type types[] = {HAL_TYPE_F32, HAL_TYPE_F16, HAL_TYPE_BF16};
    const double bits = least + (most - least) * draw_unit(state);
    double weights[GRID_RANK], sum = 0.0;
    *cell = (grid_cell){.operation = grid_operation_at(bench_word(state) >> 20),
                        .type = types[(int)(draw_unit(state) * 3.0)],
                        .is_random = true};
    grid_input *x = &cell->x;
    x->rank = 1 + (int)(draw_unit(state) * GRID_RANK);
    for (int i = 0; i < x->rank; i++) {
        sum += weights[i] = 0.1 + draw_unit(state);
    }
    for (int i = 0; i < x->rank; i++) {
        x->shape[i] = (int64_t)exp2(bits * weights[i] / sum);
        x->order[i] = i;
    }
    cell->axis = (int)(draw_unit(state) * x->rank);
    if (cell->operation->inputs > 1) {
        second_draw(state, cell);
    } else if (cell->operation->kind == GRID_POINTWISE) {
        order_draw(state, x);
    }
}

static bool cell_is_wanted(const grid_cell *cell, uint64_t largest, const char *filter)
{
    if ((uint64_t)grid_input_count(&cell->x) > largest || (uint64_t)result_count(cell) > largest) {
        return false;
    }
    return bench_name_passes(cell->name, filter);
}

/* Small cells are as likely as large ones: up to `largest`, from what fits a cache line or two. */
static int random_cells_create(uint64_t seed, int wanted, uint64_t largest, const char *filter,
                               grid_cell **cells)
{
    enum { LEAST_BITS = 5, MOST_DRAWS = 1000 };
    uint64_t state = bench_seed(seed);
    const double most = log2((double)largest);
    int count = 0;
    *cells = malloc(((size_t)wanted + 1) * sizeof **cells);
    for (int64_t i = 0; *cells && i < (int64_t)wanted * MOST_DRAWS && count < wanted; i++) {
        cell_draw(&state, most < LEAST_BITS ? 0.0 : LEAST_BITS, most, &(*cells)[count]);
        cell_name(&(*cells)[count]);
        count += cell_is_wanted(&(*cells)[count], largest, filter);
    }
    return !*cells ? -1 : count;
}

int grid_cells_create(uint64_t seed, int random, uint64_t largest, const char *filter,
                      grid_cell **cells)
{
    const size_t rows = sizeof fixed / sizeof fixed[0];
    uint64_t state = bench_seed(seed);
    int count = 0;
    if (random > 0) {
        return random_cells_create(seed, random, largest, filter, cells);
    }
    *cells = malloc((3 * rows + RANDOM_CELLS) * sizeof **cells);
    if (!*cells) {
        return -1;
    }
    for (size_t i = 0; i < rows; i++) {
        for (const char *type = fixed[i].types; *type != 0; type++) {
            grid_cell *cell = &(*cells)[count];
            *cell = (grid_cell){.operation = grid_operation_find(fixed[i].operation),
                                .type = *type == 'f'   ? (hal_type)HAL_TYPE_F32
                                        : *type == 'h' ? (hal_type)HAL_TYPE_F16
                                                       : (hal_type)HAL_TYPE_BF16,
                                .x = input_parse(fixed[i].x),
                                .y = input_parse(fixed[i].y),
                                .axis = fixed[i].axis};
            cell_name(cell);
            count += cell_is_wanted(cell, largest, filter);
        }
    }
    for (int i = 0; i < RANDOM_CELLS; i++) {
        cell_draw(&state, 10.0, 28.0, &(*cells)[count]);
        cell_name(&(*cells)[count]);
        count += cell_is_wanted(&(*cells)[count], largest, filter);
    }
    return count;
}

static void input_print(const grid_input *input)
{
    printf("{\"shape\": [");
    for (int i = 0; i < input->rank; i++) {
        printf("%s%lld", i == 0 ? "" : ", ", (long long)input->shape[i]);
    }
    printf("], \"order\": [");
    for (int i = 0; i < input->rank; i++) {
        printf("%s%d", i == 0 ? "" : ", ", input->order[i]);
    }
    printf("]}");
}

void grid_cells_print(const grid_cell *cells, int count, uint64_t seed)
{
    printf("{\"seed\": %llu, \"cells\": [", (unsigned long long)seed);
    for (int i = 0; i < count; i++) {
        const grid_cell *cell = &cells[i];
        printf("%s\n {\"case\": \"%s\", \"operation\": \"%s\", \"type\": \"%s\", \"axis\": %d, "
               "\"inputs\": [",
               i == 0 ? "" : ",", cell->name, cell->operation->name, hal_type_name(cell->type),
               cell->axis);
        input_print(&cell->x);
        if (cell->y.rank > 0) {
            printf(", ");
            input_print(&cell->y);
        }
        printf("]}");
    }
    printf("\n]}\n");
}
