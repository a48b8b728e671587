/* rankings.c - see rankings.h. Values are summed in a tree of objects: metric -> place -> system ->
 * prompt -> [sum of values, sum of weights]. A prompt is a task and an id. The systems, and the
 * places and prompts that all of them have, become an array. An answer that is not drawn is the
 * same under every seed. So its place has no seed at first, and spread() copies it to all seeds. */
#include "lib/analysis/verdict/rankings.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lib/analysis/about.h"
#include "lib/analysis/records/scale.h"
#include "lib/base/buf.h"
#include "lib/base/mem.h"
#include "lib/base/order.h"
#include "lib/record/json.h"
#include "lib/record/rec.h"
#include "lib/setting/settings.h"
#include "lib/stat/ranking.h"

static const double LEVEL = 0.95;
static const char HOLDS[] = "HOLDS", FLIPS[] = "FLIPS", SAME[] = "SAME", UNDECIDED[] = "UNDECIDED";

/* ---- records ---- */

static const char SEED[] = " seed=";

/* Appends the name of the record's place: "chat=own shots=5 seed=1". */
static void name_place(struct buf *text, const json_t *record)
{
    const char *conditions = rec_text(record, "conditions");
    const int shots = json_is_integer(json_object_get(record, "shots"));
    const int is_named = conditions && *conditions; /* "" would be the key of the direction */
    buf_text(text, is_named ? conditions : shots ? "" : "no template");
    if (shots)
        buf_format(text, "%sshots=%lld", text->len ? " " : "",
                   (long long)rec_int(record, "shots", 0));
    const json_t *seed = about_is_drawn(record) ? json_object_get(record, "seed") : NULL;
    if (json_is_integer(seed))
        buf_format(text, "%s%lld", SEED, (long long)json_integer_value(seed));
    else if (json_is_string(seed))
        buf_format(text, "%s%s", SEED, json_string_value(seed));
}

static void name_system(const json_t *record, char id[SETTINGS_ID])
{
    json_t *about = about_of(record);
    settings_id(about, "conditions", id);
    json_decref(about);
}

static int has_word(const char *label, const char *word, size_t n)
{
    for (; *label; label += strcspn(label, " "), label += *label == ' ')
        if (strcspn(label, " ") == n && !memcmp(label, word, n))
            return 1;
    return 0;
}

/* Sets names[system] to the words that all labels of the system have: labels of different places
 * may name the template of the place. */
static void put_label(json_t *names, const char *system, const json_t *record)
{
    const char *config = rec_text(record, "config"), *had = rec_text(names, system);
    struct buf words = {0};
    config = config ? config : "";
    had = had ? had : config;
    for (size_t n; *had; had += n, had += *had == ' ') {
        n = strcspn(had, " ");
        if (has_word(config, had, n))
            buf_format(&words, "%s%.*s", words.len ? " " : "", (int)n, had);
    }
    rec_set_text(names, system, words.data ? words.data : "");
    buf_free(&words);
}

/* Adds the value of a quality record to the tree. names: system -> label of its points. */
static void add(json_t *tree, json_t *names, const json_t *record)
{
    const char *metric = rec_text(record, "metric"), *id = rec_text(record, "id");
    const double value = rec_number(record, "value");
    char system[SETTINGS_ID];
    if (!metric || !id || isnan(value) || json_is_true(json_object_get(record, "summary")) ||
        *about_stack(record))
        return;
    const struct pooled_kind kind = pooled_of(metric);
    const double weight = kind.weight == POOLED_BY_PROMPT ? 1
                          : rec_number(record, kind.weight == POOLED_BY_TOKEN ? "scored_tokens"
                                                                              : "scored_bytes");
    if (!(weight > 0))
        return;
    struct buf place = {0}, prompt = {0};
    name_place(&place, record);
    buf_format(&prompt, "%s %s", rec_text(record, "task") ? rec_text(record, "task") : "", id);
    name_system(record, system);
    json_t *in = json_within(tree, metric);
    json_object_set(in, "", json_object_get(record, "direction")); /* no place has the name "" */
    in = json_within(json_within(in, place.data), system);
    const json_t *had = json_object_get(in, prompt.data);
    const double times = rec_copies(record);
    json_object_set_new(in, prompt.data, json_pack("[f, f, f]",
        times * value + json_number_value(json_array_get(had, 0)),
        times * weight + json_number_value(json_array_get(had, 1)),
        times + json_number_value(json_array_get(had, 2))));
    put_label(names, system, record);
    buf_free(&place);
    buf_free(&prompt);
}

/* ---- places, systems and prompts in common ---- */

struct field { /* the values of one metric */
    const json_t *places; /* place -> system -> prompt -> sums */
    json_t *systems, *at, *ids; /* names of systems, common places, common prompts, in the order
                                   of the array; owned */
    int higher; /* scale_higher() */
};

/* Appends the keys of an object, sorted, to the list. Leaves out the key "". */
static void put_keys(json_t *list, const json_t *object)
{
    size_t n = 0;
    const char *key;
    json_t *value;
    const char **keys = mem_zero(json_object_size(object) + 1, sizeof *keys);
    json_object_foreach((json_t *)(uintptr_t)object, key, value)
        if (*key)
            keys[n++] = key;
    qsort(keys, n, sizeof *keys, order_texts);
    for (size_t i = 0; i < n; i++)
        json_array_append_new(list, json_string(keys[i]));
    free(keys);
}

static const char *name_at(const json_t *list, size_t i)
{
    return json_string_value(json_array_get(list, i));
}

static const json_t *sums_of(const struct field *field, const char *place, const char *system)
{
    return json_object_get(json_object_get(field->places, place), system);
}

/* Copies the systems of each place without a seed to the places that differ from it only by a seed,
 * then removes the place without a seed. */
static void spread(json_t *places)
{
    json_t *all = json_array();
    put_keys(all, places);
    for (size_t i = 0; i < json_array_size(all); i++) {
        const char *name = name_at(all, i), *seed = strstr(name, SEED);
        char *base = mem_text(name);
        base[seed ? (size_t)(seed - name) : 0] = 0;
        json_object_update_missing(json_object_get(places, name), json_object_get(places, base));
        free(base);
    }
    for (size_t i = 0; i < json_array_size(all); i++) {
        const char *seed = strstr(name_at(all, i), SEED);
        char *base = mem_text(name_at(all, i));
        base[seed ? (size_t)(seed - name_at(all, i)) : 0] = 0;
        json_object_del(places, base);
        free(base);
    }
    json_decref(all);
}

static void find_common(struct field *field)
{
    json_t *any = json_object(), *all = json_array(), *ids = json_array();
    put_keys(all, field->places);
    for (size_t i = 0; i < json_array_size(all); i++)
        json_object_update(any, json_object_get(field->places, name_at(all, i)));
    put_keys(field->systems, any);
    for (size_t i = 0; i < json_array_size(all); i++)
        if (json_object_size(json_object_get(field->places, name_at(all, i))) ==
            json_array_size(field->systems))
            json_array_append(field->at, json_array_get(all, i));
    put_keys(ids, sums_of(field, name_at(field->at, 0), name_at(field->systems, 0)));
    for (size_t i = 0; i < json_array_size(ids); i++) {
        int everywhere = 1;
        for (size_t place = 0; place < json_array_size(field->at); place++)
            for (size_t system = 0; system < json_array_size(field->systems); system++)
                everywhere &= json_object_get(sums_of(field, name_at(field->at, place),
                                                      name_at(field->systems, system)),
                                              name_at(ids, i)) != NULL;
        if (everywhere)
            json_array_append(field->ids, json_array_get(ids, i));
    }
    json_decref(any);
    json_decref(all);
    json_decref(ids);
}

/* Fills num and den. If a prompt has several answers, the mean of their values counts. A record
 * with `copies` N counts N times. */
static struct ranking fill(const struct field *field, const struct pooled_kind *kind, double *num,
                           double *den)
{
    struct ranking ranking = {json_array_size(field->systems), json_array_size(field->at),
                              json_array_size(field->ids), num, den,
                              {kind->transform, field->higher, 1}};
    size_t at = 0;
    for (size_t system = 0; system < ranking.systems; system++)
        for (size_t place = 0; place < ranking.places; place++)
            for (size_t prompt = 0; prompt < ranking.prompts; prompt++, at++) {
                const json_t *value = json_object_get(
                    sums_of(field, name_at(field->at, place), name_at(field->systems, system)),
                    name_at(field->ids, prompt));
                const double answers = json_number_value(json_array_get(value, 2));
                num[at] = json_number_value(json_array_get(value, 0)) / answers;
                den[at] = json_number_value(json_array_get(value, 1)) / answers;
                ranking.kind.binary &= !(num[at] > 0 && num[at] < 1) && num[at] >= 0 &&
                                       num[at] <= 1;
            }
    ranking.kind.binary &= kind->transform == POOLED_PLAIN;
    return ranking;
}

/* ---- the record ---- */

/* The places in which the pair is shown to have this order (1 or -1). */
static json_t *places_with(const struct field *field, const signed char *shown, int order)
{
    json_t *list = json_array();
    for (size_t place = 0; place < json_array_size(field->at); place++)
        if (shown[place] == order)
            json_array_append(list, json_array_get(field->at, place));
    return list;
}

static json_t *flips_of(const struct field *field, const signed char *shown, const json_t *names)
{
    json_t *list = json_array();
    const size_t n = json_array_size(field->systems);
    for (size_t i = 0; i < n; i++)
        for (size_t j = i + 1; j < n; j++) {
            const signed char *of = shown + ranking_pair(n, i, j) * json_array_size(field->at);
            json_t *up = places_with(field, of, 1), *down = places_with(field, of, -1);
            if (json_array_size(up) && json_array_size(down))
                json_array_append_new(list, json_pack("{s:O, s:O, s:O, s:O}",
                    "first", json_object_get(names, name_at(field->systems, i)),
                    "second", json_object_get(names, name_at(field->systems, j)),
                    "first_better", up, "second_better", down));
            json_decref(up);
            json_decref(down);
        }
    return list;
}

/* The inputs of a verdict. */
struct judged {
    const struct field *field;
    const struct ranking *ranking;
    const struct pooled_margin *margin;
    const signed char *shown;
    double *work;
};

static const char *verdict_on(const struct judged *judged, size_t i, size_t j)
{
    const size_t places = judged->ranking->places;
    const signed char *of = judged->shown + ranking_pair(judged->ranking->systems, i, j) * places;
    size_t up = 0, down = 0;
    for (size_t place = 0; place < places; place++) {
        up += of[place] > 0;
        down += of[place] < 0;
    }
    if (up && down)
        return FLIPS;
    if (up == places || down == places)
        return HOLDS;
    return ranking_is_same(judged->ranking, i, j, judged->margin, LEVEL, judged->work) ? SAME
                                                                                    : UNDECIDED;
}

/* A list with the verdict on each pair of systems. */
static json_t *pairs_of(const struct judged *judged, const json_t *names)
{
    json_t *list = json_array();
    const json_t *systems = judged->field->systems;
    for (size_t i = 0; i < json_array_size(systems); i++)
        for (size_t j = i + 1; j < json_array_size(systems); j++)
            json_array_append_new(list, json_pack("{s:O, s:O, s:s}",
                "first", json_object_get(names, name_at(systems, i)),
                "second", json_object_get(names, name_at(systems, j)),
                "verdict", verdict_on(judged, i, j)));
    return list;
}

static size_t count(const json_t *pairs, const char *verdict)
{
    size_t n = 0, i;
    const json_t *pair;
    json_array_foreach(pairs, i, pair)
        n += (size_t)rec_is(pair, "verdict", verdict);
    return n;
}

/* The verdict on all pairs. SAME: each pair holds or is the same. */
static const char *verdict_on_all(const json_t *pairs)
{
    return count(pairs, FLIPS)       ? FLIPS
           : count(pairs, UNDECIDED) ? UNDECIDED
           : count(pairs, SAME)      ? SAME
                                     : HOLDS;
}

static void say(struct buf *text, const json_t *record, const struct ranking *ranking,
                const struct pooled_margin *margin)
{
    const json_t *flip = json_array_get(json_object_get(record, "flips"), 0);
    const json_t *pairs = json_object_get(record, "pairs");
    const size_t same = count(pairs, SAME);
    buf_format(text, "Order of %zu points by %s over %zu templates and seeds: Kendall's tau %.2f "
               "[%.2f, %.2f], ", ranking->systems, rec_text(record, "metric"), ranking->places,
               rec_number(record, "tau"), rec_number(record, "lo"), rec_number(record, "hi"));
    if (flip)
        buf_format(text, "it flips: %s is better than %s with %s and worse with %s.",
                   rec_text(flip, "first"), rec_text(flip, "second"),
                   name_at(json_object_get(flip, "first_better"), 0),
                   name_at(json_object_get(flip, "second_better"), 0));
    else if (!rec_is(record, "verdict", SAME))
        buf_text(text, rec_is(record, "verdict", HOLDS) ? "it holds." : "not shown to hold.");
    else {
        if (same < json_array_size(pairs))
            buf_format(text, "it holds for %zu pair%s; ", json_array_size(pairs) - same,
                       json_array_size(pairs) - same == 1 ? "" : "s");
        buf_format(text, "%zu pair%s shown to differ by less than %.4g%s everywhere.", same,
                   same == 1 ? " is" : "s are", (margin->relative ? 100 : 1) * margin->by,
                   margin->relative ? " %" : "");
    }
}

static json_t *record_of(const struct field *field, const struct pooled_kind *kind,
                         const struct pooled_margin *margin, size_t left_out, const json_t *names)
{
    const size_t systems = json_array_size(field->systems), places = json_array_size(field->at);
    const size_t n = systems * places * json_array_size(field->ids);
    double *num = mem_zero(2 * n, sizeof *num), *work = mem_zero(2 * n, sizeof *work);
    signed char *shown = mem_zero(systems * systems * places, 1);
    const struct ranking ranking = fill(field, kind, num, num + n);
    const struct ranking_found found = ranking_find(&ranking, LEVEL, shown, work);
    const struct judged judged = {field, &ranking, margin, shown, work};
    struct buf text = {0};
    json_t *labels = json_array(), *pairs = pairs_of(&judged, names);
    for (size_t i = 0; i < systems; i++)
        json_array_append(labels, json_object_get(names, name_at(field->systems, i)));
    json_t *record = json_pack("{s:s, s:f, s:f, s:f, s:f, s:s, s:o, s:O, s:o}", "metric",
                               kind->name, "tau", found.tau, "lo", found.lo, "hi", found.hi,
                               "level", LEVEL, "verdict", verdict_on_all(pairs), "systems",
                               labels, "places", field->at, "flips",
                               flips_of(field, shown, names));
    json_object_set_new(record, "pairs", pairs);
    json_object_set_new(record, "margin", json_real(margin->by));
    json_object_set_new(record, "margin_relative", json_boolean(margin->relative));
    rec_set_int(record, "n", (int64_t)ranking.prompts);
    rec_set_int(record, "left_out", (int64_t)left_out);
    say(&text, record, &ranking, margin);
    json_object_set_new(record, "text", json_string(text.data));
    buf_free(&text);
    free(shown);
    free(work);
    free(num);
    return record;
}

json_t *rankings_of(const json_t *qualities, const char *margins)
{
    json_t *tree = json_object(), *names = json_object(), *list = json_array();
    json_t *metrics = json_array();
    const json_t *quality, *name;
    size_t i;
    json_array_foreach(qualities, i, quality)
        add(tree, names, quality);
    put_keys(metrics, tree);
    json_array_foreach(metrics, i, name) {
        const char *metric = json_string_value(name);
        json_t *of = json_object_get(tree, metric);
        const struct pooled_kind kind = pooled_of(metric);
        struct pooled_margin margin;
        const int malformed = pooled_margin_parse(margins, kind.name, &margin);
        assert(!malformed);
        const int higher = scale_higher(metric, rec_text(of, ""));
        json_object_del(of, "");
        spread(of);
        struct field field = {of, json_array(), json_array(), json_array(), higher};
        find_common(&field);
        if (higher >= 0 && json_array_size(field.systems) > 1 && json_array_size(field.at) > 1 &&
            json_array_size(field.ids))
            json_array_append_new(list, record_of(&field, &kind, &margin, json_object_size(of) -
                                                  json_array_size(field.at), names));
        json_decref(field.systems);
        json_decref(field.at);
        json_decref(field.ids);
    }
    json_decref(metrics);
    json_decref(names);
    json_decref(tree);
    return list;
}
