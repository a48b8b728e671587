/* quality.c - see quality.h. A quality record has its point and workload, so that it is joined only
 * with metrics of the same measurement. If there are too few texts for an interval, its ends are
 * null with a reason. */
#include "lib/analysis/score/quality.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/mem.h"
#include "lib/stat/bootstrap.h"

enum { DRAWS = 2000, COPIED = 5 };

/* Members that are copied from the scored record, because `about` does not have them. */
static const char *const copied[COPIED] = {"id", "seed", "task", "shots", "copies"};

static const char ACCURACY_OF[] = "accuracy_"; /* and a task: score-exact */
static const char *const lower[] = {
    "judge_nll_nats", "judge_ppl", "judge_bits_per_byte", "nll_nats", "nll_ppl",
    "nll_bits_per_byte", "elbo_nats", "elbo_ppl", "elbo_bits_per_byte", "iwae_nats", "iwae_ppl",
    "iwae_bits_per_byte", "kstep_nats", "kstep_ppl", "kstep_bits_per_byte", "repetition_ratio"};
static const char *const higher[] = {
    "entropy_nats", "distinct_1_ratio", "distinct_2_ratio", "accuracy", "choice_accuracy",
    "choice_accuracy_norm", "choice_accuracy_bytes", "bound_choice_accuracy",
    "bound_choice_accuracy_norm", "bound_choice_accuracy_bytes", "chrf", "chrf_corpus", "rouge_l",
    "token_f1", "bertscore_f1", "bertscore_precision", "bertscore_recall"};

const char *quality_direction(const char *metric)
{
    for (size_t i = 0; i < sizeof lower / sizeof *lower; i++)
        if (!strcmp(lower[i], metric))
            return "lower";
    for (size_t i = 0; i < sizeof higher / sizeof *higher; i++)
        if (!strcmp(higher[i], metric))
            return "higher";
    return strncmp(metric, ACCURACY_OF, strlen(ACCURACY_OF)) ? NULL : "higher";
}

static void put_direction(json_t *quality, const char *metric)
{
    assert(quality_direction(metric));
    rec_set_text(quality, "direction", quality_direction(metric));
}

json_t *quality_of(const json_t *about, const json_t *record, const char *metric)
{
    json_t *quality = json_copy((json_t *)(uintptr_t)about);
    for (size_t i = 0; i < COPIED; i++) {
        json_t *value = json_object_get(record, copied[i]);
        if (value && !json_is_null(value))
            json_object_set(quality, copied[i], value);
    }
    json_object_set_new(quality, "metric", json_string(metric));
    put_direction(quality, metric);
    return quality;
}

int quality_write(struct rec_writer *writer, const json_t *about, const json_t *record,
                  const char *metric, json_t *value, const char *why, struct err *e)
{
    json_t *quality = quality_of(about, record, metric);
    json_object_set_new(quality, "value", value ? value : json_null());
    if (!value)
        json_object_set_new(quality, "value_reason", json_string(why));
    return rec_write(writer, "quality", quality, e);
}

json_t *quality_summary(const json_t *about, const char *metric, struct interval interval,
                        int64_t n, int single, const char *why, const char *method)
{
    int wide = n > !single;
    const char *narrow = n ? "n<2" : why;
    json_t *quality = json_copy((json_t *)(uintptr_t)about);
    json_object_set_new(quality, "metric", json_string(metric));
    json_object_set_new(quality, "summary", json_true());
    rec_set_number(quality, "value", interval.value, why);
    rec_set_number(quality, "lo", wide ? interval.lo : (double)NAN, narrow);
    rec_set_number(quality, "hi", wide ? interval.hi : (double)NAN, narrow);
    json_object_set_new(quality, "level", json_real(0.95));
    rec_set_int(quality, "n", n);
    json_object_set_new(quality, "method", json_string(method));
    put_direction(quality, metric);
    return quality;
}

json_t *quality_pooled(const json_t *about, const char *metric, const double *num,
                       const double *den, size_t n, enum pooled_transform transform,
                       uint64_t seed, const char *why, const char *method)
{
    const unsigned char has = 1;
    double value, *draws = mem_zero(DRAWS, sizeof *draws);
    double *work = mem_zero(2 * (n + 1), sizeof *work);
    uint32_t *index = mem_zero(n, sizeof *index);
    pooled_draws(num, den, &has, 1, n, transform, seed, DRAWS, &value, draws, index, work);
    struct interval interval = bootstrap_interval(value, draws, DRAWS, 0.95);
    free(index);
    free(work);
    free(draws);
    return quality_summary(about, metric, interval, (int64_t)n, 0, why, method);
}
