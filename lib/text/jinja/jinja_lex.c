/* jinja_lex.c - cuts a template into text and the words of its tags; see jinja_lex.h.
 *
 * White space around tags is removed as by Jinja with trim_blocks and lstrip_blocks: the line feed
 * after a tag or comment, blanks between the beginning of a line and a tag or comment, and all
 * white space on the side where a tag has a minus sign. A plus sign keeps the white space. */
#include "lib/text/jinja/jinja_lex.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/mem.h"
#include "lib/text/utf8.h"

enum { BRACKETS_MAX = 200 };
struct lexer {
    struct jinja_work *w;
    struct jinja_string text; /* the template; its lines end with line feeds only */
    size_t at;
    int tag_line;    /* line where the current tag begins */
    int line_starts; /* 1: the last token ended with a line feed, or there is no token yet */
    char open[BRACKETS_MAX]; /* for each open bracket: the bracket that closes it */
    size_t depth;
    struct jinja_token *v;
    size_t n, cap;
};

static void never_ends(struct lexer *lexer, const char *what)
{
    lexer->w->line = lexer->tag_line;
    jinja_fail(lexer->w, "%s that does not end", what);
}

static char peek(const struct lexer *lexer, size_t ahead)
{
    return lexer->at + ahead < lexer->text.n ? lexer->text.bytes[lexer->at + ahead] : 0;
}

static void advance(struct lexer *lexer, size_t n)
{
    for (size_t end = lexer->at + n; lexer->at < end && lexer->at < lexer->text.n; lexer->at++)
        lexer->w->line += lexer->text.bytes[lexer->at] == '\n';
}

static struct jinja_token *add(struct lexer *lexer, enum jinja_token_kind kind,
                               const struct jinja_string *text)
{
    MEM_GROW(lexer->v, lexer->n, lexer->cap);
    lexer->v[lexer->n] = (struct jinja_token){.kind = kind, .line = lexer->w->line, .text = text};
    return &lexer->v[lexer->n++];
}

/* ---- text between tags ---- */

static void skip_space(struct lexer *lexer)
{
    size_t begin = lexer->at, end = lexer->text.n;
    jinja_trim(&lexer->text, 1, 0, &begin, &end);
    advance(lexer, begin - lexer->at);
}

/* Place of the next tag or comment at or after lexer->at; the end of the text if there is none. */
static size_t next_tag(const struct lexer *lexer)
{
    size_t i = lexer->at;
    for (; i + 1 < lexer->text.n; i++)
        if (lexer->text.bytes[i] == '{' && strchr("{%#", lexer->text.bytes[i + 1]) &&
            lexer->text.bytes[i + 1])
            return i;
    return lexer->text.n;
}

/* The end of the text [lexer->at, end) after removing the white space that the tag at `end` removes
 * before it. kind, sign: second and third character of the tag. */
static size_t stripped(const struct lexer *lexer, size_t end, char kind, char sign)
{
    size_t begin = lexer->at, line = end;
    if (sign == '-') {
        jinja_trim(&lexer->text, 0, 1, &begin, &end);
        return end;
    }
    if (sign == '+' || kind == '{')
        return end;
    while (line > lexer->at && lexer->text.bytes[line - 1] != '\n')
        line--;
    begin = line;
    if (line > lexer->at || lexer->line_starts)
        jinja_trim(&lexer->text, 1, 0, &begin, &end);
    return begin == end ? line : end;
}

/* Skips the end of a tag or comment, `letters` bytes, and the white space that the tag removes
 * after it. sign: the sign in this end, or another character. */
static void skip_end(struct lexer *lexer, size_t letters, char sign, int is_print)
{
    advance(lexer, letters);
    if (sign == '-')
        skip_space(lexer);
    else if (sign != '+' && !is_print && peek(lexer, 0) == '\n')
        advance(lexer, 1);
    lexer->line_starts = lexer->text.bytes[lexer->at - 1] == '\n';
}

static void skip_comment(struct lexer *lexer)
{
    size_t i = lexer->at;
    while (i + 1 < lexer->text.n &&
           (lexer->text.bytes[i] != '#' || lexer->text.bytes[i + 1] != '}'))
        i++;
    if (i + 1 >= lexer->text.n) {
        never_ends(lexer, "a comment");
        return;
    }
    char sign = i > lexer->at ? lexer->text.bytes[i - 1] : 0;
    advance(lexer, i - lexer->at);
    skip_end(lexer, 2, sign, 0);
}

/* ---- words of a tag ---- */

/* The value of up to `n` digits in `base` at lexer->at + from; *used = the number of digits. */
static uint32_t digits(const struct lexer *lexer, size_t from, size_t n, int base, size_t *used)
{
    uint32_t value = 0;
    for (*used = 0; *used < n; ++*used) {
        char letter = peek(lexer, from + *used);
        int digit = letter >= '0' && letter <= '9' ? letter - '0'
                    : isxdigit((unsigned char)letter) ? (letter | 32) - 'a' + 10 : base;
        if (digit >= base)
            break;
        value = value * (uint32_t)base + (uint32_t)digit;
    }
    return value;
}

/* Appends the character that the escape at lexer->at (a backslash and letters) means in Python.
 * Returns the number of bytes of the escape. */
static size_t put_escape(struct lexer *lexer, struct buf *to)
{
    static const char letters[] = "nrtabfv\\'\"", meant[] = "\n\r\t\a\b\f\v\\'\"";
    char letter = peek(lexer, 1);
    const char *known = letter ? strchr(letters, letter) : NULL;
    size_t wanted = letter == 'x' ? 2 : letter == 'u' ? 4 : letter == 'U' ? 8 : 0, used;
    if (known) {
        buf_char(to, meant[known - letters]);
    } else if (wanted || (letter >= '0' && letter <= '7')) {
        uint32_t code = wanted ? digits(lexer, 2, wanted, 16, &used)
                               : digits(lexer, 1, 3, 8, &used);
        if (used < wanted || code > 0x10FFFF || (code >= 0xD800 && code < 0xE000))
            jinja_fail(lexer->w, "\\%c without the digits of a character", letter);
        else
            utf8_put(to, code);
        return used + (wanted ? 2 : 1);
    } else if (letter == 'N') {
        jinja_fail(lexer->w, "\\N: not supported");
    } else if (letter != '\n') { /* the backslash of an unknown escape stays */
        buf_char(to, '\\');
        return 1;
    }
    return 2;
}

static void read_string(struct lexer *lexer)
{
    char quote = peek(lexer, 0);
    struct buf text = {0};
    struct jinja_token *token = add(lexer, JINJA_TOKEN_STRING, NULL);
    size_t place = (size_t)(token - lexer->v);
    advance(lexer, 1);
    while (lexer->at < lexer->text.n && peek(lexer, 0) != quote && !lexer->w->failed) {
        size_t used = 1;
        if (peek(lexer, 0) == '\\')
            used = put_escape(lexer, &text);
        else
            buf_char(&text, peek(lexer, 0));
        advance(lexer, used);
    }
    if (lexer->at == lexer->text.n)
        never_ends(lexer, "a string");
    advance(lexer, 1);
    lexer->v[place].text = jinja_own(lexer->w, text.data, text.len);
    buf_free(&text);
}

static void read_number(struct lexer *lexer)
{
    int64_t n = 0;
    int begins_0 = peek(lexer, 0) == '0' && isdigit((unsigned char)peek(lexer, 1)) &&
                   peek(lexer, 1) != '0';
    int after_point = lexer->n && jinja_is(lexer->v[lexer->n - 1].text, ".");
    while (isdigit((unsigned char)peek(lexer, 0)) ||
           (peek(lexer, 0) == '_' && isdigit((unsigned char)peek(lexer, 1)))) {
        if (peek(lexer, 0) != '_')
            n = n > INT32_MAX ? n : 10 * n + (peek(lexer, 0) - '0');
        advance(lexer, 1);
    }
    if (n > INT32_MAX)
        jinja_fail(lexer->w, "a number above %d", INT32_MAX);
    if ((peek(lexer, 0) == '.' && isdigit((unsigned char)peek(lexer, 1)) && !after_point) ||
        isalpha((unsigned char)peek(lexer, 0)))
        jinja_fail(lexer->w, "a number with a point or letters: not supported");
    if (begins_0)
        jinja_fail(lexer->w, "a number that begins with 0");
    add(lexer, JINJA_TOKEN_NUMBER, NULL)->number = n;
}

static void read_name(struct lexer *lexer)
{
    size_t n = 0;
    while (isalnum((unsigned char)peek(lexer, n)) || peek(lexer, n) == '_')
        n++;
    add(lexer, JINJA_TOKEN_NAME, jinja_part(lexer->w, &lexer->text, lexer->at, lexer->at + n));
    advance(lexer, n);
}

/* Stores an opening bracket, or checks that a closing bracket closes the last open one. */
static void match_bracket(struct lexer *lexer, char letter)
{
    static const char opening[] = "([{", closing[] = ")]}";
    const char *open = strchr(opening, letter), *close = strchr(closing, letter);
    if (open && lexer->depth == BRACKETS_MAX)
        jinja_fail(lexer->w, "brackets are nested too deep");
    else if (open)
        lexer->open[lexer->depth++] = closing[open - opening];
    else if (close && (!lexer->depth || lexer->open[--lexer->depth] != letter))
        jinja_fail(lexer->w, "unexpected '%c'", letter);
}

static void read_sign(struct lexer *lexer)
{
    static const char *const two[] = {"**", "//", "==", "!=", ">=", "<="};
    char letter = peek(lexer, 0);
    size_t n = 1;
    for (size_t i = 0; i < sizeof two / sizeof *two; i++)
        if (letter == two[i][0] && peek(lexer, 1) == two[i][1])
            n = 2;
    if (!letter || (n == 1 && !strchr("+-/*%~[](){}><=.:|,;", letter)))
        jinja_fail(lexer->w, "unexpected character '%c'",
                   letter > ' ' && letter <= '~' ? letter : '?');
    match_bracket(lexer, letter);
    add(lexer, JINJA_TOKEN_SIGN, jinja_part(lexer->w, &lexer->text, lexer->at, lexer->at + n));
    advance(lexer, n);
}

/* If the tag ends at lexer->at: skips its end and returns 1. Else returns 0. */
static int ends_here(struct lexer *lexer, char letter)
{
    char sign = peek(lexer, 0);
    size_t signs = sign == '-' || (sign == '+' && letter == '%');
    if (lexer->depth || peek(lexer, signs) != letter || peek(lexer, signs + 1) != '}')
        return 0;
    add(lexer, JINJA_TOKEN_CLOSE, NULL);
    skip_end(lexer, signs + 2, signs ? sign : 0, letter == '}');
    return 1;
}

/* Reads the words of a tag up to its end. */
static void read_words(struct lexer *lexer, char letter)
{
    lexer->depth = 0;
    for (skip_space(lexer); !lexer->w->failed && !ends_here(lexer, letter); skip_space(lexer)) {
        char first = peek(lexer, 0);
        if (lexer->at == lexer->text.n)
            never_ends(lexer, "a tag");
        else if (first == '"' || first == '\'')
            read_string(lexer);
        else if (isdigit((unsigned char)first))
            read_number(lexer);
        else if (isalpha((unsigned char)first) || first == '_')
            read_name(lexer);
        else
            read_sign(lexer);
    }
}

static void read_tag(struct lexer *lexer)
{
    char kind = peek(lexer, 1), sign = peek(lexer, 2);
    size_t signs = sign == '-' || sign == '+';
    lexer->tag_line = lexer->w->line;
    if (kind != '#')
        add(lexer, kind == '{' ? JINJA_TOKEN_PRINT : JINJA_TOKEN_TAG, NULL);
    advance(lexer, 2 + signs);
    if (kind == '#')
        skip_comment(lexer);
    else
        read_words(lexer, kind == '{' ? '}' : '%');
}

/* A copy of the template in which all lines end with a line feed. The last line feed is removed. */
static struct jinja_string plain_lines(struct jinja_work *work, const char *text, size_t n)
{
    char *to = jinja_alloc(work, n + 1);
    size_t len = 0;
    for (size_t i = 0; i < n; i++) {
        if (text[i] == '\r' && i + 1 < n && text[i + 1] == '\n')
            continue;
        to[len++] = text[i] == '\r' ? '\n' : text[i];
    }
    len -= len && to[len - 1] == '\n';
    return (struct jinja_string){.bytes = to, .n = len};
}

struct jinja_token *jinja_lex(struct jinja_work *work, const char *text, size_t n)
{
    struct lexer lexer = {.w = work, .text = plain_lines(work, text, n), .line_starts = 1};
    work->line = 1;
    while (lexer.at < lexer.text.n && !work->failed) {
        size_t tag = next_tag(&lexer), end = tag;
        if (tag < lexer.text.n)
            end = stripped(&lexer, tag, lexer.text.bytes[tag + 1],
                           tag + 2 < lexer.text.n ? lexer.text.bytes[tag + 2] : 0);
        if (end > lexer.at)
            add(&lexer, JINJA_TOKEN_DATA, jinja_part(work, &lexer.text, lexer.at, end));
        advance(&lexer, tag - lexer.at);
        if (lexer.at < lexer.text.n)
            read_tag(&lexer);
    }
    add(&lexer, JINJA_TOKEN_END, NULL);
    return lexer.v;
}
