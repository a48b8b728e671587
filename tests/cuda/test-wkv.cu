/* test-wkv.cu - compares time mixing of RWKV 6 and 7 on the device with the reference: both forms
 * and the gradients, sequences of unequal length, also empty ones, chunks that are not full, heads
 * with fewer channels, strong decay, and with and without states. */
#include "kernels/mixing.h"
#include "kernels/train.h"
#include "kernels/wkv.h"
#include "tests/cuda/rows-fixture.h"

enum { SEQS = 3 };
struct shape {
    size_t H, E;
    int32_t rows[SEQS];
    double decay;
};
static const struct shape shapes[] = {
    {2, 64, {16, 1, 19}, 0.6}, {1, 6, {33, 0, 2}, 20}, {3, 34, {5, 17, 8}, 3}};

enum { R, W, K, V, A, B, INPUTS };

/* The same data on the host and on the device. */
struct both {
    float *host, *device;
    size_t n;
};

static struct both both_of(struct fixture *f, float *host, size_t n)
{
    return {host, (float *)sent(f, host, n * sizeof *host), n};
}

static struct both both_drawn(struct fixture *f, size_t n)
{
    return both_of(f, drawn(f, n), n);
}

/* The largest difference between device and host, relative to `size`, or if size is 0 to the
 * largest value of the host; infinite if a value is NaN. */
static double apart(struct fixture *f, const struct both *x, double size)
{
    double far = 0, most = size;
    float *got = floats(x->n);
    cuda_read(f->cuda, got, x->device, x->n * sizeof *got);
    for (size_t i = 0; i < x->n && size == 0; i++)
        most = fmax(most, fabs((double)x->host[i]));
    for (size_t i = 0; i < x->n; i++) {
        double d = fabs((double)got[i] - x->host[i]);
        far = isnan(d) ? INFINITY : fmax(far, d);
    }
    free(got);
    return most > 0 ? far / most : far;
}

static void both_free(struct fixture *f, struct both *x)
{
    cuda_free(f->cuda, x->device);
    free(x->host);
}

/* All data of a case. The outputs begin as NaN on both sides. */
struct data {
    size_t T, n, states, most;
    struct both x[INPUTS], d[INPUTS], u, du, state, dstate, y, dy;
    struct attn_seq seqs[SEQS], *seqs_there;
};

static struct both unwritten(struct fixture *f, size_t n)
{
    float *x = floats(n);
    for (size_t i = 0; i < n; i++)
        x[i] = NAN;
    return both_of(f, x, n);
}

static struct data make(struct fixture *f, const struct shape *s)
{
    struct data d = {};
    for (int i = 0; i < SEQS; i++) {
        d.seqs[i] = {(int32_t)d.T, s->rows[i], 0, 0};
        d.T += (size_t)s->rows[i];
        d.most = (size_t)s->rows[i] > d.most ? (size_t)s->rows[i] : d.most;
    }
    d.n = d.T * s->H * s->E;
    d.states = SEQS * s->H * s->E * s->E;
    float *x[INPUTS];
    for (int i = 0; i < INPUTS; i++)
        x[i] = drawn(f, d.n);
    for (size_t i = 0; i < d.n; i++)
        x[W][i] = (float)(-s->decay * rng_uniform(&f->rng));
    for (size_t i = 0; i < d.n; i += s->E) {
        double sum = 0;
        for (size_t e = i; e < i + s->E; e++)
            sum += (double)x[A][e] * x[A][e];
        for (size_t e = i; e < i + s->E; e++) {
            x[A][e] = (float)(x[A][e] / sqrt(sum));
            x[B][e] = (float)(-x[A][e] * rng_uniform(&f->rng));
        }
    }
    for (int i = 0; i < INPUTS; i++) {
        d.x[i] = both_of(f, x[i], d.n);
        d.d[i] = unwritten(f, d.n);
    }
    d.u = both_drawn(f, s->H * s->E);
    d.du = both_drawn(f, s->H * s->E);
    d.state = both_drawn(f, d.states);
    d.dstate = both_drawn(f, d.states);
    d.y = unwritten(f, d.n);
    d.dy = both_drawn(f, d.n);
    d.seqs_there = (struct attn_seq *)sent(f, d.seqs, sizeof d.seqs);
    return d;
}

static void forget(struct fixture *f, struct data *d)
{
    struct both *others[] = {&d->u, &d->du, &d->state, &d->dstate, &d->y, &d->dy};
    for (int i = 0; i < INPUTS; i++) {
        both_free(f, &d->x[i]);
        both_free(f, &d->d[i]);
    }
    for (struct both *x : others)
        both_free(f, x);
    cuda_free(f->cuda, d->seqs_there);
}

/* The inputs on the host, or (there) on the device. */
static struct wkv_rows rows_of(const struct data *d, const struct shape *s, bool seven, bool there)
{
    const float *x[INPUTS];
    for (int i = 0; i < INPUTS; i++)
        x[i] = there ? d->x[i].device : d->x[i].host;
    return {x[R], x[W], x[K], x[V], seven ? x[A] : NULL, seven ? x[B] : NULL,
            seven ? NULL : there ? d->u.device : d->u.host, there ? d->seqs_there : d->seqs, SEQS,
            d->T, d->most, s->H, s->E};
}

static void forward(struct fixture *f, const struct shape *s, bool seven, enum wkv_form form)
{
    struct data d = make(f, s);
    struct wkv r = {rows_of(&d, s, seven, false), d.state.host, d.y.host, form, NULL};
    struct wkv c = {rows_of(&d, s, seven, true), d.state.device, d.y.device, form, NULL};
    void *work = mem_aligned(ops_ref.mixing->wkv_work(f->ref, SEQS, d.most, s->H, s->E));
    ops_ref.mixing->wkv(f->ref, &r, work);
    cuda_wkv(f->cuda, &c, NULL);
    double y = apart(f, &d.y, 0), state = apart(f, &d.state, 0);
    ok(y < 2e-6 && state < 2e-6, "RWKV %d %s, %zu x %zu, decay %g (%.1e, %.1e)", seven ? 7 : 6,
       form == WKV_CHUNKED ? "chunked" : "recurrent", s->H, s->E, s->decay, y, state);
    free(work);
    forget(f, &d);
}

static void backward(struct fixture *f, const struct shape *s, bool seven, bool states)
{
    struct data d = make(f, s);
    struct both *x = d.d;
    size_t sizes[] = {SEQS, d.most, s->H, s->E};
    struct wkv_back r = {rows_of(&d, s, seven, false), states ? d.state.host : NULL, d.dy.host,
                         states ? d.dstate.host : NULL, x[R].host, x[W].host, x[K].host, x[V].host,
                         x[A].host, x[B].host, d.du.host};
    struct wkv_back c = {rows_of(&d, s, seven, true), states ? d.state.device : NULL, d.dy.device,
                         states ? d.dstate.device : NULL, x[R].device, x[W].device, x[K].device,
                         x[V].device, x[A].device, x[B].device, d.du.device};
    void *work = mem_aligned(
        train_ops_of(f->ref->ops)->wkv_back_work(f->ref, sizes[0], sizes[1], sizes[2], sizes[3]));
    void *there = cuda_alloc(
        f->cuda, cuda_wkv_back_work(f->cuda, sizes[0], sizes[1], sizes[2], sizes[3]),
        MEMORY_ACTIVATIONS);
    train_ops_of(f->ref->ops)->wkv_back(f->ref, &r, work);
    cuda_wkv_back(f->cuda, &c, there);
    double far = apart(f, &d.du, 0), size = 0;
    far = fmax(far, apart(f, &d.dstate, 0));
    for (size_t i = 0; i < d.n; i++) /* the gradient of w is a sum of differences of these */
        size = fmax(size, fmax(fabs((double)x[R].host[i] * d.x[R].host[i]),
                               fabs((double)x[K].host[i] * d.x[K].host[i])));
    for (int i = 0; i < (seven ? INPUTS : A); i++)
        far = fmax(far, apart(f, &x[i], i == W ? size : 0));
    ok(far < 5e-6, "RWKV %d gradients%s, %zu x %zu, decay %g (%.1e)", seven ? 7 : 6,
       states ? "" : " from no state", s->H, s->E, s->decay, far);
    cuda_free(f->cuda, there);
    free(work);
    forget(f, &d);
}

int main(void)
{
    struct fixture f = fixture_open();
    f.cuda->act = DTYPE_F32;
    for (const struct shape &s : shapes)
        for (int seven = 0; seven < 2; seven++) {
            forward(&f, &s, seven, WKV_RECURRENT);
            forward(&f, &s, seven, WKV_CHUNKED);
            backward(&f, &s, seven, true);
            backward(&f, &s, seven, false);
        }
    fixture_close(&f);
    return tap_done();
}
