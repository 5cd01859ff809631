/* Sums of a level of Strassen's algorithm: of blocks before they are multiplied, of products
 * afterwards. Included after gemm/micro.inl with the same names. */

/* `count` elements, LANES of them without a mask. */
ALWAYS_INLINE V(vec) V(load_first)(const T *p, const int count)
{
    return count == LANES ? V(load)(p) : V(loadm)(p, V(mask_of)(count));
}

ALWAYS_INLINE void V(store_first)(T *p, V(vec) value, const int count)
{
    if (count == LANES) {
        V(store)(p, value);
    } else {
        V(storem)(p, V(mask_of)(count), value);
    }
}

/* A vector of each of the 7 sums, to element `to` of the outputs. */
ALWAYS_INLINE void V(sums_of)(const struct cpu_gemm_sums *s, int64_t from, int64_t to, V(vec) sign,
                              const int count, const bool pairs)
{
    V(vec) x[4];
    UNROLL
    for (int i = 0; i < 4; i++) {
        x[i] = V(load_first)((const T *)s->from[i].first + from, count);
        if (pairs) {
            x[i] = V(fma)(sign, V(load_first)((const T *)s->from[i].second + from, count), x[i]);
        }
    }
    const V(vec)
        sums[7] = {x[0] + x[3], x[2] + x[3], x[0], x[3], x[0] + x[1], x[2] - x[0], x[1] - x[3]};
    UNROLL
    for (int i = 0; i < 7; i++) {
        V(store_first)((T *)s->to[i] + to, sums[i], count);
    }
}

ALWAYS_INLINE void V(sums_as)(const struct cpu_gemm_sums *s, const bool pairs)
{
    const V(vec) sign = V(splat)((T)s->sign);
    for (int64_t r = 0; r < s->rows; r++) {
        for (int64_t at = 0; at < s->cols; at += s->width) {
            const int64_t from = r * s->ld + at, to = at / s->width * s->panel + r * s->ldo;
            const int64_t cols = s->cols - at < s->width ? s->cols - at : s->width;
            int64_t c = 0;
            for (; c + LANES <= cols; c += LANES) {
                V(sums_of)(s, from + c, to + c, sign, LANES, pairs);
            }
            if (c < cols) {
                V(sums_of)(s, from + c, to + c, sign, (int)(cols - c), pairs);
            }
        }
    }
}

static void V(sums)(const struct cpu_gemm_sums *s)
{
    if (s->from[0].second) {
        V(sums_as)(s, true);
    } else {
        V(sums_as)(s, false);
    }
}

ALWAYS_INLINE void V(combine_at)(T *const p[7], int64_t at, const int count)
{
    V(vec) x[7];
    UNROLL
    for (int i = 0; i < 7; i++) {
        x[i] = V(load_first)(p[i] + at, count);
    }
    V(store_first)(p[0] + at, x[0] + x[3] - x[4] + x[6], count);
    V(store_first)(p[1] + at, x[2] + x[4], count);
    V(store_first)(p[2] + at, x[1] + x[3], count);
    V(store_first)(p[3] + at, x[0] - x[1] + x[2] + x[5], count);
}

static void V(combine)(void *products, int64_t count)
{
    T *p[7];
    int64_t at = 0;
    for (int i = 0; i < 7; i++) {
        p[i] = (T *)products + i * count;
    }
    for (; at + LANES <= count; at += LANES) {
        V(combine_at)(p, at, LANES);
    }
    if (at < count) {
        V(combine_at)(p, at, (int)(count - at));
    }
}
