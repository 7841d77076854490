/* SPDX-License-Identifier: Apache-2.0 */
#include "oracle.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const double EPS = 0x1p-24;
static const double C = 8.0;

static double *numbers(int64_t count)
{
    double *x = calloc((size_t)count + 1, sizeof *x);
    if (!x) {
        abort();
    }
    return x;
}

/* y = x W^T + bias over [B, tokens, out], and the bound of its float32 error. Off: y = x. */
static void project_in(const trial *p,
                       int32_t side,
                       const tensor *x,
                       int64_t tokens,
                       int64_t in,
                       int64_t out,
                       double *y,
                       double *bound)
{
    const float *W = p->parameter[2 * side];
    const float *bias = p->parameter[2 * side + 1];
    for (int64_t b = 0; b < p->B; ++b) {
        for (int64_t i = 0; i < tokens; ++i) {
            for (int64_t o = 0; o < out; ++o) {
                int64_t at = (b * tokens + i) * out + o;
                if (!p->projection[side]) {
                    y[at] = (double)*tensor_feature(x, b, i, o);
                    continue;
                }
                double sum = p->bias[side] ? (double)bias[o] : 0;
                double size = fabs(sum);
                for (int64_t e = 0; e < in; ++e) {
                    double term = (double)W[o * in + e] * (double)*tensor_feature(x, b, i, e);
                    sum += term;
                    size += fabs(term);
                }
                y[at] = sum;
                bound[at] = (double)(in + 2) * EPS * size;
            }
        }
    }
}

typedef struct heads {
    double *q, *k, *v;    /* [B,T,H,D], [B,S,G,D], [B,S,G,Dv] */
    double *dq, *dk, *dv; /* bounds of their errors */
} heads;

/* One query row of one head: weights, log-sum-exp and o [Dv] with its bound. */
static void attend_row(const trial *p,
                       const heads *x,
                       int64_t b,
                       int64_t h,
                       int64_t i,
                       oracle *r,
                       double *o,
                       double *bound)
{
    const int64_t g = h / (p->H / p->G);
    const int64_t row = (b * p->H + h) * p->T + i;
    const double scale = (double)trial_scale(p);
    const double *q = x->q + ((b * p->T + i) * p->H + h) * p->D;
    const double *dq = x->dq + ((b * p->T + i) * p->H + h) * p->D;
    double *weights = r->weights + row * p->S;
    double m = -INFINITY, A = 0, ds = 0, max_v = 0, max_dv = 0;

    memset(o, 0, (size_t)p->Dv * sizeof *o);
    for (int64_t j = 0; j < p->S; ++j) {
        if (trial_allowed(p, b, h, i, j)) {
            const double *k = x->k + ((b * p->S + j) * p->G + g) * p->D;
            const double *dk = x->dk + ((b * p->S + j) * p->G + g) * p->D;
            double s = 0, size = 0, error = 0;
            for (int64_t d = 0; d < p->D; ++d) {
                s += q[d] * k[d];
                size += fabs(q[d] * k[d]);
                error += dq[d] * fabs(k[d]) + fabs(q[d]) * dk[d] + dq[d] * dk[d];
            }
            weights[j] = scale * s; /* the score, until the maximum is known */
            m = fmax(m, scale * s);
            A = fmax(A, fabs(scale) * size);
            ds = fmax(ds, fabs(scale) * error);
        }
    }
    double sum = 0;
    for (int64_t j = 0; j < p->S; ++j) {
        weights[j] = trial_allowed(p, b, h, i, j) ? exp(weights[j] - m) : 0;
        sum += weights[j];
    }
    for (int64_t j = 0; j < p->S; ++j) {
        if (trial_allowed(p, b, h, i, j)) {
            const double *v = x->v + ((b * p->S + j) * p->G + g) * p->Dv;
            const double *dv = x->dv + ((b * p->S + j) * p->G + g) * p->Dv;
            weights[j] /= sum;
            for (int64_t d = 0; d < p->Dv; ++d) {
                o[d] += weights[j] * v[d];
                max_v = fmax(max_v, fabs(v[d]));
                max_dv = fmax(max_dv, dv[d]);
            }
        }
    }
    r->lse[row] = sum > 0 ? m + log(sum) : -INFINITY;
    r->A[row] = A;
    const double unit = C * EPS * (A + log2(fmax((double)p->S, 1)) + 4) + expm1(2 * ds);
    for (int64_t j = 0; j < p->S; ++j) {
        r->weights_bound[row * p->S + j] =
            trial_allowed(p, b, h, i, j) ? unit + (double)FLT_MIN : 0;
    }
    r->lse_bound[row] = unit + (double)FLT_MIN;
    for (int64_t d = 0; d < p->Dv; ++d) {
        bound[d] = sum > 0 ? unit * (max_v + max_dv) + max_dv + (double)FLT_MIN : 0;
    }
}

/* out = concat_h(o) Wo^T + bo for one token; a padded query gets 0. */
static void
project_out(const trial *p, int64_t b, int64_t i, const double *o, const double *o_bound, oracle *r)
{
    const int64_t in = p->H * p->Dv;
    const float *W = p->parameter[MHA_PARAM_OUT_WEIGHT];
    for (int64_t e = 0; e < p->Eo; ++e) {
        int64_t at = (b * p->T + i) * p->Eo + e;
        if (i >= trial_queries(p, b)) {
            continue;
        }
        if (!p->projection[MHA_PROJECTION_OUT]) {
            r->output[at] = o[e];
            r->output_bound[at] = o_bound[e];
            continue;
        }
        double bias = p->bias[MHA_PROJECTION_OUT] ? (double)p->parameter[MHA_PARAM_OUT_BIAS][e] : 0;
        double sum = bias, size = 0, carried = 0;
        for (int64_t c = 0; c < in; ++c) {
            double w = (double)W[e * in + c];
            sum += w * o[c];
            size += fabs(w * o[c]);
            carried += fabs(w) * o_bound[c];
        }
        r->output[at] = sum;
        /* all heads empty: the row is bo, exactly */
        r->output_bound[at] =
            size + carried > 0
                ? carried + (double)(in + 2) * EPS * (size + carried + fabs(bias)) + (double)FLT_MIN
                : 0;
    }
}

void oracle_run(const trial *p, oracle *r)
{
    const int64_t n_q = p->B * p->T * p->H * p->D;
    const int64_t n_k = p->B * p->S * p->G * p->D;
    const int64_t n_v = p->B * p->S * p->G * p->Dv;
    const int64_t n_out = p->B * p->T * p->Eo;
    const int64_t n_rows = p->B * p->H * p->T;
    heads x = {numbers(n_q), numbers(n_k), numbers(n_v), numbers(n_q), numbers(n_k), numbers(n_v)};
    *r = (oracle){numbers(n_out),  numbers(n_out),  numbers(n_rows * p->S), numbers(n_rows * p->S),
                  numbers(n_rows), numbers(n_rows), numbers(n_rows)};
    double *o = numbers(p->H * p->Dv);
    double *o_bound = numbers(p->H * p->Dv);

    project_in(p, MHA_PROJECTION_Q, &p->query, p->T, p->Eq, p->H * p->D, x.q, x.dq);
    project_in(p, MHA_PROJECTION_K, &p->key, p->S, p->Ek, p->G * p->D, x.k, x.dk);
    project_in(p, MHA_PROJECTION_V, &p->value, p->S, p->Ev, p->G * p->Dv, x.v, x.dv);
    for (int64_t b = 0; b < p->B; ++b) {
        for (int64_t i = 0; i < p->T; ++i) {
            for (int64_t h = 0; h < p->H; ++h) {
                attend_row(p, &x, b, h, i, r, o + h * p->Dv, o_bound + h * p->Dv);
            }
            project_out(p, b, i, o, o_bound, r);
        }
    }
    double *const temporary[8] = {x.q, x.k, x.v, x.dq, x.dk, x.dv, o, o_bound};
    for (int t = 0; t < 8; ++t) {
        free(temporary[t]);
    }
}

void oracle_end(oracle *r)
{
    free(r->output);
    free(r->output_bound);
    free(r->weights);
    free(r->weights_bound);
    free(r->lse);
    free(r->lse_bound);
    free(r->A);
}
