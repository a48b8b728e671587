/* naive-caches.h - the cache policies `features` and `sparse` written out in doubles, position by
 * position, for a network of two layers whose gains are ones. */
#pragma once

#include "lib/decode/diffuse.h"
#include "tests/model/decoded.h"

enum { LEN = 48, L = 2, D = 64, H = 4, E = 16, F = 160, V = 512, MASK = 510 };

/* ---- the network in doubles ---- */

struct weights {
    size_t K; /* key heads */
    float *of[ROLE_COUNT][L];
};

static float *floats_of(const struct checkpoint *c, enum role r, size_t l)
{
    size_t rows, cols;
    role_shape(&c->config, r, &rows, &cols);
    float *w = mem_alloc(rows * cols * sizeof *w);
    checkpoint_floats(c, r, l, w);
    return w;
}

static struct weights weights_of(const struct checkpoint *c)
{
    struct weights w = {.K = c->config.kv_heads};
    for (int r = 0; r < ROLE_COUNT; r++)
        for (size_t l = 0; l < role_layers(&c->config, (enum role)r) && l < L; l++)
            w.of[r][l] = floats_of(c, (enum role)r, l);
    return w;
}

static void weights_free(struct weights *w)
{
    for (int r = 0; r < ROLE_COUNT; r++)
        for (size_t l = 0; l < L; l++)
            free(w->of[r][l]);
}

/* y[rows] = W[rows, cols] x */
static void times(double *y, const float *w, const double *x, size_t rows, size_t cols)
{
    for (size_t i = 0; i < rows; i++) {
        y[i] = 0;
        for (size_t j = 0; j < cols; j++)
            y[i] += (double)w[i * cols + j] * x[j];
    }
}

static void norm(double *y, const double *x)
{
    double sum = 0;
    for (int i = 0; i < D; i++)
        sum += x[i] * x[i];
    for (int i = 0; i < D; i++)
        y[i] = x[i] / sqrt(sum / D + 1e-5);
}

static void rotate(double *x, size_t heads, size_t pos)
{
    for (size_t h = 0; h < heads; h++)
        for (size_t j = 0; j < E / 2; j++) {
            double angle = (double)pos * pow(5e5, -2.0 * (double)j / E);
            double *p = x + h * E + j, u = p[0], v = p[E / 2];
            p[0] = u * cos(angle) - v * sin(angle);
            p[E / 2] = v * cos(angle) + u * sin(angle);
        }
}

/* The values that a cache keeps for each position of a canvas. */
struct kept {
    double q[L][LEN][D], k[L][LEN][D], v[L][LEN][D], attn[L][LEN][D], ffn[L][LEN][D];
    int read[L][LEN]; /* 1: `sparse` keeps the position */
};
struct naive {
    const struct weights *w;
    const struct diffuse *how;
    size_t prompt, len;
    int32_t x[LEN];
    struct kept kept[2]; /* kept values of the canvas and of its unconditional twin */
    double logits[2][LEN][V];
    int64_t passes, rows, whole;
};

static void project(const struct naive *v, struct kept *k, size_t l, size_t p, const double *x)
{
    double n[D];
    norm(n, x);
    times(k->q[l][p], v->w->of[ROLE_Q][l], n, D, D);
    times(k->k[l][p], v->w->of[ROLE_K][l], n, v->w->K * E, D);
    times(k->v[l][p], v->w->of[ROLE_V][l], n, v->w->K * E, D);
    rotate(k->q[l][p], H, p);
    rotate(k->k[l][p], v->w->K, p);
}

/* Adds the attention of position p over the positions with seen[position]. */
static void attend(const struct naive *v, struct kept *k, size_t l, size_t p, const int *seen)
{
    double y[D] = {0};
    for (size_t h = 0; h < H; h++) {
        size_t at = h / (H / v->w->K) * E;
        double sum = 0;
        for (size_t j = 0; j < v->len; j++) {
            double score = 0;
            for (size_t e = 0; e < E; e++)
                score += k->q[l][p][h * E + e] * k->k[l][j][at + e];
            score = seen[j] ? exp(score / 4) : 0;
            sum += score;
            for (size_t e = 0; e < E; e++)
                y[h * E + e] += score * k->v[l][j][at + e];
        }
        for (size_t e = 0; e < E; e++)
            y[h * E + e] /= sum;
    }
    times(k->attn[l][p], v->w->of[ROLE_O][l], y, D, D);
}

static void feed(const struct naive *v, struct kept *k, size_t l, size_t p, const double *x)
{
    double n[D], g[F], u[F];
    norm(n, x);
    times(g, v->w->of[ROLE_GATE][l], n, F, D);
    times(u, v->w->of[ROLE_UP][l], n, F, D);
    for (int i = 0; i < F; i++)
        g[i] = g[i] / (1 + exp(-g[i])) * u[i];
    times(k->ffn[l][p], v->w->of[ROLE_DOWN][l], g, D, F);
}

/* ---- features ---- */

static size_t taken(const struct naive *v)
{
    size_t n = (size_t)ceil(v->how->kept.update * (double)(v->len - v->prompt));
    return n ? n : 1;
}

/* Chooses the slots whose new values differ most from the kept ones; keeps the new values at
 * once. */
static void choose(const struct naive *v, struct kept *k, size_t l, double x[LEN][D], int *chosen)
{
    double alike[LEN], n[D], now[D];
    size_t KE = v->w->K * E, take = taken(v);
    for (size_t p = v->prompt; p < v->len; p++) {
        double dot = 0, a = 0, b = 0, *old = k->v[l][p];
        norm(n, x[p]);
        times(now, v->w->of[ROLE_V][l], n, KE, D);
        for (size_t i = 0; i < KE; i++) {
            dot += now[i] * old[i], a += now[i] * now[i], b += old[i] * old[i];
            old[i] = now[i];
        }
        alike[p] = dot / sqrt(a * b);
        chosen[p] = 0;
    }
    for (; take; take--) {
        size_t best = LEN;
        for (size_t p = v->prompt; p < v->len; p++)
            if (!chosen[p] && (best == LEN || alike[p] < alike[best]))
                best = p;
        chosen[best] = 1;
    }
}

/* ---- sparse ---- */

static void sift(const struct naive *v, struct kept *k, size_t l, size_t s, size_t e)
{
    double score[LEN], pooled[LEN];
    size_t at[LEN], n = 0;
    for (size_t p = 0; p < v->len; p++) {
        k->read[l][p] = p >= s && p < e;
        if (k->read[l][p])
            continue;
        score[n] = 0;
        for (size_t q = s; q < e; q++)
            for (size_t h = 0; h < H; h++)
                for (size_t i = 0; i < E; i++)
                    score[n] += k->q[l][q][h * E + i] * k->k[l][p][h / (H / v->w->K) * E + i];
        at[n++] = p;
    }
    for (size_t j = 0; j < n; j++) {
        pooled[j] = score[j];
        pooled[j] = j ? fmax(pooled[j], score[j - 1]) : pooled[j];
        pooled[j] = j + 1 < n ? fmax(pooled[j], score[j + 1]) : pooled[j];
    }
    for (size_t take = (size_t)ceil(v->how->kept.keep * (double)n); take; take--) {
        size_t best = LEN;
        for (size_t j = 0; j < n; j++)
            if (!k->read[l][at[j]] && (best == LEN || pooled[j] > pooled[best]))
                best = j;
        k->read[l][at[best]] = 1;
    }
}

/* ---- a pass ---- */

struct naive_pass {
    size_t from, to; /* positions of the pass */
    int some;        /* 1: `features` computes a part of the slots; a whole prompt stays whole */
    int sifts;
    size_t s, e;     /* the block: slots s..e-1 */
};

static void layer(const struct naive *v, struct kept *k, size_t l, const struct naive_pass *p,
                  double x[LEN][D])
{
    int chosen[LEN], all[LEN];
    for (size_t j = 0; j < v->len; j++)
        chosen[j] = all[j] = 1;
    if (p->some && l)
        choose(v, k, l, x, chosen);
    for (size_t j = p->from; j < p->to; j++)
        if (chosen[j])
            project(v, k, l, j, x[j]);
    const int *seen = v->how->cache == CACHE_SPARSE && !p->sifts ? k->read[l] : all;
    for (size_t j = p->from; j < p->to; j++)
        if (chosen[j])
            attend(v, k, l, j, seen);
    if (p->sifts)
        sift(v, k, l, p->s, p->e);
    for (size_t j = p->from; j < p->to; j++) {
        for (int i = 0; i < D; i++)
            x[j][i] += k->attn[l][j][i];
        if (chosen[j])
            feed(v, k, l, j, x[j]);
        for (int i = 0; i < D; i++)
            x[j][i] += k->ffn[l][j][i];
    }
}

static void look(struct naive *v, int twin, const struct naive_pass *p)
{
    double x[LEN][D], n[D];
    for (size_t j = 0; j < v->len; j++)
        for (int i = 0; i < D; i++)
            x[j][i] = (double)v->w->of[ROLE_EMBED][0]
                                          [(twin && j < v->prompt ? MASK : v->x[j]) * D + i];
    for (size_t l = 0; l < L; l++)
        layer(v, &v->kept[twin], l, p, x);
    for (size_t j = p->from; j < p->e; j++)
        if (v->x[j] == MASK) {
            norm(n, x[j]);
            times(v->logits[twin][j], v->w->of[ROLE_HEAD][0], n, V, D);
        }
    v->rows += (int64_t)(p->to - p->from - (p->some ? v->len - v->prompt - taken(v) : 0));
    v->whole += (int64_t)(p->to - p->from);
}

static int due(const struct naive *v, int32_t every)
{
    return every ? v->passes % every == 0 : v->passes == 0;
}

static struct naive_pass pass_of(const struct naive *v, size_t s, size_t e, int step)
{
    const struct cache_params *c = &v->how->kept;
    struct naive_pass p = {.to = v->len, .s = s, .e = e};
    if (v->how->cache == CACHE_FEATURES) {
        p.from = due(v, c->prompt_refresh) ? 0 : v->prompt;
        p.some = !due(v, c->response_refresh);
    } else if (step <= c->keep_delay) {
        p.sifts = 1;
    } else {
        p.from = s;
        p.to = e;
    }
    return p;
}

/* Makes the best masked slots below e final: `most` slots, or (most 0) all slots that reach the
 * threshold, and at least one. */
static void commit(struct naive *v, size_t e, size_t most)
{
    double sure[LEN], w = v->how->cfg_scale;
    int32_t id[LEN];
    for (size_t p = v->prompt; p < e; p++) {
        double best = -INFINITY, sum = 0, l[V];
        sure[p] = -1;
        if (v->x[p] != MASK)
            continue;
        for (int i = 0; i < V; i++) {
            double u = v->logits[1][p][i], c = v->logits[0][p][i];
            l[i] = w > 0 ? u + (1 + w) * (c - u) : c;
            id[p] = l[i] > best ? i : id[p];
            best = fmax(best, l[i]);
        }
        for (int i = 0; i < V; i++)
            sum += exp(l[i] - best);
        sure[p] = 1 / sum;
    }
    for (size_t t = 0; t < (most ? most : LEN); t++) {
        size_t best = v->prompt;
        for (size_t p = v->prompt; p < e; p++)
            best = sure[p] > sure[best] ? p : best;
        if (sure[best] < 0 || (!most && t && sure[best] < v->how->unmask.threshold))
            return;
        v->x[best] = id[best];
        sure[best] = -1;
    }
}

static void naive_run(struct naive *v, const struct generation_input *in)
{
    const struct diffuse *d = v->how;
    size_t blocks = d->gen_length / d->block_length;
    size_t most = d->rule == UNMASK_THRESHOLD ? 0 : d->block_length / (d->steps / blocks);
    v->prompt = in->n;
    v->len = in->n + d->gen_length;
    for (size_t p = 0; p < v->len; p++)
        v->x[p] = p < in->n ? in->ids[p] : MASK;
    for (size_t b = 0; b < blocks; b++) {
        size_t s = v->prompt + b * d->block_length, e = s + d->block_length, masks = 1;
        for (int step = 0; masks; step++) {
            const struct naive_pass p = pass_of(v, s, e, step);
            look(v, 0, &p);
            if (d->cfg_scale > 0)
                look(v, 1, &p);
            v->passes++;
            commit(v, e, most);
            masks = 0;
            for (size_t j = s; j < e; j++)
                masks += v->x[j] == MASK;
        }
    }
}
