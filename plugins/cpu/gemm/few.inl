/* Strips of few rows, in which a tile has too few sums to hide the latency of a multiply-add.
 * Takes the names of micro.inl. */

/* Scales and stores a vector of sums; masked where `is_masked`. */
ALWAYS_INLINE void V(sum_store)(const struct cpu_gemm_strip *s, T *at, V(vec) sum, V(mask) last,
                                const bool is_masked)
{
    sum *= V(splat)((T)s->alpha);
    if (s->beta != 0) {
        sum = V(fma)(V(splat)((T)s->beta), is_masked ? V(loadm)(at, last) : V(load)(at), sum);
    }
    if (is_masked) {
        V(storem)(at, last, sum);
    } else {
        V(store)(at, sum);
    }
}

/* `rows` rows times `nv` vectors of unpacked B, the last of them masked where `is_masked`. With
 * several chains an element has as many sums, each of every chains-th term. */
ALWAYS_INLINE void V(rows)(const struct cpu_gemm_strip *s, const T *b, T *c, V(mask) last,
                           const bool is_masked, const int rows, const int nv, const int chains)
{
    const T *a = s->a;
    const int64_t a_row = s->a_row, a_col = s->a_col, b_row = s->b_row;
    V(vec) sum[4][6][8], bv[8];
    int64_t k = s->k;

    UNROLL
    for (int q = 0; q < chains; q++) {
        UNROLL
        for (int i = 0; i < rows; i++) {
            UNROLL
            for (int j = 0; j < nv; j++) {
                sum[q][i][j] = V(splat)(0);
            }
        }
    }
    while (k >= chains) {
        UNROLL
        for (int q = 0; q < chains; q++) {
            UNROLL
            for (int j = 0; j < nv; j++) {
                bv[j] = is_masked && j == nv - 1 ? V(loadm)(b + j * LANES, last)
                                                 : V(load)(b + j * LANES);
            }
            UNROLL
            for (int i = 0; i < rows; i++) {
                const V(vec) av = V(splat)(a[i * a_row]);
                UNROLL
                for (int j = 0; j < nv; j++) {
                    sum[q][i][j] = V(fma)(av, bv[j], sum[q][i][j]);
                }
            }
            a += a_col;
            b += b_row;
        }
        k -= chains;
    }
    for (; chains > 1 && k > 0; k--, a += a_col, b += b_row) {
        UNROLL
        for (int j = 0; j < nv; j++) {
            bv[j] = is_masked && j == nv - 1 ? V(loadm)(b + j * LANES, last)
                                             : V(load)(b + j * LANES);
            UNROLL
            for (int i = 0; i < rows; i++) {
                sum[0][i][j] = V(fma)(V(splat)(a[i * a_row]), bv[j], sum[0][i][j]);
            }
        }
    }
    UNROLL
    for (int i = 0; i < rows; i++) {
        UNROLL
        for (int j = 0; j < nv; j++) {
            V(vec) all = sum[0][i][j];
            if (chains == 2) {
                all += sum[1][i][j];
            } else if (chains == 4) {
                all = (all + sum[1][i][j]) + (sum[2][i][j] + sum[3][i][j]);
            }
            V(sum_store)(s, c + i * s->ldc + j * LANES, all, last, is_masked && j == nv - 1);
        }
    }
}

/* Columns of neighbouring panels, as many vectors at a time as the rows have registers for. Each
 * element is summed in the order of a tile. Returns the columns that are done: all except those
 * of which a tile is as good. */
ALWAYS_INLINE int64_t V(few_rows_of)(const struct cpu_gemm_strip *s, const int rows, const int nv)
{
    const V(mask) whole = V(mask_of)(LANES);
    const T *b = s->b;
    T *c = s->c;
    int64_t done = 0;
    for (; s->cols - done >= nv * LANES; done += nv * LANES) {
        V(rows)(s, b + done, c + done, whole, false, rows, nv, 1);
    }
    const int left = (int)((s->cols - done + LANES - 1) / LANES);
    if (left <= NV) {
        return done;
    }
    const V(mask) last = V(mask_of)((int)(s->cols - done) - (left - 1) * LANES);
    b += done;
    c += done;
    switch (left) {
    case 3:
        V(rows)(s, b, c, last, true, rows, 3, 1);
        break;
    case 4:
        V(rows)(s, b, c, last, true, rows, 4, 1);
        break;
    case 5:
        V(rows)(s, b, c, last, true, rows, nv < 8 ? 1 : 5, 1);
        break;
    case 6:
        V(rows)(s, b, c, last, true, rows, nv < 8 ? 1 : 6, 1);
        break;
    case 7:
        V(rows)(s, b, c, last, true, rows, nv < 8 ? 1 : 7, 1);
        break;
    case 8:
        V(rows)(s, b, c, last, true, rows, nv < 8 ? 1 : 8, 1);
        break;
    }
    return s->cols;
}

static int64_t V(few_rows)(const struct cpu_gemm_strip *s)
{
    switch (s->rows) {
    case 1:
        return V(few_rows_of)(s, 1, 8);
    case 2:
        return V(few_rows_of)(s, 2, 4);
#if MR * NV > 12
    case 3:
        return V(few_rows_of)(s, 3, 4);
    case 4:
        return V(few_rows_of)(s, 4, 4);
    case 5:
        return V(few_rows_of)(s, 5, 4);
    case 6:
        return V(few_rows_of)(s, 6, 4);
#endif
    default:
        return 0;
    }
}

/* One or two vectors of unpacked or packed B in chains; which, depends on the rows alone. */
ALWAYS_INLINE void V(chains_of)(const struct cpu_gemm_strip *s, const int rows, const int chains)
{
    const int64_t nr = NV * LANES;
    const T *b = s->b;
    T *c = s->c;
    for (int64_t cols = s->cols; cols > 0; cols -= nr, b += s->b_panel, c += nr) {
        const int64_t here = cols < nr ? cols : nr;
        const int nv = (int)((here + LANES - 1) / LANES);
        const V(mask) last = V(mask_of)((int)here - (nv - 1) * LANES);
        if (nv == 1) {
            V(rows)(s, b, c, last, true, rows, 1, chains);
        } else if (nv == 2) {
            V(rows)(s, b, c, last, true, rows, 2, chains);
        }
#if NV >= 3
        else {
            V(rows)(s, b, c, last, true, rows, 3, chains);
        }
#endif
    }
}

static void V(chains)(const struct cpu_gemm_strip *s)
{
    switch (s->rows) {
    case 1:
        V(chains_of)(s, 1, 4);
        break;
    case 2:
        V(chains_of)(s, 2, MR * NV > 12 ? 4 : 2);
        break;
#if MR * NV > 12
    case 3:
        V(chains_of)(s, 3, 2);
        break;
    case 4:
        V(chains_of)(s, 4, 2);
        break;
#endif
    }
}
