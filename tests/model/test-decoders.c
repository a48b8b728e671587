/* test-decoders.c - tests the tables of settings of all decoders: each row is sound, the decoder
 * accepts its default, and data/record.schema.json describes the field that the row becomes. */
#include <string.h>

#include "lib/decode/cache/cache.h"
#include "lib/decode/decoder.h"
#include "lib/latent/think.h"
#include "lib/record/json.h"
#include "lib/setting/diffusion.h"
#include "lib/setting/system.h"
#include "tests/tap.h"

/* In the order of systems[]. The last system has no decoder. */
static const struct decoder *const decoders[] = {&decoder_autoregress, &decoder_diffuse,
                                                 &decoder_think, NULL};

/* Returns 1 if the row that `only` names exists: a choice that has all the named words, or an
 * integer that may be 0. */
static int only_holds(const struct settings_table *t, const char *only)
{
    char name[SETTINGS_WORD];
    const char *words = only + strcspn(only, "=>");
    snprintf(name, sizeof name, "%.*s", (int)(words - only), only);
    size_t row = settings_find(t, name);
    if (*words == '>')
        return row < t->n && t->row[row].type <= SETTING_REAL && t->row[row].lo <= 0 &&
               !strcmp(words, ">0");
    if (!*words)
        return 0;
    if (row == t->n || t->row[row].type != SETTING_CHOICE)
        return 0;
    for (const char *w = words + 1; *w; w += strcspn(w, "|"), w += *w == '|') {
        char choices[256], word[SETTINGS_WORD];
        snprintf(choices, sizeof choices, "|%s|", t->row[row].choices);
        snprintf(word, sizeof word, "|%.*s|", (int)strcspn(w, "|"), w);
        if (!strstr(choices, word))
            return 0;
    }
    return 1;
}

static void test_rows(const struct settings_table *t)
{
    size_t lengths = 0, unique = 1, labelled = 1, only = 1, explained = 1;
    for (size_t i = 0; i < t->n; i++) {
        const struct setting *r = &t->row[i];
        lengths += !!(r->traits & SETTING_LENGTH);
        only &= !r->only || only_holds(t, r->only);
        only &= !r->also || (r->only && only_holds(t, r->also));
        explained &= r->help && *r->help && r->standard;
        labelled &= r->label && *r->label && r->traits & (SETTING_TEXT | SETTING_SPEED);
        for (size_t k = 0; k < i; k++)
            unique &= strcmp(r->name, t->row[k].name) && strcmp(r->label, t->row[k].label);
    }
    ok(t->n <= SETTINGS_MAX && unique, "%s: names and labels are there once", t->system);
    ok(lengths == 1, "%s: one row says how many tokens come", t->system);
    ok(only, "%s: what a row counts for exists", t->system);
    ok(explained && labelled, "%s: every row has a default, a help, a label, and changes something",
       t->system);
}

static void test_defaults(const struct decoder *d, const struct settings_table *t)
{
    struct err e = {0};
    struct settings p = settings_default(t);
    ok(d->table == t, "%s: its decoder is at its place", t->system);
    ok(!settings_check(&p, &e), "%s: the defaults are a point that can be run %s", t->system,
       e.text);
    d->shorten(&p);
    ok(!settings_check(&p, &e) && settings_count(&p, "batch") == 1 && system_extent(&p) <= 128,
       "%s: so is the short point of a self-check", t->system);
}

/* The traits in lib/setting/words.h must equal the traits of the policies themselves. */
static void test_cache_traits(void)
{
    int same = 1;
    for (int i = 0; i < CACHE_COUNT; i++) {
        const struct cache_policy *p = cache_policies[i];
        same &= !p->outputs == !diffusion_cache_has((enum caching)i, CACHE_OUTPUTS) &&
                !p->slots == !diffusion_cache_has((enum caching)i, CACHE_SIFTS) &&
                !strcmp(p->name, diffusion_cache_name((enum caching)i));
    }
    ok(same, "cache policies have the traits that their rows say");
}

static int has_type(const json_t *type, const char *name)
{
    for (size_t i = 0; i < json_array_size(type); i++)
        if (!strcmp(json_string_value(json_array_get(type, i)), name))
            return 1;
    return 0;
}

/* Returns the first thing that the schema lacks for a row, or NULL. */
static const char *lacks(const json_t *properties, const struct setting *r)
{
    static const char *const types[] = {[SETTING_INT] = "integer", [SETTING_REAL] = "number",
                                        [SETTING_CHOICE] = "string", [SETTING_FLAG] = "boolean"};
    const json_t *p = json_object_get(properties, r->name), *type = json_object_get(p, "type");
    if (!p)
        return "no such field";
    if (!has_type(type, types[r->type]) || !has_type(type, "null"))
        return "another type";
    if (!json_is_string(json_object_get(p, "description")))
        return "no description";
    return NULL;
}

static void test_schema(const json_t *properties, const struct settings_table *t)
{
    for (size_t i = 0; i < t->n; i++) {
        if (t->row[i].traits & SETTING_CONDITION) /* this setting is a part of `conditions` */
            continue;
        const char *what = lacks(properties, &t->row[i]);
        ok(!what, "%s: data/record.schema.json describes %s%s%s", t->system, t->row[i].name,
           what ? ": " : "", what ? what : "");
    }
}

/* The check must find planted faults. */
static void test_planted(const json_t *properties)
{
    struct setting r = {"steps", .type = SETTING_INT};
    ok(!lacks(properties, &r), "a field that the schema describes passes");
    r.type = SETTING_CHOICE;
    ok(lacks(properties, &r) != NULL, "planted: another type is found");
    r.name = "stepps";
    ok(lacks(properties, &r) != NULL, "planted: a field that nobody described is found");
    const struct setting rows[] = {{"unmask", .type = SETTING_CHOICE, .choices = "a|b"},
                                   {"x", .type = SETTING_INT},
                                   {"y", .type = SETTING_INT, .lo = 1}};
    const struct settings_table t = {.system = "planted", .row = rows, .n = 3};
    ok(only_holds(&t, "unmask=a|b") && !only_holds(&t, "unmask=c") && !only_holds(&t, "x=1") &&
           only_holds(&t, "x>0") && !only_holds(&t, "y>0") && !only_holds(&t, "unmask>0"),
       "planted: what a row counts for must be a word of a choice");
}

int main(void)
{
    struct err e = {0};
    json_t *schema = json_file("data/record.schema.json", 1 << 22, &e);
    const json_t *properties = json_object_get(
        json_object_get(json_object_get(schema, "definitions"), "generation"), "properties");
    ok(properties != NULL, "the schema is there %s", e.text);
    for (size_t i = 0; systems[i]; i++) {
        test_rows(systems[i]);
        if (decoders[i])
            test_defaults(decoders[i], systems[i]);
        test_schema(properties, systems[i]);
    }
    test_cache_traits();
    test_planted(properties);
    json_decref(schema);
    return tap_done();
}
