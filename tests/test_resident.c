/* SPDX-License-Identifier: Apache-2.0 */
/* How much memory a long forward takes beside its inputs and outputs. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/expect.h"
#include "support/trial.h"

/* A line of /proc/self/status in bytes; -1 where there is none. */
static int64_t status_bytes(const char *name)
{
    char line[256];
    long long kilobytes = -1;
    FILE *file = fopen("/proc/self/status", "r");
    while (file && fgets(line, sizeof line, file)) {
        if (strncmp(line, name, strlen(name)) == 0) {
            sscanf(line + strlen(name), ": %lld", &kilobytes);
        }
    }
    if (file) {
        fclose(file);
    }
    return kilobytes < 0 ? -1 : (int64_t)kilobytes * 1024;
}

/*
 * All scores together would be 2 GiB, a mask of a byte a head 512 MiB. The bytes are the caller's; a packed
 * copy is 8 MiB, the packed keys and values 32 MiB.
 */
static void R04_a_byte_mask_of_8192_x_8192_takes_less_than_256_MiB(void **state)
{
    (void)state;
    enum { LENGTH = 8192 };
    trial p;
    draw d = {4};
    trial_begin(&p, 1, LENGTH, LENGTH, 8, 8, 64, 64);
    trial_tensors(&p, 0, 0);
    trial_fill(&p, &d, 1.0f);
    boolean_mask *m = trial_add_mask(&p, MASK_FULL, 1, 1, LENGTH, LENGTH);
    memset(m->bytes, 1, (size_t)LENGTH * LENGTH);
    m->bytes[5] = 0;
    tensor_flood(&p.output, 0);
    const int64_t before = status_bytes("VmRSS");
    if (before < 0) {
        trial_end(&p);
        skip();
    }
    SUCCEEDS(trial_forward(&p, 0, err));
    const int64_t most = status_bytes("VmHWM");
    print_message("%lld MiB more than before\n", (long long)((most - before) >> 20));
    assert_true(most > before && most - before < (INT64_C(256) << 20));
    trial_end(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(R04_a_byte_mask_of_8192_x_8192_takes_less_than_256_MiB),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
