/* MTLDevice, MTLBuffer, and the functions that find devices. */
#import "classes.h"

NSError *standin_error(NSString *domain, NSInteger code, const char *sentence)
{
    NSDictionary *info = [NSDictionary dictionaryWithObject:[NSString stringWithUTF8String:sentence]
                                                     forKey:NSLocalizedDescriptionKey];
    return [NSError errorWithDomain:domain code:code userInfo:info];
}

@implementation StandinObject
- (id)initWithDevice:(id<MTLDevice>)owner
{
    self = [super init];
    device = [owner retain];
    return self;
}
- (void)dealloc
{
    [label release];
    [device release];
    [super dealloc];
}
- (NSString *)label
{
    return [[label retain] autorelease];
}
- (void)setLabel:(NSString *)text
{
    NSString *old = label;
    label = [text copy];
    [old release];
}
- (id<MTLDevice>)device
{
    return device;
}
@end

@implementation MTLArchitecture
- (NSString *)name
{
    return @"standin";
}
- (id)copyWithZone:(NSZone *)zone
{
    (void)zone;
    return [self retain];
}
@end

@implementation StandinBuffer
- (void)dealloc
{
    if (memory) {
        standin_memory_release(memory);
    }
    [super dealloc];
}
- (NSUInteger)length
{
    return memory->length;
}
- (void *)contents
{
    return [self storageMode] == MTLStorageModePrivate ? NULL : memory->bytes;
}
- (uint64_t)gpuAddress
{
    return (uint64_t)(uintptr_t)memory->bytes;
}
- (MTLCPUCacheMode)cpuCacheMode
{
    return (MTLCPUCacheMode)(memory->options & 15);
}
- (MTLStorageMode)storageMode
{
    return (MTLStorageMode)(memory->options >> 4 & 15);
}
- (MTLHazardTrackingMode)hazardTrackingMode
{
    return (MTLHazardTrackingMode)(memory->options >> 8 & 3);
}
- (MTLResourceOptions)resourceOptions
{
    return (MTLResourceOptions)memory->options;
}
- (NSUInteger)allocatedSize
{
    return (memory->length + 4095) / 4096 * 4096;
}
@end

@implementation StandinDevice
+ (StandinDevice *)shared
{
    static StandinDevice *one;
    static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    pthread_mutex_lock(&mutex);
    if (one == nil) {
        one = [[StandinDevice alloc] init];
    }
    pthread_mutex_unlock(&mutex);
    return one;
}
- (NSString *)name
{
    return @"Stand-in for Metal, for tests only";
}
- (uint64_t)registryID
{
    return 0x5354414e44494e;
}
- (MTLArchitecture *)architecture
{
    return [[[MTLArchitecture alloc] init] autorelease];
}
- (MTLSize)maxThreadsPerThreadgroup
{
    return MTLSizeMake(MSL_MAX_THREADS, MSL_MAX_THREADS, MSL_MAX_THREADS);
}
- (BOOL)isLowPower
{
    return NO;
}
- (BOOL)isHeadless
{
    return NO;
}
- (BOOL)isRemovable
{
    return NO;
}
- (BOOL)hasUnifiedMemory
{
    return !standin_is_discrete();
}
- (uint64_t)recommendedMaxWorkingSetSize
{
    return standin_setting("METAL_STANDIN_MEMORY", (uint64_t)4 << 30);
}
- (NSUInteger)maxThreadgroupMemoryLength
{
    return MSL_THREADGROUP_BYTES;
}
- (NSUInteger)maxBufferLength
{
    return (NSUInteger)standin_setting("METAL_STANDIN_BUFFER", (uint64_t)2 << 30);
}
- (NSUInteger)currentAllocatedSize
{
    return standin_memory_total();
}
- (BOOL)supportsFamily:(MTLGPUFamily)family
{
    if (family == MTLGPUFamilyMetal3 ||
        (family >= MTLGPUFamilyCommon1 && family <= MTLGPUFamilyCommon3)) {
        return YES;
    }
    if (standin_is_discrete()) {
        return family == MTLGPUFamilyMac1 || family == MTLGPUFamilyMac2;
    }
    return (family >= MTLGPUFamilyApple1 && family <= MTLGPUFamilyApple8) ||
           family == MTLGPUFamilyMac2;
}
- (id<MTLCommandQueue>)newCommandQueue
{
    return [self newCommandQueueWithMaxCommandBufferCount:64];
}
- (id<MTLCommandQueue>)newCommandQueueWithMaxCommandBufferCount:(NSUInteger)count
{
    return [[StandinQueue alloc] initWithDevice:self count:count];
}
- (id<MTLBuffer>)newBufferWithLength:(NSUInteger)length options:(MTLResourceOptions)options
{
    const MTLStorageMode mode = (MTLStorageMode)(options >> 4 & 15);
    if (length == 0 || mode == MTLStorageModeMemoryless || options >> 10 != 0 ||
        (mode == MTLStorageModeManaged && !standin_is_discrete())) {
        standin_violation(NULL, "newBufferWithLength: length %lu, options 0x%lx: Metal refuses them",
                          (unsigned long)length, (unsigned long)options);
        return nil;
    }
    if (length > [self maxBufferLength] ||
        standin_memory_total() + length > [self recommendedMaxWorkingSetSize]) {
        return nil;
    }
    StandinBuffer *buffer = [[StandinBuffer alloc] initWithDevice:self];
    buffer->memory = standin_memory_create(length, options);
    if (!buffer->memory) {
        [buffer release];
        return nil;
    }
    return buffer;
}
- (id<MTLBuffer>)newBufferWithBytesNoCopy:(void *)pointer
                                   length:(NSUInteger)length
                                  options:(MTLResourceOptions)options
                              deallocator:(MTLBufferDeallocator)deallocator
{
    const MTLStorageMode mode = (MTLStorageMode)(options >> 4 & 15);
    if (length == 0 || (uintptr_t)pointer % 4096 != 0 || length % 4096 != 0 ||
        mode != MTLStorageModeShared || deallocator) {
        standin_violation(NULL, "newBufferWithBytesNoCopy: %lu bytes at %p, options 0x%lx: Metal "
                                "takes whole pages of shared memory",
                          (unsigned long)length, pointer, (unsigned long)options);
        return nil;
    }
    StandinBuffer *buffer = [[StandinBuffer alloc] initWithDevice:self];
    buffer->memory = standin_memory_adopt(pointer, length, options);
    if (!buffer->memory) {
        [buffer release];
        return nil;
    }
    return buffer;
}
- (id<MTLFence>)newFence
{
    return [[StandinFence alloc] initWithDevice:self];
}
- (id<MTLEvent>)newEvent
{
    return [[StandinEvent alloc] initWithDevice:self];
}
- (id<MTLSharedEvent>)newSharedEvent
{
    return [[StandinEvent alloc] initWithDevice:self];
}

static msl_options options_of(MTLCompileOptions *options)
{
    const MTLLanguageVersion version = options != nil ? [options languageVersion]
                                                      : MTLLanguageVersion3_0;
    return (msl_options){
        .fast_math = options == nil || ([options fastMathEnabled] &&
                                        [options mathMode] != MTLMathModeSafe),
        .language = (uint32_t)(version >> 16) * 100 + (uint32_t)(version & 0xffff) * 10,
        .watch = (int)standin_setting("METAL_STANDIN_WATCH", 0),
    };
}

static uint64_t key_of(const char *text, const msl_options *options)
{
    uint64_t h = 0xcbf29ce484222325u + (uint64_t)options->fast_math + 2 * options->language;
    for (; *text != 0; text++) {
        h = (h ^ (unsigned char)*text) * 0x100000001b3u;
    }
    return h;
}

- (id<MTLLibrary>)newLibraryWithSource:(NSString *)source
                               options:(MTLCompileOptions *)options
                                 error:(NSError **)error
{
    const msl_options settings = options_of(options);
    const char *text = [source UTF8String];
    msl_text log = {0};
    msl_library *compiled = msl_compile(text, &settings, &log);
    if (compiled && log.count > 0 && standin_setting("METAL_STANDIN_STRICT", 0)) {
        standin_violation(NULL, "newLibraryWithSource: warnings: %s", log.bytes);
    }
    if (log.count > 0 && error) {
        *error = standin_error(MTLLibraryErrorDomain,
                               compiled != NULL ? MTLLibraryErrorCompileWarning
                                                : MTLLibraryErrorCompileFailure, log.bytes);
    }
    free(log.bytes);
    if (!compiled) {
        return nil;
    }
    StandinLibrary *library = [[StandinLibrary alloc] initWithDevice:self];
    library->library = calloc(1, sizeof *library->library);
    atomic_init(&library->library->references, 1);
    library->library->compiled = compiled;
    library->key = key_of(text, &settings);
    return library;
}

static uint64_t pipeline_key(MTLComputePipelineDescriptor *descriptor)
{
    StandinFunction *function = (StandinFunction *)[descriptor computeFunction];
    uint64_t h = function->key * 31 + [descriptor maxTotalThreadsPerThreadgroup];
    for (const char *p = function->function->name; *p != 0; p++) {
        h = h * 31 + (unsigned char)*p;
    }
    return h;
}

uint64_t standin_pipeline_key(MTLComputePipelineDescriptor *descriptor);
uint64_t standin_pipeline_key(MTLComputePipelineDescriptor *descriptor)
{
    return pipeline_key(descriptor);
}

- (id<MTLComputePipelineState>)newComputePipelineStateWithFunction:(id<MTLFunction>)function
                                                             error:(NSError **)error
{
    MTLComputePipelineDescriptor *descriptor = [[MTLComputePipelineDescriptor alloc] init];
    [descriptor setComputeFunction:function];
    id<MTLComputePipelineState> state = [self newComputePipelineStateWithDescriptor:descriptor
                                                                            options:0
                                                                         reflection:NULL
                                                                              error:error];
    [descriptor release];
    return state;
}

static BOOL is_archived(MTLComputePipelineDescriptor *descriptor)
{
    for (StandinArchive *archive in [descriptor binaryArchives]) {
        if ([archive has:pipeline_key(descriptor)]) {
            return YES;
        }
    }
    return NO;
}

- (id<MTLComputePipelineState>)
    newComputePipelineStateWithDescriptor:(MTLComputePipelineDescriptor *)descriptor
                                  options:(MTLPipelineOption)options
                               reflection:(MTLComputePipelineReflection **)reflection
                                    error:(NSError **)error
{
    StandinFunction *function = (StandinFunction *)[descriptor computeFunction];
    const char *fault = NULL;
    (void)reflection;
    if (function == nil) {
        fault = "the descriptor has no function";
    } else if ((options & MTLPipelineOptionFailOnBinaryArchiveMiss) && !is_archived(descriptor)) {
        fault = "no archive has the pipeline";
    } else if (function->function->threadgroup_bytes > MSL_THREADGROUP_BYTES) {
        fault = "the function declares more threadgroup memory than the device has";
    } else if ([descriptor maxTotalThreadsPerThreadgroup] > MSL_MAX_THREADS ||
               function->function->max_threads > MSL_MAX_THREADS) {
        fault = "more threads in a threadgroup than the device has";
    }
    if (fault) {
        if (error) {
            *error = standin_error(MTLLibraryErrorDomain, MTLLibraryErrorInternal, fault);
        }
        return nil;
    }
    const NSUInteger most = [descriptor maxTotalThreadsPerThreadgroup];
    const uint32_t declared = function->function->max_threads;
    StandinPipeline *pipeline = [[StandinPipeline alloc] initWithDevice:self];
    [pipeline setLabel:[descriptor label]];
    standin_program *program = calloc(1, sizeof *program);
    atomic_init(&program->references, 1);
    atomic_init(&program->released, false);
    standin_library_ref(function->library);
    program->library = function->library;
    program->function = function->function;
    program->max_threads = most > 0 ? (uint32_t)most : declared > 0 ? declared : MSL_MAX_THREADS;
    program->full_simdgroups = [descriptor threadGroupSizeIsMultipleOfThreadExecutionWidth];
    pipeline->program = program;
    return pipeline;
}
- (id<MTLBinaryArchive>)newBinaryArchiveWithDescriptor:(MTLBinaryArchiveDescriptor *)descriptor
                                                 error:(NSError **)error
{
    StandinArchive *archive = [[StandinArchive alloc] initWithDevice:self];
    if ([descriptor url] != nil && ![archive readFrom:[descriptor url] error:error]) {
        [archive release];
        return nil;
    }
    return archive;
}
@end

NSArray *MTLCopyAllDevices(void)
{
    if (standin_setting("METAL_STANDIN_NO_DEVICE", 0)) {
        return [[NSArray alloc] init];
    }
    return [[NSArray alloc] initWithObjects:[StandinDevice shared], nil];
}

id<MTLDevice> MTLCreateSystemDefaultDevice(void)
{
    return [[StandinDevice shared] retain];
}
