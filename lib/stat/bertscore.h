/* bertscore.h - BERTScore: similarity of two texts in meaning, from one vector for each token.
 * Source: Zhang et al. 2020 (BERTScore, arXiv 1904.09675), section 3; bert_score 0.3. */
#pragma once

#include <stddef.h>

struct bertscore { double precision, recall, f1; };

/* Divides every row of x[n][d] by its Euclidean length; a row of zeros stays. */
void bertscore_normalize(float *x, size_t n, size_t d);
/* x[n][width]: normalized vectors of a text; y[n_y][width]: normalized vectors of its reference.
 * The first and last row of each are special tokens: other tokens may match these rows, but the
 * means leave them out.
 *   precision = mean over x_i of max_j x_i . y_j      recall = mean over y_j of max_i x_i . y_j
 *   f1 = 2 precision recall / (precision + recall)
 * All three are 0 if a text has no other tokens. work[n_y]. */
struct bertscore bertscore_of(const float *x, size_t n, const float *y, size_t n_y, size_t width,
                              double *work);
