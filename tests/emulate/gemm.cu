/* gemm.cu - kernels/cuda/gemm.h by plain loops, in the order of the stream as the library's are. */
#include "kernels/cuda/gemm.h"

#include "kernels/cuda/device.cuh"

static float value(float x) { return x; }
static float value(uint16_t x) { return bf16_float(x); }
static int32_t value(int8_t x) { return x; }
static void put(float *y, float x) { *y = x; }
static void put(uint16_t *y, float x) { *y = bf16_of(x); }
static void put(int32_t *y, int32_t x) { *y = x; }
static int32_t value(int32_t x) { return x; }

template <class Y, class X, class Sum> static void multiply(const struct gemm_job &j)
{
    for (size_t t = 0; t < j.T; t++)
        for (size_t n = 0; n < j.N; n++) {
            const X *x = static_cast<const X *>(j.x) + t * j.ldx;
            const X *w = static_cast<const X *>(j.w) + n * j.ldw;
            Y *y = static_cast<Y *>(j.y) + t * j.ldy + n;
            Sum sum = 0;
            for (size_t k = 0; k < j.K; k++)
                sum += value(x[k]) * value(w[k]);
            put(y, j.add ? value(*y) + sum : sum);
        }
}

void gemm(struct backend *b, const struct gemm_job *given)
{
    struct gemm_job j = *given;
    emulate::check_reach(j.y);
    emulate::check_reach(j.x);
    emulate::check_reach(j.w);
    CHECK(emulate::call([&] {
        return emulate::enqueue(device_of(b)->stream, [j] {
            switch (j.type) {
            case gemm_job::GEMM_F32: multiply<float, float, float>(j); break;
            case gemm_job::GEMM_BF16: multiply<uint16_t, uint16_t, float>(j); break;
            case gemm_job::GEMM_BF16_F32: multiply<float, uint16_t, float>(j); break;
            case gemm_job::GEMM_S8: multiply<int32_t, int8_t, int32_t>(j); break;
            }
        });
    }));
}

/* As picky as the library, so that the other kernels get their share of the tests. */
int gemm_takes(const struct backend *b, const struct gemm_job *j)
{
    (void)b;
    size_t value = j->type == gemm_job::GEMM_F32 ? 4 : j->type == gemm_job::GEMM_S8 ? 1 : 2;
    size_t grain = 16 / value;
    uintptr_t address = reinterpret_cast<uintptr_t>(j->x) | reinterpret_cast<uintptr_t>(j->w) |
                        reinterpret_cast<uintptr_t>(j->y);
    if (j->type == gemm_job::GEMM_F32)
        return address % 4 == 0;
    return address % 16 == 0 && j->ldx % grain == 0 && j->ldw % grain == 0 &&
           (j->type != gemm_job::GEMM_S8 || (j->K % 16 == 0 && j->N % 16 == 0));
}

void gemm_open(struct backend *b)
{
    device_of(b)->gemm = nullptr;
}

void gemm_close(struct backend *b)
{
    (void)b;
}
