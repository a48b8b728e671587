/* dit_pass.c - a transformer over latents, forward and backward; see dit.h for the equations.
 *
 * The forward pass keeps what the backward pass needs; the backward pass mirrors it line by line.
 * Products use the gemm of the back end. The rest is plain loops, because a text has few latents.
 * Checked against finite differences in tests/model/test-dit.c. */
#include "lib/train/dit/dit_pass.h"

#include <math.h>
#include <string.h>

static const double pi = 3.14159265358979323846;

/* ---- linear layers ---- */

static void forward(const struct dit *d, const struct dit_linear *l, const float *x, size_t rows,
                    float *y)
{
    const float *bias = d->w + l->bias;
    for (size_t r = 0; r < rows; r++)
        memcpy(y + r * l->out, bias, l->out * sizeof *y);
    const struct gemm g = {.M = rows, .N = l->out, .K = l->in, .a = {x, l->in, 1},
                           .b = {d->w + l->w, l->in, 1}, .c = y, .plus = y, .ldc = l->out,
                           .dtype = DTYPE_F32};
    train_ops_of(d->b->ops)->gemm(d->b, &g, 1, d->work);
}

/* The gradients of W and bias, and of x unless dx is NULL. */
static void linear_back(const struct dit *d, const struct dit_linear *l, const float *x,
                        size_t rows, const float *dy, float *dx)
{
    float *bias = d->g + l->bias;
    const struct gemm g[2] = {{.M = l->out, .N = l->in, .K = rows, .a = {dy, 1, l->out},
                               .b = {x, 1, l->in}, .c = d->g + l->w, .ldc = l->in,
                               .dtype = DTYPE_F32},
                              {.M = rows, .N = l->in, .K = l->out, .a = {dy, l->out, 1},
                               .b = {d->w + l->w, 1, l->in}, .c = dx, .ldc = l->in,
                               .dtype = DTYPE_F32}};
    train_ops_of(d->b->ops)->gemm(d->b, g, dx ? 2 : 1, d->work);
    memset(bias, 0, l->out * sizeof *bias);
    for (size_t r = 0; r < rows; r++)
        for (size_t j = 0; j < l->out; j++)
            bias[j] += dy[r * l->out + j];
}

/* ---- activations ---- */

static double sigmoid(double x)
{
    return 1 / (1 + exp(-x));
}

static void silu(const float *x, float *y, size_t n)
{
    for (size_t i = 0; i < n; i++)
        y[i] = (float)(x[i] * sigmoid(x[i]));
}

/* dx *= silu'(x) */
static void silu_back(const float *x, float *dx, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        double s = sigmoid(x[i]);
        dx[i] = (float)(dx[i] * s * (1 + x[i] * (1 - s)));
    }
}

static void gelu(const float *x, float *y, size_t n)
{
    const float a = (float)sqrt(2 / pi);
    for (size_t i = 0; i < n; i++)
        y[i] = 0.5f * x[i] * (1 + tanhf(a * (x[i] + 0.044715f * x[i] * x[i] * x[i])));
}

static void gelu_back(const float *x, float *dx, size_t n)
{
    const float a = (float)sqrt(2 / pi);
    for (size_t i = 0; i < n; i++) {
        float t = tanhf(a * (x[i] + 0.044715f * x[i] * x[i] * x[i]));
        float inner = a * (1 + 3 * 0.044715f * x[i] * x[i]);
        dx[i] *= 0.5f * (1 + t) + 0.5f * x[i] * (1 - t * t) * inner;
    }
}

/* ---- norm with shift and scale ---- */

/* Norm of h [n * tokens, D]. Shift [D] and scale [D] of sample b begin at mod + b * stride. */
static void norm(const struct dit *d, struct dit_norm *z, const float *h, const float *mod,
                 size_t stride, size_t n)
{
    size_t D = d->s.width;
    for (size_t r = 0; r < n * d->s.tokens; r++) {
        const float *x = h + r * D, *shift = mod + r / d->s.tokens * stride, *scale = shift + D;
        double mean = 0, square = 0;
        for (size_t j = 0; j < D; j++)
            mean += x[j];
        mean /= (double)D;
        for (size_t j = 0; j < D; j++)
            square += (x[j] - mean) * (x[j] - mean);
        double inv = 1 / sqrt(square / (double)D + 1e-6);
        z->inv[r] = (float)inv;
        for (size_t j = 0; j < D; j++) {
            float hat = (float)((x[j] - mean) * inv);
            z->hat[r * D + j] = hat;
            z->in[r * D + j] = hat * (1 + scale[j]) + shift[j];
        }
    }
}

/* dh += gradient of h, dmod += gradients of shift and scale, from the gradient of z->in. */
static void norm_back(const struct dit *d, const struct dit_norm *z, const float *din,
                      const float *mod, float *dmod, size_t stride, size_t n, float *dh)
{
    size_t D = d->s.width;
    for (size_t r = 0; r < n * d->s.tokens; r++) {
        size_t at = r / d->s.tokens * stride;
        const float *hat = z->hat + r * D, *dy = din + r * D, *scale = mod + at + D;
        float *dshift = dmod + at, *dscale = dshift + D;
        double mean = 0, along = 0;
        for (size_t j = 0; j < D; j++) {
            double g = dy[j] * (1.0 + scale[j]);
            mean += g;
            along += g * hat[j];
            dshift[j] += dy[j];
            dscale[j] += dy[j] * hat[j];
        }
        for (size_t j = 0; j < D; j++) {
            double g = dy[j] * (1.0 + scale[j]);
            dh[r * D + j] += (float)(z->inv[r] * (g - (mean + hat[j] * along) / (double)D));
        }
    }
}

/* h += gate * out */
static void add_gated(const struct dit *d, float *h, const float *out, const float *gate,
                      size_t stride, size_t n)
{
    size_t D = d->s.width;
    for (size_t r = 0; r < n * d->s.tokens; r++)
        for (size_t j = 0; j < D; j++)
            h[r * D + j] += gate[r / d->s.tokens * stride + j] * out[r * D + j];
}

/* dout = gate * dh, dgate += dh * out */
static void gated_back(const struct dit *d, const float *dh, const float *out, const float *gate,
                       float *dgate, size_t stride, size_t n, float *dout)
{
    size_t D = d->s.width;
    for (size_t r = 0; r < n * d->s.tokens; r++)
        for (size_t j = 0; j < D; j++) {
            size_t i = r * D + j, at = r / d->s.tokens * stride + j;
            dgate[at] += dh[i] * out[i];
            dout[i] = gate[at] * dh[i];
        }
}

/* ---- attention among the latents of a sample ---- */

/* The values of head h in a row of qkv; which: 0 q, 1 k, 2 v. */
static float *part(const struct dit *d, float *qkv, size_t row, size_t h, int which)
{
    size_t D = d->s.width;
    return qkv + row * 3 * D + (size_t)which * D + h * (D / d->s.heads);
}

static double dot(const float *a, const float *b, size_t n)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += (double)a[i] * b[i];
    return sum;
}

static void add(float *to, float by, const float *x, size_t n)
{
    for (size_t i = 0; i < n; i++)
        to[i] += by * x[i];
}

static void softmax(float *x, size_t n)
{
    float top = x[0];
    double sum = 0;
    for (size_t i = 1; i < n; i++)
        top = fmaxf(top, x[i]);
    for (size_t i = 0; i < n; i++)
        sum += x[i] = expf(x[i] - top);
    for (size_t i = 0; i < n; i++)
        x[i] = (float)(x[i] / sum);
}

static void attend(const struct dit *d, struct dit_tape *y, size_t n)
{
    size_t N = d->s.tokens, H = d->s.heads, D = d->s.width, E = D / H;
    memset(y->y, 0, n * N * D * sizeof *y->y);
    for (size_t i = 0; i < n * H * N; i++) {
        size_t first = i / (H * N) * N, h = i / N % H, row = first + i % N;
        float *share = y->share + i * N;
        for (size_t s = 0; s < N; s++)
            share[s] = (float)(dot(part(d, y->qkv, row, h, 0), part(d, y->qkv, first + s, h, 1),
                                   E) / sqrt((double)E));
        softmax(share, N);
        for (size_t s = 0; s < N; s++)
            add(y->y + row * D + h * E, share[s], part(d, y->qkv, first + s, h, 2), E);
    }
}

/* dqkv from the gradient of y. */
static void attend_back(const struct dit *d, struct dit_tape *y, size_t n, const float *dy,
                        float *dqkv)
{
    size_t N = d->s.tokens, H = d->s.heads, D = d->s.width, E = D / H;
    float scale = (float)(1 / sqrt((double)E));
    memset(dqkv, 0, n * N * 3 * D * sizeof *dqkv);
    for (size_t i = 0; i < n * H * N; i++) {
        size_t first = i / (H * N) * N, h = i / N % H, row = first + i % N;
        const float *share = y->share + i * N, *g = dy + row * D + h * E;
        double all = dot(g, y->y + row * D + h * E, E); /* sum of share * its gradient */
        for (size_t s = 0; s < N; s++) {
            float *v = part(d, y->qkv, first + s, h, 2);
            float ds = (float)(share[s] * (dot(g, v, E) - all)) * scale;
            add(part(d, dqkv, first + s, h, 2), share[s], g, E);
            add(part(d, dqkv, row, h, 0), ds, part(d, y->qkv, first + s, h, 1), E);
            add(part(d, dqkv, first + s, h, 1), ds, part(d, y->qkv, row, h, 0), E);
        }
    }
}

/* ---- whole passes ---- */

/* cact = silu(c) of the times. Times are scaled by 1000, as DiT counts steps. */
static void condition(struct dit *d, const double *times, size_t n)
{
    size_t half = DIT_WAVES / 2, D = d->s.width;
    for (size_t b = 0; b < n; b++)
        for (size_t j = 0; j < half; j++) {
            double angle = 1000 * times[b] * exp(-log(1e4) * (double)j / (double)half);
            d->waves[b * DIT_WAVES + j] = (float)cos(angle);
            d->waves[b * DIT_WAVES + half + j] = (float)sin(angle);
        }
    forward(d, &d->time1, d->waves, n, d->t1);
    silu(d->t1, d->t1act, n * D);
    forward(d, &d->time2, d->t1act, n, d->c);
    silu(d->c, d->cact, n * D);
}

static void layer(struct dit *d, size_t l, size_t n)
{
    const struct dit_block *w = &d->block[l];
    struct dit_tape *y = &d->tape[l];
    size_t D = d->s.width, T = n * d->s.tokens, stride = 6 * D;
    forward(d, &w->mod, d->cact, n, y->mod);
    norm(d, &y->norm[0], d->h, y->mod, stride, n);
    forward(d, &w->qkv, y->norm[0].in, T, y->qkv);
    attend(d, y, n);
    forward(d, &w->o, y->y, T, y->out[0]);
    add_gated(d, d->h, y->out[0], y->mod + 2 * D, stride, n);
    norm(d, &y->norm[1], d->h, y->mod + 3 * D, stride, n);
    forward(d, &w->up, y->norm[1].in, T, y->up);
    gelu(y->up, y->act, T * 4 * D);
    forward(d, &w->down, y->act, T, y->out[1]);
    add_gated(d, d->h, y->out[1], y->mod + 5 * D, stride, n);
}

static void layer_back(struct dit *d, size_t l, size_t n)
{
    const struct dit_block *w = &d->block[l];
    struct dit_tape *y = &d->tape[l];
    size_t D = d->s.width, T = n * d->s.tokens, stride = 6 * D;
    memset(d->dmod, 0, n * stride * sizeof *d->dmod);
    gated_back(d, d->dh, y->out[1], y->mod + 5 * D, d->dmod + 5 * D, stride, n, d->dn);
    linear_back(d, &w->down, y->act, T, d->dn, d->dwide);
    gelu_back(y->up, d->dwide, T * 4 * D);
    linear_back(d, &w->up, y->norm[1].in, T, d->dwide, d->dn);
    norm_back(d, &y->norm[1], d->dn, y->mod + 3 * D, d->dmod + 3 * D, stride, n, d->dh);
    gated_back(d, d->dh, y->out[0], y->mod + 2 * D, d->dmod + 2 * D, stride, n, d->dn);
    linear_back(d, &w->o, y->y, T, d->dn, d->dwide);
    float *dqkv = d->dwide + T * D;
    attend_back(d, y, n, d->dwide, dqkv);
    linear_back(d, &w->qkv, y->norm[0].in, T, dqkv, d->dn);
    norm_back(d, &y->norm[0], d->dn, y->mod, d->dmod, stride, n, d->dh);
    linear_back(d, &w->mod, d->cact, n, d->dmod, d->dt);
    add(d->dc, 1, d->dt, n * D);
}

void dit_forward(struct dit *d, const float *x, const double *times, size_t n, float *v)
{
    size_t D = d->s.width, N = d->s.tokens, T = n * N;
    condition(d, times, n);
    forward(d, &d->in, x, T, d->h);
    for (size_t b = 0; b < n; b++)
        add(d->h + b * N * D, 1, d->w + d->position, N * D);
    for (size_t l = 0; l < d->s.layers; l++)
        layer(d, l, n);
    forward(d, &d->mod, d->cact, n, d->top_mod);
    norm(d, &d->top, d->h, d->top_mod, 2 * D, n);
    forward(d, &d->out, d->top.in, T, v);
}

void dit_backward(struct dit *d, size_t n, const float *dv)
{
    size_t D = d->s.width, N = d->s.tokens, T = n * N;
    memset(d->dh, 0, T * D * sizeof *d->dh);
    memset(d->dmod, 0, n * 2 * D * sizeof *d->dmod);
    linear_back(d, &d->out, d->top.in, T, dv, d->dn);
    norm_back(d, &d->top, d->dn, d->top_mod, d->dmod, 2 * D, n, d->dh);
    linear_back(d, &d->mod, d->cact, n, d->dmod, d->dc);
    for (size_t l = d->s.layers; l--;)
        layer_back(d, l, n);
    linear_back(d, &d->in, d->x, T, d->dh, NULL);
    memset(d->g + d->position, 0, N * D * sizeof *d->g);
    for (size_t b = 0; b < n; b++)
        add(d->g + d->position, 1, d->dh + b * N * D, N * D);
    silu_back(d->c, d->dc, n * D);
    linear_back(d, &d->time2, d->t1act, n, d->dc, d->dt);
    silu_back(d->t1, d->dt, n * D);
    linear_back(d, &d->time1, d->waves, n, d->dt, NULL);
}
