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
static const char ABOUT[] = "about", BUILDS[] = "builds";

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

/* A fact that the meta record and its generations both have. */
static const struct fact {
    const char *member;       /* its member in a generation */
    const char *within, *key; /* its place in the meta record: member `key` of the object `within`;
                               * within NULL: member `key` of the record */
    int is_start;             /* 1: the generation has only the first characters of the text */
} facts[] = {{"launch", NULL, "launch", 0},
             {"workload", NULL, "prompts_sha256", 1},
             {"tokenizer", NULL, "tokenizer_sha256", 1},
             {"model", "checkpoint", "model", 0},
             {"arch", "checkpoint", "arch", 0},
             {"weights_random", "checkpoint", "weights_random", 0}};

static int is_same(const json_t *mine, const json_t *made, int is_start)
{
    const char *x = json_string_value(mine), *y = json_string_value(made);
    if (is_start && x && y)
        return !strncmp(x, y, strlen(x));
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
        if (!json_has(record, fact->member) || !json_has(from, fact->key) ||
            is_same(mine, made, fact->is_start))
            continue;
        char here[JSON_SHOWN], there[JSON_SHOWN];
        return err_set(e, EXIT_BAD_DATA, "%.200s: %s of '%.200s': %s here, %s (%s) in the meta "
                       "record of its stream: expected generations of the process that the meta "
                       "record describes", rec_where(in), fact->member, name_of(record),
                       json_shown(mine, here), json_shown(made, there), fact->key);
    }
    return 0;
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
    identity->choices = identity->maker = NULL;
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
    if (maker && (check_facts(maker, record, in, e) || check_build(maker, known, record, in, e) ||
                  check_prompt(identity, record, in, e)))
        return -1;
    if (maker)
        note_work(identity, record);
    return check_copy(identity, record, in, e);
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
    return !strcmp(rec_kind(record), "generation")
               ? check_generation(identity, known, record, in, e) : 0;
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
    json_decref(identity->work);
    json_decref(identity->choices);
    *identity = (struct identity){0};
}
