/* The register tile of the matrix product. Included by gemm_micro_<isa>.c once for each
 * accumulator type, which defines before it
 *   T, V(name)   the element type; `name` with the type's suffix
 *   LANES        elements of a vector; MR, NV: rows and vectors of the register tile
 * and the vector functions vec, mask, load, loadm, store, stream, storem, mask_of, splat, fma with
 * that suffix. The loops over MR and NV are unrolled away, so the accumulators live in registers.
 */

/* One tile: rows x nv vectors, the last of them masked by `last`. One pointer serves three rows of
 * A, so that few address registers are needed. */
ALWAYS_INLINE void V(tile)(const struct cpu_gemm_strip *s, const T *b, T *c, V(mask) last,
                           const bool asks, const char *ahead, const int64_t step, const int rows,
                           const int nv)
{
    const int64_t a_row = s->a_row, a_col = s->a_col, b_row = s->b_row, ldc = s->ldc;
    const T *a[(MR + 2) / 3];
    V(vec) sum[MR][NV], bv[NV];

    UNROLL
    for (int i = 0; i < (rows + 2) / 3; i++) {
        a[i] = (const T *)s->a + 3 * i * a_row;
    }
    UNROLL
    for (int i = 0; i < rows; i++) {
        UNROLL
        for (int j = 0; j < nv; j++) {
            sum[i][j] = V(splat)(0);
        }
    }
    if (!s->streams) {
        UNROLL
        for (int i = 0; i < rows; i++) {
            UNROLL
            for (int j = 0; j < nv; j++) {
                __builtin_prefetch(c + i * ldc + j * LANES, 1);
            }
        }
    }
    for (int64_t k = s->k; k > 0; k--) {
        UNROLL
        for (int j = 0; j < nv; j++) {
            __builtin_prefetch(b + PREFETCH_ROWS * b_row + j * LANES);
            bv[j] = j < nv - 1 ? V(load)(b + j * LANES) : V(loadm)(b + j * LANES, last);
        }
        UNROLL
        for (int i = 0; i < rows; i++) {
            V(vec) av = V(splat)(a[i / 3][i % 3 * a_row]);
            UNROLL
            for (int j = 0; j < nv; j++) {
                sum[i][j] = V(fma)(av, bv[j], sum[i][j]);
            }
        }
        UNROLL
        for (int i = 0; i < (rows + 2) / 3; i++) {
            a[i] += a_col;
        }
        b += b_row;
        if (asks) {
            __builtin_prefetch(ahead, 0, 2);
            ahead += step;
        }
    }
    V(vec) alpha = V(splat)((T)s->alpha), beta = V(splat)((T)s->beta);
    UNROLL
    for (int i = 0; i < rows; i++) {
        UNROLL
        for (int j = 0; j < nv; j++) {
            sum[i][j] *= alpha;
        }
    }
    if (s->beta != 0) {
        UNROLL
        for (int i = 0; i < rows; i++) {
            UNROLL
            for (int j = 0; j < nv - 1; j++) {
                sum[i][j] = V(fma)(beta, V(load)(c + i * ldc + j * LANES), sum[i][j]);
            }
            V(vec) old = V(loadm)(c + i * ldc + (nv - 1) * LANES, last);
            sum[i][nv - 1] = V(fma)(beta, old, sum[i][nv - 1]);
        }
    }
    if (s->streams) {
        UNROLL
        for (int i = 0; i < rows; i++) {
            UNROLL
            for (int j = 0; j < nv; j++) {
                V(stream)(c + i * ldc + j * LANES, sum[i][j]);
            }
        }
        return;
    }
    UNROLL
    for (int i = 0; i < rows; i++) {
        UNROLL
        for (int j = 0; j < nv - 1; j++) {
            V(store)(c + i * ldc + j * LANES, sum[i][j]);
        }
        V(storem)(c + i * ldc + (nv - 1) * LANES, last, sum[i][nv - 1]);
    }
}

/* A whole tile that also asks for memory, `step` bytes for each k. */
static void V(tile_ahead)(const struct cpu_gemm_strip *s, const T *b, T *c, const char *ahead,
                          int64_t step)
{
    V(tile)(s, b, c, V(mask_of)(LANES), true, ahead, step, MR, NV);
}

/* Every height of tile that occurs, with a constant number of rows in each. */
ALWAYS_INLINE void V(tile_of)(const struct cpu_gemm_strip *s, const T *b, T *c, V(mask) last,
                              const int nv)
{
    switch (s->rows) {
    case 1:
        V(tile)(s, b, c, last, false, NULL, 0, 1, nv);
        break;
#if MR >= 2
    case 2:
        V(tile)(s, b, c, last, false, NULL, 0, 2, nv);
        break;
#endif
#if MR >= 3
    case 3:
        V(tile)(s, b, c, last, false, NULL, 0, 3, nv);
        break;
#endif
#if MR >= 4
    case 4:
        V(tile)(s, b, c, last, false, NULL, 0, 4, nv);
        break;
#endif
#if MR >= 5
    case 5:
        V(tile)(s, b, c, last, false, NULL, 0, 5, nv);
        break;
#endif
#if MR >= 6
    case 6:
        V(tile)(s, b, c, last, false, NULL, 0, 6, nv);
        break;
#endif
#if MR >= 7
    case 7:
        V(tile)(s, b, c, last, false, NULL, 0, 7, nv);
        break;
#endif
#if MR >= 8
    case 8:
        V(tile)(s, b, c, last, false, NULL, 0, 8, nv);
        break;
#endif
#if MR >= 9
    case 9:
        V(tile)(s, b, c, last, false, NULL, 0, 9, nv);
        break;
    case 10:
        V(tile)(s, b, c, last, false, NULL, 0, 10, nv);
        break;
    case 11:
        V(tile)(s, b, c, last, false, NULL, 0, 11, nv);
        break;
    case 12:
        V(tile)(s, b, c, last, false, NULL, 0, 12, nv);
        break;
#endif
    }
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
