/* overlap.h - how far a text agrees with the one that was wanted: by runs of characters, by words
 * in their order, by words in any order. All are 0 (nothing in common) to 1 (the same).
 */
#ifndef TEXT_OVERLAP_H
#define TEXT_OVERLAP_H

#include "lib/base/err.h"

/* Character n-grams, n = 1..6, white space left out: how many the text has (counted where the
 * wanted text has any of that n), the wanted text has, and both have. Add them over texts before
 * overlap_chrf for the value of a whole set. */
enum { OVERLAP_ORDERS = 6, OVERLAP_GRAMS = 3 * OVERLAP_ORDERS };
void overlap_grams(const char *text, const char *wanted, double grams[OVERLAP_GRAMS]);
/* chrF: F2 of the mean precision and the mean recall over the orders that both texts have.
 * Source: Popovic 2015 (WMT, W15-3049); constants and counting as in sacrebleu 2 by default. */
double overlap_chrf(const double grams[OVERLAP_GRAMS]);

/* ROUGE-L: F1 of the longest common subsequence of words. A word is a run of the letters a-z,
 * lower-cased, and digits; any other character parts words; no stemming.
 * Source: Lin 2004 (W04-1013), sentence level; words as in Google's rouge_score. */
int overlap_rouge_l(const char *text, const char *wanted, double *f1, struct err *e);

/* F1 of the words that both have, as often as both have them: lower-cased, without ASCII
 * punctuation and the articles a, an, the. Source: Rajpurkar et al. 2016 (arXiv 1606.05250). */
int overlap_token_f1(const char *text, const char *wanted, double *f1, struct err *e);
/* Both: -1 (EXIT_BAD_DATA): a text has more words than this. */
enum { OVERLAP_WORDS = 32768 };

#endif
