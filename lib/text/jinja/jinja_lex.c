/* jinja_lex.c - cuts a template into text and the words of its tags; see jinja_lex.h.
 *
 * White space around tags is removed as by Jinja with trim_blocks and lstrip_blocks: the line feed
 * after a tag or comment, blanks between the beginning of a line and a tag or comment, and all
 * white space where a tag has a minus sign. A plus sign keeps it. */
#include "lib/text/jinja/jinja_lex.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/mem.h"
#include "lib/text/utf8.h"

enum { BRACKETS_MAX = 200 };
struct lexer {
    struct jinja_work *w;
    struct jinja_string text; /* line feeds only */
    size_t at;
    int tag_line;    /* where the tag begins that is read */
    int line_starts; /* 1: the last token ended with a line feed, or there is none */
    char open[BRACKETS_MAX];
    size_t depth;
    struct jinja_token *v;
    size_t n, cap;
};

static void never_ends(struct lexer *x, const char *what)
{
    x->w->line = x->tag_line;
    jinja_fail(x->w, "%s that does not end", what);
}

static char peek(const struct lexer *x, size_t ahead)
{
    return x->at + ahead < x->text.n ? x->text.bytes[x->at + ahead] : 0;
}

static void advance(struct lexer *x, size_t n)
{
    for (size_t end = x->at + n; x->at < end && x->at < x->text.n; x->at++)
        x->w->line += x->text.bytes[x->at] == '\n';
}

static struct jinja_token *add(struct lexer *x, enum jinja_token_kind kind,
                               const struct jinja_string *text)
{
    MEM_GROW(x->v, x->n, x->cap);
    x->v[x->n] = (struct jinja_token){.kind = kind, .line = x->w->line, .text = text};
    return &x->v[x->n++];
}

/* ---- text between tags ---- */

static void skip_space(struct lexer *x)
{
    size_t begin = x->at, end = x->text.n;
    jinja_trim(&x->text, 1, 0, &begin, &end);
    advance(x, begin - x->at);
}

/* Begin of the next tag or comment at or after x->at; the end of the text: none. */
static size_t next_tag(const struct lexer *x)
{
    size_t i = x->at;
    for (; i + 1 < x->text.n; i++)
        if (x->text.bytes[i] == '{' && strchr("{%#", x->text.bytes[i + 1]) && x->text.bytes[i + 1])
            return i;
    return x->text.n;
}

/* The end of the text [x->at, end) without what a tag with this sign removes. */
static size_t stripped(const struct lexer *x, size_t end, char kind, char sign)
{
    size_t begin = x->at, line = end;
    if (sign == '-') {
        jinja_trim(&x->text, 0, 1, &begin, &end);
        return end;
    }
    if (sign == '+' || kind == '{')
        return end;
    while (line > x->at && x->text.bytes[line - 1] != '\n')
        line--;
    begin = line;
    if (line > x->at || x->line_starts)
        jinja_trim(&x->text, 1, 0, &begin, &end);
    return begin == end ? line : end;
}

/* Skips what belongs to the end of a tag or comment: its sign, its two letters, white space. */
static void skip_end(struct lexer *x, size_t letters, char sign, int is_print)
{
    advance(x, letters);
    if (sign == '-')
        skip_space(x);
    else if (sign != '+' && !is_print && peek(x, 0) == '\n')
        advance(x, 1);
    x->line_starts = x->text.bytes[x->at - 1] == '\n';
}

static void skip_comment(struct lexer *x)
{
    size_t i = x->at;
    while (i + 1 < x->text.n && (x->text.bytes[i] != '#' || x->text.bytes[i + 1] != '}'))
        i++;
    if (i + 1 >= x->text.n) {
        never_ends(x, "a comment");
        return;
    }
    char sign = i > x->at ? x->text.bytes[i - 1] : 0;
    advance(x, i - x->at);
    skip_end(x, 2, sign, 0);
}

/* ---- words of a tag ---- */

/* Value of up to `n` digits in `base` at x->at + from; *used: how many there are. */
static uint32_t digits(const struct lexer *x, size_t from, size_t n, int base, size_t *used)
{
    uint32_t value = 0;
    for (*used = 0; *used < n; ++*used) {
        char c = peek(x, from + *used);
        int digit = c >= '0' && c <= '9' ? c - '0'
                    : isxdigit((unsigned char)c) ? (c | 32) - 'a' + 10 : base;
        if (digit >= base)
            break;
        value = value * (uint32_t)base + (uint32_t)digit;
    }
    return value;
}

/* Writes what the backslash at x->at and the letters after it mean in Python. Returns the number of
 * bytes read. */
static size_t put_escape(struct lexer *x, struct buf *to)
{
    static const char letters[] = "nrtabfv\\'\"", meant[] = "\n\r\t\a\b\f\v\\'\"";
    char c = peek(x, 1);
    const char *known = c ? strchr(letters, c) : NULL;
    size_t wanted = c == 'x' ? 2 : c == 'u' ? 4 : c == 'U' ? 8 : 0, used;
    if (known) {
        buf_char(to, meant[known - letters]);
    } else if (wanted || (c >= '0' && c <= '7')) {
        uint32_t code = wanted ? digits(x, 2, wanted, 16, &used) : digits(x, 1, 3, 8, &used);
        if (used < wanted || code > 0x10FFFF || (code >= 0xD800 && code < 0xE000))
            jinja_fail(x->w, "\\%c without the digits of a character", c);
        else
            utf8_put(to, code);
        return used + (wanted ? 2 : 1);
    } else if (c == 'N') {
        jinja_fail(x->w, "\\N: not supported");
    } else if (c != '\n') { /* unknown ones stay */
        buf_char(to, '\\');
        return 1;
    }
    return 2;
}

static void read_string(struct lexer *x)
{
    char quote = peek(x, 0);
    struct buf b = {0};
    struct jinja_token *t = add(x, JINJA_TOKEN_STRING, NULL);
    size_t place = (size_t)(t - x->v);
    advance(x, 1);
    while (x->at < x->text.n && peek(x, 0) != quote && !x->w->failed) {
        size_t used = 1;
        if (peek(x, 0) == '\\')
            used = put_escape(x, &b);
        else
            buf_char(&b, peek(x, 0));
        advance(x, used);
    }
    if (x->at == x->text.n)
        never_ends(x, "a string");
    advance(x, 1);
    x->v[place].text = jinja_own(x->w, b.data, b.len);
    buf_free(&b);
}

static void read_number(struct lexer *x)
{
    int64_t n = 0;
    int begins_0 = peek(x, 0) == '0' && isdigit((unsigned char)peek(x, 1)) && peek(x, 1) != '0';
    int after_point = x->n && jinja_is(x->v[x->n - 1].text, ".");
    while (isdigit((unsigned char)peek(x, 0)) ||
           (peek(x, 0) == '_' && isdigit((unsigned char)peek(x, 1)))) {
        if (peek(x, 0) != '_')
            n = n > INT32_MAX ? n : 10 * n + (peek(x, 0) - '0');
        advance(x, 1);
    }
    if (n > INT32_MAX)
        jinja_fail(x->w, "a number above %d", INT32_MAX);
    if ((peek(x, 0) == '.' && isdigit((unsigned char)peek(x, 1)) && !after_point) ||
        isalpha((unsigned char)peek(x, 0)))
        jinja_fail(x->w, "a number with a point or letters: not supported");
    if (begins_0)
        jinja_fail(x->w, "a number that begins with 0");
    add(x, JINJA_TOKEN_NUMBER, NULL)->number = n;
}

static void read_name(struct lexer *x)
{
    size_t n = 0;
    while (isalnum((unsigned char)peek(x, n)) || peek(x, n) == '_')
        n++;
    add(x, JINJA_TOKEN_NAME, jinja_part(x->w, &x->text, x->at, x->at + n));
    advance(x, n);
}

/* Notes an opened bracket, or checks that a closing one has its partner. */
static void match_bracket(struct lexer *x, char c)
{
    static const char opening[] = "([{", closing[] = ")]}";
    const char *open = strchr(opening, c), *close = strchr(closing, c);
    if (open && x->depth == BRACKETS_MAX)
        jinja_fail(x->w, "brackets are nested too deep");
    else if (open)
        x->open[x->depth++] = closing[open - opening];
    else if (close && (!x->depth || x->open[--x->depth] != c))
        jinja_fail(x->w, "unexpected '%c'", c);
}

static void read_sign(struct lexer *x)
{
    static const char *const two[] = {"**", "//", "==", "!=", ">=", "<="};
    char c = peek(x, 0);
    size_t n = 1;
    for (size_t i = 0; i < sizeof two / sizeof *two; i++)
        if (c == two[i][0] && peek(x, 1) == two[i][1])
            n = 2;
    if (!c || (n == 1 && !strchr("+-/*%~[](){}><=.:|,;", c)))
        jinja_fail(x->w, "unexpected character '%c'", c > ' ' && c <= '~' ? c : '?');
    match_bracket(x, c);
    add(x, JINJA_TOKEN_SIGN, jinja_part(x->w, &x->text, x->at, x->at + n));
    advance(x, n);
}

/* 1: the tag ends at x->at, and is skipped. */
static int ends_here(struct lexer *x, char letter)
{
    char sign = peek(x, 0);
    size_t signs = sign == '-' || (sign == '+' && letter == '%');
    if (x->depth || peek(x, signs) != letter || peek(x, signs + 1) != '}')
        return 0;
    add(x, JINJA_TOKEN_CLOSE, NULL);
    skip_end(x, signs + 2, signs ? sign : 0, letter == '}');
    return 1;
}

/* Reads the words of a tag up to its end. */
static void read_words(struct lexer *x, char letter)
{
    x->depth = 0;
    for (skip_space(x); !x->w->failed && !ends_here(x, letter); skip_space(x)) {
        char c = peek(x, 0);
        if (x->at == x->text.n)
            never_ends(x, "a tag");
        else if (c == '"' || c == '\'')
            read_string(x);
        else if (isdigit((unsigned char)c))
            read_number(x);
        else if (isalpha((unsigned char)c) || c == '_')
            read_name(x);
        else
            read_sign(x);
    }
}

static void read_tag(struct lexer *x)
{
    char kind = peek(x, 1), sign = peek(x, 2);
    size_t signs = sign == '-' || sign == '+';
    x->tag_line = x->w->line;
    if (kind != '#')
        add(x, kind == '{' ? JINJA_TOKEN_PRINT : JINJA_TOKEN_TAG, NULL);
    advance(x, 2 + signs);
    if (kind == '#')
        skip_comment(x);
    else
        read_words(x, kind == '{' ? '}' : '%');
}

/* A copy with line feeds for all ends of lines, without the last one. */
static struct jinja_string plain_lines(struct jinja_work *w, const char *text, size_t n)
{
    char *to = jinja_alloc(w, n + 1);
    size_t len = 0;
    for (size_t i = 0; i < n; i++) {
        if (text[i] == '\r' && i + 1 < n && text[i + 1] == '\n')
            continue;
        to[len++] = text[i] == '\r' ? '\n' : text[i];
    }
    len -= len && to[len - 1] == '\n';
    return (struct jinja_string){.bytes = to, .n = len};
}

struct jinja_token *jinja_lex(struct jinja_work *w, const char *text, size_t n)
{
    struct lexer x = {.w = w, .text = plain_lines(w, text, n), .line_starts = 1};
    w->line = 1;
    while (x.at < x.text.n && !w->failed) {
        size_t tag = next_tag(&x), end = tag;
        if (tag < x.text.n)
            end = stripped(&x, tag, x.text.bytes[tag + 1],
                           tag + 2 < x.text.n ? x.text.bytes[tag + 2] : 0);
        if (end > x.at)
            add(&x, JINJA_TOKEN_DATA, jinja_part(w, &x.text, x.at, end));
        advance(&x, tag - x.at);
        if (x.at < x.text.n)
            read_tag(&x);
    }
    add(&x, JINJA_TOKEN_END, NULL);
    return x.v;
}
