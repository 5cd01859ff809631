/* Strips of register tiles of the matrix product. Included by gemm_micro_<isa>.c once for each
 * accumulator type, which defines before it
 *   T, V(name)   the element type; `name` with the type's suffix
 *   LANES        elements of a vector; MR, NV: rows and vectors of the register tile
 * and the vector functions vec, mask, load, loadm, store, stream, storem, mask_of, splat, fma with
 * that suffix. The loops over MR and NV are unrolled away, so the accumulators live in registers.
 */

/* A whole tile that also asks for memory, `step` bytes for each k. */
static void V(tile_ahead)(const struct cpu_gemm_strip *s, const T *b, T *c, const char *ahead,
                          int64_t step)
{
    V(tile)(s, b, c, V(mask_of)(LANES), true, ahead, step, MR, NV);
}

/* A few rows times `nv` vectors of unpacked B: in a tile they have too few sums to hide the latency
 * of a multiply-add, and read too little of each row of B. Each element is summed in the order of a
 * tile. */
ALWAYS_INLINE void V(rows)(const struct cpu_gemm_strip *s, const T *b, T *c, const int rows,
                           const int nv)
{
    const T *a = s->a;
    const V(vec) alpha = V(splat)((T)s->alpha), beta = V(splat)((T)s->beta);
    V(vec) sum[6][8], bv[8];

    UNROLL
    for (int i = 0; i < rows; i++) {
        UNROLL
        for (int j = 0; j < nv; j++) {
            sum[i][j] = V(splat)(0);
        }
    }
    for (int64_t k = s->k; k > 0; k--) {
        UNROLL
        for (int j = 0; j < nv; j++) {
            bv[j] = V(load)(b + j * LANES);
        }
        UNROLL
        for (int i = 0; i < rows; i++) {
            const V(vec) av = V(splat)(a[i * s->a_row]);
            UNROLL
            for (int j = 0; j < nv; j++) {
                sum[i][j] = V(fma)(av, bv[j], sum[i][j]);
            }
        }
        a += s->a_col;
        b += s->b_row;
    }
    UNROLL
    for (int i = 0; i < rows; i++) {
        UNROLL
        for (int j = 0; j < nv; j++) {
            T *at = c + i * s->ldc + j * LANES;
            sum[i][j] *= alpha;
            if (s->beta != 0) {
                sum[i][j] = V(fma)(beta, V(load)(at), sum[i][j]);
            }
            V(store)(at, sum[i][j]);
        }
    }
}

/* The columns that V(rows) takes at once for a number of rows; 0: a tile is as good. */
ALWAYS_INLINE int V(rows_width)(int rows)
{
    const int registers = MR * NV > 12 ? 32 : 16;
    return rows == 1 ? 8 * LANES : 4 * rows + 5 <= registers && rows <= 6 ? 4 * LANES : 0;
}

ALWAYS_INLINE void V(rows_of)(const struct cpu_gemm_strip *s, const T *b, T *c)
{
    switch (s->rows) {
    case 1:
        V(rows)(s, b, c, 1, 8);
        break;
    case 2:
        V(rows)(s, b, c, 2, 4);
        break;
#if MR * NV > 12
    case 3:
        V(rows)(s, b, c, 3, 4);
        break;
    case 4:
        V(rows)(s, b, c, 4, 4);
        break;
    case 5:
        V(rows)(s, b, c, 5, 4);
        break;
    case 6:
        V(rows)(s, b, c, 6, 4);
        break;
#endif
    }
}

#if HAS_HALVES
/* The least k and rows for which half a vector repays a tile of its own: with fewer rows a tile
 * waits for its sums. */
enum { V(HALVES_DEPTH) = 32, V(HALVES_ROWS) = 6 };
#endif

static void V(strip)(const struct cpu_gemm_strip *s)
{
    const int nr = NV * LANES, wide = V(rows_width)(s->rows);
    const V(mask) whole = V(mask_of)(LANES);
    const T *b = s->b;
    T *c = s->c;
    int64_t cols = s->cols;

    if (wide > 0 && s->b_panel == nr && !s->streams) { /* panels are neighbours */
        for (; cols >= wide; cols -= wide, b += wide, c += wide) {
            V(rows_of)(s, b, c);
        }
    }
    for (int panel = 0; s->rows == MR && s->ahead[0].from != NULL && cols >= nr; panel++) {
        const int64_t step = s->ahead[panel & 1].step;
        const char *ahead = s->ahead[panel & 1].from + panel / 2 * s->k * step;
        V(tile_ahead)(s, b, c, ahead, step);
        cols -= nr;
        b += s->b_panel;
        c += nr;
    }
    for (; cols >= nr; cols -= nr, b += s->b_panel, c += nr) {
        V(tile_of)(s, b, c, whole, NV);
    }
    if (s->streams) {
        stream_fence();
    }
    if (cols == 0) {
        return;
    }
    struct cpu_gemm_strip rest = *s; /* its vectors are masked */
    rest.streams = false;
    s = &rest;
#if HAS_HALVES
    if (cols > LANES && cols <= LANES + LANES / 2 && s->k >= V(HALVES_DEPTH) &&
        s->rows >= V(HALVES_ROWS)) {
        V(tile_of)(s, b, c, whole, 1);
        b += LANES;
        c += LANES;
        cols -= LANES;
    }
    if (cols <= LANES / 2) {
        V(half_tile_of)(s, b, c, V(half_mask_of)((int)cols), 1);
        return;
    }
#endif
    int nv = (int)(cols + LANES - 1) / LANES;
    V(mask) last = V(mask_of)((int)cols - (nv - 1) * LANES);
    if (nv == 1) {
        V(tile_of)(s, b, c, last, 1);
#if NV >= 2
    } else if (nv == 2) {
        V(tile_of)(s, b, c, last, 2);
    }
#endif
#if NV >= 3
    else
        V(tile_of)(s, b, c, last, 3);
#endif
}
