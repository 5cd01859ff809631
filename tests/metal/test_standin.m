/* The stand-in's checks: each test breaks one rule of Metal and expects a command buffer that
 * fails, with the sentence. What follows the rules has to pass as well. Runs without
 * METAL_STANDIN_STRICT. */
#import <Metal/Metal.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { COUNT = 64, BYTES = 4 * COUNT };

static const char source[] =
    "#include <metal_stdlib>\nusing namespace metal;\nstruct args { uint n; float s; };\n"
    "kernel void add(device float *o [[buffer(0)]], const device float *x [[buffer(1)]],\n"
    "    constant args &a [[buffer(2)]], uint i [[thread_position_in_grid]])\n"
    "{\n    if (i < a.n) { o[i] += x[i] * a.s; }\n}\n";

static id<MTLDevice> device;
static id<MTLCommandQueue> queue;
static id<MTLComputePipelineState> pipeline;
static id<MTLBuffer> left, right;
static const struct {
    uint32_t n;
    float s;
} arguments = {COUNT, 2};

static int set_up(void **state)
{
    NSError *error = nil;
    NSArray *devices = MTLCopyAllDevices();
    (void)state;
    device = [[devices objectAtIndex:0] retain];
    [devices release];
    queue = [device newCommandQueueWithMaxCommandBufferCount:8];
    MTLCompileOptions *options = [[MTLCompileOptions alloc] init];
    [options setFastMathEnabled:NO];
    id<MTLLibrary> library =
        [device newLibraryWithSource:[NSString stringWithUTF8String:source] options:options
                               error:&error];
    id<MTLFunction> function =
        [library newFunctionWithName:[NSString stringWithUTF8String:"add"]];
    pipeline = [device newComputePipelineStateWithFunction:function error:&error];
    [function release];
    [library release];
    [options release];
    const MTLResourceOptions untracked = MTLResourceHazardTrackingModeUntracked;
    left = [device newBufferWithLength:BYTES options:untracked];
    right = [device newBufferWithLength:BYTES options:untracked];
    return pipeline == nil || left == nil || right == nil;
}

static int tear_down(void **state)
{
    (void)state;
    [left release];
    [right release];
    [pipeline release];
    [queue release];
    [device release];
    return 0;
}

static id<MTLCommandBuffer> make_commands(void)
{
    MTLCommandBufferDescriptor *descriptor = [[MTLCommandBufferDescriptor alloc] init];
    [descriptor setRetainedReferences:NO];
    id<MTLCommandBuffer> commands = [queue commandBufferWithDescriptor:descriptor];
    [descriptor release];
    return commands;
}

static id<MTLComputeCommandEncoder> make_encoder(id<MTLCommandBuffer> commands)
{
    id<MTLComputeCommandEncoder> encoder =
        [commands computeCommandEncoderWithDispatchType:MTLDispatchTypeConcurrent];
    [encoder setComputePipelineState:pipeline];
    [encoder setBuffer:left offset:0 atIndex:0];
    [encoder setBuffer:right offset:0 atIndex:1];
    [encoder setBytes:&arguments length:sizeof arguments atIndex:2];
    return encoder;
}

static void dispatch(id<MTLComputeCommandEncoder> encoder)
{
    [encoder dispatchThreadgroups:MTLSizeMake(2, 1, 1) threadsPerThreadgroup:MTLSizeMake(32, 1, 1)];
}

static void finish(id<MTLCommandBuffer> commands, const char *words)
{
    [commands commit];
    [commands waitUntilCompleted];
    if (!words) {
        assert_int_equal([commands status], MTLCommandBufferStatusCompleted);
        assert_true([commands error] == nil);
        return;
    }
    assert_int_equal([commands status], MTLCommandBufferStatusError);
    const char *message = [[[commands error] localizedDescription] UTF8String];
    if (!strstr(message, words)) {
        fail_msg("expected '%s', got '%s'", words, message);
    }
}

static void what_follows_the_rules_passes(void **state)
{
    (void)state;
    float *numbers = [left contents];
    for (int i = 0; i < COUNT; i++) {
        numbers[i] = 1;
        ((float *)[right contents])[i] = (float)i;
    }
    id<MTLCommandBuffer> commands = make_commands();
    id<MTLComputeCommandEncoder> encoder = make_encoder(commands);
    dispatch(encoder);
    [encoder memoryBarrierWithScope:MTLBarrierScopeBuffers];
    dispatch(encoder);
    [encoder endEncoding];
    finish(commands, NULL);
    assert_true(numbers[5] == 21 && numbers[63] == 253);
    assert_true([commands GPUEndTime] >= [commands GPUStartTime]);
}

static void missing_bindings_are_found(void **state)
{
    (void)state;
    id<MTLCommandBuffer> commands = make_commands();
    id<MTLComputeCommandEncoder> encoder = make_encoder(commands);
    [encoder setBuffer:nil offset:0 atIndex:1];
    dispatch(encoder);
    [encoder endEncoding];
    finish(commands, "index 1 is not bound");

    commands = make_commands();
    encoder = make_encoder(commands);
    [encoder setBuffer:left offset:2 atIndex:0];
    dispatch(encoder);
    [encoder endEncoding];
    finish(commands, "offset");

    commands = make_commands();
    encoder = make_encoder(commands);
    [encoder setBytes:&arguments length:4 atIndex:2];
    dispatch(encoder);
    [encoder endEncoding];
    finish(commands, "smaller");
}

static void states_of_encoders_are_checked(void **state)
{
    (void)state;
    id<MTLCommandBuffer> commands = make_commands();
    id<MTLComputeCommandEncoder> encoder = make_encoder(commands);
    [encoder endEncoding];
    dispatch(encoder);
    finish(commands, "after endEncoding");

    commands = make_commands();
    encoder = make_encoder(commands);
    [commands blitCommandEncoder];
    [encoder endEncoding];
    finish(commands, "while another one is open");

    commands = make_commands();
    encoder = make_encoder(commands);
    finish(commands, "open encoder");
    [encoder endEncoding];

    commands = make_commands();
    encoder = [commands computeCommandEncoder];
    dispatch(encoder);
    [encoder endEncoding];
    finish(commands, "without a pipeline");

    /* A command buffer is used once. */
    id<MTLSharedEvent> event = [device newSharedEvent];
    commands = make_commands();
    [commands encodeWaitForEvent:event value:1];
    [commands commit];
    [commands commit];
    [event setSignaledValue:1];
    [commands waitUntilCompleted];
    assert_int_equal([commands status], MTLCommandBufferStatusError);
    [event release];
}

static void sizes_are_checked(void **state)
{
    (void)state;
    id<MTLCommandBuffer> commands = make_commands();
    id<MTLComputeCommandEncoder> encoder = make_encoder(commands);
    [encoder dispatchThreadgroups:MTLSizeMake(1, 1, 1)
            threadsPerThreadgroup:MTLSizeMake(2048, 1, 1)];
    [encoder endEncoding];
    finish(commands, "2048 threads");

    commands = make_commands();
    id<MTLBlitCommandEncoder> blit = [commands blitCommandEncoder];
    [blit copyFromBuffer:left sourceOffset:0 toBuffer:right destinationOffset:BYTES - 4 size:8];
    [blit endEncoding];
    finish(commands, "not in both buffers");

    commands = make_commands();
    blit = [commands blitCommandEncoder];
    [blit fillBuffer:left range:NSMakeRange(2, 4) value:1];
    [blit endEncoding];
    finish(commands, "multiples of 4");
}

static void released_buffers_are_found(void **state)
{
    (void)state;
    id<MTLCommandBuffer> commands = make_commands();
    id<MTLComputeCommandEncoder> encoder = make_encoder(commands);
    id<MTLBuffer> buffer = [device newBufferWithLength:BYTES options:0];
    [encoder setBuffer:buffer offset:0 atIndex:0];
    dispatch(encoder);
    [encoder endEncoding];
    [buffer release];
    finish(commands, "use after release");

    commands = [queue commandBuffer];
    encoder = make_encoder(commands);
    buffer = [device newBufferWithLength:BYTES options:0];
    [encoder setBuffer:buffer offset:0 atIndex:0];
    dispatch(encoder);
    [encoder endEncoding];
    [buffer release];
    finish(commands, NULL);
}

static void events_only_grow(void **state)
{
    (void)state;
    id<MTLSharedEvent> event = [device newSharedEvent];
    id<MTLCommandBuffer> commands = make_commands();
    [commands encodeSignalEvent:event value:2];
    finish(commands, NULL);
    assert_int_equal([event signaledValue], 2);
    assert_true([event waitUntilSignaledValue:2 timeoutMS:0]);
    assert_false([event waitUntilSignaledValue:3 timeoutMS:5]);
    commands = make_commands();
    [commands encodeSignalEvent:event value:2];
    finish(commands, "backwards");
    /* A command buffer waits for the host. */
    commands = make_commands();
    [commands encodeWaitForEvent:event value:5];
    [commands commit];
    assert_true([commands status] < MTLCommandBufferStatusCompleted);
    [event setSignaledValue:5];
    [commands waitUntilCompleted];
    assert_int_equal([commands status], MTLCommandBufferStatusCompleted);
    [event release];
}

/* Two encoders on the same memory: how says what is between them. */
static void two_encoders(const char *how, const char *words)
{
    id<MTLFence> fence = [device newFence];
    id<MTLCommandBuffer> commands = make_commands();
    id<MTLComputeCommandEncoder> encoder = make_encoder(commands);
    dispatch(encoder);
    if (strcmp(how, "barrier") == 0) {
        [encoder memoryBarrierWithScope:MTLBarrierScopeBuffers];
        dispatch(encoder);
    }
    if (strcmp(how, "nothing in one encoder") == 0) {
        dispatch(encoder);
    }
    [encoder updateFence:fence];
    [encoder endEncoding];
    encoder = make_encoder(commands);
    if (strcmp(how, "no fence") != 0) {
        [encoder waitForFence:fence];
    }
    dispatch(encoder);
    [encoder endEncoding];
    finish(commands, words);
    [fence release];
}

static void hazards_are_found(void **state)
{
    (void)state;
    if (!getenv("METAL_STANDIN_WATCH")) {
        skip();
    }
    two_encoders("fence", NULL);
    two_encoders("barrier", NULL);
    two_encoders("nothing in one encoder", "hazard");
    two_encoders("no fence", "hazard");
    /* The end of a buffer, to the byte. */
    struct {
        uint32_t n;
        float s;
    } more = {COUNT + 1, 1};
    id<MTLCommandBuffer> commands = make_commands();
    id<MTLComputeCommandEncoder> encoder = make_encoder(commands);
    [encoder setBytes:&more length:sizeof more atIndex:2];
    [encoder dispatchThreadgroups:MTLSizeMake(COUNT + 1, 1, 1)
            threadsPerThreadgroup:MTLSizeMake(1, 1, 1)];
    [encoder endEncoding];
    finish(commands, "kernel add: an access of");
}

static void private_memory_has_no_contents(void **state)
{
    (void)state;
    id<MTLBuffer> buffer = [device newBufferWithLength:BYTES
                                               options:MTLResourceStorageModePrivate];
    assert_null([buffer contents]);
    assert_int_equal([buffer storageMode], MTLStorageModePrivate);
    [buffer release];
    assert_null([device newBufferWithLength:0 options:0]);
    assert_null([device newBufferWithLength:(NSUInteger)1 << 40 options:0]);
}

int main(void)
{
    NSAutoreleasePool *pool = [[NSAutoreleasePool alloc] init];
    unsetenv("METAL_STANDIN_STRICT");
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_follows_the_rules_passes),
        cmocka_unit_test(missing_bindings_are_found),
        cmocka_unit_test(states_of_encoders_are_checked),
        cmocka_unit_test(sizes_are_checked),
        cmocka_unit_test(released_buffers_are_found),
        cmocka_unit_test(events_only_grow),
        cmocka_unit_test(hazards_are_found),
        cmocka_unit_test(private_memory_has_no_contents),
    };
    const int failed = cmocka_run_group_tests(tests, set_up, tear_down);
    [pool release];
    return failed;
}
