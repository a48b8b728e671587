/* RWKV 6 and 7 as mixers of a network: what their papers define, written out here token by token in
 * double, against the network (all rows at once, and one after the other) and the forward pass of
 * training, on cpu and on ref, with weights that went through a checkpoint; and every gradient against
 * differences of that definition, where a step as small as it has to be says something still.
 * Latents are zeros: what layers read of them is nothing. */
#include <math.h>

#include "kernels/wkv.h"
#include "lib/network/forward.h"
#include "lib/network/latent.h"
#include "lib/train/backprop.h"
#include "tests/model/planted.h"

enum { L = 2, D = 64, H = 4, E = 16, R = 32, V = 512, LEN = 45, SHORT = 21, ROOM = 1 << 15 };
static char folder[] = "/tmp/crossover-test-mixing-XXXXXX";

/* Larger weights than networks begin with, so that every part counts. */
static void plant(const struct config *c, enum role r, size_t layer, float *v)
{
    size_t rows, cols;
    role_shape(c, r, &rows, &cols);
    for (size_t i = 0; i < rows * cols; i++) {
        if (r == ROLE_DECAY)
            v[i] = (float)(c->mixer == MIXER_RWKV6 ? 20 * v[i] - 1.5 : 20 * v[i] - 1);
        else if (role_is_norm(r))
            v[i] = 1 + 0.1f * (float)((i + layer) % 5);
        else
            v[i] = cols == 1 ? 0.4f + 6 * v[i] : r == ROLE_EMBED ? 4 * v[i] : 3 * v[i];
    }
}

/* ---- the definition ---- */

struct naive {
    double *w[ROLE_COUNT][L];
    double S[L][H][E][E], before[L][D], first[D], room[ROOM];
    size_t used, layers;
    enum mixer mixer;
    double eps;
};

static double *take(struct naive *m, size_t n)
{
    double *p = m->room + m->used;
    m->used += n;
    if (m->used > ROOM)
        exit(1);
    return p;
}

/* W x, of rows outputs and cols inputs. */
static double *times(struct naive *m, enum role r, size_t l, const double *x, size_t rows,
                     size_t cols)
{
    double *y = take(m, rows);
    for (size_t i = 0; i < rows; i++) {
        y[i] = 0;
        for (size_t k = 0; k < cols; k++)
            y[i] += m->w[r][l][i * cols + k] * x[k];
    }
    return y;
}

static double logistic(double x)
{
    return 1 / (1 + exp(-x));
}

static double *norm(struct naive *m, enum role r, size_t l, const double *x)
{
    double sum = 0, *y = take(m, D);
    for (size_t d = 0; d < D; d++)
        sum += x[d] * x[d];
    for (size_t d = 0; d < D; d++)
        y[d] = x[d] / sqrt(sum / D + m->eps) * m->w[r][l][d];
    return y;
}

/* UP f(DOWN x), f: 0 nothing, 1 tanh, 2 logistic. */
static double *lora(struct naive *m, enum role down, enum role up, size_t l, const double *x,
                    size_t rows, int f)
{
    double *low = times(m, down, l, x, R, D);
    for (size_t i = 0; i < R; i++)
        low[i] = f == 1 ? tanh(low[i]) : f == 2 ? logistic(low[i]) : low[i];
    return times(m, up, l, low, rows, R);
}

/* x + (before - x) * (the layer's share + add). */
static double *lerp(struct naive *m, enum role share, size_t l, const double *x, const double *add)
{
    double *y = take(m, D);
    for (size_t d = 0; d < D; d++)
        y[d] = x[d] + (m->before[l][d] - x[d]) * (m->w[share][l][d] + (add ? add[d] : 0));
    return y;
}

/* GroupNorm of the heads of o, in place. */
static void group_norm(struct naive *m, size_t l, double *o)
{
    for (size_t h = 0; h < H; h++) {
        double mean = 0, var = 0;
        for (size_t e = 0; e < E; e++)
            mean += o[h * E + e] / E;
        for (size_t e = 0; e < E; e++)
            var += pow(o[h * E + e] - mean, 2) / E;
        for (size_t e = 0; e < E; e++)
            o[h * E + e] = (o[h * E + e] - mean) / sqrt(var + 64e-5) *
                               m->w[ROLE_HEADS_GAIN][l][h * E + e] +
                           m->w[ROLE_HEADS_BIAS][l][h * E + e];
    }
}

static double *mix6(struct naive *m, size_t l, const double *x)
{
    double *p = lerp(m, ROLE_SHIFT_X, l, x, NULL), *in[5], *o = take(m, D);
    for (int i = 0; i < 5; i++)
        in[i] = lerp(m, (enum role)(ROLE_SHIFT_R + i), l, x,
                     lora(m, (enum role)(ROLE_LERP_DOWN_R + i), (enum role)(ROLE_LERP_UP_R + i), l,
                          p, D, 1));
    double *r = times(m, ROLE_Q, l, in[0], D, D), *k = times(m, ROLE_K, l, in[2], D, D);
    double *v = times(m, ROLE_V, l, in[3], D, D), *g = times(m, ROLE_MIX_GATE, l, in[4], D, D);
    double *w = lora(m, ROLE_DECAY_DOWN, ROLE_DECAY_UP, l, in[1], D, 1);
    for (size_t h = 0; h < H; h++)
        for (size_t j = 0; j < E; j++) {
            double sum = 0;
            for (size_t i = 0; i < E; i++) {
                size_t c = h * E + i;
                double *s = &m->S[l][h][i][j], kv = k[c] * v[h * E + j];
                sum += r[c] * (*s + m->w[ROLE_BONUS][l][c] * kv);
                *s = exp(-exp(m->w[ROLE_DECAY][l][c] + w[c])) * *s + kv;
            }
            o[h * E + j] = sum;
        }
    group_norm(m, l, o);
    for (size_t d = 0; d < D; d++)
        o[d] *= g[d] * logistic(g[d]);
    return times(m, ROLE_O, l, o, D, D);
}

static double softplus(double x)
{
    return log(1 + exp(x));
}

static double *mix7(struct naive *m, size_t l, const double *x)
{
    double *in[6], *o = take(m, D), *kappa = take(m, D);
    for (int i = 0; i < 6; i++)
        in[i] = lerp(m, (enum role)(ROLE_SHIFT_R + i), l, x, NULL);
    double *r = times(m, ROLE_Q, l, in[0], D, D), *k = times(m, ROLE_K, l, in[2], D, D);
    double *v = times(m, ROLE_V, l, in[3], D, D);
    double *w = lora(m, ROLE_DECAY_DOWN, ROLE_DECAY_UP, l, in[1], D, 1);
    double *share = lora(m, ROLE_FIRST_DOWN, ROLE_FIRST_UP, l, in[3], D, 0);
    double *a = lora(m, ROLE_RATE_DOWN, ROLE_RATE_UP, l, in[5], D, 0);
    double *g = lora(m, ROLE_GATE_DOWN, ROLE_GATE_UP, l, in[4], D, 2);
    for (size_t d = 0; d < D; d++) {
        w[d] = exp(-exp(-softplus(-(m->w[ROLE_DECAY][l][d] + w[d])) - 0.5));
        a[d] = logistic(m->w[ROLE_RATE][l][d] + a[d]);
        if (l)
            v[d] += (m->first[d] - v[d]) * logistic(m->w[ROLE_FIRST][l][d] + share[d]);
        else
            m->first[d] = v[d];
        kappa[d] = k[d] * m->w[ROLE_KEY_SCALE][l][d];
        k[d] *= 1 + (a[d] - 1) * m->w[ROLE_KEY_RATE][l][d];
    }
    for (size_t h = 0; h < H; h++) {
        double length = 0;
        for (size_t c = h * E; c < (h + 1) * E; c++)
            length += kappa[c] * kappa[c];
        for (size_t j = 0; j < E; j++) {
            double removed = 0, sum = 0;
            for (size_t i = 0; i < E; i++)
                removed -= kappa[h * E + i] / sqrt(length) * m->S[l][h][i][j];
            for (size_t i = 0; i < E; i++) {
                size_t c = h * E + i;
                double *s = &m->S[l][h][i][j];
                *s = w[c] * *s + kappa[c] / sqrt(length) * a[c] * removed + k[c] * v[h * E + j];
                sum += r[c] * *s;
            }
            o[h * E + j] = sum;
        }
    }
    group_norm(m, l, o);
    for (size_t d = 0; d < D; d++) {
        double bonus = 0;
        for (size_t c = d / E * E; c < (d / E + 1) * E; c++)
            bonus += r[c] * k[c] * m->w[ROLE_BONUS][l][c];
        o[d] = (o[d] + bonus * v[d]) * g[d];
    }
    return times(m, ROLE_O, l, o, D, D);
}

static void add(double *x, const double *y)
{
    for (size_t d = 0; d < D; d++)
        x[d] += y[d];
}

static void feed(struct naive *m, size_t l, double *x, size_t ffn)
{
    double *n = norm(m, ROLE_FFN_NORM, l, x);
    double *gate = times(m, ROLE_GATE, l, n, ffn, D), *up = times(m, ROLE_UP, l, n, ffn, D);
    for (size_t f = 0; f < ffn; f++)
        gate[f] *= logistic(gate[f]) * up[f];
    add(x, times(m, ROLE_DOWN, l, gate, D, ffn));
}

/* out[i] = log p(ids[i + 1] | ids[0 .. i]), of len ids. */
static void by_definition(struct naive *m, size_t ffn, const int32_t *ids, size_t len, double *out)
{
    memset(m->S, 0, sizeof m->S);
    memset(m->before, 0, sizeof m->before);
    for (size_t t = 0; t + 1 < len; t++) {
        m->used = 0;
        double *x = take(m, D), sum = 0;
        for (size_t d = 0; d < D; d++)
            x[d] = m->w[ROLE_EMBED][0][(size_t)ids[t] * D + d];
        for (size_t l = 0; l < L; l++) {
            double *n = norm(m, ROLE_ATTN_NORM, l, x);
            add(x, m->mixer == MIXER_RWKV6 ? mix6(m, l, n) : mix7(m, l, n));
            memcpy(m->before[l], n, sizeof m->before[l]);
            feed(m, l, x, ffn);
        }
        double *logit = times(m, ROLE_HEAD, 0, norm(m, ROLE_NORM, 0, x), V, D);
        for (size_t v = 0; v < V; v++)
            sum += exp(logit[v]);
        out[t] = logit[ids[t + 1]] - log(sum);
    }
}

static struct naive *read_naive(const struct checkpoint *c)
{
    struct naive *m = mem_zero(1, sizeof *m);
    m->mixer = c->config.mixer;
    m->eps = c->config.norm_eps;
    for (int r = 0; r < ROLE_COUNT; r++)
        for (size_t l = 0; l < role_layers(&c->config, (enum role)r); l++) {
            size_t rows, cols;
            role_shape(&c->config, (enum role)r, &rows, &cols);
            float *w = mem_alloc(rows * cols * sizeof *w);
            checkpoint_floats(c, (enum role)r, l, w);
            m->w[r][l] = mem_alloc(rows * cols * sizeof(double));
            for (size_t i = 0; i < rows * cols; i++)
                m->w[r][l][i] = w[i];
            free(w);
        }
    if (c->config.tied) {
        free(m->w[ROLE_HEAD][0]);
        m->w[ROLE_HEAD][0] = m->w[ROLE_EMBED][0];
    }
    return m;
}

static void free_naive(struct naive *m)
{
    if (m->w[ROLE_HEAD][0] == m->w[ROLE_EMBED][0])
        m->w[ROLE_HEAD][0] = NULL;
    for (int r = 0; r < ROLE_COUNT; r++)
        for (size_t l = 0; l < L; l++)
            free(m->w[r][l]);
    free(m);
}

/* ---- the network ---- */

/* The same, `part` rows a pass. */
static void by_network(const struct network *n, const int32_t *ids, size_t part,
                       enum wkv_form form, double *out)
{
    const struct work_size size = {.rows = part, .seqs = 1, .slots = 1, .listed = 1,
                                   .wanted = part, .cached = 1, .latent = 1,
                                   .how = {.wkv = form}};
    float *z = mem_zero(latent_values(&n->config), sizeof *z);
    struct kv kv;
    struct latents latents;
    struct work *w = work_make(n, &size);
    int32_t pos[LEN], rows[LEN], slot[LEN] = {0};
    struct head_row answer[LEN];
    if (!w || kv_make(&kv, n, 1) || latent_make(&latents, n, 1))
        exit(1);
    latent_set(&latents, n, 0, z, n->config.latents * n->config.width);
    kv.latents = &latents;
    for (size_t t = 0; t < LEN; t++)
        pos[t] = rows[t] = (int32_t)t;
    for (size_t t = 0; t + 1 < LEN; t += part) {
        size_t some = t + part < LEN ? part : LEN - 1 - t;
        const struct forward_seq seq = {some, slot, 1, 0};
        const struct forward f = {.token = ids + t, .pos = pos + t, .slot = slot, .seqs = &seq,
                                  .n_seqs = 1, .mask = MASK_CAUSAL, .wanted = rows,
                                  .n_wanted = some, .query = {.target = ids + t + 1}};
        forward(n, &kv, w, &f, answer, NULL);
        for (size_t i = 0; i < some; i++)
            out[t + i] = answer[i].target_log_prob;
    }
    latent_free(&latents, n);
    kv_free(&kv, n);
    work_free(w, n);
    free(z);
}

static double by_training(const struct network *n, const int32_t *ids)
{
    struct parameters *p = parameters_read(n);
    struct backprop *t = backprop_make(p, LEN, 1, DTYPE_F32);
    float *z = mem_zero(latent_values(&n->config), sizeof *z), weight[LEN];
    for (size_t i = 0; i < LEN; i++)
        weight[i] = 1;
    const struct train_batch b = {.seqs = 1, .len = LEN - 1, .token = (int32_t *)(uintptr_t)ids,
                                  .target = (int32_t *)(uintptr_t)(ids + 1), .weight = weight,
                                  .z = z};
    double nats = backprop_loss(t, &b, BACKPROP_LOSS);
    backprop_free(t);
    parameters_free(p);
    free(z);
    return nats;
}

static double apart(const double *x, const double *y)
{
    double far = 0;
    for (size_t t = 0; t + 1 < LEN; t++)
        far = fmax(far, fabs(x[t] - y[t]));
    return far;
}

static void compare(const struct checkpoint *c, const char *device, const int32_t *ids,
                    const double *truth)
{
    struct backend *b = backend_open(device, NULL, 2, 0, NULL);
    const struct precision p = {.dtype = "f32"};
    const char *name = config_mixer_name(c->config.mixer);
    struct err e = {0};
    struct network n;
    double whole[LEN], single[LEN], parts[LEN], forms[2][LEN], sum = 0;
    if (network_load(&n, b, c, &p, &e)) {
        printf("Bail out! %s\n", e.text);
        exit(1);
    }
    by_network(&n, ids, LEN - 1, WKV_AUTO, whole);
    by_network(&n, ids, 1, WKV_AUTO, single);
    by_network(&n, ids, 17, WKV_AUTO, parts);
    by_network(&n, ids, LEN - 1, WKV_RECURRENT, forms[0]);
    by_network(&n, ids, LEN - 1, WKV_CHUNKED, forms[1]);
    ok(apart(whole, truth) < 1e-4, "%s on %s is what its paper defines: %.1e nats apart", name,
       device, apart(whole, truth));
    ok(apart(whole, single) < 1e-5 && apart(whole, parts) < 1e-5,
       "%s on %s: rows at once, in parts and one by one: %.1e and %.1e nats apart", name, device,
       apart(whole, parts), apart(whole, single));
    ok(apart(forms[0], truth) < 1e-4 && apart(forms[1], truth) < 1e-4 &&
           (!strcmp(device, "ref") || apart(forms[0], forms[1]) > 0),
       "%s on %s: recurrent %.1e and chunked %.1e nats apart from it", name, device,
       apart(forms[0], truth), apart(forms[1], truth));
    for (size_t t = 0; t + 1 < LEN; t++)
        sum -= truth[t];
    double trained = b->ops->train ? by_training(&n, ids) : sum;
    ok(fabs(trained - sum) < 1e-5 * sum, "%s: %.5f nats by training, %.5f by definition", name,
       trained, sum);
    network_free(&n);
    backend_close(b);
}

/* ---- gradients ---- */

/* The parameters of a checkpoint with their gradients, and what is made of a batch. */
struct learner {
    struct parameters *p;
    struct backprop *t;
    struct train_batch batch;
};

static void make_learner(struct learner *w, struct backend *b, const struct checkpoint *c,
                         const int32_t *ids)
{
    w->p = parameters_make(&c->config, b, b->ops->train, 1);
    w->t = w->p ? backprop_make(w->p, SHORT, 1, DTYPE_F32) : NULL;
    if (!w->t)
        exit(1);
    for (int r = 0; r < ROLE_COUNT; r++)
        for (size_t l = 0; l < role_layers(&c->config, (enum role)r); l++)
            checkpoint_floats(c, (enum role)r, l, parameters_values(w->p, (enum role)r, l));
    float *weight = mem_alloc(SHORT * sizeof *weight);
    for (size_t i = 0; i < SHORT; i++)
        weight[i] = 1;
    w->batch = (struct train_batch){
        .seqs = 1, .len = SHORT - 1, .token = (int32_t *)(uintptr_t)ids,
        .target = (int32_t *)(uintptr_t)(ids + 1), .weight = weight,
        .z = mem_zero(c->config.layers * c->config.latents * c->config.width, sizeof(float))};
    backprop_loss(w->t, &w->batch, BACKPROP_PARAMETERS);
}

static void free_learner(struct learner *w)
{
    free(w->batch.weight);
    free((void *)(uintptr_t)w->batch.z);
    backprop_free(w->t);
    parameters_free(w->p);
}

static double nats(struct naive *m, size_t ffn, const int32_t *ids)
{
    double out[LEN], sum = 0;
    by_definition(m, ffn, ids, SHORT, out);
    for (size_t t = 0; t + 1 < SHORT; t++)
        sum -= out[t];
    return sum;
}

/* How the definition's loss changes along u[n], a unit vector of these values. */
static double slope_along(struct naive *m, size_t ffn, const int32_t *ids, double *w,
                          const double *u, size_t n)
{
    const double h = 1e-4;
    double side[2], *old = mem_alloc(n * sizeof *old);
    memcpy(old, w, n * sizeof *old);
    for (int s = 0; s < 2; s++) {
        for (size_t i = 0; i < n; i++)
            w[i] = old[i] + (s ? -h : h) * u[i];
        side[s] = nats(m, ffn, ids);
    }
    memcpy(w, old, n * sizeof *old);
    free(old);
    return (side[0] - side[1]) / (2 * h);
}

/* u = g / |g|, or a direction drawn by lot. */
static void direct(double *u, const float *g, size_t n, struct rng *rng)
{
    double size = 0;
    for (size_t i = 0; i < n; i++) {
        u[i] = rng ? rng_normal(rng) : g[i];
        size += u[i] * u[i];
    }
    for (size_t i = 0; i < n; i++)
        u[i] /= sqrt(size);
}

/* Along the gradient and along ways drawn by lot, which see what lies across it: the most that the
 * slope is off, as a share of the gradient. Of an error as long as e, a way by lot through n values
 * sees e / sqrt(n). */
static double off_role(const struct checkpoint *c, struct naive *m, const int32_t *ids,
                       const struct learner *w, enum role r, size_t l)
{
    enum { WAYS = 3 };
    size_t rows, cols;
    role_shape(&c->config, r, &rows, &cols);
    size_t n = rows * cols;
    const float *g = parameters_gradients(w->p, r, l);
    struct rng rng = {3, (uint64_t)r << 32 | l, 0};
    double norm = 0, most = 0, *u = mem_alloc(n * sizeof *u);
    for (size_t i = 0; i < n; i++)
        norm += (double)g[i] * g[i];
    norm = sqrt(norm);
    for (int way = norm > 0 ? 0 : 1; way < WAYS; way++) {
        direct(u, g, n, way ? &rng : NULL);
        double want = slope_along(m, c->config.ffn, ids, m->w[r][l], u, n), got = 0;
        for (size_t i = 0; i < n; i++)
            got += g[i] * u[i];
        double off = fabs(want - got) * (way ? sqrt((double)n) : 1);
        most = fmax(most, norm > 0 ? off / norm : off > 1e-6 ? (double)INFINITY : 0);
    }
    free(u);
    return most;
}

static void gradients(const struct checkpoint *c, struct naive *m, const int32_t *ids)
{
    struct backend *b = backend_open("cpu", NULL, 2, 0, NULL);
    struct learner w;
    size_t held = 0;
    double most = 0;
    const char *worst = "";
    make_learner(&w, b, c, ids);
    for (int r = 0; r < ROLE_COUNT; r++)
        for (size_t l = 0; l < role_layers(&c->config, (enum role)r); l++, held++) {
            double off = off_role(c, m, ids, &w, (enum role)r, l);
            worst = off > most ? role_name((enum role)r) : worst;
            most = isnan(off) ? (double)INFINITY : fmax(most, off);
        }
    ok(held > 40 && most < 2e-4, "%s: gradients of %zu tensors by differences in double, off by "
       "%.1e of themselves at most (%s)", config_mixer_name(c->config.mixer), held, most, worst);
    free_learner(&w);
    backend_close(b);
}

static void mixer(const char *shape)
{
    struct err e = {0};
    struct checkpoint c;
    int32_t ids[LEN];
    double truth[LEN];
    for (size_t t = 0; t < LEN; t++)
        ids[t] = (int32_t)(t * t * 37 % 500);
    planted_save((struct planted){.shape = shape, .plant = plant}, folder);
    if (checkpoint_open(&c, folder, 0, &e)) {
        printf("Bail out! %s\n", e.text);
        exit(1);
    }
    struct naive *m = read_naive(&c);
    by_definition(m, c.config.ffn, ids, LEN, truth);
    compare(&c, "cpu", ids, truth);
    compare(&c, "ref", ids, truth);
    gradients(&c, m, ids);
    free_naive(m);
    checkpoint_close(&c);
}

int main(void)
{
    if (!mkdtemp(folder)) {
        printf("Bail out! no folder in /tmp\n");
        return 1;
    }
    mixer("tiny-ltm-rwkv6");
    mixer("tiny-ltm-rwkv7");
    planted_forget(folder);
    return tap_done();
}
