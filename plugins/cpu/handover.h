/* What threads that work together tell the thread sanitizer, which does not know the pool's means:
 * HAND_OVER before work is given away and when a part of it is done, TAKE_OVER where it begins and
 * after all of it. Used around the pool's calls and in share.c. */
#ifndef HALYARD_CPU_HANDOVER_H
#define HALYARD_CPU_HANDOVER_H

#if defined(__SANITIZE_THREAD__)
#define HAL_CPU_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define HAL_CPU_TSAN 1
#endif
#endif

#ifdef HAL_CPU_TSAN
void __tsan_acquire(void *address);
void __tsan_release(void *address);
#define HAND_OVER(address) __tsan_release(address)
#define TAKE_OVER(address) __tsan_acquire(address)
#else
#define HAND_OVER(address) (void)(address)
#define TAKE_OVER(address) (void)(address)
#endif

/* Tells the processor that this is a loop that waits. */
static inline void cpu_relax(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
}

#endif
