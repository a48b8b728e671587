/* companion.c - see companion.h. The companion gets all engine flags but -m, so that both models
 * run on one back end in one precision. Token ids pass from one model to the other, so their
 * vocabularies are compared id by id before anything is loaded. */
#include "lib/run/companion.h"

#include <math.h>
#include <string.h>

#include "lib/decode/generation.h"

static struct engine engine_of(const struct job *job)
{
    struct engine engine = job->args->engine;
    engine.model = job->args->extras.draft;
    engine.pruned = NULL;
    engine.device_map = engine.kv_map = NULL; /* offloading would make its guesses slow */
    engine.offload = engine.offload_kv = 0;
    return engine;
}

/* -1 (EXIT_BAD_DATA): an id means different tokens in the two models. */
static int same_ids(struct companion *companion, const struct job *job,
                    const struct checkpoint *model, const struct tokenizer *own, struct err *e)
{
    const char *name = job->args->extras.draft;
    struct tokenizer *theirs;
    char differs[TOKENIZER_DIFFERS];
    if (companion->checkpoint.config.vocab != model->config.vocab)
        return err_set(e, EXIT_BAD_DATA, "--draft %s: its vocabulary has %zu ids: expected the %zu "
                       "of %s, whose texts it continues", name, companion->checkpoint.config.vocab,
                       model->config.vocab, model->config.name);
    if (checkpoint_tokenizer(&companion->checkpoint, &theirs, e))
        return -1;
    int bad = 0;
    if (!theirs != !own)
        bad = err_set(e, EXIT_BAD_DATA, "--draft %s: it has %s tokenizer: expected that of %s",
                      name, theirs ? "a" : "no", model->config.name);
    else if (own && tokenizer_differs(theirs, own, differs))
        bad = err_set(e, EXIT_BAD_DATA, "--draft %s: its tokenizer differs from that of %s: %s",
                      name, model->config.name, differs);
    tokenizer_free(theirs);
    return bad;
}

/* Sets the number of guesses of each point to a whole block of the drafter. */
static void suppose_block(const struct job *job, const struct config *config)
{
    for (size_t i = 0; i < job->plan->points; i++) {
        struct settings *point = &job->plan->point[i];
        const char *setting = job->decoder->companion_setting;
        const double most = point->table->row[settings_find(point->table, setting)].hi;
        settings_say(point, setting, fmin((double)config->drafts, most));
    }
}

/* Checks a drafter that reads another model. Returns -1 if it does not fit that model, or if a
 * point asks for more guesses than it makes. */
static int reads(struct companion *companion, const struct job *job, const struct config *of,
                 struct err *e)
{
    struct config *config = &companion->checkpoint.config;
    const char *name = job->args->extras.draft, *setting = job->decoder->companion_setting;
    if (config->width != of->width || config->vocab != of->vocab)
        return err_set(e, EXIT_BAD_DATA, "--draft %s: it has width %zu and %zu ids, but reads %s: "
                       "expected width %zu and %zu ids", name, config->width, config->vocab,
                       of->name, of->width, of->vocab);
    if (config->chains)
        return config_read_layers(config, of->layers)
                   ? err_set(e, EXIT_BAD_DATA, "--draft %s: it reads three layers of a model: "
                             "expected one of 7 layers or more, %s has %zu", name, of->name,
                             of->layers)
                   : 0;
    if (config->tap[config->taps - 1] + 1 >= of->layers)
        return err_set(e, EXIT_BAD_DATA, "--draft %s: it reads layer %zu, counted from 0: "
                       "expected one before the last of the %zu layers of %s", name,
                       config->tap[config->taps - 1], of->layers, of->name);
    if (job->args->extras.draft_usual)
        suppose_block(job, config);
    for (size_t i = 0; i < job->plan->points; i++) {
        size_t tokens = settings_count(&job->plan->point[i], setting);
        if (tokens > config->drafts)
            return err_set(e, EXIT_BAD_USAGE, "--draft-tokens %zu: expected at most %zu, the "
                           "guesses in a block of %s", tokens, config->drafts, name);
    }
    return 0;
}

int companion_open(struct companion *companion, const struct job *job,
                   const struct checkpoint *model, const struct tokenizer *own,
                   const struct log *log, struct err *e)
{
    const struct engine engine = engine_of(job);
    if (!engine.model)
        return 0;
    companion->asked = 1;
    if (engine_checkpoint(&engine, (uint64_t)job->args->common.seed, &companion->checkpoint, log,
                          e))
        return -1;
    struct config *config = &companion->checkpoint.config;
    if (config->taps) /* such a drafter has no tokenizer: its ids are those of the other model */
        return reads(companion, job, &model->config, e) ||
                       (engine.check_finite && checkpoint_check_values(&companion->checkpoint, e))
                   ? -1
                   : 0;
    config_write_left_to_right(config);
    if (config->paradigm != PARADIGM_AUTOREGRESSIVE)
        return err_set(e, EXIT_BAD_DATA, "--draft %s: expected an autoregressive model, got a %s "
                       "one", engine.model, config_paradigm_name(config->paradigm));
    if (generation_refuses(config, e) ||
        (engine.check_finite && checkpoint_check_values(&companion->checkpoint, e)))
        return -1;
    return same_ids(companion, job, model, own, e);
}

int companion_settle(const struct companion *companion, const struct job *job,
                     struct backend *backend, struct network *n, struct err *e)
{
    const struct engine engine = engine_of(job);
    return engine_settle(&engine, n, backend, &companion->checkpoint, e);
}

/* Returns the memory that came into use since *was. A segment of a device may hold blocks of both
 * networks, so on a device `reserved` counts only the blocks of the companion. */
static struct memory more_than(const struct memory *was, const struct backend *backend)
{
    const struct memory *now = &backend->memory;
    struct memory more = {.requested = now->requested - was->requested,
                          .allocated = now->allocated - was->allocated,
                          .reserved = *backend->name ? now->allocated - was->allocated
                                                     : now->reserved - was->reserved};
    more.kind[MEMORY_WEIGHTS] = now->kind[MEMORY_WEIGHTS] - was->kind[MEMORY_WEIGHTS];
    return more;
}

int companion_load(struct companion *companion, const struct job *job, struct backend *backend,
                   struct err *e)
{
    const struct engine engine = engine_of(job);
    const struct memory was = backend->memory;
    if (!companion->asked)
        return 0;
    companion->loaded = !engine_load(&engine, &companion->network, backend, &companion->checkpoint,
                                     e);
    companion->act = backend->act;
    companion->memory = more_than(&was, backend);
    return companion->loaded ? 0 : -1;
}

int companion_agrees(const struct companion *companion, const struct backend *backend,
                     struct err *e)
{
    if (!companion->loaded || companion->act == backend->act)
        return 0;
    return err_set(e, EXIT_BAD_USAGE, "%s: its activations are %s, those of the other model %s: "
                   "expected one format; set --dtype for both", companion->checkpoint.config.name,
                   dtype_info[companion->act].name, dtype_info[backend->act].name);
}

void companion_unload(struct companion *companion)
{
    if (companion->loaded)
        network_free(&companion->network);
    companion->loaded = 0;
}

void companion_close(struct companion *companion)
{
    companion_unload(companion);
    if (companion->asked)
        checkpoint_close(&companion->checkpoint);
    companion->asked = 0;
}

const struct network *companion_at(const struct companion *companion, const struct job *job,
                                   const struct settings *point)
{
    const char *setting = job->decoder->companion_setting;
    return companion->loaded && setting && settings_count(point, setting) ? &companion->network
                                                                          : NULL;
}

const struct memory *companion_idle(const struct companion *companion, const struct job *job,
                                    const struct settings *point)
{
    return companion->loaded && !companion_at(companion, job, point) ? &companion->memory : NULL;
}
