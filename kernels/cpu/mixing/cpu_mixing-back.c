/* cpu_mixing-back.c - gradients of the operations around time mixing (kernels/mixing.h). Gradients
 * of the layer's own vectors are sums over rows, so a thread owns some columns, or a head, of all
 * rows. So one thread computes each sum, in one order, and training repeats bit for bit at any
 * number of threads. */
#include "kernels/cpu/cpu.h"
#include "kernels/cpu/mixing/cpu_mixing.h"

/* Gradients of columns column .. column + n - 1 of a row. old: the row before it, or zeros. */
static void shift_row_back(const struct shift_back *back, size_t row, size_t column, size_t n,
                           const float *old, int is_first)
{
    const struct shift *shift = back->of;
    const size_t at = row * shift->D + column;
    for (size_t i = 0; i < shift->n; i++)
        for (size_t j = 0; j < n; j++) {
            const float grad = back->d[i][at + j];
            const float mix = shift->share[i][column + j] +
                              (shift->more[i] ? shift->more[i][at + j] : 0);
            const float dm = grad * (old[j] - shift->x[at + j]);
            back->dx[at + j] += grad * (1 - mix);
            if (!is_first)
                back->dx[at - shift->D + j] += grad * mix;
            if (back->dshare[i])
                back->dshare[i][column + j] += dm;
            if (shift->more[i])
                back->d[i][at + j] = dm;
        }
}

static void shift_columns_back(void *ctx, size_t begin, size_t end, size_t worker)
{
    (void)worker;
    static const float zeros[MIXING_COLUMNS];
    const struct shift_back *back = ctx;
    const struct shift *shift = back->of;
    for (size_t sequence = 0; sequence < shift->n_seqs; sequence++) {
        const size_t first = (size_t)shift->seqs[sequence].row_begin,
                     rows = (size_t)shift->seqs[sequence].rows;
        for (size_t block = begin; block < end; block++) {
            const size_t column = block * MIXING_COLUMNS, n = mixing_columns(shift->D, block);
            for (size_t row = first; row < first + rows; row++)
                shift_row_back(back, row, column, n,
                               row > first ? shift->x + (row - 1) * shift->D + column : zeros,
                               row == first);
        }
    }
}

void CPU(shift_back)(struct backend *backend, const struct shift_back *back)
{
    const struct shift *shift = back->of;
    pool_run(backend->pool, mixing_blocks(shift->D), grain(MIXING_COLUMNS * shift->T * shift->n),
             shift_columns_back, (void *)(uintptr_t)back);
}

/* The derivative of f, from the value y of f. */
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
    const struct squash_back *back = ctx;
    for (size_t block = begin; block < end; block++) {
        const size_t first = block * MIXING_COLUMNS, last = first + mixing_columns(back->n, block);
        for (size_t row = 0; row < back->T; row++)
            for (size_t i = first; i < last; i++) {
                const float d = back->d[row * back->n + i] *= slope(back->y[row * back->n + i],
                                                                    back->by);
                if (back->dbase)
                    back->dbase[i] += d;
            }
    }
}

void CPU(squash_back)(struct backend *backend, const struct squash_back *back)
{
    pool_run(backend->pool, mixing_blocks(back->n), grain(4 * MIXING_COLUMNS * back->T),
             squash_columns_back, (void *)(uintptr_t)back);
}

/* The gradients of one head of y = n f(g), where n = gain x + bias + c v, x = (o - mean) scale, c v
 * is the bonus, and f(g) is g with a bonus, else silu(g). With dn = dy f(g) and dx = gain dn: do =
 * scale (dx - mean(dx) - x mean(dx x)). */
static void out_head_back(const struct heads_out_back *back, size_t at, size_t column)
{
    const struct heads_out *heads = back->of;
    const size_t E = heads->head_dim;
    const struct head_norm norm = mixing_norm(heads->o + at, E);
    const float bonus = mixing_bonus(heads, at, column);
    double sum = 0, dot = 0;
    for (size_t e = 0; e < E; e++) {
        const float x = (heads->o[at + e] - norm.mean) * norm.scale, gate = heads->gate[at + e];
        const float n = heads->gain[column + e] * x + heads->bias[column + e] +
                        (heads->weight ? bonus * heads->v[at + e] : 0);
        const float slope = heads->weight ? 1 : 1 / (1 + expf(-gate)), dy = back->dy[at + e];
        const float dn = dy * (heads->weight ? gate : gate * slope);
        back->dgate[at + e] = dy * n * (heads->weight ? 1 : slope * (1 + gate * (1 - slope)));
        back->dy[at + e] = dn;
        if (back->dgain) {
            back->dgain[column + e] += dn * x;
            back->dbias[column + e] += dn;
        }
        sum += (double)dn * heads->gain[column + e];
        dot += (double)dn * heads->gain[column + e] * x;
    }
    for (size_t e = 0; e < E; e++) {
        const float x = (heads->o[at + e] - norm.mean) * norm.scale;
        const float dx = back->dy[at + e] * heads->gain[column + e];
        const float pull = (float)(sum / (double)E) + x * (float)(dot / (double)E);
        back->d_o[at + e] = norm.scale * (dx - pull);
    }
}

static void out_heads_back(void *ctx, size_t begin, size_t end, size_t worker)
{
    (void)worker;
    const struct heads_out_back *back = ctx;
    const size_t E = back->of->head_dim, HE = back->of->heads * E;
    for (size_t head = begin; head < end; head++)
        for (size_t row = 0; row < back->of->T; row++)
            out_head_back(back, row * HE + head * E, head * E);
}

void CPU(heads_out_back)(struct backend *backend, const struct heads_out_back *back)
{
    pool_run(backend->pool, back->of->heads, grain(32 * back->of->head_dim * back->of->T),
             out_heads_back, (void *)(uintptr_t)back);
}

/* The gradients of the bonus c v with c = sum r k weight. With dc = sum dn v: dr = dc k weight, dk
 * = dc r weight, dv = dn c. */
static void bonus_back(const struct removal_back *back, size_t at, size_t column)
{
    const size_t E = back->of->head_dim;
    const float *receptance = back->r + at, *k = back->k + at, *value = back->v + at,
                *dn = back->dn + at;
    const float *weight = back->weight + column;
    double sum = 0, dc = 0;
    for (size_t e = 0; e < E; e++) {
        sum += (double)receptance[e] * k[e] * weight[e];
        dc += (double)dn[e] * value[e];
    }
    const float by = (float)sum, change = (float)dc;
    for (size_t e = 0; e < E; e++) {
        back->dr[at + e] += change * k[e] * weight[e];
        back->dk[at + e] += change * receptance[e] * weight[e];
        back->dv[at + e] += dn[e] * by;
        if (back->dweight)
            back->dweight[column + e] += change * receptance[e] * k[e];
    }
}

/* The gradients of a, b, to_k and to_v. kappa = u / |u| with u = k scale, a = -kappa, b = kappa
 * rate. With dkappa = db rate - da: du = (dkappa - kappa (kappa dkappa)) / |u|. */
static void removal_head_back(const struct removal_back *back, size_t at, size_t column)
{
    const struct removal *removal = back->of;
    const size_t E = removal->head_dim;
    const float *k = removal->k + at, *rate = removal->rate + at, *scale = removal->scale + column;
    const float inverse = mixing_inverse(k, scale, E);
    double dot = 0;
    for (size_t e = 0; e < E; e++)
        dot += (double)(k[e] * scale[e] * inverse) *
               (back->db[at + e] * rate[e] - back->da[at + e]);
    for (size_t e = 0; e < E; e++) {
        const float kappa = k[e] * scale[e] * inverse, by = removal->key_rate[column + e];
        const float dkappa = back->db[at + e] * rate[e] - back->da[at + e], dk = back->dk[at + e];
        const float du = (dkappa - kappa * (float)dot) * inverse;
        back->drate[at + e] = back->db[at + e] * kappa + dk * k[e] * by;
        if (back->dscale) {
            back->dscale[column + e] += du * k[e];
            back->dkey_rate[column + e] += dk * k[e] * (rate[e] - 1);
        }
        back->dk[at + e] = du * scale[e] + dk * (1 + (rate[e] - 1) * by);
    }
    for (size_t e = at; !removal->first && back->dfirst && e < at + E; e++)
        back->dv[e] += back->dfirst[e];
    for (size_t e = at; removal->first && e < at + E; e++) {
        const float dv = back->dv[e];
        back->dshare[e] = dv * (removal->first[e] - removal->v[e]);
        back->dfirst[e] += dv * removal->share[e];
        back->dv[e] = dv * (1 - removal->share[e]);
    }
}

static void removal_heads_back(void *ctx, size_t begin, size_t end, size_t worker)
{
    (void)worker;
    const struct removal_back *back = ctx;
    const size_t E = back->of->head_dim, HE = back->of->heads * E;
    for (size_t head = begin; head < end; head++)
        for (size_t row = 0; row < back->of->T; row++) {
            bonus_back(back, row * HE + head * E, head * E);
            removal_head_back(back, row * HE + head * E, head * E);
        }
}

void CPU(removal_back)(struct backend *backend, const struct removal_back *back)
{
    pool_run(backend->pool, back->of->heads, grain(64 * back->of->head_dim * back->of->T),
             removal_heads_back, (void *)(uintptr_t)back);
}
