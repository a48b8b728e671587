/* bpe.h - the pieces of a tokenizer, and byte-pair merges of words into ids.
 *
 * Merging begins with the bytes of a word, or with its characters (SentencePiece). A character
 * without a piece becomes the pieces of its bytes, "<0x0A>", or the unknown piece; a byte without a
 * piece becomes the unknown piece. Where there is none, it is left out, as in tokenizers of Hugging
 * Face: the vocabulary of SmolLM2 lacks some bytes.
 *
 * Ids fit in 21 bits and ranks of merges in 22, so a merge rule is one 64-bit number. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "lib/base/buf.h"
#include "lib/base/err.h"
#include "lib/text/ids.h"

enum {
    TOKEN_ID_LIMIT = 1 << 21,  /* ids are below */
    TOKEN_RANK_LIMIT = 1 << 22 /* merges are fewer */
};

enum { PIECE_VOCAB = 1, PIECE_ADDED = 2, PIECE_SPECIAL = 4, PIECE_WHOLE = 8, PIECE_BYTE = 16 };
struct piece {
    uint32_t at, len; /* inside pieces.bytes */
    uint8_t flags;    /* PIECE_*; 0: no such id. WHOLE: its bytes encode to just this id. BYTE: it
                       * stands for one byte, which its text names */
};
struct pieces {
    struct buf bytes;
    struct piece *v;
    size_t n; /* largest id + 1 */
};
struct bpe {
    const struct pieces *pieces; /* borrowed */
    int32_t byte_id[256];        /* -1: none */
    int by_character;            /* 0: `fallback` is not used */
    int32_t fallback[256];       /* pieces of the bytes of characters without a piece; -1: none */
    int32_t unknown;             /* -1: such characters or bytes are dropped */
    int fuse;                    /* 1: unknown ones side by side are one */
    uint32_t *first;             /* [256*256] ~rank of a pair of bytes; 0: none */
    uint64_t *pairs;             /* left << 43 | right << 22 | rank, open addressing */
    size_t pairs_mask;
    int32_t *merged; /* [rank] id of the pair */
    size_t n_merges;
    struct bpe_slot { uint32_t tag; int32_t id; } *words; /* bytes of a piece -> id */
    size_t words_mask, longest;
    struct bpe_sieve { uint64_t *bits; size_t mask; } may_be_word, may_be_pair; /* mask + 1 bits */
};
struct bpe_work { /* for long words; all zero at first */
    int32_t *id, *next, *prev;
    uint64_t *heap;
    size_t cap;
};
/* The pieces with PIECE_VOCAB, then room for n_merges rules. Merges begin with bytes. */
void bpe_init(struct bpe *bpe, const struct pieces *pieces, size_t n_merges);
/* Adds a rule, in order of rank. -1: the pair has one already. */
int bpe_add(struct bpe *bpe, int32_t left, int32_t right, int32_t merged);
/* After the last rule: fills `first` and marks PIECE_WHOLE in piece (the same array as
 * bpe->pieces->v); `all`: every piece is whole (ignore_merges). */
void bpe_finish(struct bpe *bpe, struct piece *piece, int all);
void bpe_free(struct bpe *bpe);
int32_t bpe_find(const struct bpe *bpe, const char *text, size_t n); /* -1: no such piece */
/* Appends the ids of one word. -1: it is too long. */
int bpe_word(const struct bpe *bpe, struct bpe_work *work, const char *text, size_t n,
             struct ids *out, struct err *e);
void bpe_work_free(struct bpe_work *work);
