/* Which encoders are known to have finished before others: by fences, events, and waits of the
 * host. Encoders older than the window count as finished. */
#include "standin.h"

static atomic_uint_fast64_t next_encoder = 1;

uint64_t standin_order_next(void)
{
    return atomic_fetch_add(&next_encoder, 1);
}

static void advance(standin_order *order, uint64_t newest)
{
    for (uint64_t i = order->newest + 1; i <= newest; i++) {
        order->bits[i % STANDIN_WINDOW / 64] &= ~((uint64_t)1 << i % 64);
        if (i - order->newest > STANDIN_WINDOW) {
            break;
        }
    }
    order->newest = newest > order->newest ? newest : order->newest;
}

void standin_order_add(standin_order *order, uint64_t encoder)
{
    advance(order, encoder);
    order->bits[encoder % STANDIN_WINDOW / 64] |= (uint64_t)1 << encoder % 64;
}

bool standin_order_has(const standin_order *order, uint64_t encoder)
{
    if (encoder > order->newest) {
        return false;
    }
    return order->newest - encoder >= STANDIN_WINDOW ||
           (order->bits[encoder % STANDIN_WINDOW / 64] >> encoder % 64 & 1);
}

void standin_order_join(standin_order *order, const standin_order *other)
{
    const uint64_t newest = other->newest;
    const uint64_t oldest = newest >= STANDIN_WINDOW ? newest - STANDIN_WINDOW + 1 : 1;
    advance(order, newest);
    for (uint64_t i = oldest; i <= newest; i++) {
        if (standin_order_has(other, i) && order->newest - i < STANDIN_WINDOW) {
            order->bits[i % STANDIN_WINDOW / 64] |= (uint64_t)1 << i % 64;
        }
    }
}
