/* responses.c - see responses.h. Groups stand in the order in which they were met until the end, so
 * that a place stays what it is. A response of random weights is counted and not scored: that it is
 * wrong would be a statement about nothing. */
#include "lib/analysis/responses.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lib/analysis/about.h"
#include "lib/analysis/quality.h"
#include "lib/base/mem.h"
#include "lib/record/rec.h"

static struct response_group *find_group(struct responses *s, const json_t *r)
{
    char *key = mem_format("%s\n%s", about_point(r), about_workload(r));
    if (!s->index)
        s->index = json_object();
    const json_t *at = json_object_get(s->index, key);
    size_t place = at ? (size_t)json_integer_value(at) : s->n;
    if (!at) {
        json_object_set_new(s->index, key, json_integer((json_int_t)place));
        MEM_GROW(s->group, s->n, s->cap);
        s->group[s->n++] = (struct response_group){.about = about_carried(r)};
    }
    free(key);
    return &s->group[place];
}

/* 1 when this point, workload, id and seed were scored before: another round of the same prompt. */
static int is_repeat(struct responses *s, const json_t *r)
{
    json_t *place = json_pack("[s, s, O, O?]", about_point(r), about_workload(r),
                              json_object_get(r, "id"), json_object_get(r, "seed"));
    char *key = json_dumps(place, JSON_COMPACT | JSON_ENCODE_ANY);
    json_decref(place);
    if (!key)
        err_machine(__FILE__, __LINE__, "no memory for a key");
    if (!s->scored)
        s->scored = json_object();
    int had = json_object_get(s->scored, key) != NULL;
    json_object_set_new(s->scored, key, json_true());
    free(key);
    return had;
}

int responses_take(struct responses *s, const json_t *r, struct response *of, struct err *e)
{
    const char *status = rec_text(r, "status"), *phase = rec_text(r, "phase");
    const json_t *id = json_object_get(r, "id"), *wanted = json_object_get(r, s->wanted);
    if (strcmp(rec_kind(r), "generation"))
        return 0;
    if (!about_point(r) || (!json_is_string(id) && !json_is_integer(id)))
        return err_set(e, EXIT_BAD_DATA, "config, id: expected texts, got none");
    int64_t *passed = (status && strcmp(status, "ok")) || (phase && strcmp(phase, "timed"))
                          ? &s->not_ok
                      : !wanted || json_is_null(wanted) ? &s->none
                      : is_repeat(s, r)                 ? &s->repeats
                                                        : NULL;
    if (passed) {
        ++*passed;
        return 1;
    }
    const char *text = rec_text(r, "text_to_eos");
    *of = (struct response){find_group(s, r), text ? text : rec_text(r, "text"), wanted,
                            json_is_true(json_object_get(r, "weights_random"))};
    of->group->unscored += of->random;
    return of->text || of->random ? 2
                                  : err_set(e, EXIT_BAD_DATA, "text: expected a text, got none");
}

double *responses_keep(const struct responses *s, struct response_group *g)
{
    if (g->n == g->cap) {
        size_t numbers;
        g->cap = g->cap ? 2 * g->cap : 16;
        if (mem_size_mul(g->cap, s->width, &numbers))
            err_machine(__FILE__, __LINE__, "no memory for scores");
        g->v = mem_resize(g->v, numbers, sizeof *g->v);
    }
    return g->v + s->width * g->n++;
}

int64_t responses_wanted(const struct response *of, struct err *e)
{
    size_t n = json_is_array(of->wanted) ? json_array_size(of->wanted) : 1;
    for (size_t i = 0; i < n; i++)
        if (!responses_wanted_at(of, i))
            n = 0;
    return n ? (int64_t)n
             : err_set(e, EXIT_BAD_DATA, "reference: expected a text or a list of texts");
}

const char *responses_wanted_at(const struct response *of, size_t i)
{
    return json_string_value(json_is_array(of->wanted) ? json_array_get(of->wanted, i)
                                                       : of->wanted);
}

static int by_about(const void *a, const void *b)
{
    return about_order(((const struct response_group *)a)->about,
                       ((const struct response_group *)b)->about);
}

void responses_finish(struct responses *s, const struct log *log)
{
    if (s->n)
        qsort(s->group, s->n, sizeof *s->group, by_about);
    if (s->none + s->repeats + s->not_ok)
        log_note(log, "skipped: %lld without %s %s, %lld further rounds, %lld not timed or not ok",
                 (long long)s->none, *s->wanted == 'a' ? "an" : "a", s->wanted,
                 (long long)s->repeats, (long long)s->not_ok);
}

void responses_free(struct responses *s)
{
    for (size_t i = 0; i < s->n; i++) {
        json_decref(s->group[i].about);
        free(s->group[i].v);
    }
    free(s->group);
    json_decref(s->index);
    json_decref(s->scored);
}

const char *responses_why(const struct response_group *g)
{
    return g->unscored ? "random weights" : "n<1";
}

json_t *responses_mean(const struct responses *s, const struct response_group *g, size_t at,
                       const char *metric, uint64_t seed)
{
    double *num = mem_zero(g->n, sizeof *num), *den = mem_zero(g->n, sizeof *den);
    for (size_t i = 0; i < g->n; i++) {
        num[i] = g->v[i * s->width + at];
        den[i] = 1;
    }
    json_t *q = quality_pooled(g->about, metric, "higher", num, den, g->n, POOLED_PLAIN, seed,
                               responses_why(g), "mean, percentile bootstrap of texts");
    free(num);
    free(den);
    return q;
}
