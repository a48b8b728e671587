/* multichoice.c - see multichoice.h. The member `variety` of struct score has one number for each
 * metric here: 1 if the answer is right by this metric, else 0. */
#include "lib/analysis/score/multichoice.h"

#include <math.h>

#include "lib/analysis/score/quality.h"
#include "lib/stat/bootstrap.h"

enum { WHOLE, CHARACTERS, BYTES, NORMS };
static const char *const names[2][NORMS] = {
    {"choice_accuracy", "choice_accuracy_norm", "choice_accuracy_bytes"},
    {"bound_choice_accuracy", "bound_choice_accuracy_norm", "bound_choice_accuracy_bytes"}};

const json_t *multichoice_of(const json_t *record, struct err *e)
{
    const json_t *choices = json_object_get(record, "choices"), *value;
    const int64_t right = rec_int(record, "right_choice", -1);
    size_t i;
    if (json_array_size(choices) < 2 || right < 0 || right >= (int64_t)json_array_size(choices)) {
        err_set(e, EXIT_BAD_DATA, "expected `choices`, two or more, and `right_choice`, the index "
                "of the right one from 0 (prep-prompts --task writes both)");
        return NULL;
    }
    json_array_foreach(choices, i, value)
        if (!json_string_length(value) || !rec_text(record, "text")) {
            err_set(e, EXIT_BAD_DATA, "expected `choices`, a list of strings that are not empty, "
                    "and `text`, the question");
            return NULL;
        }
    return choices;
}

static double length_of(const char *choice, int norm)
{
    double n = 0;
    for (const char *at = choice; *at; at++)
        n += norm == BYTES || (*at & 0xC0) != 0x80;
    return norm == WHOLE ? 1 : n;
}

/* The index of the choice with the least nats by this norm; on a tie the first. */
static size_t answer_of(const json_t *choices, const json_t *nats, int norm)
{
    double least = INFINITY;
    size_t best = 0;
    for (size_t i = 0; i < json_array_size(nats); i++) {
        const double v = json_number_value(json_array_get(nats, i)) /
                         length_of(json_string_value(json_array_get(choices, i)), norm);
        if (v < least) {
            least = v;
            best = i;
        }
    }
    return best;
}

int multichoice_write(struct rec_writer *out, struct scores *scores, const json_t *record,
                      json_t *nats, int is_bound, struct err *e)
{
    const json_t *choices = json_object_get(record, "choices");
    const size_t right = (size_t)rec_int(record, "right_choice", -1);
    struct score hits = {0};
    int bad = 0;
    for (int k = 0; k < NORMS && !bad; k++) {
        hits.variety[k] = answer_of(choices, nats, k) == right;
        json_t *quality = quality_of(scores->about, record, names[is_bound][k]);
        rec_set_number(quality, "value", scores->random ? (double)NAN : hits.variety[k],
                       "random weights");
        if (k == WHOLE)
            json_object_set(quality, "choice_nats", nats);
        bad = rec_write(out, "quality", quality, e);
    }
    if (!scores->random)
        scores_keep(scores, rec_text(record, "id"), hits);
    return bad;
}

int multichoice_sum(struct rec_writer *out, const struct scores *scores, int is_bound,
                    struct err *e)
{
    int bad = 0;
    for (int k = 0; k < NORMS && !bad; k++) {
        double hits = 0;
        for (size_t i = 0; i < scores->n; i++)
            hits += scores->v[i].variety[k] / scores->v[i].texts[k]; /* mean if a prompt repeats */
        bad = rec_write(out, "quality",
                        quality_summary(scores->about, names[is_bound][k],
                                        bootstrap_wilson(hits, (double)scores->n, 0.95),
                                        (int64_t)scores->n, 1,
                                        scores->random ? "random weights" : "no text was scored",
                                        is_bound ? "least bound, Wilson interval"
                                                 : "least nats, Wilson interval"),
                        e);
    }
    return bad;
}
