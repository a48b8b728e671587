/* activity.c - see activity.h. A hook of the network adds the squares of the values, in double and
 * in the order of the rows, so that sums are the same with any number of threads. likelihood.c runs
 * the passes; the likelihoods are discarded. */
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
    const struct hearing *hearing = ctx;
    const struct config *config = hearing->config;
    const float *y = heads, *h = hidden;
    double *head = hearing->to->mean.head + layer * config->heads,
           *unit = hearing->to->mean.unit + layer * config->ffn;
    for (size_t t = 0; t < T; t++) {
        for (size_t i = 0; i < config->heads * config->head_dim; i++, y++)
            head[i / config->head_dim] += (double)*y * *y;
        for (size_t j = 0; j < config->ffn; j++, h++)
            unit[j] += (double)*h * *h;
    }
    hearing->to->rows += layer ? 0 : (int64_t)T;
}

/* Runs one text for the hook; the likelihood is discarded. */
static int run_text(const struct network *n, const struct tokenizer *tokenizer,
                    const json_t *record, uint64_t seed, uint64_t key, struct err *e)
{
    int diffusion = config_denoises(&n->config);
    struct scored_text text = {0};
    struct likelihood likelihood;
    const int pair = rec_text(record, "reference") != NULL;
    int bad = scored_text_read(&text, record, &n->config, tokenizer, diffusion, pair, e);
    if (!bad && diffusion)
        bad = likelihood_elbo(n, text.ids.v, text.ids.n, text.first, ACTIVITY_MASKS, seed, key,
                              &likelihood, e);
    else if (!bad)
        bad = likelihood_nll(n, text.ids.v, text.ids.n, text.first, &likelihood, e);
    ids_free(&text.ids);
    return bad ? -1 : 0;
}

static int run_all(struct activity *activity, const struct network *n,
                   const struct tokenizer *tokenizer, struct rec_reader *in, int64_t limit,
                   uint64_t seed, struct err *e)
{
    json_t *record = NULL;
    int got = 1;
    while ((!limit || activity->texts < limit) && (got = rec_read(in, &record, e)) > 0) {
        const char *kind = rec_kind(record);
        int takes = !*kind || !strcmp(kind, "prompt");
        int bad = takes && run_text(n, tokenizer, record, seed, (uint64_t)activity->texts, e);
        json_decref(record);
        if (bad)
            return err_prefix(e, "%s", rec_where(in));
        activity->texts += takes;
    }
    if (got >= 0 && !activity->texts)
        return err_set(e, EXIT_BAD_DATA, "%s: expected texts to calibrate with, got none",
                       rec_where(in));
    return got < 0 ? -1 : 0;
}

int activity_run(struct activity *activity, struct network *n, const struct tokenizer *tokenizer,
                    struct rec_reader *in, int64_t limit, uint64_t seed, struct err *e)
{
    const struct config *config = &n->config;
    struct hearing hearing = {config, activity};
    const struct layer_hook hook = {add_squares, &hearing};
    *activity = (struct activity){.mean = prune_values_make(config)};
    n->hook = &hook;
    int bad = run_all(activity, n, tokenizer, in, limit, rng_derive(seed, "activity"), e);
    n->hook = NULL;
    for (size_t i = 0; i < config->layers * config->heads && activity->rows; i++)
        activity->mean.head[i] /= (double)activity->rows;
    for (size_t i = 0; i < config->layers * config->ffn && activity->rows; i++)
        activity->mean.unit[i] /= (double)activity->rows;
    if (bad)
        activity_free(activity);
    return bad ? -1 : 0;
}

void activity_free(struct activity *activity)
{
    prune_values_free(&activity->mean);
}
