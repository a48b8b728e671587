/* responses.c - see responses.h. Groups stay in the order of arrival until responses_finish(), so
 * that their places in `index` stay valid. Responses of random weights are counted and not scored,
 * because their wrong answers tell nothing. */
#include "lib/analysis/score/responses.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lib/analysis/about.h"
#include "lib/analysis/score/quality.h"
#include "lib/base/mem.h"
#include "lib/record/json.h"
#include "lib/record/rec.h"
#include "lib/stat/bootstrap.h"

static struct response_group *find_group(struct responses *responses, const json_t *record)
{
    buf_clear(&responses->key);
    buf_text(&responses->key, about_point(record));
    buf_char(&responses->key, '\n');
    buf_text(&responses->key, about_workload(record));
    size_t place = places_of(&responses->index, responses->key.data, responses->key.len);
    if (place == responses->n) {
        MEM_GROW(responses->group, responses->n, responses->cap);
        responses->group[responses->n] = (struct response_group){.about = about_carried(record)};
        if (responses->also)
            json_object_update(responses->group[responses->n].about, responses->also);
        responses->n++;
    }
    return &responses->group[place];
}

static void make_id_key(struct responses *responses, const json_t *record)
{
    buf_clear(&responses->key);
    json_put(json_object_get(record, "id"), JSON_ENCODE_ANY, &responses->key);
}

/* 1: this id and seed were scored in the group before: the record is a further round of a
 * prompt. */
static int is_repeat(struct responses *responses, struct response_group *group,
                     const json_t *record)
{
    const json_t *seed = json_object_get(record, "seed");
    make_id_key(responses, record);
    buf_char(&responses->key, '\n');
    json_put(seed ? seed : json_null(), JSON_ENCODE_ANY, &responses->key);
    size_t place = places_of(&responses->prompts, responses->key.data, responses->key.len);
    if (place / 8 >= group->cap_met) {
        size_t had = group->cap_met;
        group->cap_met = 2 * (place / 8) + 16;
        group->met = mem_resize(group->met, group->cap_met, 1);
        memset(group->met + had, 0, group->cap_met - had);
    }
    unsigned char bit = (unsigned char)(1 << place % 8), before = group->met[place / 8];
    group->met[place / 8] |= bit;
    return (before & bit) != 0;
}

/* Sets the prompt of the record and its number of copies. */
static void note_prompt(struct responses *responses, struct response_group *group,
                        const json_t *record)
{
    make_id_key(responses, record);
    group->at = (uint32_t)places_of(&responses->ids, responses->key.data, responses->key.len);
    group->times = (uint32_t)rec_int(record, "copies", 1);
}

/* Checks the members that a quality record copies from the generation record. */
static int check_copied(const json_t *record, struct err *e)
{
    const json_t *task = json_object_get(record, "task"), *seed = json_object_get(record, "seed"),
                 *copies = json_object_get(record, "copies");
    if (task && !json_is_null(task) && !json_is_string(task))
        return err_set(e, EXIT_BAD_DATA, "task: expected a text, got %s", rec_type(task));
    if (seed && !json_is_null(seed) && !json_is_string(seed) && !json_is_integer(seed))
        return err_set(e, EXIT_BAD_DATA, "seed: expected a whole number, got %s", rec_type(seed));
    double n = json_is_integer(copies) ? json_number_value(copies) : 0;
    if (copies && !json_is_null(copies) && !(n >= 1 && n <= UINT32_MAX))
        return err_set(e, EXIT_BAD_DATA, "copies: expected a whole number from 1 to %u, got %.15g",
                       UINT32_MAX, json_number_value(copies));
    return 0;
}

int responses_take(struct responses *responses, const json_t *record, struct response *of,
                   struct err *e)
{
    const char *status = rec_text(record, "status"), *phase = rec_text(record, "phase");
    const json_t *id = json_object_get(record, "id"),
                 *wanted = json_object_get(record, responses->wanted);
    if (strcmp(rec_kind(record), "generation"))
        return 0;
    if (!about_point(record) || (!json_is_string(id) && !json_is_integer(id)))
        return err_set(e, EXIT_BAD_DATA, "config, id: expected texts, got none");
    if (check_copied(record, e))
        return -1;
    int timed = !(status && strcmp(status, "ok")) && !(phase && strcmp(phase, "timed"));
    struct response_group *group = timed && wanted && !json_is_null(wanted)
                                       ? find_group(responses, record)
                                       : NULL;
    int64_t *passed = !timed                                ? &responses->not_ok
                      : !group                              ? &responses->none
                      : is_repeat(responses, group, record) ? &responses->repeats
                                                            : NULL;
    if (passed) {
        ++*passed;
        return 1;
    }
    const char *text = rec_text(record, "text_to_eos");
    note_prompt(responses, group, record);
    *of = (struct response){group, text ? text : rec_text(record, "text"), wanted,
                            json_is_true(json_object_get(record, "weights_random"))};
    of->group->unscored += of->random;
    return of->text || of->random ? 2
                                  : err_set(e, EXIT_BAD_DATA, "text: expected a text, got none");
}

double *responses_keep(const struct responses *responses, struct response_group *group)
{
    if (group->n == group->cap) {
        size_t numbers;
        group->cap = group->cap ? 2 * group->cap : 16;
        if (mem_size_mul(group->cap, responses->width, &numbers))
            err_machine(__FILE__, __LINE__, "no memory for scores");
        group->v = mem_resize(group->v, numbers, sizeof *group->v);
        group->prompt = mem_resize(group->prompt, group->cap, sizeof *group->prompt);
        group->copies = mem_resize(group->copies, group->cap, sizeof *group->copies);
    }
    group->prompt[group->n] = group->at;
    group->copies[group->n] = group->times;
    return group->v + responses->width * group->n++;
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

static int compare_about(const void *a, const void *b)
{
    return about_order(((const struct response_group *)a)->about,
                       ((const struct response_group *)b)->about);
}

/* Replaces the rows of each prompt by their mean. A single row stays as it is, bit for bit. */
static void average_repeats(const struct responses *responses, struct response_group *group)
{
    uint32_t *row = mem_zero(responses->ids.n, sizeof *row); /* [prompt]: row + 1; 0: none yet */
    double *times = mem_zero(group->n, sizeof *times);
    size_t n = 0;
    for (size_t i = 0; i < group->n; i++) {
        const double *from = group->v + i * responses->width, copies = group->copies[i];
        uint32_t *at = &row[group->prompt[i]];
        if (!*at) {
            memmove(group->v + n * responses->width, from, responses->width * sizeof *from);
            times[n++] = copies;
            *at = (uint32_t)n;
            continue;
        }
        double *to = group->v + (*at - 1) * responses->width, had = times[*at - 1];
        for (size_t k = 0; k < responses->width; k++)
            to[k] = (to[k] * had + from[k] * copies) / (had + copies);
        times[*at - 1] = had + copies;
    }
    group->n = n;
    free(times);
    free(row);
}

void responses_finish(struct responses *responses, const struct log *log)
{
    for (size_t i = 0; i < responses->n; i++)
        average_repeats(responses, &responses->group[i]);
    if (responses->n)
        qsort(responses->group, responses->n, sizeof *responses->group, compare_about);
    if (responses->none + responses->repeats + responses->not_ok)
        log_note(log, "skipped: %lld without %s %s, %lld further rounds, %lld not timed or not ok",
                 (long long)responses->none, *responses->wanted == 'a' ? "an" : "a",
                 responses->wanted, (long long)responses->repeats, (long long)responses->not_ok);
}

void responses_free(struct responses *responses)
{
    for (size_t i = 0; i < responses->n; i++) {
        json_decref(responses->group[i].about);
        free(responses->group[i].v);
        free(responses->group[i].prompt);
        free(responses->group[i].copies);
        free(responses->group[i].met);
    }
    free(responses->group);
    places_free(&responses->index);
    places_free(&responses->prompts);
    places_free(&responses->ids);
    buf_free(&responses->key);
}

const char *responses_why(const struct response_group *group)
{
    return group->unscored ? "random weights" : "n<1";
}

double *responses_sums(const struct responses *responses, const struct response_group *group,
                       uint64_t seed)
{
    double *sums = mem_zero((RESPONSES_DRAWS + 1) * responses->width, sizeof *sums);
    uint32_t *index = mem_zero(group->n, sizeof *index);
    for (size_t d = 0; d < RESPONSES_DRAWS; d++) {
        bootstrap_draw(seed, d, group->n, index);
        bootstrap_sums(group->v, responses->width, index, group->n, sums + d * responses->width);
    }
    bootstrap_sums(group->v, responses->width, NULL, group->n,
                   sums + RESPONSES_DRAWS * responses->width);
    free(index);
    return sums;
}

json_t *responses_mean(const struct responses *responses, const struct response_group *group,
                       const double *sums, size_t at, const char *metric)
{
    double *mean = mem_zero(RESPONSES_DRAWS + 1, sizeof *mean);
    for (size_t d = 0; d <= RESPONSES_DRAWS; d++)
        mean[d] = group->n ? sums[d * responses->width + at] / (double)group->n : (double)NAN;
    struct interval interval = bootstrap_interval(mean[RESPONSES_DRAWS], mean, RESPONSES_DRAWS,
                                                  0.95);
    free(mean);
    return quality_summary(group->about, metric, interval, (int64_t)group->n, 0,
                           responses_why(group), "mean, percentile bootstrap of texts");
}
