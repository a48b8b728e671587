/* planted.h - makes small checkpoints with random weights. Weights of norms are 1. A test may
 * replace values of any tensor. */
#pragma once

#include "lib/base/mem.h"
#include "lib/base/rng.h"
#include "lib/checkpoint/checkpoint.h"
#include "lib/checkpoint/synth.h"
#include "tests/tap.h"

/* Changes the values of one tensor. */
typedef void planted_fn(const struct config *c, enum role r, size_t layer, float *v);
struct planted {
    const char *shape, *dtype;
    size_t layers, heads, kv_heads, ffn; /* 0: the number in the shape */
    planted_fn *plant;                   /* may be NULL */
    struct config config;                /* this and the rest are set by planted_save() */
    float *values;
};

static const float *planted_give(void *ctx, enum role r, size_t layer)
{
    struct planted *p = ctx;
    size_t rows, cols;
    struct rng rng = {5, (uint64_t)r << 32 | layer, 0};
    role_shape(&p->config, r, &rows, &cols);
    p->values = mem_resize(p->values, rows * cols, sizeof *p->values);
    for (size_t i = 0; i < rows * cols; i++)
        p->values[i] = role_is_norm(r) ? 1.0f : (float)(0.05 * rng_normal(&rng));
    if (p->plant)
        p->plant(&p->config, r, layer, p->values);
    return p->values;
}

static void planted_forget(const char *folder)
{
    char *command = mem_format("rm -rf %s", folder);
    if (system(command))
        exit(1);
    free(command);
}

/* Writes the checkpoint over an existing one. */
static void planted_save(struct planted p, const char *folder)
{
    struct err e = {0};
    struct config *c = &p.config;
    planted_forget(folder);
    int bad = synth_config(c, p.shape, &e);
    c->synth = 0;
    c->layers = p.layers ? p.layers : c->layers;
    c->heads = p.heads ? p.heads : c->heads;
    c->kv_heads = p.kv_heads ? p.kv_heads : c->kv_heads;
    c->ffn = p.ffn ? p.ffn : c->ffn;
    if (bad || checkpoint_save(c, folder, p.dtype ? p.dtype : "F32", planted_give, &p, &e)) {
        printf("Bail out! %s\n", e.text);
        exit(1);
    }
    free(p.values);
}
