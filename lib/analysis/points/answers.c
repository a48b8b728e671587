/* answers.c - see answers.h. Answers are stored in the order of the records and found by point,
 * then by prompt. Pairs are sorted by the identity of their prompt, so that the order of the
 * records does not change the draws. */
#include "lib/analysis/points/answers.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lib/analysis/about.h"
#include "lib/base/mem.h"
#include "lib/record/rec.h"

/* Returns the answers of a point and workload, {id: place in v}. The caller borrows it. */
static json_t *answers_of(struct answers *answers, const json_t *record)
{
    char *key = mem_format("%s\n%s", about_point(record), about_workload(record));
    if (!answers->index)
        answers->index = json_object();
    json_t *list = json_object_get(answers->index, key);
    if (!list)
        json_object_set_new(answers->index, key, list = json_object());
    free(key);
    return list;
}

static int read_ids(struct answer *to, const json_t *list, struct err *e)
{
    size_t n = json_array_size(list);
    int32_t *ids = mem_zero(n, sizeof *ids);
    for (size_t i = 0; i < n; i++) {
        const json_t *id = json_array_get(list, i);
        json_int_t value = json_integer_value(id);
        if (!json_is_integer(id) || value < 0 || value > INT32_MAX) {
            free(ids);
            return err_set(e, EXIT_BAD_DATA, "token_ids: expected integers from 0 to %d",
                           INT32_MAX);
        }
        ids[i] = (int32_t)value;
    }
    *to = (struct answer){ids, mem_zero(n, sizeof *to->step), n, NAN};
    return 0;
}

/* Sets the pass after which each id can be read. Tokens are emitted at the end of a pass, so the
 * pass is the first one that ends at the time of the emission or later. */
static void read_steps(struct answer *to, const json_t *record)
{
    const json_t *when = json_object_get(record, "emit_ns"),
                 *tokens = json_object_get(record, "emit_tokens");
    const json_t *end = json_object_get(record, "step_ns");
    size_t pass = 0, at = 0;
    for (size_t i = 0; i < json_array_size(when); i++) {
        json_int_t ns = json_integer_value(json_array_get(when, i));
        json_int_t n = json_integer_value(json_array_get(tokens, i));
        while (pass < json_array_size(end) &&
               json_integer_value(json_array_get(end, pass)) < ns)
            pass++;
        for (; pass < json_array_size(end) && n > 0 && at < to->n; n--)
            to->step[at++] = (int32_t)pass + 1;
    }
}

/* Stores the answer in v[at]; if at = n, appends it. */
static int keep_answer(struct answers *answers, size_t at, const json_t *record, const json_t *ids,
                       struct err *e)
{
    struct answer got = {0};
    if (read_ids(&got, ids, e))
        return -1;
    read_steps(&got, record);
    got.seed = rec_number(record, "seed");
    if (at == answers->n) {
        MEM_GROW(answers->v, answers->n, answers->cap);
        answers->n++;
    } else {
        free(answers->v[at].ids);
        free(answers->v[at].step);
    }
    answers->v[at] = got;
    return 0;
}

int answers_take(struct answers *answers, const json_t *record, struct err *e)
{
    const char *status = rec_text(record, "status"), *phase = rec_text(record, "phase");
    const json_t *ids = json_object_get(record, "token_ids"), *id = json_object_get(record, "id");
    if (strcmp(rec_kind(record), "generation"))
        return 0;
    if (json_is_null(ids)) /* another engine sends texts without token ids */
        return 1;
    if (!about_point(record) || (!json_is_string(id) && !json_is_integer(id)) ||
        !json_is_array(ids))
        return err_set(e, EXIT_BAD_DATA, "point, id, token_ids: expected texts and a list");
    if ((status && strcmp(status, "ok")) || (phase && strcmp(phase, "timed")) ||
        json_is_true(json_object_get(record, "weights_random")))
        return 1;
    json_t *list = answers_of(answers, record);
    char *key = json_dumps(id, JSON_COMPACT | JSON_ENCODE_ANY);
    if (!key)
        err_machine(__FILE__, __LINE__, "no memory for a key");
    const json_t *had = json_object_get(list, key);
    size_t at = had ? (size_t)json_integer_value(had) : answers->n;
    int bad = 0;
    if (!had || rec_number(record, "seed") < answers->v[at].seed) {
        bad = keep_answer(answers, at, record, ids, e);
        if (!bad)
            json_object_set_new(list, key, json_integer((json_int_t)at));
    }
    free(key);
    return bad ? -1 : 1;
}

void answers_free(struct answers *answers)
{
    for (size_t i = 0; i < answers->n; i++) {
        free(answers->v[i].ids);
        free(answers->v[i].step);
    }
    free(answers->v);
    json_decref(answers->index);
}

static double step_at(const struct answer *answer, size_t i)
{
    return i < answer->n && answer->step[i] ? (double)answer->step[i] : (double)NAN;
}

static struct answers_pair pair_of(const char *prompt, const struct answer *first_answer,
                                   const struct answer *second_answer)
{
    size_t both = first_answer->n < second_answer->n ? first_answer->n : second_answer->n,
           all = first_answer->n < second_answer->n ? second_answer->n : first_answer->n;
    struct answers_pair pair = {prompt, (double)all, (double)(all - both), NAN, NAN};
    if (all > both)
        pair.first = (double)both + 1;
    for (size_t i = both; i-- > 0;)
        if (first_answer->ids[i] != second_answer->ids[i]) {
            pair.differing++;
            pair.first = (double)i + 1;
        }
    if (!isnan(pair.first))
        pair.step = fmin(step_at(first_answer, (size_t)pair.first - 1),
                         step_at(second_answer, (size_t)pair.first - 1));
    return pair;
}

static int by_prompt(const void *a, const void *b)
{
    return strcmp(((const struct answers_pair *)a)->prompt,
                  ((const struct answers_pair *)b)->prompt);
}

static json_t *answers_at(const struct answers *answers, const struct point *point)
{
    char *key = mem_format("%s\n%s", point->id, point->workload);
    json_t *list = json_object_get(answers->index, key);
    free(key);
    return list;
}

struct answers_pair *answers_pairs(const struct answers *answers, const struct point *one,
                                   const struct point *rival, size_t *n)
{
    json_t *first = answers_at(answers, one), *second = answers_at(answers, rival), *place;
    struct answers_pair *list = mem_zero(json_object_size(first), sizeof *list);
    const char *prompt;
    *n = 0;
    json_object_foreach(first, prompt, place) {
        const json_t *other = json_object_get(second, prompt);
        const struct answer *answer = &answers->v[json_integer_value(place)];
        const struct answer *match = other ? &answers->v[json_integer_value(other)] : NULL;
        /* both answers have the same seed, or one has none */
        if (match && !(answer->seed < match->seed) && !(answer->seed > match->seed))
            list[(*n)++] = pair_of(prompt, answer, match);
    }
    if (*n)
        qsort(list, *n, sizeof *list, by_prompt);
    return list;
}
