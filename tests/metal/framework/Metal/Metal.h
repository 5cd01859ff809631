/* Declarations of Apple's Metal framework that a compute backend may use, for tests/metal only. Not
 * Apple's header: names, values and types follow public metadata, and facts.py compares them. */
#ifndef TESTS_METAL_FRAMEWORK_METAL_METAL_H
#define TESTS_METAL_FRAMEWORK_METAL_METAL_H

#import <Foundation/Foundation.h>

#ifndef NS_OPTIONS
#define NS_OPTIONS(type, name) enum name : type name; enum name : type
#endif

typedef struct {
    NSUInteger width, height, depth;
} MTLSize;

static inline MTLSize MTLSizeMake(NSUInteger width, NSUInteger height, NSUInteger depth)
{
    MTLSize size;
    size.width = width;
    size.height = height;
    size.depth = depth;
    return size;
}

typedef NS_ENUM(NSInteger, MTLGPUFamily) {
    MTLGPUFamilyApple1 = 1001,
    MTLGPUFamilyApple2 = 1002,
    MTLGPUFamilyApple3 = 1003,
    MTLGPUFamilyApple4 = 1004,
    MTLGPUFamilyApple5 = 1005,
    MTLGPUFamilyApple6 = 1006,
    MTLGPUFamilyApple7 = 1007,
    MTLGPUFamilyApple8 = 1008,
    MTLGPUFamilyApple9 = 1009,
    MTLGPUFamilyMac1 = 2001,
    MTLGPUFamilyMac2 = 2002,
    MTLGPUFamilyCommon1 = 3001,
    MTLGPUFamilyCommon2 = 3002,
    MTLGPUFamilyCommon3 = 3003,
    MTLGPUFamilyMetal3 = 5001,
};

typedef NS_ENUM(NSUInteger, MTLCPUCacheMode) {
    MTLCPUCacheModeDefaultCache = 0,
    MTLCPUCacheModeWriteCombined = 1,
};

typedef NS_ENUM(NSUInteger, MTLStorageMode) {
    MTLStorageModeShared = 0,
    MTLStorageModeManaged = 1,
    MTLStorageModePrivate = 2,
    MTLStorageModeMemoryless = 3,
};

typedef NS_ENUM(NSUInteger, MTLHazardTrackingMode) {
    MTLHazardTrackingModeDefault = 0,
    MTLHazardTrackingModeUntracked = 1,
    MTLHazardTrackingModeTracked = 2,
};

typedef NS_OPTIONS(NSUInteger, MTLResourceOptions) {
    MTLResourceCPUCacheModeDefaultCache = 0,
    MTLResourceCPUCacheModeWriteCombined = 1,
    MTLResourceStorageModeShared = 0,
    MTLResourceStorageModeManaged = 16,
    MTLResourceStorageModePrivate = 32,
    MTLResourceStorageModeMemoryless = 48,
    MTLResourceHazardTrackingModeDefault = 0,
    MTLResourceHazardTrackingModeUntracked = 256,
    MTLResourceHazardTrackingModeTracked = 512,
};

typedef NS_ENUM(NSUInteger, MTLDispatchType) {
    MTLDispatchTypeSerial = 0,
    MTLDispatchTypeConcurrent = 1,
};

typedef NS_OPTIONS(NSUInteger, MTLBarrierScope) {
    MTLBarrierScopeBuffers = 1,
    MTLBarrierScopeTextures = 2,
};

typedef NS_ENUM(NSUInteger, MTLCommandBufferStatus) {
    MTLCommandBufferStatusNotEnqueued = 0,
    MTLCommandBufferStatusEnqueued = 1,
    MTLCommandBufferStatusCommitted = 2,
    MTLCommandBufferStatusScheduled = 3,
    MTLCommandBufferStatusCompleted = 4,
    MTLCommandBufferStatusError = 5,
};

typedef NS_ENUM(NSUInteger, MTLCommandBufferError) {
    MTLCommandBufferErrorNone = 0,
    MTLCommandBufferErrorInternal = 1,
    MTLCommandBufferErrorTimeout = 2,
    MTLCommandBufferErrorPageFault = 3,
    MTLCommandBufferErrorAccessRevoked = 4,
    MTLCommandBufferErrorNotPermitted = 7,
    MTLCommandBufferErrorOutOfMemory = 8,
    MTLCommandBufferErrorInvalidResource = 9,
    MTLCommandBufferErrorMemoryless = 10,
    MTLCommandBufferErrorDeviceRemoved = 11,
    MTLCommandBufferErrorStackOverflow = 12,
};

typedef NS_OPTIONS(NSUInteger, MTLCommandBufferErrorOption) {
    MTLCommandBufferErrorOptionNone = 0,
    MTLCommandBufferErrorOptionEncoderExecutionStatus = 1,
};

typedef NS_ENUM(NSUInteger, MTLLanguageVersion) {
    MTLLanguageVersion2_0 = 131072,
    MTLLanguageVersion2_1 = 131073,
    MTLLanguageVersion2_2 = 131074,
    MTLLanguageVersion2_3 = 131075,
    MTLLanguageVersion2_4 = 131076,
    MTLLanguageVersion3_0 = 196608,
    MTLLanguageVersion3_1 = 196609,
    MTLLanguageVersion3_2 = 196610,
};

typedef NS_ENUM(NSInteger, MTLMathMode) {
    MTLMathModeSafe = 0,
    MTLMathModeRelaxed = 1,
    MTLMathModeFast = 2,
};

typedef NS_ENUM(NSInteger, MTLMathFloatingPointFunctions) {
    MTLMathFloatingPointFunctionsFast = 0,
    MTLMathFloatingPointFunctionsPrecise = 1,
};

typedef NS_ENUM(NSUInteger, MTLLibraryError) {
    MTLLibraryErrorUnsupported = 1,
    MTLLibraryErrorInternal = 2,
    MTLLibraryErrorCompileFailure = 3,
    MTLLibraryErrorCompileWarning = 4,
    MTLLibraryErrorFunctionNotFound = 5,
    MTLLibraryErrorFileNotFound = 6,
};

typedef NS_ENUM(NSUInteger, MTLBinaryArchiveError) {
    MTLBinaryArchiveErrorNone = 0,
    MTLBinaryArchiveErrorInvalidFile = 1,
    MTLBinaryArchiveErrorUnexpectedElement = 2,
    MTLBinaryArchiveErrorCompilationFailure = 3,
    MTLBinaryArchiveErrorInternalError = 4,
};

typedef NS_OPTIONS(NSUInteger, MTLPipelineOption) {
    MTLPipelineOptionNone = 0,
    MTLPipelineOptionArgumentInfo = 1,
    MTLPipelineOptionBufferTypeInfo = 2,
    MTLPipelineOptionFailOnBinaryArchiveMiss = 4,
};

typedef NS_ENUM(NSUInteger, MTLFunctionType) {
    MTLFunctionTypeVertex = 1,
    MTLFunctionTypeFragment = 2,
    MTLFunctionTypeKernel = 3,
};

FOUNDATION_EXPORT NSString *const MTLCommandBufferErrorDomain;
FOUNDATION_EXPORT NSString *const MTLLibraryErrorDomain;
FOUNDATION_EXPORT NSString *const MTLBinaryArchiveDomain;

@protocol MTLDevice;
@protocol MTLBuffer;
@protocol MTLCommandQueue;
@protocol MTLCommandBuffer;
@protocol MTLComputePipelineState;
@protocol MTLLibrary;
@class MTLComputePipelineReflection;

@protocol MTLFunction <NSObject>
@property (readonly) NSString *name;
@property (readonly) MTLFunctionType functionType;
@property (readonly) id<MTLDevice> device;
@end

@protocol MTLBinaryArchive;

@interface MTLCompileOptions : NSObject <NSCopying> {
    BOOL fastMathEnabled;
    MTLMathMode mathMode;
    MTLMathFloatingPointFunctions mathFloatingPointFunctions;
    MTLLanguageVersion languageVersion;
}
@property (readwrite, nonatomic) BOOL fastMathEnabled;
@property (readwrite, nonatomic) MTLMathMode mathMode;
@property (readwrite, nonatomic) MTLMathFloatingPointFunctions mathFloatingPointFunctions;
@property (readwrite, nonatomic) MTLLanguageVersion languageVersion;
@end

@interface MTLComputePipelineDescriptor : NSObject <NSCopying> {
    NSString *label;
    id<MTLFunction> computeFunction;
    BOOL threadGroupSizeIsMultipleOfThreadExecutionWidth;
    NSUInteger maxTotalThreadsPerThreadgroup;
    NSArray *binaryArchives;
}
@property (copy, nonatomic) NSString *label;
@property (readwrite, nonatomic, retain) id<MTLFunction> computeFunction;
@property (readwrite, nonatomic) BOOL threadGroupSizeIsMultipleOfThreadExecutionWidth;
@property (readwrite, nonatomic) NSUInteger maxTotalThreadsPerThreadgroup;
@property (readwrite, nonatomic, copy) NSArray *binaryArchives;
- (void)reset;
@end

@interface MTLBinaryArchiveDescriptor : NSObject <NSCopying> {
    NSURL *url;
}
@property (readwrite, nonatomic, retain) NSURL *url;
@end

@interface MTLCommandBufferDescriptor : NSObject <NSCopying> {
    BOOL retainedReferences;
    MTLCommandBufferErrorOption errorOptions;
}
@property (readwrite, nonatomic) BOOL retainedReferences;
@property (readwrite, nonatomic) MTLCommandBufferErrorOption errorOptions;
@end

@interface MTLArchitecture : NSObject <NSCopying>
@property (nonatomic, readonly) NSString *name;
@end

@protocol MTLBinaryArchive <NSObject>
@property (copy, atomic) NSString *label;
@property (readonly) id<MTLDevice> device;
- (BOOL)addComputePipelineFunctionsWithDescriptor:(MTLComputePipelineDescriptor *)descriptor
                                            error:(NSError **)error;
- (BOOL)serializeToURL:(NSURL *)url error:(NSError **)error;
@end

@protocol MTLLibrary <NSObject>
@property (copy, atomic) NSString *label;
@property (readonly) id<MTLDevice> device;
@property (readonly) NSArray *functionNames;
- (id<MTLFunction>)newFunctionWithName:(NSString *)functionName;
@end

@protocol MTLComputePipelineState <NSObject>
@property (readonly) NSString *label;
@property (readonly) id<MTLDevice> device;
@property (readonly) NSUInteger maxTotalThreadsPerThreadgroup;
@property (readonly) NSUInteger threadExecutionWidth;
@property (readonly) NSUInteger staticThreadgroupMemoryLength;
@end

@protocol MTLResource <NSObject>
@property (copy, atomic) NSString *label;
@property (readonly) id<MTLDevice> device;
@property (readonly) MTLCPUCacheMode cpuCacheMode;
@property (readonly) MTLStorageMode storageMode;
@property (readonly) MTLHazardTrackingMode hazardTrackingMode;
@property (readonly) MTLResourceOptions resourceOptions;
@property (readonly) NSUInteger allocatedSize;
@end

@protocol MTLBuffer <MTLResource>
@property (readonly) NSUInteger length;
- (void *)contents;
@property (readonly) uint64_t gpuAddress;
@end

@protocol MTLFence <NSObject>
@property (readonly) id<MTLDevice> device;
@property (copy, atomic) NSString *label;
@end

@protocol MTLEvent <NSObject>
@property (readonly) id<MTLDevice> device;
@property (copy, atomic) NSString *label;
@end

@protocol MTLSharedEvent <MTLEvent>
@property (readwrite) uint64_t signaledValue;
- (BOOL)waitUntilSignaledValue:(uint64_t)value timeoutMS:(uint64_t)milliseconds;
@end

@protocol MTLCommandEncoder <NSObject>
@property (readonly) id<MTLDevice> device;
@property (copy, atomic) NSString *label;
- (void)endEncoding;
@end

@protocol MTLComputeCommandEncoder <MTLCommandEncoder>
@property (readonly) MTLDispatchType dispatchType;
- (void)setComputePipelineState:(id<MTLComputePipelineState>)state;
- (void)setBytes:(const void *)bytes length:(NSUInteger)length atIndex:(NSUInteger)index;
- (void)setBuffer:(id<MTLBuffer>)buffer offset:(NSUInteger)offset atIndex:(NSUInteger)index;
- (void)setBufferOffset:(NSUInteger)offset atIndex:(NSUInteger)index;
- (void)setThreadgroupMemoryLength:(NSUInteger)length atIndex:(NSUInteger)index;
- (void)dispatchThreadgroups:(MTLSize)threadgroupsPerGrid
       threadsPerThreadgroup:(MTLSize)threadsPerThreadgroup;
- (void)dispatchThreadgroupsWithIndirectBuffer:(id<MTLBuffer>)indirectBuffer
                          indirectBufferOffset:(NSUInteger)indirectBufferOffset
                         threadsPerThreadgroup:(MTLSize)threadsPerThreadgroup;
- (void)dispatchThreads:(MTLSize)threadsPerGrid
    threadsPerThreadgroup:(MTLSize)threadsPerThreadgroup;
- (void)updateFence:(id<MTLFence>)fence;
- (void)waitForFence:(id<MTLFence>)fence;
- (void)memoryBarrierWithScope:(MTLBarrierScope)scope;
@end

@protocol MTLBlitCommandEncoder <MTLCommandEncoder>
- (void)copyFromBuffer:(id<MTLBuffer>)sourceBuffer
          sourceOffset:(NSUInteger)sourceOffset
              toBuffer:(id<MTLBuffer>)destinationBuffer
     destinationOffset:(NSUInteger)destinationOffset
                  size:(NSUInteger)size;
- (void)fillBuffer:(id<MTLBuffer>)buffer range:(NSRange)range value:(uint8_t)value;
- (void)updateFence:(id<MTLFence>)fence;
- (void)waitForFence:(id<MTLFence>)fence;
@end

@protocol MTLCommandBuffer <NSObject>
@property (readonly) id<MTLDevice> device;
@property (readonly) id<MTLCommandQueue> commandQueue;
@property (readonly) BOOL retainedReferences;
@property (readonly) MTLCommandBufferErrorOption errorOptions;
@property (copy, atomic) NSString *label;
@property (readonly) double kernelStartTime;
@property (readonly) double kernelEndTime;
@property (readonly) double GPUStartTime;
@property (readonly) double GPUEndTime;
- (void)enqueue;
- (void)commit;
- (void)waitUntilScheduled;
- (void)waitUntilCompleted;
@property (readonly) MTLCommandBufferStatus status;
@property (readonly) NSError *error;
- (id<MTLBlitCommandEncoder>)blitCommandEncoder;
- (id<MTLComputeCommandEncoder>)computeCommandEncoder;
- (id<MTLComputeCommandEncoder>)computeCommandEncoderWithDispatchType:(MTLDispatchType)dispatchType;
- (void)encodeWaitForEvent:(id<MTLEvent>)event value:(uint64_t)value;
- (void)encodeSignalEvent:(id<MTLEvent>)event value:(uint64_t)value;
@end

@protocol MTLCommandQueue <NSObject>
@property (copy, atomic) NSString *label;
@property (readonly) id<MTLDevice> device;
- (id<MTLCommandBuffer>)commandBuffer;
- (id<MTLCommandBuffer>)commandBufferWithDescriptor:(MTLCommandBufferDescriptor *)descriptor;
- (id<MTLCommandBuffer>)commandBufferWithUnretainedReferences;
@end

typedef id MTLBufferDeallocator; /* of Apple a block, which is an object */

@protocol MTLDevice <NSObject>
@property (readonly) NSString *name;
@property (readonly) uint64_t registryID;
@property (readonly) MTLArchitecture *architecture;
@property (readonly) MTLSize maxThreadsPerThreadgroup;
@property (readonly, getter=isLowPower) BOOL lowPower;
@property (readonly, getter=isHeadless) BOOL headless;
@property (readonly, getter=isRemovable) BOOL removable;
@property (readonly) BOOL hasUnifiedMemory;
@property (readonly) uint64_t recommendedMaxWorkingSetSize;
@property (readonly) NSUInteger maxThreadgroupMemoryLength;
@property (readonly) NSUInteger maxBufferLength;
@property (readonly) NSUInteger currentAllocatedSize;
- (BOOL)supportsFamily:(MTLGPUFamily)gpuFamily;
- (id<MTLCommandQueue>)newCommandQueue;
- (id<MTLCommandQueue>)newCommandQueueWithMaxCommandBufferCount:(NSUInteger)maxCommandBufferCount;
- (id<MTLBuffer>)newBufferWithLength:(NSUInteger)length options:(MTLResourceOptions)options;
- (id<MTLBuffer>)newBufferWithBytesNoCopy:(void *)pointer
                                   length:(NSUInteger)length
                                  options:(MTLResourceOptions)options
                              deallocator:(MTLBufferDeallocator)deallocator;
- (id<MTLLibrary>)newLibraryWithSource:(NSString *)source
                               options:(MTLCompileOptions *)options
                                 error:(NSError **)error;
- (id<MTLComputePipelineState>)newComputePipelineStateWithFunction:(id<MTLFunction>)function
                                                             error:(NSError **)error;
- (id<MTLComputePipelineState>)
    newComputePipelineStateWithDescriptor:(MTLComputePipelineDescriptor *)descriptor
                                  options:(MTLPipelineOption)options
                               reflection:(MTLComputePipelineReflection **)reflection
                                    error:(NSError **)error;
- (id<MTLBinaryArchive>)newBinaryArchiveWithDescriptor:(MTLBinaryArchiveDescriptor *)descriptor
                                                 error:(NSError **)error;
- (id<MTLFence>)newFence;
- (id<MTLEvent>)newEvent;
- (id<MTLSharedEvent>)newSharedEvent;
@end

FOUNDATION_EXPORT NSArray *MTLCopyAllDevices(void) NS_RETURNS_RETAINED;
FOUNDATION_EXPORT id<MTLDevice> MTLCreateSystemDefaultDevice(void) NS_RETURNS_RETAINED;

#endif
