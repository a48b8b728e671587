/* corpus.h - the text that the embedded models learn: made by a small grammar, never collected.
 *
 * A story has a prompt that names a person, an object and a place, and a continuation that must
 * stay true to them. A sum is worded, and its reference works it out. A list of words is to be said
 * again, backwards, in any order, or with one word put for another.
 * All words were written for this project.
 *
 * The held-out parts share no (name, object, place) of a story, no operands of a sum and no list
 * with the training part: a tenth of them, chosen by a hash, is kept for it. Whoever wants several
 * held-out parts compares the keys of their records.
 */
#ifndef TRAIN_CORPUS_H
#define TRAIN_CORPUS_H

#include "lib/base/buf.h"
#include "lib/base/rng.h"

/* ---- corpus-grammar.c: templates ---- */

/* A named value; it is a template again. The last of an array has name NULL. */
struct corpus_slot {
    const char *name, *value;
};

/* Appends `text` to *out, with
 *   [x|y|z]  one of the alternatives, each equally likely, nested at will
 *   {name}   the value of the slot; {Name}: its first letter made a capital
 *   a~       "a " or "an ", by the letter that follows in the result
 * Slots are looked up in `slots`, then in `rules` (may be NULL). An unknown name is a broken
 * contract (assert). */
void corpus_expand(struct rng *r, const char *text, const struct corpus_slot *slots,
                   const struct corpus_slot *rules, struct buf *out);

/* ---- records ---- */

struct corpus_record {
    const char *task;                    /* "story", "sum", "copy", ...; static */
    struct buf text, reference, answer;  /* answer is empty for stories, {in braces} where its
                                            words may come in any order; owned by the record */
    struct buf key;                      /* what decides the part: operands, (name, object, place)
                                            or list; equal keys, equal operands, and so on */
};

/* Fill *out anew from the numbers of *r. heldout: 0 training part, 1 held out. */
void corpus_story(struct rng *r, int heldout, struct corpus_record *out);
void corpus_sum(struct rng *r, int heldout, struct corpus_record *out);
void corpus_list(struct rng *r, int heldout, struct corpus_record *out);
void corpus_record_free(struct corpus_record *out);

/* 1 when the n numbers are held out (about one tuple in ten), else 0. */
int corpus_is_heldout(const int *tuple, int n);
/* Writes the n numbers of `task` to *key. */
void corpus_key(const char *task, const int *tuple, int n, struct buf *key);

/* One of n strings. */
const char *corpus_pick(struct rng *r, const char *const *list, size_t n);

/* Words and marks of a text: a little under the count of BPE tokens. */
int corpus_words(const char *text);

#endif
