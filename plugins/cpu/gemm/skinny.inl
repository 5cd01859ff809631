/* Products with a short side, bound by reading the long matrix once: dot if its rows are along k,
 * axpy otherwise. Included after gemm/pack.inl with the same names. */

/* Adds to each of `count` elements the sum over a vector. Halves of vectors are added and
 * interleaved, so that few additions serve all four. */
ALWAYS_INLINE void V(add_sums)(T *out, const V(vec) sum[CPU_GEMM_DOT_ROWS], int count)
{
    T part[LANES > CPU_GEMM_DOT_ROWS ? LANES : CPU_GEMM_DOT_ROWS];
#if LANES >= 4
    V(vec) even = V(zip_lo)(sum[0], sum[2]) + V(zip_hi)(sum[0], sum[2]);
    V(vec) odd = V(zip_lo)(sum[1], sum[3]) + V(zip_hi)(sum[1], sum[3]);
    V(store)(part, V(zip_lo)(even, odd) + V(zip_hi)(even, odd));
#else
    V(store)(part, V(zip_lo)(sum[0], sum[1]) + V(zip_hi)(sum[0], sum[1]));
    V(store)(part + 2, V(zip_lo)(sum[2], sum[3]) + V(zip_hi)(sum[2], sum[3]));
#endif
    for (int width = LANES / 2; width >= CPU_GEMM_DOT_ROWS; width /= 2) {
        for (int l = 0; l < width; l++) {
            part[l] += part[l + width];
        }
    }
    for (int j = 0; j < count; j++) {
        out[j] += part[j];
    }
}

/* ys rows of Y against CPU_GEMM_DOT_ROWS rows of X, summed along k in vectors. */
ALWAYS_INLINE void V(dot_tile)(const struct cpu_gemm_skinny *s, int row, int64_t col, int xs,
                               const int ys, const enum cpu_gemm_type type)
{
    const T *y = (const T *)s->y + row * s->y_row;
    T *out = (T *)s->out + row * s->ldo + col;
    int64_t x[CPU_GEMM_DOT_ROWS], whole = s->k / LANES * LANES;
    V(vec) sum[4][CPU_GEMM_DOT_ROWS], xv[CPU_GEMM_DOT_ROWS];

    /* Missing rows repeat the last one; their sums are dropped. */
    UNROLL
    for (int j = 0; j < CPU_GEMM_DOT_ROWS; j++) {
        x[j] = (col + (j < xs ? j : xs - 1)) * s->ldx;
    }
    UNROLL
    for (int i = 0; i < ys; i++) {
        UNROLL
        for (int j = 0; j < CPU_GEMM_DOT_ROWS; j++) {
            sum[i][j] = V(splat)(0);
        }
    }
    for (int64_t k = 0; k < whole; k += LANES) {
        UNROLL
        for (int j = 0; j < CPU_GEMM_DOT_ROWS; j++) {
            xv[j] = V(widen)(s->x, x[j] + k, type);
        }
        UNROLL
        for (int i = 0; i < ys; i++) {
            V(vec) yv = V(load)(y + i * s->y_row + k);
            UNROLL
            for (int j = 0; j < CPU_GEMM_DOT_ROWS; j++) {
                sum[i][j] = V(fma)(yv, xv[j], sum[i][j]);
            }
        }
    }
    int rest = (int)(s->k - whole);
    if (rest > 0) {
        UNROLL
        for (int j = 0; j < CPU_GEMM_DOT_ROWS; j++) {
            xv[j] = V(widenm)(s->x, x[j] + whole, type, rest);
        }
        UNROLL
        for (int i = 0; i < ys; i++) {
            V(vec) yv = V(loadm)(y + i * s->y_row + whole, V(mask_of)(rest));
            UNROLL
            for (int j = 0; j < CPU_GEMM_DOT_ROWS; j++) {
                sum[i][j] = V(fma)(yv, xv[j], sum[i][j]);
            }
        }
    }
    UNROLL
    for (int i = 0; i < ys; i++) {
        V(add_sums)(out + i * s->ldo, sum[i], xs);
    }
}

ALWAYS_INLINE void V(dot_as)(const struct cpu_gemm_skinny *s, const enum cpu_gemm_type type)
{
    for (int64_t c = 0; c < s->cols; c += CPU_GEMM_DOT_ROWS) {
        int xs = s->cols - c < CPU_GEMM_DOT_ROWS ? (int)(s->cols - c) : CPU_GEMM_DOT_ROWS;
        int r = 0;
        for (; r + MOST_Y <= s->rows; r += MOST_Y) {
            V(dot_tile)(s, r, c, xs, MOST_Y, type);
        }
        for (; r + 2 <= s->rows; r += 2) {
            V(dot_tile)(s, r, c, xs, 2, type);
        }
        if (r < s->rows) {
            V(dot_tile)(s, r, c, xs, 1, type);
        }
    }
}

static void V(dot)(const struct cpu_gemm_skinny *s)
{
    DISPATCH(V(dot_as), s->type, s);
}

/* out += ys rows of Y times ks rows of X, at most four each. The sums of one element
 * run through k in order, so they are the same however the columns are divided. */
ALWAYS_INLINE void V(axpy_tile)(const struct cpu_gemm_skinny *s, int row, int64_t k, const int ys,
                                const int ks, const enum cpu_gemm_type type)
{
    const T *y = (const T *)s->y + row * s->y_row + k * s->y_col;
    T *out = (T *)s->out + row * s->ldo;
    int64_t x = k * s->ldx, whole = s->cols / LANES * LANES;
    V(vec) yv[4][4];

    UNROLL
    for (int i = 0; i < ys; i++) {
        UNROLL
        for (int q = 0; q < ks; q++) {
            yv[i][q] = V(splat)(y[i * s->y_row + q * s->y_col]);
        }
    }
    for (int64_t c = 0; c < whole; c += LANES) {
        V(vec) xv[4];
        UNROLL
        for (int q = 0; q < ks; q++) {
            xv[q] = V(widen)(s->x, x + q * s->ldx + c, type);
        }
        UNROLL
        for (int i = 0; i < ys; i++) {
            V(vec) sum = V(load)(out + i * s->ldo + c);
            UNROLL
            for (int q = 0; q < ks; q++) {
                sum = V(fma)(yv[i][q], xv[q], sum);
            }
            V(store)(out + i * s->ldo + c, sum);
        }
    }
    if (whole == s->cols) {
        return;
    }
    int rest = (int)(s->cols - whole);
    UNROLL
    for (int q = 0; q < ks; q++) {
        V(vec) xv = V(widenm)(s->x, x + q * s->ldx + whole, type, rest);
        UNROLL
        for (int i = 0; i < ys; i++) {
            T *p = out + i * s->ldo + whole;
            V(vec) sum = V(loadm)(p, V(mask_of)(rest));
            V(storem)(p, V(mask_of)(rest), V(fma)(yv[i][q], xv, sum));
        }
    }
}

ALWAYS_INLINE void V(axpy_as)(const struct cpu_gemm_skinny *s, const enum cpu_gemm_type type)
{
    int64_t k = 0;
    for (; k + 4 <= s->k; k += 4) {
        int r = 0;
        for (; r + 4 <= s->rows; r += 4) {
            V(axpy_tile)(s, r, k, 4, 4, type);
        }
        for (; r + 2 <= s->rows; r += 2) {
            V(axpy_tile)(s, r, k, 2, 4, type);
        }
        if (r < s->rows) {
            V(axpy_tile)(s, r, k, 1, 4, type);
        }
    }
    for (; k < s->k; k++) {
        for (int r = 0; r < s->rows; r++) {
            V(axpy_tile)(s, r, k, 1, 1, type);
        }
    }
}

static void V(axpy)(const struct cpu_gemm_skinny *s)
{
    DISPATCH(V(axpy_as), s->type, s);
}
