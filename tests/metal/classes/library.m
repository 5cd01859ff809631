/* MTLLibrary, MTLFunction, pipelines, archives, and the descriptors. */
#import "classes.h"

NSString *const MTLLibraryErrorDomain = @"MTLLibraryErrorDomain";
NSString *const MTLBinaryArchiveDomain = @"MTLBinaryArchiveDomain";

uint64_t standin_pipeline_key(MTLComputePipelineDescriptor *descriptor);

@implementation MTLCompileOptions
@synthesize fastMathEnabled, mathMode, mathFloatingPointFunctions, languageVersion;
- (id)init
{
    self = [super init];
    fastMathEnabled = YES;
    mathMode = MTLMathModeFast;
    mathFloatingPointFunctions = MTLMathFloatingPointFunctionsFast;
    languageVersion = MTLLanguageVersion3_2;
    return self;
}
- (id)copyWithZone:(NSZone *)zone
{
    MTLCompileOptions *copy = [[MTLCompileOptions allocWithZone:zone] init];
    [copy setFastMathEnabled:fastMathEnabled];
    [copy setMathMode:mathMode];
    [copy setMathFloatingPointFunctions:mathFloatingPointFunctions];
    [copy setLanguageVersion:languageVersion];
    return copy;
}
@end

@implementation MTLComputePipelineDescriptor
@synthesize label, computeFunction, threadGroupSizeIsMultipleOfThreadExecutionWidth;
@synthesize maxTotalThreadsPerThreadgroup, binaryArchives;
- (void)dealloc
{
    [self reset];
    [super dealloc];
}
- (void)reset
{
    [self setLabel:nil];
    [self setComputeFunction:nil];
    [self setBinaryArchives:nil];
    threadGroupSizeIsMultipleOfThreadExecutionWidth = NO;
    maxTotalThreadsPerThreadgroup = 0;
}
- (id)copyWithZone:(NSZone *)zone
{
    MTLComputePipelineDescriptor *copy = [[MTLComputePipelineDescriptor allocWithZone:zone] init];
    [copy setLabel:label];
    [copy setComputeFunction:computeFunction];
    [copy setBinaryArchives:binaryArchives];
    [copy setMaxTotalThreadsPerThreadgroup:maxTotalThreadsPerThreadgroup];
    [copy setThreadGroupSizeIsMultipleOfThreadExecutionWidth:
              threadGroupSizeIsMultipleOfThreadExecutionWidth];
    return copy;
}
@end

@implementation MTLBinaryArchiveDescriptor
@synthesize url;
- (void)dealloc
{
    [url release];
    [super dealloc];
}
- (id)copyWithZone:(NSZone *)zone
{
    MTLBinaryArchiveDescriptor *copy = [[MTLBinaryArchiveDescriptor allocWithZone:zone] init];
    [copy setUrl:url];
    return copy;
}
@end

@implementation MTLCommandBufferDescriptor
@synthesize retainedReferences, errorOptions;
- (id)init
{
    self = [super init];
    retainedReferences = YES;
    return self;
}
- (id)copyWithZone:(NSZone *)zone
{
    MTLCommandBufferDescriptor *copy = [[MTLCommandBufferDescriptor allocWithZone:zone] init];
    [copy setRetainedReferences:retainedReferences];
    [copy setErrorOptions:errorOptions];
    return copy;
}
@end

@implementation StandinLibrary
- (void)dealloc
{
    if (library) {
        standin_library_unref(library);
    }
    [super dealloc];
}
- (NSArray *)functionNames
{
    NSMutableArray *names = [NSMutableArray array];
    for (uint32_t i = 0; i < library->compiled->function_count; i++) {
        [names addObject:[NSString stringWithUTF8String:library->compiled->functions[i].name]];
    }
    return names;
}
- (id<MTLFunction>)newFunctionWithName:(NSString *)name
{
    for (uint32_t i = 0; i < library->compiled->function_count; i++) {
        const msl_function *function = &library->compiled->functions[i];
        if (strcmp(function->name, [name UTF8String]) == 0) {
            StandinFunction *object = [[StandinFunction alloc] initWithDevice:device];
            standin_library_ref(library);
            object->library = library;
            object->function = function;
            object->key = key;
            return object;
        }
    }
    return nil;
}
@end

@implementation StandinFunction
- (void)dealloc
{
    if (library) {
        standin_library_unref(library);
    }
    [super dealloc];
}
- (NSString *)name
{
    return [NSString stringWithUTF8String:function->name];
}
- (MTLFunctionType)functionType
{
    return MTLFunctionTypeKernel;
}
@end

@implementation StandinPipeline
- (void)dealloc
{
    if (program) {
        atomic_store(&program->released, true);
        standin_program_unref(program);
    }
    [super dealloc];
}
- (NSUInteger)maxTotalThreadsPerThreadgroup
{
    return program->max_threads;
}
- (NSUInteger)threadExecutionWidth
{
    return MSL_SIMD;
}
- (NSUInteger)staticThreadgroupMemoryLength
{
    return program->function->threadgroup_bytes;
}
@end

@implementation StandinArchive
- (id)initWithDevice:(id<MTLDevice>)owner
{
    self = [super initWithDevice:owner];
    keys = [[NSMutableSet alloc] init];
    return self;
}
- (void)dealloc
{
    [keys release];
    [super dealloc];
}
- (BOOL)has:(uint64_t)key
{
    return [keys containsObject:[NSNumber numberWithUnsignedLongLong:key]];
}
/* A line of its kind, then a line for each pipeline. */
- (BOOL)readFrom:(NSURL *)url error:(NSError **)error
{
    char line[64];
    FILE *file = fopen([[url path] fileSystemRepresentation], "r");
    BOOL good = file && fgets(line, sizeof line, file) &&
                strcmp(line, "metal stand-in archive\n") == 0;
    while (good && fgets(line, sizeof line, file)) {
        char *end;
        const uint64_t key = strtoull(line, &end, 16);
        good = *end == '\n' && end != line;
        [keys addObject:[NSNumber numberWithUnsignedLongLong:key]];
    }
    if (file) {
        fclose(file);
    }
    if (!good && error) {
        *error = standin_error(MTLBinaryArchiveDomain, MTLBinaryArchiveErrorInvalidFile,
                               "the file is not an archive of this device");
    }
    return good;
}
- (BOOL)addComputePipelineFunctionsWithDescriptor:(MTLComputePipelineDescriptor *)descriptor
                                            error:(NSError **)error
{
    if ([descriptor computeFunction] == nil) {
        if (error) {
            *error = standin_error(MTLBinaryArchiveDomain, MTLBinaryArchiveErrorUnexpectedElement,
                                   "the descriptor has no function");
        }
        return NO;
    }
    [keys addObject:[NSNumber numberWithUnsignedLongLong:standin_pipeline_key(descriptor)]];
    return YES;
}
- (BOOL)serializeToURL:(NSURL *)url error:(NSError **)error
{
    FILE *file = fopen([[url path] fileSystemRepresentation], "w");
    BOOL good = file && fputs("metal stand-in archive\n", file) >= 0;
    for (NSNumber *key in keys) {
        good = good && fprintf(file, "%llx\n", [key unsignedLongLongValue]) > 0;
    }
    good = file && fclose(file) == 0 && good;
    if (!good && error) {
        *error = standin_error(MTLBinaryArchiveDomain, MTLBinaryArchiveErrorInternalError,
                               "the archive could not be written");
    }
    return good;
}
@end
