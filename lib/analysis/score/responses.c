/* responses.c - see responses.h. Groups keep the order in which they came until the end, so that
 * their places stay valid. Responses of random weights are counted and not scored: a wrong answer
 * of random weights tells nothing. */
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

static struct response_group *find_group(struct responses *s, const json_t *r)
{
    buf_clear(&s->key);
    buf_text(&s->key, about_point(r));
    buf_char(&s->key, '\n');
    buf_text(&s->key, about_workload(r));
    size_t place = places_of(&s->index, s->key.data, s->key.len);
    if (place == s->n) {
        MEM_GROW(s->group, s->n, s->cap);
        s->group[s->n] = (struct response_group){.about = about_carried(r)};
        if (s->also)
            json_object_update(s->group[s->n].about, s->also);
        s->n++;
    }
    return &s->group[place];
}

static void make_id_key(struct responses *s, const json_t *r)
{
    buf_clear(&s->key);
    json_put(json_object_get(r, "id"), JSON_ENCODE_ANY, &s->key);
}

/* 1: this id and seed were scored in the group before (another round of the same prompt). */
static int is_repeat(struct responses *s, struct response_group *g, const json_t *r)
{
    const json_t *seed = json_object_get(r, "seed");
    make_id_key(s, r);
    buf_char(&s->key, '\n');
    json_put(seed ? seed : json_null(), JSON_ENCODE_ANY, &s->key);
    size_t place = places_of(&s->prompts, s->key.data, s->key.len);
    if (place / 8 >= g->cap_met) {
        size_t had = g->cap_met;
        g->cap_met = 2 * (place / 8) + 16;
        g->met = mem_resize(g->met, g->cap_met, 1);
        memset(g->met + had, 0, g->cap_met - had);
    }
    unsigned char bit = (unsigned char)(1 << place % 8), before = g->met[place / 8];
    g->met[place / 8] |= bit;
    return (before & bit) != 0;
}

/* Sets the prompt of the record and its number of copies. */
static void note_prompt(struct responses *s, struct response_group *g, const json_t *r)
{
    make_id_key(s, r);
    g->at = (uint32_t)places_of(&s->ids, s->key.data, s->key.len);
    g->times = (uint32_t)rec_int(r, "copies", 1);
}

/* Checks the members that a quality record copies from its answer. */
static int check_copied(const json_t *r, struct err *e)
{
    const json_t *task = json_object_get(r, "task"), *seed = json_object_get(r, "seed"),
                 *copies = json_object_get(r, "copies");
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

int responses_take(struct responses *s, const json_t *r, struct response *of, struct err *e)
{
    const char *status = rec_text(r, "status"), *phase = rec_text(r, "phase");
    const json_t *id = json_object_get(r, "id"), *wanted = json_object_get(r, s->wanted);
    if (strcmp(rec_kind(r), "generation"))
        return 0;
    if (!about_point(r) || (!json_is_string(id) && !json_is_integer(id)))
        return err_set(e, EXIT_BAD_DATA, "config, id: expected texts, got none");
    if (check_copied(r, e))
        return -1;
    int timed = !(status && strcmp(status, "ok")) && !(phase && strcmp(phase, "timed"));
    struct response_group *g = timed && wanted && !json_is_null(wanted) ? find_group(s, r) : NULL;
    int64_t *passed = !timed              ? &s->not_ok
                      : !g                ? &s->none
                      : is_repeat(s, g, r) ? &s->repeats
                                          : NULL;
    if (passed) {
        ++*passed;
        return 1;
    }
    const char *text = rec_text(r, "text_to_eos");
    note_prompt(s, g, r);
    *of = (struct response){g, text ? text : rec_text(r, "text"), wanted,
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
        g->prompt = mem_resize(g->prompt, g->cap, sizeof *g->prompt);
        g->copies = mem_resize(g->copies, g->cap, sizeof *g->copies);
    }
    g->prompt[g->n] = g->at;
    g->copies[g->n] = g->times;
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

static int compare_about(const void *a, const void *b)
{
    return about_order(((const struct response_group *)a)->about,
                       ((const struct response_group *)b)->about);
}

/* Replaces the rows of each prompt by their mean; a single row stays as it is, bit for bit. */
static void average_repeats(const struct responses *s, struct response_group *g)
{
    uint32_t *row = mem_zero(s->ids.n, sizeof *row); /* [prompt]: its row + 1 */
    double *times = mem_zero(g->n, sizeof *times);
    size_t n = 0;
    for (size_t i = 0; i < g->n; i++) {
        const double *from = g->v + i * s->width, c = g->copies[i];
        uint32_t *at = &row[g->prompt[i]];
        if (!*at) {
            memmove(g->v + n * s->width, from, s->width * sizeof *from);
            times[n++] = c;
            *at = (uint32_t)n;
            continue;
        }
        double *to = g->v + (*at - 1) * s->width, had = times[*at - 1];
        for (size_t k = 0; k < s->width; k++)
            to[k] = (to[k] * had + from[k] * c) / (had + c);
        times[*at - 1] = had + c;
    }
    g->n = n;
    free(times);
    free(row);
}

void responses_finish(struct responses *s, const struct log *log)
{
    for (size_t i = 0; i < s->n; i++)
        average_repeats(s, &s->group[i]);
    if (s->n)
        qsort(s->group, s->n, sizeof *s->group, compare_about);
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
        free(s->group[i].prompt);
        free(s->group[i].copies);
        free(s->group[i].met);
    }
    free(s->group);
    places_free(&s->index);
    places_free(&s->prompts);
    places_free(&s->ids);
    buf_free(&s->key);
}

const char *responses_why(const struct response_group *g)
{
    return g->unscored ? "random weights" : "n<1";
}

double *responses_sums(const struct responses *s, const struct response_group *g, uint64_t seed)
{
    double *sums = mem_zero((RESPONSES_DRAWS + 1) * s->width, sizeof *sums);
    uint32_t *index = mem_zero(g->n, sizeof *index);
    for (size_t d = 0; d < RESPONSES_DRAWS; d++) {
        bootstrap_draw(seed, d, g->n, index);
        bootstrap_sums(g->v, s->width, index, g->n, sums + d * s->width);
    }
    bootstrap_sums(g->v, s->width, NULL, g->n, sums + RESPONSES_DRAWS * s->width);
    free(index);
    return sums;
}

json_t *responses_mean(const struct responses *s, const struct response_group *g,
                       const double *sums, size_t at, const char *metric)
{
    double *mean = mem_zero(RESPONSES_DRAWS + 1, sizeof *mean);
    for (size_t d = 0; d <= RESPONSES_DRAWS; d++)
        mean[d] = g->n ? sums[d * s->width + at] / (double)g->n : (double)NAN;
    struct interval v = bootstrap_interval(mean[RESPONSES_DRAWS], mean, RESPONSES_DRAWS, 0.95);
    free(mean);
    return quality_summary(g->about, metric, "higher", v, (int64_t)g->n, 0, responses_why(g),
                           "mean, percentile bootstrap of texts");
}
