/* Strips of register tiles of the matrix product. Included once for each
 * accumulator type, which defines before it
 *   T, V(name)   the element type; `name` with the type's suffix
 *   LANES        elements of a vector; MR, NV: rows and vectors of the register tile
 * and the vector functions vec, mask, load, loadm, store, stream, storem, mask_of, splat, fma with
 * that suffix. The loops over MR and NV are unrolled away, so the accumulators live in
 * registers. */

/* A whole tile that also asks for memory, `step` bytes for each k. */
static void V(tile_ahead)(const struct cpu_gemm_strip *s, const T *b, T *c, const char *ahead,
                          int64_t step)
{
    V(tile)(s, b, c, V(mask_of)(LANES), true, true, ahead, step, MR, NV);
}

#if HAS_HALVES
/* The least k and rows for which half a vector repays a tile of its own: with fewer rows a tile
 * waits for its sums. */
enum { V(HALVES_DEPTH) = 32, V(HALVES_ROWS) = 6 };
#endif

static void V(strip)(const struct cpu_gemm_strip *s)
{
    const int nr = NV * LANES;
    const V(mask) whole = V(mask_of)(LANES);
    const T *b = s->b;
    T *c = s->c;
    int64_t cols = s->cols;

    if (s->in_chains) {
        V(chains)(s);
        return;
    }
    if (cols > nr && s->b_panel == nr && !s->streams) { /* panels are neighbours */
        const int64_t done = V(few_rows)(s);
        b += done;
        c += done;
        cols -= done;
        if (cols == 0) {
            return;
        }
    }
    for (int panel = 0; s->rows == MR && s->ahead[0].from && cols >= nr; panel++) {
        const int64_t step = s->ahead[panel & 1].step;
        const char *ahead = s->ahead[panel & 1].from + panel / 2 * s->k * step;
        V(tile_ahead)(s, b, c, ahead, step);
        cols -= nr;
        b += s->b_panel;
        c += nr;
    }
    for (; cols >= nr; cols -= nr, b += s->b_panel, c += nr) {
        V(tile_of)(s, b, c, whole, true, NV);
    }
    if (s->streams) {
        stream_fence();
    }
    if (cols == 0) {
        return;
    }
#if HAS_HALVES
    if (cols > LANES && cols <= LANES + LANES / 2 && s->k >= V(HALVES_DEPTH) &&
        s->rows >= V(HALVES_ROWS)) {
        V(tile_of)(s, b, c, whole, false, 1);
        b += LANES;
        c += LANES;
        cols -= LANES;
    }
    if (cols <= LANES / 2) {
        V(half_tile_of)(s, b, c, V(half_mask_of)((int)cols), false, 1);
        return;
    }
#endif
    int nv = (int)(cols + LANES - 1) / LANES;
    V(mask) last = V(mask_of)((int)cols - (nv - 1) * LANES);
    if (nv == 1) {
        V(tile_of)(s, b, c, last, false, 1);
#if NV >= 2
    } else if (nv == 2) {
        V(tile_of)(s, b, c, last, false, 2);
    }
#endif
#if NV >= 3
    else
        V(tile_of)(s, b, c, last, false, 3);
#endif
}
