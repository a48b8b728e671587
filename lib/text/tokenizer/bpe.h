/* bpe.h - the pieces of a tokenizer, and byte-pair merges of words into ids.
 *
 * Merging begins with the bytes of a word, or with its characters (SentencePiece). A character
 * without a piece becomes the pieces of its bytes, "<0x0A>", or the unknown piece. A byte without a
 * piece becomes the unknown piece. If there is no unknown piece, the character or byte is left out,
 * as in Hugging Face's tokenizers; the vocabulary of SmolLM2 lacks some bytes.
 *
 * Ids have 21 bits and ranks of merges 22 bits, so a merge rule (left id, right id, rank) is one
 * 64-bit number. The rank is the number of the merge: the lowest rank is merged first. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "lib/base/buf.h"
#include "lib/base/err.h"
#include "lib/text/ids.h"

enum {
    TOKEN_ID_LIMIT = 1 << 21,  /* ids are less than this */
    TOKEN_RANK_LIMIT = 1 << 22 /* the number of merges is less than this */
};

enum { PIECE_VOCAB = 1, PIECE_ADDED = 2, PIECE_SPECIAL = 4, PIECE_WHOLE = 8, PIECE_BYTE = 16 };
struct piece {
    uint32_t at, len; /* place in pieces.bytes, and length */
    uint8_t flags;    /* PIECE_*; 0: no piece has this id. WHOLE: the bytes of the piece encode to
                       * just this id. BYTE: the piece stands for one byte, which its text names */
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
    int32_t fallback[256];       /* by_character: the piece of each byte of a character without a
                                  * piece; -1: none */
    int32_t unknown;             /* the unknown piece; -1: none */
    int fuse;                    /* 1: unknown pieces side by side become one */
    uint32_t *first;             /* [256*256] ~rank of a pair of bytes; 0: no merge */
    uint64_t *pairs;             /* hash table: left << 43 | right << 22 | rank */
    size_t pairs_mask;
    int32_t *merged; /* [rank] id of the merged pair */
    size_t n_merges;
    struct bpe_slot { uint32_t tag; int32_t id; } *words; /* hash table: bytes of a piece -> id */
    size_t words_mask, longest; /* longest: bytes of the longest piece */
    struct bpe_sieve { uint64_t *bits; size_t mask; } may_be_word, may_be_pair; /* mask + 1 bits */
};
struct bpe_work { /* scratch for long words; all zero at first */
    int32_t *id, *next, *prev;
    uint64_t *heap;
    size_t cap;
};
/* Enters the pieces with PIECE_VOCAB and makes room for n_merges merges. Sets by_character to 0. */
void bpe_init(struct bpe *bpe, const struct pieces *pieces, size_t n_merges);
/* Adds a merge; its rank is the number of merges before. -1: the pair already has a merge. */
int bpe_add(struct bpe *bpe, int32_t left, int32_t right, int32_t merged);
/* Call it after the last merge. Fills `first`, and sets PIECE_WHOLE in piece[], which is the array
 * bpe->pieces->v. all 1: sets it for every piece (ignore_merges). */
void bpe_finish(struct bpe *bpe, struct piece *piece, int all);
void bpe_free(struct bpe *bpe);
int32_t bpe_find(const struct bpe *bpe, const char *text, size_t n); /* -1: no such piece */
/* Appends the ids of one word. -1: the word is too long. */
int bpe_word(const struct bpe *bpe, struct bpe_work *work, const char *text, size_t n,
             struct ids *out, struct err *e);
void bpe_work_free(struct bpe_work *work);
