/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MHA__POOL_H
#define MHA__POOL_H

#include <stdint.h>

/*
 * Runs work(arg, lane) for lane 0 on the calling thread and for lanes 1 .. lanes-1 on workers, as
 * far as workers come before lane 0 has returned; lanes that no worker has begun by then are
 * dropped. So work must be complete when lane 0 alone has run: lanes take their share from a common
 * counter.
 */
void mha__pool_run(int64_t lanes, void (*work)(void *arg, int64_t lane), void *arg);

/* Workers alive now. */
int32_t mha__pool_workers(void);

#endif
