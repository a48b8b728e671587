/* synth.c - see synth.h. Shapes come from the tables of the families. Random weights come from a
 * table of normal quantiles: kernels/draw.h chooses the entry of a weight as a function of (seed,
 * role, layer, index). */
#include "lib/checkpoint/synth.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/buf.h"
#include "lib/base/mem.h"
#include "lib/checkpoint/family.h"

static const double weight_std = 0.02; /* the usual initialisation of these networks */

static void fill(struct config *config, const struct family *family,
                 const struct family_shape *shape)
{
    family_start(config, family);
    config->width = shape->width;
    config->layers = shape->layers;
    config->heads = shape->heads;
    config->kv_heads = shape->kv_heads;
    config->head_dim = config->rope_dims = shape->head_dim;
    config->ffn = shape->ffn;
    config->vocab = shape->vocab;
    config->context = shape->context;
    config->tied = shape->tied;
    config->norm_eps = shape->norm_eps;
    config->rope_theta = shape->rope_theta;
    config->bos = shape->bos;
    config->mask = shape->mask;
    config->eot = shape->eot;
    config->eos[0] = shape->eos;
    config->n_eos = 1;
    config->synth = 1;
    if (config_denoises(config))
        config->pad = shape->eos;
    if (shape->rope_factor > 0) {
        config->rope_llama3 = 1;
        config->rope_factor = shape->rope_factor;
        config->rope_low_freq = 1;
        config->rope_high_freq = 4;
        config->rope_original_context = 8192;
    }
    if (family->mixtures) {
        const struct family_mixture *mixture = &family->mixtures[shape - family->shapes];
        config->experts = mixture->experts;
        config->used = mixture->used;
        config->shared = mixture->shared;
        config->dense = mixture->dense;
        config->dense_ffn = mixture->dense_ffn;
        config->groups = mixture->groups;
        config->groups_used = mixture->groups_used;
        config->rope_dims = mixture->rope_dims ? mixture->rope_dims : config->head_dim;
    }
    config->mixer = family->mixers ? family->mixers[shape - family->shapes] : MIXER_ATTENTION;
    if (config_recurs(config)) {
        config->window = 0;
        config->rank = FAMILY_RANK;
    }
    snprintf(config->name, sizeof config->name, "synth:%s", shape->name);
    if (family->named)
        family->named(config);
}

int synth_config(struct config *config, const char *name, struct err *e)
{
    struct buf list = {0};
    for (size_t i = 0; family_at(i); i++)
        for (const struct family_shape *shape = family_at(i)->shapes; shape->name; shape++) {
            if (!strcmp(name, shape->name)) {
                fill(config, family_at(i), shape);
                buf_free(&list);
                return 0;
            }
            buf_format(&list, "%s%s", list.len ? ", " : "", shape->name);
        }
    err_set(e, EXIT_BAD_USAGE, "synth:%s: expected one of %s", name, list.data);
    buf_free(&list);
    return -1;
}

/* The p-quantile of the standard normal distribution for p > 1/2, by Newton's method from x >= 0
 * below the quantile. The distribution function is concave there, so no step overshoots. */
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

void synth_floats(const struct draw *draw, size_t first, size_t n, float *out)
{
    float block[DRAW_BLOCK];
    for (size_t i = first, end = first + n; i < end;) {
        draw_block(draw, draw->table, i / DRAW_BLOCK, block);
        for (size_t j = i % DRAW_BLOCK; j < DRAW_BLOCK && i < end; j++)
            out[i++ - first] = block[j];
    }
}
