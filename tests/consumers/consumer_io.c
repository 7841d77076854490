/* SPDX-License-Identifier: Apache-2.0 */
/* A stranger's program against the installed mha::io: an array goes to a file and comes back. */
#include <mha/io.h>

#include <stdio.h>
#include <string.h>

int main(int argc, char **argv)
{
    const float numbers[6] = {1.0f, -2.0f, 0.5f, 3e38f, 0.0f, 1e-3f};
    const int64_t shape[2] = {2, 3};
    int64_t got[2] = {0, 0};
    mha_io_npy *array = NULL;
    const char *path = argc > 1 ? argv[1] : "consumer_io.npy";
    int same;

    if (mha_io_npy_write(path, 2, shape, numbers, NULL) != MHA_OK ||
        mha_io_npy_read(path, &array, NULL) != MHA_OK) {
        fprintf(stderr, "no way through %s\n", path);
        return 1;
    }
    same = mha_io_npy_shape(array, got, 2) == 2 && got[0] == 2 && got[1] == 3 &&
           memcmp(mha_io_npy_data(array), numbers, sizeof numbers) == 0;
    mha_io_npy_destroy(array);
    remove(path);
    printf("npy round trip: %s\n", same ? "the same bits" : "different");
    return same && mha_io_scheme("bert") == MHA_SCHEME_BERT ? 0 : 1;
}
