/* Hashes and copies of runs, see chain/run.h. */
#include "chain/run.h"

#include <kit/hash.h>
#include <stdlib.h>
#include <string.h>

static cuda_run_copy run_measure(const hal_plugin_device *device, const cuda_run *run)
{
    const hal_command *first = run->commands, *last = &run->commands[run->count - 1];
    const uint64_t binding_end = (uint64_t)last->binding_first + last->binding_count,
                   scalar_end = (uint64_t)last->scalar_first + last->scalar_bytes;
    return (cuda_run_copy){
        .count = run->count,
        .command_bytes = run->count * sizeof *first,
        .binding_bytes = (binding_end - first->binding_first) * sizeof(hal_binding),
        .scalar_bytes = scalar_end - first->scalar_first,
        .destroyed = device->destroyed + atomic_load(&device->frees),
    };
}

static bool bytes_equal(const void *one, const void *other, uint64_t bytes)
{
    return bytes == 0 || memcmp(one, other, bytes) == 0;
}

/* The batch may be another one, or the run at another place in it: then the indices of bindings and
 * scalars differ by a constant. */
static bool commands_equal(const hal_command *known, const hal_command *commands, uint32_t count)
{
    const uint32_t bindings = commands->binding_first - known->binding_first,
                   scalars = commands->scalar_first - known->scalar_first;
    if (bindings == 0 && scalars == 0) {
        return bytes_equal(known, commands, count * sizeof *commands);
    }
    bool equal = true;
    for (uint32_t i = 0; i < count && equal; i++) {
        const hal_command *one = &known[i], *other = &commands[i];
        equal = one->kernel == other->kernel && one->grid[0] == other->grid[0] &&
                one->grid[1] == other->grid[1] && one->grid[2] == other->grid[2] &&
                one->binding_count == other->binding_count &&
                one->scalar_bytes == other->scalar_bytes &&
                one->binding_first + bindings == other->binding_first &&
                one->scalar_first + scalars == other->scalar_first;
    }
    return equal;
}

static uint64_t dispatch_hash(const hal_batch *batch, const hal_command *command)
{
    const hal_binding *bindings = batch->bindings + command->binding_first;
    uint64_t hash = command->kernel->serial + ((uint64_t)command->grid[0] << 32);
    for (uint32_t k = 0; k < command->binding_count; k++) {
        const uint64_t address = bindings[k].memory ? bindings[k].memory->address : 0;
        hash = kit_mix(hash + address + bindings[k].offset);
    }
    if (command->scalar_bytes > 0) {
        const uint32_t bytes = command->scalar_bytes < 8 ? command->scalar_bytes : 8;
        uint64_t word = 0;
        memcpy(&word, batch->scalars + command->scalar_first, bytes);
        hash = kit_mix(hash ^ word);
    }
    return hash;
}

static uint8_t *words_append(uint8_t *end, const void *words, uint64_t bytes)
{
    if (bytes > 0) {
        memcpy(end, words, bytes);
    }
    return end + bytes;
}

void cuda_run_hash_each(const cuda_run *run, uint64_t *hashes)
{
    for (uint32_t i = 0; i < run->count; i++) {
        hashes[i] = dispatch_hash(run->batch, &run->commands[i]);
    }
}

uint64_t cuda_run_hash(const cuda_run *run)
{
    uint64_t hash = run->count;
    for (uint32_t i = 0; i < run->count; i++) {
        hash =
            (hash ^ hash >> 32 ^ dispatch_hash(run->batch, &run->commands[i])) * 0xc2b2ae3d27d4eb4f;
    }
    return hash | 1;
}

bool cuda_run_equals(const hal_plugin_device *device, const cuda_run_copy *copy,
                     const cuda_run *run)
{
    if (copy->count != run->count) {
        return false;
    }
    const cuda_run_copy size = run_measure(device, run);
    const uint8_t *bindings = copy->words + copy->command_bytes,
                  *scalars = bindings + copy->binding_bytes;
    const hal_command *commands = run->commands;
    return size.destroyed == copy->destroyed && size.binding_bytes == copy->binding_bytes &&
           size.scalar_bytes == copy->scalar_bytes &&
           commands_equal((const hal_command *)(const void *)copy->words, commands, run->count) &&
           bytes_equal(bindings, run->batch->bindings + commands->binding_first,
                       size.binding_bytes) &&
           bytes_equal(scalars, run->batch->scalars + commands->scalar_first, size.scalar_bytes);
}

void cuda_run_record(const hal_plugin_device *device, cuda_run_copy *copy, const cuda_run *run)
{
    cuda_run_copy made = run_measure(device, run);
    const hal_command *commands = run->commands;
    const uint64_t all = made.command_bytes + made.binding_bytes + made.scalar_bytes;
    for (uint32_t i = 0; i < run->count; i++) {
        const hal_command *command = &commands[i];
        const uint64_t binding = command->binding_first - (uint64_t)commands->binding_first,
                       scalar = command->scalar_first - (uint64_t)commands->scalar_first;
        if (command->binding_first < commands->binding_first ||
            command->scalar_first < commands->scalar_first ||
            (binding + command->binding_count) * sizeof(hal_binding) > made.binding_bytes ||
            scalar + command->scalar_bytes > made.scalar_bytes) {
            return;
        }
    }
    made.words = copy->capacity < all ? realloc(copy->words, all) : copy->words;
    if (!made.words) {
        return;
    }
    made.capacity = copy->capacity < all ? all : copy->capacity;
    uint8_t *end = words_append(made.words, commands, made.command_bytes);
    end = words_append(end, run->batch->bindings + commands->binding_first, made.binding_bytes);
    words_append(end, run->batch->scalars + commands->scalar_first, made.scalar_bytes);
    *copy = made;
}
