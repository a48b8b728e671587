/* cutter.h - finds added tokens ("<|endoftext|>") in a text. */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct added {
    char *text; /* owned */
    size_t len;
    int32_t id;
    int special, normalized, single_word, lstrip, rstrip; /* flags of tokenizer.json (cutter.c) */
};
struct cutter_node {
    int32_t child, sibling, token; /* numbers of nodes and of a token; -1: none */
    unsigned char byte;
};
struct cutter { /* a trie of byte strings */
    struct cutter_node *nodes;
    size_t n, cap;
    unsigned char starts[256]; /* 1: a token begins with this byte */
    const struct added *tokens; /* borrowed */
};
struct cut {
    size_t begin, end;
    int32_t id;
};
void cutter_add(struct cutter *cutter, const char *text, size_t n, int32_t token);
void cutter_free(struct cutter *cutter);
/* Where texts of special tokens are ordinary text. */
struct cutter_plain {
    int all;           /* 1: everywhere */
    const char *marks; /* a byte for each byte of the text: where a mark is 1; NULL: all are 0 */
};
/* *cut = the first match at or after `from`: the leftmost, and of these the longest. Returns 0 if
 * there is none. */
int cutter_next(const struct cutter *cutter, const char *text, size_t n, size_t from,
                struct cutter_plain plain, struct cut *cut);
