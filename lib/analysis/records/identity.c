/* identity.c - see identity.h. Answers are compared by a hash of 64 bits over start, times in
 * nanoseconds and other members. Among a million answers, two different ones have one hash with a
 * probability of 3 in 10^8. */
#include "lib/analysis/records/identity.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "lib/analysis/about.h"
#include "lib/analysis/records/scale.h"
#include "lib/base/hash64.h"
#include "lib/base/mem.h"
#include "lib/record/content.h"
#include "lib/record/json.h"
#include "lib/record/judges.h"

/* Keys of `known`, the object of a point in identity->points. */
static const char ABOUT[] = "about", BUILDS[] = "builds", SUMS[] = "sums", PARTS[] = "parts";

static const char *name_of(const json_t *record)
{
    const char *config = rec_text(record, "config");
    return config ? config : about_point(record);
}

/* ---- settings ---- */

static int check_settings(json_t *known, const json_t *record, struct rec_reader *in,
                          struct err *e)
{
    const json_t *about = json_object_get(known, ABOUT);
    if (!about) {
        json_object_set_new(known, ABOUT, about_carried(record));
        rec_set_text(known, "where", rec_where(in));
        return 0;
    }
    const char *key = about_difference(about, record);
    if (!key)
        return 0;
    char here[JSON_SHOWN], there[JSON_SHOWN];
    return err_set(e, EXIT_BAD_DATA, "%.200s: %s: config '%.200s' has two values of this setting: "
                   "%s here, %s in %.200s", rec_where(in), key, name_of(record),
                   json_shown(json_object_get(record, key), here),
                   json_shown(json_object_get(about, key), there), rec_text(known, "where"));
}

/* ---- the stream ---- */

/* How the text of a generation is found in the text of its meta record. */
enum match {
    MATCH_ALL,   /* both are the same */
    MATCH_START, /* the generation has the first START characters at least */
    MATCH_WORD   /* the meta record has a list "own,none", and the generation one word of it */
};
enum { START = 12 };

/* A fact that the meta record and its generations both have. A generation may leave out all facts
 * but the first: without its launch it would count as one of launch 0. */
static const struct fact {
    const char *member;       /* its member in a generation */
    const char *within, *key; /* its place in the meta record: member `key` of the object `within`;
                               * within NULL: member `key` of the record */
    enum match match;
} facts[] = {{"launch", NULL, "launch", MATCH_ALL},
             {"workload", NULL, "prompts_sha256", MATCH_START},
             {"tokenizer", NULL, "tokenizer_sha256", MATCH_START},
             {"chat", NULL, "chat", MATCH_WORD},
             {"model", "checkpoint", "model", MATCH_ALL},
             {"arch", "checkpoint", "arch", MATCH_ALL},
             {"weights_random", "checkpoint", "weights_random", MATCH_ALL}};

/* 1: `list`, words with commas between them, has the word. */
static int has_word(const char *list, const char *word)
{
    const size_t n = strlen(word);
    for (;; list++) {
        if (!strncmp(list, word, n) && (!list[n] || list[n] == ','))
            return 1;
        list += strcspn(list, ",");
        if (!*list)
            return 0;
    }
}

static int is_same(const json_t *mine, const json_t *made, enum match match)
{
    const char *x = json_string_value(mine), *y = json_string_value(made);
    if (match == MATCH_START && x && y)
        return strlen(x) >= START && !strncmp(x, y, strlen(x));
    if (match == MATCH_WORD && x && y)
        return has_word(y, x);
    if (json_is_number(mine) && json_is_number(made))
        return json_number_value(mine) == json_number_value(made);
    return json_equal(mine, made);
}

static int check_facts(const json_t *maker, const json_t *record, struct rec_reader *in,
                       struct err *e)
{
    for (size_t i = 0; i < sizeof facts / sizeof *facts; i++) {
        const struct fact *fact = &facts[i];
        const json_t *from = fact->within ? json_object_get(maker, fact->within) : maker;
        const json_t *mine = json_object_get(record, fact->member);
        const json_t *made = json_object_get(from, fact->key);
        const int is_unsaid = !json_has(record, fact->member) && fact->member != facts[0].member;
        if (is_unsaid || !json_has(from, fact->key) ||
            is_same(mine, made, fact->match))
            continue;
        char here[JSON_SHOWN], there[JSON_SHOWN];
        return err_set(e, EXIT_BAD_DATA, "%.200s: %s of '%.200s': %s here, %s (%s) in the meta "
                       "record of its stream: expected generations of the process that the meta "
                       "record describes", rec_where(in), fact->member, name_of(record),
                       json_shown(mine, here), json_shown(made, there), fact->key);
    }
    return 0;
}

/* 1: the generator took its points and its seed from a schedule. */
static int has_schedule(const json_t *maker)
{
    const json_t *word;
    size_t i;
    json_array_foreach(json_object_get(maker, "argv"), i, word)
        if (json_is_string(word) && !strncmp(json_string_value(word), "--schedule", 10))
            return 1;
    return 0;
}

/* A process has one seed. It is that of the meta record, unless a schedule has another one. */
static int check_seed(struct identity *identity, const json_t *record, struct rec_reader *in,
                      struct err *e)
{
    const json_t *mine = json_object_get(record, "seed");
    const json_t *made = json_object_get(identity->maker, "seed");
    if (!made || !mine)
        return 0;
    if (has_schedule(identity->maker)) {
        identity->seed = identity->seed ? identity->seed : json_incref((json_t *)(uintptr_t)mine);
        made = identity->seed;
    }
    if (is_same(mine, made, MATCH_ALL))
        return 0;
    char here[JSON_SHOWN], there[JSON_SHOWN];
    return err_set(e, EXIT_BAD_DATA, "%.200s: seed of '%.200s': %s here, %s in an earlier record "
                   "of its stream: expected generations of one process, which has one seed",
                   rec_where(in), name_of(record), json_shown(mine, here),
                   json_shown(made, there));
}

/* Returns the fingerprint of the machine; "": unknown. */
static const char *machine_of(const json_t *maker)
{
    const char *print = rec_text(json_object_get(maker, "machine"), "fingerprint");
    return print ? print : "";
}

static int check_build(const json_t *maker, json_t *known, const json_t *record,
                       struct rec_reader *in, struct err *e)
{
    const char *version = rec_text(maker, "version"), *commit = rec_text(maker, "commit");
    if (!version && !commit)
        return 0;
    char *build = mem_format("%.40s (%.40s)", commit ? commit : "no commit",
                             version ? version : "no version");
    json_t *builds = json_within(known, BUILDS);
    const json_t *had = json_object_get(builds, machine_of(maker));
    int bad = 0;
    if (!had)
        json_object_set_new(builds, machine_of(maker),
                            json_pack("{s:s, s:s}", "commit", build, "where", rec_where(in)));
    else if (!rec_is(had, "commit", build))
        bad = err_set(e, EXIT_BAD_DATA, "%.200s: commit of '%.200s': %s here, %s in %.200s: "
                      "expected one build behind a point; make all its launches with one build, or "
                      "pass the records of each build alone", rec_where(in), name_of(record), build,
                      rec_text(had, "commit"), rec_text(had, "where"));
    free(build);
    return bad;
}

static uint64_t hash_members(const json_t *record, const char *const *members)
{
    const char *point = about_point(record);
    uint64_t h = hash64_text(0, point, strlen(point));
    for (; *members; members++)
        h = hash64_bits(h, content_of(json_object_get(record, *members)));
    return h;
}

/* Adds a generation to the work of its stream. Choices are not compared if prompts arrive at random
 * times: each process then has other batches, so its products have other shapes. */
static void note_work(struct identity *identity, const json_t *record)
{
    static const char *const members[] = {"workload", "id", "phase", "round", "seq", "batch_filled",
                                          "new_tokens", "passes", "rows", "status", NULL};
    identity->done += hash_members(record, members);
    json_decref(identity->choices);
    identity->choices = rec_number(record, "arrival_rate") > 0
                            ? NULL : json_incref(json_object_get(record, "library_choices"));
}

/* Ends the stream. Returns -1 if an earlier stream did the same work on the same machine with other
 * library_choices. */
static int finish(struct identity *identity, struct rec_reader *in, struct err *e)
{
    const char *choices = json_string_value(identity->choices);
    int bad = 0;
    if (choices) {
        char *key = mem_format("%s %016" PRIx64, machine_of(identity->maker), identity->done);
        identity->work = identity->work ? identity->work : json_object();
        const json_t *had = json_object_get(identity->work, key);
        if (!had)
            json_object_set_new(identity->work, key, json_pack("{s:s, s:s}", "choices", choices,
                                                               "where", rec_where(in)));
        else if (!rec_is(had, "choices", choices))
            bad = err_set(e, EXIT_BAD_DATA, "%.200s: library_choices %.12s, but %.12s of the same "
                          "work in %.200s: the library ran other algorithms; make both launches "
                          "with one --gemm-choices FILE", rec_where(in), choices,
                          rec_text(had, "choices"), rec_text(had, "where"));
        free(key);
    }
    json_decref(identity->choices);
    json_decref(identity->maker);
    json_decref(identity->seed);
    identity->choices = identity->maker = identity->seed = NULL;
    identity->done = 0;
    return bad;
}

/* Follows the streams: a meta record of a generator describes the generations until `end`. */
static int follow(struct identity *identity, const json_t *record, struct rec_reader *in,
                  struct err *e)
{
    const char *kind = rec_kind(record), *tool = rec_text(record, "tool");
    const int starts = !strcmp(kind, "meta");
    if ((starts || !strcmp(kind, "end")) && finish(identity, in, e))
        return -1;
    if (starts && tool && !strncmp(tool, "gen-", 4))
        identity->maker = json_incref((json_t *)(uintptr_t)record);
    return 0;
}

/* ---- the first value of a hash ---- */

/* Returns the value of the first record with this hash. If the hash is new, that is `value`. */
static uint64_t first_value(struct firsts *firsts, uint64_t hash, uint64_t value)
{
    const size_t met = firsts->hashes.n;
    const size_t place = places_of(&firsts->hashes, (const char *)&hash, sizeof hash);
    if (place == met) {
        MEM_GROW(firsts->value, met, firsts->cap);
        firsts->value[place] = value;
    }
    return firsts->value[place];
}

static void firsts_free(struct firsts *firsts)
{
    places_free(&firsts->hashes);
    free(firsts->value);
}

/* ---- copied launches ---- */

static int check_copy(struct identity *identity, const json_t *record, struct rec_reader *in,
                      struct err *e)
{
    static const char *const members[] = {"workload", "id", "phase", "round", "seq", "start_ns",
                                          "e2e_ns", "emit_ns", "step_ns", NULL};
    const int64_t launch = rec_int(record, "launch", -1);
    if (launch < 0 || !(rec_number(record, "start_ns") > 0) ||
        !(rec_number(record, "e2e_ns") > 0))
        return 0;
    const uint64_t first = first_value(&identity->answers, hash_members(record, members),
                                       (uint64_t)launch);
    if (first == (uint64_t)launch)
        return 0;
    return err_set(e, EXIT_BAD_DATA, "%.200s: launch %lld of '%.200s' repeats the start and the "
                   "times of launch %lld: expected the records of another process, got a copy",
                   rec_where(in), (long long)launch, name_of(record), (long long)first);
}

/* ---- prompts ---- */

static int check_prompt(struct identity *identity, const json_t *record, struct rec_reader *in,
                        struct err *e)
{
    static const char *const members[] = {"id", "seed", NULL};
    static const char *const parts[] = {"prompt", "prompt_tokens", "answer", NULL};
    const char *file = rec_text(identity->maker, "prompts_sha256"), *id = rec_text(record, "id");
    if (!file || !id || !json_has(record, "prompt"))
        return 0;
    const uint64_t key = hash64_text(hash_members(record, members), file, strlen(file));
    const uint64_t asked = hash_members(record, parts);
    if (first_value(&identity->prompts, key, asked) == asked)
        return 0;
    return err_set(e, EXIT_BAD_DATA, "%.200s: prompt '%.200s' of '%.200s' has another text, number "
                   "of tokens or answer than in an earlier record of this file of prompts (SHA-256 "
                   "%.12s): expected one prompt for an id", rec_where(in), id, name_of(record),
                   file);
}

static int check_generation(struct identity *identity, json_t *known, const json_t *record,
                            struct rec_reader *in, struct err *e)
{
    const json_t *maker = identity->maker;
    if (maker && (check_facts(maker, record, in, e) || check_seed(identity, record, in, e) ||
                  check_build(maker, known, record, in, e) ||
                  check_prompt(identity, record, in, e)))
        return -1;
    if (maker)
        note_work(identity, record);
    return check_copy(identity, record, in, e);
}

/* ---- the place of a quality ---- */

/* Checks the members that say which value of a metric a record has. Two values of one prompt in two
 * such places would be pooled. */
static int check_place(json_t *known, const json_t *record, struct rec_reader *in, struct err *e)
{
    const json_t *seed = json_object_get(record, "seed"),
                 *summary = json_object_get(record, "summary");
    const char *metric = rec_text(record, "metric"), *key = json_is_true(summary) ? SUMS : PARTS;
    char got[JSON_SHOWN];
    if (seed && !json_is_null(seed) && !json_is_integer(seed))
        return err_set(e, EXIT_BAD_DATA, "%.200s: seed of '%.200s': expected a whole number, got "
                       "%s", rec_where(in), name_of(record), json_shown(seed, got));
    if (summary && !json_is_null(summary) && !json_is_boolean(summary))
        return err_set(e, EXIT_BAD_DATA, "%.200s: summary of '%.200s': expected true or false, got "
                       "%s", rec_where(in), name_of(record), json_shown(summary, got));
    if (!metric)
        return 0;
    json_t *named = json_within(known, key);
    const json_t *had = json_object_get(named, metric);
    const int is = *about_workload(record) != 0;
    if (!had)
        json_object_set_new(named, metric, json_boolean(is));
    else if (json_is_true(had) != is)
        return err_set(e, EXIT_BAD_DATA, "%.200s: workload of '%.200s': %s here, but %s in an "
                       "earlier record of %.200s: expected a workload in all records of a metric, "
                       "or in none", rec_where(in), name_of(record), is ? "a text" : "none",
                       is ? "none" : "a text", metric);
    return 0;
}

int identity_check(struct identity *identity, const json_t *record, struct rec_reader *in,
                   struct err *e)
{
    const char *point = about_point(record);
    if (scale_check(&identity->scales, record, rec_where(in), e) ||
        weights_check(&identity->weights, record, in, e) ||
        judges_check(&identity->judges, record, in, e) || follow(identity, record, in, e))
        return -1;
    if (!point || !weights_is_pooled(record))
        return 0;
    identity->points = identity->points ? identity->points : json_object();
    json_t *known = json_within(identity->points, point);
    if (check_settings(known, record, in, e))
        return -1;
    if (!strcmp(rec_kind(record), "quality"))
        return check_place(known, record, in, e);
    return !strcmp(rec_kind(record), "generation")
               ? check_generation(identity, known, record, in, e) : 0;
}

int identity_fits(const struct identity *identity, const json_t *record, struct rec_reader *in,
                  struct err *e)
{
    const char *point = about_point(record);
    if (!point || !weights_is_pooled(record) ||
        json_has(json_object_get(identity->points, point), ABOUT))
        return 0;
    return about_check(record, rec_where(in), e);
}

void identity_free(struct identity *identity)
{
    weights_free(&identity->weights);
    json_decref(identity->judges);
    json_decref(identity->scales);
    firsts_free(&identity->answers);
    firsts_free(&identity->prompts);
    json_decref(identity->points);
    json_decref(identity->maker);
    json_decref(identity->seed);
    json_decref(identity->work);
    json_decref(identity->choices);
    *identity = (struct identity){0};
}
