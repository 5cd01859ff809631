/* An epilogue: a fragment of IR as a kernel over a tile of C, run by the lanes while the tile is in
 * cache. */
#ifndef PLUGINS_CPU_GEMM_EPILOGUE_H
#define PLUGINS_CPU_GEMM_EPILOGUE_H

#include "gemm/types.h"
#include "worker.h"

#include <hal/plugin.h>

/* The executable of one group size. Tiles are cut so that groups are full and need no guards:
 * guarded lanes access memory one by one. */
typedef struct cpu_epilogue_piece {
    uint32_t cols, rows;
    cpu_executable *executable;
} cpu_epilogue_piece;

enum { CPU_EPILOGUE_PIECES = 96 };

typedef struct cpu_epilogue {
    hal_type type;      /* of the tile's sums: F32, F64, I32 or U32 */
    bool compiles;      /* pieces to machine code */
    bool has_any_tiles; /* of groups: their columns are cut into powers of two */
    uint32_t input_count;
    hal_gemm_input inputs[HAL_GEMM_MAX_INPUTS];
    uint32_t piece_count;
    cpu_epilogue_piece pieces[CPU_EPILOGUE_PIECES];
    /* Maxima over the pieces, for workers. */
    size_t arena_bytes;
    uint32_t slot_count, memory_count;
} cpu_epilogue;

/* A tile of C; element (r, c) is tile[r * ld + c]. */
typedef struct cpu_epilogue_tile {
    void *tile;
    int64_t row, col, batch, ld;
    uint32_t rows, cols;
} cpu_epilogue_tile;

/* The most rows and columns that a tile may have. */
enum { CPU_EPILOGUE_SIDE = 1024 };

/* Makes an epilogue of a description's fragment for tiles of these shapes; of groups of rows for
 * tiles of any shape, with those of cpu_epilogue_any_shapes. The fragment is used during
 * the call only. The caller releases the epilogue, also after a failure. */
hal_status cpu_epilogue_make(cpu_epilogue *epilogue, const hal_gemm_description *description,
                             const cpu_executable_options *options,
                             const struct cpu_gemm_shape *shapes, int shape_count);
void cpu_epilogue_release(cpu_epilogue *epilogue);

/* Writes the shapes for groups of rows with that many columns, and returns their number. */
enum { CPU_EPILOGUE_ANY_SHAPES = 10 };
int cpu_epilogue_any_shapes(int64_t cols, struct cpu_gemm_shape shapes[CPU_EPILOGUE_ANY_SHAPES]);

/* Applies it to a tile. `inputs` are the addresses of the first elements of the inputs. */
void cpu_epilogue_run(const cpu_epilogue *epilogue, cpu_worker *worker, void *const *inputs,
                      const cpu_epilogue_tile *tile);

#endif
