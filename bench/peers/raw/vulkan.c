/* Vulkan's own calls. Command buffers of some hundred commands are recorded each time, and a few
 * are in flight at once; a barrier separates two commands that write the same memory. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "peers/raw/apis.h"
#include "peers/raw/vulkan_shaders.h"
#include "peers/raw/vulkan_calls.h"

enum { RING = 4, BATCH = 512 };

typedef struct raw_vulkan_device {
    raw_device base;
    vulkan_calls vk;
    VkDescriptorSetLayout set_layout;
    VkPipelineLayout layout;
    VkPipeline empty, step;
    VkDescriptorPool sets;
    VkDescriptorSet forth, back; /* from x to y, from y to x */
    VkCommandPool pool;
    VkCommandBuffer ring[RING], graph;
    VkFence fences[RING];
    bool in_flight[RING];
    int next;
    unsigned turn; /* which of x and y the next step reads */
    vulkan_buffer x, y, source, target;
    vulkan_buffer shown; /* RAW_READ_MOST bytes that the host sees, at shown_words */
    void *shown_words;
    uint64_t copy_bytes;
} raw_vulkan_device;

typedef void (*recorder)(raw_vulkan_device *d, VkCommandBuffer commands);

static bool well(raw_vulkan_device *d, VkResult code, const char *call)
{
    return code == VK_SUCCESS || raw_fail(&d->base, call, code);
}

static bool make_layout(raw_vulkan_device *d)
{
    const vulkan_calls *vk = &d->vk;
    VkDescriptorSetLayoutBinding bindings[2];
    for (uint32_t i = 0; i < 2; i++) {
        bindings[i] =
            (VkDescriptorSetLayoutBinding){.binding = i,
                                           .descriptorType = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER,
                                           .descriptorCount = 1,
                                           .stageFlags = VK_SHADER_STAGE_COMPUTE_BIT};
    }
    const VkDescriptorSetLayoutCreateInfo set = {
        .sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_CREATE_INFO,
        .bindingCount = 2,
        .pBindings = bindings};
    if (!well(d, vk->vkCreateDescriptorSetLayout(vk->device, &set, NULL, &d->set_layout),
              "vkCreateDescriptorSetLayout")) {
        return false;
    }
    const VkPipelineLayoutCreateInfo layout = {.sType =
                                                   VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO,
                                               .setLayoutCount = 1,
                                               .pSetLayouts = &d->set_layout};
    return well(d, vk->vkCreatePipelineLayout(vk->device, &layout, NULL, &d->layout),
                "vkCreatePipelineLayout");
}

static bool make_pipeline(raw_vulkan_device *d, const uint32_t *words, size_t bytes,
                          VkPipeline *made)
{
    const vulkan_calls *vk = &d->vk;
    const VkShaderModuleCreateInfo code = {
        .sType = VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO, .codeSize = bytes, .pCode = words};
    VkShaderModule module = VK_NULL_HANDLE;
    if (!well(d, vk->vkCreateShaderModule(vk->device, &code, NULL, &module),
              "vkCreateShaderModule")) {
        return false;
    }
    const VkComputePipelineCreateInfo pipeline = {
        .sType = VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO,
        .stage = {.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO,
                  .stage = VK_SHADER_STAGE_COMPUTE_BIT,
                  .module = module,
                  .pName = "main"},
        .layout = d->layout};
    const VkResult result =
        vk->vkCreateComputePipelines(vk->device, VK_NULL_HANDLE, 1, &pipeline, NULL, made);
    vk->vkDestroyShaderModule(vk->device, module, NULL);
    return well(d, result, "vkCreateComputePipelines");
}

/* Cached memory where available, since the host reads it. */
static bool make_shown(raw_vulkan_device *d)
{
    const VkMemoryPropertyFlags coherent =
        VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
    const VkMemoryPropertyFlags cached = coherent | VK_MEMORY_PROPERTY_HOST_CACHED_BIT;
    return (vulkan_buffer_make(&d->vk, RAW_READ_MOST, cached, &d->shown) == VK_SUCCESS ||
            well(d, vulkan_buffer_make(&d->vk, RAW_READ_MOST, coherent, &d->shown),
                 "vkAllocateMemory")) &&
           well(d,
                d->vk.vkMapMemory(d->vk.device, d->shown.memory, 0, VK_WHOLE_SIZE, 0,
                                  &d->shown_words),
                "vkMapMemory");
}

static bool make_sets(raw_vulkan_device *d)
{
    const vulkan_calls *vk = &d->vk;
    const VkDescriptorPoolSize size = {VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, 4};
    const VkDescriptorPoolCreateInfo pool = {.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO,
                                             .maxSets = 2,
                                             .poolSizeCount = 1,
                                             .pPoolSizes = &size};
    if (!well(d, vk->vkCreateDescriptorPool(vk->device, &pool, NULL, &d->sets),
              "vkCreateDescriptorPool")) {
        return false;
    }
    const VkDescriptorSetLayout layouts[2] = {d->set_layout, d->set_layout};
    const VkDescriptorSetAllocateInfo both = {.sType =
                                                  VK_STRUCTURE_TYPE_DESCRIPTOR_SET_ALLOCATE_INFO,
                                              .descriptorPool = d->sets,
                                              .descriptorSetCount = 2,
                                              .pSetLayouts = layouts};
    VkDescriptorSet sets[2];
    if (!well(d, vk->vkAllocateDescriptorSets(vk->device, &both, sets),
              "vkAllocateDescriptorSets")) {
        return false;
    }
    const VkDescriptorBufferInfo buffers[3] = {{d->x.buffer, 0, VK_WHOLE_SIZE},
                                               {d->y.buffer, 0, VK_WHOLE_SIZE},
                                               {d->x.buffer, 0, VK_WHOLE_SIZE}};
    for (int i = 0; i < 2; i++) {
        const VkWriteDescriptorSet write = {.sType = VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET,
                                            .dstSet = sets[i],
                                            .descriptorCount = 2,
                                            .descriptorType = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER,
                                            .pBufferInfo = buffers + i};
        vk->vkUpdateDescriptorSets(vk->device, 1, &write, 0, NULL);
    }
    d->forth = sets[0];
    d->back = sets[1];
    return true;
}

static bool begin(raw_vulkan_device *d, VkCommandBuffer commands, VkCommandBufferUsageFlags usage)
{
    const VkCommandBufferBeginInfo info = {.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO,
                                           .flags = usage};
    if (!well(d, d->vk.vkBeginCommandBuffer(commands, &info), "vkBeginCommandBuffer")) {
        return false;
    }
    d->vk.vkCmdBindPipeline(commands, VK_PIPELINE_BIND_POINT_COMPUTE, d->empty);
    return true;
}

static bool make_commands(raw_vulkan_device *d)
{
    const vulkan_calls *vk = &d->vk;
    const VkCommandPoolCreateInfo pool = {.sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO,
                                          .flags = VK_COMMAND_POOL_CREATE_RESET_COMMAND_BUFFER_BIT,
                                          .queueFamilyIndex = vk->family};
    if (!well(d, vk->vkCreateCommandPool(vk->device, &pool, NULL, &d->pool),
              "vkCreateCommandPool")) {
        return false;
    }
    VkCommandBuffer buffers[RING + 1];
    const VkCommandBufferAllocateInfo all = {.sType =
                                                 VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO,
                                             .commandPool = d->pool,
                                             .level = VK_COMMAND_BUFFER_LEVEL_PRIMARY,
                                             .commandBufferCount = RING + 1};
    if (!well(d, vk->vkAllocateCommandBuffers(vk->device, &all, buffers),
              "vkAllocateCommandBuffers")) {
        return false;
    }
    d->graph = buffers[RING];
    for (int i = 0; i < RING; i++) {
        const VkFenceCreateInfo fence = {.sType = VK_STRUCTURE_TYPE_FENCE_CREATE_INFO};
        d->ring[i] = buffers[i];
        if (!well(d, vk->vkCreateFence(vk->device, &fence, NULL, &d->fences[i]), "vkCreateFence")) {
            return false;
        }
    }
    if (!begin(d, d->graph, VK_COMMAND_BUFFER_USAGE_SIMULTANEOUS_USE_BIT)) {
        return false;
    }
    for (int i = 0; i < RAW_GRAPH_COMMANDS; i++) {
        vk->vkCmdDispatch(d->graph, 1, 1, 1);
    }
    return well(d, vk->vkEndCommandBuffer(d->graph), "vkEndCommandBuffer");
}

static bool make(raw_device *device)
{
    raw_vulkan_device *d = (raw_vulkan_device *)device;
    const VkMemoryPropertyFlags local = VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT;
    return make_layout(d) && make_pipeline(d, empty_shader, sizeof empty_shader, &d->empty) &&
           make_pipeline(d, step_shader, sizeof step_shader, &d->step) &&
           well(d, vulkan_buffer_make(&d->vk, RAW_READ_MOST, local, &d->x), "vkAllocateMemory") &&
           well(d, vulkan_buffer_make(&d->vk, RAW_READ_MOST, local, &d->y), "vkAllocateMemory") &&
           make_shown(d) && make_sets(d) && make_commands(d);
}

static void close_device(raw_device *device)
{
    raw_vulkan_device *d = (raw_vulkan_device *)device;
    const vulkan_calls *vk = &d->vk;
    vk->vkDeviceWaitIdle(vk->device);
    for (int i = 0; i < RING; i++) {
        vk->vkDestroyFence(vk->device, d->fences[i], NULL);
    }
    vk->vkDestroyCommandPool(vk->device, d->pool, NULL);
    vk->vkDestroyDescriptorPool(vk->device, d->sets, NULL);
    vk->vkDestroyPipeline(vk->device, d->empty, NULL);
    vk->vkDestroyPipeline(vk->device, d->step, NULL);
    vk->vkDestroyPipelineLayout(vk->device, d->layout, NULL);
    vk->vkDestroyDescriptorSetLayout(vk->device, d->set_layout, NULL);
    vulkan_buffer_free(vk, &d->x);
    vulkan_buffer_free(vk, &d->y);
    vulkan_buffer_free(vk, &d->source);
    vulkan_buffer_free(vk, &d->target);
    vulkan_buffer_free(vk, &d->shown);
    vulkan_close(&d->vk);
    free(d);
}

static bool open_device(raw_device *device, const hal_device_info *info, char *message,
                        size_t bytes)
{
    raw_vulkan_device *d = (raw_vulkan_device *)device;
    return vulkan_open(&d->vk, info, message, bytes);
}

static bool submit(raw_vulkan_device *d, VkCommandBuffer commands, VkFence fence)
{
    const VkSubmitInfo info = {.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO,
                               .commandBufferCount = 1,
                               .pCommandBuffers = &commands};
    return well(d, d->vk.vkQueueSubmit(d->vk.queue, 1, &info, fence), "vkQueueSubmit");
}

static bool wait(raw_vulkan_device *d, int slot)
{
    if (!d->in_flight[slot]) {
        return true;
    }
    d->in_flight[slot] = false;
    return well(d, d->vk.vkWaitForFences(d->vk.device, 1, &d->fences[slot], VK_TRUE, UINT64_MAX),
                "vkWaitForFences") &&
           well(d, d->vk.vkResetFences(d->vk.device, 1, &d->fences[slot]), "vkResetFences");
}

static bool wait_all(raw_vulkan_device *d)
{
    for (int i = 0; i < RING; i++) {
        if (!wait(d, i)) {
            return false;
        }
    }
    return true;
}

/* Records and submits `calls` commands, the last command buffer shorter; each begins with what
 * `start` records. */
static void run(raw_vulkan_device *d, int calls, recorder start, recorder record)
{
    while (calls > 0 && !d->base.failed) {
        const int slot = d->next++ % RING, count = calls < BATCH ? calls : BATCH;
        const VkCommandBuffer commands = d->ring[slot];
        if (!wait(d, slot) || !begin(d, commands, VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT)) {
            return;
        }
        if (start) {
            start(d, commands);
        }
        for (int i = 0; i < count; i++) {
            record(d, commands);
        }
        if (!well(d, d->vk.vkEndCommandBuffer(commands), "vkEndCommandBuffer") ||
            !submit(d, commands, d->fences[slot])) {
            return;
        }
        d->in_flight[slot] = true;
        calls -= count;
    }
}

static void order(raw_vulkan_device *d, VkCommandBuffer commands, VkPipelineStageFlags stage,
                  VkAccessFlags write)
{
    const VkMemoryBarrier barrier = {
        .sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER, .srcAccessMask = write, .dstAccessMask = write};
    d->vk.vkCmdPipelineBarrier(commands, stage, stage, 0, 1, &barrier, 0, NULL, 0, NULL);
}

static void record_empty(raw_vulkan_device *d, VkCommandBuffer commands)
{
    d->vk.vkCmdDispatch(commands, 1, 1, 1);
}

static void record_bound(raw_vulkan_device *d, VkCommandBuffer commands)
{
    order(d, commands, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT, VK_ACCESS_SHADER_WRITE_BIT);
    d->vk.vkCmdBindDescriptorSets(commands, VK_PIPELINE_BIND_POINT_COMPUTE, d->layout, 0, 1,
                                  &d->forth, 0, NULL);
    d->vk.vkCmdDispatch(commands, 1, 1, 1);
}

static void start_steps(raw_vulkan_device *d, VkCommandBuffer commands)
{
    d->vk.vkCmdBindPipeline(commands, VK_PIPELINE_BIND_POINT_COMPUTE, d->step);
}

static void record_step(raw_vulkan_device *d, VkCommandBuffer commands)
{
    const VkMemoryBarrier made = {.sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER,
                                  .srcAccessMask = VK_ACCESS_SHADER_WRITE_BIT,
                                  .dstAccessMask =
                                      VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_SHADER_WRITE_BIT};
    d->vk.vkCmdPipelineBarrier(commands, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT,
                               VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT, 0, 1, &made, 0, NULL, 0, NULL);
    d->vk.vkCmdBindDescriptorSets(commands, VK_PIPELINE_BIND_POINT_COMPUTE, d->layout, 0, 1,
                                  d->turn ? &d->back : &d->forth, 0, NULL);
    d->vk.vkCmdDispatch(commands, RAW_STEP_WORDS / RAW_STEP_GROUP, 1, 1);
    d->turn ^= 1;
}

static void record_copy(raw_vulkan_device *d, VkCommandBuffer commands)
{
    const VkBufferCopy all = {.size = d->copy_bytes};
    order(d, commands, VK_PIPELINE_STAGE_TRANSFER_BIT, VK_ACCESS_TRANSFER_WRITE_BIT);
    d->vk.vkCmdCopyBuffer(commands, d->source.buffer, d->target.buffer, 1, &all);
}

static void run_empty(void *user, int calls)
{
    run(user, calls, NULL, record_empty);
    wait_all(user);
}

static void run_bound(void *user, int calls)
{
    run(user, calls, NULL, record_bound);
    wait_all(user);
}

static void run_step(void *user, int calls)
{
    run(user, calls, start_steps, record_step);
    wait_all(user);
}

static void run_copy(void *user, int calls)
{
    run(user, calls, NULL, record_copy);
    wait_all(user);
}

static void run_alone(void *user, int calls)
{
    raw_vulkan_device *d = user;
    for (int i = 0; i < calls && !d->base.failed; i++) {
        run(d, 1, NULL, record_empty);
        wait_all(d);
    }
}

/* Barriers order kernel, copy and host. */
static void record_read(raw_vulkan_device *d, VkCommandBuffer commands)
{
    const VkBufferCopy all = {.size = d->base.read_bytes};
    const VkMemoryBarrier made = {.sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER,
                                  .srcAccessMask = VK_ACCESS_SHADER_WRITE_BIT,
                                  .dstAccessMask = VK_ACCESS_TRANSFER_READ_BIT};
    const VkMemoryBarrier shown = {.sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER,
                                   .srcAccessMask = VK_ACCESS_TRANSFER_WRITE_BIT,
                                   .dstAccessMask = VK_ACCESS_HOST_READ_BIT};
    record_empty(d, commands);
    d->vk.vkCmdPipelineBarrier(commands, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT,
                               VK_PIPELINE_STAGE_TRANSFER_BIT, 0, 1, &made, 0, NULL, 0, NULL);
    d->vk.vkCmdCopyBuffer(commands, d->y.buffer, d->shown.buffer, 1, &all);
    d->vk.vkCmdPipelineBarrier(commands, VK_PIPELINE_STAGE_TRANSFER_BIT, VK_PIPELINE_STAGE_HOST_BIT,
                               0, 1, &shown, 0, NULL, 0, NULL);
}

static void record_zeros(raw_vulkan_device *d, VkCommandBuffer commands)
{
    const VkMemoryBarrier made = {.sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER,
                                  .srcAccessMask = VK_ACCESS_TRANSFER_WRITE_BIT,
                                  .dstAccessMask = VK_ACCESS_SHADER_READ_BIT};
    d->vk.vkCmdFillBuffer(commands, d->turn ? d->y.buffer : d->x.buffer, 0, VK_WHOLE_SIZE, 0);
    d->vk.vkCmdPipelineBarrier(commands, VK_PIPELINE_STAGE_TRANSFER_BIT,
                               VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT, 0, 1, &made, 0, NULL, 0, NULL);
}

/* The last step writes y, which record_read copies. */
static bool step_words(raw_device *device, int calls, uint32_t words[])
{
    raw_vulkan_device *d = (raw_vulkan_device *)device;
    d->turn = calls % 2 == 0;
    d->base.read_bytes = RAW_STEP_WORDS * sizeof *words;
    run(d, 1, NULL, record_zeros);
    wait_all(d);
    run(d, calls, start_steps, record_step);
    run(d, 1, NULL, record_read);
    if (!wait_all(d)) {
        return false;
    }
    memcpy(words, d->shown_words, RAW_STEP_WORDS * sizeof *words);
    return true;
}

static void run_alone_read(void *user, int calls)
{
    raw_vulkan_device *d = user;
    for (int i = 0; i < calls && !d->base.failed; i++) {
        run(d, 1, NULL, record_read);
        wait_all(d);
    }
}

static void run_graph(void *user, int calls)
{
    raw_vulkan_device *d = user;
    for (int i = 0; i < calls && !d->base.failed; i++) {
        d->in_flight[0] = i + 1 == calls;
        if (!submit(d, d->graph, d->in_flight[0] ? d->fences[0] : VK_NULL_HANDLE)) {
            d->in_flight[0] = false;
        }
    }
    wait_all(d);
}

static void run_allocate(void *user, int calls)
{
    raw_vulkan_device *d = user;
    for (int i = 0; i < calls && !d->base.failed; i++) {
        vulkan_buffer made;
        if (well(d,
                 vulkan_buffer_make(&d->vk, RAW_ALLOCATION, VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT,
                                    &made),
                 "vkAllocateMemory")) {
            vulkan_buffer_free(&d->vk, &made);
        }
    }
}

/* Checks the last word of a copy, read through a small host-visible buffer. */
static bool check_copy(raw_vulkan_device *d, const vulkan_buffer *shown)
{
    const vulkan_calls *vk = &d->vk;
    const uint32_t mark = 0x5eed5eedu;
    const uint64_t last = d->copy_bytes - sizeof mark;
    const VkBufferCopy all = {.size = d->copy_bytes};
    const VkBufferCopy word = {.srcOffset = last, .size = sizeof mark};
    const VkCommandBuffer commands = d->ring[0];
    const VkPipelineStageFlags stage = VK_PIPELINE_STAGE_TRANSFER_BIT;
    const VkAccessFlags both = VK_ACCESS_TRANSFER_WRITE_BIT | VK_ACCESS_TRANSFER_READ_BIT;
    uint32_t *found = NULL;
    if (!begin(d, commands, VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT)) {
        return false;
    }
    vk->vkCmdFillBuffer(commands, d->source.buffer, 0, VK_WHOLE_SIZE, mark);
    order(d, commands, stage, both);
    vk->vkCmdCopyBuffer(commands, d->source.buffer, d->target.buffer, 1, &all);
    order(d, commands, stage, both);
    vk->vkCmdCopyBuffer(commands, d->target.buffer, shown->buffer, 1, &word);
    if (!well(d, vk->vkEndCommandBuffer(commands), "vkEndCommandBuffer") ||
        !submit(d, commands, d->fences[0])) {
        return false;
    }
    d->in_flight[0] = true;
    return wait(d, 0) &&
           well(d, vk->vkMapMemory(vk->device, shown->memory, 0, VK_WHOLE_SIZE, 0, (void **)&found),
                "vkMapMemory") &&
           (*found == mark || raw_fail(&d->base, "vkCmdCopyBuffer, whose bytes are wrong,", 0));
}

static bool make_copy(raw_device *device, uint64_t bytes)
{
    raw_vulkan_device *d = (raw_vulkan_device *)device;
    const VkMemoryPropertyFlags local = VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT;
    const VkMemoryPropertyFlags host =
        VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
    vulkan_buffer shown = {0};
    d->copy_bytes = bytes;
    vulkan_buffer_free(&d->vk, &d->source);
    vulkan_buffer_free(&d->vk, &d->target);
    const bool made =
        well(d, vulkan_buffer_make(&d->vk, bytes, local, &d->source), "vkAllocateMemory") &&
        well(d, vulkan_buffer_make(&d->vk, bytes, local, &d->target), "vkAllocateMemory") &&
        well(d, vulkan_buffer_make(&d->vk, 256, host, &shown), "vkAllocateMemory") &&
        check_copy(d, &shown);
    vulkan_buffer_free(&d->vk, &shown);
    return made;
}

const raw_api raw_vulkan = {.plugin = "vulkan",
                            .device_bytes = sizeof(raw_vulkan_device),
                            .open = open_device,
                            .make = make,
                            .close = close_device,
                            .empty = run_empty,
                            .bound = run_bound,
                            .step = run_step,
                            .step_words = step_words,
                            .alone = run_alone,
                            .alone_read = run_alone_read,
                            .graph = run_graph,
                            .allocate = run_allocate,
                            .copy = run_copy,
                            .make_copy = make_copy};
