/* SPDX-License-Identifier: Apache-2.0 */
#include "support/kernel_sets.h"

#include "support/expect.h"

#include <platform/cpu.h>
#include <platform/fpenv.h>
#include <string.h>

#if defined(__x86_64__)
extern const struct mha__kernels emulated_kernels_avx512;
#endif

const struct mha__kernels *kernel_set(int i)
{
    int sets = 0;
    while (mha__kernels_available(sets)) {
        sets++;
    }
    if (i < sets) {
        return mha__kernels_available(i);
    }
#if defined(__x86_64__)
    if (i == sets && mha__cpu_features()->avx2) {
        return &emulated_kernels_avx512;
    }
#endif
    return NULL;
}

void for_each_kernel_set(void (*test)(const struct mha__kernels *set,
                                      const struct mha__kernels *ref))
{
    const struct mha__kernels *ref = kernel_set(0);
    assert_string_equal(ref->name, "ref");
    int sets = 0;
    for (const struct mha__kernels *set; (set = kernel_set(sets)) != NULL; ++sets) {
        struct mha__fpenv saved;
        print_message("%s%s\n", set->name,
                      sets > 0 && !mha__kernels_available(sets) ? ", emulated" : "");
        mha__fpenv_enter(&saved);
        test(set, ref);
        mha__fpenv_leave(&saved);
    }
    assert_true(sets >= 1);
}
