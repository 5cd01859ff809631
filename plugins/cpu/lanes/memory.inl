/* Steps that access memory. A step first finds its access pattern: no access, rows at a constant
 * distance (contiguous, broadcast, strided), or any element per lane; then it runs a loop for the
 * storage type. Work-items that are masked or guarded off never form an access. */

typedef enum reach_kind { REACH_NOTHING, REACH_ROWS, REACH_LANES } reach_kind;

typedef struct reach {
    reach_kind kind;
    const uint8_t *chosen;   /* active work-items, null for all; LANES: indices in worker->index */
    int64_t start, distance; /* ROWS: of a row's first element, and from one to the next */
    uint32_t length, used;   /* lanes of a row; the first ones of them, which are active */
    uint32_t count[2];       /* rows, in two dimensions */
    int64_t skip[2];         /* from row to row */
} reach;

static inline int64_t read_index(const void *slot, hal_type type)
{
    switch (type) {
    case HAL_TYPE_I32:
        return *(const int32_t *)slot;
    case HAL_TYPE_U32:
        return *(const uint32_t *)slot;
    default:
        return *(const int64_t *)slot;
    }
}

/* A factor may be negative in unsigned arithmetic. */
static inline int64_t read_factor(const void *slot, hal_type type)
{
    return hal_type_size(type) == 4 ? *(const int32_t *)slot : *(const int64_t *)slot;
}

/* The active work-items of a step: null for all, the empty mask for none. */
static const uint8_t *active_lanes(cpu_worker *worker, uint32_t mask_slot, uint32_t guard_slot)
{
    const uint8_t *full = worker->slots[CPU_SLOT_FULL], *empty = worker->slots[CPU_SLOT_EMPTY];
    const uint8_t *mask = mask_slot == CPU_NONE ? full : worker->slots[mask_slot];
    const uint8_t *guard = guard_slot == CPU_NONE ? full : worker->slots[guard_slot];
    const uint32_t items = worker->items;

    if (mask == empty || guard == empty) {
        return empty;
    }
    if (mask != full && guard != full) {
        uint8_t *chosen = worker->chosen;
        EACH_LANE(items)
        {
            chosen[i] = mask[i] & guard[i];
        }
        mask = chosen;
    } else if (mask == full) {
        mask = guard;
    }
    if (mask == full) {
        return NULL;
    }
    uint8_t all = 1, any = 0;
    EACH_LANE(items)
    {
        all &= mask[i];
        any |= mask[i];
    }
    return all ? NULL : any ? mask : empty;
}

/* The range of an affine index; false if the arithmetic of its type wraps around. */
static bool affine_range(const cpu_worker *worker, const cpu_access *access, int64_t range[2])
{
    range[0] = range[1] = read_index(worker->slots[access->base], access->index_type);
    for (uint32_t k = 0; k < 3; k++) {
        if (worker->place[k] == 1) {
            continue;
        }
        int64_t span, factor = read_factor(worker->slots[access->factor[k]], access->index_type);
        int64_t *end = &range[factor > 0];
        if (__builtin_mul_overflow(factor, (int64_t)worker->place[k] - 1, &span) ||
            __builtin_add_overflow(*end, span, end)) {
            return false;
        }
    }
    switch (access->index_type) {
    case HAL_TYPE_I32:
        return range[0] >= INT32_MIN && range[1] <= INT32_MAX;
    case HAL_TYPE_U32:
        return range[0] >= 0 && range[1] <= UINT32_MAX;
    case HAL_TYPE_U64:
        return range[0] >= 0;
    default:
        return true;
    }
}

/* Fills worker->index from an affine index, as its type wraps. */
static void affine_lanes(cpu_worker *worker, const cpu_access *access)
{
    const hal_type type = access->index_type;
    const uint64_t base = (uint64_t)read_index(worker->slots[access->base], type);
    uint64_t factor[3];
    int64_t *index = worker->index;
    for (uint32_t k = 0; k < 3; k++) {
        factor[k] = (uint64_t)read_factor(worker->slots[access->factor[k]], type);
    }
    for (uint32_t z = 0; z < worker->place[2]; z++) {
        for (uint32_t y = 0; y < worker->place[1]; y++) {
            uint64_t start = base + y * factor[1] + z * factor[2];
            EACH_LANE(worker->place[0])
            {
                index[i] = (int64_t)(start + i * factor[0]);
            }
            index += worker->place[0];
        }
    }
    index = worker->index;
    if (type == HAL_TYPE_I32) {
        EACH_LANE(worker->items)
        {
            index[i] = (int32_t)(uint32_t)(uint64_t)index[i];
        }
    } else if (type == HAL_TYPE_U32) {
        EACH_LANE(worker->items)
        {
            index[i] = (uint32_t)(uint64_t)index[i];
        }
    }
}

/* Fills worker->index with the index of every work-item, without the access's offset. */
static void fill_index(cpu_worker *worker, const cpu_access *access)
{
    int64_t *index = worker->index;
    if (access->index == CPU_NONE) {
        affine_lanes(worker, access);
        return;
    }
    const void *slot = worker->slots[access->index];
    const int32_t *as_i32 = slot;
    const uint32_t *as_u32 = slot;
    const int64_t *as_i64 = slot;
    switch (access->index_type) {
    case HAL_TYPE_I32:
        EACH_LANE(worker->items)
        {
            index[i] = as_i32[i];
        }
        break;
    case HAL_TYPE_U32:
        EACH_LANE(worker->items)
        {
            index[i] = as_u32[i];
        }
        break;
    default:
        EACH_LANE(worker->items)
        {
            index[i] = as_i64[i];
        }
    }
}

static void reach_one_row(reach *r, int64_t start, int64_t distance, uint32_t length)
{
    r->kind = REACH_ROWS;
    r->start = start;
    r->distance = distance;
    r->length = r->used = length;
    r->count[0] = r->count[1] = 1;
    r->skip[0] = r->skip[1] = 0;
}

/* Rows from the factors: dimensions of extent 1 are dropped, and a dimension that continues the one
 * before is merged with it. */
static void reach_affine(const cpu_worker *worker, const cpu_access *access, reach *r)
{
    int64_t start = read_index(worker->slots[access->base], access->index_type);
    uint32_t extent[3] = {1, 1, 1};
    int64_t factor[3] = {0, 0, 0};
    uint32_t used = 0;
    for (uint32_t k = 0; k < 3; k++) {
        int64_t f = read_factor(worker->slots[access->factor[k]], access->index_type);
        if (worker->place[k] == 1) {
            continue;
        }
        if (used > 0 && f == factor[used - 1] * (int64_t)extent[used - 1]) {
            extent[used - 1] *= worker->place[k];
            continue;
        }
        extent[used] = worker->place[k];
        factor[used++] = f;
    }
    reach_one_row(r, start + access->offset, factor[0], extent[0]);
    for (uint32_t k = 0; k < 2; k++) {
        r->count[k] = extent[k + 1];
        r->skip[k] = factor[k + 1];
    }
}

/* Takes the first lanes of each row, and the first rows, as a guard at the edge of a grid leaves
 * them. False: others are active. */
static bool reach_clip(const cpu_worker *worker, reach *r)
{
    const uint8_t *mask = r->chosen;
    const uint32_t length = r->length, all = worker->items / length;
    const uint8_t *end = memchr(mask, 0, length);
    const uint32_t used = !end ? length : (uint32_t)(end - mask);
    uint32_t rows = 0;
    while (used > 0 && rows < all && mask[rows * length] != 0) {
        const uint8_t *row = mask + rows * length;
        if ((rows > 0 && memchr(row, 0, used)) ||
            memchr(row + used, 1, length - used)) {
            return false;
        }
        rows++;
    }
    const uint8_t *rest = mask + rows * length;
    const bool others = rows < all && memchr(rest, 1, (all - rows) * length) != NULL;
    if (rows == 0 || others || (rows < all && r->count[1] > 1)) {
        return false;
    }
    r->count[0] = r->count[1] > 1 ? r->count[0] : rows;
    r->used = used;
    return true;
}

static void find_reach(cpu_worker *worker, const cpu_step *step, reach *r)
{
    const cpu_access *access = step->access;
    int64_t range[2];

    r->chosen = active_lanes(worker, step->mask, access->guard);
    if (r->chosen == worker->slots[CPU_SLOT_EMPTY]) {
        r->kind = REACH_NOTHING;
        return;
    }
    if (access->index == CPU_NONE && affine_range(worker, access, range)) {
        reach_affine(worker, access, r);
        if (!r->chosen || reach_clip(worker, r)) {
            return;
        }
    }
    fill_index(worker, access);
    int64_t *index = worker->index;
    r->kind = REACH_LANES;
    if (!r->chosen) {
        const int64_t first = index[0];
        const int64_t distance =
            worker->items > 1 ? (int64_t)((uint64_t)index[1] - (uint64_t)first) : 1;
        uint8_t irregular = 0;
        EACH_LANE(worker->items)
        {
            irregular |= (uint64_t)index[i] != (uint64_t)first + i * (uint64_t)distance;
        }
        if (!irregular) {
            reach_one_row(r, first + access->offset, distance, worker->items);
            return;
        }
    }
    EACH_LANE(worker->items)
    {
        index[i] = (int64_t)((uint64_t)index[i] + (uint64_t)(int64_t)access->offset);
    }
}

/* Whether a block has no active work-item, so that its lanes need not be examined. */
static inline bool block_is_inactive(const uint8_t *chosen, uint32_t first)
{
    uint64_t halves[2];
    if (!chosen) {
        return false;
    }
    memcpy(halves, chosen + first, sizeof(halves));
    return (halves[0] | halves[1]) == 0;
}

/* The address of a step's elements if they are contiguous for whole blocks, else null. */
static void *neighbours(cpu_worker *worker, const cpu_step *step)
{
    const cpu_access *access = step->access;
    const uint32_t items = worker->items;
    int64_t start;
    if (items % CPU_BLOCK != 0) {
        return NULL;
    }
    if (access->run == 1 && !active_lanes(worker, step->mask, access->guard)) {
        start = read_index(worker->slots[access->base], access->index_type);
        int64_t most = access->index_type == HAL_TYPE_I32   ? INT32_MAX
                       : access->index_type == HAL_TYPE_U32 ? UINT32_MAX
                                                            : INT64_MAX;
        if (start > most - (int64_t)items) {
            return NULL;
        }
        start += access->offset;
    } else {
        reach r;
        find_reach(worker, step, &r);
        if (r.kind != REACH_ROWS || r.distance != 1 || r.length != items || r.chosen) {
            return NULL;
        }
        start = r.start;
    }
    return (char *)worker->memory[access->memory] + start * (int64_t)hal_type_size(access->type);
}

static const cpu_step *view(cpu_worker *worker, const cpu_step *step)
{
    const uint32_t slot = step->access->values[0];
    void *place = neighbours(worker, step);
    worker->slots[slot] = place ? place : worker->slots[slot + 1];
    return place ? step + 1 : step->access->otherwise(worker, step);
}

static const cpu_step *address(cpu_worker *worker, const cpu_step *step)
{
    const uint32_t slot = step->access->values[0];
    void *place = neighbours(worker, step);
    worker->slots[slot] = place ? place : worker->slots[slot + 1];
    return step + 1;
}

/* Storage types: type, C types in memory and in lanes, the value x of memory in a lane, the value
 * x of a lane in memory. */
#define EACH_STORAGE(X)                                                                           \
    X(BOOL, uint8_t, uint8_t, x != 0, x)                                                          \
    X(I8, int8_t, int32_t, x, (int8_t)x)                                                          \
    X(U8, uint8_t, uint32_t, x, (uint8_t)x)                                                       \
    X(I16, int16_t, int32_t, x, (int16_t)x)                                                       \
    X(U16, uint16_t, uint32_t, x, (uint16_t)x)                                                    \
    X(I32, int32_t, int32_t, x, x)                                                                \
    X(U32, uint32_t, uint32_t, x, x)                                                              \
    X(I64, int64_t, int64_t, x, x)                                                                \
    X(U64, uint64_t, uint64_t, x, x)                                                              \
    X(F16, uint16_t, float, f32_of_f16(x), f16_of_f32(x))                                         \
    X(BF16, uint16_t, float, f32_of_bf16(x), bf16_of_f32(x))                                      \
    X(F32, float, float, x, x)                                                                    \
    X(F64, double, double, x, x)

/* Rows next to each other in memory, whose own elements are far apart: squares of 4 rows and 4
 * columns are read along the columns. to[row * pitch + column] = from[column * distance + row].
 * Both counts are at least 4. The last squares overlap those before them. */
enum { SQUARE = 4 };
#define DEFINE_TRANSPOSE(u)                                                                       \
    static void transpose_##u(void *to, uint32_t pitch, const void *from, int64_t distance,       \
                              uint32_t columns, uint32_t rows)                                    \
    {                                                                                             \
        typedef u square_vector __attribute__((vector_size(SQUARE * sizeof(u))));                 \
        for (uint32_t column = 0; column < columns; column += SQUARE) {                           \
            const uint32_t left = column + SQUARE <= columns ? column : columns - SQUARE;         \
            const u *source = (const u *)from + (int64_t)left * distance;                         \
            for (uint32_t row = 0; row < rows; row += SQUARE) {                                   \
                const uint32_t top = row + SQUARE <= rows ? row : rows - SQUARE;                  \
                square_vector x[SQUARE], y[SQUARE];                                               \
                for (uint32_t i = 0; i < SQUARE; i++) {                                           \
                    memcpy(&x[i], source + (int64_t)i * distance + top, sizeof(x[i]));            \
                }                                                                                 \
                y[0] = __builtin_shufflevector(x[0], x[1], 0, 4, 1, 5);                           \
                y[1] = __builtin_shufflevector(x[0], x[1], 2, 6, 3, 7);                           \
                y[2] = __builtin_shufflevector(x[2], x[3], 0, 4, 1, 5);                           \
                y[3] = __builtin_shufflevector(x[2], x[3], 2, 6, 3, 7);                           \
                x[0] = __builtin_shufflevector(y[0], y[2], 0, 1, 4, 5);                           \
                x[1] = __builtin_shufflevector(y[0], y[2], 2, 3, 6, 7);                           \
                x[2] = __builtin_shufflevector(y[1], y[3], 0, 1, 4, 5);                           \
                x[3] = __builtin_shufflevector(y[1], y[3], 2, 3, 6, 7);                           \
                u *square = (u *)to + (size_t)top * pitch + left;                                 \
                for (uint32_t i = 0; i < SQUARE; i++) {                                           \
                    memcpy(square + (size_t)i * pitch, &x[i], sizeof(x[i]));                      \
                }                                                                                 \
            }                                                                                     \
        }                                                                                         \
    }

DEFINE_TRANSPOSE(uint8_t)
DEFINE_TRANSPOSE(uint16_t)
DEFINE_TRANSPOSE(uint32_t)
DEFINE_TRANSPOSE(uint64_t)

static inline bool reach_is_transposed(const reach *r)
{
    return r->skip[0] == 1 && r->distance != 0 && r->distance != 1 && r->used >= SQUARE &&
           r->count[0] >= SQUARE;
}

static inline void transpose(void *to, uint32_t pitch, const void *from, size_t bytes,
                             const reach *r)
{
    switch (bytes) {
    case 1:
        transpose_uint8_t(to, pitch, from, r->distance, r->used, r->count[0]);
        break;
    case 2:
        transpose_uint16_t(to, pitch, from, r->distance, r->used, r->count[0]);
        break;
    case 4:
        transpose_uint32_t(to, pitch, from, r->distance, r->used, r->count[0]);
        break;
    default:
        transpose_uint64_t(to, pitch, from, r->distance, r->used, r->count[0]);
    }
}

/* Elements at a constant distance become shuffles. */
#define DEFINE_LOAD_ROW(T, m, l, widened)                                                         \
    static inline void load_row_at_##T(l *d, const m *p, int64_t distance, uint32_t n)            \
    {                                                                                             \
        EACH_LANE(n)                                                                              \
        {                                                                                         \
            m x = p[i * distance];                                                                \
            d[i] = (l)(widened);                                                                  \
        }                                                                                         \
    }                                                                                             \
    static void load_row_##T(l *d, const m *p, int64_t distance, uint32_t n)                      \
    {                                                                                             \
        switch (distance) {                                                                       \
        case 0:                                                                                   \
            load_row_at_##T(d, p, 0, n);                                                          \
            break;                                                                                \
        case 1:                                                                                   \
            load_row_at_##T(d, p, 1, n);                                                          \
            break;                                                                                \
        case 2:                                                                                   \
            load_row_at_##T(d, p, 2, n);                                                          \
            break;                                                                                \
        case 4:                                                                                   \
            load_row_at_##T(d, p, 4, n);                                                          \
            break;                                                                                \
        default:                                                                                  \
            load_row_at_##T(d, p, distance, n);                                                   \
        }                                                                                         \
    }

#define DEFINE_LOAD(T, m, l, widened, narrowed)                                                   \
    DEFINE_LOAD_ROW(T, m, l, widened)                                                             \
    /* The lanes that a guard leaves out are 0. */                                                \
    static void load_transposed_##T(l *d, const m *p, const reach *r)                             \
    {                                                                                             \
        if (sizeof(m) >= sizeof(uint32_t)) { /* the same in memory and in lanes */                \
            transpose(d, r->length, p, sizeof(m), r);                                             \
            return;                                                                               \
        }                                                                                         \
        m tile[CPU_MAX_ITEMS];                                                                    \
        const uint32_t n = r->length * r->count[0];                                               \
        if (r->used < r->length) {                                                                \
            memset(tile, 0, n * sizeof(m));                                                       \
        }                                                                                         \
        transpose(tile, r->length, p, sizeof(m), r);                                              \
        load_row_at_##T(d, tile, 1, n);                                                           \
    }                                                                                             \
    static void load_rows_##T(l *d, const m *p, const reach *r)                                   \
    {                                                                                             \
        if (reach_is_transposed(r)) {                                                             \
            for (uint32_t outer = 0; outer < r->count[1]; outer++) {                              \
                load_transposed_##T(d, p + outer * r->skip[1], r);                                \
                d += r->length * r->count[0];                                                     \
            }                                                                                     \
            return;                                                                               \
        }                                                                                         \
        for (uint32_t outer = 0; outer < r->count[1]; outer++) {                                  \
            for (uint32_t row = 0; row < r->count[0]; row++) {                                    \
                if (row > 0 && r->skip[0] == 0) {                                                 \
                    memcpy(d, d - r->length, r->used * sizeof(l));                                \
                } else {                                                                          \
                    load_row_##T(d, p + row * r->skip[0] + outer * r->skip[1], r->distance,       \
                                 r->used);                                                        \
                }                                                                                 \
                d += r->length;                                                                   \
            }                                                                                     \
        }                                                                                         \
    }                                                                                             \
    static void load_lanes_##T(l *d, const m *p, const int64_t *index, const uint8_t *chosen,     \
                               uint32_t n)                                                        \
    {                                                                                             \
        for (uint32_t first = 0; first < n; first += CPU_BLOCK) {                                 \
            memset(d + first, 0, CPU_BLOCK * sizeof(l));                                          \
            if (block_is_inactive(chosen, first)) {                                               \
                continue;                                                                         \
            }                                                                                     \
            for (uint32_t i = first; i < n && i < first + CPU_BLOCK; i++) {                       \
                if (!chosen || chosen[i]) {                                                \
                    m x = p[index[i]];                                                            \
                    d[i] = (l)(widened);                                                          \
                }                                                                                 \
            }                                                                                     \
        }                                                                                         \
    }                                                                                             \
    static const cpu_step *load_##T(cpu_worker *worker, const cpu_step *step)                     \
    {                                                                                             \
        const cpu_access *access = step->access;                                                  \
        const m *p = worker->memory[access->memory];                                              \
        reach r;                                                                                  \
        find_reach(worker, step, &r);                                                             \
        for (uint32_t k = 0; k < access->width; k++) {                                            \
            l *d = worker->slots[access->values[k]];                                              \
            if (r.kind != REACH_LANES && r.chosen) {                                      \
                memset(d, 0, step->n * sizeof(l));                                                \
            }                                                                                     \
            if (r.kind == REACH_ROWS) {                                                           \
                load_rows_##T(d, p + r.start + k, &r);                                            \
            } else if (r.kind == REACH_LANES) {                                                   \
                load_lanes_##T(d, p + k, worker->index, r.chosen, worker->items);                 \
            }                                                                                     \
        }                                                                                         \
        return step + 1;                                                                          \
    }                                                                                             \
    static const cpu_step *load_uniform_##T(cpu_worker *worker, const cpu_step *step)             \
    {                                                                                             \
        const cpu_access *access = step->access;                                                  \
        const m *p = worker->memory[access->memory];                                              \
        const uint8_t *guard = access->guard == CPU_NONE ? NULL : worker->slots[access->guard];   \
        const bool wanted = !guard || guard[0];                                            \
        const int64_t index = read_index(worker->slots[access->base], access->index_type);        \
        for (uint32_t k = 0; k < access->width; k++) {                                            \
            l *d = worker->slots[access->values[k]], value = 0;                                   \
            if (wanted) {                                                                         \
                m x = p[index + access->offset + k];                                              \
                value = (l)(widened);                                                             \
            }                                                                                     \
            EACH_LANE(CPU_BLOCK)                                                                  \
            {                                                                                     \
                d[i] = value;                                                                     \
            }                                                                                     \
        }                                                                                         \
        return step + 1;                                                                          \
    }

/* Work-items that write the same element do so in order: the last value remains. */
#define DEFINE_STORE(T, m, l, widened, narrowed)                                                  \
    static inline void store_row_at_##T(m *p, const l *v, int64_t distance, uint32_t n)           \
    {                                                                                             \
        EACH_LANE(n)                                                                              \
        {                                                                                         \
            l x = v[i];                                                                           \
            p[i * distance] = (m)(narrowed);                                                      \
        }                                                                                         \
    }                                                                                             \
    static void store_row_##T(m *p, const l *v, int64_t distance, uint32_t n)                     \
    {                                                                                             \
        switch (distance) {                                                                       \
        case 0:                                                                                   \
            store_row_at_##T(p, v + n - 1, 1, 1);                                                 \
            break;                                                                                \
        case 1:                                                                                   \
            store_row_at_##T(p, v, 1, n);                                                         \
            break;                                                                                \
        default:                                                                                  \
            store_row_at_##T(p, v, distance, n);                                                  \
        }                                                                                         \
    }                                                                                             \
    static void store_lanes_##T(m *p, const l *v, const int64_t *index, const uint8_t *chosen,    \
                                uint32_t n)                                                       \
    {                                                                                             \
        for (uint32_t first = 0; first < n; first += CPU_BLOCK) {                                 \
            if (block_is_inactive(chosen, first)) {                                               \
                continue;                                                                         \
            }                                                                                     \
            for (uint32_t i = first; i < n && i < first + CPU_BLOCK; i++) {                       \
                l x = v[i];                                                                       \
                if (!chosen || chosen[i]) {                                                \
                    p[index[i]] = (m)(narrowed);                                                  \
                }                                                                                 \
            }                                                                                     \
        }                                                                                         \
    }                                                                                             \
    static const cpu_step *store_##T(cpu_worker *worker, const cpu_step *step)                    \
    {                                                                                             \
        const cpu_access *access = step->access;                                                  \
        m *p = worker->memory[access->memory];                                                    \
        reach r;                                                                                  \
        m tile[sizeof(m) < sizeof(l) ? CPU_MAX_ITEMS : 1];                                        \
        void *const *slot = &worker->slots[access->values[0]];                                    \
        if (step->aux && slot[0] != slot[1]) {                                                    \
            return step + 1; /* computed in place */                                              \
        }                                                                                         \
        find_reach(worker, step, &r);                                                             \
        for (uint32_t k = 0; k < access->width && r.kind != REACH_NOTHING; k++) {                 \
            const l *v = worker->slots[access->values[k]];                                        \
            if (r.kind == REACH_LANES) {                                                          \
                store_lanes_##T(p + k, v, worker->index, r.chosen, worker->items);                \
                continue;                                                                         \
            }                                                                                     \
            const uint32_t rows = r.count[0] * r.count[1];                                        \
            const bool narrow = sizeof(m) < sizeof(l) && rows > 1 && r.distance == 1;             \
            if (narrow) { /* rows end within vectors, the group does not */                       \
                store_row_at_##T(tile, v, 1, rows * r.length);                                    \
            }                                                                                     \
            for (uint32_t row = 0; row < rows; row++) {                                           \
                m *to = p + r.start + k + row % r.count[0] * r.skip[0] +                          \
                        row / r.count[0] * r.skip[1];                                             \
                if (narrow) {                                                                     \
                    memcpy(to, tile + row * r.length, r.used * sizeof(m));                        \
                } else {                                                                          \
                    store_row_##T(to, v + row * r.length, r.distance, r.used);                    \
                }                                                                                 \
            }                                                                                     \
        }                                                                                         \
        return step + 1;                                                                          \
    }

EACH_STORAGE(DEFINE_LOAD)
EACH_STORAGE(DEFINE_STORE)

#define EACH_ATOMIC(X)                                                                            \
    X(I32, int32_t, uint32_t)                                                                     \
    X(U32, uint32_t, uint32_t)                                                                    \
    X(I64, int64_t, uint64_t)                                                                     \
    X(U64, uint64_t, uint64_t)

/* Shared memory belongs to the worker; other memory is accessed by all workers. */
#define DEFINE_ATOMIC(T, t, u)                                                                    \
    static inline t atomic_result_##T(uint32_t kind, t old, t x, t comparand)                     \
    {                                                                                             \
        switch (kind) {                                                                           \
        case HAL_IR_ATOMIC_ADD:                                                                   \
            return (t)((u)old + (u)x);                                                            \
        case HAL_IR_ATOMIC_MIN:                                                                   \
            return x < old ? x : old;                                                             \
        case HAL_IR_ATOMIC_MAX:                                                                   \
            return x > old ? x : old;                                                             \
        case HAL_IR_ATOMIC_AND:                                                                   \
            return old & x;                                                                       \
        case HAL_IR_ATOMIC_OR:                                                                    \
            return old | x;                                                                       \
        case HAL_IR_ATOMIC_XOR:                                                                   \
            return old ^ x;                                                                       \
        case HAL_IR_ATOMIC_COMPARE_EXCHANGE:                                                      \
            return old == comparand ? x : old;                                                    \
        default:                                                                                  \
            return x;                                                                             \
        }                                                                                         \
    }                                                                                             \
    static const cpu_step *atomic_##T(cpu_worker *worker, const cpu_step *step)                   \
    {                                                                                             \
        const cpu_access *access = step->access;                                                  \
        const t *x = worker->slots[access->operand[0]];                                           \
        const t *y = worker->slots[access->operand[access->operand[1] != CPU_NONE]];              \
        t *d = worker->slots[access->values[0]];                                                  \
        const uint8_t *chosen = active_lanes(worker, step->mask, access->guard);                  \
        fill_index(worker, access);                                                               \
        for (uint32_t i = 0; i < worker->items; i++) {                                            \
            t old = 0;                                                                            \
            if (!chosen || chosen[i]) {                                                    \
                t *p = (t *)worker->memory[access->memory] + worker->index[i] + access->offset;   \
                if (access->shared) {                                                             \
                    old = *p;                                                                     \
                    *p = atomic_result_##T(access->atomic, old, x[i], y[i]);                      \
                } else if (access->atomic == HAL_IR_ATOMIC_ADD) {                                 \
                    old = __atomic_fetch_add(p, x[i], __ATOMIC_RELAXED);                          \
                } else {                                                                          \
                    old = __atomic_load_n(p, __ATOMIC_RELAXED);                                   \
                    while (!__atomic_compare_exchange_n(                                          \
                        p, &old, atomic_result_##T(access->atomic, old, x[i], y[i]), true,        \
                        __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {                                    \
                    }                                                                             \
                }                                                                                 \
            }                                                                                     \
            d[i] = old;                                                                           \
        }                                                                                         \
        return step + 1;                                                                          \
    }

EACH_ATOMIC(DEFINE_ATOMIC)
