/* settings.c - see settings.h. Everything is derived from the rows of one table, and every value is
 * a double. So parsing, crossing, comparing and writing are one loop each for all types.
 *
 * A row may follow another row: "block_length" has the value of "gen_length" unless it is given.
 * Such rows are filled after all rows that were given. */
#include "lib/setting/settings.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/cli/near.h"
#include "lib/base/mem.h"
#include "lib/base/plain.h"
#include "lib/record/json.h"

enum { MAX_LIST = 64, EXPECTED = 512 };

/* ---- words separated by a character ---- */

/* Index of word[0..n) among the words of `list`; -1: none. */
static int place_of(const char *list, char separator, const char *word, size_t n)
{
    for (int i = 0; list; i++) {
        const char *end = strchr(list, separator);
        size_t len = end ? (size_t)(end - list) : strlen(list);
        if (len == n && !memcmp(list, word, n))
            return i;
        list = end ? end + 1 : NULL;
    }
    return -1;
}

static void word_at(const char *list, size_t place, char word[SETTINGS_WORD])
{
    for (; place > 0; place--)
        list = strchr(list, '|') + 1;
    snprintf(word, SETTINGS_WORD, "%.*s", (int)strcspn(list, "|"), list);
}

/* ---- rows ---- */

size_t settings_find(const struct settings_table *table, const char *name)
{
    for (size_t i = 0; i < table->n; i++) {
        const char *a = table->row[i].name, *b = name;
        while (*a && (*a == *b || (*a == '_' && *b == '-')))
            a++, b++;
        if (!*a && !*b)
            return i;
    }
    return table->n;
}

static size_t row_of(const struct settings *settings, const char *name)
{
    size_t i = settings_find(settings->table, name);
    assert(i < settings->table->n);
    return i;
}

size_t settings_followed(const struct settings_table *table, size_t i)
{
    const char *standard = table->row[i].standard;
    return standard ? settings_find(table, standard) : table->n;
}

void settings_option(const struct setting *setting, char name[SETTINGS_WORD])
{
    snprintf(name, SETTINGS_WORD, "%s", setting->option ? setting->option : setting->name);
    for (char *c = name; *c; c++)
        *c = *c == '_' ? '-' : *c;
}

/* *number = text[0..n) as a value of the row. -1: the text is not such a value. */
static int parse_value(const struct setting *setting, const char *text, size_t n, double *number)
{
    char word[SETTINGS_WORD], *end;
    if (n == 0 || n >= sizeof word)
        return -1;
    memcpy(word, text, n);
    word[n] = 0;
    if (setting->type == SETTING_CHOICE || setting->type == SETTING_FLAG) {
        for (char *letter = word; *letter; letter++) /* as in the names of options */
            *letter = *letter == '-' ? '_' : *letter;
        int place = place_of(setting->type == SETTING_FLAG ? "off|on" : setting->choices, '|', word,
                             n);
        *number = place;
        return place < 0 ? -1 : 0;
    }
    if (strspn(word, setting->type == SETTING_INT ? "0123456789" : "0123456789.eE+-") != n)
        return -1;
    *number = strtod(word, &end);
    return *end || !(*number >= setting->lo && *number <= setting->hi) ? -1 : 0;
}

static double standard_of(const struct settings_table *table, size_t i)
{
    double v = 0;
    const struct setting *setting = &table->row[i];
    if (settings_followed(table, i) == table->n) {
        int bad = parse_value(setting, setting->standard, strlen(setting->standard), &v);
        assert(!bad);
        (void)bad;
    }
    return v;
}

/* ---- points ---- */

double settings_number(const struct settings *settings, const char *name)
{
    return settings->v[row_of(settings, name)];
}

size_t settings_count(const struct settings *settings, const char *name)
{
    return (size_t)settings_number(settings, name);
}

void settings_word(const struct settings *settings, size_t row, char word[SETTINGS_WORD])
{
    word_at(settings->table->row[row].choices, (size_t)settings->v[row], word);
}

int settings_is(const struct settings *settings, const char *name, const char *word)
{
    size_t i = row_of(settings, name);
    int place = place_of(settings->table->row[i].choices, '|', word, strlen(word));
    assert(place >= 0);
    return (int)settings->v[i] == place;
}

/* 1: the condition `only` of a row holds. A condition on another row fails if that row does not
 * count. A condition on the row itself tests its value alone. */
static int holds(const struct settings *settings, size_t row, const char *only)
{
    char name[SETTINGS_WORD], word[SETTINGS_WORD];
    const char *sign = only + strcspn(only, "=>");
    snprintf(name, sizeof name, "%.*s", (int)(sign - only), only);
    size_t other = row_of(settings, name);
    if (other != row && !settings_counts(settings, other))
        return 0;
    if (*sign == '>')
        return settings->v[other] > 0;
    settings_word(settings, other, word);
    return place_of(sign + 1, '|', word, strlen(word)) >= 0;
}

int settings_counts(const struct settings *settings, size_t row)
{
    const struct setting *setting = &settings->table->row[row];
    return !setting->only || holds(settings, row, setting->only) ||
           (setting->also && holds(settings, row, setting->also));
}

static int is_said(const struct settings *settings, size_t row)
{
    return settings->said[row];
}

/* Each row that was not given and whose default is another row takes the value of that row. Such
 * rows may form a chain, which is followed to its end: without a circle it is not longer than the
 * table. */
static void follow(struct settings *settings)
{
    int moved = 1;
    for (size_t turn = 0; moved && turn < settings->table->n; turn++) {
        moved = 0;
        for (size_t i = 0; i < settings->table->n; i++) {
            size_t from = settings_followed(settings->table, i);
            if (from == settings->table->n || is_said(settings, i))
                continue;
            moved |= settings->v[i] < settings->v[from] || settings->v[i] > settings->v[from];
            settings->v[i] = settings->v[from];
        }
    }
}

int settings_same(const struct settings *a, const struct settings *b)
{
    for (size_t i = 0; i < a->table->n; i++) {
        int counts = settings_counts(a, i);
        if (counts != settings_counts(b, i) || (counts && (a->v[i] < b->v[i] || a->v[i] > b->v[i])))
            return 0;
    }
    return 1;
}

/* Values given to a row. */
struct list {
    double v[MAX_LIST];
    size_t n;
};

/* Writes the values that a row allows, for a message. */
static void expected_of(const struct setting *setting, char what[EXPECTED])
{
    char lo[PLAIN_NUMBER], hi[PLAIN_NUMBER];
    if (setting->type == SETTING_CHOICE || setting->type == SETTING_FLAG)
        snprintf(what, EXPECTED, "one of %s",
                 setting->type == SETTING_FLAG ? "on|off" : setting->choices);
    else
        snprintf(what, EXPECTED, "%s from %s to %s%s%s",
                 setting->type == SETTING_INT ? "an integer" : "a number",
                 plain_number(lo, setting->lo), plain_number(hi, setting->hi),
                 setting->unit ? " " : "", setting->unit ? setting->unit : "");
}

/* Writes the choice nearest to word[0..n), for "did you mean". */
static const char *hint_of(const struct setting *setting, const char *word, size_t n,
                           char hint[NEAR_HINT])
{
    char got[SETTINGS_WORD];
    struct near near = {.got = got};
    snprintf(got, sizeof got, "%.*s", (int)(n < sizeof got ? n : 0), word);
    near_words(&near, setting->type == SETTING_CHOICE ? setting->choices : NULL);
    return near_hint(&near, "", hint);
}

/* Sets *e: the message quotes the whole text `given`; wrong[0..n) is the part that is not a
 * value. */
static int bad_option(const struct setting *setting, const char *given, const char *wrong, size_t n,
                      struct err *e)
{
    char name[SETTINGS_WORD], what[EXPECTED], hint[NEAR_HINT];
    settings_option(setting, name);
    expected_of(setting, what);
    return err_set(e, EXIT_BAD_USAGE, "--%s: expected %s%s, got '%.100s'%s", name, what,
                   setting->traits & SETTING_SWEPT ? ", or a list of them with commas" : "", given,
                   hint_of(setting, wrong, n, hint));
}

static int read_list(const struct settings_table *table, size_t i, const char *given,
                     struct list *list, struct err *e)
{
    const struct setting *setting = &table->row[i];
    *list = (struct list){{standard_of(table, i)}, 1};
    if (!given)
        return 0;
    list->n = 0;
    for (const char *at = given;; at++) {
        size_t n = strcspn(at, ",");
        if (list->n == MAX_LIST || parse_value(setting, at, n, &list->v[list->n]))
            return bad_option(setting, given, at, n, e);
        list->n++;
        at += n;
        if (!*at)
            break;
    }
    return list->n > 1 && !(setting->traits & SETTING_SWEPT) ? bad_option(setting, given, "", 0, e)
                                                             : 0;
}

/* The k-th combination of the lists, the last row innermost. */
static struct settings combination(const struct settings_table *table, const struct list *list,
                                   const char *const *given, size_t k)
{
    struct settings settings = {.table = table};
    for (size_t i = table->n; i-- > 0; k /= list[i].n) {
        settings.v[i] = list[i].v[k % list[i].n];
        settings.said[i] = given[i] != NULL;
    }
    follow(&settings);
    return settings;
}

struct settings settings_default(const struct settings_table *table)
{
    struct settings settings = {.table = table};
    for (size_t i = 0; i < table->n; i++)
        settings.v[i] = standard_of(table, i);
    follow(&settings);
    return settings;
}

int settings_cross(const struct settings_table *table, const char *const *given,
                   struct settings **point, size_t *n, struct err *e)
{
    struct list *list = mem_zero(table->n, sizeof *list);
    size_t all = 1;
    int bad = 0;
    for (size_t i = 0; i < table->n && !bad; i++) {
        bad = read_list(table, i, given[i], &list[i], e);
        all *= bad ? 1 : list[i].n;
        if (!bad && all > SETTINGS_POINTS)
            bad = err_set(e, EXIT_BAD_USAGE, "lists of settings: expected at most %d combinations",
                          SETTINGS_POINTS);
    }
    *n = 0;
    *point = bad ? NULL : mem_zero(all, sizeof **point);
    for (size_t k = 0; k < all && !bad; k++) {
        struct settings settings = combination(table, list, given, k);
        int seen = 0;
        for (size_t i = 0; i < *n && !seen; i++)
            seen = settings_same(&settings, &(*point)[i]);
        if (!seen)
            (*point)[(*n)++] = settings;
    }
    free(list);
    return bad;
}

int settings_check(const struct settings *settings, struct err *e)
{
    return settings->table->check ? settings->table->check(settings, e) : 0;
}

/* *v = a member of a point: a number, a word or a boolean. -1: another value. */
static int read_member(const struct setting *setting, const json_t *value, double *v)
{
    const char *word = json_string_value(value);
    if (setting->type == SETTING_FLAG) {
        *v = json_is_true(value);
        return json_is_boolean(value) ? 0 : -1;
    }
    if (setting->type == SETTING_CHOICE)
        return word ? parse_value(setting, word, strlen(word), v) : -1;
    *v = json_number_value(value);
    int is_type = setting->type == SETTING_INT ? json_is_integer(value) : json_is_number(value);
    return is_type && *v >= setting->lo && *v <= setting->hi ? 0 : -1;
}

static int bad_member(const struct setting *setting, const json_t *value, const char *where,
                      struct err *e)
{
    char what[EXPECTED], got[JSON_SHOWN], hint[NEAR_HINT];
    const char *word = json_string_value(value);
    expected_of(setting, what);
    return err_set(e, EXIT_BAD_DATA, "%s: %s: expected %s, got %s%s", where, setting->name,
                   setting->type == SETTING_FLAG ? "true or false" : what, json_shown(value, got),
                   hint_of(setting, word ? word : "", word ? strlen(word) : 0, hint));
}

int settings_check_member(const struct setting *setting, const json_t *value, const char *where,
                          struct err *e)
{
    double v = json_number_value(value);
    if (setting->type == SETTING_INT && json_is_real(value) && v == floor(v) &&
        v >= setting->lo && v <= setting->hi)
        return 0; /* programs that rewrite records may write 8.0 for 8 */
    return read_member(setting, value, &v) ? bad_member(setting, value, where, e) : 0;
}

int settings_read(struct settings *settings, const json_t *object, const char *where, struct err *e)
{
    const struct settings_table *table = settings->table;
    for (size_t i = 0; i < table->n; i++) {
        const json_t *value = json_object_get(object, table->row[i].name);
        if (!value)
            continue;
        settings->said[i] = !json_is_null(value);
        if (json_is_null(value)) {
            settings->v[i] = standard_of(table, i);
        } else if (read_member(&table->row[i], value, &settings->v[i])) {
            return bad_member(&table->row[i], value, where, e);
        }
    }
    follow(settings);
    return 0;
}

void settings_say(struct settings *settings, const char *name, double v)
{
    size_t i = row_of(settings, name);
    settings->v[i] = v;
    settings->said[i] = 1;
    follow(settings);
}

void settings_suppose(struct settings *settings, const char *values)
{
    const struct settings given = *settings;
    for (size_t n; *values; values += n + (values[n] == ' ')) {
        char name[SETTINGS_WORD];
        double number = 0;
        size_t sign = strcspn(values, "=");
        n = strcspn(values, " ");
        snprintf(name, sizeof name, "%.*s", (int)sign, values);
        size_t i = row_of(settings, name);
        int bad = parse_value(&settings->table->row[i], values + sign + 1, n - sign - 1, &number);
        assert(!bad);
        (void)bad;
        if (!is_said(&given, i))
            settings_say(settings, name, number);
    }
}

/* ---- record fields and labels ---- */

static json_t *value_json(const struct settings *settings, size_t i)
{
    const struct setting *setting = &settings->table->row[i];
    if (!settings_counts(settings, i))
        return json_null();
    if (setting->type == SETTING_FLAG)
        return json_boolean(settings->v[i] > 0);
    if (setting->type == SETTING_INT)
        return json_integer((json_int_t)settings->v[i]);
    if (setting->type == SETTING_REAL)
        return json_real(settings->v[i]);
    char word[SETTINGS_WORD];
    settings_word(settings, i, word);
    return json_string(word);
}

json_t *settings_said(const struct settings *settings)
{
    json_t *object = json_object();
    for (size_t i = 0; i < settings->table->n; i++)
        if (is_said(settings, i) && settings_counts(settings, i))
            json_object_set_new(object, settings->table->row[i].name, value_json(settings, i));
    return object;
}

void settings_put(const struct settings *settings, json_t *record)
{
    for (size_t i = 0; i < settings->table->n; i++)
        if (!(settings->table->row[i].traits & SETTING_CONDITION))
            json_object_set_new(record, settings->table->row[i].name, value_json(settings, i));
}

static void label_row(const struct settings *settings, size_t i, struct buf *out)
{
    const struct setting *setting = &settings->table->row[i];
    char word[SETTINGS_WORD];
    if (setting->type == SETTING_FLAG) {
        buf_format(out, " %s%s", setting->label, settings->v[i] > 0 ? "" : "=off");
    } else if (setting->type == SETTING_CHOICE) {
        settings_word(settings, i, word);
        buf_format(out, " %s=%s", setting->label, word);
    } else {
        buf_format(out, " %s=%.15g", setting->label, settings->v[i]);
    }
}

static int is_usual(const struct settings *settings, size_t i)
{
    double standard = standard_of(settings->table, i);
    if (settings_followed(settings->table, i) < settings->table->n)
        return !is_said(settings, i);
    return settings->v[i] >= standard && settings->v[i] <= standard;
}

void settings_label(const struct settings *settings, struct buf *out)
{
    for (int first = 1; first >= 0; first--)
        for (size_t i = 0; i < settings->table->n; i++) {
            unsigned traits = settings->table->row[i].traits;
            int shown = !!(traits & SETTING_SHOWN);
            if (settings_counts(settings, i) && shown == first &&
                (shown || traits & SETTING_AXIS || !is_usual(settings, i)))
                label_row(settings, i, out);
        }
}

const char *settings_axis(const struct settings *settings)
{
    for (size_t i = 0; i < settings->table->n; i++)
        if (settings->table->row[i].traits & SETTING_AXIS && settings_counts(settings, i))
            return settings->table->row[i].name;
    return NULL;
}
