/* settings.c - see settings.h. Everything is derived from the rows of one table, and every value is
 * a double: parsing, crossing, comparing and writing are then one loop each, whatever the type.
 *
 * A row that follows another one ("block_length" has the value of "gen_length" until it is given)
 * is filled after all rows that were given. */
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

size_t settings_find(const struct settings_table *t, const char *name)
{
    for (size_t i = 0; i < t->n; i++) {
        const char *a = t->row[i].name, *b = name;
        while (*a && (*a == *b || (*a == '_' && *b == '-')))
            a++, b++;
        if (!*a && !*b)
            return i;
    }
    return t->n;
}

static size_t row_of(const struct settings *s, const char *name)
{
    size_t i = settings_find(s->table, name);
    assert(i < s->table->n);
    return i;
}

size_t settings_followed(const struct settings_table *t, size_t i)
{
    const char *standard = t->row[i].standard;
    return standard ? settings_find(t, standard) : t->n;
}

void settings_option(const struct setting *r, char name[SETTINGS_WORD])
{
    snprintf(name, SETTINGS_WORD, "%s", r->option ? r->option : r->name);
    for (char *c = name; *c; c++)
        *c = *c == '_' ? '-' : *c;
}

/* *v = text[0..n) as a value of the row. -1: the text is not such a value. */
static int parse_value(const struct setting *r, const char *text, size_t n, double *v)
{
    char word[SETTINGS_WORD], *end;
    if (n == 0 || n >= sizeof word)
        return -1;
    memcpy(word, text, n);
    word[n] = 0;
    if (r->type == SETTING_CHOICE || r->type == SETTING_FLAG) {
        for (char *c = word; *c; c++) /* as in the names of options */
            *c = *c == '-' ? '_' : *c;
        int place = place_of(r->type == SETTING_FLAG ? "off|on" : r->choices, '|', word, n);
        *v = place;
        return place < 0 ? -1 : 0;
    }
    if (strspn(word, r->type == SETTING_INT ? "0123456789" : "0123456789.eE+-") != n)
        return -1;
    *v = strtod(word, &end);
    return *end || !(*v >= r->lo && *v <= r->hi) ? -1 : 0;
}

static double standard_of(const struct settings_table *t, size_t i)
{
    double v = 0;
    const struct setting *r = &t->row[i];
    if (settings_followed(t, i) == t->n) {
        int bad = parse_value(r, r->standard, strlen(r->standard), &v);
        assert(!bad);
        (void)bad;
    }
    return v;
}

/* ---- points ---- */

double settings_number(const struct settings *s, const char *name)
{
    return s->v[row_of(s, name)];
}

size_t settings_count(const struct settings *s, const char *name)
{
    return (size_t)settings_number(s, name);
}

void settings_word(const struct settings *s, size_t row, char word[SETTINGS_WORD])
{
    word_at(s->table->row[row].choices, (size_t)s->v[row], word);
}

int settings_is(const struct settings *s, const char *name, const char *word)
{
    size_t i = row_of(s, name);
    int place = place_of(s->table->row[i].choices, '|', word, strlen(word));
    assert(place >= 0);
    return (int)s->v[i] == place;
}

/* A condition of a row; a row that names itself counts by its own value. */
static int holds(const struct settings *s, size_t row, const char *only)
{
    char name[SETTINGS_WORD], word[SETTINGS_WORD];
    const char *sign = only + strcspn(only, "=>");
    snprintf(name, sizeof name, "%.*s", (int)(sign - only), only);
    size_t other = row_of(s, name);
    if (other != row && !settings_counts(s, other))
        return 0;
    if (*sign == '>')
        return s->v[other] > 0;
    settings_word(s, other, word);
    return place_of(sign + 1, '|', word, strlen(word)) >= 0;
}

int settings_counts(const struct settings *s, size_t row)
{
    const struct setting *r = &s->table->row[row];
    return !r->only || holds(s, row, r->only) || (r->also && holds(s, row, r->also));
}

static int is_said(const struct settings *s, size_t row)
{
    return s->said[row];
}

/* Rows whose default is another row, and that were not given, take its value. Chains are followed
 * to their end: without a circle they are not longer than the table. */
static void follow(struct settings *s)
{
    int moved = 1;
    for (size_t turn = 0; moved && turn < s->table->n; turn++) {
        moved = 0;
        for (size_t i = 0; i < s->table->n; i++) {
            size_t from = settings_followed(s->table, i);
            if (from == s->table->n || is_said(s, i))
                continue;
            moved |= s->v[i] < s->v[from] || s->v[i] > s->v[from];
            s->v[i] = s->v[from];
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

/* Writes the values that a row takes. */
static void expected_of(const struct setting *r, char what[EXPECTED])
{
    char lo[PLAIN_NUMBER], hi[PLAIN_NUMBER];
    if (r->type == SETTING_CHOICE || r->type == SETTING_FLAG)
        snprintf(what, EXPECTED, "one of %s", r->type == SETTING_FLAG ? "on|off" : r->choices);
    else
        snprintf(what, EXPECTED, "%s from %s to %s%s%s",
                 r->type == SETTING_INT ? "an integer" : "a number", plain_number(lo, r->lo),
                 plain_number(hi, r->hi), r->unit ? " " : "", r->unit ? r->unit : "");
}

/* Writes the choice nearest to word[0..n), for "did you mean". */
static const char *hint_of(const struct setting *r, const char *word, size_t n,
                           char hint[NEAR_HINT])
{
    char got[SETTINGS_WORD];
    struct near near = {.got = got};
    snprintf(got, sizeof got, "%.*s", (int)(n < sizeof got ? n : 0), word);
    near_words(&near, r->type == SETTING_CHOICE ? r->choices : NULL);
    return near_hint(&near, "", hint);
}

/* Quotes the whole text; wrong[0..n) is the part that is not a value. */
static int bad_option(const struct setting *r, const char *given, const char *wrong, size_t n,
                      struct err *e)
{
    char name[SETTINGS_WORD], what[EXPECTED], hint[NEAR_HINT];
    settings_option(r, name);
    expected_of(r, what);
    return err_set(e, EXIT_BAD_USAGE, "--%s: expected %s%s, got '%.100s'%s", name, what,
                   r->traits & SETTING_SWEPT ? ", or a list of them with commas" : "", given,
                   hint_of(r, wrong, n, hint));
}

static int read_list(const struct settings_table *t, size_t i, const char *given,
                     struct list *list, struct err *e)
{
    const struct setting *r = &t->row[i];
    *list = (struct list){{standard_of(t, i)}, 1};
    if (!given)
        return 0;
    list->n = 0;
    for (const char *at = given;; at++) {
        size_t n = strcspn(at, ",");
        if (list->n == MAX_LIST || parse_value(r, at, n, &list->v[list->n]))
            return bad_option(r, given, at, n, e);
        list->n++;
        at += n;
        if (!*at)
            break;
    }
    return list->n > 1 && !(r->traits & SETTING_SWEPT) ? bad_option(r, given, "", 0, e) : 0;
}

/* The k-th combination of the lists, the last row innermost. */
static struct settings combination(const struct settings_table *t, const struct list *list,
                                   const char *const *given, size_t k)
{
    struct settings s = {.table = t};
    for (size_t i = t->n; i-- > 0; k /= list[i].n) {
        s.v[i] = list[i].v[k % list[i].n];
        s.said[i] = given[i] != NULL;
    }
    follow(&s);
    return s;
}

struct settings settings_default(const struct settings_table *t)
{
    struct settings s = {.table = t};
    for (size_t i = 0; i < t->n; i++)
        s.v[i] = standard_of(t, i);
    follow(&s);
    return s;
}

int settings_cross(const struct settings_table *t, const char *const *given,
                   struct settings **point, size_t *n, struct err *e)
{
    struct list *list = mem_zero(t->n, sizeof *list);
    size_t all = 1;
    int bad = 0;
    for (size_t i = 0; i < t->n && !bad; i++) {
        bad = read_list(t, i, given[i], &list[i], e);
        all *= bad ? 1 : list[i].n;
        if (!bad && all > SETTINGS_POINTS)
            bad = err_set(e, EXIT_BAD_USAGE, "lists of settings: expected at most %d combinations",
                          SETTINGS_POINTS);
    }
    *n = 0;
    *point = bad ? NULL : mem_zero(all, sizeof **point);
    for (size_t k = 0; k < all && !bad; k++) {
        struct settings s = combination(t, list, given, k);
        int seen = 0;
        for (size_t i = 0; i < *n && !seen; i++)
            seen = settings_same(&s, &(*point)[i]);
        if (!seen)
            (*point)[(*n)++] = s;
    }
    free(list);
    return bad;
}

int settings_check(const struct settings *s, struct err *e)
{
    return s->table->check ? s->table->check(s, e) : 0;
}

/* *v = a member of a point: a number, a word or a boolean. -1: another value. */
static int read_member(const struct setting *r, const json_t *value, double *v)
{
    const char *word = json_string_value(value);
    if (r->type == SETTING_FLAG) {
        *v = json_is_true(value);
        return json_is_boolean(value) ? 0 : -1;
    }
    if (r->type == SETTING_CHOICE)
        return word ? parse_value(r, word, strlen(word), v) : -1;
    *v = json_number_value(value);
    int is_type = r->type == SETTING_INT ? json_is_integer(value) : json_is_number(value);
    return is_type && *v >= r->lo && *v <= r->hi ? 0 : -1;
}

static int bad_member(const struct setting *r, const json_t *value, const char *where,
                      struct err *e)
{
    char what[EXPECTED], got[JSON_SHOWN], hint[NEAR_HINT];
    const char *word = json_string_value(value);
    expected_of(r, what);
    return err_set(e, EXIT_BAD_DATA, "%s: %s: expected %s, got %s%s", where, r->name,
                   r->type == SETTING_FLAG ? "true or false" : what, json_shown(value, got),
                   hint_of(r, word ? word : "", word ? strlen(word) : 0, hint));
}

int settings_read(struct settings *s, const json_t *o, const char *where, struct err *e)
{
    const struct settings_table *t = s->table;
    for (size_t i = 0; i < t->n; i++) {
        const json_t *value = json_object_get(o, t->row[i].name);
        if (!value)
            continue;
        s->said[i] = !json_is_null(value);
        if (json_is_null(value)) {
            s->v[i] = standard_of(t, i);
        } else if (read_member(&t->row[i], value, &s->v[i])) {
            return bad_member(&t->row[i], value, where, e);
        }
    }
    follow(s);
    return 0;
}

void settings_say(struct settings *s, const char *name, double v)
{
    size_t i = row_of(s, name);
    s->v[i] = v;
    s->said[i] = 1;
    follow(s);
}

void settings_suppose(struct settings *s, const char *values)
{
    const struct settings given = *s;
    for (size_t n; *values; values += n + (values[n] == ' ')) {
        char name[SETTINGS_WORD];
        double v = 0;
        size_t sign = strcspn(values, "=");
        n = strcspn(values, " ");
        snprintf(name, sizeof name, "%.*s", (int)sign, values);
        size_t i = row_of(s, name);
        int bad = parse_value(&s->table->row[i], values + sign + 1, n - sign - 1, &v);
        assert(!bad);
        (void)bad;
        if (!is_said(&given, i))
            settings_say(s, name, v);
    }
}

/* ---- record fields and labels ---- */

static json_t *value_json(const struct settings *s, size_t i)
{
    const struct setting *r = &s->table->row[i];
    if (!settings_counts(s, i))
        return json_null();
    if (r->type == SETTING_FLAG)
        return json_boolean(s->v[i] > 0);
    if (r->type == SETTING_INT)
        return json_integer((json_int_t)s->v[i]);
    if (r->type == SETTING_REAL)
        return json_real(s->v[i]);
    char word[SETTINGS_WORD];
    settings_word(s, i, word);
    return json_string(word);
}

json_t *settings_said(const struct settings *s)
{
    json_t *o = json_object();
    for (size_t i = 0; i < s->table->n; i++)
        if (is_said(s, i) && settings_counts(s, i))
            json_object_set_new(o, s->table->row[i].name, value_json(s, i));
    return o;
}

void settings_put(const struct settings *s, json_t *record)
{
    for (size_t i = 0; i < s->table->n; i++)
        json_object_set_new(record, s->table->row[i].name, value_json(s, i));
}

static void label_row(const struct settings *s, size_t i, struct buf *out)
{
    const struct setting *r = &s->table->row[i];
    char word[SETTINGS_WORD];
    if (r->type == SETTING_FLAG) {
        buf_format(out, " %s%s", r->label, s->v[i] > 0 ? "" : "=off");
    } else if (r->type == SETTING_CHOICE) {
        settings_word(s, i, word);
        buf_format(out, " %s=%s", r->label, word);
    } else {
        buf_format(out, " %s=%.15g", r->label, s->v[i]);
    }
}

static int is_usual(const struct settings *s, size_t i)
{
    double standard = standard_of(s->table, i);
    if (settings_followed(s->table, i) < s->table->n)
        return !is_said(s, i);
    return s->v[i] >= standard && s->v[i] <= standard;
}

void settings_label(const struct settings *s, struct buf *out)
{
    for (int first = 1; first >= 0; first--)
        for (size_t i = 0; i < s->table->n; i++) {
            unsigned traits = s->table->row[i].traits;
            int shown = !!(traits & SETTING_SHOWN);
            if (settings_counts(s, i) && shown == first &&
                (shown || traits & SETTING_AXIS || !is_usual(s, i)))
                label_row(s, i, out);
        }
}

const char *settings_axis(const struct settings *s)
{
    for (size_t i = 0; i < s->table->n; i++)
        if (s->table->row[i].traits & SETTING_AXIS && settings_counts(s, i))
            return s->table->row[i].name;
    return NULL;
}
