/* Steps that move values, make indices and masks, exchange between lanes, and jump. */

/* Value types, types of indices, and types of subgroup reductions. */
#define EACH_VALUE(X) \
    X(BOOL, uint8_t)  \
    X(I32, int32_t)   \
    X(U32, uint32_t)  \
    X(I64, int64_t)   \
    X(U64, uint64_t)  \
    X(F32, float)     \
    X(F64, double)
#define EACH_INDEX(X)          \
    X(I32, int32_t, uint32_t)  \
    X(U32, uint32_t, uint32_t) \
    X(I64, int64_t, uint64_t)  \
    X(U64, uint64_t, uint64_t)
#define REDUCE_INTEGER(X, T, t, u) \
    X(ADD, T, t, (t)((u)x + (u)y)) \
    X(MIN, T, t, x < y ? x : y)    \
    X(MAX, T, t, x > y ? x : y)
#define EACH_REDUCE(X)                         \
    REDUCE_INTEGER(X, I32, int32_t, uint32_t)  \
    REDUCE_INTEGER(X, U32, uint32_t, uint32_t) \
    REDUCE_INTEGER(X, I64, int64_t, uint64_t)  \
    REDUCE_INTEGER(X, U64, uint64_t, uint64_t) \
    X(ADD, F32, float, x + y)                  \
    X(MIN, F32, float, min_f32(x, y))          \
    X(MAX, F32, float, max_f32(x, y))          \
    X(ADD, F64, double, x + y)                 \
    X(MIN, F64, double, min_f64(x, y))         \
    X(MAX, F64, double, max_f64(x, y))

#define DEFINE_MOVE(T, t)                                                                         \
    static const cpu_step *spread_##T(cpu_worker *worker, const cpu_step *step)                   \
    {                                                                                             \
        t *d = worker->slots[step->d];                                                            \
        const t value = *(const t *)worker->slots[step->a];                                       \
        uint32_t n = lanes_of(step);                                                              \
        EACH_LANE(n)                                                                              \
        {                                                                                         \
            d[i] = value;                                                                         \
        }                                                                                         \
        return step + 1;                                                                          \
    }                                                                                             \
    static const cpu_step *copy_##T(cpu_worker *worker, const cpu_step *step)                     \
    {                                                                                             \
        memmove(worker->slots[step->d], worker->slots[step->a], step->n * sizeof(t));             \
        return step + 1;                                                                          \
    }                                                                                             \
    static const cpu_step *blend_##T(cpu_worker *worker, const cpu_step *step)                    \
    {                                                                                             \
        t *d = worker->slots[step->d];                                                            \
        const t *a = worker->slots[step->a];                                                      \
        const uint8_t *mask = worker->slots[step->mask];                                          \
        uint32_t n = lanes_of(step);                                                              \
        EACH_LANE(n)                                                                              \
        {                                                                                         \
            d[i] = mask[i] ? a[i] : d[i];                                                         \
        }                                                                                         \
        return step + 1;                                                                          \
    }                                                                                             \
    static const cpu_step *scalar_##T(cpu_worker *worker, const cpu_step *step)                   \
    {                                                                                             \
        t *d = worker->slots[step->d], value;                                                     \
        memcpy(&value, worker->scalars + step->aux, sizeof(value));                               \
        EACH_LANE(CPU_BLOCK)                                                                      \
        {                                                                                         \
            d[i] = value;                                                                         \
        }                                                                                         \
        return step + 1;                                                                          \
    }                                                                                             \
    static const cpu_step *shuffle_##T(cpu_worker *worker, const cpu_step *step)                  \
    {                                                                                             \
        t *d = worker->slots[step->d];                                                            \
        const t *a = worker->slots[step->a];                                                      \
        const uint32_t *lane = worker->slots[step->b];                                            \
        for (uint32_t i = 0; i < worker->items; i++) {                                            \
            const uint32_t from = (i & ~(uint32_t)(CPU_BLOCK - 1)) + (lane[i] & (CPU_BLOCK - 1)); \
            d[i] = a[from < worker->items ? from : i];                                            \
        }                                                                                         \
        return step + 1;                                                                          \
    }                                                                                             \
    static inline void exchange_##T(t *d, const t *a, uint32_t n, uint32_t mask)                  \
    {                                                                                             \
        for (uint32_t first = 0; first < n; first += CPU_BLOCK) {                                 \
            t block[CPU_BLOCK];                                                                   \
            memcpy(block, a + first, sizeof(block));                                              \
            for (uint32_t i = 0; i < CPU_BLOCK; i++) {                                            \
                d[first + i] = block[i ^ mask];                                                   \
            }                                                                                     \
        }                                                                                         \
    }                                                                                             \
    static const cpu_step *shuffle_xor_##T(cpu_worker *worker, const cpu_step *step)              \
    {                                                                                             \
        t *d = worker->slots[step->d];                                                            \
        const t *a = worker->slots[step->a];                                                      \
        const uint32_t mask = step->aux & (CPU_BLOCK - 1), n = lanes_of(step);                    \
        switch (mask) { /* the masks of butterflies, constant for the compiler */                 \
        case 1:                                                                                   \
            exchange_##T(d, a, n, 1);                                                             \
            break;                                                                                \
        case 2:                                                                                   \
            exchange_##T(d, a, n, 2);                                                             \
            break;                                                                                \
        case 4:                                                                                   \
            exchange_##T(d, a, n, 4);                                                             \
            break;                                                                                \
        case 8:                                                                                   \
            exchange_##T(d, a, n, 8);                                                             \
            break;                                                                                \
        default:                                                                                  \
            exchange_##T(d, a, n, mask);                                                          \
        }                                                                                         \
        for (uint32_t i = worker->items & ~(uint32_t)(CPU_BLOCK - 1); i < worker->items; i++) {   \
            d[i] = a[(i ^ mask) < worker->items ? i ^ mask : i];                                  \
        }                                                                                         \
        return step + 1;                                                                          \
    }

/* The reduction of a butterfly in its first lane. Missing lanes take no part. */
#define DEFINE_REDUCE(op, T, t, expression)                                            \
    static const cpu_step *reduce_##op##_##T(cpu_worker *worker, const cpu_step *step) \
    {                                                                                  \
        t *d = worker->slots[step->d];                                                 \
        const t *a = worker->slots[step->a];                                           \
        for (uint32_t first = 0; first < worker->items; first += CPU_BLOCK) {          \
            const uint32_t left = worker->items - first;                               \
            const uint32_t lanes = left < CPU_BLOCK ? left : (uint32_t)CPU_BLOCK;      \
            t part[CPU_BLOCK];                                                         \
            memcpy(part, a + first, sizeof(part));                                     \
            for (uint32_t distance = 1; distance < lanes; distance *= 2) {             \
                for (uint32_t i = 0; i + distance < lanes; i += 2 * distance) {        \
                    t x = part[i], y = part[i + distance];                             \
                    part[i] = (expression);                                            \
                }                                                                      \
            }                                                                          \
            for (uint32_t i = 0; i < CPU_BLOCK; i++) {                                 \
                d[first + i] = part[0];                                                \
            }                                                                          \
        }                                                                              \
        return step + 1;                                                               \
    }

/* An affine index compared with a uniform bound: in most cases all work-items are on one side, and
 * the result is one of the two known masks. */
#define DEFINE_COMPARE(name, T, t, u, all_true, all_false, expression)                     \
    static const cpu_step *name##_##T(cpu_worker *worker, const cpu_step *step)            \
    {                                                                                      \
        const t bound = *(const t *)worker->slots[step->a];                                \
        const int64_t limit = (int64_t)bound;                                              \
        const uint32_t even = step->aux;                                                   \
        int64_t range[2];                                                                  \
        if ((limit >= 0 || hal_type_is_signed(step->access->index_type)) &&                \
            affine_range(worker, step->access, range)) {                                   \
            const int64_t least = range[0], greatest = range[1];                           \
            if (all_true) {                                                                \
                worker->slots[step->d] = worker->slots[CPU_SLOT_FULL];                     \
                return step + 1;                                                           \
            }                                                                              \
            if (all_false) {                                                               \
                worker->slots[step->d] = worker->slots[CPU_SLOT_EMPTY];                    \
                return step + 1;                                                           \
            }                                                                              \
        }                                                                                  \
        uint8_t *d = worker->slots[step->d] = worker->slots[step->d + 1];                  \
        const cpu_access *access = step->access;                                           \
        const u base = *(const u *)worker->slots[access->base];                            \
        u factor[3];                                                                       \
        for (uint32_t k = 0; k < 3; k++) {                                                 \
            factor[k] = *(const u *)worker->slots[access->factor[k]];                      \
        }                                                                                  \
        const uint32_t row = worker->place[0], rows = worker->place[1] * worker->place[2]; \
        const bool alike = factor[1] == 0 && factor[2] == 0;                               \
        for (uint32_t k = 0; k < rows; k++) {                                              \
            const u start = base + (u)(k % worker->place[1]) * factor[1] +                 \
                            (u)(k / worker->place[1]) * factor[2];                         \
            if (k > 0 && alike) {                                                          \
                memcpy(d, d - row, row);                                                   \
            } else {                                                                       \
                EACH_LANE(row)                                                             \
                {                                                                          \
                    const t index = (t)(start + (u)i * factor[0]);                         \
                    d[i] = (expression);                                                   \
                }                                                                          \
            }                                                                              \
            d += row;                                                                      \
        }                                                                                  \
        return step + 1;                                                                   \
    }
#define DEFINE_INDEX(T, t, u)                                                     \
    static const cpu_step *affine_##T(cpu_worker *worker, const cpu_step *step)   \
    {                                                                             \
        const cpu_access *access = step->access;                                  \
        t *d = worker->slots[step->d];                                            \
        const u base = *(const u *)worker->slots[access->base];                   \
        const u *factor[3];                                                       \
        for (uint32_t k = 0; k < 3; k++) {                                        \
            factor[k] = worker->slots[access->factor[k]];                         \
        }                                                                         \
        const u fastest = *factor[0];                                             \
        const uint32_t row = worker->place[0];                                    \
        for (uint32_t z = 0; z < worker->place[2]; z++) {                         \
            for (uint32_t y = 0; y < worker->place[1]; y++) {                     \
                const u start = base + (u)y * *factor[1] + (u)z * *factor[2];     \
                EACH_LANE(row)                                                    \
                {                                                                 \
                    d[i] = (t)(start + (u)i * fastest);                           \
                }                                                                 \
                d += row;                                                         \
            }                                                                     \
        }                                                                         \
        return step + 1;                                                          \
    }                                                                             \
    DEFINE_COMPARE(within, T, t, u,                                               \
                   greatest<limit || (even && greatest == limit), least> limit || \
                       (!even && least == limit),                                 \
                   index < bound || (even && index == bound))                     \
    DEFINE_COMPARE(beyond, T, t, u,                                               \
                   limit<least || (even && limit == least), limit> greatest ||    \
                       (!even && limit == greatest),                              \
                   bound < index || (even && bound == index))

EACH_VALUE(DEFINE_MOVE)
EACH_REDUCE(DEFINE_REDUCE)
EACH_INDEX(DEFINE_INDEX)

static void fill_u32(uint32_t *d, uint32_t value)
{
    EACH_LANE(CPU_BLOCK)
    {
        d[i] = value;
    }
}

static const cpu_step *group_id(cpu_worker *worker, const cpu_step *step)
{
    fill_u32(worker->slots[step->d], worker->group[step->aux]);
    return step + 1;
}

static const cpu_step *group_count(cpu_worker *worker, const cpu_step *step)
{
    fill_u32(worker->slots[step->d], worker->grid[step->aux]);
    return step + 1;
}

/* d = a and b, or a and not b; if an operand is all or nothing, d points to a known mask. False if
 * d is empty. */
static bool combine(cpu_worker *worker, uint32_t d, const uint8_t *a, const uint8_t *b,
                    uint8_t inverted)
{
    void *full = worker->slots[CPU_SLOT_FULL], *empty = worker->slots[CPU_SLOT_EMPTY];
    if (a == empty || b == (inverted ? full : empty)) {
        worker->slots[d] = empty;
        return false;
    }
    if (a == full && b == (inverted ? empty : full)) {
        worker->slots[d] = full;
        return true;
    }
    uint8_t *out = worker->slots[d] = worker->slots[d + 1];
    uint8_t any = 0;
    EACH_LANE(worker->items)
    {
        out[i] = a[i] & (b[i] ^ inverted);
        any |= out[i];
    }
    return any != 0;
}

static const uint8_t *mask_of(const cpu_worker *worker, const cpu_step *step)
{
    return worker->slots[step->mask == CPU_NONE ? (uint32_t)CPU_SLOT_FULL : step->mask];
}

static const cpu_step *both(cpu_worker *worker, const cpu_step *step)
{
    combine(worker, step->d, worker->slots[step->a], worker->slots[step->b], 0);
    return step + 1;
}

static const cpu_step *choose(cpu_worker *worker, const cpu_step *step)
{
    const uint8_t *condition = worker->slots[step->a];
    worker->slots[step->d] = worker->slots[condition[0] ? CPU_SLOT_FULL : CPU_SLOT_EMPTY];
    return step + 1;
}

static const cpu_step *branch(cpu_worker *worker, const cpu_step *step)
{
    const uint8_t *condition = worker->slots[step->a];
    return condition[0] ? step + 1 : step + step->jump;
}

static const cpu_step *jump(cpu_worker *worker, const cpu_step *step)
{
    (void)worker;
    return step + step->jump;
}

static const cpu_step *if_masked(cpu_worker *worker, const cpu_step *step)
{
    bool any = combine(worker, step->d, mask_of(worker, step), worker->slots[step->a], 0);
    return any ? step + 1 : step + step->jump;
}

static const cpu_step *else_masked(cpu_worker *worker, const cpu_step *step)
{
    bool any = combine(worker, step->d, mask_of(worker, step), worker->slots[step->a], 1);
    return any ? step + 1 : step + step->jump;
}

static const cpu_step *loop_begin(cpu_worker *worker, const cpu_step *step)
{
    const hal_type type = (hal_type)step->aux;
    int64_t first = read_index(worker->slots[step->a], type);
    if (first >= read_index(worker->slots[step->b], type)) {
        return step + step->jump;
    }
    fill_u32(worker->slots[step->d], (uint32_t)(uint64_t)first);
    return step + 1;
}

static const cpu_step *loop_next(cpu_worker *worker, const cpu_step *step)
{
    const hal_type type = (hal_type)step->aux;
    int64_t next =
        read_index(worker->slots[step->d], type) + read_index(worker->slots[step->c], type);
    if (next >= read_index(worker->slots[step->b], type)) {
        return step + 1;
    }
    fill_u32(worker->slots[step->d], (uint32_t)(uint64_t)next);
    return step + step->jump;
}

/* A loop that work-items leave one by one has a separate mask. */
static bool restrict_mask(cpu_worker *worker, uint8_t *d, const uint8_t *a, const uint8_t *b)
{
    uint8_t any = 0;
    EACH_LANE(worker->items)
    {
        d[i] = a[i] & b[i];
        any |= d[i];
    }
    return any != 0;
}

static const cpu_step *mask_begin(cpu_worker *worker, const cpu_step *step)
{
    bool any = restrict_mask(worker, worker->slots[step->d], mask_of(worker, step),
                             worker->slots[step->a]);
    return any ? step + 1 : step + step->jump;
}

static const cpu_step *mask_next(cpu_worker *worker, const cpu_step *step)
{
    uint8_t *mask = worker->slots[step->d];
    bool any = restrict_mask(worker, mask, mask, worker->slots[step->a]);
    return any ? step + step->jump : step + 1;
}

static const cpu_step *end(cpu_worker *worker, const cpu_step *step)
{
    (void)worker;
    (void)step;
    return NULL;
}
