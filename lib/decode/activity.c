/* activity.c - see activity.h. Adds the squares of the values that a network passes to its hook, in
 * double and in the order of the rows, so that sums are the same with any number of threads.
 * likelihood.c runs the passes; its results are discarded. */
#include "lib/decode/activity.h"

#include <string.h>

#include "lib/base/rng.h"
#include "lib/decode/likelihood.h"
#include "lib/decode/scored_text.h"

struct hearing {
    const struct config *config;
    struct activity *to;
};

static void add_squares(void *ctx, size_t layer, const act *heads, const act *hidden, size_t T)
{
    const struct hearing *a = ctx;
    const struct config *c = a->config;
    const float *y = heads, *h = hidden;
    double *head = a->to->mean.head + layer * c->heads, *unit = a->to->mean.unit + layer * c->ffn;
    for (size_t t = 0; t < T; t++) {
        for (size_t i = 0; i < c->heads * c->head_dim; i++, y++)
            head[i / c->head_dim] += (double)*y * *y;
        for (size_t j = 0; j < c->ffn; j++, h++)
            unit[j] += (double)*h * *h;
    }
    a->to->rows += layer ? 0 : (int64_t)T;
}

/* Runs one text; its likelihood is discarded. */
static int run_text(const struct network *n, const struct tokenizer *t, const json_t *r,
                    uint64_t seed, uint64_t key, struct err *e)
{
    int diffusion = config_denoises(&n->config);
    struct scored_text g = {0};
    struct likelihood l;
    const int pair = rec_text(r, "reference") != NULL;
    int bad = scored_text_read(&g, r, &n->config, t, diffusion, pair, e);
    if (!bad && diffusion)
        bad = likelihood_elbo(n, g.ids.v, g.ids.n, g.first, ACTIVITY_MASKS, seed, key, &l, e);
    else if (!bad)
        bad = likelihood_nll(n, g.ids.v, g.ids.n, g.first, &l, e);
    ids_free(&g.ids);
    return bad ? -1 : 0;
}

static int run_all(struct activity *c, const struct network *n, const struct tokenizer *t,
                   struct rec_reader *in, int64_t limit, uint64_t seed, struct err *e)
{
    json_t *r = NULL;
    int got = 1;
    while ((!limit || c->texts < limit) && (got = rec_read(in, &r, e)) > 0) {
        const char *kind = rec_kind(r);
        int takes = !*kind || !strcmp(kind, "prompt");
        int bad = takes && run_text(n, t, r, seed, (uint64_t)c->texts, e);
        json_decref(r);
        if (bad)
            return err_prefix(e, "%s", rec_where(in));
        c->texts += takes;
    }
    if (got >= 0 && !c->texts)
        return err_set(e, EXIT_BAD_DATA, "%s: expected texts to calibrate with, got none",
                       rec_where(in));
    return got < 0 ? -1 : 0;
}

int activity_run(struct activity *c, struct network *n, const struct tokenizer *t,
                    struct rec_reader *in, int64_t limit, uint64_t seed, struct err *e)
{
    const struct config *f = &n->config;
    struct hearing a = {f, c};
    const struct layer_hook hook = {add_squares, &a};
    *c = (struct activity){.mean = prune_values_make(f)};
    n->hook = &hook;
    int bad = run_all(c, n, t, in, limit, rng_derive(seed, "activity"), e);
    n->hook = NULL;
    for (size_t i = 0; i < f->layers * f->heads && c->rows; i++)
        c->mean.head[i] /= (double)c->rows;
    for (size_t i = 0; i < f->layers * f->ffn && c->rows; i++)
        c->mean.unit[i] /= (double)c->rows;
    if (bad)
        activity_free(c);
    return bad ? -1 : 0;
}

void activity_free(struct activity *c)
{
    prune_values_free(&c->mean);
}
