/* exactness.c - see exactness.h. Generations are indexed by case, system and role. For each run the
 * ids of each prompt's answer are kept, or null if the answer failed or occurs twice. The member
 * `shows` of a case names fields that its generations must have. The value true asks for any value
 * but 0; any other value must be equal. */
#include "lib/analysis/verdict/exactness.h"

#include <stdlib.h>

#include "lib/base/buf.h"
#include "lib/record/rec.h"

/* Generations of one case on one system. */
struct trial {
    const json_t *test; /* the case; borrowed */
    const char *system;
    json_t *base, *run; /* arrays; borrowed; NULL: none */
};

struct ids_difference {
    int64_t answers, differing_answers, tokens, differing_tokens;
};

/* ---- the index ---- */

static char *key_of(const char *test, const char *system, const char *role)
{
    struct buf text = {0};
    buf_format(&text, "%s %s %s", test, system, role);
    return text.data;
}

static json_t *index_of(const json_t *records)
{
    json_t *index = json_object(), *record;
    size_t i;
    json_array_foreach(records, i, record) {
        const char *test = rec_text(record, "case"), *system = rec_text(record, "system");
        const char *role = rec_text(record, "role");
        if (!test || !system || !role)
            continue;
        char *key = key_of(test, system, role);
        json_t *list = json_object_get(index, key);
        if (!list)
            json_object_set_new(index, key, list = json_array());
        json_array_append(list, record);
        free(key);
    }
    return index;
}

static json_t *find_run(const json_t *index, const struct trial *trial, const char *role)
{
    char *key = key_of(rec_text(trial->test, "case"), trial->system, role);
    json_t *list = json_object_get(index, key);
    free(key);
    return list;
}

/* ---- ids ---- */

/* {id of the prompt: token_ids or null}; the caller's reference. */
static json_t *answers_of(const json_t *generations)
{
    json_t *answers = json_object(), *generation;
    size_t i;
    json_array_foreach(generations, i, generation) {
        const char *id = rec_text(generation, "id");
        json_t *ids = json_object_get(generation, "token_ids");
        if (!id)
            continue;
        if (json_object_get(answers, id) || !rec_is(generation, "status", "ok") ||
            !json_is_array(ids))
            json_object_set_new(answers, id, json_null());
        else
            json_object_set(answers, id, ids);
    }
    return answers;
}

/* The number of positions at which two lists differ. A position that only one list has counts. */
static int64_t count_differing(const json_t *a, const json_t *b)
{
    const size_t n = json_array_size(a), m = json_array_size(b), all = n > m ? n : m;
    int64_t differing = 0;
    for (size_t i = 0; i < all; i++) {
        const json_t *x = json_array_get(a, i), *y = json_array_get(b, i);
        differing += !x || !y || !json_equal(x, y);
    }
    return differing;
}

static void add_difference(struct ids_difference *difference, const json_t *a, const json_t *b)
{
    const int is_same = json_is_array(a) && json_equal(a, b);
    difference->answers++;
    difference->tokens += (int64_t)json_array_size(a);
    difference->differing_answers += !is_same;
    difference->differing_tokens += is_same ? 0 : count_differing(a, b);
}

static struct ids_difference difference_of(const struct trial *trial)
{
    json_t *base = answers_of(trial->base), *run = answers_of(trial->run), *ids;
    struct ids_difference difference = {0};
    const char *id;
    json_object_foreach(base, id, ids)
        add_difference(&difference, ids, json_object_get(run, id));
    json_object_foreach(run, id, ids)
        if (!json_object_get(base, id))
            add_difference(&difference, NULL, ids);
    json_decref(base);
    json_decref(run);
    return difference;
}

/* ---- whether the flags took effect ---- */

static int is_shown(const json_t *value, const json_t *wanted)
{
    if (json_is_true(wanted))
        return json_is_number(value)
                   ? json_number_value(value) > 0
                   : json_is_string(value) || json_is_array(value) || json_is_object(value);
    if (json_is_number(value) && json_is_number(wanted))
        return !(json_number_value(value) < json_number_value(wanted)) &&
               !(json_number_value(value) > json_number_value(wanted));
    return value ? json_equal(value, wanted) : json_is_null(wanted);
}

static int is_effective(const struct trial *trial)
{
    json_t *shows = json_object_get(trial->test, "shows"), *g, *wanted;
    const char *key;
    size_t i;
    json_array_foreach(trial->run, i, g)
        json_object_foreach(shows, key, wanted)
            if (!is_shown(json_object_get(g, key), wanted))
                return 0;
    return 1;
}

/* ---- records ---- */

static void put_difference(json_t *record, const struct trial *trial)
{
    const struct ids_difference difference = difference_of(trial);
    rec_set_int(record, "answers", difference.answers);
    rec_set_int(record, "differing_answers", difference.differing_answers);
    rec_set_int(record, "tokens", difference.tokens);
    rec_set_int(record, "differing_tokens", difference.differing_tokens);
    json_object_set_new(
        record, "outcome",
        json_string(difference.answers && !difference.differing_answers ? "held" : "not held"));
}

static json_t *record_of(const struct trial *trial)
{
    const char *base = rec_text(trial->test, "base"), *needs = rec_text(trial->test, "needs");
    const json_t *first = json_array_get(trial->run, 0);
    json_t *record = json_object();
    rec_copy(record, "case", trial->test, "case");
    rec_copy(record, "text", trial->test, "text");
    json_object_set_new(record, "arch", json_string(trial->system));
    rec_copy(record, "flags", trial->test, "flags");
    json_object_set_new(record, "base", json_string(base ? base : ""));
    json_object_set_new(record, "claimed",
                        json_boolean(!json_is_false(json_object_get(trial->test, "claimed"))));
    rec_copy(record, "model", first, "model");
    rec_copy(record, "device", first, "device");
    rec_copy(record, "isa", first, "isa");
    if (first || !needs) {
        put_difference(record, trial);
        return record;
    }
    struct buf why = {0};
    buf_format(&why, "needs %s", needs);
    json_object_set_new(record, "outcome", json_string("not applicable"));
    json_object_set_new(record, "outcome_reason", json_string(why.data));
    buf_free(&why);
    return record;
}

static int fail(const struct trial *trial, struct err *e)
{
    char *shows = json_dumps(json_object_get(trial->test, "shows"), JSON_COMPACT);
    err_set(e, EXIT_BAD_DATA, "%s: its records do not show %s", rec_text(trial->test, "case"),
            shows ? shows : "it");
    free(shows);
    return -1;
}

json_t *exactness_judge(const json_t *cases, const json_t *records, struct err *e)
{
    static const char *const systems[] = {"llada", "llama"};
    json_t *index = index_of(records), *list = json_array(), *test;
    int bad = 0;
    size_t i;
    json_array_foreach(cases, i, test)
        for (size_t which = 0; which < 2 && !bad; which++) {
            struct trial trial = {.test = test, .system = systems[which]};
            if (!rec_text(test, "case") ||
                (json_object_get(test, "systems") && !rec_lists(test, "systems", trial.system)))
                continue;
            trial.base = find_run(index, &trial, "base");
            trial.run = find_run(index, &trial, "run");
            if (is_effective(&trial))
                json_array_append_new(list, record_of(&trial));
            else
                bad = fail(&trial, e);
        }
    json_decref(index);
    if (bad) {
        json_decref(list);
        return NULL;
    }
    return list;
}
