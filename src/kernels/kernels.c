/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/kernels.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

static const struct mha__kernels *chosen;
static pthread_once_t chosen_once = PTHREAD_ONCE_INIT;

const struct mha__kernels *mha__kernels_available(int i)
{
    const struct mha__cpu *cpu = mha__cpu_features();
    (void)cpu;
#define MHA__KERNEL_SET(name, need)                                                                \
    if ((need) && i-- == 0) {                                                                      \
        return &mha__kernels_##name;                                                               \
    }
#include "kernels/kernels.def"
#undef MHA__KERNEL_SET
    return NULL;
}

static void choose(void)
{
    const char *wish = getenv("MHA_KERNELS");
    const struct mha__kernels *set = NULL;
    for (int i = 0; (set = mha__kernels_available(i)) != NULL; i++) {
        chosen = set;
        if (wish && strcmp(wish, set->name) == 0) {
            return;
        }
    }
}

const struct mha__kernels *mha__kernels_chosen(void)
{
    pthread_once(&chosen_once, choose);
    return chosen;
}
