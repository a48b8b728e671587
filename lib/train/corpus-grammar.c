/* corpus-grammar.c - expands a template recursively; see corpus.h.
 *
 * Text is copied, brackets choose an alternative, braces look up a slot. The article ("a" or "an")
 * is chosen last, when the letter after it is known. Only *rng decides the draws, so a seed gives
 * the same corpus on every machine. */
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

static const char *find(const struct corpus_slot *slot, const char *name, size_t n)
{
    for (; slot && slot->name; slot++)
        if (strlen(slot->name) == n && !strncmp(slot->name, name, n)) return slot->value;
    return NULL;
}

static const char *lookup(const struct expansion *expansion, const char *name, size_t n)
{
    const char *value = find(expansion->slots, name, n);
    return value ? value : find(expansion->rules, name, n);
}

static void walk_span(struct expansion *expansion, const char *at, const char *end);

/* Expands {name} or {Name}; name[0..n) is the text between the braces. */
static void walk_slot(struct expansion *expansion, const char *name, size_t n)
{
    char low[32];
    assert(n > 0 && n < sizeof low);
    memcpy(low, name, n);
    low[n] = '\0';
    low[0] = (char)tolower((unsigned char)low[0]);
    const char *value = lookup(expansion, low, n);
    assert(value);
    const size_t start = expansion->out->len;
    walk_span(expansion, value, value + strlen(value));
    if (isupper((unsigned char)name[0]) && expansion->out->len > start)
        expansion->out->data[start] = (char)toupper((unsigned char)expansion->out->data[start]);
}

/* The closing bracket of the bracket that opens before `at`. *count = its alternatives. */
static const char *bracket_end(const char *at, int *count)
{
    int depth = 0;
    for (*count = 1;; at++) {
        assert(*at);
        if (*at == '[') depth++;
        if (*at == '|' && depth == 0) ++*count;
        if (*at == ']' && depth-- == 0) return at;
    }
}

/* Expands alternative k of a bracket; its text is at .. end. */
static void walk_choice(struct expansion *expansion, const char *at, const char *end, int k)
{
    int depth = 0;
    const char *start = at;
    for (; at <= end; at++) {
        if ((*at == '|' && depth == 0) || at == end) {
            if (k-- == 0) {
                walk_span(expansion, start, at);
                return;
            }
            start = at + 1;
        }
        depth += (*at == '[') - (*at == ']');
    }
}

static void walk_span(struct expansion *expansion, const char *at, const char *end)
{
    while (at < end) {
        if (*at == '[') {
            int count;
            const char *close = bracket_end(at + 1, &count);
            walk_choice(expansion, at + 1, close, (int)rng_below(expansion->r, (uint64_t)count));
            at = close + 1;
        } else if (*at == '{') {
            const char *close = strchr(at, '}');
            assert(close);
            walk_slot(expansion, at + 1, (size_t)(close - at - 1));
            at = close + 1;
        } else {
            buf_char(expansion->out, *at++);
        }
    }
}

/* Cleans the text from `start` on: a~ becomes an article, double spaces become one. */
static void settle(struct buf *text, size_t start)
{
    char *copy = mem_alloc(text->len - start + 1);
    memcpy(copy, text->data + start, text->len - start);
    const size_t n = text->len - start;
    text->len = start;
    for (size_t i = 0; i < n; i++) {
        if (copy[i] == '~') {
            buf_text(text, i + 1 < n && strchr("aeiou", copy[i + 1]) ? "n " : " ");
        } else if (copy[i] != ' ' || text->len == start || text->data[text->len - 1] != ' ') {
            buf_char(text, copy[i]);
        }
    }
    while (text->len > start && text->data[text->len - 1] == ' ') text->data[--text->len] = '\0';
    free(copy);
}

void corpus_expand(struct rng *rng, const char *text, const struct corpus_slot *slots,
                   const struct corpus_slot *rules, struct buf *out)
{
    struct expansion expansion = {rng, slots, rules, out};
    const size_t start = out->len;
    walk_span(&expansion, text, text + strlen(text));
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

const char *corpus_pick(struct rng *rng, const char *const *list, size_t n)
{
    return list[rng_below(rng, n)];
}

int corpus_words(const char *text)
{
    int count = 0;
    for (const char *at = text; *at; at++) {
        const int c = (unsigned char)*at, before = at > text ? (unsigned char)at[-1] : ' ';
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
