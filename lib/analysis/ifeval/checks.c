/* checks.c - see checks.h. This file has the checks of letters, words and format. Each check goes
 * through the text once; the patterns of the public code could backtrack. */
#include "lib/analysis/ifeval/checks.h"

#include <math.h>
#include <string.h>

#include "lib/base/mem.h"
#include "lib/record/rec.h"
#include "lib/text/utf8.h"

/* ---- arguments ---- */

int checks_refuse(const struct asked *asked, const char *name, const char *expected)
{
    return err_set(asked->e, EXIT_BAD_DATA, "answer: instruction %.60s: %s: expected %s",
                   asked->id, name, expected);
}

int checks_number(const struct asked *asked, const char *name, double *number)
{
    const json_t *value = json_object_get(asked->arguments, name);
    *number = json_is_number(value) ? json_number_value(value) : 0;
    return *number > 0 && isfinite(*number) ? 0 : checks_refuse(asked, name, "a number above 0");
}

int checks_text(const struct asked *asked, const char *name, const char **text)
{
    *text = rec_text(asked->arguments, name);
    return *text && **text ? 0 : checks_refuse(asked, name, "a text that is not empty");
}

int checks_amount(const struct asked *asked, double n, const char *name, const char *relation)
{
    double number;
    const char *how;
    if (checks_number(asked, name, &number) || checks_text(asked, relation, &how))
        return -1;
    if (strcmp(how, "less than") && strcmp(how, "at least"))
        return checks_refuse(asked, relation, "less than, or at least");
    return strcmp(how, "less than") ? n >= number : n < number;
}

/* ---- pieces of a text ---- */

/* The first place of `word` in the text; NULL: there is none. */
static const char *find(struct piece text, const char *word)
{
    return memmem(text.at, text.n, word, strlen(word));
}

/* Cuts *rest at its first `mark`. Returns the piece before the mark and sets *rest to the text
 * after it. If there is no mark, returns the whole text and sets *more to 0. */
static struct piece cut(struct piece *rest, const char *mark, int *more)
{
    const char *at = find(*rest, mark);
    struct piece first = {rest->at, at ? (size_t)(at - rest->at) : rest->n};
    *more = at != NULL;
    rest->at += first.n + (at ? strlen(mark) : 0);
    rest->n -= first.n + (at ? strlen(mark) : 0);
    return first;
}

static int is_same(struct piece one, struct piece two)
{
    return one.n == two.n && !memcmp(one.at, two.at, one.n);
}

static struct piece line_at(const char *at, const char *end)
{
    const char *stop = memchr(at, '\n', (size_t)(end - at));
    return (struct piece){at, (size_t)((stop ? stop : end) - at)};
}

/* ---- letters and words ---- */

int checks_letter_frequency(const struct asked *asked)
{
    const char *letter = rec_text(asked->arguments, "letter");
    struct buf small = {0};
    double n = 0;
    if (!letter || !letter[0] || letter[1] || (letter[0] | 0x20) < 'a' || (letter[0] | 0x20) > 'z')
        return checks_refuse(asked, "letter", "a letter from a to z");
    python_lower(asked->text, &small);
    for (size_t i = 0; i < small.len; i++)
        n += small.data[i] == (letter[0] | 0x20);
    buf_free(&small);
    return checks_amount(asked, n, "let_frequency", "let_relation");
}

int checks_number_words(const struct asked *asked)
{
    double n = 0;
    int inside = 0;
    for (size_t i = 0, len; i < asked->text.n; i += len) {
        int word = utf8_is_word(utf8_read(asked->text.at + i, &len));
        n += word && !inside;
        inside = word;
    }
    return checks_amount(asked, n, "num_words", "relation");
}

int checks_number_paragraphs(const struct asked *asked)
{
    struct piece rest = asked->text;
    double wanted, n = 0;
    if (checks_number(asked, "num_paragraphs", &wanted))
        return -1;
    for (int more = 1, first = 1; more; first = 0) {
        int blank = python_is_blank(cut(&rest, "***", &more));
        if (blank && !first && more)
            return 0;
        n += !blank;
    }
    return n == wanted;
}

/* Appends the word up to its first punctuation mark. As in the public code each letter is made
 * small on its own, so a sigma at the end of the word does not become a final one. */
static void put_first(struct piece word, struct buf *out)
{
    word = python_strip_of(word, '\'', 0);
    word = python_strip_of(word, '"', 0);
    for (size_t i = 0, len; i < word.n && !strchr(".,?!'\"", word.at[i]); i += len) {
        utf8_read(word.at + i, &len);
        python_lower((struct piece){word.at + i, len}, out);
    }
}

int checks_first_word(const struct asked *asked)
{
    double wanted, nth, n = 0, i = 0;
    const char *first;
    struct piece rest = asked->text, chosen = {0, 0};
    struct buf got = {0}, small = {0};
    if (checks_number(asked, "num_paragraphs", &wanted) ||
        checks_number(asked, "nth_paragraph", &nth) || checks_text(asked, "first_word", &first))
        return -1;
    if (nth > wanted || nth != floor(nth))
        return checks_refuse(asked, "nth_paragraph", "an integer up to num_paragraphs");
    for (int more = 1; more;) {
        struct piece one = cut(&rest, "\n\n", &more);
        chosen = ++i == nth ? one : chosen;
        n += !python_is_blank(one);
    }
    if (nth > n || n != wanted || python_is_blank(chosen))
        return 0;
    put_first(python_next_word(&chosen), &got);
    python_lower(python_piece(first), &small);
    int same = is_same((struct piece){got.data ? got.data : "", got.len},
                       (struct piece){small.data, small.len});
    buf_free(&got);
    buf_free(&small);
    return same;
}

/* ---- format ---- */

int checks_placeholders(const struct asked *asked)
{
    const char *at = asked->text.at, *end = at + asked->text.n;
    double wanted, n = 0;
    if (checks_number(asked, "num_placeholders", &wanted))
        return -1;
    while (at < end) {
        struct piece line = line_at(at, end);
        const char *open = memchr(at, '[', line.n);
        const char *close = open ? memchr(open, ']', (size_t)(at + line.n - open)) : NULL;
        n += close != NULL;
        at = close ? close + 1 : at + line.n + 1;
    }
    return n >= wanted;
}

/* The number of lines that begin with `mark`, after white space that may contain whole lines.
 * single 1: another character must follow the mark that is no mark; it may be the end of the
 * line. */
static double marked_lines(struct piece text, char mark, int single)
{
    const char *at = text.at, *end = at + text.n;
    double n = 0;
    while (at < end) {
        struct piece rest = {at, (size_t)(end - at)};
        size_t len;
        while (rest.n && python_is_space(utf8_read(rest.at, &len)))
            rest.at += len, rest.n -= len;
        int marked = rest.n > (size_t)single && *rest.at == mark && !(single && rest.at[1] == mark);
        n += marked;
        rest.at += marked && single && rest.at[1] == '\n' ? 2 : 0;
        at = rest.at + line_at(rest.at, end).n + 1;
    }
    return n;
}

int checks_bullets(const struct asked *asked)
{
    double wanted;
    if (checks_number(asked, "num_bullets", &wanted))
        return -1;
    return marked_lines(asked->text, '*', 1) + marked_lines(asked->text, '-', 0) == wanted;
}

int checks_constrained(const struct asked *asked)
{
    return find(asked->text, "My answer is yes.") || find(asked->text, "My answer is no.") ||
           find(asked->text, "My answer is maybe.");
}

/* The number of texts in one line that stand between two marks of `width` stars and are not
 * blank. */
static double highlights(struct piece text, size_t width)
{
    const char *at = text.at, *end = at + text.n;
    double n = 0;
    while ((at = memmem(at, (size_t)(end - at), "**", width))) {
        const char *stop = at + width;
        while (stop < end && *stop != '*' && *stop != '\n')
            stop++;
        if ((size_t)(end - stop) < width || memcmp(stop, "**", width)) {
            at++;
            continue;
        }
        n += !python_is_blank((struct piece){at + width, (size_t)(stop - at) - width});
        at = stop + width;
    }
    return n;
}

int checks_highlights(const struct asked *asked)
{
    double wanted;
    if (checks_number(asked, "num_highlights", &wanted))
        return -1;
    return highlights(asked->text, 1) + highlights(asked->text, 2) >= wanted;
}

/* 1: in some line, the text from the first "<<" to the last ">>" has more than brackets. */
int checks_title(const struct asked *asked)
{
    const char *at = asked->text.at, *end = at + asked->text.n;
    while (at < end) {
        struct piece line = line_at(at, end);
        const char *open = find(line, "<<"), *close = at + line.n;
        while (open && close > open + 1 && memcmp(close - 2, ">>", 2))
            close--;
        if (open && close - open >= 5 &&
            !python_is_blank(python_strip_of((struct piece){open, (size_t)(close - open)}, '<',
                                             '>')))
            return 1;
        at += line.n + 1;
    }
    return 0;
}

int checks_two_responses(const struct asked *asked)
{
    struct piece rest = asked->text, kept[2] = {{"", 0}, {"", 0}};
    int n = 0;
    for (int more = 1, first = 1; more; first = 0) {
        struct piece one = python_strip(cut(&rest, "******", &more));
        if (!one.n && !first && more)
            return 0;
        if (one.n && n++ < 2)
            kept[n - 1] = one;
    }
    return n == 2 && !is_same(kept[0], kept[1]);
}

/* 1: `text` starts (end 0) or ends (end 1) with `part`, if all letters are made small. */
static int has_at(struct piece text, struct piece part, int end)
{
    struct buf all = {0}, small = {0};
    python_lower(text, &all);
    python_lower(part, &small);
    int fits = small.len <= all.len &&
               (!small.len || !memcmp(all.data + (end ? all.len - small.len : 0), small.data,
                                      small.len));
    buf_free(&all);
    buf_free(&small);
    return fits;
}

int checks_repeat_prompt(const struct asked *asked)
{
    const char *prompt;
    if (checks_text(asked, "prompt_to_repeat", &prompt))
        return -1;
    return has_at(python_strip(asked->text), python_strip(python_piece(prompt)), 0);
}

int checks_end(const struct asked *asked)
{
    const char *phrase;
    if (checks_text(asked, "end_phrase", &phrase))
        return -1;
    return has_at(python_strip_of(python_strip(asked->text), '"', '"'),
                  python_strip(python_piece(phrase)), 1);
}

int checks_quotation(const struct asked *asked)
{
    struct piece text = python_strip(asked->text);
    return text.n > 1 && *text.at == '"' && text.at[text.n - 1] == '"';
}

int checks_no_comma(const struct asked *asked)
{
    return !memchr(asked->text.at, ',', asked->text.n);
}
