/* The classes behind the protocols of Metal.h. Manual reference counting; no blocks. */
#ifndef TESTS_METAL_CLASSES_CLASSES_H
#define TESTS_METAL_CLASSES_CLASSES_H

#import <Metal/Metal.h>

#include "standin.h"

@interface StandinObject : NSObject {
    NSString *label;
    id<MTLDevice> device;
}
- (id)initWithDevice:(id<MTLDevice>)owner;
- (NSString *)label;
- (void)setLabel:(NSString *)text;
- (id<MTLDevice>)device;
@end

@interface StandinDevice : NSObject <MTLDevice>
+ (StandinDevice *)shared;
@end

@interface StandinBuffer : StandinObject <MTLBuffer> {
@public
    standin_memory *memory;
}
@end

@interface StandinLibrary : StandinObject <MTLLibrary> {
@public
    standin_library *library;
    uint64_t key; /* of the text and options, for archives */
}
@end

@interface StandinFunction : StandinObject <MTLFunction> {
@public
    standin_library *library;
    const msl_function *function;
    uint64_t key;
}
@end

@interface StandinPipeline : StandinObject <MTLComputePipelineState> {
@public
    standin_program *program;
}
@end

@interface StandinArchive : StandinObject <MTLBinaryArchive> {
@public
    NSMutableSet *keys;
}
- (BOOL)readFrom:(NSURL *)url error:(NSError **)error;
- (BOOL)has:(uint64_t)key;
@end

@interface StandinFence : StandinObject <MTLFence> {
@public
    standin_order order;
    BOOL updated;
}
@end

/* An MTLEvent and an MTLSharedEvent. */
@interface StandinEvent : StandinObject <MTLSharedEvent> {
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    uint64_t value;
    standin_order order;
}
/* From a command buffer: false and a message when the value does not grow. */
- (BOOL)signal:(uint64_t)wanted order:(const standin_order *)before message:(char *)message;
/* Waits, and adds what had finished before the signal. */
- (void)await:(uint64_t)wanted order:(standin_order *)before;
@end

@class StandinCommandBuffer;

/* What a queue shares with its thread. */
typedef struct standin_queue {
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    StandinCommandBuffer **pending;
    uint32_t count, capacity;
    uint32_t open, most; /* command buffers that are not completed */
    bool stops;
} standin_queue;

@interface StandinQueue : StandinObject <MTLCommandQueue> {
@public
    standin_queue *queue;
}
- (id)initWithDevice:(id<MTLDevice>)owner count:(NSUInteger)most;
@end

@interface StandinCommandBuffer : StandinObject <MTLCommandBuffer> {
@public
    StandinQueue *owner;
    standin_commands commands;
    standin_order order; /* of what the host had seen at commit */
    char message[256];   /* of the first violation */
    uint64_t code;
    BOOL retains, closed, counted;
    MTLCommandBufferErrorOption options;
    id encoder; /* the open one, not retained */
    NSMutableArray *kept; /* with retained references */
    MTLCommandBufferStatus status;
    NSError *error;
    double start, end;
    pthread_mutex_t mutex;
    pthread_cond_t changed;
}
- (id)initWithQueue:(StandinQueue *)queue retains:(BOOL)retaining;
- (void)run;
@end

@interface StandinEncoder : StandinObject {
@public
    StandinCommandBuffer *buffer;
    BOOL ended;
}
- (id)initWithBuffer:(StandinCommandBuffer *)owner concurrent:(BOOL)concurrent;
/* The next command; after endEncoding a violation, and one that is never run. */
- (standin_command *)add:(standin_kind)kind;
- (void)keep:(id)object;
@end

/* A buffer, or a copy of bytes, at an index; both counted or owned by the encoder. */
typedef struct standin_binding {
    standin_memory *memory;
    unsigned char *bytes;
    uint64_t offset, size;
} standin_binding;

@interface StandinComputeEncoder : StandinEncoder <MTLComputeCommandEncoder> {
    MTLDispatchType type;
    standin_program *program;
    standin_binding bindings[MSL_BUFFERS];
    uint32_t threadgroups[MSL_BUFFERS];
}
- (id)initWithBuffer:(StandinCommandBuffer *)owner type:(MTLDispatchType)dispatchType;
@end

@interface StandinBlitEncoder : StandinEncoder <MTLBlitCommandEncoder>
@end

/* What the host knows to have finished. */
void standin_host_sees(const standin_order *order);
void standin_host_order(standin_order *order);

NSError *standin_error(NSString *domain, NSInteger code, const char *sentence);

#endif
