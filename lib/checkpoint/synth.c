/* synth.c - shapes from the tables of the families, and the table of normal quantiles for random
 * weights. kernels/draw.h picks an entry as a function of (seed, role, layer, index) alone. */
#include "lib/checkpoint/synth.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/buf.h"
#include "lib/base/mem.h"
#include "lib/checkpoint/family.h"

static const double weight_std = 0.02; /* the usual initialisation of these networks */

static void fill(struct config *c, const struct family *f, const struct family_shape *s)
{
    family_start(c, f);
    c->width = s->width;
    c->layers = s->layers;
    c->heads = s->heads;
    c->kv_heads = s->kv_heads;
    c->head_dim = c->rope_dims = s->head_dim;
    c->ffn = s->ffn;
    c->vocab = s->vocab;
    c->context = s->context;
    c->tied = s->tied;
    c->norm_eps = s->norm_eps;
    c->rope_theta = s->rope_theta;
    c->bos = s->bos;
    c->mask = s->mask;
    c->eot = s->eot;
    c->eos[0] = s->eos;
    c->n_eos = 1;
    c->synth = 1;
    if (config_denoises(c))
        c->pad = s->eos;
    if (s->rope_factor > 0) {
        c->rope_llama3 = 1;
        c->rope_factor = s->rope_factor;
        c->rope_low_freq = 1;
        c->rope_high_freq = 4;
        c->rope_original_context = 8192;
    }
    if (f->mixtures) {
        const struct family_mixture *m = &f->mixtures[s - f->shapes];
        c->experts = m->experts;
        c->used = m->used;
        c->shared = m->shared;
        c->dense = m->dense;
        c->dense_ffn = m->dense_ffn;
        c->groups = m->groups;
        c->groups_used = m->groups_used;
        c->rope_dims = m->rope_dims ? m->rope_dims : c->head_dim;
    }
    c->mixer = f->mixers ? f->mixers[s - f->shapes] : MIXER_ATTENTION;
    if (config_recurs(c)) {
        c->window = 0;
        c->rank = FAMILY_RANK;
    }
    snprintf(c->name, sizeof c->name, "synth:%s", s->name);
    if (f->named)
        f->named(c);
}

int synth_config(struct config *c, const char *name, struct err *e)
{
    struct buf list = {0};
    for (size_t i = 0; family_at(i); i++)
        for (const struct family_shape *s = family_at(i)->shapes; s->name; s++) {
            if (!strcmp(name, s->name)) {
                fill(c, family_at(i), s);
                buf_free(&list);
                return 0;
            }
            buf_format(&list, "%s%s", list.len ? ", " : "", s->name);
        }
    err_set(e, EXIT_BAD_USAGE, "synth:%s: expected one of %s", name, list.data);
    buf_free(&list);
    return -1;
}

/* x with P(X <= x) = p for p > 1/2, by Newton's method from x0 below it: the distribution function
 * is concave there, so no step overshoots. */
static double quantile_from(double x, double p)
{
    for (int i = 0; i < 8; i++)
        x += (p - 0.5 * erfc(-x * M_SQRT1_2)) * sqrt(2 * M_PI) * exp(0.5 * x * x);
    return x;
}

float *synth_table(void)
{
    float *table = mem_alloc(DRAW_QUANTILES * sizeof *table);
    double x = 0;
    for (size_t i = 0; i < DRAW_QUANTILES / 2; i++) {
        x = quantile_from(x, 0.5 + ((double)i + 0.5) / DRAW_QUANTILES);
        table[DRAW_QUANTILES / 2 + i] = (float)(weight_std * x);
        table[DRAW_QUANTILES / 2 - 1 - i] = (float)(-weight_std * x);
    }
    return table;
}

void synth_floats(const struct draw *d, size_t first, size_t n, float *out)
{
    float block[DRAW_BLOCK];
    for (size_t i = first, end = first + n; i < end;) {
        draw_block(d, d->table, i / DRAW_BLOCK, block);
        for (size_t j = i % DRAW_BLOCK; j < DRAW_BLOCK && i < end; j++)
            out[i++ - first] = block[j];
    }
}
