/* written.h - writes a checkpoint with a known value at every place to a folder, to be opened
 * again. */
#pragma once

#include "lib/base/mem.h"
#include "lib/checkpoint/checkpoint.h"
#include "lib/checkpoint/synth.h"
#include "tests/files.h"
#include "tests/tap.h"

static char folder[64], weights_path[96];

static void written_begin(void)
{
    files_begin();
    snprintf(folder, sizeof folder, "%s/model", files_root);
    snprintf(weights_path, sizeof weights_path, "%s/model.safetensors", folder);
}

/* Weights with a value for each place, exact in bf16: a small whole number. */
struct source {
    const struct config *config;
    float *values;
    float nan_at; /* if not 0: the first value of ROLE_UP */
    int zero;     /* 1: ROLE_UP is all zeros */
};

static float value(enum role r, size_t layer, size_t i)
{
    return (float)(1 + (7 * (size_t)r + 13 * layer + 3 * i) % 101);
}

static const float *give(void *ctx, enum role r, size_t layer)
{
    struct source *s = ctx;
    size_t rows, cols;
    role_shape(s->config, r, &rows, &cols);
    s->values = mem_resize(s->values, rows * cols, sizeof *s->values);
    for (size_t i = 0; i < rows * cols; i++)
        s->values[i] = r == ROLE_UP && s->zero ? 0 : value(r, layer, i);
    if (r == ROLE_UP && layer == 1 && s->nan_at != 0)
        s->values[0] = s->nan_at;
    return s->values;
}

static void save(const struct config *c, const char *dtype, float nan_at, int zero)
{
    struct source s = {.config = c, .nan_at = nan_at, .zero = zero};
    struct err e = {0};
    if (checkpoint_save(c, folder, dtype, give, &s, &e)) {
        printf("Bail out! %s\n", e.text);
        exit(1);
    }
    free(s.values);
}
