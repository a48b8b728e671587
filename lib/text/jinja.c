/* jinja.c - a scanner of templates, not an interpreter: see jinja.h.
 *
 * White space around tags is removed as in transformers (trim_blocks, lstrip_blocks). A condition
 * is no, yes or perhaps (Kleene's three values); it is decided only if it asks for a feature that a
 * plain conversation lacks. The branches of yes and perhaps are read. Unknown filters, functions
 * and macros are refused by name, so a template is read to its end or not at all. Recursion is
 * limited by NESTED_MAX.
 * One file because all parts share the state of a scan.
 */
#include "lib/text/jinja.h"

#include <ctype.h>
#include <string.h>

#include "lib/text/utf8.h"

enum { WORDS_MAX = 1024, NESTED_MAX = 64, SET_MAX = 64 };
enum { NO, PERHAPS, YES };

/* kind: s string (without quotes), w word, 1 number, = for ==, ! for !=, : for =; else the sign. */
struct token {
    char kind;
    const char *s;
    size_t n;
};
struct branch {
    int around, taken; /* 1: the text around it is read; 1: an earlier condition was yes */
};
struct scan {
    const char *text;
    size_t n, at;
    const char *bos, *eos;
    struct token tag[WORDS_MAX]; /* the words of this tag */
    size_t words;
    struct branch open[NESTED_MAX];
    size_t depth;
    int live;                  /* 1: the text here can be written */
    struct token set[SET_MAX];  /* names that the template sets */
    struct token made[SET_MAX]; /* those whose value has text, which was read there */
    size_t n_set, n_made;
    struct jinja_written *to;
    struct err *why;
};

static int refuse(const struct scan *s, const char *what, const char *name, size_t n)
{
    size_t line = 1;
    for (size_t i = 0; i < s->at && i < s->n; i++)
        line += s->text[i] == '\n';
    return err_set(s->why, EXIT_BAD_DATA, "line %zu: %s%.*s", line, what, n < 40 ? (int)n : 40,
                   name);
}

static int is(const struct token *t, const char *word)
{
    return t->kind == 'w' && t->n == strlen(word) && !memcmp(t->s, word, t->n);
}

static int is_one(const struct token *t, const struct token *names, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (names[i].n == t->n && !memcmp(names[i].s, t->s, t->n))
            return 1;
    return 0;
}

static int is_any(const struct token *t, const char *const *words)
{
    while (*words && !is(t, *words))
        words++;
    return *words != NULL;
}

/* ---- words of a tag ---- */

/* Reads the token at s->at and moves past it. */
static int read_token(struct scan *s, struct token *t)
{
    const char *p = s->text + s->at, *end = s->text + s->n, *q = p + 1;
    char c = *p;
    *t = (struct token){c, p, 1};
    if (c == '"' || c == '\'') {
        while (q < end && *q != c)
            q += *q == '\\' && q + 1 < end ? 2 : 1;
        if (q >= end)
            return refuse(s, "a text that does not end", "", 0);
        *t = (struct token){'s', p + 1, (size_t)(q++ - p - 1)};
    } else if (isalnum((unsigned char)c) || c == '_') {
        while (q < end && (isalnum((unsigned char)*q) || *q == '_'))
            q++;
        *t = (struct token){isdigit((unsigned char)c) ? '1' : 'w', p, (size_t)(q - p)};
    } else if ((c == '=' || c == '!') && q < end && *q == '=') {
        q++;
    } else if (c == '=') {
        t->kind = ':';
    }
    s->at = (size_t)(q - s->text);
    return 0;
}

/* Reads to the end of a tag that closes with `c` and a brace; *cut: it trims the text after it. */
static int read_tag(struct scan *s, char c, int *cut)
{
    size_t braces = 0;
    for (s->words = 0; s->at < s->n;) {
        const char *p = s->text + s->at;
        size_t sign = (*p == '-' || *p == '+') && s->at + 1 < s->n && p[1] == c;
        if (!braces && p[sign] == c && s->at + sign + 1 < s->n && p[sign + 1] == '}') {
            *cut = sign && *p == '-';
            s->at += sign + 2;
            return 0;
        }
        if (isspace((unsigned char)*p)) {
            s->at++;
            continue;
        }
        if (s->words == WORDS_MAX)
            return refuse(s, "a tag of too many words", "", 0);
        if (read_token(s, &s->tag[s->words]))
            return -1;
        char kind = s->tag[s->words++].kind;
        braces += kind == '{';
        braces -= braces && kind == '}';
    }
    return refuse(s, "a tag that does not end", "", 0);
}

/* ---- conditions ---- */

/* 1: a name or text of a feature that a plain conversation lacks, unless the template sets the
 * name. */
static int is_lacking(const struct scan *s, const struct token *t)
{
    static const char *const parts[] = {"tool", "ipython", "document", "think", "reasoning"};
    if (is_one(t, s->set, s->n_set))
        return 0;
    for (size_t k = 0; k < sizeof parts / sizeof *parts; k++)
        for (size_t i = 0, n = strlen(parts[k]); i + n <= t->n; i++)
            if (!memcmp(t->s + i, parts[k], n))
                return 1;
    return 0;
}

struct condition {
    const struct scan *s;
    size_t at, end;
    int depth;
};

static const struct token *peek(const struct condition *c)
{
    static const struct token none = {0};
    return c->at < c->end ? &c->s->tag[c->at] : &none;
}

static int at_end(const struct condition *c)
{
    const struct token *t = peek(c);
    return !t->kind || t->kind == ')' || is(t, "and") || is(t, "or");
}

/* A comparison, test or name. A lacking feature is undefined, in nothing and equal to nothing: no,
 * or yes after an odd number of negations. */
static int decide_plain(struct condition *c)
{
    static const char *const negations[] = {"not", "none", "None", "undefined", NULL};
    size_t inner = 0;
    int lacks = 0, negated = 0, number = 0, open = 0, late = 0;
    for (; inner ? c->at < c->end : !at_end(c); c->at++) {
        const struct token *t = peek(c);
        int word = t->kind == 'w' || t->kind == 's';
        inner += t->kind == '(' || t->kind == '[';
        inner -= inner && (t->kind == ')' || t->kind == ']');
        lacks |= word && is_lacking(c->s, t);
        late |= is(t, "last_query_index"); /* answers after the last question: none */
        negated ^= !inner && (t->kind == '!' || is_any(t, negations));
        number |= !inner && t->kind == '1';
        open |= !inner && (t->kind == '=' || t->kind == '<' || is(t, "else"));
    }
    if (late)
        return NO;
    if (!lacks || (number && open))
        return PERHAPS;
    return negated ? YES : NO;
}

static int decide(struct condition *c);

static int decide_one(struct condition *c)
{
    int negated = 0, v;
    for (; is(peek(c), "not"); c->at++)
        negated ^= 1;
    if (peek(c)->kind == '(' && c->depth < NESTED_MAX) {
        c->at++;
        c->depth++;
        v = decide(c);
        c->depth--;
        c->at += peek(c)->kind == ')';
        if (!at_end(c)) { /* a value in brackets that is used further */
            decide_plain(c);
            v = PERHAPS;
        }
    } else {
        v = decide_plain(c);
    }
    return negated ? YES - v : v;
}

static int decide_all(struct condition *c)
{
    int v = decide_one(c);
    while (is(peek(c), "and")) {
        c->at++;
        int w = decide_one(c);
        v = w < v ? w : v;
    }
    return v;
}

static int decide(struct condition *c)
{
    int v = decide_all(c);
    while (is(peek(c), "or")) {
        c->at++;
        int w = decide_all(c);
        v = w > v ? w : v;
    }
    return v;
}

/* The condition after the first word of a tag. */
static int decide_tag(const struct scan *s)
{
    struct condition c = {.s = s, .at = 1, .end = s->words};
    int v = decide(&c);
    return c.at == c.end ? v : PERHAPS;
}

/* ---- text that is written ---- */

static void put_value(struct scan *s)
{
    struct buf *b = &s->to->text;
    if (!b->len || b->data[b->len - 1] != JINJA_VALUE)
        buf_char(b, JINJA_VALUE);
}

static void put_char(struct scan *s, char c)
{
    buf_char(&s->to->text, !c || c == JINJA_VALUE ? '?' : c);
}

static void put_string(struct scan *s, const struct token *t)
{
    for (size_t i = 0; i < t->n; i++) {
        char c = t->s[i];
        if (c == '\\' && i + 1 < t->n) {
            c = t->s[++i];
            c = (char)(c == 'n' ? '\n' : c == 't' ? '\t' : c == 'r' ? '\r' : c);
        }
        put_char(s, c);
    }
}

/* Index after the bracket that closes the one at word i. */
static size_t skip_brackets(const struct scan *s, size_t i)
{
    size_t depth = 0;
    do {
        char k = s->tag[i].kind;
        depth += k == '(' || k == '[';
        depth -= k == ')' || k == ']';
    } while (++i < s->words && depth);
    return i;
}

/* A known filter (after |), method (after a dot) or function. Returns its number of words; 0: it is
 * not known. */
static size_t take_call(struct scan *s, size_t i, const char *const *known)
{
    static const char *const trims[] = {"trim", "strip", NULL};
    const struct token *t = &s->tag[i];
    if (!is_any(t, known)) {
        refuse(s, "it calls ", t->s, t->n);
        return 0;
    }
    if (is_any(t, trims))
        s->to->trims = 1;
    size_t next = i + 1;
    if (next < s->words && s->tag[next].kind == '(')
        next = skip_brackets(s, next);
    return next - i;
}

/* Appends the text of the name at i. */
static size_t put_name(struct scan *s, size_t i)
{
    static const char *const filters[] = {"trim", "string", "safe", "length", NULL};
    static const char *const methods[] = {"strip", NULL};
    static const char *const functions[] = {"raise_exception", "strftime_now", "namespace", NULL};
    static const char *const silent[] = {"if", "else", "and", "or", "not", "in", "is", "none",
                                         "None", "defined", NULL};
    const struct token *t = &s->tag[i];
    char before = i ? s->tag[i - 1].kind : 0;
    int call = i + 1 < s->words && s->tag[i + 1].kind == '(';
    if (before == '|')
        return take_call(s, i, filters);
    if (before == '.')
        return call ? take_call(s, i, methods) : 1;
    if (is_any(t, silent))
        return 1;
    if (is(t, "bos_token") || is(t, "eos_token")) {
        const char *text = is(t, "bos_token") ? s->bos : s->eos;
        buf_text(&s->to->text, text ? text : "");
        return 1;
    }
    if (!is(t, "raise_exception") && !is_one(t, s->made, s->n_made))
        put_value(s);
    return call ? take_call(s, i, functions) : 1;
}

/* 1: the string at i is compared, not written. */
static int is_compared(const struct scan *s, size_t i)
{
    const struct token *a = i ? &s->tag[i - 1] : NULL;
    const struct token *b = i + 1 < s->words ? &s->tag[i + 1] : NULL;
    return (a && (a->kind == '=' || a->kind == '!' || is(a, "in"))) ||
           (b && (b->kind == '=' || b->kind == '!' || is(b, "in") || is(b, "not")));
}

/* Appends the text that the words from i on can write. */
static int put_expression(struct scan *s, size_t i)
{
    size_t step;
    for (; i < s->words; i += step) {
        const struct token *t = &s->tag[i];
        step = 1;
        if (t->kind == 's' && !is_compared(s, i))
            put_string(s, t);
        else if (t->kind == '[')
            step = skip_brackets(s, i) - i;
        else if (t->kind == 'w')
            step = put_name(s, i);
        else if (t->kind == '%' || t->kind == '*' || t->kind == '{')
            return refuse(s, "it uses ", t->s, t->n);
        if (!step)
            return -1;
    }
    return 0;
}

/* ---- statements ---- */

/* Notes names that the template sets, so they are no lacking features. */
static int note_set(struct scan *s)
{
    static const char *const nothing[] = {"none", "None", "false", "False", NULL};
    for (size_t i = 1; i + 2 < s->words; i++) {
        const struct token *v = &s->tag[i + 2];
        if (s->tag[i + 1].kind != ':' || s->tag[i].kind != 'w' || is_any(v, nothing) ||
            (v->kind == 's' && !v->n))
            continue;
        if (s->n_set == SET_MAX)
            return refuse(s, "too many names are set", "", 0);
        s->set[s->n_set++] = s->tag[i];
    }
    return 0;
}

/* The text of a value counts as written where a name is set to it. */
static int do_set(struct scan *s)
{
    size_t i = 1, before = s->to->text.len;
    while (i < s->words && s->tag[i].kind != ':')
        i++;
    if (note_set(s) || put_expression(s, i + 1))
        return -1;
    struct buf *b = &s->to->text;
    size_t text = before;
    while (text < b->len && b->data[text] == JINJA_VALUE)
        text++;
    if (text == b->len && i < s->words) {
        b->len = before;
    } else if (s->n_made < SET_MAX) {
        s->made[s->n_made++] = s->tag[i - 1];
    } else {
        return refuse(s, "too many names are set", "", 0);
    }
    return 0;
}

static int open_branch(struct scan *s)
{
    if (s->depth == NESTED_MAX)
        return refuse(s, "nested too deep", "", 0);
    int v = decide_tag(s);
    s->open[s->depth++] = (struct branch){s->live, v == YES};
    s->live = s->live && v != NO;
    return 0;
}

static int next_branch(struct scan *s)
{
    if (!s->depth)
        return refuse(s, "a branch of nothing", "", 0);
    struct branch *b = &s->open[s->depth - 1];
    int v = is(&s->tag[0], "else") ? PERHAPS : decide_tag(s);
    s->live = b->around && !b->taken && v != NO;
    b->taken |= v == YES;
    return 0;
}

static int do_statement(struct scan *s)
{
    static const char *const begin[] = {"if", "for", NULL}, *const next[] = {"elif", "else", NULL};
    static const char *const end[] = {"endif", "endfor", NULL};
    static const char *const idle[] = {"endset", "break", "continue", "generation",
                                       "endgeneration", NULL};
    const struct token none = {0}, *t = s->words ? &s->tag[0] : &none;
    if (is_any(t, begin))
        return open_branch(s);
    if (is_any(t, next))
        return next_branch(s);
    if (is_any(t, end)) {
        if (!s->depth)
            return refuse(s, "an end of nothing: ", t->s, t->n);
        s->live = s->open[--s->depth].around;
        return 0;
    }
    if (!s->live || is_any(t, idle))
        return 0;
    return is(t, "set") ? do_set(s) : refuse(s, "it has a tag ", t->s ? t->s : "", t->n);
}

/* ---- text between tags ---- */

static size_t find_tag(const struct scan *s)
{
    size_t i = s->at;
    while (i + 1 < s->n && !(s->text[i] == '{' && strchr("{%#", s->text[i + 1]) && s->text[i + 1]))
        i++;
    return i + 1 < s->n ? i : s->n;
}

/* The text up to the tag at `to`, trimmed by the tags around it. before: the kind of the tag in
 * front ('-': it trims all white space), 0: none. */
static void put_between(struct scan *s, size_t to, char before)
{
    size_t from = s->at, end = to;
    char kind = to + 1 < s->n ? s->text[to + 1] : 0, sign = to + 2 < s->n ? s->text[to + 2] : 0;
    if ((before == '%' || before == '#') && from < end && s->text[from] == '\n')
        from++;
    while (before == '-' && from < end && isspace((unsigned char)s->text[from]))
        from++;
    if (kind && sign == '-') {
        while (end > from && isspace((unsigned char)s->text[end - 1]))
            end--;
    } else if ((kind == '%' || kind == '#') && sign != '+') {
        size_t line = end;
        while (line > s->at && (s->text[line - 1] == ' ' || s->text[line - 1] == '\t'))
            line--;
        if (line == 0 || s->text[line - 1] == '\n')
            end = line > from ? line : from;
    } else if (!kind && end > from && s->text[end - 1] == '\n') {
        end--; /* the last line feed of the file */
    }
    for (size_t i = from; s->live && i < end; i++)
        put_char(s, s->text[i]);
}

static int skip_comment(struct scan *s, int *cut)
{
    for (; s->at + 1 < s->n; s->at++)
        if (s->text[s->at] == '#' && s->text[s->at + 1] == '}') {
            *cut = s->text[s->at - 1] == '-';
            s->at += 2;
            return 0;
        }
    return refuse(s, "a comment that does not end", "", 0);
}

static int scan_all(struct scan *s)
{
    char before = 0;
    while (s->at < s->n) {
        size_t tag = find_tag(s);
        put_between(s, tag, before);
        if (tag == s->n)
            break;
        char kind = s->text[tag + 1];
        int cut = 0, bad;
        s->at = tag + 2;
        if (kind != '#' && s->at < s->n && (s->text[s->at] == '-' || s->text[s->at] == '+'))
            s->at++;
        bad = kind == '#' ? skip_comment(s, &cut) : read_tag(s, kind == '{' ? '}' : '%', &cut);
        if (!bad && kind == '{' && s->live)
            bad = put_expression(s, 0);
        if (!bad && kind == '%')
            bad = do_statement(s);
        if (bad)
            return -1;
        before = cut ? '-' : kind;
    }
    return s->depth ? refuse(s, "a branch that does not end", "", 0) : 0;
}

int jinja_read(struct jinja_written *w, const char *text, size_t n, const char *bos,
               const char *eos, struct err *why)
{
    struct scan s = {.text = text, .n = n, .bos = bos, .eos = eos, .live = 1, .to = w, .why = why};
    *w = (struct jinja_written){0};
    if (n > JINJA_MAX_BYTES)
        return err_set(why, EXIT_BAD_DATA, "expected at most %d bytes, got %zu", JINJA_MAX_BYTES,
                       n);
    if (utf8_valid(text, n) < n)
        return err_set(why, EXIT_BAD_DATA, "byte %zu is not UTF-8", utf8_valid(text, n));
    return scan_all(&s);
}

void jinja_free(struct jinja_written *w)
{
    buf_free(&w->text);
}
