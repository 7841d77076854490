/* SPDX-License-Identifier: Apache-2.0 */
#include "platform/fpenv.h"

#if defined(__x86_64__)

#include <xmmintrin.h>

/* MXCSR: all exceptions masked (0x1f80), nearest (0), flush results (0x8000) and inputs (0x0040) to
 * 0. */
#define TASK_MXCSR 0x9fc0u

void mha__fpenv_enter(struct mha__fpenv *saved)
{
    saved->control = _mm_getcsr(); /* holds the sticky flags too */
    saved->status = 0;
    _mm_setcsr(TASK_MXCSR);
}

void mha__fpenv_leave(const struct mha__fpenv *saved)
{
    _mm_setcsr((unsigned)saved->control);
}

#elif defined(__aarch64__)

#define TASK_FPCR (UINT64_C(1) << 24) /* FZ; nearest and no traps are 0 */

void mha__fpenv_enter(struct mha__fpenv *saved)
{
    uint64_t control = TASK_FPCR;
    __asm__ volatile("mrs %0, fpcr" : "=r"(saved->control));
    __asm__ volatile("mrs %0, fpsr" : "=r"(saved->status));
    __asm__ volatile("msr fpcr, %0" : : "r"(control));
}

void mha__fpenv_leave(const struct mha__fpenv *saved)
{
    __asm__ volatile("msr fpcr, %0" : : "r"(saved->control));
    __asm__ volatile("msr fpsr, %0" : : "r"(saved->status));
}

#else

#include <fenv.h>
#include <string.h>

/* Elsewhere C's own environment; denormals stay what they are. */
_Static_assert(sizeof(fenv_t) <= sizeof(struct mha__fpenv), "fenv_t fits the saved state");

void mha__fpenv_enter(struct mha__fpenv *saved)
{
    fenv_t env;
    fegetenv(&env);
    memcpy(saved, &env, sizeof env);
    fesetenv(FE_DFL_ENV);
}

void mha__fpenv_leave(const struct mha__fpenv *saved)
{
    fenv_t env;
    memcpy(&env, saved, sizeof env);
    fesetenv(&env);
}

#endif
