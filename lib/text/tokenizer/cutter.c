/* cutter.c - finds added tokens; see cutter.h.
 *
 * A trie of bytes: at each place where a token can begin, the longest match is taken. Rules of
 * Hugging Face's AddedVocabulary: single_word requires no word character on either side; lstrip and
 * rstrip include the white space next to the token. */
#include "lib/text/tokenizer/cutter.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/mem.h"
#include "lib/text/utf8.h"

static int32_t new_node(struct cutter *c, unsigned char byte)
{
    MEM_GROW(c->nodes, c->n, c->cap);
    c->nodes[c->n] = (struct cutter_node){-1, -1, -1, byte};
    return (int32_t)c->n++;
}

static int32_t child_of(const struct cutter *c, int32_t node, unsigned char byte)
{
    int32_t k = c->nodes[node].child;
    while (k >= 0 && c->nodes[k].byte != byte)
        k = c->nodes[k].sibling;
    return k;
}

void cutter_add(struct cutter *c, const char *text, size_t n, int32_t token)
{
    if (n == 0)
        return;
    int32_t node = c->n ? 0 : new_node(c, 0);
    c->starts[(unsigned char)text[0]] = 1;
    for (size_t i = 0; i < n; i++) {
        unsigned char byte = (unsigned char)text[i];
        int32_t k = child_of(c, node, byte);
        if (k < 0) {
            k = new_node(c, byte);
            c->nodes[k].sibling = c->nodes[node].child;
            c->nodes[node].child = k;
        }
        node = k;
    }
    c->nodes[node].token = token;
}

void cutter_free(struct cutter *c)
{
    free(c->nodes);
    *c = (struct cutter){0};
}

/* 1: the n bytes at text[at] are not a special token. */
static int is_plain(struct cutter_plain plain, size_t at, size_t n)
{
    return plain.all || (plain.marks && memchr(plain.marks + at, 1, n) != NULL);
}

/* Longest token that begins at text[at]; its length in *len. -1: none. */
static int32_t longest(const struct cutter *c, const char *text, size_t at, size_t n,
                       struct cutter_plain plain, size_t *len)
{
    const char *s = text + at;
    int32_t best = -1, node = 0;
    for (size_t i = 0; i < n - at; i++) {
        node = child_of(c, node, (unsigned char)s[i]);
        if (node < 0)
            break;
        int32_t token = c->nodes[node].token;
        if (token >= 0 && !(c->tokens[token].special && is_plain(plain, at, i + 1))) {
            best = token;
            *len = i + 1;
        }
    }
    return best;
}

static int stands_alone(const char *s, size_t n, size_t begin, size_t end)
{
    size_t len;
    return (begin == 0 || !utf8_is_word(utf8_read(s + utf8_before(s, begin), &len))) &&
           (end == n || !utf8_is_word(utf8_read(s + end, &len)));
}

int cutter_next(const struct cutter *c, const char *s, size_t n, size_t from,
                struct cutter_plain plain, struct cut *m)
{
    size_t len = 0;
    for (size_t i = from; c->n && i < n; i++) {
        if (!c->starts[(unsigned char)s[i]])
            continue;
        int32_t k = longest(c, s, i, n, plain, &len);
        if (k < 0)
            continue;
        const struct added *a = &c->tokens[k];
        if (a->single_word && !stands_alone(s, n, i, i + len)) {
            i += len - 1;
            continue;
        }
        *m = (struct cut){i, i + len, a->id};
        while (a->lstrip && m->begin > from &&
               utf8_is_space(utf8_read(s + utf8_before(s, m->begin), &len)))
            m->begin = utf8_before(s, m->begin);
        while (a->rstrip && m->end < n && utf8_is_space(utf8_read(s + m->end, &len)))
            m->end += len;
        return 1;
    }
    return 0;
}
