/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "host_state.h"

#include <dirent.h>
#include <dlfcn.h>
#include <fenv.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

extern char **environ;

static uint64_t fp_control(void)
{
#if defined(__x86_64__)
    return _mm_getcsr();
#elif defined(__aarch64__)
    uint64_t control, status;
    __asm__ volatile("mrs %0, fpcr" : "=r"(control));
    __asm__ volatile("mrs %0, fpsr" : "=r"(status));
    return control << 32 | (status & 0xFFFFFFFFu);
#else
    return (uint64_t)fegetround();
#endif
}

static uint64_t fp_control_x87(void)
{
#if defined(__x86_64__)
    uint16_t control, status;
    __asm__ volatile("fnstcw %0" : "=m"(control));
    __asm__ volatile("fnstsw %0" : "=m"(status));
    return (uint64_t)control << 16 | (status & 0x3Fu);
#else
    return 0;
#endif
}

static uint64_t hash_environment(void)
{
    uint64_t hash = 14695981039346656037u;
    for (char **entry = environ; *entry; ++entry) {
        for (const char *c = *entry; *c; ++c) {
            hash = (hash ^ (unsigned char)*c) * 1099511628211u;
        }
        hash *= 1099511628211u;
    }
    return hash;
}

/* Calls an int f(void) of whatever library brought it, if one did. */
static int ask(const char *symbol)
{
    int (*function)(void) = NULL;
    void *address = dlsym(RTLD_DEFAULT, symbol);
    memcpy(&function, &address, sizeof function);
    return function ? function() : -1;
}

static int count_open_files(void)
{
    DIR *folder = opendir("/proc/self/fd");
    int count = 0;
    while (folder && readdir(folder)) {
        ++count;
    }
    if (folder) {
        closedir(folder);
    }
    return count;
}

void host_state_read(host_state *s)
{
    memset(s, 0, sizeof *s);
    s->fp_control = fp_control();
    s->fp_control_x87 = fp_control_x87();
    snprintf(s->locale, sizeof s->locale, "%s", setlocale(LC_ALL, NULL));
    sigprocmask(SIG_SETMASK, NULL, &s->signals);
    s->environment = hash_environment();
    if (!getcwd(s->directory, sizeof s->directory)) {
        s->directory[0] = '\0';
    }
    s->blas_threads = ask("openblas_get_num_threads");
    s->omp_threads = ask("omp_get_max_threads");
    s->open_files = count_open_files();
}

const char *host_state_difference(const host_state *a, const host_state *b)
{
    if (a->fp_control != b->fp_control || a->fp_control_x87 != b->fp_control_x87) {
        return "the floating-point control word or flags";
    }
    if (strcmp(a->locale, b->locale) != 0) {
        return "the locale";
    }
    for (int signal = 1; signal < 64; ++signal) {
        if (sigismember(&a->signals, signal) != sigismember(&b->signals, signal)) {
            return "the signal mask";
        }
    }
    if (a->environment != b->environment) {
        return "the environment";
    }
    if (strcmp(a->directory, b->directory) != 0) {
        return "the working directory";
    }
    if (a->blas_threads != b->blas_threads) {
        return "the threads of the BLAS";
    }
    if (a->omp_threads != b->omp_threads) {
        return "the threads of OpenMP";
    }
    return a->open_files == b->open_files ? NULL : "the open files";
}

int host_round_upward(void)
{
    return fesetround(FE_UPWARD) == 0;
}

int host_flush_to_zero(void)
{
#if defined(__x86_64__)
    _mm_setcsr(_mm_getcsr() | 0x8040u); /* FTZ and DAZ */
    return 1;
#elif defined(__aarch64__)
    uint64_t control;
    __asm__ volatile("mrs %0, fpcr" : "=r"(control));
    __asm__ volatile("msr fpcr, %0" : : "r"(control | 1u << 24));
    return 1;
#else
    return 0;
#endif
}

int host_unmask_nothing_but_raise_flags(void)
{
    return feraiseexcept(FE_INEXACT | FE_UNDERFLOW) == 0;
}

void host_default_floating_point(void)
{
    fesetenv(FE_DFL_ENV);
}

void capture_begin(capture *c)
{
    fflush(stdout);
    fflush(stderr);
    for (int stream = 0; stream < 2; ++stream) {
        char name[] = "/tmp/mha-test-XXXXXX";
        c->saved[stream] = dup(stream + 1);
        c->files[stream] = mkstemp(name);
        if (c->saved[stream] < 0 || c->files[stream] < 0 || unlink(name) != 0 ||
            dup2(c->files[stream], stream + 1) < 0) {
            abort();
        }
    }
}

int64_t capture_end(capture *c)
{
    int64_t bytes = 0;
    fflush(stdout);
    fflush(stderr);
    for (int stream = 0; stream < 2; ++stream) {
        bytes += (int64_t)lseek(c->files[stream], 0, SEEK_END);
        if (dup2(c->saved[stream], stream + 1) < 0) {
            abort();
        }
        close(c->saved[stream]);
        close(c->files[stream]);
    }
    return bytes;
}
