/* math.c - answers in LaTeX, compared in the normal form of Hendrycks et al. 2021 (arXiv
 * 2103.03874) as lm-eval's hendrycks_math applies it, with its odd cases: a text that the form
 * cannot take (a fraction at the end without its parts, two units, a/b with other than whole
 * numbers) makes both texts be compared as they are. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "lib/analysis/rule/parts.h"
#include "lib/base/mem.h"

/* ---- edits ---- */

static void replace(struct buf *b, const char *old, const char *by)
{
    struct buf out = {0};
    buf_replaced(&out, b->data ? b->data : "", old, by);
    buf_free(b);
    *b = out;
}

static void set(struct buf *b, const char *s, size_t n)
{
    struct buf out = {0};
    buf_put(&out, s, n);
    buf_free(b);
    *b = out;
}

/* Cuts the text before "\text{ ", which begins a unit. -1: there are two. */
static int cut_unit(struct buf *b)
{
    static const char unit[] = "\\text{ ";
    const char *at = strstr(b->data, unit);
    if (at && strstr(at + 1, unit))
        return -1;
    if (at)
        set(b, b->data, (size_t)(at - b->data));
    return 0;
}

/* "k=5" -> "5": the one name before the one "=" has at most two letters. */
static void cut_name(struct buf *b)
{
    char *at = strchr(b->data, '=');
    size_t letters = 0;
    for (const char *p = b->data; at && p < at; p++)
        letters += (*p & 0xC0) != 0x80;
    if (at && !strchr(at + 1, '=') && letters <= 2)
        set(b, at + 1, strlen(at + 1));
}

/* Bytes of the character at s. */
static size_t character(const char *s)
{
    size_t n = *s != 0;
    while (n && (s[n] & 0xC0) == 0x80)
        n++;
    return n;
}

/* "\sqrt3" -> "\sqrt{3}". -1: nothing follows a root. */
static int brace_roots(struct buf *b)
{
    static const char root[] = "\\sqrt";
    struct buf out = {0};
    const char *s = b->data;
    int bad = 0;
    for (const char *at; !bad && (at = strstr(s, root));) {
        buf_put(&out, s, (size_t)(at - s));
        s = at + sizeof root - 1;
        size_t n = character(s);
        bad = !n || !strncmp(s, root, sizeof root - 1);
        buf_text(&out, root);
        if (bad || *s == '{')
            continue;
        buf_format(&out, "{%.*s}", (int)n, s);
        s += n;
    }
    buf_text(&out, s);
    buf_free(b);
    *b = out;
    return -bad;
}

/* "\frac12" -> "\frac{1}{2}", "\frac1{72}" -> "\frac{1}{72}". A part of one letter leaves the whole
 * text as it was. -1: nothing follows. */
static int brace_fractions(struct buf *b)
{
    static const char fraction[] = "\\frac";
    enum { WORD = sizeof fraction - 1 };
    struct buf out = {0};
    const char *s = b->data, *at = strstr(s, fraction);
    buf_put(&out, s, at ? (size_t)(at - s) : strlen(s));
    for (const char *next; at; at = next) {
        s = at + WORD;
        next = strstr(s, fraction);
        const char *end = next ? next : s + strlen(s);
        size_t one = s < end ? character(s) : 0, two = s + one < end ? character(s + one) : 0;
        buf_text(&out, fraction);
        if (!one || (*s != '{' && !two)) {
            buf_free(&out);
            return one ? 0 : -1;
        }
        if (*s != '{') {
            int braced = s[one] == '{';
            buf_format(&out, braced ? "{%.*s}%.*s" : "{%.*s}{%.*s}", (int)one, s, (int)two,
                       s + one);
            s += one + two;
        }
        buf_put(&out, s, (size_t)(end - s));
    }
    buf_free(b);
    *b = out;
    return 0;
}

/* 1: a whole number as Python reads it; *plain: as Python writes it. */
static int is_whole(const char *s, size_t n, int *plain)
{
    size_t i = n && (*s == '-' || *s == '+'), digits = i;
    for (; i < n; i++)
        if (!isdigit((unsigned char)s[i]) &&
            !(s[i] == '_' && i > digits && s[i - 1] != '_' && i + 1 < n))
            return 0;
    *plain = *s != '+' && !memchr(s, '_', n) && (s[digits] != '0' || n == 1);
    return n > digits;
}

/* "2/3" -> "\frac{2}{3}". -1: parts that are no whole numbers. */
static int turn_slash(struct buf *b)
{
    char *at = strchr(b->data, '/');
    int plain[2];
    if (!at || strchr(at + 1, '/'))
        return 0;
    size_t n = (size_t)(at - b->data);
    if (!is_whole(b->data, n, &plain[0]) || !is_whole(at + 1, strlen(at + 1), &plain[1]))
        return -1;
    if (plain[0] && plain[1]) {
        char *text = mem_format("\\frac{%.*s}{%s}", (int)n, b->data, at + 1);
        set(b, text, strlen(text));
        free(text);
    }
    return 0;
}

/* -1: the form cannot take the text. */
static int normalize(struct buf *b)
{
    static const char *const edits[][2] = {
        {"\n", ""}, {"\\!", ""}, {"\\\\", "\\"}, {"tfrac", "frac"}, {"dfrac", "frac"},
        {"\\left", ""}, {"\\right", ""}, {"^{\\circ}", ""}, {"^\\circ", ""}, {"\\$", ""}};
    for (size_t i = 0; i < sizeof edits / sizeof *edits; i++)
        replace(b, edits[i][0], edits[i][1]);
    if (cut_unit(b))
        return -1;
    replace(b, "\\%", "");
    replace(b, " .", " 0.");
    replace(b, "{.", "{0.");
    if (!b->len)
        return 0;
    if (*b->data == '.') {
        char *text = mem_format("0%s", b->data);
        set(b, text, strlen(text));
        free(text);
    }
    cut_name(b);
    if (brace_roots(b))
        return -1;
    replace(b, " ", "");
    if (brace_fractions(b))
        return -1;
    if (!strcmp(b->data, "0.5"))
        set(b, "\\frac{1}{2}", 11);
    return turn_slash(b);
}

/* ---- finding ---- */

/* The content of the last \boxed{...}. 0: none. */
static int last_boxed(const char *s, struct buf *out)
{
    static const char *const names[] = {"\\boxed", "\\fbox"};
    const char *last = NULL, *spaced = NULL;
    for (const char *at = s; (at = strstr(at, "\\boxed ")); at++)
        spaced = at;
    if (spaced) {
        set(out, spaced + 7, strcspn(spaced + 7, "$"));
        return 1;
    }
    for (int i = 0; i < 2 && !last; i++)
        for (const char *at = s; (at = strstr(at, names[i])); at++)
            last = at;
    const char *open = last ? strchr(last, '{') : NULL, *p = open;
    for (int depth = 0; p && *p; p++) {
        depth += (*p == '{') - (*p == '}');
        if (*p == '}' && !depth)
            break;
    }
    if (!p || !*p || strncmp(last, "\\boxed{", 7))
        return 0;
    set(out, last + 7, (size_t)(p - last - 7));
    return 1;
}

/* The text between the first and the last "$"; with fewer than two, the whole text. */
static void between_dollars(const char *s, struct buf *out)
{
    const char *first = strchr(s, '$'), *last = strrchr(s, '$');
    if (first != last)
        set(out, first + 1, (size_t)(last - first - 1));
    else
        set(out, s, strlen(s));
}

int rule_math(struct rule *r, const char *answer, const char *response, const char **why,
              struct err *e)
{
    struct buf *wanted = &r->one, *got = &r->two;
    (void)why;
    (void)e;
    if (!last_boxed(answer, wanted))
        set(wanted, answer, strlen(answer));
    if (r->boxed && !last_boxed(response, got))
        return 0;
    if (!r->boxed)
        between_dollars(response, got);
    char *plain_wanted = mem_text(wanted->len ? wanted->data : ""),
         *plain_got = mem_text(got->len ? got->data : "");
    int bad = normalize(got) || normalize(wanted);
    int same = bad ? !strcmp(plain_got, plain_wanted)
                   : !strcmp(got->len ? got->data : "", wanted->len ? wanted->data : "");
    free(plain_wanted);
    free(plain_got);
    return same;
}
