/* overlap.h - scores a text against a reference text (`wanted`): by character n-grams (chrF), by
 * words in order (ROUGE-L), by words in any order (token F1). Each score is from 0 (nothing in
 * common) to 1 (equal). */
#pragma once

#include "lib/base/err.h"

/* Counts character n-grams, n = 1..6, without white space. For each n grams[] has three numbers:
 * n-grams of the text (0 if the reference is shorter than n), of the reference, and of both. For
 * the score of a set of texts, add the counts of its texts before overlap_chrf. */
enum { OVERLAP_ORDERS = 6, OVERLAP_GRAMS = 3 * OVERLAP_ORDERS };
void overlap_grams(const char *text, const char *wanted, double grams[OVERLAP_GRAMS]);
/* chrF: F2 of the mean precision and the mean recall over the orders that both texts have.
 * Source: Popovic 2015 (WMT, W15-3049); constants and counting as in sacrebleu 2 by default. */
double overlap_chrf(const double grams[OVERLAP_GRAMS]);

/* ROUGE-L: F1 of the longest common subsequence of words. A word is a run of the letters a-z,
 * lower-cased, and digits; any other character separates words; no stemming.
 * Source: Lin 2004 (W04-1013), sentence level; words as in Google's rouge_score. */
int overlap_rouge_l(const char *text, const char *wanted, double *f1, struct err *e);

/* Token F1: F1 of the common words, counted with repeats. Words are lower-cased; ASCII punctuation
 * and the articles a, an, the are removed. Source: Rajpurkar et al. 2016 (arXiv 1606.05250). */
int overlap_token_f1(const char *text, const char *wanted, double *f1, struct err *e);
/* overlap_rouge_l and overlap_token_f1 return -1 (EXIT_BAD_DATA) if a text has more words. */
enum { OVERLAP_WORDS = 32768 };
