/* bertscore.c - see bertscore.h. There are no idf weights and no rescaling: this is the default of
 * the reference implementation. Each dot product of two token vectors is computed once and used for
 * both precision and recall. */
#include "lib/stat/bertscore.h"

#include <math.h>

void bertscore_normalize(float *x, size_t n, size_t d)
{
    for (size_t i = 0; i < n; i++, x += d) {
        double square = 0;
        for (size_t k = 0; k < d; k++)
            square += (double)x[k] * (double)x[k];
        for (size_t k = 0; k < d && square > 0; k++)
            x[k] = (float)((double)x[k] / sqrt(square));
    }
}

static double dot(const float *x, const float *y, size_t d)
{
    double sum = 0;
    for (size_t k = 0; k < d; k++)
        sum += (double)x[k] * (double)y[k];
    return sum;
}

struct bertscore bertscore_of(const float *x, size_t n, const float *y, size_t n_y, size_t width,
                              double *work)
{
    struct bertscore bertscore = {0, 0, 0};
    if (n < 3 || n_y < 3)
        return bertscore;
    for (size_t j = 0; j < n_y; j++)
        work[j] = -INFINITY;
    for (size_t i = 0; i < n; i++) {
        double best = -INFINITY;
        for (size_t j = 0; j < n_y; j++) {
            double likeness = dot(x + i * width, y + j * width, width);
            best = likeness > best ? likeness : best;
            work[j] = likeness > work[j] ? likeness : work[j];
        }
        bertscore.precision += i && i + 1 < n ? best : 0;
    }
    for (size_t j = 1; j + 1 < n_y; j++)
        bertscore.recall += work[j];
    bertscore.precision /= (double)(n - 2);
    bertscore.recall /= (double)(n_y - 2);
    double sum = bertscore.precision + bertscore.recall;
    bertscore.f1 = sum > 0 || sum < 0 ? 2 * bertscore.precision * bertscore.recall / sum : 0;
    return bertscore;
}
