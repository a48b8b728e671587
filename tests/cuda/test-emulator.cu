/* test-emulator.cu - tests the threads of the emulated device. They compute what the PTX manual
 * defines, in any order. Each mistake that the emulator must find is planted here once. */
#include "tests/cuda/emulator-fixture.h"

/* ---- threads ---- */

enum { THREADS = 96 };

/* Thread i writes value i and reads the value of its mirror thread. */
static __global__ void turn_round(int *y, int with_barrier)
{
    SHARED(int, kept);
    wait_for_inputs();
    kept[threadIdx.x] = static_cast<int>(threadIdx.x);
    if (with_barrier)
        __syncthreads();
    y[threadIdx.x] = kept[blockDim.x - 1 - threadIdx.x];
}

static int seeds_where_it_turns(int with_barrier)
{
    int right = 0;
    for (int seed = 1; seed <= SEEDS; seed++) {
        set_seed(seed);
        array<int> y(THREADS);
        run(turn_round, dim3(1), dim3(THREADS), THREADS * sizeof(int), y.p, with_barrier);
        int good = 1;
        std::vector<int> got = y.values();
        for (int i = 0; i < THREADS; i++)
            good &= got[static_cast<size_t>(i)] == THREADS - 1 - i;
        right += good;
    }
    set_seed(1);
    return right;
}

/* The mistake: a shuffle orders the lanes of a warp, but not their accesses to memory. */
static __global__ void lean_on_shuffle(int *y)
{
    SHARED(int, kept);
    wait_for_inputs();
    kept[threadIdx.x] = 1;
    __shfl_sync(0xffffffffu, 0, 0);
    y[threadIdx.x] = kept[31 - threadIdx.x];
}

static void test_order()
{
    ok(seeds_where_it_turns(1) == SEEDS, "with a barrier: right in every order");
    if (!THREADS_WATCHED) {
        int by_luck = seeds_where_it_turns(0);
        ok(by_luck == 0, "without: wrong in every order tried (right in %d)", by_luck);
        skip("ThreadSanitizer is needed to see that a shuffle orders no memory");
        return;
    }
    ok(dies([] { seeds_where_it_turns(0); }, "data race"), "without: a race");
    ok(dies([] { run(lean_on_shuffle, dim3(1), dim3(32), 128, array<int>(32).p); }, "data race"),
       "a shuffle orders no memory");
}

/* Thread i of each warp writes sums and maxima over its warp, its neighbours' numbers and votes. */
static __global__ void talk(int *y)
{
    wait_for_inputs();
    int lane = static_cast<int>(threadIdx.x % 32), *mine = y + 8 * threadIdx.x;
    mine[0] = static_cast<int>(warp_sum(static_cast<float>(lane)));
    mine[1] = __shfl_sync(0xffffffffu, lane, 5);
    mine[2] = __shfl_down_sync(0xffffffffu, lane, 3);
    mine[3] = __shfl_sync(0xffffffffu, lane, 1, 8);
    mine[4] = static_cast<int>(__ballot_sync(0xffffffffu, lane % 2));
    mine[5] = __any_sync(0xffffffffu, lane == 7) * 2 + __all_sync(0xffffffffu, lane < 7);
    mine[6] = 0;
    if (lane < 4)
        mine[6] = __shfl_xor_sync(0xfu, lane, 1);
    double wide = __shfl_xor_sync(0xffffffffu, lane + 0.25, 1);
    mine[7] = static_cast<int>(4 * wide);
}

static void test_warps()
{
    array<int> y(64 * 8);
    run(talk, dim3(1), dim3(64), 0, y.p);
    std::vector<int> got = y.values();
    int good[8] = {1, 1, 1, 1, 1, 1, 1, 1};
    for (int i = 0; i < 64; i++) {
        int lane = i % 32;
        const int want[8] = {496, 5, lane + 3 < 32 ? lane + 3 : lane, lane / 8 * 8 + 1,
                             static_cast<int>(0xaaaaaaaau), 2, lane < 4 ? lane ^ 1 : 0,
                             4 * (lane ^ 1) + 1};
        for (size_t j = 0; j < 8; j++)
            good[j] &= got[static_cast<size_t>(i) * 8 + j] == want[j];
    }
    ok(good[0] && good[1] && good[2] && good[3] && good[6] && good[7], "shuffles");
    ok(good[4] && good[5], "votes");
}

/* Each lane computes warp_fold over the warp and over each half, and the same by the shuffles that
 * a GPU uses. The operation treats its two operands differently, so their order shows. */
static __global__ void fold(float *y)
{
    wait_for_inputs();
    auto op = [](float mine, float other) { return mine / 3 + other; };
    float x = sqrtf(static_cast<float>(threadIdx.x)), whole = x, half = x;
    for (int step = 16; step > 0; step /= 2)
        whole = op(whole, __shfl_xor_sync(0xffffffffu, whole, step));
    for (int step = 8; step > 0; step /= 2)
        half = op(half, __shfl_xor_sync(0xffffffffu, half, step));
    y[threadIdx.x * 4] = warp_fold(x, op);
    y[threadIdx.x * 4 + 1] = whole;
    y[threadIdx.x * 4 + 2] = warp_fold<16>(x, op);
    y[threadIdx.x * 4 + 3] = half;
}

static void test_folds()
{
    array<float> y(64 * 4);
    run(fold, dim3(1), dim3(64), 0, y.p);
    std::vector<float> got = y.values();
    int good = 1;
    for (size_t i = 0; i < got.size(); i += 4)
        good &= got[i] == got[i + 1] && got[i + 2] == got[i + 3] && got[i] != got[i + 2];
    ok(good, "a fold over lanes has the same bits as shuffles");
}

/* Every thread adds one, and the last one of all reports the count. */
static __global__ void count(int *counter, int *last)
{
    wait_for_inputs();
    int before = atomicAdd(counter, 1);
    if (before == static_cast<int>(gridDim.x * gridDim.y * blockDim.x) - 1)
        *last = before + 1;
    atomicMax(counter + 1, static_cast<int>(blockIdx.y * 100 + threadIdx.x));
}

static void test_grids()
{
    array<int> counter(std::vector<int>{0, 0}), last(1);
    run(count, dim3(3, 2), dim3(33), 0, counter.p, last.p);
    ok(last.values()[0] == 3 * 2 * 33 && counter.values()[1] == 132, "grids, atomics");
}

/* ---- mistakes of threads ---- */

static __global__ void half_a_barrier(int n)
{
    wait_for_inputs();
    if (static_cast<int>(threadIdx.x) < n)
        __syncthreads();
}
static __global__ void two_barriers()
{
    wait_for_inputs();
    if (threadIdx.x < 32)
        __syncthreads();
    else
        __syncthreads();
}
static __global__ void lost_lanes()
{
    wait_for_inputs();
    if (threadIdx.x < 16)
        __shfl_xor_sync(0xffffffffu, 1, 16);
}
static __global__ void folds_alone()
{
    wait_for_inputs();
    if (threadIdx.x < 16)
        warp_sum(1);
}
static __global__ void deaf_lane()
{
    wait_for_inputs();
    if (threadIdx.x < 16)
        __shfl_sync(0xffffu, 1, 20);
}
static __global__ void never_waits()
{
    let_next_start();
}
static __global__ void loads_at(const char *p)
{
    wait_for_inputs();
    load_once(p);
}
static __global__ void copies_to(const char *p, int at)
{
    SHARED(char, bytes);
    wait_for_inputs();
    copy_async(bytes + at, p, true);
}

static void test_mistakes()
{
    ok(dies([] { run(half_a_barrier, dim3(1), dim3(64), 0, 40); },
            "40 wait for ever at __syncthreads of tests/cuda/test-emulator.cu:"),
       "a barrier that some threads never reach");
    ok(dies([] { run(two_barriers, dim3(1), dim3(64), 0); }, "where others wait at __syncthreads"),
       "threads at different barriers");
    ok(dies([] { run(lost_lanes, dim3(1), dim3(32), 0); }, "16 wait for ever at __shfl_xor_sync"),
       "a shuffle without some lanes of its mask");
    ok(dies([] { run(folds_alone, dim3(1), dim3(32), 0); }, "16 wait for ever at warp_fold"),
       "half a warp where all lanes are wanted");
    ok(dies([] { run(deaf_lane, dim3(1), dim3(32), 0); }, "lane 20, which is not in its mask"),
       "a shuffle from a lane outside the mask");
    ok(dies([] { run(never_waits, dim3(1), dim3(1), 0); }, "without wait_for_inputs()"),
       "a kernel that does not wait for its inputs");
    ok(dies([] { run(loads_at, dim3(1), dim3(1), 0, array<char>(64).p + 8); },
            "no multiple of 16"),
       "an address that is not aligned");
    ok(dies([] { run(copies_to, dim3(1), dim3(1), 24, array<char>(64).p, 16); },
            "not in the 24 bytes of shared memory"),
       "a copy behind shared memory");
}

/* ---- copies into shared memory ---- */

/* A thread copies 2 x 16 bytes in two groups and waits until at most `left` groups are
 * unfinished. */
static __global__ void copies(uint4 *y, const uint4 *x, int left)
{
    SHARED(uint4, kept);
    wait_for_inputs();
    copy_async(kept, x, true);
    copy_async_close();
    copy_async(kept + 1, x + 1, false);
    copy_async_close();
    if (left == 0)
        copy_async_wait<0>();
    else if (left == 1)
        copy_async_wait<1>();
    y[0] = kept[0];
    y[1] = kept[1];
}

static void test_copies()
{
    static const unsigned seen[3][2] = {{7, 0}, {7, ~0u}, {~0u, ~0u}};
    int good = 1;
    array<uint4> x({{7, 7, 7, 7}, {8, 8, 8, 8}});
    for (int left = 0; left < 3; left++) {
        array<uint4> y(2);
        run(copies, dim3(1), dim3(1), 32, y.p, x.p, left);
        good &= y.values()[0].w == seen[left][0] && y.values()[1].x == seen[left][1];
    }
    ok(good, "a copy is there once it is waited for, and not before");
}

/* ---- gates and bulk copies ---- */

/* y gets the values before and after the gate. wait 0: does not wait for the copy. */
static __global__ void bulk(uint4 *y, const uint4 *x, bool wait)
{
    SHARED(uint4, kept);
    uint64_t *gate = reinterpret_cast<uint64_t *>(kept + 2);
    wait_for_inputs();
    gate_make(gate, 1);
    gate_expect(gate, 32);
    copy_bulk(kept, x, 32, gate, 1);
    y[0] = kept[1];
    if (wait)
        gate_wait(gate, 0);
    y[1] = kept[1];
}

/* Each thread passes the gate `turns` times, each time when both threads have arrived. */
static __global__ void turnstile(unsigned *y, int turns, int arrivals)
{
    SHARED(uint64_t, gate);
    wait_for_inputs();
    if (threadIdx.x == 0)
        gate_make(gate, 2);
    gates_made();
    __syncthreads();
    for (int i = 0; i < turns; i++) {
        atomicAdd(y, 1u);
        for (int k = 0; k < arrivals; k++)
            gate_arrive(gate, 0);
        gate_wait(gate, i & 1);
        if (*y < 2u * (unsigned)(i + 1))
            atomicAdd(y, 1000u);
    }
}

static __global__ void crowded_gate(int bytes, int expected)
{
    SHARED(uint4, kept);
    uint64_t *gate = reinterpret_cast<uint64_t *>(kept + 4);
    wait_for_inputs();
    gate_make(gate, 1);
    gate_expect(gate, (uint32_t)expected);
    copy_bulk(kept, kept + 2, (uint32_t)bytes, gate, 1);
    gate_wait(gate, 0);
}

static void test_gates()
{
    array<uint4> x({{7, 7, 7, 7}, {8, 8, 8, 8}}), seen(2);
    run(bulk, dim3(1), dim3(1), 40, seen.p, x.p, true);
    ok(seen.values()[0].w == ~0u && seen.values()[1].w == 8,
       "a bulk copy is there behind its gate, and not before");
    ok(dies([] { run(bulk, dim3(1), dim3(1), 40, array<uint4>(2).p, array<uint4>(2).p, false); },
            "1 bulk copies are on their way"),
       "a bulk copy for which nobody waits");
    array<unsigned> y(std::vector<unsigned>{0});
    run(turnstile, dim3(1), dim3(2), 8, y.p, 5, 1);
    ok(y.values()[0] == 10, "a gate opens once in each turn, when all have arrived");
    ok(dies([] { run(turnstile, dim3(1), dim3(2), 8, array<unsigned>(1).p, 1, 0); },
            "turn 0 never opens"),
       "a gate at which nobody arrives");
    ok(dies([] { run(crowded_gate, dim3(1), dim3(1), 72, 32, 16); }, "where the gate expects 16"),
       "a gate that expects fewer bytes");
    ok(dies([] { run(crowded_gate, dim3(1), dim3(1), 72, 8, 8); }, "no multiple of 16"),
       "a bulk copy of 8 bytes");
}

/* A warpgroup computes one product: d[64, 128] = a[64, 16] b[16, 128], with b in shared memory as
 * squares. */
static __global__ void product_of_group(float *d, const uint16_t *a, const uint16_t *b)
{
    SHARED(uint16_t, squares);
    wait_for_inputs();
    for (unsigned i = threadIdx.x; i < 128 * 16; i += blockDim.x) {
        unsigned n = i / 16, k = i % 16;
        squares[n / 8 * 128 + k / 8 * 64 + n % 8 * 8 + k % 8] = b[k * 128 + n];
    }
    __syncthreads();
    unsigned row = threadIdx.x / 32 * 16 + threadIdx.x % 32 / 4, q = threadIdx.x % 4;
    uint32_t part[4];
    for (unsigned i = 0; i < 4; i++) {
        const uint16_t *from = a + (row + i % 2 * 8) * 16 + 2 * q + i / 2 * 8;
        part[i] = from[0] | (uint32_t)from[1] << 16;
    }
    float sum[64] = {};
    group_begin();
    group_multiply<128>(sum, part, squares, false);
    group_multiply<128>(sum, part, squares, true);
    group_close();
    group_wait<0>();
    group_end<128>(sum);
    for (unsigned i = 0; i < 64; i++)
        d[(row + i % 4 / 2 * 8) * 128 + i / 4 * 8 + 2 * q + i % 2] = sum[i];
}

static void test_group()
{
    std::vector<uint16_t> a(64 * 16), b(16 * 128);
    auto value = [](size_t i) { return (float)(int)(i * 7 % 11) - 5; };
    for (size_t i = 0; i < a.size(); i++)
        a[i] = (uint16_t)(__float_as_uint(value(i)) >> 16);
    for (size_t i = 0; i < b.size(); i++)
        b[i] = (uint16_t)(__float_as_uint(value(3 * i)) >> 16);
    array<float> d(64 * 128);
    run(product_of_group, dim3(1), dim3(128), 128 * 16 * 2, d.p, array<uint16_t>(a).p,
        array<uint16_t>(b).p);
    const std::vector<float> got = d.values();
    int wrong = 0;
    for (size_t r = 0; r < 64; r++)
        for (size_t n = 0; n < 128; n++) {
            float want = 0;
            for (size_t k = 0; k < 16; k++)
                want += 2 * value(r * 16 + k) * value(3 * (k * 128 + n));
            wrong += got[r * 128 + n] != want;
        }
    ok(!wrong, "two products of a warpgroup, %d values are wrong", wrong);
}

/* ---- matrix units ---- */

/* A warp computes d[16, 8] = a[16, 16] b[16, 8] in bf16. Both factors are row-major in shared
 * memory, with rows 48 bytes apart. */
static __global__ void product_bf16(float *d, const uint16_t *a, const uint16_t *b)
{
    SHARED(uint16_t, kept);
    unsigned lane = threadIdx.x;
    wait_for_inputs();
    for (unsigned i = lane; i < 256; i += 32)
        kept[i / 16 * 24 + i % 16] = a[i];
    for (unsigned i = lane; i < 128; i += 32)
        kept[384 + i / 8 * 24 + i % 8] = kept[384 + i / 8 * 24 + i % 8 + 8] = b[i];
    __syncwarp();
    uint32_t left[4], right[4];
    float sum[4] = {0, 0, 0, 0};
    load_matrices(left, kept + lane % 16 * 24 + lane / 16 * 8);
    load_matrices_turned(right, kept + 384 + lane % 16 * 24 + lane / 16 * 8);
    multiply_bf16(sum, left, right);
    multiply_bf16(sum, left, right + 2);
    for (unsigned i = 0; i < 4; i++)
        d[(lane / 4 + i / 2 * 8) * 8 + lane % 4 * 2 + i % 2] = sum[i];
}

static void test_bf16()
{
    std::vector<uint16_t> a(256), b(128);
    std::vector<float> want(128);
    auto number = [](size_t i) { return static_cast<float>(static_cast<int>(i * 37 % 23) - 11); };
    for (size_t i = 0; i < 256; i++)
        a[i] = bf16_of(number(i));
    for (size_t i = 0; i < 128; i++)
        b[i] = bf16_of(number(i + 5));
    for (size_t i = 0; i < 16; i++)
        for (size_t j = 0; j < 8; j++)
            for (size_t k = 0; k < 16; k++)
                want[i * 8 + j] += 2 * bf16_float(a[i * 16 + k]) * bf16_float(b[k * 8 + j]);
    array<uint16_t> on_a(a), on_b(b);
    array<float> d(128);
    run(product_bf16, dim3(1), dim3(32), 768 * 2, d.p, on_a.p, on_b.p);
    ok(d.values() == want, "bf16 fragments: rows, rows turned, and their product");
}

/* A warp computes d[16, 8] += a[16, 32] bt[8, 32]^T in int8. */
static __global__ void product_s8(int32_t *d, const int8_t *a, const int8_t *bt)
{
    unsigned g = threadIdx.x / 4, j = threadIdx.x % 4;
    uint32_t left[4], right[2];
    int32_t sum[4];
    wait_for_inputs();
    for (unsigned i = 0; i < 4; i++) {
        const int8_t *row = a + (g + i % 2 * 8) * 32;
        left[i] = *reinterpret_cast<const uint32_t *>(row + i / 2 * 16 + j * 4);
        sum[i] = d[(g + i / 2 * 8) * 8 + j * 2 + i % 2];
    }
    for (unsigned i = 0; i < 2; i++)
        right[i] = *reinterpret_cast<const uint32_t *>(bt + g * 32 + i * 16 + j * 4);
    multiply_s8(sum, left, right);
    for (unsigned i = 0; i < 4; i++)
        d[(g + i / 2 * 8) * 8 + j * 2 + i % 2] = sum[i];
}

static void test_s8()
{
    std::vector<int8_t> a(512), b(256);
    std::vector<int32_t> want(128, 3);
    for (size_t i = 0; i < 512; i++)
        a[i] = static_cast<int8_t>(i * 91 % 255 - 127);
    for (size_t i = 0; i < 256; i++)
        b[i] = static_cast<int8_t>(i * 57 % 255 - 127);
    array<int8_t> on_a(a), on_b(b);
    array<int32_t> d(want);
    for (size_t i = 0; i < 16; i++)
        for (size_t j = 0; j < 8; j++)
            for (size_t k = 0; k < 32; k++)
                want[i * 8 + j] += a[i * 32 + k] * b[j * 32 + k];
    run(product_s8, dim3(1), dim3(32), 0, d.p, on_a.p, on_b.p);
    ok(d.values() == want, "int8 fragments and their product");
}

/* ---- numbers ---- */

static __global__ void numbers(uint32_t *y)
{
    wait_for_inputs();
    y[0] = bf16_pair(1.00390625f, 1.01171875f); /* ties: down to 1, up to 1.015625 */
    y[1] = bf16_pair(__uint_as_float(0x7fffffffu), -INFINITY);
    y[2] = __float_as_uint(exp2_near(-INFINITY));
    y[3] = static_cast<uint32_t>(__clz(1) * 10000 + __ffs(8) * 100 + __popc(0xff00u));
    y[4] = __float_as_uint(rsqrtf(16.0f));
}

static void test_numbers()
{
    array<uint32_t> y(5);
    run(numbers, dim3(1), dim3(1), 0, y.p);
    std::vector<uint32_t> got = y.values();
    ok(got[0] == 0x3f823f80u && got[1] == 0xff807fffu, "bf16: to nearest, ties to even, NaN");
    ok(got[2] == 0 && got[3] == 310408 && got[4] == 0x3e800000u,
       "the other functions on numbers");
}

int main(void)
{
    test_warps();
    test_folds();
    test_grids();
    test_order();
    test_mistakes();
    test_copies();
    test_gates();
    test_group();
    test_bf16();
    test_s8();
    test_numbers();
    return tap_done();
}
