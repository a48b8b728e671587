/* pace.c - see pace.h. A schedule is a table of budgets, made once per batch and read on
 * host and device. The budgets sum to the block, so no step and no slot is left over. The rest of
 * equal shares goes to the earliest steps, as in LLaDA's get_num_transfer_tokens, although early
 * steps see the fewest tokens. */
#include "lib/decode/pace.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

#include "lib/base/mem.h"

void pace_uniform(size_t m, size_t steps, size_t *budget)
{
    for (size_t i = 0; i < steps; i++)
        budget[i] = m / steps + (i < m % steps);
}

/* ---- largest remainders ---- */

/* Looks at the entries that have not reached `bound`. Returns the entry whose quota is most above
 * its share, or with sign -1 most below it; ties go to the first. */
static size_t find_neediest(const double *quota, const size_t *share, size_t n, int sign,
                            size_t bound)
{
    size_t best = n;
    double most = -INFINITY;
    for (size_t i = 0; i < n; i++) {
        double misses = sign * (quota[i] - (double)share[i]);
        if (share[i] != bound && misses > most) {
            most = misses;
            best = i;
        }
    }
    assert(best < n);
    return best;
}

/* Fills share[0..n-1] in proportion to the weights, which it turns into quotas. The shares sum to
 * total, which must be between n * least and n * most. */
static void apportion(size_t total, double *weight, size_t n, size_t least, size_t most,
                      size_t *share)
{
    double sum = 0;
    size_t given = 0;
    for (size_t i = 0; i < n; i++)
        sum += weight[i];
    for (size_t i = 0; i < n; i++) {
        weight[i] *= (double)total / sum;
        double whole = fmin(fmax(floor(weight[i]), (double)least), (double)most);
        share[i] = (size_t)whole;
        given += share[i];
    }
    for (; given < total; given++)
        share[find_neediest(weight, share, n, 1, most)]++;
    for (; given > total; given--)
        share[find_neediest(weight, share, n, -1, least)]--;
}

static double weight_of(enum pace pace, size_t i, size_t steps)
{
    const double right_angle = 1.5707963267948966;
    double at = (double)i / (double)steps, next = (double)(i + 1) / (double)steps;
    switch (pace) {
    case PACE_COSINE: return cos(right_angle * at) - cos(right_angle * next);
    case PACE_FRONT: return steps > 1 ? 1.5 - (double)i / (double)(steps - 1) : 1;
    case PACE_UNIFORM:
    case PACE_ROUNDED:
    case PACE_TIMESTEPS:
    case PACE_COUNT: break;
    }
    return 1;
}

/* Returns time i of the steps + 1 times from 1 to eps, as torch.linspace computes them in float. */
static float time_at(size_t i, size_t steps)
{
    const float eps = 1e-3f, step = (eps - 1) / (float)steps;
    return i < (steps + 1) / 2 ? 1 + step * (float)i : eps - step * (float)(steps - i);
}

/* Returns how many of the `left` masks step i commits, by the noise schedule alpha(t) = 1 - t. */
static size_t share_of_step(enum pace pace, size_t i, size_t steps, size_t left)
{
    if (i + 1 == steps)
        return left;
    if (pace == PACE_TIMESTEPS)
        return (size_t)((float)left * (1 - time_at(i + 1, steps) / time_at(i, steps)));
    float t = (float)((double)(steps - i) / (double)steps);
    float s = (float)((double)(steps - i - 1) / (double)steps);
    double stays = (double)((1 - (1 - s)) / (1 - (1 - t)));
    return (size_t)rint((double)left * (1 - stays));
}

/* Steps that commit nothing are left out, unless they keep their places. */
static void pace_by_time(enum pace pace, size_t m, size_t steps, int idles, size_t *budget)
{
    size_t n = 0;
    for (size_t i = 0, left = m; i < steps; i++) {
        size_t now = share_of_step(pace, i, steps, left);
        now = now < left ? now : left;
        budget[n] = now;
        n += now > 0 || idles;
        left -= now;
    }
    for (; n < steps; n++)
        budget[n] = 0;
}

void pace_budget(enum pace pace, size_t masked, size_t steps, int idles, size_t *budget)
{
    size_t n = steps < masked ? steps : masked; /* steps that commit a token */
    if (pace == PACE_UNIFORM || n == 0) {
        pace_uniform(masked, steps, budget);
        return;
    }
    if (pace == PACE_ROUNDED || pace == PACE_TIMESTEPS) {
        pace_by_time(pace, masked, steps, idles, budget);
        return;
    }
    double *weight = mem_alloc(n * sizeof *weight);
    for (size_t i = 0; i < n; i++)
        weight[i] = weight_of(pace, i, n);
    apportion(masked, weight, n, 1, masked, budget);
    for (size_t i = n; i < steps; i++)
        budget[i] = 0;
    free(weight);
}

void pace_blocks(size_t steps, size_t blocks, size_t most, double decay, size_t *share)
{
    size_t alike = (steps + blocks - 1) / blocks;
    double *weight = mem_alloc(blocks * sizeof *weight);
    for (size_t i = 0; i < blocks; i++) /* the largest weight is 1, so none overflows */
        weight[i] = pow(decay, decay > 1 ? (double)i - (double)(blocks - 1) : (double)i);
    apportion(steps, weight, blocks, 1, alike > most ? alike : most, share);
    free(weight);
}
