/* The installed table of hooks, see hooks.h. */
#include "hooks.h"

_Atomic uint32_t hal_hooks_mask;
static const hal_hooks *installed;

void hal_hooks_install(const hal_hooks *hooks, uint32_t mask)
{
    installed = hooks;
    atomic_store_explicit(&hal_hooks_mask, mask, memory_order_release);
}

const hal_hooks *hal_hooks_table(void)
{
    /* Pairs with the store above: a thread that has seen the mask relaxed sees the table here. */
    (void)atomic_load_explicit(&hal_hooks_mask, memory_order_acquire);
    return installed;
}
