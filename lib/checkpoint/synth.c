/* synth.c - shapes without checkpoints (-m synth:NAME), and weights drawn for them by
 * kernels/draw.h. */
#include "lib/checkpoint/synth.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/mem.h"

static const double weight_std = 0.02; /* the usual initialisation of both families */

struct shape {
    const char *name;
    enum arch arch;
    size_t width, layers, heads, kv_heads, head_dim, ffn, vocab, context;
    int tied;
    double rope_factor; /* 0: plain RoPE */
    int64_t bos, eos, mask, eot;
};
/* The published shapes: models.md sections 0, 1.1 and 4.1; llada-1b: appendix of Nie et al. 2025.
 * The others are ours. llada3.2-1b is llama3.2-1b and small-llada is small-llama, read the other
 * way: what differs in speed is then the way of generating and not the network. */
static const struct shape shapes[] = {
    {"llada-8b", ARCH_LLADA, 4096, 32, 32, 32, 128, 12288, 126464, 4096, 0, 0,
     126080, 126081, 126336, 126348},
    {"llama3-8b", ARCH_LLAMA, 4096, 32, 32, 8, 128, 14336, 128256, 8192, 0, 0,
     128000, 128001, -1, 128009},
    {"llama3.2-3b", ARCH_LLAMA, 3072, 28, 24, 8, 128, 8192, 128256, 131072, 1, 32,
     128000, 128001, -1, 128009},
    {"llama3.2-1b", ARCH_LLAMA, 2048, 16, 32, 8, 64, 8192, 128256, 131072, 1, 32,
     128000, 128001, -1, 128009},
    {"llada-1b", ARCH_LLADA, 2048, 22, 32, 4, 64, 5634, 126464, 4096, 0, 0,
     126080, 126081, 126336, 126348},
    {"llada3.2-1b", ARCH_LLADA, 2048, 16, 32, 8, 64, 8192, 128256, 4096, 1, 0,
     128000, 128001, 128002, 128009},
    {"small-llama", ARCH_LLAMA, 768, 12, 12, 4, 64, 2048, 32000, 2048, 0, 0, 31990, 31991, -1, -1},
    {"small-llada", ARCH_LLADA, 768, 12, 12, 4, 64, 2048, 32000, 2048, 0, 0,
     31990, 31991, 31992, -1},
    {"tiny-llama", ARCH_LLAMA, 64, 2, 4, 2, 16, 160, 512, 512, 0, 0, 508, 509, -1, -1},
    {"tiny-llada", ARCH_LLADA, 64, 2, 4, 4, 16, 160, 512, 512, 0, 0, 508, 509, 510, -1},
};
enum { SHAPES = sizeof shapes / sizeof *shapes };

static void fill(struct config *c, const struct shape *s)
{
    *c = (struct config){.arch = s->arch, .width = s->width, .layers = s->layers, .heads = s->heads,
                         .kv_heads = s->kv_heads, .head_dim = s->head_dim, .ffn = s->ffn,
                         .vocab = s->vocab, .context = s->context, .tied = s->tied,
                         .norm_eps = 1e-5, .rope_theta = 500000, .bos = s->bos, .pad = -1,
                         .mask = s->mask, .eot = s->eot, .eos = {s->eos}, .n_eos = 1, .synth = 1};
    if (s->arch == ARCH_LLADA)
        c->pad = s->eos;
    if (s->rope_factor > 0) {
        c->rope_llama3 = 1;
        c->rope_factor = s->rope_factor;
        c->rope_low_freq = 1;
        c->rope_high_freq = 4;
        c->rope_original_context = 8192;
    }
    snprintf(c->name, sizeof c->name, "synth:%s", s->name);
}

int config_synth(struct config *c, const char *name, struct err *e)
{
    char list[256] = "";
    for (size_t i = 0; i < SHAPES; i++) {
        if (!strcmp(name, shapes[i].name)) {
            fill(c, &shapes[i]);
            return 0;
        }
        size_t n = strlen(list);
        snprintf(list + n, sizeof list - n, "%s%s", i ? ", " : "", shapes[i].name);
    }
    return err_set(e, EXIT_BAD_USAGE, "synth:%s: expected one of %s", name, list);
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
