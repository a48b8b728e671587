/* format_budget.c - see format_budget.h. Bytes that are never quantized are taken off the budget
 * first. The model is loaded without quantization, and calibration_measure() quantizes one part at
 * a time. */
#include "lib/run/probe/format_budget.h"

#include <math.h>
#include <stdlib.h>

#include "lib/base/mem.h"

/* Measures losses by the likelihood of texts. */
static int calibrate(struct format_budget *budget, struct calibration *k, struct checkpoint *model,
                     const struct engine *engine, const struct common *common,
                     const struct log *log, struct err *e)
{
    struct tokenizer *tokenizer = NULL;
    struct backend *back = NULL;
    struct network n = {0};
    struct progress progress;
    progress_start(&progress, log, common->progress, "parts", (int64_t)mix_count(&model->config));
    int bad = checkpoint_tokenizer(model, &tokenizer, e) ||
              calibration_read(k, &budget->texts, 1, common->limit, model, tokenizer, e) ||
              engine_open(engine, &back, e);
    if (!bad)
        engine_level(engine, back, model, log);
    bad = bad || engine_load(engine, &n, back, model, e) ||
          calibration_measure(k, &n, model, budget->units, &budget->dense_nats, &progress, e);
    progress_end(&progress);
    network_free(&n);
    backend_close(back);
    tokenizer_free(tokenizer);
    return bad ? -1 : 0;
}

static int measure_by_values(struct format_budget *budget, struct checkpoint *model,
                             int64_t threads, struct err *e)
{
    struct pool *pool = pool_new((size_t)threads);
    int bad = mix_errors(budget->units, model, pool, e);
    pool_free(pool);
    return bad;
}

int format_budget_choose(struct format_budget *budget, struct checkpoint *model,
                         const struct engine *engine, const struct common *common,
                         const struct log *log, struct err *e)
{
    struct calibration k = {.samples = (size_t)budget->samples, .seed = (uint64_t)common->seed};
    size_t n = mix_count(&model->config);
    budget->units = mem_zero(n, sizeof *budget->units);
    budget->dense_nats = NAN;
    budget->gain = (struct interval){NAN, NAN, NAN};
    /* stays: bytes that are never quantized */
    double stays = mix_list(budget->units, model), all = stays;
    for (size_t i = 0; i < n; i++)
        all += budget->units[i].bytes[0];
    budget->limit = budget->bytes > 0 ? (double)budget->bytes : floor(all * budget->share);
    int bad = budget->texts ? calibrate(budget, &k, model, engine, common, log, e)
                            : measure_by_values(budget, model, engine->threads, e);
    double bytes = bad             ? 0
                   : budget->texts ? calibration_choose(&k, budget->units, n, budget->limit - stays,
                                                        &budget->gain)
                                   : mix_choose(budget->units, n, budget->limit - stays);
    calibration_free(&k);
    if (bad)
        return -1;
    if (!isfinite(bytes))
        return err_set(e, EXIT_BAD_USAGE,
                       "--budget: %.0f bytes are too few for %s: %.0f bytes are never quantized, "
                       "and all other parts in their smallest format exceed the rest",
                       budget->limit, model->config.name, stays);
    mix_apply(budget->units, n, &model->config);
    return 0;
}

void format_budget_free(struct format_budget *budget)
{
    free(budget->units);
}
