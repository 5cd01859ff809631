/* The floating-point environment of a thread. Entries of plugins and the threads that they start
 * compute in the default one; the caller gets its own back, with its flags. */
#ifndef PLUGINS_KIT_FP_H
#define PLUGINS_KIT_FP_H

#include <fenv.h>
#include <stdbool.h>
#include <stdint.h>

#if defined __x86_64__
#include <xmmintrin.h>

enum { KIT_FP_MXCSR = 0x1f80, KIT_FP_MXCSR_FLAGS = 0x3f, KIT_FP_X87 = 0x37f };
#endif

typedef struct kit_fp {
    bool is_whole; /* `environment` is set */
#if defined __x86_64__
    uint32_t mxcsr;
#endif
    fenv_t environment;
} kit_fp;

/* Keeps the thread's environment in `fp` and sets the default one. */
static inline void kit_fp_enter(kit_fp *fp)
{
#if defined __x86_64__
    /* fegetenv saves the whole x87 state, which takes longer than a small submit. */
    uint16_t x87 = 0;
    __asm__ volatile("fnstcw %0" : "=m"(x87));
    fp->mxcsr = _mm_getcsr();
    fp->is_whole = x87 != KIT_FP_X87;
    if (fp->is_whole) {
        fegetenv(&fp->environment);
        fesetenv(FE_DFL_ENV);
    }
    if ((fp->mxcsr & ~(uint32_t)KIT_FP_MXCSR_FLAGS) != KIT_FP_MXCSR) {
        _mm_setcsr(KIT_FP_MXCSR);
    }
#else
    fp->is_whole = true;
    fegetenv(&fp->environment);
    fesetenv(FE_DFL_ENV);
#endif
}

/* Sets what kit_fp_enter kept. */
static inline void kit_fp_leave(const kit_fp *fp)
{
    if (fp->is_whole) {
        fesetenv(&fp->environment);
    }
#if defined __x86_64__
    if (_mm_getcsr() != fp->mxcsr) {
        _mm_setcsr(fp->mxcsr);
    }
#endif
}

#endif
