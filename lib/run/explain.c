/* explain.c - see explain.h. The numbers are the estimates of the batches that the run would make:
 * its records repeat them as `planned_bytes`. The error of a quantization is computed by the format
 * itself on normally distributed weights. */
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
static int is_exact(const struct network *n, const struct memory_estimate *m,
                    const struct settings *point)
{
    enum dtype kv = network_half(n) ? DTYPE_BF16 : DTYPE_F32;
    return n->quant == n->config.quant && (n->kv_dtype == kv || !m->kv) && is_double(point) &&
           !engine_is_tf32(n);
}

/* Root of sum (w - w')^2 / sum w^2, w' = w in the format of the blocks; 0: not quantized. */
static double weights_error(const struct network *n)
{
    enum { ROWS = 64, COLS = 4096 };
    enum dtype d = quantization_dtype(n->quant, &n->config, ROLE_GATE, 0, n->dtype);
    if (!dtype_info[d].quantized)
        return 0;
    struct rng rng = {.seed = 1};
    float *w = mem_alloc(2 * ROWS * COLS * sizeof *w), *back = w + ROWS * COLS;
    for (size_t i = 0; i < ROWS * COLS; i++)
        w[i] = (float)rng_normal(&rng);
    const struct mat_source s = mat_floats(w, ROWS, COLS);
    struct pool *pool = pool_new(1);
    struct codes q;
    void *block = quant_make(&q, &s, d, pool);
    double far = 0, size = 0;
    quant_floats(&q, COLS, 0, ROWS, back);
    for (size_t i = 0; i < ROWS * COLS; i++) {
        far += pow((double)w[i] - (double)back[i], 2);
        size += pow((double)w[i], 2);
    }
    pool_free(pool);
    free(block);
    free(w);
    return sqrt(far / size);
}

/* The largest batch that fits, halving as --on-oom plan does; 0: not even one prompt. */
static size_t find_largest_batch(const struct job *job, const struct network *n,
                                 const struct network *companion, const struct settings *point,
                                 const struct promptset *prompts)
{
    size_t size = memory_fit_together(point, prompts->n);
    for (size = size < prompts->n ? size : prompts->n; size; size = size > 1 ? size - size / 2 : 0)
        if (memory_fit_for_point(job, n, companion, point, prompts->v, prompts->n, size).fits)
            break;
    return size;
}

static json_t *record_of(const struct job *job, const struct network *n,
                         const struct generation_place *at, const struct memory_fit *f, size_t fits,
                         double error)
{
    const struct memory_estimate *m = &f->need;
    const char *level = job->args->engine.level;
    json_t *r = generation_record_about(job, n, at);
    json_object_del(r, "point"); /* they depend on hashes of weights, which nothing reads here */
    json_object_del(r, "series");
    rec_set_text(r, "level", level);
    json_object_set_new(r, "exact", json_boolean(is_exact(n, m, at->point)));
    json_object_set_new(r, "weights_error_ratio", json_real(error));
    rec_set_int(r, "batch_filled", (int64_t)f->batch);
    rec_set_int(r, "prompt_tokens", (int64_t)f->tokens);
    rec_set_int(r, "new_tokens", (int64_t)f->extent);
    rec_set_int(r, "weights_bytes", (int64_t)m->weights);
    rec_set_int(r, "kv_bytes", (int64_t)m->kv);
    rec_set_int(r, "activations_bytes", (int64_t)m->activations);
    rec_set_int(r, "logits_bytes", (int64_t)m->logits);
    rec_set_int(r, "planned_bytes", (int64_t)estimate_bytes(m));
    rec_set_int(r, "available_bytes", (int64_t)f->available);
    json_object_set_new(r, "fits", json_boolean(f->fits));
    rec_set_int(r, "batch_fits", (int64_t)fits);
    return r;
}

static void log_fit(const struct log *log, json_t *r, const struct memory_fit *f, size_t fits)
{
    const struct memory_estimate *m = &f->need;
    const char *config = rec_text(r, "config");
    if (!f->batch)
        log_note(log, "%s: no prompt fits its context", config);
    else if (f->fits)
        log_note(log, "%s: %.4g MB of weights, %.4g of cache, %.4g of activations (%.4g for the "
                 "head): %.4g MB of %.4g free: it fits", config, (double)m->weights * 1e-6,
                 (double)m->kv * 1e-6, (double)m->activations * 1e-6, (double)m->logits * 1e-6,
                 (double)estimate_bytes(m) * 1e-6, (double)f->available * 1e-6);
    else
        log_note(log, "%s: %.4g MB of weights, %.4g of cache, %.4g of activations (%.4g for the "
                 "head): %.4g MB, and %.4g are free: %zu of %zu prompts fit together (try "
                 "--on-oom plan)", config, (double)m->weights * 1e-6, (double)m->kv * 1e-6,
                 (double)m->activations * 1e-6, (double)m->logits * 1e-6,
                 (double)estimate_bytes(m) * 1e-6, (double)f->available * 1e-6, fits, f->batch);
}

static int tell_slowdown(const struct network *n, const struct memory_fit *f, json_t *r,
                         const struct log *log, struct err *e)
{
    struct slowdown s;
    if (slowdown_foresee(&s, n, &f->need, &f->passes, e))
        return -1;
    slowdown_say(&s, n, log);
    generation_record_put_offload(r, n, &s);
    return 0;
}

int explain_write(const struct job *job, const struct network *n, const struct network *companion,
                  const struct promptset *prompts, struct rec_writer *out, const struct log *log,
                  struct err *e)
{
    const struct backend *b = n->backend;
    const double error = weights_error(n);
    log_note(log, "%s on %s: matrices %s, quantization %s, cache %s; nothing is loaded",
             n->config.name, b->name[0] ? b->name : b->ops->name, dtype_info[n->dtype].name,
             quantization_name(n->quant), dtype_info[n->kv_dtype].name);
    if (error > 0)
        log_note(log, "%s changes weights by %.2g %% of their size, and thus the answers",
                 quantization_name(n->quant), 100 * error);
    for (size_t i = 0; i < job->plan->points; i++) {
        const struct settings *point = &job->plan->point[i];
        int uses = companion && settings_count(point, job->decoder->companion_setting);
        const struct generation_place at = {.point = point, .companion = uses ? companion : NULL};
        struct memory_fit f = memory_fit_for_point(job, n, companion, point, prompts->v,
                                                   prompts->n, prompts->n);
        size_t fits = f.fits ? f.batch : find_largest_batch(job, n, companion, point, prompts);
        json_t *r = record_of(job, n, &at, &f, fits, error);
        log_fit(log, r, &f, fits);
        if (network_offloads(n) && f.batch && tell_slowdown(n, &f, r, log, e)) {
            json_decref(r);
            return -1;
        }
        if (rec_write(out, "plan", r, e))
            return -1;
    }
    return 0;
}
