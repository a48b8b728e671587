/* test-settings.c - tests settings as data, with a table made for this test: lists are crossed,
 * rows without effect change nothing, points are read from schedules, and the identity of a point
 * depends on values alone. */
#include <stdlib.h>
#include <string.h>

#include "lib/base/mem.h"
#include "lib/setting/settings.h"
#include "tests/tap.h"

enum { STEPS, GEN, BLOCK, RULE, THRESHOLD, FLAG, BATCH, ROWS };
static const struct setting rows[ROWS] = {
    [STEPS] = {"steps", 's', SETTING_INT, 1, 1024, NULL, "gen_length", "steps", "steps",
               "rule=schedule", SETTING_SWEPT | SETTING_SHOWN | SETTING_AXIS, "denoising steps"},
    [GEN] = {"gen_length", 0, SETTING_INT, 1, 1024, NULL, "64", "tokens", "gen", NULL,
             SETTING_SWEPT | SETTING_SHOWN | SETTING_LENGTH, "slots"},
    [BLOCK] = {"block_length", 0, SETTING_INT, 1, 1024, NULL, "gen_length", "tokens", "block", NULL,
               SETTING_SWEPT, "slots of a block"},
    [RULE] = {"rule", 0, SETTING_CHOICE, 0, 0, "schedule|threshold", "schedule", NULL, "rule", NULL,
              SETTING_SWEPT, "what commits"},
    [THRESHOLD] = {"threshold", 0, SETTING_REAL, 0, 1, NULL, "0.9", NULL, "threshold",
                   "rule=threshold", SETTING_SWEPT | SETTING_SHOWN | SETTING_AXIS, "from here on"},
    [FLAG] = {"stop_at_eos", 0, SETTING_FLAG, 0, 0, NULL, "off", NULL, "stop-at-eos", NULL,
              SETTING_SWEPT, "stop early"},
    [BATCH] = {"batch", 0, SETTING_INT, 1, 64, NULL, "1", NULL, "batch", NULL,
               SETTING_SHOWN, "prompts together"},
};
static const struct settings_alias aliases[] = {{"by-threshold", "rule", "threshold", 0},
                                                {NULL, NULL, NULL, 0}};
static const struct settings_table table = {
    .system = "test", .row = rows, .n = ROWS, .alias = aliases};

static char *label_of(const struct settings *s)
{
    struct buf b = {0};
    settings_label(s, &b);
    char *text = mem_text(b.data ? b.data : "");
    buf_free(&b);
    return text;
}

static void labelled(const struct settings *s, const char *want)
{
    char *text = label_of(s);
    ok(!strcmp(text, want), "label '%s'", text);
    free(text);
}

static void test_cross(void)
{
    const char *given[ROWS] = {[STEPS] = "8,16", [RULE] = "schedule,threshold",
                               [THRESHOLD] = "0.5,0.9", [BATCH] = "2"};
    struct settings *p = NULL;
    struct err e = {0};
    size_t n = 0;
    ok(!settings_cross(&table, given, &p, &n, &e) && n == 4,
       "2 steps by schedule and 2 thresholds are 4 points, not 8: %zu %s", n, e.text);
    labelled(&p[0], " steps=8 gen=64 batch=2");
    labelled(&p[1], " gen=64 threshold=0.5 batch=2 rule=threshold");
    labelled(&p[3], " steps=16 gen=64 batch=2");
    ok(!strcmp(settings_axis(&p[0]), "steps") && !strcmp(settings_axis(&p[1]), "threshold"),
       "the axis is that of the rule");
    ok(settings_count(&p[0], "block-length") == 64 && settings_is(&p[1], "rule", "threshold"),
       "values by the names of options too");
    free(p);
}

static void refused(size_t row, const char *text)
{
    const char *given[ROWS] = {0};
    struct settings *p = NULL;
    struct err e = {0};
    size_t n;
    given[row] = text;
    ok(settings_cross(&table, given, &p, &n, &e) && e.code == EXIT_BAD_USAGE && strstr(e.text,
                                                                                       text),
       "refused: %s", e.text);
    free(p);
}

static void test_read(void)
{
    const char *given[ROWS] = {[BLOCK] = "32"};
    struct settings *p = NULL;
    struct err e = {0};
    size_t n;
    settings_cross(&table, given, &p, &n, &e);
    json_t *o = json_pack("{s:i, s:s, s:f, s:b, s:i}", "gen_length", 128, "rule", "threshold",
                          "threshold", 0.25, "stop_at_eos", 1, "round", 3);
    ok(!settings_read(p, o, "f", &e), "a point of a schedule is read %s", e.text);
    labelled(p, " gen=128 threshold=0.25 batch=1 block=32 rule=threshold stop-at-eos");
    json_object_set_new(o, "gen_length", json_string("128"));
    ok(settings_read(p, o, "f:1", &e) && e.code == EXIT_BAD_DATA && strstr(e.text, "gen_length"),
       "a text for a number: %s", e.text);
    json_decref(o);
    free(p);
    given[BLOCK] = NULL;
    settings_cross(&table, given, &p, &n, &e);
    o = json_pack("{s:i}", "gen_length", 128);
    ok(!settings_read(p, o, "f", &e) && settings_count(p, "steps") == 128 &&
           settings_count(p, "block_length") == 128, "a following row gets the new value");
    json_decref(o);
    free(p);
}

static void id_of(const char *const *given, char id[SETTINGS_ID], char series[SETTINGS_ID])
{
    struct settings *p = NULL;
    struct err e = {0};
    size_t n;
    settings_cross(&table, given, &p, &n, &e);
    json_t *o = json_object();
    settings_put(p, o);
    settings_id(o, NULL, id);
    settings_id(o, settings_axis(p), series);
    json_decref(o);
    free(p);
}

static void test_id(void)
{
    char a[SETTINGS_ID], b[SETTINGS_ID], c[SETTINGS_ID], d[SETTINGS_ID];
    char s[SETTINGS_ID], t[SETTINGS_ID], u[SETTINGS_ID], v[SETTINGS_ID];
    id_of((const char *[ROWS]){[STEPS] = "8"}, a, s);
    id_of((const char *[ROWS]){[STEPS] = "16", [GEN] = "64"}, b, t);
    id_of((const char *[ROWS]){[STEPS] = "16", [THRESHOLD] = "0.5", [BATCH] = "1"}, c, u);
    id_of((const char *[ROWS]){[STEPS] = "16", [RULE] = "threshold"}, d, v);
    ok(strlen(a) == SETTINGS_ID - 1 && strcmp(a, b) && !strcmp(s, t),
       "points of one series differ in their axis alone");
    ok(!strcmp(b, c), "a default given as a value, and a row without effect, change nothing");
    ok(strcmp(c, d) && strcmp(u, v), "another rule is another point and another series");
}

static void test_options(void)
{
    const char *given[ROWS] = {0};
    struct opt o[ROWS + 2] = {0};
    struct settings_texts texts = {0};
    ok(settings_options(&table, given, o, &texts) == ROWS && !strcmp(o[GEN].name, "gen-length") &&
           strstr(o[THRESHOLD].help, "for --rule=threshold") && strstr(o[BLOCK].help, "gen-length"),
       "options: %s", o[THRESHOLD].help);
    char word[] = "test", list[] = "--steps=4,8", flag[] = "--stop-at-eos",
         off[] = "--stop-at-eos=off,on";
    char *argv[] = {word, list, flag, NULL}, *more[] = {word, off, NULL};
    const struct tool tool = {"test", "", "", NULL, o, NEEDS_NOTHING};
    opt_parse(&tool, 3, argv);
    ok(!strcmp(given[STEPS], "4,8") && !strcmp(given[FLAG], "on"), "a flag alone is on");
    opt_parse(&tool, 2, more);
    ok(!strcmp(given[FLAG], "off,on"), "a flag takes a list");
    char alias[] = "--by-threshold";
    char *word_of_rule[] = {word, alias, NULL};
    ok(settings_alias_options(&table, given, o + ROWS, &texts) == 1, "an alias is an option");
    opt_parse(&tool, 2, word_of_rule);
    ok(!strcmp(given[RULE], "threshold"), "the alias sets the value of its row");
    settings_texts_free(&texts);
}

int main(void)
{
    test_cross();
    refused(STEPS, "8,");
    refused(STEPS, "0");
    refused(STEPS, "1e3");
    refused(RULE, "thresh");
    refused(THRESHOLD, "nan");
    refused(THRESHOLD, "1.5");
    refused(BATCH, "1,2");
    refused(FLAG, "maybe");
    test_read();
    test_id();
    test_options();
    return tap_done();
}
