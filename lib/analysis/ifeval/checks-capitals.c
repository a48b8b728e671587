/* checks-capitals.c - counts words in capitals, cut as nltk's word_tokenize cuts them. Only cuts
 * between letters matter. A mark that nltk makes a separate word has no capitals, so it becomes a
 * space here.
 *
 * nltk finds the ends of sentences with a trained table, which this project does not have. The end
 * of a sentence can only cut a point from the word before it and so add words (IT'S. is one word,
 * IT and 'S are two). So words are counted twice: with a sentence that ends only at the end of the
 * text, and with an end at every point where one is possible. If both counts give the same verdict,
 * it holds; else there is no verdict. */
#include <string.h>

#include "lib/analysis/ifeval/checks.h"
#include "lib/text/utf8.h"

/* ---- steps of the tokenizer: each rewrites the text ---- */

static void swap(struct buf *text, struct buf *by)
{
    buf_free(text);
    *text = *by;
    *by = (struct buf){0};
}

/* Replaces each mark by a space. If several marks fit at a place, the first in the list counts. */
static void space_out(struct buf *text, const char *const *marks)
{
    struct buf out = {0};
    for (size_t i = 0; i < text->len;) {
        size_t n = 0;
        for (const char *const *mark = marks; *mark && !n; mark++)
            n = strncmp(text->data + i, *mark, strlen(*mark)) ? 0 : strlen(*mark);
        buf_char(&out, n ? ' ' : text->data[i]);
        i += n ? n : 1;
    }
    swap(text, &out);
}

/* Which characters belong to a word. Python has two engines of patterns that differ in this:
 * `regex`, which nltk uses, counts combining marks and joiners as letters; `re`, which cuts pairs
 * such as CANNOT, does not. */
typedef int word_kind(uint32_t code);

/* 1: the character at `at` belongs to a word. 0: it does not, or the text ends here. */
static int is_word_at(const char *at, word_kind *kind)
{
    size_t len;
    return *at && kind(utf8_read(at, &len));
}

static int is_word_before(const char *text, size_t at, word_kind *kind)
{
    return at && is_word_at(text + utf8_before(text, at), kind);
}

/* The number of bytes at `at` that are the word in any case; 0: the text there is another one.
 * Compares as Python does: i also matches the dotted capital and the dotless i, s the long s. */
static size_t same_word(const char *at, const char *word)
{
    const char *begin = at;
    for (size_t len; *word; word++, at += len) {
        uint32_t code = *at ? utf8_read(at, &len) : 0;
        int same = code == (unsigned char)*word ||
                   (*word >= 'a' && *word <= 'z' && code == (uint32_t)(*word - 'a' + 'A')) ||
                   (*word == 'i' && (code == 0x130 || code == 0x131)) ||
                   (*word == 's' && code == 0x17F);
        if (!same)
            return 0;
    }
    return (size_t)(at - begin);
}

/* Cuts an apostrophe that opens a word from this word, unless an ending ('s, 're) follows. */
static void cut_opening(struct buf *text)
{
    static const char *const endings[] = {"re", "ve", "ll", "m", "t", "s", "d", "n"};
    struct buf out = {0};
    for (size_t i = 0; i < text->len; i++) {
        const char *next = text->data + i + 1;
        buf_char(&out, text->data[i]);
        if (text->data[i] != '\'' || is_word_before(text->data, i, utf8_is_word) ||
            !is_word_at(next, utf8_is_word))
            continue;
        int is_ending = 0;
        for (size_t k = 0; k < sizeof endings / sizeof *endings; k++) {
            size_t n = same_word(next, endings[k]);
            is_ending = is_ending || (n && !is_word_at(next + n, utf8_is_word));
        }
        if (!is_ending)
            buf_char(&out, ' ');
    }
    swap(text, &out);
}

static int is_digit_at(const char *at)
{
    size_t len;
    return *at && python_is_digit(utf8_read(at, &len));
}

/* Replaces commas and colons by spaces, unless a digit follows. The character after such a mark is
 * copied without a check, because the pattern of nltk consumes it. */
static void cut_commas(struct buf *text)
{
    struct buf out = {0};
    for (size_t i = 0; i < text->len; i++) {
        int mark = (text->data[i] == ',' || text->data[i] == ':') &&
                   !is_digit_at(text->data + i + 1);
        buf_char(&out, mark ? ' ' : text->data[i]);
        if (mark && i + 1 < text->len)
            buf_char(&out, text->data[++i]);
    }
    swap(text, &out);
}

/* Replaces a run of two or more points by a space. */
static void cut_points(struct buf *text)
{
    struct buf out = {0};
    for (size_t i = 0, n; i < text->len; i += n) {
        n = strspn(text->data + i, ".");
        buf_char(&out, n > 1 ? ' ' : text->data[i]);
        n = n ? n : 1;
    }
    swap(text, &out);
}

/* Puts a space before an ending; the first one in the list that fits counts. No apostrophe may
 * stand before the ending, and no space unless behind_space. */
static void cut_endings(struct buf *text, const char *const *endings, int behind_space)
{
    struct buf out = {0};
    for (size_t i = 0; i < text->len;) {
        size_t n = 0;
        buf_char(&out, text->data[i]);
        if (text->data[i] != '\'' && (behind_space || text->data[i] != ' '))
            for (const char *const *ending = endings; *ending && !n; ending++)
                n = strncmp(text->data + i + 1, *ending, strlen(*ending)) ? 0 : strlen(*ending);
        if (n) {
            buf_char(&out, ' ');
            buf_put(&out, text->data + i + 1, n);
        }
        i += 1 + n;
    }
    swap(text, &out);
}

/* Replaces each run of white space by one space, and puts a space before the text. White space is
 * the one of `regex`, without the separators of ASCII. */
static void join_space(struct buf *text)
{
    struct buf out = {0};
    buf_char(&out, ' ');
    for (size_t i = 0, len; i < text->len; i += len) {
        if (!utf8_is_space(utf8_read(text->data + i, &len)))
            buf_put(&out, text->data + i, len);
        else if (out.data[out.len - 1] != ' ')
            buf_char(&out, ' ');
    }
    swap(text, &out);
}

static int is_space_at(const char *at)
{
    size_t len;
    return *at && python_is_space(utf8_read(at, &len));
}

/* Cuts words like CANNOT into two. first 1: a space must stand before the word; 0: the edge of a
 * word is enough. last 1: white space must follow the word. */
static void cut_pair(struct buf *text, const char *one, const char *two, size_t first, int last)
{
    struct buf out = {0};
    for (size_t i = 0; i < text->len;) {
        const char *at = text->data + i;
        size_t len, n = first && *at != ' ' ? 0 : same_word(at + first, one);
        size_t rest = n ? same_word(at + first + n, two) : 0;
        const char *end = at + first + n + rest;
        if (!rest || (!first && is_word_before(text->data, i, python_is_word)) ||
            is_word_at(end, python_is_word) || (last && !is_space_at(end))) {
            utf8_read(at, &len);
            buf_put(&out, at, len);
            i += len;
            continue;
        }
        buf_char(&out, ' ');
        buf_put(&out, at + first, n);
        buf_char(&out, ' ');
        buf_put(&out, at + first + n, rest);
        buf_char(&out, ' ');
        i += first + n + rest;
    }
    swap(text, &out);
}

/* ---- ends of sentences ---- */

/* The length of the mark at `at`, if this mark may stand between the last point of a sentence and
 * the end of the sentence; else 0. */
static size_t closer(const char *at)
{
    static const char *const marks[] = {"»", "”", "’"};
    for (size_t i = 0; i < sizeof marks / sizeof *marks; i++)
        if (!strncmp(at, marks[i], strlen(marks[i])))
            return strlen(marks[i]);
    return *at && strchr("])}>\"' ", *at) ? 1 : 0;
}

/* 1: a point before `at` ends the text: only closing marks and white space follow. A quote after a
 * space opens a new sentence. */
static int ends_text(const char *at)
{
    for (size_t n; (n = closer(at)); at += n)
        if (*at == ' ' && (at[1] == '"' || (at[1] == '\'' && at[2] == '\'')))
            return 0;
    return python_is_blank(python_piece(at));
}

/* Replaces points that end a sentence by spaces. all 0: only the last point of the text; 1: every
 * point that can end a sentence. */
static void cut_ends(struct buf *text, int all)
{
    size_t last = text->len;
    while (!all && last && text->data[last - 1] != '.')
        last--;
    for (size_t i = 1; i < text->len; i++)
        if (text->data[i] == '.' && text->data[i - 1] != '.' &&
            (all ? !is_word_at(text->data + i + 1, python_is_word) &&
                       text->data[i + 1] != '.'
                 : i + 1 == last && ends_text(text->data + i + 1)))
            text->data[i] = ' ';
}

/* ---- the count ---- */

static void cut(struct buf *text, int all)
{
    static const char *const before[] = {"«", "“", "‘", "„", "`", ";", "@", "#", "$",
                                         "%", "&", "‒", "–", "—", "―", "?", "!", NULL};
    static const char *const behind[] = {"*", "[", "]", "(", ")", "{", "}", "<", ">", "--", NULL};
    static const char *const quotes[] = {"»", "”", "’", "''", "\"", NULL};
    static const char *const lone[] = {"' ", NULL};
    static const char *const one[] = {"'s ", "'S ", "'m ", "'M ", "'d ", "'D ", "' ", NULL};
    static const char *const more[] = {"'ll ", "'LL ", "'re ", "'RE ", "'ve ", "'VE ", "n't ",
                                       "N'T ", NULL};
    static const struct { const char *one, *two; size_t first; int last; } pairs[] = {
        {"can", "not", 0, 0}, {"d", "'ye", 0, 0},    {"gim", "me", 0, 0}, {"gon", "na", 0, 0},
        {"got", "ta", 0, 0},  {"lem", "me", 0, 0},   {"more", "'n", 0, 0},
        {"wan", "na", 0, 1},
        {"'t", "is", 1, 0},   {"'t", "was", 1, 0}};
    cut_ends(text, all);
    space_out(text, before);
    cut_opening(text);
    cut_commas(text);
    cut_points(text);
    cut_endings(text, lone, 1);
    space_out(text, behind);
    buf_char(text, ' '); /* join_space() puts the space before the text */
    space_out(text, quotes);
    join_space(text);
    cut_endings(text, one, 0);
    cut_endings(text, more, 0);
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++)
        cut_pair(text, pairs[i].one, pairs[i].two, pairs[i].first, pairs[i].last);
}

static double count(struct piece text, int all)
{
    struct buf own = {0};
    double n = 0;
    buf_put(&own, text.at, text.n);
    cut(&own, all);
    struct piece rest = {own.data, own.len}, word;
    while ((word = python_next_word(&rest)).n)
        n += python_is_upper(word);
    buf_free(&own);
    return n;
}

int checks_capitals(const struct asked *asked)
{
    int verdict[2];
    for (int all = 0; all < 2; all++)
        verdict[all] = checks_amount(asked, count(asked->text, all), "capital_frequency",
                                     "capital_relation");
    if (verdict[0] == verdict[1])
        return verdict[0];
    *asked->why = "the number of words in capitals depends on where nltk ends a sentence";
    return RULE_NONE;
}
