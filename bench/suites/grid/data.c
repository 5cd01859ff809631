/* Operands and checks of the cells of hal-bench grid. */
#include "suites/grid/data.h"

#include "suites/pattern.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Where the second operand starts in the pattern. */
enum { SECOND_START = 2 * 38729 };

/* A check reads this many pieces of the result, and computes about this many elements of rows. */
enum { PIECES = 10, PIECE = 256, ROW_WORK = 1 << 20 };

/* The operand: a view of memory that holds the elements in another order of axes. */
static ops_array *input_create(bench_state *bench, const bench_place *place, hal_type type,
                               const grid_input *input, int start)
{
    int32_t order[GRID_RANK];
    ops_tensor memory;
    ops_array *array = NULL;
    if (pattern_create(bench, place, type, grid_input_count(input), start, &memory)) {
        int64_t stride = 1;
        memory.rank = (uint32_t)input->rank;
        for (int i = input->rank - 1; i >= 0; i--) {
            order[i] = input->order[i];
            memory.shape[i] = input->shape[i];
            memory.stride[i] = stride;
            stride *= input->shape[i];
        }
        ops_scope_begin(place->ops);
        array =
            ops_array_keep(ops_array_permute(ops_array_from_tensor(place->ops, &memory), order));
        ops_scope_end(place->ops);
        if (!array) {
            bench_fail(bench, "an operand: %s", hal_status_message());
        }
    }
    hal_buffer_release(memory.buffer);
    return array;
}

static bool indices_create(grid_data *data)
{
    const grid_input *x = &data->cell->x, *y = &data->cell->y;
    uint64_t state = bench_seed(43);
    data->indices = malloc((size_t)y->shape[0] * sizeof *data->indices);
    for (int64_t i = 0; data->indices && i < y->shape[0]; i++) {
        data->indices[i] = (int32_t)((bench_word(&state) >> 20) % (uint64_t)x->shape[0]);
    }
    data->y = !data->indices
                  ? NULL
                  : ops_array_from_host(data->place->ops, HAL_TYPE_I32, 1, y->shape, data->indices);
    return data->y || bench_fail(data->bench, "indices: %s", hal_status_message());
}

/* The source of a transfer holds the block from its start, the target something else. */
static void host_fill(char *host, size_t bytes, const char *block, size_t whole, bool is_source)
{
    for (size_t done = 0; done < bytes; done += whole) {
        const size_t part = bytes - done < whole ? bytes - done : whole;
        if (is_source) {
            memcpy(host + done, block, part);
        } else {
            memset(host + done, 1, part);
        }
    }
}

static bool transfer_create(grid_data *data)
{
    bench_state *bench = data->bench;
    const grid_cell *cell = data->cell;
    const grid_kind kind = cell->operation->kind;
    const bool to_device = kind == GRID_WRITE || kind == GRID_UPLOAD;
    const size_t size = hal_type_size(cell->type), bytes = (size_t)cell->x.shape[0] * size;
    const char *block = pattern_block(bench, cell->type);
    void *host = NULL;
    if (kind == GRID_WRITE || kind == GRID_READ) {
        host = data->host = malloc(bytes);
    } else if (!bench_ok(bench,
                         hal_buffer_create(data->place->device,
                                           to_device ? HAL_MEMORY_UPLOAD : HAL_MEMORY_DOWNLOAD,
                                           bytes, &data->mapped),
                         "mapped memory") ||
               !bench_ok(bench, hal_buffer_map_begin(data->mapped, &host), "mapped memory")) {
        return false;
    }
    if (!host || !block) {
        return bench_fail(bench, "out of memory");
    }
    host_fill(host, bytes, block, PATTERN_PERIOD * size, to_device);
    return (!data->mapped || bench_ok(bench, hal_buffer_map_end(data->mapped), "a map")) &&
           pattern_create(bench, data->place, cell->type, cell->x.shape[0],
                          to_device ? SECOND_START : 0, &data->memory);
}

bool grid_data_create(bench_state *bench, const bench_place *place, const grid_cell *cell,
                      grid_data *made)
{
    *made = (grid_data){.bench = bench, .place = place, .cell = cell};
    if (!cell->operation->apply) {
        return transfer_create(made);
    }
    made->x = input_create(bench, place, cell->type, &cell->x, 0);
    if (!made->x || cell->y.rank == 0) {
        return made->x != NULL;
    }
    if (cell->operation->kind == GRID_GATHER) {
        return indices_create(made);
    }
    made->y = input_create(bench, place, cell->type, &cell->y, SECOND_START);
    return made->y != NULL;
}

void grid_data_destroy(grid_data *data)
{
    ops_array_release(data->x);
    ops_array_release(data->y);
    hal_buffer_release(data->memory.buffer);
    hal_buffer_release(data->mapped);
    free(data->indices);
    free(data->host);
}

/* The element of an operand at coordinates that are aligned at the last axis; axes of length 1
 * stretch. */
static double operand_at(const grid_data *data, const grid_input *input, int start,
                         const int64_t *at, int rank)
{
    int64_t lengths[GRID_RANK] = {0}, index = start;
    for (int i = 0; i < input->rank; i++) {
        const int64_t coordinate = at[rank - input->rank + i];
        lengths[input->order[i]] = grid_input_length(input, i) == 1 ? 0 : coordinate;
    }
    int64_t stride = 1;
    for (int i = input->rank - 1; i >= 0; i--) {
        index += lengths[i] * stride;
        stride *= input->shape[i];
    }
    return bench_value(data->cell->type, pattern_block(data->bench, data->cell->type),
                       (size_t)(index % PATTERN_PERIOD));
}

/* The reference of one row, kept until another is asked for. */
typedef struct row_cache {
    double *row, *results;
    double growth; /* of errors, see row_growth */
    int64_t key;   /* index of the row's first element in x; below 0: none */
} row_cache;

/* How much more than usual the results of a row are changed by rounding its elements: a layer norm
 * of two elements that are nearly equal divides by their difference. */
static double row_growth(const double *row, const double *results, int64_t count)
{
    enum { USUAL = 4 }; /* the largest element over the deviation, in rows of random numbers */
    int64_t least = 0, most = 0;
    for (int64_t i = 1; i < count; i++) {
        least = row[i] < row[least] ? i : least;
        most = row[i] > row[most] ? i : most;
    }
    const double largest = fmax(fabs(row[least]), fabs(row[most])),
                 scale = (results[most] - results[least]) / (row[most] - row[least]);
    return row[most] > row[least] ? fmax(1.0, largest * fabs(scale) / USUAL) : 1.0;
}

static double row_result(const grid_data *data, row_cache *cache, int64_t *at)
{
    const grid_cell *cell = data->cell;
    const grid_input *x = &cell->x;
    const int64_t count = grid_input_length(x, cell->axis), place = at[cell->axis];
    int64_t key = 0;
    at[cell->axis] = 0;
    for (int i = 0; i < x->rank; i++) {
        key = key * grid_input_length(x, i) + at[i];
    }
    if (key != cache->key) {
        for (int64_t i = 0; i < count; i++) {
            at[cell->axis] = i;
            cache->row[i] = operand_at(data, x, 0, at, x->rank);
        }
        cell->operation->row(cache->row, count, cache->results);
        cache->growth = cell->operation->kind == GRID_ROWS
                            ? row_growth(cache->row, cache->results, count)
                            : 1.0;
        cache->key = key;
    }
    return cache->results[cell->operation->kind == GRID_REDUCTION ? 0 : place];
}

/* The element of the result at `index` in row-major order. */
static double expected_at(const grid_data *data, row_cache *cache, const int64_t *shape, int rank,
                          int64_t index)
{
    const grid_cell *cell = data->cell;
    const int axis = cell->axis;
    int64_t at[GRID_RANK] = {0};
    for (int i = rank - 1; i >= 0; i--) {
        at[i] = index % shape[i];
        index /= shape[i];
    }
    switch (cell->operation->kind) {
    case GRID_POINTWISE:
        return cell->operation->point(
            operand_at(data, &cell->x, 0, at, rank),
            cell->y.rank == 0 ? 0.0 : operand_at(data, &cell->y, SECOND_START, at, rank));
    case GRID_REDUCTION:
        for (int i = rank; i > axis; i--) {
            at[i] = at[i - 1];
        }
        return row_result(data, cache, at);
    case GRID_ROWS:
        return row_result(data, cache, at);
    case GRID_GATHER:
        at[axis] = data->indices[at[axis]];
        return operand_at(data, &cell->x, 0, at, rank);
    default: /* CONCATENATE */
        if (at[axis] < grid_input_length(&cell->x, axis)) {
            return operand_at(data, &cell->x, 0, at, rank);
        }
        at[axis] -= grid_input_length(&cell->x, axis);
        return operand_at(data, &cell->y, SECOND_START, at, rank);
    }
}

/* Relative and, for results around 0, absolute. The types' least positive numbers are added.
 * `growth`: of the errors of a row. */
static double tolerance_of(const grid_cell *cell, double expected, double growth)
{
    const double relative = cell->type == HAL_TYPE_F32   ? 2e-5
                            : cell->type == HAL_TYPE_F16 ? 4e-3
                                                         : 3e-2;
    const double length = (double)grid_input_length(&cell->x, cell->axis);
    return grid_result_type(cell) == HAL_TYPE_I32
               ? 0.0
               : growth * relative * (fabs(expected) + pow(length, cell->operation->magnitude)) +
                     0x1p-24;
}

static bool piece_check(const grid_data *data, row_cache *cache, const int64_t *shape, int rank,
                        int64_t start, int64_t length, const void *found)
{
    for (int64_t i = 0; i < length; i++) {
        const double expected = expected_at(data, cache, shape, rank, start + i);
        const double value = bench_value(grid_result_type(data->cell), found, (size_t)i);
        if (!(fabs(value - expected) <= tolerance_of(data->cell, expected, cache->growth))) {
            return bench_fail(data->bench, "%s: element %lld: expected %.9g, got %.9g",
                              data->cell->name, (long long)(start + i), expected, value);
        }
    }
    return true;
}

static bool pieces_check(const grid_data *data, row_cache *cache, const ops_tensor *result)
{
    const grid_cell *cell = data->cell;
    const grid_kind kind = cell->operation->kind;
    const int64_t count = ops_tensor_get_element_count(result);
    const uint64_t size = hal_type_size(result->type);
    int64_t shape[GRID_RANK], length = PIECE;
    const int rank = grid_result_shape(cell, shape);
    if (kind == GRID_REDUCTION || (kind == GRID_ROWS && cell->axis < rank - 1)) {
        const int64_t rows = ROW_WORK / grid_input_length(&cell->x, cell->axis);
        length = rows < 1 ? 1 : rows < PIECE ? rows : PIECE;
    }
    length = length < count ? length : count;
    uint64_t state = bench_seed(47);
    bool well = true;
    for (int i = 0; i < PIECES && well; i++) {
        char found[PIECE * 8];
        const int64_t last = count - length;
        const int64_t start = i == 0 ? last
                              : i == 1
                                  ? 0
                                  : (int64_t)((bench_word(&state) >> 8) % (uint64_t)(last + 1));
        well = bench_ok(data->bench,
                        hal_queue_read(data->place->queue, result->buffer,
                                       (uint64_t)(result->offset + start) * size,
                                       (uint64_t)length * size, found),
                        "a result") &&
               piece_check(data, cache, shape, rank, start, length, found);
    }
    return well;
}

/* Compares all of the target. */
static bool transfer_check(const grid_data *data)
{
    const grid_kind kind = data->cell->operation->kind;
    const size_t size = hal_type_size(data->cell->type), whole = PATTERN_PERIOD * size;
    const size_t bytes = (size_t)data->cell->x.shape[0] * size;
    const char *block = pattern_block(data->bench, data->cell->type);
    hal_queue *queue = data->place->queue;
    char *read = kind == GRID_READ ? NULL : malloc(bytes);
    const char *found = kind == GRID_READ ? data->host : read;
    bool well = found || bench_fail(data->bench, "out of memory");
    if (well && kind != GRID_READ) {
        hal_buffer *target = kind == GRID_DOWNLOAD ? data->mapped : data->memory.buffer;
        well = bench_ok(data->bench, hal_queue_read(queue, target, 0, bytes, read), "a result");
    }
    for (size_t done = 0; done < bytes && well; done += whole) {
        const size_t part = bytes - done < whole ? bytes - done : whole;
        well = memcmp(found + done, block, part) == 0 ||
               bench_fail(data->bench, "%s: the target differs from the source", data->cell->name);
    }
    free(read);
    return well;
}

bool grid_data_check(const grid_data *data, ops_array *result)
{
    const grid_cell *cell = data->cell;
    ops_tensor tensor;
    if (!result) {
        return transfer_check(data);
    }
    ops_array *copy = NULL; /* in row-major order */
    bool well = bench_ok(data->bench, ops_array_get_tensor(result, &tensor), "a result");
    if (well && !ops_tensor_is_contiguous(&tensor)) {
        copy = ops_array_copy(result);
        well = copy && bench_ok(data->bench, ops_array_get_tensor(copy, &tensor), "a copy");
    }
    const size_t length = (size_t)grid_input_length(&cell->x, cell->axis);
    const size_t results = cell->operation->kind == GRID_ROWS ? length : 1;
    row_cache cache = {.growth = 1.0, .key = -1};
    if (cell->operation->row && well) {
        cache.row = malloc(length * sizeof *cache.row);
        cache.results = malloc(results * sizeof *cache.results);
        well = (cache.row && cache.results) || bench_fail(data->bench, "out of memory");
    }
    well = well && pieces_check(data, &cache, &tensor);
    ops_array_release(copy);
    free(cache.row);
    free(cache.results);
    return well;
}
