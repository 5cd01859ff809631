/* malloc, calloc and realloc of the test program, in front of those of glibc: each first asks
 * malloc_is_refused(), which the includer defines. OWN_MALLOC is 0 under the sanitizers, which have
 * their own. Included by tests that count allocations or let them fail. */
#ifndef TESTS_UNIT_OWN_MALLOC_H
#define TESTS_UNIT_OWN_MALLOC_H

#include <errno.h>
#include <hal/hal.h>
#include <stddef.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define OWN_MALLOC 0
#elif defined(__has_feature)
#define OWN_MALLOC !(__has_feature(address_sanitizer) || __has_feature(thread_sanitizer))
#else
#define OWN_MALLOC 1
#endif

#if OWN_MALLOC
static int malloc_is_refused(void);

void *__libc_malloc(size_t bytes);
void *__libc_calloc(size_t count, size_t bytes);
void *__libc_realloc(void *old, size_t bytes);

/* Null, with the error of glibc's. */
static inline void *malloc_refuse(void)
{
    errno = ENOMEM;
    return NULL;
}

HAL_API void *malloc(size_t bytes)
{
    return malloc_is_refused() ? malloc_refuse() : __libc_malloc(bytes);
}

HAL_API void *calloc(size_t count, size_t bytes)
{
    return malloc_is_refused() ? malloc_refuse() : __libc_calloc(count, bytes);
}

HAL_API void *realloc(void *old, size_t bytes)
{
    return malloc_is_refused() ? malloc_refuse() : __libc_realloc(old, bytes);
}
#endif

#endif
