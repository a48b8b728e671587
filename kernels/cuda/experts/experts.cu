/* experts.cu - a mixture of experts (kernels/experts.h): rows are copied in the order of their
 * experts, each expert multiplies its own, and every row adds what its experts gave. Many rows are
 * computed in pieces, so that work stays small. */
#include "kernels/cuda/cuda.h"
#include "kernels/cuda/device.cuh"
#include "kernels/cuda/experts/mixture.h"

enum { THREADS = 256, PIECE_ROWS = 2048 };

/* Thread (t, d) adds the shares of row t's experts to y[t, d], experts ascending. */
template <class A>
static __global__ void __launch_bounds__(THREADS)
add_experts(A *y, const A *out, struct mixture m, uint32_t used, uint32_t D)
{
    uint32_t t = blockIdx.x, d = blockIdx.y * THREADS + threadIdx.x;
    float sum = 0;
    let_next_start();
    wait_for_inputs();
    if (d >= D)
        return;
    for (uint32_t i = t * used; i < (t + 1) * used; i++)
        sum += m.share[i] * act_float(out[(size_t)m.place[i] * D + d]);
    A *to = y + (size_t)t * D + d;
    act_put(to, act_float(*to) + act_rounded<A>(sum));
}

/* Sets the places of T rows in `work`, and returns the bytes. */
static size_t cut(struct mixture *m, const struct backend *b, void *work, size_t T, size_t D,
                  size_t F, size_t n, size_t used)
{
    const size_t act = b->act == DTYPE_F32 ? sizeof(float) : sizeof(uint16_t), pairs = T * used;
    uint8_t *const block = static_cast<uint8_t *>(work);
    size_t at = 0;
    auto take = [&](size_t bytes) {
        uint8_t *p = block ? block + at : nullptr;
        at += layout_up(bytes, 256);
        return p;
    };
    m->logits = reinterpret_cast<float *>(take(T * n * sizeof(float)));
    m->chosen = reinterpret_cast<int32_t *>(take(pairs * sizeof(int32_t)));
    m->share = reinterpret_cast<float *>(take(pairs * sizeof(float)));
    m->place = reinterpret_cast<int32_t *>(take(pairs * sizeof(int32_t)));
    m->begin = reinterpret_cast<int32_t *>(take((n + 1) * sizeof(int32_t)));
    m->row = reinterpret_cast<int32_t *>(take(pairs * sizeof(int32_t)));
    m->in = take(pairs * D * act);
    m->hidden = take(pairs * F * act);
    m->out = take(pairs * D * act);
    m->rest = take(b->act == DTYPE_F32 ? 0 : coding_at(nullptr, pairs, D > F ? D : F).bytes);
    return at;
}

size_t cuda_experts_work(const struct backend *b, size_t T, size_t D, size_t F, size_t n,
                         size_t used)
{
    struct mixture m;
    return cut(&m, b, nullptr, T < PIECE_ROWS ? T : (size_t)PIECE_ROWS, D, F, n, used);
}

static void run_piece(struct backend *b, const struct experts *a, size_t T, void *work)
{
    const size_t D = a->router->cols, F = a->gate->rows, pairs = T * a->used;
    const uint8_t *const *data = static_cast<const uint8_t *const *>(a->data);
    struct mixture m;
    cut(&m, b, work, T, D, F, a->n, a->used);
    route(b, a, &m, T);
    cuda_rmsnorm(b, m.in, a->x, m.row, nullptr, pairs, D, 0);
    struct group g = {data, m.begin, (uint32_t)a->n, (uint32_t)T};
    struct product_job gated = job_of(JOB_GATED, a->gate, pairs);
    job_put(&gated, a->gate, m.hidden, F, 0);
    job_put(&gated, a->up, m.hidden, F, 0);
    job_settle(&gated);
    grouped(b, &gated, &g, m.in, m.rest);
    struct product_job down = job_of(JOB_ROWS, a->down, pairs);
    job_put(&down, a->down, m.out, D, 0);
    job_settle(&down);
    g.data = data + 2 * a->n;
    grouped(b, &down, &g, m.hidden, m.rest);
    const dim3 grid((unsigned)T, blocks_of(D, THREADS));
    if (b->act == DTYPE_F32)
        launch(b, add_experts<float>, grid, dim3(THREADS), 0, static_cast<float *>(a->y),
               static_cast<const float *>(m.out), m, (uint32_t)a->used, (uint32_t)D);
    else
        launch(b, add_experts<uint16_t>, grid, dim3(THREADS), 0, static_cast<uint16_t *>(a->y),
               static_cast<const uint16_t *>(m.out), m, (uint32_t)a->used, (uint32_t)D);
}

void cuda_experts(struct backend *b, const struct experts *a, size_t T, void *work)
{
    struct range here("experts");
    const size_t row = a->router->cols * (b->act == DTYPE_F32 ? 4 : 2);
    for (size_t t = 0; t < T; t += PIECE_ROWS) {
        struct experts piece = *a;
        piece.x = static_cast<const uint8_t *>(a->x) + t * row;
        piece.y = static_cast<uint8_t *>(a->y) + t * row;
        run_piece(b, &piece, T - t < PIECE_ROWS ? T - t : (size_t)PIECE_ROWS, work);
    }
}
