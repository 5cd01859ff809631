/* The functions of hal_mpi_entries, over the names of mpi.h. Included by hal/mpi/module.c and by
 * mpi_abi.c, which define REQUEST_OF(request), the request as MPI_Request *. */
static MPI_Comm everyone;

static void library_name(char text[128])
{
    char *version = calloc(1, MPI_MAX_LIBRARY_VERSION_STRING); /* too large for small stacks */
    int length = 0;
    if (version) {
        MPI_Get_library_version(version, &length);
        version[strcspn(version, "\n")] = 0;
    }
    snprintf(text, 128, "%.127s", version ? version : "an MPI library");
    free(version);
}

static int mpi_start(hal_mpi_world *world)
{
    int initialized = 0, level = MPI_THREAD_SINGLE, rank = 0, count = 0, found = 0;
    int *tags = NULL;
    int error = MPI_Initialized(&initialized);
    if (error == MPI_SUCCESS) {
        error = initialized ? MPI_Query_thread(&level)
                            : MPI_Init_thread(NULL, NULL, MPI_THREAD_SERIALIZED, &level);
    }
    if (error == MPI_SUCCESS) {
        world->is_started = !initialized;
        error = MPI_Comm_dup(MPI_COMM_WORLD, &everyone);
    }
    if (error == MPI_SUCCESS) {
        error = MPI_Comm_set_errhandler(everyone, MPI_ERRORS_RETURN);
    }
    if (error == MPI_SUCCESS) {
        error = MPI_Comm_rank(everyone, &rank);
    }
    if (error == MPI_SUCCESS) {
        error = MPI_Comm_size(everyone, &count);
    }
    if (error == MPI_SUCCESS) {
        error = MPI_Comm_get_attr(everyone, MPI_TAG_UB, &tags, &found);
    }
    world->rank = (uint32_t)rank;
    world->count = (uint32_t)count;
    world->tag_limit = found ? (uint32_t)*tags : 32767;
    world->is_serialized = level == MPI_THREAD_SERIALIZED || level == MPI_THREAD_MULTIPLE;
    library_name(world->library);
    return error;
}

static int mpi_is_finished(void)
{
    int finalized = 0;
    return MPI_Finalized(&finalized) != MPI_SUCCESS || finalized;
}

static void mpi_finish(void)
{
    MPI_Finalize();
}

static int mpi_send(const void *data, uint32_t bytes, uint32_t rank, uint32_t tag,
                    hal_mpi_request *request)
{
    return MPI_Isend(data, (int)bytes, MPI_BYTE, (int)rank, (int)tag, everyone,
                     REQUEST_OF(request));
}

static int mpi_receive(void *data, uint32_t bytes, uint32_t rank, uint32_t tag,
                       hal_mpi_request *request)
{
    return MPI_Irecv(data, (int)bytes, MPI_BYTE, rank == HAL_MPI_ANY ? MPI_ANY_SOURCE : (int)rank,
                     (int)tag, everyone, REQUEST_OF(request));
}

static int mpi_test(hal_mpi_request *request, int *done)
{
    return MPI_Test(REQUEST_OF(request), done, MPI_STATUS_IGNORE);
}

static void mpi_forget(hal_mpi_request *request)
{
    MPI_Request_free(REQUEST_OF(request));
}

static void mpi_cancel(hal_mpi_request *request)
{
    MPI_Cancel(REQUEST_OF(request));
}

static void mpi_describe(int error, char *text, uint32_t bytes)
{
    char words[MPI_MAX_ERROR_STRING] = "";
    int length = 0;
    if (MPI_Error_string(error, words, &length) != MPI_SUCCESS) {
        snprintf(words, sizeof words, "error %d", error);
    }
    snprintf(text, bytes, "%s", words);
}

static const hal_mpi_entries entries = {
    .version = HAL_MPI_ENTRIES_VERSION,
    .start = mpi_start,
    .is_finished = mpi_is_finished,
    .finish = mpi_finish,
    .send = mpi_send,
    .receive = mpi_receive,
    .test = mpi_test,
    .cancel = mpi_cancel,
    .forget = mpi_forget,
    .describe = mpi_describe,
};
