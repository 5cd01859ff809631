/* Checks of accesses for validation: a step before each access, whose result replaces the access's
 * guard. An access outside of its memory is reported and skipped. */

/* The least and the greatest index that an access may have before its offset is added. */
static inline void bounds_of(const cpu_worker *worker, const cpu_access *access, int64_t bounds[2])
{
    const uint64_t count = worker->bytes[access->memory] / hal_type_size(access->type);
    bounds[0] = -(int64_t)access->offset;
    bounds[1] = (int64_t)count - (int64_t)access->width - access->offset;
}

/* d = the guard and whether the whole access is within its memory. */
static const cpu_step *check(cpu_worker *worker, const cpu_step *step)
{
    const cpu_access *access = step->access;
    uint8_t *full = worker->slots[CPU_SLOT_FULL], *empty = worker->slots[CPU_SLOT_EMPTY];
    const uint8_t *guard = access->guard == CPU_NONE ? full : worker->slots[access->guard];
    const uint8_t *chosen = active_lanes(worker, step->mask, access->guard);
    uint8_t *d = worker->slots[step->d + 1];
    int64_t bounds[2], range[2];
    worker->slots[step->d] = guard == full ? full : guard == empty ? empty : d;
    if (chosen == empty || guard == empty) {
        worker->slots[step->d] = empty;
        return step + 1;
    }
    bounds_of(worker, access, bounds);
    if (access->index == CPU_NONE && affine_range(worker, access, range) &&
        range[0] >= bounds[0] && range[1] <= bounds[1]) {
        EACH_LANE(lanes_of(step))
        {
            d[i] = guard[i];
        }
        return step + 1;
    }
    const int64_t *index = worker->index;
    uint8_t outside = 0;
    fill_index(worker, access);
    EACH_LANE(worker->items)
    {
        const uint8_t inside = (index[i] >= bounds[0]) & (index[i] <= bounds[1]);
        d[i] = guard[i] & inside;
        outside |= !inside;
    }
    for (uint32_t i = worker->items; i < lanes_of(step); i++) {
        d[i] = 0;
    }
    if (!outside) {
        return step + 1;
    }
    worker->slots[step->d] = d;
    for (uint32_t i = 0; i < worker->items; i++) {
        if ((!chosen || chosen[i]) && (index[i] < bounds[0] || index[i] > bounds[1])) {
            cpu_check_report(worker, step, i, index[i]);
            break;
        }
    }
    return step + 1;
}

/* The same for one access of all work-items. */
static const cpu_step *check_uniform(cpu_worker *worker, const cpu_step *step)
{
    const cpu_access *access = step->access;
    const uint8_t *guard = access->guard == CPU_NONE ? NULL : worker->slots[access->guard];
    const uint8_t *chosen = active_lanes(worker, step->mask, CPU_NONE);
    const int64_t index = read_index(worker->slots[access->base], access->index_type);
    int64_t bounds[2];
    uint32_t item = 0;
    bounds_of(worker, access, bounds);
    const bool wanted = chosen != worker->slots[CPU_SLOT_EMPTY] && (!guard || guard[0]);
    const bool inside = index >= bounds[0] && index <= bounds[1];
    while (wanted && chosen && !chosen[item]) {
        item++;
    }
    if (wanted && !inside) {
        cpu_check_report(worker, step, item, index);
    }
    memset(worker->slots[step->d], wanted && inside, CPU_BLOCK);
    return step + 1;
}
