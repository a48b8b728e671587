/* cutter.c - finds added tokens; see cutter.h.
 *
 * The tokens are in a trie of bytes. At each place where a token can begin, the longest match is
 * taken. Rules of Hugging Face's AddedVocabulary: a token with single_word must have no word
 * character on either side; with lstrip or rstrip, a match includes the white space on the left or
 * right of the token. */
#include "lib/text/tokenizer/cutter.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/mem.h"
#include "lib/text/utf8.h"

static int32_t new_node(struct cutter *cutter, unsigned char byte)
{
    MEM_GROW(cutter->nodes, cutter->n, cutter->cap);
    cutter->nodes[cutter->n] = (struct cutter_node){-1, -1, -1, byte};
    return (int32_t)cutter->n++;
}

static int32_t child_of(const struct cutter *cutter, int32_t node, unsigned char byte)
{
    int32_t k = cutter->nodes[node].child;
    while (k >= 0 && cutter->nodes[k].byte != byte)
        k = cutter->nodes[k].sibling;
    return k;
}

void cutter_add(struct cutter *cutter, const char *text, size_t n, int32_t token)
{
    if (n == 0)
        return;
    int32_t node = cutter->n ? 0 : new_node(cutter, 0);
    cutter->starts[(unsigned char)text[0]] = 1;
    for (size_t i = 0; i < n; i++) {
        unsigned char byte = (unsigned char)text[i];
        int32_t k = child_of(cutter, node, byte);
        if (k < 0) {
            k = new_node(cutter, byte);
            cutter->nodes[k].sibling = cutter->nodes[node].child;
            cutter->nodes[node].child = k;
        }
        node = k;
    }
    cutter->nodes[node].token = token;
}

void cutter_free(struct cutter *cutter)
{
    free(cutter->nodes);
    *cutter = (struct cutter){0};
}

/* 1: the n bytes at text[at] are ordinary text, even if they are the text of a special token. */
static int is_plain(struct cutter_plain plain, size_t at, size_t n)
{
    return plain.all || (plain.marks && memchr(plain.marks + at, 1, n) != NULL);
}

/* The number of the longest token that begins at text[at]; *len = its length. -1: none. */
static int32_t longest(const struct cutter *cutter, const char *text, size_t at, size_t n,
                       struct cutter_plain plain, size_t *len)
{
    const char *bytes = text + at;
    int32_t best = -1, node = 0;
    for (size_t i = 0; i < n - at; i++) {
        node = child_of(cutter, node, (unsigned char)bytes[i]);
        if (node < 0)
            break;
        int32_t token = cutter->nodes[node].token;
        if (token >= 0 && !(cutter->tokens[token].special && is_plain(plain, at, i + 1))) {
            best = token;
            *len = i + 1;
        }
    }
    return best;
}

static int stands_alone(const char *text, size_t n, size_t begin, size_t end)
{
    size_t len;
    return (begin == 0 || !utf8_is_word(utf8_read(text + utf8_before(text, begin), &len))) &&
           (end == n || !utf8_is_word(utf8_read(text + end, &len)));
}

int cutter_next(const struct cutter *cutter, const char *text, size_t n, size_t from,
                struct cutter_plain plain, struct cut *cut)
{
    size_t len = 0;
    for (size_t i = from; cutter->n && i < n; i++) {
        if (!cutter->starts[(unsigned char)text[i]])
            continue;
        int32_t k = longest(cutter, text, i, n, plain, &len);
        if (k < 0)
            continue;
        const struct added *added = &cutter->tokens[k];
        if (added->single_word && !stands_alone(text, n, i, i + len)) {
            i += len - 1;
            continue;
        }
        *cut = (struct cut){i, i + len, added->id};
        while (added->lstrip && cut->begin > from &&
               utf8_is_space(utf8_read(text + utf8_before(text, cut->begin), &len)))
            cut->begin = utf8_before(text, cut->begin);
        while (added->rstrip && cut->end < n && utf8_is_space(utf8_read(text + cut->end, &len)))
            cut->end += len;
        return 1;
    }
    return 0;
}
