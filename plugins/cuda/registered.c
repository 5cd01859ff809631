/* Registrations in a list: there are few, and the driver takes far longer than a walk along it. */
#include "registered.h"

#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

/* The driver's CU_MEMHOSTREGISTER_PORTABLE, _DEVICEMAP and _READ_ONLY; CUDA_ERROR_INVALID_VALUE. */
enum { PORTABLE = 1, MAPPED = 2, READ_ONLY = 8, INVALID_VALUE = 1 };

struct cuda_registration {
    cuda_registration *next;
    uintptr_t first, end; /* whole pages */
    uint32_t imports;
    bool reads_only;
};

/* Of all devices: the driver's registrations hold for all contexts. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static cuda_registration *registrations;

static hal_status find_address(void *pointer, cuda_address *address)
{
    return cuda_check(cuda_functions()->cuMemHostGetDevicePointer_v2(address, pointer, 0),
                      "asking for the address of registered memory");
}

/* Whether the driver knows both ends, because another library registered or allocated them. */
static bool known_before(char *pointer, uint64_t bytes, cuda_address *address)
{
    const cuda_driver *cu = cuda_functions();
    cuda_address last = 0;
    return cu->cuMemHostGetDevicePointer_v2(address, pointer, 0) == 0 &&
           cu->cuMemHostGetDevicePointer_v2(&last, pointer + bytes - 1, 0) == 0 &&
           last - *address == bytes - 1;
}

static hal_status register_pages(cuda_registration *made)
{
    const cuda_driver *cu = cuda_functions();
    void *pages = (void *)made->first;
    const size_t bytes = made->end - made->first;
    cuda_result result = cu->cuMemHostRegister_v2(pages, bytes, PORTABLE | MAPPED);
    if (result == INVALID_VALUE && made->reads_only) {
        result = cu->cuMemHostRegister_v2(pages, bytes, PORTABLE | MAPPED | READ_ONLY);
        if (result != 0) {
            return kit_fail(HAL_ERROR_UNSUPPORTED, "cuda: memory_import: the driver registers no "
                                                   "memory that the process cannot write");
        }
    } else {
        made->reads_only = false;
    }
    return cuda_check(result, "registering %zu bytes of host memory", bytes);
}

/* Under the lock. */
static hal_status registration_make(uintptr_t first, uintptr_t end, bool reads_only,
                                    cuda_registration **registration)
{
    cuda_registration *made = malloc(sizeof *made);
    if (!made) {
        return kit_fail(HAL_ERROR_OUT_OF_MEMORY, "cuda: no host memory for a registration");
    }
    *made = (cuda_registration){registrations, first, end, 0, reads_only};
    const hal_status status = register_pages(made);
    if (status != HAL_OK) {
        free(made);
        return status;
    }
    *registration = registrations = made;
    return HAL_OK;
}

/* Under the lock: the registration that has all the pages, null when none has any. */
static hal_status registration_find(uintptr_t first, uintptr_t end, bool reads_only,
                                    cuda_registration **registration)
{
    cuda_registration *found = registrations;
    while (found && (found->end <= first || end <= found->first)) {
        found = found->next;
    }
    *registration = found;
    if (!found || (found->first <= first && end <= found->end &&
                   (reads_only || !found->reads_only))) {
        return HAL_OK;
    }
    return kit_fail(HAL_ERROR_UNSUPPORTED,
                    "cuda: memory_import: expected pages of which no other import holds a part or "
                    "only reads; import one range that holds both");
}

hal_status cuda_register(void *pointer, uint64_t bytes, bool reads_only,
                         cuda_registration **registration, cuda_address *address)
{
    const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), start = (uintptr_t)pointer;
    const uintptr_t first = start / page * page, end = (start + bytes + page - 1) / page * page;
    pthread_mutex_lock(&lock);
    hal_status status = registration_find(first, end, reads_only, registration);
    if (status == HAL_OK && !*registration && !known_before(pointer, bytes, address)) {
        status = registration_make(first, end, reads_only, registration);
    }
    if (status == HAL_OK && *registration) {
        (*registration)->imports++;
    }
    pthread_mutex_unlock(&lock);
    if (status != HAL_OK || !*registration) {
        return status;
    }
    status = find_address(pointer, address);
    if (status != HAL_OK) {
        cuda_unregister(*registration);
    }
    return status;
}

void cuda_unregister(cuda_registration *registration)
{
    if (!registration) {
        return;
    }
    pthread_mutex_lock(&lock);
    if (--registration->imports == 0) {
        cuda_registration **at = &registrations;
        while (*at != registration) {
            at = &(*at)->next;
        }
        *at = registration->next;
        cuda_functions()->cuMemHostUnregister((void *)registration->first);
        free(registration);
    }
    pthread_mutex_unlock(&lock);
}
