/* Moving matrices into and out of the accumulator's type: copy, transpose, store. Included after
 * gemm/micro.inl with the same names; needs the vector functions widen, widenm, narrow and narrowm
 * as well. */

/* Copies rows x cols; the storage type is a constant. */
ALWAYS_INLINE void V(copy_as)(T *dst, int64_t ldd, const void *src, int64_t lds, int64_t rows,
                              int64_t cols, const enum cpu_gemm_type type)
{
    int64_t whole = cols / LANES * LANES;
    int rest = (int)(cols - whole);
    for (int64_t r = 0; r < rows; r++) {
        for (int64_t c = 0; c < whole; c += LANES) {
            V(store)(dst + r * ldd + c, V(widen)(src, r * lds + c, type));
        }
        if (rest > 0) {
            V(vec) value = V(widenm)(src, r * lds + whole, type, rest);
            V(storem)(dst + r * ldd + whole, V(mask_of)(rest), value);
        }
    }
}

static void V(copy)(void *dst, int64_t ldd, const void *src, int64_t lds, enum cpu_gemm_type type,
                    int64_t rows, int64_t cols)
{
    DISPATCH(V(copy_as), type, dst, ldd, src, lds, rows, cols);
}

/* A square of LANES x LANES by log2(LANES) perfect shuffles; or rows x cols of it, by masks. Of at
 * most `most` rows, a constant, those shuffles are left out that only others need. */
ALWAYS_INLINE void V(transpose_square)(T *dst, int64_t ldd, const void *src, int64_t at,
                                       int64_t lds, const int rows, const int cols, const int most,
                                       const enum cpu_gemm_type type)
{
    V(vec) x[LANES], y[LANES];
    UNROLL
    for (int i = 0; i < LANES; i++) { /* missing rows of the source repeat the last one */
        const int64_t from = at + (i < cols ? i : cols - 1) * lds;
        x[i] = rows == LANES ? V(widen)(src, from, type) : V(widenm)(src, from, type, rows);
    }
    UNROLL
    for (int round = 1; round < LANES; round *= 2) {
        UNROLL
        for (int i = 0; i < LANES / 2; i++) {
            y[2 * i] = V(zip_lo)(x[i], x[i + LANES / 2]);
            y[2 * i + 1] = V(zip_hi)(x[i], x[i + LANES / 2]);
        }
        UNROLL
        for (int i = 0; i < LANES; i++) {
            x[i] = y[i];
        }
    }
    UNROLL
    for (int i = 0; i < most; i++) {
        if (i == rows) {
            return;
        }
        if (cols == LANES) {
            V(store)(dst + i * ldd, x[i]);
        } else {
            V(storem)(dst + i * ldd, V(mask_of)(cols), x[i]);
        }
    }
}

/* Fewer lines of a part of a square are moved one by one, which is as fast; so are parts of lines
 * where masked stores are slow. */
enum { V(LEAST_ROWS) = 2, V(LEAST_COLS) = HAS_FAST_MASKED_STORES ? 4 : LANES };

/* The last rows, fewer than LANES; returns the columns that are done. */
ALWAYS_INLINE int64_t V(transpose_rest)(T *dst, int64_t ldd, const void *src, int64_t at,
                                        int64_t lds, const int rows, int64_t cols, const int most,
                                        const enum cpu_gemm_type type)
{
    int64_t c = 0;
    for (; cols - c >= V(LEAST_COLS); c += LANES) {
        const int width = cols - c < LANES ? (int)(cols - c) : LANES;
        V(transpose_square)(dst + c, ldd, src, c * lds + at, lds, rows, width, most, type);
    }
    return c;
}

ALWAYS_INLINE void V(transpose_as)(T *dst, int64_t ldd, const void *src, int64_t lds, int64_t rows,
                                   int64_t cols, const enum cpu_gemm_type type)
{
    int64_t r = 0;
    for (; r + LANES <= rows; r += LANES) {
        int64_t c = 0;
        for (; c + LANES <= cols; c += LANES) {
            V(transpose_square)(dst + r * ldd + c, ldd, src, c * lds + r, lds, LANES, LANES, LANES,
                                type);
        }
        if (cols - c >= V(LEAST_COLS)) {
            V(transpose_square)
            (dst + r * ldd + c, ldd, src, c * lds + r, lds, LANES, (int)(cols - c), LANES, type);
            continue;
        }
        for (; c < cols; c++) {
            for (int64_t i = r; i < r + LANES; i++) {
                dst[i * ldd + c] = V(widen_one)(src, c * lds + i, type);
            }
        }
    }
    const int rest = (int)(rows - r);
    int64_t first = 0;
    if (rest > LANES / 2) {
        first = V(transpose_rest)(dst + r * ldd, ldd, src, r, lds, rest, cols, LANES, type);
    } else if (rest > LANES / 4) {
        first = V(transpose_rest)(dst + r * ldd, ldd, src, r, lds, rest, cols, LANES / 2, type);
    } else if (rest >= V(LEAST_ROWS)) {
        first = V(transpose_rest)(dst + r * ldd, ldd, src, r, lds, rest, cols, LANES / 4, type);
    }
    for (; r < rows; r++) {
        for (int64_t c = first; c < cols; c++) {
            dst[r * ldd + c] = V(widen_one)(src, c * lds + r, type);
        }
    }
}

static void V(transpose)(void *dst, int64_t ldd, const void *src, int64_t lds,
                         enum cpu_gemm_type type, int64_t rows, int64_t cols)
{
    DISPATCH(V(transpose_as), type, dst, ldd, src, lds, rows, cols);
}

ALWAYS_INLINE void V(store_as)(void *dst, int64_t ldd, const T *src, int64_t lds, int64_t rows,
                               int64_t cols, T alpha, T beta, const enum cpu_gemm_type type)
{
    V(vec) va = V(splat)(alpha), vb = V(splat)(beta);
    int64_t whole = cols / LANES * LANES;
    int rest = (int)(cols - whole);
    for (int64_t r = 0; r < rows; r++) {
        for (int64_t c = 0; c < whole; c += LANES) {
            V(vec) value = va * V(load)(src + r * lds + c);
            if (beta != 0) {
                value = V(fma)(vb, V(widen)(dst, r * ldd + c, type), value);
            }
            V(narrow)(dst, r * ldd + c, type, value);
        }
        if (rest > 0) {
            V(vec) value = va * V(loadm)(src + r * lds + whole, V(mask_of)(rest));
            if (beta != 0) {
                value = V(fma)(vb, V(widenm)(dst, r * ldd + whole, type, rest), value);
            }
            V(narrowm)(dst, r * ldd + whole, type, rest, value);
        }
    }
}

static void V(store_to)(void *dst, int64_t ldd, enum cpu_gemm_type type, const void *src,
                        int64_t lds, int64_t rows, int64_t cols, double alpha, double beta)
{
    T a = (T)alpha, b = (T)beta;
    DISPATCH(V(store_as), type, dst, ldd, src, lds, rows, cols, a, b);
}
