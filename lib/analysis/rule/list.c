/* list.c - judges lists, Latin squares and sudokus by the checks of ParallelBench (the variant that
 * is not strict). An answer is a list, or {"input": [...], "word": "..."} for tasks of which
 * several lists are right. Source of the rules, not of the code:
 * github.com/furiosa-ai/ParallelBench, dataset/parallel_bench/metrics.py. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "lib/analysis/rule/parts.h"
#include "lib/base/mem.h"
#include "lib/record/rec.h"

enum { LIST_MOST = 1000 }; /* most items of an answer: the checks take n^2 comparisons */

/* ---- texts ---- */

/* Removes the bytes of `set` from both ends of the text. */
static void strip(const char **text, size_t *n, const char *set)
{
    while (*n && strchr(set, **text))
        ++*text, --*n;
    while (*n && strchr(set, (*text)[*n - 1]))
        --*n;
}

static const char blank[] = " \t\n\r\v\f";

/* The pieces of text[0..n-1], which is split at `cut`. The bytes of `set` are removed from both
 * ends of each piece. If skip, pieces of white space alone are left out. */
static json_t *pieces(const char *text, size_t n, char cut, const char *set, int skip)
{
    json_t *list = json_array();
    for (const char *end = text + n; text <= end;) {
        const char *at = memchr(text, cut, (size_t)(end - text)), *piece = text;
        size_t m = (size_t)((at ? at : end) - text), left = m;
        text += m + 1;
        const char *inner = piece;
        strip(&inner, &left, blank);
        strip(&piece, &m, set);
        if (left || !skip)
            json_array_append_new(list, json_stringn(piece, m));
    }
    return list;
}

/* The list in a text: the items after the last "[", up to the next "]". */
static json_t *parse_list(const char *text)
{
    const char *open = strrchr(text, '[');
    text = open ? open + 1 : text;
    return pieces(text, strcspn(text, "]"), ',', "\" ", 1);
}

/* ---- lists ---- */

/* The index of a text in a list; the length of the list if the text is not in it. */
static size_t place_of(const json_t *list, const json_t *text)
{
    size_t i = 0;
    while (i < json_array_size(list) && !json_equal(json_array_get(list, i), text))
        i++;
    return i;
}

/* 1: both lists have the same members, in any order. */
static int is_permutation(const json_t *a, const json_t *b)
{
    json_t *left = json_copy((json_t *)(uintptr_t)b);
    size_t i;
    const json_t *value;
    int same = json_array_size(a) == json_array_size(b);
    json_array_foreach(a, i, value)
        same = same && !json_array_remove(left, place_of(left, value));
    json_decref(left);
    return same;
}

/* 1: `longer` becomes `shorter` if one text that `shorter` lacks is removed. Changes `longer`. */
static int lacks_one(json_t *longer, const json_t *shorter)
{
    const json_t *lost = NULL, *value;
    size_t i;
    json_array_foreach(longer, i, value)
        if (place_of(shorter, value) == json_array_size(shorter)) {
            if (lost && !json_equal(lost, value))
                return 0;
            lost = lost ? lost : value;
        }
    return lost && !json_array_remove(longer, place_of(longer, lost)) &&
           json_equal(longer, shorter);
}

/* 1: the list `got` is right for this type of rule. May change `got` and `wanted`. */
static int list_is_right(const char *type, json_t *got, json_t *wanted, json_t *word)
{
    size_t at = word ? place_of(got, word) : 0;
    if (!strcmp(type, "list"))
        return json_equal(got, wanted);
    if (!strcmp(type, "list-shuffle"))
        return is_permutation(got, wanted) && !json_equal(got, wanted);
    if (!strcmp(type, "list-remove"))
        return json_array_size(got) + 1 == json_array_size(wanted) && lacks_one(wanted, got);
    if (!strcmp(type, "list-insert"))
        return !json_array_remove(got, at) && json_equal(got, wanted);
    return at < json_array_size(got) && json_array_size(got) == json_array_size(wanted) &&
           !json_array_set(wanted, at, word) && json_equal(got, wanted);
}

int rule_list(struct rule *rule, const char *answer, const char *response, const char **why,
              struct err *e)
{
    const char *type = rec_text(json_object_get(rule->row, "rule"), "type");
    json_t *given = *answer == '{' ? json_loads(answer, 0, NULL) : NULL;
    json_t *wanted = given ? json_incref(json_object_get(given, "input"))
                     : !strcmp(type, "list") ? parse_list(answer) : NULL;
    json_t *word = json_object_get(given, "word"), *got = parse_list(response);
    int needs_word = !strcmp(type, "list-insert") || !strcmp(type, "list-replace");
    (void)why;
    int verdict = !json_is_array(wanted) || json_array_size(wanted) > LIST_MOST ||
                          (needs_word && !json_is_string(word))
                      ? err_set(e, EXIT_BAD_DATA, "answer: expected %s for rule %s, "
                                "at most %d items", needs_word
                                ? "{\"input\", \"word\"}" : "{\"input\"} or a list", type,
                                LIST_MOST)
                      : list_is_right(type, got, wanted, word);
    json_decref(got);
    json_decref(wanted);
    json_decref(given);
    return verdict;
}

/* ---- squares ---- */

/* 1: every text of a is in b, and every text of b is in a. */
static int same_set(const json_t *a, const json_t *b)
{
    size_t i;
    const json_t *value;
    int same = 1;
    json_array_foreach(a, i, value)
        same = same && place_of(b, value) < json_array_size(b);
    json_array_foreach(b, i, value)
        same = same && place_of(a, value) < json_array_size(a);
    return same;
}

/* The first n lines in which the set of cells equals the symbols, as lists of cells. */
static json_t *square_rows(const char *text, const json_t *symbols, size_t n)
{
    json_t *rows = json_array(), *lines = pieces(text, strlen(text), '\n', blank, 1);
    size_t i;
    const json_t *line;
    json_array_foreach(lines, i, line) {
        json_t *cells = pieces(json_string_value(line), json_string_length(line), ',', blank, 0);
        if (same_set(cells, symbols) && json_array_size(rows) < n)
            json_array_append(rows, cells);
        json_decref(cells);
    }
    json_decref(lines);
    return rows;
}

static int columns_are_right(const json_t *rows, const json_t *symbols)
{
    size_t i, width = SIZE_MAX;
    const json_t *row;
    int right = 1;
    json_array_foreach(rows, i, row)
        width = json_array_size(row) < width ? json_array_size(row) : width;
    for (size_t column = 0; column < width && right; column++) {
        json_t *cells = json_array();
        json_array_foreach(rows, i, row)
            json_array_append(cells, json_array_get(row, column));
        right = same_set(cells, symbols);
        json_decref(cells);
    }
    return right;
}

int rule_square(struct rule *rule, const char *answer, const char *response, const char **why,
                struct err *e)
{
    json_t *given = json_loads(answer, 0, NULL), *symbols = json_object_get(given, "symbols");
    const json_t *first = json_object_get(given, "first_row");
    size_t n = json_array_size(symbols);
    n = n > LIST_MOST ? 0 : n;
    (void)rule;
    (void)why;
    json_t *rows = n ? square_rows(response, symbols, n) : NULL;
    int verdict = !n ? err_set(e, EXIT_BAD_DATA, "answer: expected {\"symbols\"} for latin-"
                               "square, at most %d", LIST_MOST)
                     : json_array_size(rows) == n && columns_are_right(rows, symbols) &&
                           (!json_is_array(first) ||
                            json_equal(json_array_get(rows, 0), (json_t *)(uintptr_t)first));
    json_decref(rows);
    json_decref(given);
    return verdict;
}

int rule_sudoku(struct rule *rule, const char *answer, const char *response, const char **why,
                struct err *e)
{
    enum { SIZE = 4 };
    char row[SIZE];
    int rows = 0;
    (void)why;
    (void)e;
    buf_clear(&rule->one); /* the digits of all lines that have exactly four */
    for (const char *line = response; *line; line += strcspn(line, "\n"), line += *line == '\n') {
        size_t n = 0;
        for (const char *at = line; *at && *at != '\n'; at++)
            if (isdigit((unsigned char)*at) && n++ < SIZE)
                row[n - 1] = *at;
        if (n != SIZE)
            continue;
        buf_put(&rule->one, row, SIZE);
        rows++;
    }
    buf_clear(&rule->two);
    for (const char *at = answer; *at; at++)
        if (isdigit((unsigned char)*at))
            buf_char(&rule->two, *at);
    return rows == SIZE && rule->two.len == SIZE * SIZE && !strcmp(rule->one.data, rule->two.data);
}
