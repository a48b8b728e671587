/* decoded.h - a small network on a host back end that behaves like a device, and prompts for it. */
#pragma once

#include "lib/base/mem.h"
#include "lib/checkpoint/checkpoint.h"
#include "lib/decode/decoder.h"
#include "lib/network/network.h"
#include "tests/tap.h"

enum { PROMPTS = 3 };

static const int32_t prompt_a[] = {11, 42, 300, 7, 99}, prompt_b[] = {5, 6},
                     prompt_c[] = {200, 201, 202, 203, 204, 205, 206, 207, 208};
static const struct generation_input prompts[PROMPTS] = {
    {prompt_a, 5, 77, 0}, {prompt_b, 2, 78, 0}, {prompt_c, 9, 79, 0}};

struct decoded {
    struct backend *b;
    struct ops ops; /* a copy of b's table, which tests change */
    struct checkpoint c;
    struct network n;
};

/* Opens a model with random weights in f32; ends the program if it does not load. *m must not be
 * moved afterwards. */
static inline void decoded_open(struct decoded *m, const char *model, const char *device,
                                const char *level)
{
    struct err e = {0};
    m->b = backend_open(device, level, 1, 0, &e);
    if (!m->b || checkpoint_open(&m->c, model, 3, &e) ||
        network_load(&m->n, m->b, &m->c, &(struct precision){.dtype = "f32"}, &e)) {
        printf("Bail out! %s: %s\n", model, e.text);
        exit(EXIT_FAILURE);
    }
    m->ops = *m->b->ops;
    m->b->ops = &m->ops;
}

/* Opens the model on one level for all processors that have this level, because some tests compare
 * close numbers. */
static inline void decoded_open_fast(struct decoded *m, const char *model)
{
    decoded_open(m, model, "cpu", ops_cpu("avx2") ? "avx2" : "portable");
}

static inline void decoded_close(struct decoded *m)
{
    network_free(&m->n);
    checkpoint_close(&m->c);
    backend_close(m->b);
}

/* The point that options like "gen_length=16 steps=8" give; they must give exactly one. */
static inline struct settings decoded_point(const struct decoder *d, const char *options)
{
    struct settings *p, one;
    struct err e = {0};
    size_t n;
    const char *given[SETTINGS_MAX] = {0};
    char *text = mem_text(options), *save, *word = strtok_r(text, " ", &save);
    for (; word; word = strtok_r(NULL, " ", &save)) {
        char *value = strchr(word, '=');
        *value++ = 0;
        given[settings_find(d->table, word)] = value;
    }
    if (settings_cross(d->table, given, &p, &n, &e) || n != 1) {
        printf("Bail out! %s: %s\n", options, e.text);
        exit(EXIT_FAILURE);
    }
    one = *p;
    free(p);
    free(text);
    return one;
}

static size_t decoded_prepared; /* number of prepared passes */

/* Runs the step once to three times, because a back end may prepare a pass by any number of
 * runs. */
static inline void decoded_prepare(struct backend *b, const void *key, size_t key_bytes,
                                   void (*step)(void *ctx), void *ctx)
{
    (void)b, (void)key, (void)key_bytes;
    for (size_t i = decoded_prepared++ % 3; i < 3; i++)
        step(ctx);
}

/* Makes the back end act as a device with up to `depth` passes in flight; with a depth above 1
 * passes are prepared first. */
static inline void decoded_act(struct ops *own, int depth)
{
    own->depth = depth;
    own->prepare = depth > 1 ? decoded_prepare : NULL;
}
