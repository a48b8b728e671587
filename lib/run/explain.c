/* explain.c - see explain.h. The numbers are the estimates of the batches that the run would make.
 * Records of the run repeat them as `planned_bytes`. The error of a quantization is computed with
 * the code of the format, on normally distributed weights. */
#include "lib/run/explain.h"

#include <math.h>
#include <stdlib.h>

#include "kernels/quant.h"
#include "lib/base/mem.h"
#include "lib/base/pool.h"
#include "lib/base/rng.h"
#include "lib/checkpoint/quantization.h"
#include "lib/run/memory_fit.h"
#include "lib/run/generation_record.h"

/* 1: noise and confidences are computed in double. */
static int is_double(const struct settings *point)
{
    static const char *const kinds[] = {"gumbel", "confidence_dtype"};
    int yes = 1;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        size_t row = settings_find(point->table, kinds[i]);
        yes &= row == point->table->n || !settings_counts(point, row) ||
               settings_is(point, kinds[i], "f64");
    }
    return yes;
}

/* 1: no option changes a bit of what the checkpoint computes in its dtype. */
static int is_exact(const struct network *n, const struct memory_estimate *estimate,
                    const struct settings *point)
{
    enum dtype kv = network_half(n) ? DTYPE_BF16 : DTYPE_F32;
    return n->quant == n->config.quant && (n->kv_dtype == kv || !estimate->kv) &&
           is_double(point) && !engine_is_tf32(n);
}

/* Returns the root of sum (w - w')^2 / sum w^2, w' = w in the format of the blocks; 0 without
 * quantization. */
static double weights_error(const struct network *n)
{
    enum { ROWS = 64, COLS = 4096 };
    enum dtype dtype = quantization_dtype(n->quant, &n->config, ROLE_GATE, 0, n->dtype);
    if (!dtype_info[dtype].quantized)
        return 0;
    struct rng rng = {.seed = 1};
    float *w = mem_alloc(2 * ROWS * COLS * sizeof *w), *back = w + ROWS * COLS;
    for (size_t i = 0; i < ROWS * COLS; i++)
        w[i] = (float)rng_normal(&rng);
    const struct mat_source source = mat_floats(w, ROWS, COLS);
    struct pool *pool = pool_new(1);
    struct codes codes;
    void *block = quant_make(&codes, &source, dtype, pool);
    double far = 0, size = 0;
    quant_floats(&codes, COLS, 0, ROWS, back);
    for (size_t i = 0; i < ROWS * COLS; i++) {
        far += pow((double)w[i] - (double)back[i], 2);
        size += pow((double)w[i], 2);
    }
    pool_free(pool);
    free(block);
    free(w);
    return sqrt(far / size);
}

/* Returns the largest batch that fits, found by halving as --on-oom plan does; 0: not even one
 * prompt fits. */
static size_t find_largest_batch(const struct job *job, const struct network *n,
                                 const struct network *companion, const struct settings *point,
                                 const struct promptset *prompts)
{
    const size_t all = promptset_at(prompts, point)->n;
    size_t size = memory_fit_together(point, all);
    for (size = size < all ? size : all; size; size = size > 1 ? size - size / 2 : 0)
        if (memory_fit_for_point(job, n, companion, point, prompts, size).fits)
            break;
    return size;
}

static json_t *record_of(const struct job *job, const struct network *n,
                         const struct generation_place *at, const struct memory_fit *fit,
                         size_t fits, double error)
{
    const struct memory_estimate *estimate = &fit->need;
    const char *level = job->args->engine.level;
    json_t *record = generation_record_about(job, n, at);
    /* point and series depend on hashes of the weights, which --explain does not read */
    json_object_del(record, "point");
    json_object_del(record, "series");
    rec_set_text(record, "level", level);
    json_object_set_new(record, "exact", json_boolean(is_exact(n, estimate, at->point)));
    json_object_set_new(record, "weights_error_ratio", json_real(error));
    rec_set_int(record, "batch_filled", (int64_t)fit->batch);
    rec_set_int(record, "prompt_tokens", (int64_t)fit->tokens);
    rec_set_int(record, "new_tokens", (int64_t)fit->extent);
    rec_set_int(record, "weights_bytes", (int64_t)estimate->weights);
    rec_set_int(record, "kv_bytes", (int64_t)estimate->kv);
    rec_set_int(record, "activations_bytes", (int64_t)estimate->activations);
    rec_set_int(record, "logits_bytes", (int64_t)estimate->logits);
    rec_set_int(record, "planned_bytes", (int64_t)estimate_bytes(estimate));
    rec_set_int(record, "available_bytes", (int64_t)fit->available);
    json_object_set_new(record, "fits", json_boolean(fit->fits));
    rec_set_int(record, "batch_fits", (int64_t)fits);
    return record;
}

static void log_fit(const struct log *log, json_t *record, const struct memory_fit *fit,
                    size_t fits)
{
    const struct memory_estimate *estimate = &fit->held;
    const char *config = rec_text(record, "config");
    if (!fit->batch)
        log_note(log, "%s: no prompt fits its context", config);
    else if (fit->fits)
        log_note(log, "%s: %.4g MB of weights, %.4g of cache, %.4g of activations (%.4g for the "
                 "head): %.4g MB of %.4g free: it fits", config, (double)estimate->weights * 1e-6,
                 (double)estimate->kv * 1e-6, (double)estimate->activations * 1e-6,
                 (double)estimate->logits * 1e-6, (double)estimate_bytes(estimate) * 1e-6,
                 (double)fit->available * 1e-6);
    else
        log_note(log, "%s: %.4g MB of weights, %.4g of cache, %.4g of activations (%.4g for the "
                 "head): %.4g MB, and %.4g are free: %zu of %zu prompts fit together (try "
                 "--on-oom plan)", config, (double)estimate->weights * 1e-6,
                 (double)estimate->kv * 1e-6, (double)estimate->activations * 1e-6,
                 (double)estimate->logits * 1e-6, (double)estimate_bytes(estimate) * 1e-6,
                 (double)fit->available * 1e-6, fits, fit->batch);
}

static int tell_slowdown(const struct network *n, const struct memory_fit *fit, json_t *record,
                         const struct log *log, struct err *e)
{
    struct slowdown slowdown;
    if (slowdown_foresee(&slowdown, n, &fit->need, &fit->passes, e))
        return -1;
    slowdown_say(&slowdown, n, log);
    generation_record_put_offload(record, n, &slowdown);
    return 0;
}

int explain_write(const struct job *job, const struct network *n, const struct network *companion,
                  const struct promptset *prompts, struct rec_writer *out, const struct log *log,
                  struct err *e)
{
    const struct backend *backend = n->backend;
    const double error = weights_error(n);
    log_note(log, "%s on %s: matrices %s, quantization %s, cache %s; nothing is loaded",
             n->config.name, backend->name[0] ? backend->name : backend->ops->name,
             dtype_info[n->dtype].name, quantization_name(n->quant), dtype_info[n->kv_dtype].name);
    if (error > 0)
        log_note(log, "%s changes weights by %.2g %% of their size, and thus the answers",
                 quantization_name(n->quant), 100 * error);
    for (size_t i = 0; i < job->plan->points; i++) {
        const struct settings *point = &job->plan->point[i];
        int uses = companion && settings_count(point, job->decoder->companion_setting);
        const struct generation_place at = {.point = point, .companion = uses ? companion : NULL};
        struct memory_fit fit = memory_fit_for_point(job, n, companion, point, prompts,
                                                     prompts->n);
        size_t fits = fit.fits ? fit.batch : find_largest_batch(job, n, companion, point, prompts);
        json_t *record = record_of(job, n, &at, &fit, fits, error);
        log_fit(log, record, &fit, fits);
        if (network_offloads(n) && fit.batch && tell_slowdown(n, &fit, record, log, e)) {
            json_decref(record);
            return -1;
        }
        if (rec_write(out, "plan", record, e))
            return -1;
    }
    return 0;
}
