/* quick.c - see quick.h. Of objects one after another quick-again.c.
 *
 * One pass, by recursive descent, eight bytes at a time within texts. Invariant: an object comes
 * out only where jansson would make an equal one. So everything that is rare, hard or wrong ends
 * it: an escape by number, a key that is not plain ASCII, an integer of more than 18 digits, a real
 * that overflows, a key that comes twice, deep nesting, any byte that does not belong there.
 */
#include "lib/record/quick.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/mem.h"
#include "lib/base/mix.h"
#include "lib/record/quick-run.h"

enum { DEPTH = 32, DIGITS = 18, NUMBER = 64 };

void quick_skip_space(struct quick *q)
{
    while (q->p < q->end && (*q->p == ' ' || *q->p == '\t' || *q->p == '\n' || *q->p == '\r'))
        q->p++;
}

/* 1: c is next, behind white space; it is passed. */
int quick_next_is(struct quick *q, char c)
{
    quick_skip_space(q);
    if (q->p == q->end || *q->p != c)
        return 0;
    q->p++;
    return 1;
}

/* Top bits of the bytes that are below 0x20, a quote, a backslash or no ASCII; perhaps of others
 * behind the first such byte. */
static uint64_t specials(uint64_t x)
{
    const uint64_t ones = 0x0101010101010101u;
    return (x | (x - 0x20 * ones) | ((x ^ '"' * ones) - ones) | ((x ^ '\\' * ones) - ones)) &
           0x80 * ones;
}

/* Passes plain text: to the first byte that is special. */
static void pass_plain(struct quick *q)
{
    for (uint64_t x, hit; q->end - q->p >= 8; q->p += 8) {
        memcpy(&x, q->p, 8);
        if ((hit = specials(x))) {
            q->p += __builtin_ctzll(hit) / 8; /* the first byte is the lowest one */
            return;
        }
    }
    for (unsigned char c; q->p < q->end; q->p++)
        if ((c = (unsigned char)*q->p) < 0x20 || c == '"' || c == '\\' || c >= 0x80)
            break;
}

/* The escape at the backslash goes into q->text. 0: it is by number, or wrong. */
static int unescape(struct quick *q)
{
    static const char written[] = "\"\\/bfnrt", meant[] = "\"\\/\b\f\n\r\t";
    const char *at = q->end - q->p < 2 || !q->p[1] ? NULL : strchr(written, q->p[1]);
    if (!at)
        return 0;
    buf_char(&q->text, meant[at - written]);
    q->p += 2;
    return 1;
}

/* The text behind an opening quote. */
static json_t *text(struct quick *q)
{
    const char *from = q->p;
    int ascii = 1, copied = 0;
    for (;;) {
        pass_plain(q);
        if (q->p == q->end)
            return NULL;
        if (*q->p == '"')
            break;
        if (*q->p == '\\') {
            if (!copied++)
                buf_clear(&q->text);
            buf_put(&q->text, from, (size_t)(q->p - from));
            if (!unescape(q))
                return NULL;
            from = q->p;
        } else if (*q->p & 0x80) {
            ascii = 0;
            q->p++;
        } else {
            return NULL;
        }
    }
    size_t n = (size_t)(q->p++ - from);
    if (copied) {
        buf_put(&q->text, from, n);
        from = q->text.data;
        n = q->text.len;
    }
    return ascii ? json_stringn_nocheck(from, n) : json_stringn(from, n); /* NULL: no UTF-8 */
}

static const char *pass_digits(const struct quick *q, const char *p)
{
    while (p < q->end && *p >= '0' && *p <= '9')
        p++;
    return p;
}

/* The end of the fraction and exponent at p, as far as there are any; NULL: wrong. */
static const char *pass_fraction(const struct quick *q, const char *p)
{
    if (p < q->end && *p == '.') {
        const char *digits = p + 1;
        if ((p = pass_digits(q, digits)) == digits)
            return NULL;
    }
    if (p < q->end && (*p == 'e' || *p == 'E')) {
        const char *digits = p + 1 + (p + 1 < q->end && (p[1] == '+' || p[1] == '-'));
        if ((p = pass_digits(q, digits)) == digits)
            return NULL;
    }
    return p;
}

/* from[0..n-1] by strtod, which needs a NUL behind it. */
static json_t *real(const char *from, size_t n)
{
    char copy[NUMBER], *end;
    if (n >= sizeof copy)
        return NULL;
    memcpy(copy, from, n);
    copy[n] = 0;
    double x = strtod(copy, &end);
    return *end || isinf(x) ? NULL : json_real(x);
}

/* Lists of a stream have the same integers again and again: one that was met is shared. */
static json_t *integer(struct quick *q, json_int_t v)
{
    if (!q->numbers)
        return json_integer(v);
    json_t **met = &q->numbers[mix_bits(0, (uint64_t)v) % QUICK_NUMBERS];
    if (!*met || json_integer_value(*met) != v) {
        json_decref(*met);
        *met = json_integer(v);
    }
    return json_incref(*met);
}

static json_t *number(struct quick *q)
{
    const char *from = q->p, *digits = from + (*from == '-'), *whole = pass_digits(q, digits);
    const char *end = pass_fraction(q, whole);
    if (whole == digits || (*digits == '0' && whole - digits > 1) || !end)
        return NULL;
    q->p = end;
    if (end != whole)
        return real(from, (size_t)(end - from));
    if (whole - digits > DIGITS)
        return NULL;
    json_int_t v = 0;
    for (const char *p = digits; p < whole; p++)
        v = 10 * v + (*p - '0');
    return integer(q, digits == from ? v : -v);
}

static json_t *word(struct quick *q, const char *name, json_t *(*make)(void))
{
    size_t n = strlen(name);
    if ((size_t)(q->end - q->p) < n || memcmp(q->p, name, n))
        return NULL;
    q->p += n;
    return make();
}

/* Drops what is half made. */
static json_t *give_up(json_t *half)
{
    json_decref(half);
    return NULL;
}

/* The values behind an opening bracket. */
static json_t *list(struct quick *q)
{
    json_t *all = json_array();
    if (quick_next_is(q, ']'))
        return all;
    do {
        json_t *one = quick_value(q);
        if (!one || json_array_append_new(all, one))
            return give_up(all);
    } while (quick_next_is(q, ','));
    return quick_next_is(q, ']') ? all : give_up(all);
}

/* The key at hand, and passes its colon. 0: it is not plain. */
static int key(struct quick *q, char out[QUICK_KEY])
{
    if (!quick_next_is(q, '"'))
        return 0;
    const char *name = q->p;
    pass_plain(q);
    size_t n = (size_t)(q->p - name);
    if (n >= QUICK_KEY || q->p == q->end || *q->p != '"')
        return 0;
    q->p++;
    memcpy(out, name, n);
    out[n] = 0;
    return quick_next_is(q, ':');
}

/* The members behind an opening brace. A key that comes twice does not make the object larger. */
static json_t *object(struct quick *q)
{
    char name[QUICK_KEY];
    size_t n = 0;
    json_t *all = json_object();
    if (quick_next_is(q, '}'))
        return all;
    do {
        const char *at = q->p;
        int plain = key(q, name);
        int apart = plain && q->note && q->depth == 1 ? q->note(q, at, name, all) : 0;
        if (apart < 0)
            return give_up(all);
        if (apart)
            continue;
        json_t *one = plain ? quick_value(q) : NULL;
        if (!one || json_object_set_new_nocheck(all, name, one) || json_object_size(all) != ++n)
            return give_up(all);
    } while (quick_next_is(q, ','));
    return quick_next_is(q, '}') ? all : give_up(all);
}

static json_t *nested(struct quick *q, json_t *(*make)(struct quick *))
{
    if (q->depth == DEPTH)
        return NULL;
    q->p++;
    q->depth++;
    json_t *v = make(q);
    q->depth--;
    return v;
}

json_t *quick_value(struct quick *q)
{
    quick_skip_space(q);
    if (q->p == q->end)
        return NULL;
    switch (*q->p) {
    case '"': q->p++; return text(q);
    case '{': return nested(q, object);
    case '[': return nested(q, list);
    case 't': return word(q, "true", json_true);
    case 'f': return word(q, "false", json_false);
    case 'n': return word(q, "null", json_null);
    default: return number(q);
    }
}

/* ---- some members alone ---- */

/* Passes to the first byte that is one of two, both below 0x80. */
static void pass_to(struct quick *q, char one, char other)
{
    const uint64_t ones = 0x0101010101010101u;
    const uint64_t a = (uint64_t)one * ones, b = (uint64_t)other * ones;
    for (uint64_t x, hit; q->end - q->p >= 8; q->p += 8) {
        memcpy(&x, q->p, 8);
        if ((hit = (((x ^ a) - ones) | ((x ^ b) - ones)) & ~x & 0x80 * ones)) {
            q->p += __builtin_ctzll(hit) / 8; /* the first byte is the lowest one */
            return;
        }
    }
    while (q->p < q->end && *q->p != one && *q->p != other)
        q->p++;
}

/* Passes the text behind an opening quote. */
static void skip_text(struct quick *q)
{
    for (pass_to(q, '"', '\\'); q->p < q->end && *q->p == '\\'; pass_to(q, '"', '\\'))
        q->p += q->end - q->p > 1 ? 2 : 1;
    q->p += q->p < q->end;
}

/* Passes what is in a list or an object: to the first quote or bracket. */
static void pass_inside(struct quick *q)
{
    const uint64_t ones = 0x0101010101010101u;
    for (uint64_t x, y, hit; q->end - q->p >= 8; q->p += 8) {
        memcpy(&x, q->p, 8);
        y = x | 0x20 * ones; /* square ones become curly ones */
        hit = ((x ^ '"' * ones) - ones) | ((y ^ '{' * ones) - ones) | ((y ^ '}' * ones) - ones);
        if ((hit &= ~x & 0x80 * ones)) {
            q->p += __builtin_ctzll(hit) / 8; /* the first byte is the lowest one */
            return;
        }
    }
    while (q->p < q->end && !strchr("\"[]{}", *q->p))
        q->p++;
}

/* Passes a value: to the comma or brace behind it. */
static void skip_value(struct quick *q)
{
    quick_skip_space(q);
    if (q->p < q->end && *q->p != '"' && *q->p != '[' && *q->p != '{') {
        pass_to(q, ',', '}');
        return;
    }
    for (int64_t open = 0; q->p < q->end;) {
        if (open)
            pass_inside(q);
        if (q->p == q->end)
            return;
        char c = *q->p;
        if (!open && (c == ',' || c == '}'))
            return;
        open += (c == '{' || c == '[') - (c == '}' || c == ']');
        q->p++;
        if (c == '"')
            skip_text(q);
    }
}

/* A bit for the first letter and the length of a name: most that are not wanted have another. */
static uint64_t mark(const char *name, size_t n)
{
    return (uint64_t)1 << (((size_t)*name + 5 * n) & 63);
}

/* Which of the names it is; count: none. */
static size_t name_at(const struct quick_view *names, size_t count, uint64_t marks,
                      const char *name, size_t n)
{
    size_t i = marks & mark(name, n) ? 0 : count;
    while (i < count && (names[i].n != n || memcmp(names[i].at, name, n)))
        i++;
    return i;
}

/* Walks through the line, and keeps its form. */
static void learn(struct quick_form *f, const char *bytes, size_t n,
                  const struct quick_view *names, size_t count, struct quick_view *found)
{
    struct quick q = {.p = bytes, .end = bytes + n};
    uint64_t marks = 0;
    for (size_t i = 0; i < count; i++)
        marks |= mark(names[i].at, names[i].n);
    f->n = 0;
    size_t members = 0;
    for (char sign = '{'; quick_next_is(&q, sign); sign = ',') {
        struct quick_place it = {.at = (size_t)(q.p - bytes)};
        if (!quick_next_is(&q, '"'))
            return;
        const char *name = q.p;
        skip_text(&q);
        size_t length = (size_t)(q.p - name) - 1;
        if (!quick_next_is(&q, ':'))
            return;
        it.name = name_at(names, count, marks, name, length);
        it.from = (size_t)(q.p - bytes);
        skip_value(&q);
        it.end = (size_t)(q.p - bytes);
        if (it.name < count)
            found[it.name] = (struct quick_view){bytes + it.from, it.end - it.from};
        if (members < QUICK_MEMBERS)
            f->v[members] = it;
        members++;
    }
    if (members > QUICK_MEMBERS)
        return;
    f->n = members;
    buf_clear(&f->line);
    buf_put(&f->line, bytes, n);
}

static uint64_t differ(const char *a, const char *b)
{
    uint64_t x, y;
    memcpy(&x, a, 8);
    memcpy(&y, b, 8);
    return x ^ y;
}

/* So many of n bytes are the same from the front on. */
static size_t common(const char *a, const char *b, size_t n)
{
    size_t i = 0;
    while (n - i >= 32 && !(differ(a + i, b + i) | differ(a + i + 8, b + i + 8) |
                            differ(a + i + 16, b + i + 16) | differ(a + i + 24, b + i + 24)))
        i += 32;
    for (uint64_t x; n - i >= 8; i += 8)
        if ((x = differ(a + i, b + i)))
            return i + (size_t)__builtin_ctzll(x) / 8;
    while (i < n && a[i] == b[i])
        i++;
    return i;
}

/* The same of a line that may have that form. Where bytes are the same up to and with the sign
 * behind a member, so is what a walk makes of them. 0: it has another form. */
static int recall(const struct quick_form *f, const char *bytes, size_t n, size_t count,
                  struct quick_view *found)
{
    size_t begin = f->n ? f->v[0].at : 0;
    struct quick q = {.p = bytes + begin, .end = bytes + n};
    if (!f->n || n < begin || memcmp(bytes, f->line.data, begin))
        return 0;
    for (size_t i = 0; i < f->n;) {
        size_t at = f->v[i].at, left = (size_t)(q.end - q.p), old = f->line.len - at;
        size_t same = at + common(q.p, f->line.data + at, left < old ? left : old);
        const char *p = q.p; /* is there what is `at` in the line before */
        for (; i < f->n && f->v[i].end < same; i++)
            if (f->v[i].name < count)
                found[f->v[i].name] = (struct quick_view){p + (f->v[i].from - at),
                                                          f->v[i].end - f->v[i].from};
        if (i == f->n)
            break;
        const struct quick_place *other = &f->v[i++];
        if (same < other->from)
            return 0;
        const char *from = q.p = p + (other->from - at);
        skip_value(&q);
        if (q.p == q.end || *q.p != f->line.data[other->end])
            return 0;
        if (other->name < count)
            found[other->name] = (struct quick_view){from, (size_t)(q.p - from)};
        q.p++;
    }
    return 1;
}

void quick_members(struct quick_form *form, const char *bytes, size_t n,
                   const struct quick_view *names, size_t count, struct quick_view *found)
{
    memset(found, 0, count * sizeof *found);
    if (recall(form, bytes, n, count, found))
        return;
    memset(found, 0, count * sizeof *found);
    learn(form, bytes, n, names, count, found);
}

void quick_form_free(struct quick_form *form)
{
    buf_free(&form->line);
    form->n = 0;
}

json_t *quick_whole(struct quick *q)
{
    quick_skip_space(q);
    json_t *v = q->p < q->end && *q->p == '{' ? quick_value(q) : NULL;
    quick_skip_space(q);
    buf_free(&q->text);
    return q->p == q->end ? v : give_up(v);
}

json_t *quick_object(const char *bytes, size_t n)
{
    struct quick q = {.p = bytes, .end = bytes + n, .begin = bytes};
    return quick_whole(&q);
}
