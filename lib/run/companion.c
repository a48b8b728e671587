/* companion.c - see companion.h. The companion gets all engine flags but -m, so that both models
 * run on one back end in one precision. Token ids pass from one model to the other, so their
 * vocabularies are compared id by id before anything is loaded. */
#include "lib/run/companion.h"

#include <math.h>
#include <string.h>

#include "lib/decode/generation.h"

static struct engine engine_of(const struct job *job)
{
    struct engine g = job->args->engine;
    g.model = job->args->extras.draft;
    g.pruned = NULL;
    g.device_map = g.kv_map = NULL; /* offloading would make its guesses slow */
    g.offload = g.offload_kv = 0;
    return g;
}

/* -1 (EXIT_BAD_DATA): an id means different tokens in the two models. */
static int same_ids(const struct companion *d, const struct job *job, const struct checkpoint *c,
                    const struct tokenizer *own, struct err *e)
{
    const char *name = job->args->extras.draft;
    struct tokenizer *theirs;
    char differs[TOKENIZER_DIFFERS];
    if (d->checkpoint.config.vocab != c->config.vocab)
        return err_set(e, EXIT_BAD_DATA, "--draft %s: its vocabulary has %zu ids: expected the %zu "
                       "of %s, whose texts it continues", name, d->checkpoint.config.vocab,
                       c->config.vocab, c->config.name);
    if (checkpoint_tokenizer(&d->checkpoint, &theirs, e))
        return -1;
    int bad = 0;
    if (!theirs != !own)
        bad = err_set(e, EXIT_BAD_DATA, "--draft %s: it has %s tokenizer: expected that of %s",
                      name, theirs ? "a" : "no", c->config.name);
    else if (own && tokenizer_differs(theirs, own, differs))
        bad = err_set(e, EXIT_BAD_DATA, "--draft %s: its tokenizer differs from that of %s: %s",
                      name, c->config.name, differs);
    tokenizer_free(theirs);
    return bad;
}

/* A drafter that fills a block guesses all of it, unless an option says otherwise. */
static void suppose_block(const struct job *job, const struct config *c)
{
    for (size_t i = 0; i < job->plan->points; i++) {
        struct settings *point = &job->plan->point[i];
        const char *setting = job->decoder->companion_setting;
        const double most = point->table->row[settings_find(point->table, setting)].hi;
        settings_say(point, setting, fmin((double)c->drafts, most));
    }
}

/* -1: the drafter does not fit the model that it would read, or a point asks it for too much. */
static int reads(struct companion *d, const struct job *job, const struct config *of,
                 struct err *e)
{
    struct config *c = &d->checkpoint.config;
    const char *name = job->args->extras.draft, *setting = job->decoder->companion_setting;
    if (c->width != of->width || c->vocab != of->vocab)
        return err_set(e, EXIT_BAD_DATA, "--draft %s: it has width %zu and %zu ids, but reads %s: "
                       "expected width %zu and %zu ids", name, c->width, c->vocab, of->name,
                       of->width, of->vocab);
    if (c->chains)
        return config_read_layers(c, of->layers)
                   ? err_set(e, EXIT_BAD_DATA, "--draft %s: it reads three layers of a model: "
                             "expected one of 7 layers or more, %s has %zu", name, of->name,
                             of->layers)
                   : 0;
    if (c->tap[c->taps - 1] + 1 >= of->layers)
        return err_set(e, EXIT_BAD_DATA, "--draft %s: it reads layer %zu, counted from 0: "
                       "expected one before the last of the %zu layers of %s", name,
                       c->tap[c->taps - 1], of->layers, of->name);
    if (job->args->extras.draft_usual)
        suppose_block(job, c);
    for (size_t i = 0; i < job->plan->points; i++) {
        size_t tokens = settings_count(&job->plan->point[i], setting);
        if (tokens > c->drafts)
            return err_set(e, EXIT_BAD_USAGE, "--draft-tokens %zu: expected at most %zu, the "
                           "guesses in a block of %s", tokens, c->drafts, name);
    }
    return 0;
}

int companion_open(struct companion *d, const struct job *job, const struct checkpoint *c,
                   const struct tokenizer *own, const struct log *log, struct err *e)
{
    const struct engine g = engine_of(job);
    if (!g.model)
        return 0;
    d->asked = 1;
    if (engine_checkpoint(&g, (uint64_t)job->args->common.seed, &d->checkpoint, log, e))
        return -1;
    struct config *config = &d->checkpoint.config;
    if (config->taps) /* it has no tokenizer: its ids are those of the embedding that it uses */
        return reads(d, job, &c->config, e) ||
                       (g.check_finite && checkpoint_check_values(&d->checkpoint, e))
                   ? -1
                   : 0;
    config_write_left_to_right(config);
    if (config->paradigm != PARADIGM_AUTOREGRESSIVE)
        return err_set(e, EXIT_BAD_DATA, "--draft %s: expected an autoregressive model, got a %s "
                       "one", g.model, config_paradigm_name(config->paradigm));
    if (generation_refuses(config, e) ||
        (g.check_finite && checkpoint_check_values(&d->checkpoint, e)))
        return -1;
    return same_ids(d, job, c, own, e);
}

int companion_settle(const struct companion *d, const struct job *job, struct backend *b,
                     struct network *n, struct err *e)
{
    const struct engine g = engine_of(job);
    return engine_settle(&g, n, b, &d->checkpoint, e);
}

int companion_load(struct companion *d, const struct job *job, struct backend *b, struct err *e)
{
    const struct engine g = engine_of(job);
    if (!d->asked)
        return 0;
    d->loaded = !engine_load(&g, &d->network, b, &d->checkpoint, e);
    d->act = b->act;
    return d->loaded ? 0 : -1;
}

int companion_agrees(const struct companion *d, const struct backend *b, struct err *e)
{
    if (!d->loaded || d->act == b->act)
        return 0;
    return err_set(e, EXIT_BAD_USAGE, "%s: its activations are %s, those of the other model %s: "
                   "expected one format; set --dtype for both", d->checkpoint.config.name,
                   dtype_info[d->act].name, dtype_info[b->act].name);
}

void companion_unload(struct companion *d)
{
    if (d->loaded)
        network_free(&d->network);
    d->loaded = 0;
}

void companion_close(struct companion *d)
{
    companion_unload(d);
    if (d->asked)
        checkpoint_close(&d->checkpoint);
    d->asked = 0;
}

const struct network *companion_at(const struct companion *d, const struct job *job,
                                   const struct settings *point)
{
    const char *setting = job->decoder->companion_setting;
    return d->loaded && setting && settings_count(point, setting) ? &d->network : NULL;
}
