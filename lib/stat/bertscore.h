/* bertscore.h - how far two texts agree in meaning, from one vector a token.
 * Source: Zhang et al. 2020 (BERTScore, arXiv 1904.09675), section 3; bert_score 0.3.
 */
#ifndef STAT_BERTSCORE_H
#define STAT_BERTSCORE_H

#include <stddef.h>

struct bertscore { double precision, recall, f1; };

/* Makes every vector of x[n][d] 1 long; one of zeros stays. */
void bertscore_normalize(float *x, size_t n, size_t d);
/* Normalized vectors x[n][d] of a text and y[m][d] of what was wanted, the first and last of each
 * those of special tokens: these count as what others may match, and are not scored themselves.
 * precision: the mean over x of the largest x_i . y_j; recall: over y. All 0 when either text is
 * empty. work[m]. */
struct bertscore bertscore_of(const float *x, size_t n, const float *y, size_t m, size_t d,
                              double *work);

#endif
