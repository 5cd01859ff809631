/* The operands of a cell of hal-bench grid on a device, and the check of its result. The elements
 * repeat a block of random ones whose length has a large prime factor, so that the host knows each
 * without a copy, and a wrong index gives a wrong result. */
#ifndef BENCH_SUITES_GRID_DATA_H
#define BENCH_SUITES_GRID_DATA_H

#include "suites/grid/grid.h"

typedef struct grid_data {
    bench_state *bench;
    const bench_place *place;
    const grid_cell *cell;
    ops_array *x, *y; /* as the operation takes them; null for transfers and without y */
    int32_t *indices; /* of gather, else null */
    ops_tensor memory;
    char *host;         /* of write and read, else null */
    hal_buffer *mapped; /* of upload and download, else null */
} grid_data;

/* False after a printed failure; call grid_data_destroy in any case. */
bool grid_data_create(bench_state *bench, const bench_place *place, const grid_cell *cell,
                      grid_data *made);
void grid_data_destroy(grid_data *data);

/* Compares parts of the result of the operation, or of the transfer, with double precision. False
 * after a printed failure. `result` is null for transfers. */
bool grid_data_check(const grid_data *data, ops_array *result);

#endif
