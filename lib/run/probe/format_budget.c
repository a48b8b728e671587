/* format_budget.c - see format_budget.h. Bytes that are never quantized are taken off the budget
 * first. The model is loaded without quantization, and calibration_measure() quantizes one part at
 * a time. */
#include "lib/run/probe/format_budget.h"

#include <math.h>
#include <stdlib.h>

#include "lib/base/mem.h"

/* Measures losses by the likelihood of texts. */
static int calibrate(struct format_budget *b, struct calibration *k, struct checkpoint *c,
                     const struct engine *engine, const struct common *common,
                     const struct log *log, struct err *e)
{
    struct tokenizer *t = NULL;
    struct backend *back = NULL;
    struct network n = {0};
    struct progress progress;
    progress_start(&progress, log, common->progress, "parts", (int64_t)mix_count(&c->config));
    int bad = checkpoint_tokenizer(c, &t, e) ||
              calibration_read(k, &b->texts, 1, common->limit, c, t, e) ||
              engine_open(engine, &back, e);
    if (!bad)
        engine_level(engine, back, c, log);
    bad = bad || engine_load(engine, &n, back, c, e) ||
          calibration_measure(k, &n, c, b->units, &b->dense_nats, &progress, e);
    progress_end(&progress);
    network_free(&n);
    backend_close(back);
    tokenizer_free(t);
    return bad ? -1 : 0;
}

static int measure_by_values(struct format_budget *b, struct checkpoint *c, int64_t threads,
                             struct err *e)
{
    struct pool *pool = pool_new((size_t)threads);
    int bad = mix_errors(b->units, c, pool, e);
    pool_free(pool);
    return bad;
}

int format_budget_choose(struct format_budget *b, struct checkpoint *c, const struct engine *engine,
                         const struct common *common, const struct log *log, struct err *e)
{
    struct calibration k = {.samples = (size_t)b->samples, .seed = (uint64_t)common->seed};
    size_t n = mix_count(&c->config);
    b->units = mem_zero(n, sizeof *b->units);
    b->dense_nats = NAN;
    b->gain = (struct interval){NAN, NAN, NAN};
    double stays = mix_list(b->units, c), all = stays; /* stays: bytes that are never quantized */
    for (size_t i = 0; i < n; i++)
        all += b->units[i].bytes[0];
    b->limit = b->bytes > 0 ? (double)b->bytes : floor(all * b->share);
    int bad = b->texts ? calibrate(b, &k, c, engine, common, log, e)
                       : measure_by_values(b, c, engine->threads, e);
    double bytes = bad        ? 0
                   : b->texts ? calibration_choose(&k, b->units, n, b->limit - stays, &b->gain)
                              : mix_choose(b->units, n, b->limit - stays);
    calibration_free(&k);
    if (bad)
        return -1;
    if (!isfinite(bytes))
        return err_set(e, EXIT_BAD_USAGE,
                       "--budget: %.0f bytes are too few for %s: %.0f bytes are never quantized, "
                       "and all other parts in their smallest format exceed the rest", b->limit,
                       c->config.name, stays);
    mix_apply(b->units, n, &c->config);
    return 0;
}

void format_budget_free(struct format_budget *b)
{
    free(b->units);
}
