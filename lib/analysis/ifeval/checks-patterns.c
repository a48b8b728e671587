/* checks-patterns.c - the checks of rule "ifeval" that use words of the item as a pattern, as the
 * public code does: "." stands for any character. Words are translated from Python's syntax to that
 * of PCRE2. Syntax that PCRE2 could read in another way is refused; the message names the
 * argument. */
#include <string.h>

#include "lib/analysis/ifeval/checks.h"
#include "lib/base/regex.h"
#include "lib/record/rec.h"
#include "lib/text/utf8.h"

enum {
    WORDS_MOST = 32, WORD_LONGEST = 1000,
    REPEATS_IN = 16384 /* bytes of a text in which a pattern may repeat something */
};

/* Python's \s and \w. The \s of PCRE2 lacks the separators of ASCII, and its \w has other
 * characters from version 10.43 on. */
#define SPACE "[\\t-\\r\\x1c-\\x20\\x{85}\\x{a0}\\x{1680}\\x{2000}-\\x{200a}\\x{2028}"             \
              "\\x{2029}\\x{202f}\\x{205f}\\x{3000}]"
#define WORD "[\\p{L}\\p{N}_]"
#define EDGE "(?:(?<=" WORD ")(?!" WORD ")|(?<!" WORD ")(?=" WORD "))"
#define STEPS "(*LIMIT_MATCH=20000)" /* most steps of the matcher from each place of the text */

struct pattern {
    struct buf text;
    int groups, repeats;
};

/* Appends a character that stands for itself. If any_case, some characters match more forms in
 * Python than in PCRE2; these become a class. */
static void put_plain(struct buf *out, const char *at, size_t len, int any_case)
{
    static const char *const forms[] = {"iIİı", "\u0390\u1fd3", "\u03b0\u1fe3", "ﬅﬆ"};
    for (size_t i = 0; any_case && i < sizeof forms / sizeof *forms; i++)
        if (memmem(forms[i], strlen(forms[i]), at, len)) {
            buf_format(out, "[%s]", forms[i]);
            return;
        }
    if (len == 1 && strchr("\\.^$|()[]{}*+?", *at))
        buf_char(out, '\\');
    buf_put(out, at, len);
}

static int is_sign(char c)
{
    return c && strchr("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~ ", c) != NULL;
}

/* Appends the translation of a Python pattern. 0: it has syntax that is not translated. */
static int translate(struct pattern *pattern, const char *text, int any_case)
{
    enum { NOTHING, ONE, REPEATED } before = NOTHING; /* the item that a repetition applies to */
    for (size_t len; *text; text += len) {
        utf8_read(text, &len);
        if (*text == '*' || *text == '+' || *text == '?') {
            if (before == NOTHING || (before == REPEATED && (*text != '?' || text[-1] == '\\')))
                return 0;
            before = before == ONE ? REPEATED : NOTHING;
            pattern->repeats = 1;
            buf_char(&pattern->text, *text);
        } else if (*text == '^' || *text == '$' || *text == '|' || *text == '(' || *text == ')') {
            if (*text == '(' && (text[1] == '?' || text[1] == '*'))
                return 0;
            pattern->groups += *text == '(';
            before = NOTHING;
            buf_char(&pattern->text, *text);
        } else if (*text == '[' || (*text == '{' && strchr("0123456789,", text[1]))) {
            return 0;
        } else if (*text == '.') {
            before = ONE;
            buf_char(&pattern->text, '.');
        } else {
            if (*text == '\\' && !is_sign(*++text))
                return 0;
            before = ONE;
            put_plain(&pattern->text, text, len, any_case);
        }
    }
    return 1;
}

/* Sets *n to the number of matches, as re.findall counts them. */
static int count(const struct asked *asked, const struct pattern *pattern, struct piece text,
                 double *n)
{
    struct regex *regex = regex_new(pattern->text.data, asked->e);
    struct regex_span whole = {0, 0}, group;
    if (!regex)
        return err_prefix(asked->e, "answer: instruction %.60s", asked->id);
    int gives_up = pattern->repeats && text.n > REPEATS_IN;
    for (*n = 0; !gives_up && regex_next(regex, text.at, text.n, *n > 0, &whole, &group); ++*n)
        ;
    gives_up = gives_up || regex_gave_up(regex);
    regex_free(regex);
    if (gives_up)
        *asked->why = "a word of the item is a pattern that takes too many steps";
    return gives_up ? RULE_NONE : 0;
}

/* Counts the matches of the pattern before + words + behind. *groups: the number of groups in the
 * words; groups may be NULL. */
static int count_of(const struct asked *asked, const char *name, const char *before,
                    struct piece words, const char *behind, int any_case, struct piece text,
                    double *n, int *groups)
{
    struct pattern pattern = {{0}, 0, 0};
    struct buf own = {0};
    buf_put(&own, words.at, words.n);
    buf_text(&pattern.text, any_case ? STEPS "(?i)" : STEPS);
    buf_text(&pattern.text, before);
    int got = words.n > WORD_LONGEST || !translate(&pattern, own.data, any_case)
                  ? checks_refuse(asked, name, "plain words, or a simple pattern")
                  : 0;
    if (!got) {
        buf_text(&pattern.text, behind);
        got = count(asked, &pattern, text, n);
    }
    if (groups)
        *groups = pattern.groups;
    buf_free(&own);
    buf_free(&pattern.text);
    return got;
}

/* ---- keywords ---- */

/* wanted 1: the text must have each word of the argument; 0: it must have none of them. */
static int check_words(const struct asked *asked, const char *name, const char *edge, int wanted)
{
    const json_t *list = json_object_get(asked->arguments, name), *word;
    int got = json_array_size(list) && json_array_size(list) <= WORDS_MOST
                  ? 1 : checks_refuse(asked, name, "1 to 32 words");
    size_t i;
    json_array_foreach(list, i, word) {
        const char *own = json_string_value(word);
        double n = 0;
        if (got < 0 || got == RULE_NONE)
            break;
        int bad = own ? count_of(asked, name, edge, python_piece(own), edge, 1, asked->text, &n,
                                 NULL)
                      : checks_refuse(asked, name, "words");
        got = bad ? bad : got && (n > 0) == wanted;
    }
    return got;
}

int checks_existence(const struct asked *asked)
{
    return check_words(asked, "keywords", "", 1);
}

int checks_forbidden(const struct asked *asked)
{
    return check_words(asked, "forbidden_words", EDGE, 0);
}

int checks_frequency(const struct asked *asked)
{
    const char *word;
    double n;
    if (checks_text(asked, "keyword", &word))
        return -1;
    int bad = count_of(asked, "keyword", "", python_strip(python_piece(word)), "", 1, asked->text,
                       &n, NULL);
    return bad ? bad : checks_amount(asked, n, "frequency", "relation");
}

/* ---- sections and postscripts ---- */

/* Python's re.split() returns the text of each group too, so each match adds 1 + groups pieces. */
int checks_sections(const struct asked *asked)
{
    const char *word;
    double wanted, n;
    int groups;
    if (checks_text(asked, "section_spliter", &word) ||
        checks_number(asked, "num_sections", &wanted))
        return -1;
    int bad = count_of(asked, "section_spliter", SPACE "?", python_strip(python_piece(word)),
                       SPACE "?\\p{Nd}+" SPACE "?", 0, asked->text, &n, &groups);
    return bad ? bad : n * (1 + groups) >= wanted;
}

static size_t past(const char *text, const char *word)
{
    size_t n = strlen(word);
    return strncmp(text, word, n) ? 0 : n;
}

static size_t past_space(const char *text)
{
    size_t len = 0;
    return *text && python_is_space(utf8_read(text, &len)) ? len : 0;
}

/* 1: the text has "p.s." (two 1: "p.p.s"); one white space may follow each "p.". */
static int has_mark(const char *text, int two)
{
    for (const char *at = text; (at = strstr(at, "p.")); at++) {
        const char *rest = at + 2 + past_space(at + 2);
        if (two && !past(rest, "p."))
            continue;
        rest += two ? 2 + past_space(rest + 2) : 0;
        if (past(rest, two ? "s" : "s."))
            return 1;
    }
    return 0;
}

int checks_postscript(const struct asked *asked)
{
    const char *word;
    struct buf small = {0}, mark = {0};
    double n;
    if (checks_text(asked, "postscript_marker", &word))
        return -1;
    const struct piece stripped = python_strip(python_piece(word));
    python_lower(asked->text, &small);
    buf_text(&small, "");
    python_lower(stripped, &mark);
    const int two = stripped.n == 5 && !memcmp(stripped.at, "P.P.S", 5);
    int got;
    if (two || (stripped.n == 4 && !memcmp(stripped.at, "P.S.", 4)))
        got = has_mark(small.len ? small.data : "", two);
    else if (!(got = count_of(asked, "postscript_marker", "(?m)",
                              (struct piece){mark.len ? mark.data : "", mark.len}, ".*$", 0,
                              (struct piece){small.len ? small.data : "", small.len}, &n, NULL)))
        got = n > 0;
    buf_free(&small);
    buf_free(&mark);
    return got;
}
