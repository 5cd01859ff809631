/* MTLComputeCommandEncoder and MTLBlitCommandEncoder: record commands, and check them as the debug
 * layer of Metal does. */
#import "classes.h"

enum { INVALID = MTLCommandBufferErrorInvalidResource, MAX_BYTES = 4096 };

#define VIOLATION(...)                                          \
    do {                                                        \
        standin_violation(buffer->message, __VA_ARGS__);        \
        buffer->code = INVALID;                                 \
    } while (0)

@implementation StandinEncoder
- (id)initWithBuffer:(StandinCommandBuffer *)owner concurrent:(BOOL)concurrent
{
    self = [super initWithDevice:[owner device]];
    buffer = [owner retain];
    if (owner->encoder != nil) {
        VIOLATION("a command buffer gets an encoder while another one is open");
    }
    if (owner->closed) {
        VIOLATION("a command buffer gets an encoder after commit");
    }
    owner->encoder = self;
    standin_commands_add(&owner->commands, STANDIN_BEGIN)->concurrent = concurrent;
    return self;
}
- (void)dealloc
{
    if (!ended) {
        VIOLATION("an encoder is released without endEncoding");
        buffer->encoder = nil;
    }
    [buffer release];
    [super dealloc];
}
- (standin_command *)add:(standin_kind)kind
{
    if (ended || buffer->closed) {
        static standin_command lost;
        VIOLATION("a command is encoded after endEncoding or commit");
        memset(&lost, 0, sizeof lost);
        return &lost;
    }
    return standin_commands_add(&buffer->commands, kind);
}
- (void)keep:(id)object
{
    if (buffer->retains && object != nil) {
        [buffer->kept addObject:object];
    }
}
- (void)endEncoding
{
    [self add:STANDIN_END];
    ended = YES;
    buffer->encoder = nil;
}
- (void)updateFence:(id<MTLFence>)fence
{
    if (fence == nil) {
        VIOLATION("updateFence: no fence");
        return;
    }
    [self add:STANDIN_UPDATE_FENCE]->object = [(StandinFence *)fence retain];
}
- (void)waitForFence:(id<MTLFence>)fence
{
    if (fence == nil) {
        VIOLATION("waitForFence: no fence");
        return;
    }
    [self add:STANDIN_WAIT_FENCE]->object = [(StandinFence *)fence retain];
}
@end

static void clear_binding(standin_binding *binding)
{
    if (binding->memory) {
        standin_memory_unref(binding->memory);
    }
    free(binding->bytes);
    memset(binding, 0, sizeof *binding);
}

@implementation StandinComputeEncoder
- (id)initWithBuffer:(StandinCommandBuffer *)owner type:(MTLDispatchType)dispatchType
{
    self = [super initWithBuffer:owner concurrent:dispatchType == MTLDispatchTypeConcurrent];
    type = dispatchType;
    return self;
}
- (void)dealloc
{
    for (uint32_t i = 0; i < MSL_BUFFERS; i++) {
        clear_binding(&bindings[i]);
    }
    if (program) {
        standin_program_unref(program);
    }
    [super dealloc];
}
- (MTLDispatchType)dispatchType
{
    return type;
}
- (void)setComputePipelineState:(id<MTLComputePipelineState>)state
{
    if (state == nil || ended) {
        VIOLATION("setComputePipelineState: no pipeline, or after endEncoding");
        return;
    }
    standin_program *wanted = ((StandinPipeline *)state)->program;
    standin_program_ref(wanted);
    if (program) {
        standin_program_unref(program);
    }
    program = wanted;
    [self keep:state];
}
- (void)setBytes:(const void *)bytes length:(NSUInteger)length atIndex:(NSUInteger)index
{
    if (index >= MSL_BUFFERS || length == 0 || length > MAX_BYTES || !bytes || ended) {
        VIOLATION("setBytes: length %lu at index %lu: 1 to 4096 bytes at 0 to 30",
                  (unsigned long)length, (unsigned long)index);
        return;
    }
    clear_binding(&bindings[index]);
    bindings[index].bytes = malloc(length);
    memcpy(bindings[index].bytes, bytes, length);
    bindings[index].size = length;
}
- (void)setBuffer:(id<MTLBuffer>)object offset:(NSUInteger)offset atIndex:(NSUInteger)index
{
    StandinBuffer *given = (StandinBuffer *)object;
    if (index >= MSL_BUFFERS || ended || (given != nil && offset >= given->memory->length)) {
        VIOLATION("setBuffer: offset %lu at index %lu, into a buffer of %lu bytes",
                  (unsigned long)offset, (unsigned long)index,
                  (unsigned long)(given != nil ? given->memory->length : 0));
        return;
    }
    clear_binding(&bindings[index]);
    if (given != nil) {
        standin_memory_ref(given->memory);
        bindings[index].memory = given->memory;
        bindings[index].offset = offset;
        bindings[index].size = given->memory->length - offset;
        [self keep:given];
    }
}
- (void)setBufferOffset:(NSUInteger)offset atIndex:(NSUInteger)index
{
    if (index >= MSL_BUFFERS || ended || !bindings[index].memory ||
        offset >= bindings[index].memory->length) {
        VIOLATION("setBufferOffset: offset %lu at index %lu, which has no such buffer",
                  (unsigned long)offset, (unsigned long)index);
        return;
    }
    bindings[index].offset = offset;
    bindings[index].size = bindings[index].memory->length - offset;
}
- (void)setThreadgroupMemoryLength:(NSUInteger)length atIndex:(NSUInteger)index
{
    if (index >= MSL_BUFFERS || length % 16 != 0 || length > MSL_THREADGROUP_BYTES) {
        VIOLATION("setThreadgroupMemoryLength: %lu bytes at index %lu: a multiple of 16",
                  (unsigned long)length, (unsigned long)index);
        return;
    }
    threadgroups[index] = (uint32_t)length;
}

static const char *fault_of(const standin_binding *binding, const msl_parameter *parameter)
{
    const uint32_t constant = standin_is_discrete() ? 256 : 4;
    const uint32_t alignment =
        parameter->space == MSL_CONSTANT && parameter->alignment < constant ? constant
                                                                            : parameter->alignment;
    if (!binding->memory && !binding->bytes) {
        return "is not bound";
    }
    if (binding->memory && binding->offset % alignment != 0) {
        return "has an offset that its type or address space does not allow";
    }
    if (parameter->is_reference && binding->size < parameter->size) {
        return "is smaller than what the kernel reads there";
    }
    if (binding->bytes && !parameter->is_const) {
        return "is set by setBytes, and the kernel may write to it";
    }
    return NULL;
}

- (BOOL)checkSize:(MTLSize)size groups:(MTLSize)groups
{
    if (!program) {
        VIOLATION("a dispatch without a pipeline");
        return NO;
    }
    const NSUInteger threads = size.width * size.height * size.depth;
    if (threads == 0 || threads > program->max_threads ||
        groups.width * groups.height * groups.depth == 0 || groups.width > UINT32_MAX ||
        groups.height > UINT32_MAX || groups.depth > UINT32_MAX) {
        VIOLATION("a dispatch of %lu x %lu x %lu groups of %lu threads: the pipeline takes 1 to %u",
                  (unsigned long)groups.width, (unsigned long)groups.height,
                  (unsigned long)groups.depth, (unsigned long)threads, program->max_threads);
        return NO;
    }
    if (program->full_simdgroups && threads % MSL_SIMD != 0) {
        VIOLATION("a dispatch of groups of %lu threads: the pipeline takes full simdgroups",
                  (unsigned long)threads);
        return NO;
    }
    const msl_function *function = program->function;
    for (uint32_t i = 0; i < function->parameter_count; i++) {
        const msl_parameter *parameter = &function->parameters[i];
        const char *fault = NULL;
        if (parameter->space == MSL_THREADGROUP) {
            fault = threadgroups[parameter->index] == 0 ? "has no threadgroup memory" : NULL;
        } else {
            fault = fault_of(&bindings[parameter->index], parameter);
        }
        if (fault) {
            VIOLATION("kernel %s: index %u %s", function->name, parameter->index, fault);
            return NO;
        }
    }
    return YES;
}

- (standin_command *)dispatch:(MTLSize)size groups:(MTLSize)groups
{
    if (![self checkSize:size groups:groups]) {
        return NULL;
    }
    standin_command *command = [self add:STANDIN_DISPATCH];
    const msl_function *function = program->function;
    standin_program_ref(program);
    command->program = program;
    command->places = calloc(function->parameter_count + 1, sizeof *command->places);
    for (uint32_t i = 0; i < function->parameter_count; i++) {
        const msl_parameter *parameter = &function->parameters[i];
        const standin_binding *binding = &bindings[parameter->index];
        if (parameter->space == MSL_THREADGROUP) {
            command->threadgroup_bytes[parameter->index] = threadgroups[parameter->index];
        } else if (binding->memory) {
            standin_memory_ref(binding->memory);
            command->places[i].memory = binding->memory;
            command->places[i].offset = binding->offset;
        } else {
            command->places[i].bytes = aligned_alloc(16, (binding->size + 15) / 16 * 16);
            memcpy(command->places[i].bytes, binding->bytes, binding->size);
        }
    }
    const NSUInteger sizes[3] = {size.width, size.height, size.depth};
    const NSUInteger counts[3] = {groups.width, groups.height, groups.depth};
    for (uint32_t d = 0; d < 3; d++) {
        command->group_size[d] = (uint32_t)sizes[d];
        command->groups[d] = (uint32_t)counts[d];
    }
    return command;
}
- (void)dispatchThreadgroups:(MTLSize)threadgroupsPerGrid
       threadsPerThreadgroup:(MTLSize)threadsPerThreadgroup
{
    [self dispatch:threadsPerThreadgroup groups:threadgroupsPerGrid];
}
- (void)dispatchThreadgroupsWithIndirectBuffer:(id<MTLBuffer>)indirectBuffer
                          indirectBufferOffset:(NSUInteger)indirectBufferOffset
                         threadsPerThreadgroup:(MTLSize)threadsPerThreadgroup
{
    enum { BYTES = 12 };
    StandinBuffer *grid = (StandinBuffer *)indirectBuffer;
    if (grid == nil || indirectBufferOffset % 4 != 0 || grid->memory->length < BYTES ||
        indirectBufferOffset > grid->memory->length - BYTES) {
        VIOLATION("an indirect dispatch: its grid at offset %lu is not three words of a buffer",
                  indirectBufferOffset);
        return;
    }
    standin_command *command = [self dispatch:threadsPerThreadgroup groups:MTLSizeMake(1, 1, 1)];
    if (command) {
        standin_memory_ref(grid->memory);
        command->from = (standin_place){.memory = grid->memory, .offset = indirectBufferOffset};
    }
}
- (void)dispatchThreads:(MTLSize)grid threadsPerThreadgroup:(MTLSize)size
{
    if (size.width * size.height * size.depth == 0) {
        VIOLATION("dispatchThreads: an empty threadgroup");
        return;
    }
    const MTLSize groups = MTLSizeMake((grid.width + size.width - 1) / size.width,
                                       (grid.height + size.height - 1) / size.height,
                                       (grid.depth + size.depth - 1) / size.depth);
    standin_command *command = [self dispatch:size groups:groups];
    if (command) {
        command->threads[0] = (uint32_t)grid.width;
        command->threads[1] = (uint32_t)grid.height;
        command->threads[2] = (uint32_t)grid.depth;
    }
}
- (void)memoryBarrierWithScope:(MTLBarrierScope)scope
{
    if (scope & MTLBarrierScopeBuffers) {
        [self add:STANDIN_BARRIER];
    }
}
@end

@implementation StandinBlitEncoder
- (void)copyFromBuffer:(id<MTLBuffer>)sourceBuffer
          sourceOffset:(NSUInteger)sourceOffset
              toBuffer:(id<MTLBuffer>)destinationBuffer
     destinationOffset:(NSUInteger)destinationOffset
                  size:(NSUInteger)size
{
    StandinBuffer *from = (StandinBuffer *)sourceBuffer, *to = (StandinBuffer *)destinationBuffer;
    if (from == nil || to == nil || size == 0 || size > from->memory->length ||
        sourceOffset > from->memory->length - size || size > to->memory->length ||
        destinationOffset > to->memory->length - size) {
        VIOLATION("copyFromBuffer: %lu bytes from %lu to %lu are not in both buffers",
                  (unsigned long)size, (unsigned long)sourceOffset,
                  (unsigned long)destinationOffset);
        return;
    }
    if ((size | sourceOffset | destinationOffset) % 4 != 0) {
        VIOLATION("copyFromBuffer: %lu bytes from %lu to %lu: macOS takes multiples of 4",
                  (unsigned long)size, (unsigned long)sourceOffset,
                  (unsigned long)destinationOffset);
        return;
    }
    if (from == to && sourceOffset < destinationOffset + size &&
        destinationOffset < sourceOffset + size) {
        VIOLATION("copyFromBuffer: the ranges overlap");
        return;
    }
    standin_command *command = [self add:STANDIN_COPY];
    standin_memory_ref(from->memory);
    standin_memory_ref(to->memory);
    command->from.memory = from->memory;
    command->from.offset = sourceOffset;
    command->to.memory = to->memory;
    command->to.offset = destinationOffset;
    command->size = size;
    [self keep:from];
    [self keep:to];
}
- (void)fillBuffer:(id<MTLBuffer>)object range:(NSRange)range value:(uint8_t)value
{
    StandinBuffer *to = (StandinBuffer *)object;
    if (to == nil || range.length == 0 || range.length > to->memory->length ||
        range.location > to->memory->length - range.length ||
        (range.location | range.length) % 4 != 0) {
        VIOLATION("fillBuffer: %lu bytes at %lu: multiples of 4 in the buffer",
                  (unsigned long)range.length, (unsigned long)range.location);
        return;
    }
    standin_command *command = [self add:STANDIN_FILL];
    standin_memory_ref(to->memory);
    command->to.memory = to->memory;
    command->to.offset = range.location;
    command->size = range.length;
    command->value = value;
    [self keep:to];
}
@end
