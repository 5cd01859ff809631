/* A tile in registers, of every height: of vectors and, where HAS_HALVES, of halves of vectors.
 * Takes the names of micro.inl. */

/* One tile: rows x nv vectors, the last of them masked by `last`, or whole ones, which may be
 * streamed. One pointer serves three rows of A, so that few address registers are needed. */
ALWAYS_INLINE void V(tile)(const struct cpu_gemm_strip *s, const T *b, T *c, V(mask) last,
                           const bool is_whole, const bool asks, const char *ahead,
                           const int64_t step, const int rows, const int nv)
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
    if (!is_whole || !s->streams) {
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
    if (is_whole && s->streams) {
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

/* Every height of tile that occurs, with a constant number of rows in each. */
ALWAYS_INLINE void V(tile_of)(const struct cpu_gemm_strip *s, const T *b, T *c, V(mask) last,
                              const bool is_whole, const int nv)
{
    switch (s->rows) {
    case 1:
        V(tile)(s, b, c, last, is_whole, false, NULL, 0, 1, nv);
        break;
#if MR >= 2
    case 2:
        V(tile)(s, b, c, last, is_whole, false, NULL, 0, 2, nv);
        break;
#endif
#if MR >= 3
    case 3:
        V(tile)(s, b, c, last, is_whole, false, NULL, 0, 3, nv);
        break;
#endif
#if MR >= 4
    case 4:
        V(tile)(s, b, c, last, is_whole, false, NULL, 0, 4, nv);
        break;
#endif
#if MR >= 5
    case 5:
        V(tile)(s, b, c, last, is_whole, false, NULL, 0, 5, nv);
        break;
#endif
#if MR >= 6
    case 6:
        V(tile)(s, b, c, last, is_whole, false, NULL, 0, 6, nv);
        break;
#endif
#if MR >= 7
    case 7:
        V(tile)(s, b, c, last, is_whole, false, NULL, 0, 7, nv);
        break;
#endif
#if MR >= 8
    case 8:
        V(tile)(s, b, c, last, is_whole, false, NULL, 0, 8, nv);
        break;
#endif
#if MR >= 9
    case 9:
        V(tile)(s, b, c, last, is_whole, false, NULL, 0, 9, nv);
        break;
    case 10:
        V(tile)(s, b, c, last, is_whole, false, NULL, 0, 10, nv);
        break;
    case 11:
        V(tile)(s, b, c, last, is_whole, false, NULL, 0, 11, nv);
        break;
    case 12:
        V(tile)(s, b, c, last, is_whole, false, NULL, 0, 12, nv);
        break;
#endif
    }
}
