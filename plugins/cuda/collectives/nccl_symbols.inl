/* The functions of NCCL that the plugin calls: SYMBOL(name, types of the parameters) returns a
 * nccl_result, TEXT(name, ...) a sentence. All are required. */
SYMBOL(ncclGetVersion, (int *version))
SYMBOL(ncclGetUniqueId, (nccl_id * id))
SYMBOL(ncclCommInitRankConfig,
       (nccl_comm * comm, int count, nccl_id id, int rank, nccl_config *config))
SYMBOL(ncclCommGetAsyncError, (nccl_comm comm, nccl_result *result))
SYMBOL(ncclCommAbort, (nccl_comm comm))
SYMBOL(ncclCommDestroy, (nccl_comm comm))
TEXT(ncclGetErrorString, (nccl_result result))
TEXT(ncclGetLastError, (nccl_comm comm))

SYMBOL(ncclGroupStart, (void))
SYMBOL(ncclGroupEnd, (void))
SYMBOL(ncclAllReduce, (const void *send, void *recv, size_t count, int type, int reduction,
                       nccl_comm comm, cuda_stream stream))
SYMBOL(ncclReduceScatter, (const void *send, void *recv, size_t count, int type, int reduction,
                           nccl_comm comm, cuda_stream stream))
SYMBOL(ncclReduce, (const void *send, void *recv, size_t count, int type, int reduction, int root,
                    nccl_comm comm, cuda_stream stream))
SYMBOL(ncclAllGather,
       (const void *send, void *recv, size_t count, int type, nccl_comm comm, cuda_stream stream))
SYMBOL(ncclBroadcast, (const void *send, void *recv, size_t count, int type, int root,
                       nccl_comm comm, cuda_stream stream))
SYMBOL(ncclSend,
       (const void *data, size_t count, int type, int peer, nccl_comm comm, cuda_stream stream))
SYMBOL(ncclRecv, (void *data, size_t count, int type, int peer, nccl_comm comm, cuda_stream stream))
