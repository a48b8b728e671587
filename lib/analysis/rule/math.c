/* math.c - compares answers in LaTeX in the normal form of Hendrycks et al. 2021 (arXiv
 * 2103.03874), as hendrycks_math of lm-eval applies it. Some texts have no normal form: a fraction
 * without parts at the end, two units, a/b where a or b is no whole number. If one of the two texts
 * has none, both are compared as they are; lm-eval does the same. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "lib/analysis/rule/parts.h"
#include "lib/base/mem.h"

/* ---- edits ---- */

static void replace(struct buf *text, const char *old, const char *by)
{
    struct buf out = {0};
    buf_replaced(&out, text->data ? text->data : "", old, by);
    buf_free(text);
    *text = out;
}

static void set(struct buf *text, const char *rest, size_t n)
{
    struct buf out = {0};
    buf_put(&out, rest, n);
    buf_free(text);
    *text = out;
}

/* Cuts the text before "\text{ ", which begins a unit. -1: there are two. */
static int cut_unit(struct buf *text)
{
    static const char unit[] = "\\text{ ";
    const char *at = strstr(text->data, unit);
    if (at && strstr(at + 1, unit))
        return -1;
    if (at)
        set(text, text->data, (size_t)(at - text->data));
    return 0;
}

/* "k=5" -> "5", if there is one "=" and the name before it has at most two characters. */
static void cut_name(struct buf *text)
{
    char *at = strchr(text->data, '=');
    size_t letters = 0;
    for (const char *cursor = text->data; at && cursor < at; cursor++)
        letters += (*cursor & 0xC0) != 0x80;
    if (at && !strchr(at + 1, '=') && letters <= 2)
        set(text, at + 1, strlen(at + 1));
}

/* The number of bytes of the character at `text`; 0 at the end of the text. */
static size_t character(const char *text)
{
    size_t n = *text != 0;
    while (n && (text[n] & 0xC0) == 0x80)
        n++;
    return n;
}

/* "\sqrt3" -> "\sqrt{3}". -1: nothing, or another root, follows a root. */
static int brace_roots(struct buf *text)
{
    static const char root[] = "\\sqrt";
    struct buf out = {0};
    const char *rest = text->data;
    int bad = 0;
    for (const char *at; !bad && (at = strstr(rest, root));) {
        buf_put(&out, rest, (size_t)(at - rest));
        rest = at + sizeof root - 1;
        size_t n = character(rest);
        bad = !n || !strncmp(rest, root, sizeof root - 1);
        buf_text(&out, root);
        if (bad || *rest == '{')
            continue;
        buf_format(&out, "{%.*s}", (int)n, rest);
        rest += n;
    }
    buf_text(&out, rest);
    buf_free(text);
    *text = out;
    return -bad;
}

/* "\frac12" -> "\frac{1}{2}", "\frac1{72}" -> "\frac{1}{72}". If only one character follows a
 * fraction, the whole text stays as it was. -1: nothing follows a fraction. */
static int brace_fractions(struct buf *text)
{
    static const char fraction[] = "\\frac";
    enum { WORD = sizeof fraction - 1 };
    struct buf out = {0};
    const char *rest = text->data, *at = strstr(rest, fraction);
    buf_put(&out, rest, at ? (size_t)(at - rest) : strlen(rest));
    for (const char *next; at; at = next) {
        rest = at + WORD;
        next = strstr(rest, fraction);
        const char *end = next ? next : rest + strlen(rest);
        size_t one = rest < end ? character(rest) : 0,
               two = rest + one < end ? character(rest + one) : 0;
        buf_text(&out, fraction);
        if (!one || (*rest != '{' && !two)) {
            buf_free(&out);
            return one ? 0 : -1;
        }
        if (*rest != '{') {
            int braced = rest[one] == '{';
            buf_format(&out, braced ? "{%.*s}%.*s" : "{%.*s}{%.*s}", (int)one, rest, (int)two,
                       rest + one);
            rest += one + two;
        }
        buf_put(&out, rest, (size_t)(end - rest));
    }
    buf_free(text);
    *text = out;
    return 0;
}

/* 1: Python's int() reads the text as a whole number. *plain 1: Python would also write it so. */
static int is_whole(const char *text, size_t n, int *plain)
{
    size_t i = n && (*text == '-' || *text == '+'), digits = i;
    for (; i < n; i++)
        if (!isdigit((unsigned char)text[i]) &&
            !(text[i] == '_' && i > digits && text[i - 1] != '_' && i + 1 < n))
            return 0;
    *plain = *text != '+' && !memchr(text, '_', n) && (text[digits] != '0' || n == 1);
    return n > digits;
}

/* "2/3" -> "\frac{2}{3}". -1: a part is no whole number. */
static int turn_slash(struct buf *buffer)
{
    char *at = strchr(buffer->data, '/');
    int plain[2];
    if (!at || strchr(at + 1, '/'))
        return 0;
    size_t n = (size_t)(at - buffer->data);
    if (!is_whole(buffer->data, n, &plain[0]) || !is_whole(at + 1, strlen(at + 1), &plain[1]))
        return -1;
    if (plain[0] && plain[1]) {
        char *text = mem_format("\\frac{%.*s}{%s}", (int)n, buffer->data, at + 1);
        set(buffer, text, strlen(text));
        free(text);
    }
    return 0;
}

/* Brings the text into the normal form. -1: it has none. */
static int normalize(struct buf *buffer)
{
    static const char *const edits[][2] = {
        {"\n", ""}, {"\\!", ""}, {"\\\\", "\\"}, {"tfrac", "frac"}, {"dfrac", "frac"},
        {"\\left", ""}, {"\\right", ""}, {"^{\\circ}", ""}, {"^\\circ", ""}, {"\\$", ""}};
    for (size_t i = 0; i < sizeof edits / sizeof *edits; i++)
        replace(buffer, edits[i][0], edits[i][1]);
    if (cut_unit(buffer))
        return -1;
    replace(buffer, "\\%", "");
    replace(buffer, " .", " 0.");
    replace(buffer, "{.", "{0.");
    if (!buffer->len)
        return 0;
    if (*buffer->data == '.') {
        char *text = mem_format("0%s", buffer->data);
        set(buffer, text, strlen(text));
        free(text);
    }
    cut_name(buffer);
    if (brace_roots(buffer))
        return -1;
    replace(buffer, " ", "");
    if (brace_fractions(buffer))
        return -1;
    if (!strcmp(buffer->data, "0.5"))
        set(buffer, "\\frac{1}{2}", 11);
    return turn_slash(buffer);
}

/* ---- finding the answer in a response ---- */

/* Sets out to the content of the last \boxed{...} and returns 1; 0: there is none. */
static int last_boxed(const char *text, struct buf *out)
{
    static const char *const names[] = {"\\boxed", "\\fbox"};
    const char *last = NULL, *spaced = NULL;
    for (const char *at = text; (at = strstr(at, "\\boxed ")); at++)
        spaced = at;
    if (spaced) {
        set(out, spaced + 7, strcspn(spaced + 7, "$"));
        return 1;
    }
    for (int i = 0; i < 2 && !last; i++)
        for (const char *at = text; (at = strstr(at, names[i])); at++)
            last = at;
    const char *open = last ? strchr(last, '{') : NULL, *end = open;
    for (int depth = 0; end && *end; end++) {
        depth += (*end == '{') - (*end == '}');
        if (*end == '}' && !depth)
            break;
    }
    if (!end || !*end || strncmp(last, "\\boxed{", 7))
        return 0;
    set(out, last + 7, (size_t)(end - last - 7));
    return 1;
}

/* Sets out to the text between the first and the last "$"; to the whole text if there are fewer
 * than two "$". */
static void between_dollars(const char *text, struct buf *out)
{
    const char *first = strchr(text, '$'), *last = strrchr(text, '$');
    if (first != last)
        set(out, first + 1, (size_t)(last - first - 1));
    else
        set(out, text, strlen(text));
}

int rule_math(struct rule *rule, const char *answer, const char *response, const char **why,
              struct err *e)
{
    struct buf *wanted = &rule->one, *got = &rule->two;
    (void)why;
    (void)e;
    if (!last_boxed(answer, wanted))
        set(wanted, answer, strlen(answer));
    if (rule->boxed && !last_boxed(response, got))
        return 0;
    if (!rule->boxed)
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
