/* cutter.h - finds added tokens ("<|endoftext|>") in a text. */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct added {
    char *text; /* owned */
    size_t len;
    int32_t id;
    int special, normalized, single_word, lstrip, rstrip;
};
struct cutter_node {
    int32_t child, sibling, token; /* -1: none */
    unsigned char byte;
};
struct cutter { /* a trie of byte strings */
    struct cutter_node *nodes;
    size_t n, cap;
    unsigned char starts[256]; /* bytes that some token begins with */
    const struct added *tokens; /* borrowed */
};
struct cut {
    size_t begin, end;
    int32_t id;
};
void cutter_add(struct cutter *cutter, const char *text, size_t n, int32_t token);
void cutter_free(struct cutter *cutter);
/* Where special tokens do not count: nowhere; everywhere; over bytes whose mark is 1. */
struct cutter_plain {
    int all;
    const char *marks; /* a byte for each of the text; NULL: none */
};
/* First match at or after `from`: leftmost, then longest. 0: none. */
int cutter_next(const struct cutter *cutter, const char *text, size_t n, size_t from,
                struct cutter_plain plain, struct cut *cut);
