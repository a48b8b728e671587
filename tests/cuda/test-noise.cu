/* test-noise.cu - tests the bounds of the noise at both ends, around the seam of its two formulas
 * and at random points, and the order that uses them, with the logarithms of the device. */
#include <vector>

#include "kernels/cuda/device/runtime.h"
#include "kernels/cuda/head/noise.cuh"
#include "lib/base/rng.h"
#include "tests/tap.h"

enum { THREADS = 64, IDS = 20000 };

static std::vector<uint64_t> all_bits(void)
{
    std::vector<uint64_t> bits = {0, ~(uint64_t)0};
    const uint64_t seam = (uint64_t)1 << 63;
    for (uint64_t i = 0; i < 64; i++) {
        const uint64_t low = i << 11, one = (uint64_t)1 << i;
        const uint64_t more[] = {low, ~low, seam + low, seam - low, one, ~one};
        bits.insert(bits.end(), more, more + 6);
    }
    struct rng rng = {51, 0, 0};
    for (int i = 0; i < 300000; i++) /* some of them near 0 or 1 */
        bits.push_back(rng_next(&rng) >> (i % 7 ? 0 : i % 50) ^ (i % 2 ? 0 : ~(uint64_t)0));
    return bits;
}

/* Returns a copy of the array on the device. */
template <class E> static E *sent(const std::vector<E> &from)
{
    E *to;
    CHECK(cudaMalloc(&to, from.size() * sizeof(E)));
    CHECK(cudaMemcpy(to, from.data(), from.size() * sizeof(E), cudaMemcpyHostToDevice));
    CHECK(cudaDeviceSynchronize()); /* now every stream sees it */
    return to;
}

template <class E> static void fetch(std::vector<E> *to, E *from)
{
    CHECK(cudaMemcpy(to->data(), from, to->size() * sizeof(E), cudaMemcpyDeviceToHost));
    CHECK(cudaFree(from));
}

/* Thread i computes for bits i, i + THREADS, ...: the noise, the noise in fp32, and its bound. */
static __global__ void measure(const uint64_t *bits, int n, double *g, float *near, float *top)
{
    wait_for_inputs();
    for (int i = (int)threadIdx.x; i < n; i += THREADS) {
        g[i] = gumbel(bits[i]);
        near[i] = gumbel_near(bits[i]);
        top[i] = gumbel_top(bits[i]);
    }
}

static void bounds(void)
{
    std::vector<uint64_t> bits = all_bits();
    size_t n = bits.size();
    std::vector<double> all(n);
    std::vector<float> nears(n), tops(n);
    uint64_t *in = sent(bits);
    double *g_out = sent(all);
    float *near_out = sent(nears), *top_out = sent(tops);
    CHECK(start_kernel(measure, dim3(1), dim3(THREADS), 0, (cudaStream_t)0, false, SHARED_PART, 1u,
                       in, (int)n, g_out, near_out, top_out));
    CHECK(cudaDeviceSynchronize());
    fetch(&bits, in);
    fetch(&all, g_out);
    fetch(&nears, near_out);
    fetch(&tops, top_out);
    double off = 0, least = INFINITY, most = -INFINITY;
    int unequal = 0;
    for (size_t i = 0; i < n; i++) {
        double g = all[i], near = nears[i], top = tops[i];
        unequal += isinf(g) ? near != g || top != g : !isfinite(near);
        if (isinf(g))
            continue;
        off = fmax(off, fabs(g - near));
        least = fmin(least, top - g);
        most = fmax(most, g);
    }
    ok(unequal == 0 && most < 36.1, "noise is finite in fp32 where it is, at most %.3f", most);
    ok(off < 2e-5, "noise in fp32 is off by %.1e", off);
    ok(least > -2e-5, "the bound is never below it by more than %.1e", fmax(0, -least));
}

DEVICE struct racer racer(const struct noise *n, float logit, int32_t id, int *outside)
{
    struct racer a = noise_racer(n, logit, id);
    double score = noise_score(n, &a), slack = noise_slack(n, logit);
    *outside += !(fabs(a.near - score) <= slack) || !(noise_low(n, &a) <= score);
    *outside += !noise_may_reach(n, logit, noise_bits(n, id), (float)(score - fabs(score) * 1e-6));
    return a;
}

/* Thread i compares racers i, i + THREADS, ... with the next racer: the order must be that of
 * doubles. found[0]: pairs with another order; found[1]: scores beyond their bounds. */
static __global__ void race(double temperature, float spread, int *found)
{
    wait_for_inputs();
    struct noise n = {temperature, (float)temperature, 9, 4, GUMBEL_F64, NULL};
    int wrong = 0, outside = 0;
    for (int32_t id = (int32_t)threadIdx.x; id < IDS; id += THREADS) {
        float logit = spread * (float)(id % 5 - 2), other = spread * (float)(id % 3 - 1);
        struct racer a = racer(&n, logit, id, &outside), b = racer(&n, other, id + 1, &outside);
        double x = noise_score(&n, &a), y = noise_score(&n, &b);
        wrong += noise_ahead(&n, &a, &b) != (x >= y) || noise_ahead(&n, &b, &a) != (x < y);
    }
    atomicAdd(&found[0], wrong);
    atomicAdd(&found[1], outside);
}

static void order(double temperature, float spread)
{
    std::vector<int> found(2);
    int *out = sent(found);
    CHECK(start_kernel(race, dim3(1), dim3(THREADS), 0, (cudaStream_t)0, false, SHARED_PART, 1u,
                       temperature, spread, out));
    CHECK(cudaDeviceSynchronize());
    fetch(&found, out);
    ok(found[0] == 0 && found[1] == 0, "temperature %g, spread %g: %d wrong, %d outside",
       temperature, (double)spread, found[0], found[1]);
}

/* One thread sets *good = 1 if every racer wins against NOBODY, and NOBODY does not win against
 * itself. */
static __global__ void against_nobody(int *good)
{
    wait_for_inputs();
    struct noise n = {1, 1, 2, 3, GUMBEL_F64, NULL};
    struct racer nobody = noise_nobody(), low = noise_racer(&n, -1e30f, 5);
    *good = noise_ahead(&n, &low, &nobody) && !noise_ahead(&n, &nobody, &low) &&
            !noise_ahead(&n, &nobody, &nobody) && !noise_ahead(&n, &low, &low);
}

int main(void)
{
    bounds();
    for (double temperature : {1e-40, 1e-9, 1e-3, 0.7, 8.0, 1e20})
        for (float spread : {0.0f, 1e-30f, 1e-4f, 1.0f, 1e10f})
            order(temperature, spread);
    std::vector<int> good(1);
    int *out = sent(good);
    CHECK(start_kernel(against_nobody, dim3(1), dim3(1), 0, (cudaStream_t)0, false, SHARED_PART, 1u,
                       out));
    CHECK(cudaDeviceSynchronize());
    fetch(&good, out);
    ok(good[0], "every id wins against NOBODY, NOBODY not against itself");
    return tap_done();
}
