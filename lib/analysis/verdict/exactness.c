/* exactness.c - see exactness.h. Generations are indexed by case, system and role. In a run each
 * prompt has the ids of its answer, or null if the answer failed or occurs twice. The member
 * `shows` of a case names fields that its generations must have: true means any value but 0, other
 * values must be equal. */
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
    struct buf b = {0};
    buf_format(&b, "%s %s %s", test, system, role);
    return b.data;
}

static json_t *index_of(const json_t *records)
{
    json_t *index = json_object(), *r;
    size_t i;
    json_array_foreach(records, i, r) {
        const char *test = rec_text(r, "case"), *system = rec_text(r, "system");
        const char *role = rec_text(r, "role");
        if (!test || !system || !role)
            continue;
        char *key = key_of(test, system, role);
        json_t *list = json_object_get(index, key);
        if (!list)
            json_object_set_new(index, key, list = json_array());
        json_array_append(list, r);
        free(key);
    }
    return index;
}

static json_t *find_run(const json_t *index, const struct trial *t, const char *role)
{
    char *key = key_of(rec_text(t->test, "case"), t->system, role);
    json_t *list = json_object_get(index, key);
    free(key);
    return list;
}

/* ---- ids ---- */

/* {id: token_ids or null}; the caller's reference. */
static json_t *answers_of(const json_t *generations)
{
    json_t *answers = json_object(), *g;
    size_t i;
    json_array_foreach(generations, i, g) {
        const char *id = rec_text(g, "id");
        json_t *ids = json_object_get(g, "token_ids");
        if (!id)
            continue;
        if (json_object_get(answers, id) || !rec_is(g, "status", "ok") || !json_is_array(ids))
            json_object_set_new(answers, id, json_null());
        else
            json_object_set(answers, id, ids);
    }
    return answers;
}

/* The number of places at which two lists differ; a place of only one list counts. */
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

static void add_difference(struct ids_difference *d, const json_t *a, const json_t *b)
{
    const int is_same = json_is_array(a) && json_equal(a, b);
    d->answers++;
    d->tokens += (int64_t)json_array_size(a);
    d->differing_answers += !is_same;
    d->differing_tokens += is_same ? 0 : count_differing(a, b);
}

static struct ids_difference difference_of(const struct trial *t)
{
    json_t *a = answers_of(t->base), *b = answers_of(t->run), *ids;
    struct ids_difference d = {0};
    const char *id;
    json_object_foreach(a, id, ids)
        add_difference(&d, ids, json_object_get(b, id));
    json_object_foreach(b, id, ids)
        if (!json_object_get(a, id))
            add_difference(&d, NULL, ids);
    json_decref(a);
    json_decref(b);
    return d;
}

/* ---- did the flags take effect? ---- */

static int is_shown(const json_t *v, const json_t *wanted)
{
    if (json_is_true(wanted))
        return json_is_number(v) ? json_number_value(v) > 0
                                 : json_is_string(v) || json_is_array(v) || json_is_object(v);
    if (json_is_number(v) && json_is_number(wanted))
        return !(json_number_value(v) < json_number_value(wanted)) &&
               !(json_number_value(v) > json_number_value(wanted));
    return v ? json_equal(v, wanted) : json_is_null(wanted);
}

static int is_effective(const struct trial *t)
{
    json_t *shows = json_object_get(t->test, "shows"), *g, *wanted;
    const char *key;
    size_t i;
    json_array_foreach(t->run, i, g)
        json_object_foreach(shows, key, wanted)
            if (!is_shown(json_object_get(g, key), wanted))
                return 0;
    return 1;
}

/* ---- records ---- */

static void put_difference(json_t *r, const struct trial *t)
{
    const struct ids_difference d = difference_of(t);
    rec_set_int(r, "answers", d.answers);
    rec_set_int(r, "differing_answers", d.differing_answers);
    rec_set_int(r, "tokens", d.tokens);
    rec_set_int(r, "differing_tokens", d.differing_tokens);
    json_object_set_new(r, "outcome", json_string(d.answers && !d.differing_answers ? "held"
                                                                                   : "not held"));
}

static json_t *record_of(const struct trial *t)
{
    const char *base = rec_text(t->test, "base"), *needs = rec_text(t->test, "needs");
    const json_t *first = json_array_get(t->run, 0);
    json_t *r = json_object();
    rec_copy(r, "case", t->test, "case");
    rec_copy(r, "text", t->test, "text");
    json_object_set_new(r, "arch", json_string(t->system));
    rec_copy(r, "flags", t->test, "flags");
    json_object_set_new(r, "base", json_string(base ? base : ""));
    json_object_set_new(r, "claimed",
                        json_boolean(!json_is_false(json_object_get(t->test, "claimed"))));
    rec_copy(r, "model", first, "model");
    rec_copy(r, "device", first, "device");
    rec_copy(r, "isa", first, "isa");
    if (first || !needs) {
        put_difference(r, t);
        return r;
    }
    struct buf why = {0};
    buf_format(&why, "needs %s", needs);
    json_object_set_new(r, "outcome", json_string("not applicable"));
    json_object_set_new(r, "outcome_reason", json_string(why.data));
    buf_free(&why);
    return r;
}

static int fail(const struct trial *t, struct err *e)
{
    char *shows = json_dumps(json_object_get(t->test, "shows"), JSON_COMPACT);
    err_set(e, EXIT_BAD_DATA, "%s: its records do not show %s", rec_text(t->test, "case"),
            shows ? shows : "it");
    free(shows);
    return -1;
}

json_t *exactness_judge(const json_t *cases, const json_t *records, struct err *e)
{
    static const char *const systems[] = {"llada", "llama"};
    json_t *index = index_of(records), *list = json_array(), *c;
    int bad = 0;
    size_t i;
    json_array_foreach(cases, i, c)
        for (size_t s = 0; s < 2 && !bad; s++) {
            struct trial t = {.test = c, .system = systems[s]};
            if (!rec_text(c, "case") ||
                (json_object_get(c, "systems") && !rec_lists(c, "systems", t.system)))
                continue;
            t.base = find_run(index, &t, "base");
            t.run = find_run(index, &t, "run");
            if (is_effective(&t))
                json_array_append_new(list, record_of(&t));
            else
                bad = fail(&t, e);
        }
    json_decref(index);
    if (bad) {
        json_decref(list);
        return NULL;
    }
    return list;
}
