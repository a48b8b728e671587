/* experts.cu - a mixture of experts (kernels/experts.h): rows are copied in the order of their
 * experts, each expert multiplies its own rows, and the outputs of a row's experts are added. Many
 * rows are computed in pieces, so that `work` stays small. */
#include "kernels/cuda/cuda.h"
#include "kernels/cuda/device.cuh"
#include "kernels/cuda/experts/mixture.h"

enum { THREADS = 256, PIECE_ROWS = 2048 };

/* Thread (t, d) adds the weighted outputs of row t's experts to y[t, d], experts ascending. */
template <class A>
static __global__ void __launch_bounds__(THREADS)
add_experts(A *y, const A *out, struct mixture mixture, uint32_t used, uint32_t D)
{
    uint32_t row = blockIdx.x, d = blockIdx.y * THREADS + threadIdx.x;
    float sum = 0;
    let_next_start();
    wait_for_inputs();
    if (d >= D)
        return;
    for (uint32_t i = row * used; i < (row + 1) * used; i++)
        sum += mixture.share[i] * act_float(out[(size_t)mixture.place[i] * D + d]);
    A *to = y + (size_t)row * D + d;
    act_put(to, act_float(*to) + act_rounded<A>(sum));
}

/* Sets the addresses for T rows in `work`, and returns the bytes of all. work NULL: only returns
 * the bytes. */
static size_t cut(struct mixture *mixture, const struct backend *backend, void *work, size_t T,
                  size_t D, size_t F, size_t n, size_t used)
{
    const size_t act = backend->act == DTYPE_F32 ? sizeof(float) : sizeof(uint16_t),
                 pairs = T * used;
    uint8_t *const block = static_cast<uint8_t *>(work);
    size_t at = 0;
    auto take = [&](size_t bytes) {
        uint8_t *p = block ? block + at : nullptr;
        at += layout_up(bytes, 256);
        return p;
    };
    mixture->logits = reinterpret_cast<float *>(take(T * n * sizeof(float)));
    mixture->chosen = reinterpret_cast<int32_t *>(take(pairs * sizeof(int32_t)));
    mixture->share = reinterpret_cast<float *>(take(pairs * sizeof(float)));
    mixture->place = reinterpret_cast<int32_t *>(take(pairs * sizeof(int32_t)));
    mixture->begin = reinterpret_cast<int32_t *>(take((n + 1) * sizeof(int32_t)));
    mixture->row = reinterpret_cast<int32_t *>(take(pairs * sizeof(int32_t)));
    mixture->in = take(pairs * D * act);
    mixture->hidden = take(pairs * F * act);
    mixture->out = take(pairs * D * act);
    mixture->rest = take(
        backend->act == DTYPE_F32 ? 0 : coding_at(nullptr, pairs, D > F ? D : F).bytes);
    return at;
}

size_t cuda_experts_work(const struct backend *backend, size_t T, size_t D, size_t F, size_t n,
                         size_t used)
{
    struct mixture mixture;
    return cut(&mixture, backend, nullptr, T < PIECE_ROWS ? T : (size_t)PIECE_ROWS, D, F, n, used);
}

static void run_piece(struct backend *backend, const struct experts *experts, size_t T, void *work)
{
    const size_t D = experts->router->cols, F = experts->gate->rows, pairs = T * experts->used;
    const uint8_t *const *data = static_cast<const uint8_t *const *>(experts->data);
    struct mixture mixture;
    cut(&mixture, backend, work, T, D, F, experts->n, experts->used);
    route(backend, experts, &mixture, T);
    cuda_rmsnorm(backend, mixture.in, experts->x, mixture.row, nullptr, pairs, D, 0);
    struct group group = {data, mixture.begin, (uint32_t)experts->n, (uint32_t)T};
    struct product_job gated = job_of(JOB_GATED, experts->gate, pairs);
    job_put(&gated, experts->gate, mixture.hidden, F, 0);
    job_put(&gated, experts->up, mixture.hidden, F, 0);
    job_settle(&gated);
    grouped(backend, &gated, &group, mixture.in, mixture.rest);
    struct product_job down = job_of(JOB_ROWS, experts->down, pairs);
    job_put(&down, experts->down, mixture.out, D, 0);
    job_settle(&down);
    group.data = data + 2 * experts->n;
    grouped(backend, &down, &group, mixture.hidden, mixture.rest);
    const dim3 grid((unsigned)T, blocks_of(D, THREADS));
    if (backend->act == DTYPE_F32)
        launch(backend, add_experts<float>, grid, dim3(THREADS), 0,
               static_cast<float *>(experts->y), static_cast<const float *>(mixture.out), mixture,
               (uint32_t)experts->used, (uint32_t)D);
    else
        launch(backend, add_experts<uint16_t>, grid, dim3(THREADS), 0,
               static_cast<uint16_t *>(experts->y), static_cast<const uint16_t *>(mixture.out),
               mixture, (uint32_t)experts->used, (uint32_t)D);
}

void cuda_experts(struct backend *backend, const struct experts *experts, size_t T, void *work)
{
    struct range here("experts");
    const size_t row = experts->router->cols * (backend->act == DTYPE_F32 ? 4 : 2);
    for (size_t at = 0; at < T; at += PIECE_ROWS) {
        struct experts piece = *experts;
        piece.x = static_cast<const uint8_t *>(experts->x) + at * row;
        piece.y = static_cast<uint8_t *>(experts->y) + at * row;
        run_piece(backend, &piece, T - at < PIECE_ROWS ? T - at : (size_t)PIECE_ROWS, work);
    }
}
