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

/* ---- heads: projections, positions, extra keys, and the bounds of their errors ---- */

typedef struct heads {
    double *q, *k, *v;    /* [B,T,H,D], [B,S',G,D], [B,S',G,Dv] */
    double *dq, *dk, *dv; /* bounds of their errors */
} heads;

/* y = x W^T + bias over [B, tokens, out], rows of y `room` tokens a batch row. Off: y = x. */
static void project_in(const trial *p,
                       int32_t side,
                       const tensor *x,
                       int64_t tokens,
                       int64_t room,
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
                int64_t at = (b * room + i) * out + o;
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

/* (a, c) <- (a cos - c sin, a sin + c cos) for each pair of the first rotary_size features of a head. */
static void rotate(const trial *p, double position, double *x, double *bound)
{
    const double base = p->rotary_base > 0 ? p->rotary_base : 10000.0;
    for (int64_t n = 0; n < p->rotary_size / 2; ++n) {
        const double angle = position / pow(base, 2.0 * (double)n / (double)p->rotary_size);
        int64_t one = 2 * n, two = 2 * n + 1;
        if (p->rotary_pairing == MHA_ROTARY_HALVES) {
            one = n;
            two = n + p->rotary_size / 2;
        }
        const double a = x[one], c = x[two];
        const double error = bound[one] + bound[two] + 4 * EPS * (fabs(a) + fabs(c));
        x[one] = a * cos(angle) - c * sin(angle);
        x[two] = c * cos(angle) + a * sin(angle);
        bound[one] = bound[two] = error;
    }
}

static void place_heads(const trial *p, heads *x)
{
    const int64_t columns = trial_columns(p);
    for (int64_t b = 0; b < p->B && p->rotary_size > 0; ++b) {
        const int64_t row = p->id_batch == 1 ? 0 : b;
        for (int64_t n = 0; n < p->T * p->H; ++n) {
            const int64_t i = n / p->H, at = (b * p->T * p->H + n) * p->D;
            rotate(p,
                   (double)(p->id_batch ? p->query_ids[row * p->T + i]
                                        : trial_query_position(p, b, i)),
                   x->q + at, x->dq + at);
        }
        for (int64_t n = 0; n < p->S * p->G; ++n) {
            const int64_t j = n / p->G, at = (b * columns * p->G + n) * p->D;
            rotate(p,
                   (double)(p->id_batch ? p->key_ids[row * p->S + j] : trial_key_position(p, b, j)),
                   x->k + at, x->dk + at);
        }
    }
    for (int64_t b = 0; b < p->B && p->bias_kv; ++b) { /* the key of zeros is there already */
        const int64_t row = b * columns + p->S;
        for (int64_t n = 0; n < p->G * p->D; ++n) {
            x->k[row * p->G * p->D + n] = (double)p->parameter[MHA_PARAM_BIAS_K][n];
        }
        for (int64_t n = 0; n < p->G * p->Dv; ++n) {
            x->v[row * p->G * p->Dv + n] = (double)p->parameter[MHA_PARAM_BIAS_V][n];
        }
    }
}

/* ---- scores ---- */

typedef struct score {
    int allowed;
    double scaled, scaled_bound, capped, capped_bound, biased, biased_bound;
    double size; /* its part of A */
    double ds;   /* its error from the heads */
} score;

/* A sum in float32, the score first, then biases, then ALiBi; the sizes of what is added. */
static float added(const trial *p,
                   float s,
                   int64_t b,
                   int64_t h,
                   int64_t i,
                   int64_t j,
                   double *size,
                   double *largest)
{
    for (int32_t n = 0; n < p->biases; ++n) {
        const tensor *x = &p->additive[n];
        if (j < x->shape[3]) {
            const float bias = *tensor_at(x, x->shape[0] == 1 ? 0 : b, x->shape[1] == 1 ? 0 : h,
                                          x->shape[2] == 1 ? 0 : i, j);
            s += bias;
            *size += fabs((double)bias);
            *largest = fmax(*largest, fabs((double)bias));
        }
    }
    if (p->alibi) {
        const int64_t away = trial_query_position(p, b, i) - trial_key_position(p, b, j);
        const float term = trial_slope(p, h) * (float)(away < 0 ? -away : away);
        s -= term;
        *size += fabs((double)term);
    }
    return s;
}

static double beyond_float(double s)
{
    return fabs(s) > (double)FLT_MAX ? copysign(INFINITY, s) : s;
}

static score score_of(const trial *p, const heads *x, int64_t b, int64_t h, int64_t i, int64_t j)
{
    const int64_t g = h / (p->H / p->G), columns = trial_columns(p);
    const double scale = (double)trial_head_scale(p, h), cap = (double)trial_softcap(p, h);
    const int64_t at_q = ((b * p->T + i) * p->H + h) * p->D;
    const int64_t at_k = ((b * columns + j) * p->G + g) * p->D;
    double dot = 0, size = 0, error = 0;
    for (int64_t d = 0; d < p->D; ++d) {
        const double q = x->q[at_q + d], k = x->k[at_k + d];
        const double dq = x->dq[at_q + d], dk = x->dk[at_k + d];
        dot += q * k;
        size += fabs(q * k);
        error += dq * fabs(k) + fabs(q) * dk + dq * dk;
    }
    score s;
    memset(&s, 0, sizeof s);
    s.allowed = j < p->S ? trial_allowed(p, b, h, i, j) : trial_is_real(p, b, i);
    s.scaled = beyond_float(scale * dot);
    s.size = fabs(scale) * size;
    s.ds = fabs(scale) * error;
    s.scaled_bound = C * EPS * (s.size + 4) + s.ds;
    s.capped = cap > 0 ? cap * tanh(s.scaled / cap) : s.scaled;
    s.capped_bound = s.scaled_bound + (cap > 0 ? C * EPS * (fabs(s.capped) + 4) : 0);
    s.biased = s.capped;
    s.biased_bound = s.capped_bound;
    if (j < p->S && (p->biases || p->alibi)) {
        double terms = 0, largest = 0, unused[2] = {0, 0};
        s.biased = (double)added(p, (float)s.capped, b, h, i, j, &terms, &largest);
        s.size += terms;
        s.biased_bound += C * EPS * terms;
        /* exact: the same float32 for every score that it might be, whatever was added before */
        const double e = s.capped_bound + terms - largest;
        if (largest > 1e6 &&
            added(p, (float)(s.capped - e), b, h, i, j, &unused[0], &unused[1]) ==
                added(p, (float)(s.capped + e), b, h, i, j, &unused[0], &unused[1])) {
            s.size = s.ds = s.biased_bound = 0;
        }
    }
    if (j < p->S && p->score_callback) {
        s.biased = (double)trial_called_back((float)s.biased, b, h, i, j);
        s.biased_bound += C * EPS * (fabs(s.biased) + 2);
        s.size += fabs(s.biased) * (s.size > 0);
    }
    return s;
}

/* ---- rows ---- */

typedef struct row {
    const trial *p;
    oracle *r;
    score *scores;       /* [S'] */
    int64_t b, h, i, at; /* at: the row's number in [B, H, T] */
    double sink;
} row;

/* exp(s - m) / sum, lse; zeros where nothing is visible. */
static void soften(const row *w)
{
    const int64_t columns = trial_columns(w->p);
    double *weights = w->r->weights + w->at * columns;
    double m = w->sink;
    for (int64_t j = 0; j < columns; ++j) {
        m = w->scores[j].allowed ? fmax(m, w->scores[j].biased) : m;
    }
    const double base = m == -INFINITY ? 0 : m;
    double sum = exp(w->sink - base);
    for (int64_t j = 0; j < columns; ++j) {
        weights[j] = w->scores[j].allowed ? exp(w->scores[j].biased - base) : 0;
        sum += weights[j];
    }
    for (int64_t j = 0; j < columns && sum != 0; ++j) {
        weights[j] /= w->scores[j].allowed ? sum : 1;
    }
    w->r->lse[w->at] = sum == 0 ? -INFINITY : base + log(sum);
}

/* u of the row, and A. */
static void bound_row(const row *w)
{
    const int64_t columns = trial_columns(w->p);
    double surely = w->sink, A = 0, ds = 0; /* the maximum is at least this */
    for (int64_t j = 0; j < columns; ++j) {
        const score *s = &w->scores[j];
        surely = s->allowed ? fmax(surely, s->biased - s->biased_bound) : surely;
    }
    for (int64_t j = 0; j < columns; ++j) {
        const score *s = &w->scores[j];
        if (s->allowed && !(s->biased + s->biased_bound < surely - 110)) {
            A = fmax(A, s->size);
            ds = fmax(ds, s->ds);
        }
    }
    const double log_columns = log2(fmax((double)columns, 1));
    w->r->A[w->at] = A;
    w->r->u[w->at] = C * EPS * (A + log_columns + 4) + expm1(2 * ds);
}

static double *value_of(oracle *r, int32_t id)
{
    return r->value[id - MHA_TENSOR_WEIGHTS_MEAN];
}

static double *bound_of(oracle *r, int32_t id)
{
    return r->bound[id - MHA_TENSOR_WEIGHTS_MEAN];
}

static void set(oracle *r, int32_t id, int64_t at, double value, double bound)
{
    value_of(r, id)[at] = value;
    bound_of(r, id)[at] = bound;
}

static void add(oracle *r, int32_t id, int64_t at, double value, double bound)
{
    value_of(r, id)[at] += value;
    bound_of(r, id)[at] += bound;
}

/* Everything that is made of the scores and weights of a row. */
static void tell_row(const row *w)
{
    const trial *p = w->p;
    oracle *r = w->r;
    const int64_t columns = trial_columns(p);
    const double u = r->u[w->at], tiny = (double)FLT_MIN;
    const double *weights = r->weights + w->at * columns;
    double entropy = 0, largest = 0;
    int any = w->sink != -INFINITY;
    for (int64_t j = 0; j < columns; ++j) {
        const score *s = &w->scores[j];
        const int64_t cell = w->at * columns + j;
        const double bound = s->allowed ? u + tiny : 0;
        const double rounding = (double)(p->H * p->T + 2) * EPS * weights[j];
        any |= s->allowed;
        r->weights_bound[cell] = bound;
        entropy -= weights[j] > 0 ? weights[j] * log(weights[j]) : 0;
        largest = fmax(largest, weights[j]);
        const int kept = trial_kept(p, w->b, w->h, w->i, j);
        const double factor = kept ? 1 / (1 - p->dropout) : 0;
        set(r, MHA_TENSOR_WEIGHTS_DROPPED, cell, factor * weights[j], factor * 2 * bound);
        add(r, MHA_TENSOR_WEIGHTS_MEAN, (w->b * p->T + w->i) * columns + j,
            weights[j] / (double)p->H, (bound + rounding) / (double)p->H);
        add(r, MHA_TENSOR_KEY_MASS, (w->b * p->H + w->h) * columns + j, weights[j],
            bound + rounding);
        add(r, MHA_TENSOR_KEY_MASS_TOTAL, w->b * columns + j, weights[j], bound + rounding);
        if (j < p->S) {
            const int64_t raw = w->at * p->S + j;
            set(r, MHA_TENSOR_SCORES_SCALED, raw, s->scaled, s->scaled_bound + tiny);
            set(r, MHA_TENSOR_SCORES_CAPPED, raw, s->capped, s->capped_bound + tiny);
            set(r, MHA_TENSOR_SCORES_BIASED, raw, s->allowed ? s->biased : -INFINITY,
                s->biased_bound + tiny);
        }
    }
    r->lse_bound[w->at] = u + 2 * EPS * fabs(r->lse[w->at]) + tiny;
    set(r, MHA_TENSOR_ENTROPY, w->at, entropy, any ? 2 * u * (entropy + 2) + tiny : 0);
    set(r, MHA_TENSOR_MAXIMUM, w->at, largest, any ? u + tiny : 0);
}

/* o_i = gate sum_j p_ij keep_ij / (1 - dropout) v_j, [Dv], and its bound. */
static void sum_values(const row *w, const heads *x, double *o, double *bound)
{
    const trial *p = w->p;
    const int64_t columns = trial_columns(p), g = w->h / (p->H / p->G);
    const double gate = p->gates ? (double)p->parameter[MHA_PARAM_GATES][w->h] : 1;
    const double *weights = w->r->weights + w->at * columns;
    double max_v = 0, max_dv = 0;
    int any = 0;
    memset(o, 0, (size_t)p->Dv * sizeof *o);
    memset(bound, 0, (size_t)p->Dv * sizeof *bound);
    for (int64_t j = 0; j < columns && gate != 0; ++j) {
        if (!w->scores[j].allowed || !trial_kept(p, w->b, w->h, w->i, j)) {
            continue;
        }
        const int64_t at = ((w->b * columns + j) * p->G + g) * p->Dv;
        any = 1;
        for (int64_t d = 0; d < p->Dv; ++d) {
            o[d] += weights[j] * x->v[at + d] * gate / (1 - p->dropout);
            max_v = fmax(max_v, fabs(x->v[at + d]));
            max_dv = fmax(max_dv, x->dv[at + d]);
        }
    }
    const double factor = fabs(gate) / (1 - p->dropout);
    for (int64_t d = 0; d < p->Dv && any; ++d) {
        bound[d] = factor * (w->r->u[w->at] * (max_v + max_dv) + max_dv) + (double)FLT_MIN;
    }
}

static void attend_row(const trial *p,
                       const heads *x,
                       int64_t b,
                       int64_t h,
                       int64_t i,
                       score *scores,
                       oracle *r,
                       double *o,
                       double *bound)
{
    const int64_t columns = trial_columns(p);
    const int sink = p->sinks && trial_is_real(p, b, i);
    const row w = {p,
                   r,
                   scores,
                   b,
                   h,
                   i,
                   (b * p->H + h) * p->T + i,
                   sink ? (double)p->parameter[MHA_PARAM_SINKS][h] : -INFINITY};
    for (int64_t j = 0; j < columns; ++j) {
        scores[j] = score_of(p, x, b, h, i, j);
    }
    soften(&w);
    bound_row(&w);
    tell_row(&w);
    sum_values(&w, x, o, bound);
}

/* out = concat_h(o) Wo^T + bo for one token; a padded query gets 0. */
static void
project_out(const trial *p, int64_t b, int64_t i, const double *o, const double *o_bound, oracle *r)
{
    const int64_t in = p->H * p->Dv;
    const float *W = p->parameter[MHA_PARAM_OUT_WEIGHT];
    for (int64_t e = 0; e < p->Eo; ++e) {
        int64_t at = (b * p->T + i) * p->Eo + e;
        if (!trial_is_real(p, b, i)) {
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

static void make_room(const trial *p, oracle *r)
{
    const int64_t n_out = p->B * p->T * p->Eo, n_rows = p->B * p->H * p->T;
    const int64_t n_cells = n_rows * trial_columns(p);
    *r = (oracle){.output = numbers(n_out),
                  .output_bound = numbers(n_out),
                  .weights = numbers(n_cells),
                  .weights_bound = numbers(n_cells),
                  .lse = numbers(n_rows),
                  .lse_bound = numbers(n_rows),
                  .A = numbers(n_rows),
                  .u = numbers(n_rows)};
    for (int32_t n = 0; n < TRIAL_RESULTS; ++n) {
        int64_t shape[4] = {1, 1, 1, 1}, count = 1;
        const int32_t rank = trial_result_shape(p, MHA_TENSOR_WEIGHTS_MEAN + n, shape);
        for (int32_t a = 0; a < rank; ++a) {
            count *= shape[a];
        }
        r->value[n] = numbers(count);
        r->bound[n] = numbers(count);
    }
}

void oracle_run(const trial *p, oracle *r)
{
    const int64_t columns = trial_columns(p);
    const int64_t n_q = p->B * p->T * p->H * p->D;
    const int64_t n_k = p->B * columns * p->G * p->D;
    const int64_t n_v = p->B * columns * p->G * p->Dv;
    heads x = {numbers(n_q), numbers(n_k), numbers(n_v), numbers(n_q), numbers(n_k), numbers(n_v)};
    score *scores = calloc((size_t)columns + 1, sizeof *scores);
    if (!scores) {
        abort();
    }
    make_room(p, r);
    double *o = numbers(p->H * p->Dv);
    double *o_bound = numbers(p->H * p->Dv);

    project_in(p, MHA_PROJECTION_Q, &p->query, p->T, p->T, p->Eq, p->H * p->D, x.q, x.dq);
    project_in(p, MHA_PROJECTION_K, &p->key, p->S, columns, p->Ek, p->G * p->D, x.k, x.dk);
    project_in(p, MHA_PROJECTION_V, &p->value, p->S, columns, p->Ev, p->G * p->Dv, x.v, x.dv);
    place_heads(p, &x);
    for (int64_t b = 0; b < p->B; ++b) {
        for (int64_t i = 0; i < p->T; ++i) {
            for (int64_t h = 0; h < p->H; ++h) {
                attend_row(p, &x, b, h, i, scores, r, o + h * p->Dv, o_bound + h * p->Dv);
            }
            project_out(p, b, i, o, o_bound, r);
        }
    }
    void *const temporary[] = {x.q, x.k, x.v, x.dq, x.dk, x.dv, o, o_bound, scores};
    for (size_t t = 0; t < sizeof temporary / sizeof *temporary; ++t) {
        free(temporary[t]);
    }
}

const double *oracle_value(const oracle *r, int32_t id)
{
    return id == MHA_TENSOR_OUTPUT    ? r->output
           : id == MHA_TENSOR_WEIGHTS ? r->weights
           : id == MHA_TENSOR_LSE     ? r->lse
                                      : r->value[id - MHA_TENSOR_WEIGHTS_MEAN];
}

const double *oracle_bound(const oracle *r, int32_t id)
{
    return id == MHA_TENSOR_OUTPUT    ? r->output_bound
           : id == MHA_TENSOR_WEIGHTS ? r->weights_bound
           : id == MHA_TENSOR_LSE     ? r->lse_bound
                                      : r->bound[id - MHA_TENSOR_WEIGHTS_MEAN];
}

void oracle_end(oracle *r)
{
    double *const owned[] = {r->output, r->output_bound, r->weights, r->weights_bound,
                             r->lse,    r->lse_bound,    r->A,       r->u};
    for (size_t n = 0; n < sizeof owned / sizeof *owned; ++n) {
        free(owned[n]);
    }
    for (int32_t n = 0; n < TRIAL_RESULTS; ++n) {
        free(r->value[n]);
        free(r->bound[n]);
    }
}
