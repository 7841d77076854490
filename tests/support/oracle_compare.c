/* SPDX-License-Identifier: Apache-2.0 */
/* The verdict of oracle.h. */
#include "oracle.h"

#include <math.h>
#include <stdio.h>

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
compare(worst *w, const char *name, const tensor *t, const double *expected, const double *bound)
{
    if (!t->data) {
        return;
    }
    int64_t elements = tensor_elements(t);
    for (int64_t i = 0; i < elements; ++i) {
        double got = (double)*tensor_element(t, i);
        double ratio = ratio_of(got, expected[i], bound[i]);
        if (ratio > w->ratio) {
            *w = (worst){ratio, name, i, got, expected[i], bound[i]};
        }
    }
}

double oracle_compare(const trial *p, const oracle *r)
{
    worst w = {0, "", 0, 0, 0, 0};
    compare(&w, "output", &p->output, r->output, r->output_bound);
    compare(&w, "weights", &p->weights, r->weights, r->weights_bound);
    compare(&w, "lse", &p->lse, r->lse, r->lse_bound);
    if (w.ratio > 1) {
        fprintf(stderr, "%s[%lld] is %.9g, the oracle says %.9g, bound %.3g\n", w.name,
                (long long)w.index, w.got, w.expected, w.bound);
    }
    return w.ratio;
}
