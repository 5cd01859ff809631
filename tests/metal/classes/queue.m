/* MTLCommandQueue and MTLCommandBuffer: each queue has a thread that runs committed command buffers
 * in their order. */
#import "classes.h"

#include <time.h>

NSString *const MTLCommandBufferErrorDomain = @"MTLCommandBufferErrorDomain";

/* Fences are updated and waited for by the threads of queues. */
static pthread_mutex_t fence_mutex = PTHREAD_MUTEX_INITIALIZER;

@interface StandinServer : NSObject
+ (void)serve:(NSValue *)value;
@end

@implementation StandinServer
+ (void)serve:(NSValue *)value
{
    standin_queue *q = [value pointerValue];
    for (;;) {
        NSAutoreleasePool *pool = [[NSAutoreleasePool alloc] init];
        pthread_mutex_lock(&q->mutex);
        while (q->count == 0 && !q->stops) {
            pthread_cond_wait(&q->changed, &q->mutex);
        }
        StandinCommandBuffer *next = q->count > 0 ? q->pending[0] : nil;
        if (next != nil) {
            memmove(q->pending, q->pending + 1, --q->count * sizeof *q->pending);
        }
        pthread_mutex_unlock(&q->mutex);
        if (next != nil) {
            [next run];
            [next release];
        }
        [pool release];
        if (next == nil) {
            break;
        }
    }
    pthread_mutex_destroy(&q->mutex);
    pthread_cond_destroy(&q->changed);
    free(q->pending);
    free(q);
}
@end

@implementation StandinQueue
- (id)initWithDevice:(id<MTLDevice>)owner count:(NSUInteger)most
{
    self = [super initWithDevice:owner];
    queue = calloc(1, sizeof *queue);
    pthread_mutex_init(&queue->mutex, NULL);
    pthread_cond_init(&queue->changed, NULL);
    queue->most = (uint32_t)most;
    [NSThread detachNewThreadSelector:@selector(serve:)
                             toTarget:[StandinServer class]
                           withObject:[NSValue valueWithPointer:queue]];
    return self;
}
- (void)dealloc
{
    pthread_mutex_lock(&queue->mutex);
    queue->stops = true;
    pthread_cond_broadcast(&queue->changed);
    pthread_mutex_unlock(&queue->mutex);
    [super dealloc];
}

/* As Metal does, waits while too many command buffers are not completed. */
static void take_place(standin_queue *q)
{
    struct timespec end;
    clock_gettime(CLOCK_REALTIME, &end);
    end.tv_sec += 60;
    pthread_mutex_lock(&q->mutex);
    int failed = 0;
    while (q->open >= q->most && failed == 0) {
        failed = pthread_cond_timedwait(&q->changed, &q->mutex, &end);
    }
    q->open++;
    pthread_mutex_unlock(&q->mutex);
    if (failed != 0) {
        standin_violation(NULL, "a command queue has %u command buffers that never complete",
                          q->most);
    }
}

- (id<MTLCommandBuffer>)make:(BOOL)retaining
{
    take_place(queue);
    return [[[StandinCommandBuffer alloc] initWithQueue:self retains:retaining] autorelease];
}
- (id<MTLCommandBuffer>)commandBuffer
{
    return [self make:YES];
}
- (id<MTLCommandBuffer>)commandBufferWithUnretainedReferences
{
    return [self make:NO];
}
- (id<MTLCommandBuffer>)commandBufferWithDescriptor:(MTLCommandBufferDescriptor *)descriptor
{
    StandinCommandBuffer *made = (StandinCommandBuffer *)[self make:[descriptor retainedReferences]];
    made->options = [descriptor errorOptions];
    return made;
}
@end

@implementation StandinCommandBuffer
- (id)initWithQueue:(StandinQueue *)queue retains:(BOOL)retaining
{
    self = [super initWithDevice:[queue device]];
    owner = [queue retain];
    retains = retaining;
    counted = YES;
    kept = retaining ? [[NSMutableArray alloc] init] : nil;
    pthread_mutex_init(&mutex, NULL);
    pthread_cond_init(&changed, NULL);
    return self;
}
- (void)leavePlace
{
    if (counted) {
        counted = NO;
        pthread_mutex_lock(&owner->queue->mutex);
        owner->queue->open--;
        pthread_cond_broadcast(&owner->queue->changed);
        pthread_mutex_unlock(&owner->queue->mutex);
    }
}
- (void)clear
{
    for (uint32_t i = 0; i < commands.count; i++) {
        [(id)commands.list[i].object release];
    }
    standin_commands_clear(&commands);
    [kept release];
    kept = nil;
}
- (void)dealloc
{
    [self leavePlace];
    [self clear];
    [error release];
    [owner release];
    pthread_mutex_destroy(&mutex);
    pthread_cond_destroy(&changed);
    [super dealloc];
}
- (id<MTLCommandQueue>)commandQueue
{
    return owner;
}
- (BOOL)retainedReferences
{
    return retains;
}
- (MTLCommandBufferErrorOption)errorOptions
{
    return options;
}
- (double)kernelStartTime
{
    return start;
}
- (double)kernelEndTime
{
    return start;
}
- (double)GPUStartTime
{
    return start;
}
- (double)GPUEndTime
{
    return end;
}
- (void)setStatus:(MTLCommandBufferStatus)wanted
{
    pthread_mutex_lock(&mutex);
    status = wanted;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&mutex);
}
- (void)enqueue
{
    if (status == MTLCommandBufferStatusNotEnqueued) {
        [self setStatus:MTLCommandBufferStatusEnqueued];
    }
}
- (void)commit
{
    if (closed || encoder != nil) {
        standin_violation(message, closed ? "a command buffer is committed twice"
                                          : "a command buffer is committed with an open encoder");
        code = MTLCommandBufferErrorInvalidResource;
        if (closed) {
            return;
        }
    }
    closed = YES;
    standin_host_order(&order);
    [self setStatus:MTLCommandBufferStatusCommitted];
    standin_queue *q = owner->queue;
    pthread_mutex_lock(&q->mutex);
    if (q->count == q->capacity) {
        q->capacity = 2 * q->capacity + 16;
        q->pending = realloc(q->pending, q->capacity * sizeof *q->pending);
    }
    q->pending[q->count++] = [self retain];
    pthread_cond_broadcast(&q->changed);
    pthread_mutex_unlock(&q->mutex);
}
- (void)waitUntil:(MTLCommandBufferStatus)wanted
{
    if (!closed) {
        standin_violation(NULL, "a wait for a command buffer that is not committed never ends");
        return;
    }
    pthread_mutex_lock(&mutex);
    while (status < wanted) {
        pthread_cond_wait(&changed, &mutex);
    }
    if (status >= MTLCommandBufferStatusCompleted) {
        standin_host_sees(&order);
    }
    pthread_mutex_unlock(&mutex);
}
- (void)waitUntilScheduled
{
    [self waitUntil:MTLCommandBufferStatusScheduled];
}
- (void)waitUntilCompleted
{
    [self waitUntil:MTLCommandBufferStatusCompleted];
}
- (MTLCommandBufferStatus)status
{
    pthread_mutex_lock(&mutex);
    const MTLCommandBufferStatus now = status;
    if (now >= MTLCommandBufferStatusCompleted) {
        standin_host_sees(&order);
    }
    pthread_mutex_unlock(&mutex);
    return now;
}
- (NSError *)error
{
    return [self status] == MTLCommandBufferStatusError ? error : nil;
}
- (id<MTLBlitCommandEncoder>)blitCommandEncoder
{
    return [[[StandinBlitEncoder alloc] initWithBuffer:self concurrent:YES] autorelease];
}
- (id<MTLComputeCommandEncoder>)computeCommandEncoder
{
    return [self computeCommandEncoderWithDispatchType:MTLDispatchTypeSerial];
}
- (id<MTLComputeCommandEncoder>)computeCommandEncoderWithDispatchType:(MTLDispatchType)dispatchType
{
    return [[[StandinComputeEncoder alloc] initWithBuffer:self type:dispatchType] autorelease];
}
- (void)encode:(standin_kind)kind event:(id<MTLEvent>)event value:(uint64_t)value
{
    if (event == nil || encoder != nil || closed) {
        standin_violation(message, "an event is encoded without an event, with an open encoder or "
                          "after commit");
        code = MTLCommandBufferErrorInvalidResource;
        return;
    }
    standin_command *command = standin_commands_add(&commands, kind);
    command->object = [(StandinEvent *)event retain];
    command->value = value;
}
- (void)encodeWaitForEvent:(id<MTLEvent>)event value:(uint64_t)value
{
    [self encode:STANDIN_WAIT_EVENT event:event value:value];
}
- (void)encodeSignalEvent:(id<MTLEvent>)event value:(uint64_t)value
{
    [self encode:STANDIN_SIGNAL_EVENT event:event value:value];
}

/* A failure that a test asks for: command buffer METAL_STANDIN_FAIL of the process, and those after
 * it when the device is removed. */
- (void)failOnDemand
{
    static atomic_uint_fast64_t serial;
    const uint64_t number = atomic_fetch_add(&serial, 1) + 1;
    const uint64_t wanted = standin_setting("METAL_STANDIN_FAIL", 0);
    const uint64_t kind =
        standin_setting("METAL_STANDIN_FAIL_CODE", MTLCommandBufferErrorDeviceRemoved);
    if (wanted != 0 && message[0] == 0 &&
        (number == wanted ||
         (number > wanted && kind == MTLCommandBufferErrorDeviceRemoved))) {
        snprintf(message, sizeof message, "METAL_STANDIN_FAIL fails this command buffer");
        code = kind;
    }
}

/* An encoder from first to its end, which is returned. */
- (uint32_t)runEncoder:(uint32_t)first done:(standin_order *)done
{
    uint32_t last = first;
    standin_run *run = calloc(1, sizeof *run);
    run->encoder = standin_order_next();
    run->before = order;
    run->watches = standin_setting("METAL_STANDIN_WATCH", 0) != 0;
    pthread_mutex_lock(&fence_mutex);
    for (; last < commands.count && commands.list[last].kind != STANDIN_END; last++) {
        if (commands.list[last].kind == STANDIN_WAIT_FENCE) {
            standin_order_join(&run->before, &((StandinFence *)commands.list[last].object)->order);
        }
    }
    pthread_mutex_unlock(&fence_mutex);
    if (!standin_run_encoder(run, &commands, first, last)) {
        memcpy(message, run->message, sizeof message);
        code = run->code;
    }
    standin_order_add(&run->before, run->encoder);
    standin_order_join(done, &run->before);
    pthread_mutex_lock(&fence_mutex);
    for (uint32_t i = first; i < last; i++) {
        if (commands.list[i].kind == STANDIN_UPDATE_FENCE) {
            standin_order_join(&((StandinFence *)commands.list[i].object)->order, &run->before);
        }
    }
    pthread_mutex_unlock(&fence_mutex);
    free(run);
    return last;
}

- (void)runCommands
{
    /* What this command buffer has done; its encoders do not see each other without a fence. */
    standin_order *done = calloc(1, sizeof *done);
    for (uint32_t i = 0; i < commands.count && message[0] == 0; i++) {
        const standin_command *command = &commands.list[i];
        StandinEvent *event = (StandinEvent *)command->object;
        if (command->kind == STANDIN_WAIT_EVENT) {
            [event await:command->value order:&order];
        } else if (command->kind == STANDIN_SIGNAL_EVENT) {
            standin_order_join(done, &order);
            if (![event signal:command->value order:done message:message]) {
                code = MTLCommandBufferErrorInvalidResource;
            }
        } else if (command->kind == STANDIN_BEGIN) {
            i = [self runEncoder:i done:done];
        }
    }
    standin_order_join(&order, done);
    free(done);
}

- (void)run
{
    [self failOnDemand];
    [self setStatus:MTLCommandBufferStatusScheduled];
    start = standin_now();
    if (message[0] == 0) {
        [self runCommands];
    }
    end = standin_now();
    if (message[0] != 0) {
        error = [standin_error(MTLCommandBufferErrorDomain, (NSInteger)code, message) retain];
    }
    [self clear];
    [self leavePlace];
    [self setStatus:message[0] != 0 ? MTLCommandBufferStatusError : MTLCommandBufferStatusCompleted];
}
@end
