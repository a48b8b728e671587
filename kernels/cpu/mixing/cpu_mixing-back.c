/* cpu_mixing-back.c - gradients of the operations around time mixing (kernels/mixing.h).
 * Gradients of the layer's own vectors are sums over rows, so a thread owns some columns, or a
 * head, of all rows. Each sum then has one owner and one order, and training repeats bit for bit
 * at any number of threads. */
#include "kernels/cpu/cpu.h"
#include "kernels/cpu/mixing/cpu_mixing.h"

/* Columns d .. d + n - 1 of row t. old: the row before it, or zeros. */
static void shift_row_back(const struct shift_back *a, size_t t, size_t d, size_t n,
                           const float *old, int is_first)
{
    const struct shift *f = a->of;
    const size_t at = t * f->D + d;
    for (size_t i = 0; i < f->n; i++)
        for (size_t j = 0; j < n; j++) {
            const float g = a->d[i][at + j];
            const float m = f->share[i][d + j] + (f->more[i] ? f->more[i][at + j] : 0);
            const float dm = g * (old[j] - f->x[at + j]);
            a->dx[at + j] += g * (1 - m);
            if (!is_first)
                a->dx[at - f->D + j] += g * m;
            if (a->dshare[i])
                a->dshare[i][d + j] += dm;
            if (f->more[i])
                a->d[i][at + j] = dm;
        }
}

static void shift_columns_back(void *ctx, size_t begin, size_t end, size_t worker)
{
    (void)worker;
    static const float zeros[MIXING_COLUMNS];
    const struct shift_back *a = ctx;
    const struct shift *f = a->of;
    for (size_t s = 0; s < f->n_seqs; s++) {
        const size_t first = (size_t)f->seqs[s].row_begin, rows = (size_t)f->seqs[s].rows;
        for (size_t c = begin; c < end; c++) {
            const size_t d = c * MIXING_COLUMNS, n = mixing_columns(f->D, c);
            for (size_t t = first; t < first + rows; t++)
                shift_row_back(a, t, d, n, t > first ? f->x + (t - 1) * f->D + d : zeros,
                               t == first);
        }
    }
}

void CPU(shift_back)(struct backend *b, const struct shift_back *a)
{
    const struct shift *f = a->of;
    pool_run(b->pool, mixing_blocks(f->D), grain(MIXING_COLUMNS * f->T * f->n),
             shift_columns_back, (void *)(uintptr_t)a);
}

/* df/dx at f(x) = y. */
INLINE float slope(float y, enum squash_by by)
{
    switch (by) {
    case SQUASH_TANH: return 1 - y * y;
    case SQUASH_LOGISTIC: return y * (1 - y);
    case SQUASH_DECAY6: return y;
    default: return y * (1 + y / SQUASH_SLOWEST);
    }
}

static void squash_columns_back(void *ctx, size_t begin, size_t end, size_t worker)
{
    (void)worker;
    const struct squash_back *a = ctx;
    for (size_t c = begin; c < end; c++) {
        const size_t first = c * MIXING_COLUMNS, last = first + mixing_columns(a->n, c);
        for (size_t t = 0; t < a->T; t++)
            for (size_t i = first; i < last; i++) {
                const float d = a->d[t * a->n + i] *= slope(a->y[t * a->n + i], a->by);
                if (a->dbase)
                    a->dbase[i] += d;
            }
    }
}

void CPU(squash_back)(struct backend *b, const struct squash_back *a)
{
    pool_run(b->pool, mixing_blocks(a->n), grain(4 * MIXING_COLUMNS * a->T), squash_columns_back,
             (void *)(uintptr_t)a);
}

/* y = n gate(g), n = gain x + bias + c v, x = (o - mean) scale: with dx = gain dn,
 * do = scale (dx - mean(dx) - x mean(dx x)). */
static void out_head_back(const struct heads_out_back *a, size_t at, size_t column)
{
    const struct heads_out *f = a->of;
    const size_t E = f->head_dim;
    const struct head_norm norm = mixing_norm(f->o + at, E);
    const float c = mixing_bonus(f, at, column);
    double sum = 0, dot = 0;
    for (size_t e = 0; e < E; e++) {
        const float x = (f->o[at + e] - norm.mean) * norm.scale, g = f->gate[at + e];
        const float n = f->gain[column + e] * x + f->bias[column + e] +
                        (f->weight ? c * f->v[at + e] : 0);
        const float s = f->weight ? 1 : 1 / (1 + expf(-g)), dy = a->dy[at + e];
        const float dn = dy * (f->weight ? g : g * s);
        a->dgate[at + e] = dy * n * (f->weight ? 1 : s * (1 + g * (1 - s)));
        a->dy[at + e] = dn;
        if (a->dgain) {
            a->dgain[column + e] += dn * x;
            a->dbias[column + e] += dn;
        }
        sum += (double)dn * f->gain[column + e];
        dot += (double)dn * f->gain[column + e] * x;
    }
    for (size_t e = 0; e < E; e++) {
        const float x = (f->o[at + e] - norm.mean) * norm.scale;
        const float dx = a->dy[at + e] * f->gain[column + e];
        const float pull = (float)(sum / (double)E) + x * (float)(dot / (double)E);
        a->d_o[at + e] = norm.scale * (dx - pull);
    }
}

static void out_heads_back(void *ctx, size_t begin, size_t end, size_t worker)
{
    (void)worker;
    const struct heads_out_back *a = ctx;
    const size_t E = a->of->head_dim, HE = a->of->heads * E;
    for (size_t h = begin; h < end; h++)
        for (size_t t = 0; t < a->of->T; t++)
            out_head_back(a, t * HE + h * E, h * E);
}

void CPU(heads_out_back)(struct backend *b, const struct heads_out_back *a)
{
    pool_run(b->pool, a->of->heads, grain(32 * a->of->head_dim * a->of->T), out_heads_back,
             (void *)(uintptr_t)a);
}

/* The bonus c v, c = sum r k weight: with dc = sum dn v,
 * dr = dc k weight, dk = dc r weight, dv = dn c. */
static void bonus_back(const struct removal_back *a, size_t at, size_t column)
{
    const size_t E = a->of->head_dim;
    const float *r = a->r + at, *k = a->k + at, *v = a->v + at, *dn = a->dn + at;
    const float *weight = a->weight + column;
    double c = 0, dc = 0;
    for (size_t e = 0; e < E; e++) {
        c += (double)r[e] * k[e] * weight[e];
        dc += (double)dn[e] * v[e];
    }
    const float by = (float)c, d = (float)dc;
    for (size_t e = 0; e < E; e++) {
        a->dr[at + e] += d * k[e] * weight[e];
        a->dk[at + e] += d * r[e] * weight[e];
        a->dv[at + e] += dn[e] * by;
        if (a->dweight)
            a->dweight[column + e] += d * r[e] * k[e];
    }
}

/* kappa = u / |u|, u = k scale: du = (dkappa - kappa (kappa dkappa)) / |u|. */
static void removal_head_back(const struct removal_back *a, size_t at, size_t column)
{
    const struct removal *f = a->of;
    const size_t E = f->head_dim;
    const float *k = f->k + at, *rate = f->rate + at, *scale = f->scale + column;
    const float inverse = mixing_inverse(k, scale, E);
    double dot = 0;
    for (size_t e = 0; e < E; e++)
        dot += (double)(k[e] * scale[e] * inverse) * (a->db[at + e] * rate[e] - a->da[at + e]);
    for (size_t e = 0; e < E; e++) {
        const float kappa = k[e] * scale[e] * inverse, by = f->key_rate[column + e];
        const float dkappa = a->db[at + e] * rate[e] - a->da[at + e], dk = a->dk[at + e];
        const float du = (dkappa - kappa * (float)dot) * inverse;
        a->drate[at + e] = a->db[at + e] * kappa + dk * k[e] * by;
        if (a->dscale) {
            a->dscale[column + e] += du * k[e];
            a->dkey_rate[column + e] += dk * k[e] * (rate[e] - 1);
        }
        a->dk[at + e] = du * scale[e] + dk * (1 + (rate[e] - 1) * by);
    }
    for (size_t e = at; !f->first && a->dfirst && e < at + E; e++)
        a->dv[e] += a->dfirst[e];
    for (size_t e = at; f->first && e < at + E; e++) {
        const float dv = a->dv[e];
        a->dshare[e] = dv * (f->first[e] - f->v[e]);
        a->dfirst[e] += dv * f->share[e];
        a->dv[e] = dv * (1 - f->share[e]);
    }
}

static void removal_heads_back(void *ctx, size_t begin, size_t end, size_t worker)
{
    (void)worker;
    const struct removal_back *a = ctx;
    const size_t E = a->of->head_dim, HE = a->of->heads * E;
    for (size_t h = begin; h < end; h++)
        for (size_t t = 0; t < a->of->T; t++) {
            bonus_back(a, t * HE + h * E, h * E);
            removal_head_back(a, t * HE + h * E, h * E);
        }
}

void CPU(removal_back)(struct backend *b, const struct removal_back *a)
{
    pool_run(b->pool, a->of->heads, grain(64 * a->of->head_dim * a->of->T), removal_heads_back,
             (void *)(uintptr_t)a);
}
