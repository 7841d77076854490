/* SPDX-License-Identifier: Apache-2.0
 *
 * What the parts of attention reach by themselves, their operands in a cache: no attention of the library can be
 * faster than its parts one after another.
 *
 * Usage: kernel_limits [SECONDS]     for each size of a head, default 2; one thread
 */
#include "mha_clock.h"
#include "mha_peak.h"

#include <kernels/product.h>
#include <math.h>
#include <platform/fpenv.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum {
    KEYS = 256,
    ROWS = 256,
    FEW = 8,
    DEPTH_MOST = 128,
    INPUTS = 512,
    OUTPUTS = 64,
    PROJECTED = 192
};

/* Operands of any of the parts; a tile of each engine is no larger. */
static struct {
    float *a, *b, *scores, *out;
    float maximum[ROWS], sum[ROWS], shrink[ROWS], most[ROWS];
    const struct mha__kernels *kernels;
    struct mha__blas_state blas;
    int64_t depth;
    int64_t band; /* keys of the fused engine: their scores fit the first-level cache */
} tile;

static void fused_scores(void)
{
    tile.kernels->transposed_scores(tile.band, tile.kernels->query_panel, tile.depth, tile.a,
                                    tile.b, tile.scores, tile.most);
}

static void fused_softmax(void)
{
    tile.kernels->transposed_softmax(tile.band, tile.kernels->query_panel, tile.scores, tile.most,
                                     tile.maximum, tile.sum, tile.shrink);
}

static void fused_values(void)
{
    tile.kernels->transposed_values(tile.band, tile.kernels->query_panel, tile.depth, tile.a,
                                    (tile.band + 4) * tile.kernels->row_panel, tile.scores,
                                    tile.shrink, tile.out);
}

static void blas_scores(void)
{
    mha__product_nn(tile.kernels, &tile.blas, 0, ROWS, KEYS, tile.depth, tile.a, tile.depth, tile.b,
                    KEYS, 0.0f, tile.scores, KEYS);
}

static void softmax_of(int64_t rows)
{
    (void)tile.kernels->softmax_tile(tile.scores, KEYS, rows, KEYS, NULL, 0, tile.maximum, tile.sum,
                                     tile.shrink, NULL);
}

static void blas_softmax(void)
{
    softmax_of(ROWS);
}

static void blas_values(void)
{
    mha__product_nn(tile.kernels, &tile.blas, 0, ROWS, tile.depth, KEYS, tile.scores, KEYS, tile.b,
                    tile.depth, 1.0f, tile.out, tile.depth);
}

static void few_scores(void)
{
    tile.kernels->few_dots(FEW, KEYS, tile.depth, tile.a, tile.depth, tile.b, tile.depth,
                           tile.scores, KEYS);
}

static void few_softmax(void)
{
    softmax_of(FEW);
}

static void few_values(void)
{
    tile.kernels->few_product(FEW, tile.depth, KEYS, tile.scores, KEYS, tile.b, tile.depth, true,
                              tile.out, tile.depth);
}

static void projection(void)
{
    tile.kernels->panel_product(PROJECTED, OUTPUTS, INPUTS, tile.a, INPUTS, tile.b,
                                INPUTS * tile.kernels->panel, NULL, 0, tile.out, OUTPUTS);
}

struct part {
    const char *name;
    void (*run)(void);
    double operations;
    double seconds; /* of one run: the shortest mean of some */
};

/* Times a part for a tenth of a millisecond, so often that the clock does not count. */
static void time_part(struct part *part)
{
    int64_t runs = 0;
    const double begin = mha__clock_seconds();
    double lasted = 0.0;
    for (int64_t more = 1; lasted < 1e-4; more *= 2) {
        for (int64_t i = 0; i < more; i++) {
            part->run();
        }
        runs += more;
        lasted = mha__clock_seconds() - begin;
    }
    const double one = lasted / (double)runs;
    part->seconds = one < part->seconds ? one : part->seconds;
}

static void fill(void)
{
    for (int64_t i = 0; i < ROWS * INPUTS; i++) {
        tile.a[i] = (float)(i % 7) / 64.0f;
        tile.b[i] = (float)(i % 5) / 64.0f;
        tile.scores[i] = tile.out[i] = 0.0f;
    }
    for (int64_t r = 0; r < ROWS; r++) {
        // no score is larger, however often weights are taken for scores again
        tile.maximum[r] = tile.most[r] = 1.0f;
        tile.sum[r] = 1.0f;
        tile.shrink[r] = 0.0f;
    }
}

/* Three parts of a way through a tile, one after another. */
static void print_way(const char *way, const struct part *part, double peak)
{
    double operations = 0.0;
    double seconds = 0.0;
    for (int i = 0; i < 3; i++) {
        const double rate = part[i].operations / part[i].seconds / 1e9;
        if (part[i].operations > 0.0) {
            printf("  %-10s%-22s%.2f of the peak\n", way, part[i].name, rate / peak);
        }
        operations += part[i].operations;
        seconds += part[i].seconds;
    }
    printf("  %-10s%-22s%.2f of the time\n", way, part[1].name, part[1].seconds / seconds);
    printf("  %-10s%-22s%.2f of the peak\n", way, "all three", operations / seconds / 1e9 / peak);
}

static void measure(int64_t depth, double seconds)
{
    const double row = 2.0 * KEYS * (double)depth; // operations, in either product
    const double panel = 2.0 * (double)(tile.kernels->query_panel * tile.band * depth);
    struct part part[] = {
        {"S^T = K Q^T", fused_scores, panel, INFINITY},
        {"softmax", fused_softmax, 0.0, INFINITY},
        {"O^T = V^T P^T", fused_values, panel, INFINITY},
        {"S = Q K^T", blas_scores, ROWS * row, INFINITY},
        {"softmax", blas_softmax, 0.0, INFINITY},
        {"O = O + P V", blas_values, ROWS * row, INFINITY},
        {"S = Q K^T", few_scores, FEW * row, INFINITY},
        {"softmax", few_softmax, 0.0, INFINITY},
        {"O = O + P V", few_values, FEW * row, INFINITY},
        {"Y = X W^T", projection, 2.0 * PROJECTED * OUTPUTS * INPUTS, INFINITY},
    };
    const int parts = (int)(sizeof part / sizeof *part);
    tile.depth = depth;
    fill();
    double peak = 0.0;
    const double end = mha__clock_seconds() + seconds;
    do {
        const double sample = mha__peak_sample(1e-4);
        peak = sample > peak ? sample : peak;
        for (int i = 0; i < parts; i++) {
            time_part(&part[i]);
        }
    } while (mha__clock_seconds() < end);
    printf("D = %d, tiles of %d keys, by turns, the shortest times; peak %.1f GFLOP/s (%s)\n",
           (int)depth, KEYS, peak, mha__peak_name());
    print_way("fused", part, peak);
    print_way("blas", part + 3, peak);
    print_way("8 queries", part + 6, peak);
    printf("  %-10s%-22s%.2f of the peak\n", "fused", "projection",
           part[9].operations / part[9].seconds / 1e9 / peak);
}

/* OpenBLAS reads these before main; they may choose slow kernels. */
static void begin_again_without(char **argv)
{
    if (getenv("OPENBLAS_CORETYPE") || getenv("OPENBLAS_L2_SIZE")) {
        unsetenv("OPENBLAS_CORETYPE");
        unsetenv("OPENBLAS_L2_SIZE");
        execv("/proc/self/exe", argv);
    }
}

int main(int argc, char **argv)
{
    begin_again_without(argv);
    const double seconds = argc > 1 ? strtod(argv[1], NULL) : 2.0;
    const size_t bytes = (size_t)ROWS * INPUTS * sizeof(float);
    float **const operand[] = {&tile.a, &tile.b, &tile.scores, &tile.out};
    for (int i = 0; i < 4; i++) {
        *operand[i] = aligned_alloc(64, bytes);
        if (!*operand[i]) {
            fprintf(stderr, "no memory for the operands, %zu bytes each\n", bytes);
            return 1;
        }
    }
    tile.kernels = mha__kernels_chosen();
    tile.band = tile.kernels->query_panel > 24 ? KEYS / 2 : KEYS;
    mha__blas_ask(&tile.blas);
    char blas[256];
    (void)mha__blas_describe(blas, sizeof blas);
    printf("kernels %s; %s\n", tile.kernels->name, blas);
    if (!mha__blas_enter()) {
        fprintf(stderr, "no memory for the BLAS\n");
        return 1;
    }
    struct mha__fpenv saved;
    mha__fpenv_enter(&saved);
    measure(64, seconds);
    measure(DEPTH_MOST, seconds);
    mha__fpenv_leave(&saved);
    mha__blas_leave();
    for (int i = 0; i < 4; i++) {
        free(*operand[i]);
    }
    return 0;
}
