/* tokenizer-parts.h - the rooms inside the tokenizer; only lib/text/tokenizer*.c, and chat.c for
 * its UTF-8, include it.
 *
 *     text -> cutter (added tokens) -> NFC -> split (words) -> bpe (ids)
 *
 * Ids fit in 21 bits and ranks of merges in 22, so that one merge rule is one 64-bit number.
 */
#ifndef TEXT_TOKENIZER_PARTS_H
#define TEXT_TOKENIZER_PARTS_H

#include <stddef.h>
#include <stdint.h>

#include "lib/base/buf.h"
#include "lib/base/err.h"
#include "lib/text/ids.h"

enum {
    TOKEN_ID_LIMIT = 1 << 21,   /* ids are below */
    TOKEN_RANK_LIMIT = 1 << 22, /* merges are fewer */
    SPLIT_MAX_STEPS = 8
};

/* ---- UTF-8, the byte alphabet, NFC (tokenizer-utf8.c) ---- */

/* Length 1..4 of the character at s (n >= 1 bytes left), or minus the length 1..3 of the longest
 * beginning of one that is broken off (Unicode's "maximal subpart"). */
int utf8_char(const char *s, size_t n);
/* Bytes of the longest valid beginning; n when all is well. */
size_t utf8_valid(const char *s, size_t n);
/* Code point at s and its length; s is valid. */
uint32_t utf8_read(const char *s, size_t *len);
void utf8_put(struct buf *b, uint32_t code);
/* Appends n bytes; what is not UTF-8 becomes one U+FFFD per maximal subpart. */
void utf8_put_lossy(struct buf *b, const char *s, size_t n);
/* Unicode White_Space, and what \w means: letters, marks, digits, connectors, joiners. */
int utf8_is_space(uint32_t code);
int utf8_is_word(uint32_t code);

/* GPT-2's byte alphabet: each byte is one printable character. */
uint32_t alphabet_code(unsigned byte);
int alphabet_byte(uint32_t code); /* -1: not in it */
/* Appends the bytes that a piece stands for. -1: a character is not in the alphabet. */
int alphabet_bytes(const char *piece, size_t n, struct buf *out);
void alphabet_piece(const char *bytes, size_t n, struct buf *out);

/* 0 when the text cannot change under NFC (no byte >= 0xCC). */
int nfc_may_change(const char *s, size_t n);
/* Appends NFC(s); linear for any input. */
void nfc_put(const char *s, size_t n, struct buf *out);

/* ---- pre-tokenizer (tokenizer-split.c) ---- */

struct split_step {
    void *code; /* pcre2_code; NULL: no pattern */
    int jit;
    int prefix_space; /* a piece that does not begin with a space gets one */
};
struct split {
    struct split_step steps[SPLIT_MAX_STEPS];
    size_t n;
};
typedef int split_word(void *ctx, const char *s, size_t n, struct err *e);
struct split_work {
    void *match, *limits; /* pcre2_match_data, pcre2_match_context */
    struct buf prefixed[SPLIT_MAX_STEPS];
    split_word *word;
    void *ctx;
};
/* The patterns of LLaDA and of GPT-2. */
extern const char split_llada[], split_gpt2[];

/* Adds a step. pattern may be NULL. -1: the pattern does not compile or means something else to
 * Hugging Face's engine; the message prints it. */
int split_add(struct split *p, const char *pattern, int prefix_space, const char *where,
              struct err *e);
void split_free(struct split *p);
void split_work_init(struct split_work *w, split_word *word, void *ctx);
void split_work_free(struct split_work *w);
/* Calls word() for each piece of s (valid UTF-8), left to right. -1: word() said so. */
int split_run(const struct split *p, struct split_work *w, const char *s, size_t n,
              struct err *e);

/* ---- added tokens (tokenizer-added.c) ---- */

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
void cutter_add(struct cutter *c, const char *text, size_t n, int32_t token);
void cutter_free(struct cutter *c);
/* First match at or after `from`: leftmost, then longest. plain: special tokens do not count.
 * 0: none. */
int cutter_next(const struct cutter *c, const char *s, size_t n, size_t from, int plain,
                struct cut *m);

/* ---- pieces and merges (tokenizer-bpe.c) ---- */

enum { PIECE_VOCAB = 1, PIECE_ADDED = 2, PIECE_SPECIAL = 4, PIECE_WHOLE = 8 };
struct piece {
    uint32_t at, len; /* inside pieces.bytes */
    uint8_t flags;    /* PIECE_*; 0: no such id. WHOLE: its bytes encode to just this id */
};
struct pieces {
    struct buf bytes;
    struct piece *v;
    size_t n; /* largest id + 1 */
};
struct bpe {
    const struct pieces *pieces; /* borrowed */
    int32_t byte_id[256];        /* -1: none */
    uint32_t *first;             /* [256*256] rank of a pair of bytes */
    uint64_t *pairs;             /* left << 43 | right << 22 | rank, open addressing */
    size_t pairs_mask;
    int32_t *merged; /* [rank] id of the pair */
    size_t n_merges;
    struct bpe_slot { uint32_t tag; int32_t id; } *words; /* bytes of a piece -> id */
    size_t words_mask, longest;
};
struct bpe_work { /* for long words; all zero at first */
    int32_t *id, *next, *prev;
    uint64_t *heap;
    size_t cap;
};
/* The pieces with PIECE_VOCAB, then room for n_merges rules. */
void bpe_init(struct bpe *b, const struct pieces *p, size_t n_merges);
/* Rules in order of rank. -1: the pair is there already. */
int bpe_add(struct bpe *b, int32_t left, int32_t right, int32_t merged);
/* After the last rule: fills `first` and marks PIECE_WHOLE in v (the same array as b->pieces->v);
 * `all`: every piece is whole (ignore_merges). */
void bpe_finish(struct bpe *b, struct piece *v, int all);
void bpe_free(struct bpe *b);
int32_t bpe_find(const struct bpe *b, const char *s, size_t n); /* -1: no such piece */
/* Appends the ids of one word. -1: a byte has no piece. */
int bpe_word(const struct bpe *b, struct bpe_work *w, const char *s, size_t n, struct ids *out,
             struct err *e);
void bpe_work_free(struct bpe_work *w);

/* ---- the whole (tokenizer.c) ---- */

struct tokenizer {
    struct pieces pieces;
    struct bpe bpe;
    struct split split;
    int nfc;
    struct added *added;
    size_t n_added;
    struct cutter raw, normal; /* tokens cut from the text before and after NFC */
    struct ids front, back;    /* what the post-processor puts around */
    char hash[65];
};
/* Fills raw and normal from the added tokens. */
void tokenizer_cutters(struct tokenizer *t);
/* Calls word() for each word between the added tokens: what tokenizer_encode would merge. */
int tokenizer_words(const struct tokenizer *t, const char *text, size_t n, split_word *word,
                    void *ctx, struct err *e);

#endif
