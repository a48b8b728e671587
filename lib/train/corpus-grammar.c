/* corpus-grammar.c - expands a template recursively; see corpus.h.
 *
 * Text is copied, brackets choose an alternative, braces look up a slot. The article ("a" or "an")
 * is chosen last, when the letter after it is known. Draws depend only on the numbers of *r. */
#include "lib/train/corpus.h"

#include <assert.h>
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/mem.h"

struct expansion {
    struct rng *r;
    const struct corpus_slot *slots, *rules;
    struct buf *out;
};

static const char *find(const struct corpus_slot *s, const char *name, size_t n)
{
    for (; s && s->name; s++)
        if (strlen(s->name) == n && !strncmp(s->name, name, n)) return s->value;
    return NULL;
}

static const char *lookup(const struct expansion *w, const char *name, size_t n)
{
    const char *value = find(w->slots, name, n);
    return value ? value : find(w->rules, name, n);
}

static void walk_span(struct expansion *w, const char *p, const char *end);

/* {name} or {Name}, without the braces. */
static void walk_slot(struct expansion *w, const char *name, size_t n)
{
    char low[32];
    assert(n > 0 && n < sizeof low);
    memcpy(low, name, n);
    low[n] = '\0';
    low[0] = (char)tolower((unsigned char)low[0]);
    const char *value = lookup(w, low, n);
    assert(value);
    const size_t start = w->out->len;
    walk_span(w, value, value + strlen(value));
    if (isupper((unsigned char)name[0]) && w->out->len > start)
        w->out->data[start] = (char)toupper((unsigned char)w->out->data[start]);
}

/* The end of the bracket that opens before p; counts its alternatives. */
static const char *bracket_end(const char *p, int *count)
{
    int depth = 0;
    for (*count = 1;; p++) {
        assert(*p);
        if (*p == '[') depth++;
        if (*p == '|' && depth == 0) ++*count;
        if (*p == ']' && depth-- == 0) return p;
    }
}

/* Alternative k of the bracket from p to end. */
static void walk_choice(struct expansion *w, const char *p, const char *end, int k)
{
    int depth = 0;
    const char *start = p;
    for (; p <= end; p++) {
        if ((*p == '|' && depth == 0) || p == end) {
            if (k-- == 0) {
                walk_span(w, start, p);
                return;
            }
            start = p + 1;
        }
        depth += (*p == '[') - (*p == ']');
    }
}

static void walk_span(struct expansion *w, const char *p, const char *end)
{
    while (p < end) {
        if (*p == '[') {
            int count;
            const char *close = bracket_end(p + 1, &count);
            walk_choice(w, p + 1, close, (int)rng_below(w->r, (uint64_t)count));
            p = close + 1;
        } else if (*p == '{') {
            const char *close = strchr(p, '}');
            assert(close);
            walk_slot(w, p + 1, (size_t)(close - p - 1));
            p = close + 1;
        } else {
            buf_char(w->out, *p++);
        }
    }
}

/* Cleans the text from `start` on: a~ becomes an article, double spaces become one. */
static void settle(struct buf *b, size_t start)
{
    char *copy = mem_alloc(b->len - start + 1);
    memcpy(copy, b->data + start, b->len - start);
    const size_t n = b->len - start;
    b->len = start;
    for (size_t i = 0; i < n; i++) {
        if (copy[i] == '~') {
            buf_text(b, i + 1 < n && strchr("aeiou", copy[i + 1]) ? "n " : " ");
        } else if (copy[i] != ' ' || b->len == start || b->data[b->len - 1] != ' ') {
            buf_char(b, copy[i]);
        }
    }
    while (b->len > start && b->data[b->len - 1] == ' ') b->data[--b->len] = '\0';
    free(copy);
}

void corpus_expand(struct rng *r, const char *text, const struct corpus_slot *slots,
                   const struct corpus_slot *rules, struct buf *out)
{
    struct expansion w = {r, slots, rules, out};
    const size_t start = out->len;
    walk_span(&w, text, text + strlen(text));
    if (out->len > start) settle(out, start);
}

int corpus_is_heldout(const int *tuple, int n)
{
    uint64_t h = 1469598103934665603u;
    for (int i = 0; i < n; i++) {
        h = (h ^ (uint64_t)(tuple[i] + 1000)) * 1099511628211u;
        h ^= h >> 29;
    }
    return h % 10 == 0;
}

void corpus_key(const char *task, const int *tuple, int n, struct buf *key)
{
    buf_clear(key);
    buf_text(key, task);
    for (int i = 0; i < n; i++)
        buf_format(key, " %d", tuple[i]);
}

const char *corpus_pick(struct rng *r, const char *const *list, size_t n)
{
    return list[rng_below(r, n)];
}

int corpus_words(const char *text)
{
    int count = 0;
    for (const char *p = text; *p; p++) {
        const int c = (unsigned char)*p, before = p > text ? (unsigned char)p[-1] : ' ';
        count += isdigit(c) || (isalpha(c) && !isalpha(before)) ||
                 (ispunct(c) && !ispunct(before));
    }
    return count;
}

void corpus_record_free(struct corpus_record *out)
{
    buf_free(&out->text);
    buf_free(&out->reference);
    buf_free(&out->answer);
    buf_free(&out->key);
}
