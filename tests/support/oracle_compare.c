/* SPDX-License-Identifier: Apache-2.0 */
/* The verdicts of oracle.h. */
#include "oracle.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static const char *const NAMES[] = {
    [MHA_TENSOR_OUTPUT] = "output",
    [MHA_TENSOR_WEIGHTS] = "weights",
    [MHA_TENSOR_LSE] = "lse",
    [MHA_TENSOR_WEIGHTS_MEAN] = "mean of the weights",
    [MHA_TENSOR_WEIGHTS_DROPPED] = "dropped weights",
    [MHA_TENSOR_SCORES_SCALED] = "scaled scores",
    [MHA_TENSOR_SCORES_CAPPED] = "capped scores",
    [MHA_TENSOR_SCORES_BIASED] = "biased scores",
    [MHA_TENSOR_ENTROPY] = "entropy",
    [MHA_TENSOR_MAXIMUM] = "maximum",
    [MHA_TENSOR_KEY_MASS] = "key mass",
    [MHA_TENSOR_KEY_MASS_TOTAL] = "total key mass",
};

typedef struct worst {
    double ratio;
    const char *name;
    int64_t index;
    double got, expected, bound;
} worst;

/* error / bound; a bound of 0 asks for the exact number, an infinity for that infinity. */
static double ratio_of(double got, double expected, double bound)
{
    if (isinf(expected) || bound == 0) {
        return got == expected ? 0 : INFINITY;
    }
    double ratio = fabs(got - expected) / bound;
    return isnan(ratio) ? INFINITY : ratio;
}

static void
take(worst *w, const char *name, int64_t index, double got, double expected, double bound)
{
    double ratio = ratio_of(got, expected, bound);
    if (ratio > w->ratio) {
        *w = (worst){ratio, name, index, got, expected, bound};
    }
}

/* Not a raw score of a padded query, whose rotary position nothing defines. */
static int is_defined(const trial *p, int32_t id, int64_t index)
{
    if (!p->rotary_size || p->id_batch ||
        (id != MHA_TENSOR_SCORES_SCALED && id != MHA_TENSOR_SCORES_CAPPED)) {
        return 1;
    }
    const int64_t i = index / p->S % p->T, b = index / p->S / p->T / p->H;
    return trial_is_real(p, b, i);
}

/* expected NULL: the oracle's own numbers. */
static void compare_tensors(worst *w, const trial *p, const trial *expected, const oracle *r)
{
    for (int32_t id = MHA_TENSOR_OUTPUT; id <= MHA_TENSOR_KEY_MASS_TOTAL; ++id) {
        if (id >= MHA_TENSOR_BIAS0 && id <= MHA_TENSOR_BIAS3) {
            continue;
        }
        const tensor *got = trial_result((trial *)(uintptr_t)p, id);
        const tensor *want = expected ? trial_result((trial *)(uintptr_t)expected, id) : NULL;
        const double *value = oracle_value(r, id), *bound = oracle_bound(r, id);
        /* without queries nothing is written, not even the masses of the keys */
        int64_t elements = got->data && p->T > 0 ? tensor_elements(got) : 0;
        for (int64_t n = 0; n < elements; ++n) {
            if (is_defined(p, id, n)) {
                double number = want ? (double)*tensor_element(want, n) : value[n];
                take(w, NAMES[id], n, (double)*tensor_element(got, n), number, bound[n]);
            }
        }
    }
}

static void compare_stream(worst *w, const trial *p, const trial *expected, const oracle *r)
{
    int64_t cells = p->stream ? tensor_elements(&p->stream->weights) : 0;
    for (int64_t n = 0; n < cells; ++n) {
        double number =
            expected ? (double)*tensor_element(&expected->stream->weights, n) : r->weights[n];
        take(w, "streamed weights", n, (double)*tensor_element(&p->stream->weights, n), number,
             r->weights_bound[n]);
    }
    if (p->stream && p->stream->wrong) {
        take(w, "cells streamed twice or outside", 0, (double)p->stream->wrong, 0, 0);
    }
}

static double verdict(const worst *w)
{
    if (w->ratio > 1) {
        fprintf(stderr, "%s[%lld] is %.9g, expected %.9g, bound %.3g\n", w->name,
                (long long)w->index, w->got, w->expected, w->bound);
    }
    return w->ratio;
}

double oracle_compare(const trial *p, const oracle *r)
{
    worst w = {0, "", 0, 0, 0, 0};
    compare_tensors(&w, p, NULL, r);
    compare_stream(&w, p, NULL, r);
    return verdict(&w);
}

double oracle_compare_runs(const trial *p, const trial *expected, const oracle *r)
{
    worst w = {0, "", 0, 0, 0, 0};
    compare_tensors(&w, p, expected, r);
    compare_stream(&w, p, expected, r);
    return verdict(&w);
}

/* ---- top keys ---- */

static int is_visible(const trial *p, int64_t b, int64_t h, int64_t i, int64_t j)
{
    return j < p->S ? trial_allowed(p, b, h, i, j) : trial_is_real(p, b, i);
}

/* What is wrong with a row; NULL = nothing. */
static const char *
wrong_top(const trial *p, const oracle *r, int64_t b, int64_t h, int64_t i, unsigned char *taken)
{
    const int64_t row = (b * p->H + h) * p->T + i, columns = trial_columns(p);
    const double *weight = r->weights + row * columns;
    const double slack = 2 * (r->u[row] + 1.2e-38);
    int64_t visible = 0;
    for (int64_t j = 0; j < columns; ++j) {
        visible += taken[j] = (unsigned char)is_visible(p, b, h, i, j);
    }
    double last = INFINITY;
    for (int64_t n = 0; n < p->top; ++n) {
        const int64_t key = p->top_keys[row * p->top + n];
        const double given = p->top_weights ? (double)p->top_weights[row * p->top + n] : 0;
        if (n >= visible) {
            if (key != -1 || given != 0) {
                return "fewer keys are visible, but it is not -1 and 0";
            }
            continue;
        }
        if (key < 0 || key >= columns || !taken[key]) {
            return "hidden, out of range or named twice";
        }
        taken[key] = 0;
        if (p->top_weights && !(fabs(given - weight[key]) <= slack)) {
            return "another weight";
        }
        if (p->top_weights && given > last) {
            return "rising";
        }
        last = p->top_weights ? given : last;
        for (int64_t j = 0; j < columns; ++j) {
            if (taken[j] && weight[j] - slack > weight[key] + slack) {
                return "a larger weight is left out";
            }
        }
    }
    return NULL;
}

int oracle_top_is_right(const trial *p, const oracle *r)
{
    unsigned char *taken = calloc((size_t)trial_columns(p) + 1, 1);
    const char *wrong = NULL;
    if (!taken) {
        abort();
    }
    for (int64_t n = 0; n < p->B * p->H * p->T && p->top > 0 && !wrong; ++n) {
        const int64_t b = n / p->T / p->H, h = n / p->T % p->H, i = n % p->T;
        wrong = wrong_top(p, r, b, h, i, taken);
        if (wrong) {
            fprintf(stderr, "top keys of (%lld, %lld, %lld): %s\n", (long long)b, (long long)h,
                    (long long)i, wrong);
        }
    }
    free(taken);
    return !wrong;
}
