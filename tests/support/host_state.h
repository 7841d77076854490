/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_HOST_STATE_H
#define TESTS_HOST_STATE_H

/*
 * What the host owns and the library leaves alone: floating-point control word and sticky flags,
 * locale, signal mask, environment, working directory, BLAS and OpenMP threads, open files,
 * standard output.
 */
#include <signal.h>
#include <stdint.h>

typedef struct host_state {
    uint64_t fp_control; /* control and sticky flags together, x87 included where there is one */
    uint64_t fp_control_x87;
    char locale[64];
    sigset_t signals;
    uint64_t environment; /* a hash over every NAME=value */
    char directory[512];
    int blas_threads; /* -1 where the BLAS does not tell */
    int omp_threads;  /* -1 where no OpenMP runtime is loaded */
    int open_files;
} host_state;

void host_state_read(host_state *s);
/* NULL where both are the same, else the name of what differs. */
const char *host_state_difference(const host_state *before, const host_state *after);

/* The control words a host may have set. Each returns 0 where this CPU has none such. */
int host_round_upward(void);
int host_flush_to_zero(void);
int host_unmask_nothing_but_raise_flags(void);
/* Back to the state a program starts with. */
void host_default_floating_point(void);

/*
 * Sends standard output and error to temporary files from capture_begin to capture_end, which
 * returns how many bytes came and puts the streams back.
 */
typedef struct capture {
    int saved[2], files[2];
} capture;

void capture_begin(capture *c);
int64_t capture_end(capture *c);

#endif
