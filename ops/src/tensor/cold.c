/* Cold signatures, see cold.h. */
#include "cold.h"

void ops_cold_note(ops_context *context, uint64_t nanoseconds)
{
    uint64_t *lately = &context->cold->making_ns;
    /* One that was held up by other work of the machine does not count in full. */
    uint64_t usual = *lately ? *lately : OPS_COLD_LEAST / 4;
    *lately = (3 * usual + (nanoseconds < 4 * usual ? nanoseconds : 4 * usual)) / 4;
}

int ops_cold_is_rented(ops_context *context, const uint64_t key[2], uint32_t kernels,
                       uint64_t bytes)
{
    struct ops_cold *cold = context->cold;
    if (cold->making_ns < cold->least_ns) {
        return OPS_COLD_NO;
    }
    const hal_device_info *info = context->info;
    uint32_t rate = info->kind == HAL_DEVICE_CPU || info->kind == HAL_DEVICE_SOFTWARE
                        ? OPS_COLD_CPU_BYTES_PER_NS
                        : OPS_COLD_BYTES_PER_NS;
    uint64_t cost = (uint64_t)(kernels - 1) * OPS_COLD_KERNEL_NS + 2 * bytes / rate;
    uint32_t at = (uint32_t)key[0] % OPS_COLD_SIGNATURES;
    int is_first = cold->signatures[at].key != key[1];
    if (is_first) {
        cold->signatures[at].key = key[1];
        cold->signatures[at].spent_ns = 0;
    }
    cold->signatures[at].spent_ns += cost;
    return cold->signatures[at].spent_ns >= cold->making_ns ? OPS_COLD_NO
           : is_first                                       ? OPS_COLD_FIRST
                                                            : OPS_COLD_AGAIN;
}
