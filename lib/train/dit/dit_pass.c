/* dit_pass.c - a transformer over latents, forward and backward; see dit.h for the equations.
 *
 * The forward pass keeps the values that the backward pass reads. The backward pass mirrors the
 * forward pass line by line. Products use the gemm of the back end. All else is plain loops,
 * because a text has few latents. tests/model/test-dit.c checks the gradients against finite
 * differences. */
#include "lib/train/dit/dit_pass.h"

#include <math.h>
#include <string.h>

static const double pi = 3.14159265358979323846;

/* ---- linear layers ---- */

static void linear_forward(const struct dit *dit, const struct dit_linear *linear, const float *x,
                           size_t rows, float *y)
{
    const float *bias = dit->w + linear->bias;
    for (size_t row = 0; row < rows; row++)
        memcpy(y + row * linear->out, bias, linear->out * sizeof *y);
    const struct gemm gemm = {.M = rows, .N = linear->out, .K = linear->in, .a = {x, linear->in, 1},
                              .b = {dit->w + linear->w, linear->in, 1}, .c = y, .plus = y,
                              .ldc = linear->out, .dtype = DTYPE_F32};
    train_ops_of(dit->b->ops)->gemm(dit->b, &gemm, 1, dit->work);
}

/* Sets the gradients of W and bias in dit->g, and dx, the gradient of x, unless dx is NULL. */
static void linear_back(const struct dit *dit, const struct dit_linear *linear, const float *x,
                        size_t rows, const float *dy, float *dx)
{
    float *bias = dit->g + linear->bias;
    const struct gemm gemm[2] = {{.M = linear->out, .N = linear->in, .K = rows,
                                  .a = {dy, 1, linear->out}, .b = {x, 1, linear->in},
                                  .c = dit->g + linear->w, .ldc = linear->in, .dtype = DTYPE_F32},
                                 {.M = rows, .N = linear->in, .K = linear->out,
                                  .a = {dy, linear->out, 1},
                                  .b = {dit->w + linear->w, 1, linear->in}, .c = dx,
                                  .ldc = linear->in, .dtype = DTYPE_F32}};
    train_ops_of(dit->b->ops)->gemm(dit->b, gemm, dx ? 2 : 1, dit->work);
    memset(bias, 0, linear->out * sizeof *bias);
    for (size_t row = 0; row < rows; row++)
        for (size_t j = 0; j < linear->out; j++)
            bias[j] += dy[row * linear->out + j];
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

/* dx *= silu'(x), with silu'(x) = s (1 + x (1 - s)), s = sigmoid(x). */
static void silu_back(const float *x, float *dx, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        double s = sigmoid(x[i]);
        dx[i] = (float)(dx[i] * s * (1 + x[i] * (1 - s)));
    }
}

/* The tanh form of GELU. Source: Hendrycks, Gimpel 2016 (arXiv 1606.08415), section 2. */
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

/* dit_norm->in = hat (1 + scale) + shift, where hat is the LayerNorm of from[n * tokens, D]. Shift
 * [D] and then scale [D] of sample b begin at mod + b * stride. */
static void norm(const struct dit *dit, struct dit_norm *dit_norm, const float *from,
                 const float *mod, size_t stride, size_t n)
{
    size_t D = dit->s.width;
    for (size_t row = 0; row < n * dit->s.tokens; row++) {
        const float *x = from + row * D, *shift = mod + row / dit->s.tokens * stride,
                    *scale = shift + D;
        double mean = 0, square = 0;
        for (size_t j = 0; j < D; j++)
            mean += x[j];
        mean /= (double)D;
        for (size_t j = 0; j < D; j++)
            square += (x[j] - mean) * (x[j] - mean);
        double inv = 1 / sqrt(square / (double)D + 1e-6);
        dit_norm->inv[row] = (float)inv;
        for (size_t j = 0; j < D; j++) {
            float hat = (float)((x[j] - mean) * inv);
            dit_norm->hat[row * D + j] = hat;
            dit_norm->in[row * D + j] = hat * (1 + scale[j]) + shift[j];
        }
    }
}

/* Backward pass of norm(), given din, the gradient of norm->in. Adds the gradient of `from` to dh,
 * and the gradients of shift and scale to dmod. */
static void norm_back(const struct dit *dit, const struct dit_norm *norm, const float *din,
                      const float *mod, float *dmod, size_t stride, size_t n, float *dh)
{
    size_t D = dit->s.width;
    for (size_t row = 0; row < n * dit->s.tokens; row++) {
        size_t at = row / dit->s.tokens * stride;
        const float *hat = norm->hat + row * D, *dy = din + row * D, *scale = mod + at + D;
        float *dshift = dmod + at, *dscale = dshift + D;
        double mean = 0, along = 0;
        for (size_t j = 0; j < D; j++) {
            double grad = dy[j] * (1.0 + scale[j]);
            mean += grad;
            along += grad * hat[j];
            dshift[j] += dy[j];
            dscale[j] += dy[j] * hat[j];
        }
        for (size_t j = 0; j < D; j++) {
            double grad = dy[j] * (1.0 + scale[j]);
            dh[row * D + j] += (float)(norm->inv[row] *
                                       (grad - (mean + hat[j] * along) / (double)D));
        }
    }
}

/* h += gate * out, elementwise. The gate [D] of sample b begins at gate + b * stride. */
static void add_gated(const struct dit *dit, float *h, const float *out, const float *gate,
                      size_t stride, size_t n)
{
    size_t D = dit->s.width;
    for (size_t row = 0; row < n * dit->s.tokens; row++)
        for (size_t j = 0; j < D; j++)
            h[row * D + j] += gate[row / dit->s.tokens * stride + j] * out[row * D + j];
}

/* Backward pass of add_gated(): dout = gate * dh, dgate += dh * out. */
static void gated_back(const struct dit *dit, const float *dh, const float *out, const float *gate,
                       float *dgate, size_t stride, size_t n, float *dout)
{
    size_t D = dit->s.width;
    for (size_t row = 0; row < n * dit->s.tokens; row++)
        for (size_t j = 0; j < D; j++) {
            size_t i = row * D + j, at = row / dit->s.tokens * stride + j;
            dgate[at] += dh[i] * out[i];
            dout[i] = gate[at] * dh[i];
        }
}

/* ---- attention among the latents of a sample ---- */

/* The values of head h in a row of qkv [T, 3D]. which: 0 query, 1 key, 2 value. */
static float *part(const struct dit *dit, float *qkv, size_t row, size_t h, int which)
{
    size_t D = dit->s.width;
    return qkv + row * 3 * D + (size_t)which * D + h * (D / dit->s.heads);
}

static double dot(const float *a, const float *b, size_t n)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += (double)a[i] * b[i];
    return sum;
}

/* to += by * x. */
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

static void attend(const struct dit *dit, struct dit_tape *tape, size_t n)
{
    size_t tokens = dit->s.tokens, H = dit->s.heads, D = dit->s.width, E = D / H;
    memset(tape->y, 0, n * tokens * D * sizeof *tape->y);
    for (size_t i = 0; i < n * H * tokens; i++) {
        size_t first = i / (H * tokens) * tokens, h = i / tokens % H, row = first + i % tokens;
        float *share = tape->share + i * tokens;
        for (size_t s = 0; s < tokens; s++)
            share[s] = (float)(dot(part(dit, tape->qkv, row, h, 0),
                                   part(dit, tape->qkv, first + s, h, 1), E) / sqrt((double)E));
        softmax(share, tokens);
        for (size_t s = 0; s < tokens; s++)
            add(tape->y + row * D + h * E, share[s], part(dit, tape->qkv, first + s, h, 2), E);
    }
}

/* dqkv = the gradient of tape->qkv, given dy, the gradient of tape->y. */
static void attend_back(const struct dit *dit, struct dit_tape *tape, size_t n, const float *dy,
                        float *dqkv)
{
    size_t tokens = dit->s.tokens, H = dit->s.heads, D = dit->s.width, E = D / H;
    float scale = (float)(1 / sqrt((double)E));
    memset(dqkv, 0, n * tokens * 3 * D * sizeof *dqkv);
    for (size_t i = 0; i < n * H * tokens; i++) {
        size_t first = i / (H * tokens) * tokens, head = i / tokens % H, row = first + i % tokens;
        const float *share = tape->share + i * tokens, *grad = dy + row * D + head * E;
        double all = dot(grad, tape->y + row * D + head * E, E); /* sum of share * its gradient */
        for (size_t key = 0; key < tokens; key++) {
            float *values = part(dit, tape->qkv, first + key, head, 2);
            float ds = (float)(share[key] * (dot(grad, values, E) - all)) * scale;
            add(part(dit, dqkv, first + key, head, 2), share[key], grad, E);
            add(part(dit, dqkv, row, head, 0), ds, part(dit, tape->qkv, first + key, head, 1), E);
            add(part(dit, dqkv, first + key, head, 1), ds, part(dit, tape->qkv, row, head, 0), E);
        }
    }
}

/* ---- whole passes ---- */

/* Sets dit->c, the embedding c of the times (dit.h), and dit->cact = silu(c). Times are in 0..1;
 * they are multiplied by 1000, because DiT embeds step numbers up to 1000. */
static void condition(struct dit *dit, const double *times, size_t n)
{
    size_t half = DIT_WAVES / 2, D = dit->s.width;
    for (size_t b = 0; b < n; b++)
        for (size_t j = 0; j < half; j++) {
            double angle = 1000 * times[b] * exp(-log(1e4) * (double)j / (double)half);
            dit->waves[b * DIT_WAVES + j] = (float)cos(angle);
            dit->waves[b * DIT_WAVES + half + j] = (float)sin(angle);
        }
    linear_forward(dit, &dit->time1, dit->waves, n, dit->t1);
    silu(dit->t1, dit->t1act, n * D);
    linear_forward(dit, &dit->time2, dit->t1act, n, dit->c);
    silu(dit->c, dit->cact, n * D);
}

static void layer(struct dit *dit, size_t at, size_t n)
{
    const struct dit_block *block = &dit->block[at];
    struct dit_tape *tape = &dit->tape[at];
    size_t D = dit->s.width, T = n * dit->s.tokens, stride = 6 * D;
    linear_forward(dit, &block->mod, dit->cact, n, tape->mod);
    norm(dit, &tape->norm[0], dit->h, tape->mod, stride, n);
    linear_forward(dit, &block->qkv, tape->norm[0].in, T, tape->qkv);
    attend(dit, tape, n);
    linear_forward(dit, &block->o, tape->y, T, tape->out[0]);
    add_gated(dit, dit->h, tape->out[0], tape->mod + 2 * D, stride, n);
    norm(dit, &tape->norm[1], dit->h, tape->mod + 3 * D, stride, n);
    linear_forward(dit, &block->up, tape->norm[1].in, T, tape->up);
    gelu(tape->up, tape->act, T * 4 * D);
    linear_forward(dit, &block->down, tape->act, T, tape->out[1]);
    add_gated(dit, dit->h, tape->out[1], tape->mod + 5 * D, stride, n);
}

static void layer_back(struct dit *dit, size_t layer, size_t n)
{
    const struct dit_block *block = &dit->block[layer];
    struct dit_tape *tape = &dit->tape[layer];
    size_t D = dit->s.width, T = n * dit->s.tokens, stride = 6 * D;
    memset(dit->dmod, 0, n * stride * sizeof *dit->dmod);
    gated_back(dit, dit->dh, tape->out[1], tape->mod + 5 * D, dit->dmod + 5 * D, stride, n,
               dit->dn);
    linear_back(dit, &block->down, tape->act, T, dit->dn, dit->dwide);
    gelu_back(tape->up, dit->dwide, T * 4 * D);
    linear_back(dit, &block->up, tape->norm[1].in, T, dit->dwide, dit->dn);
    norm_back(dit, &tape->norm[1], dit->dn, tape->mod + 3 * D, dit->dmod + 3 * D, stride, n,
              dit->dh);
    gated_back(dit, dit->dh, tape->out[0], tape->mod + 2 * D, dit->dmod + 2 * D, stride, n,
               dit->dn);
    linear_back(dit, &block->o, tape->y, T, dit->dn, dit->dwide);
    float *dqkv = dit->dwide + T * D;
    attend_back(dit, tape, n, dit->dwide, dqkv);
    linear_back(dit, &block->qkv, tape->norm[0].in, T, dqkv, dit->dn);
    norm_back(dit, &tape->norm[0], dit->dn, tape->mod, dit->dmod, stride, n, dit->dh);
    linear_back(dit, &block->mod, dit->cact, n, dit->dmod, dit->dt);
    add(dit->dc, 1, dit->dt, n * D);
}

void dit_forward(struct dit *dit, const float *x, const double *times, size_t n, float *v)
{
    size_t D = dit->s.width, tokens = dit->s.tokens, T = n * tokens;
    condition(dit, times, n);
    linear_forward(dit, &dit->in, x, T, dit->h);
    for (size_t b = 0; b < n; b++)
        add(dit->h + b * tokens * D, 1, dit->w + dit->position, tokens * D);
    for (size_t at = 0; at < dit->s.layers; at++)
        layer(dit, at, n);
    linear_forward(dit, &dit->mod, dit->cact, n, dit->top_mod);
    norm(dit, &dit->top, dit->h, dit->top_mod, 2 * D, n);
    linear_forward(dit, &dit->out, dit->top.in, T, v);
}

void dit_backward(struct dit *dit, size_t n, const float *dv)
{
    size_t D = dit->s.width, tokens = dit->s.tokens, T = n * tokens;
    memset(dit->dh, 0, T * D * sizeof *dit->dh);
    memset(dit->dmod, 0, n * 2 * D * sizeof *dit->dmod);
    linear_back(dit, &dit->out, dit->top.in, T, dv, dit->dn);
    norm_back(dit, &dit->top, dit->dn, dit->top_mod, dit->dmod, 2 * D, n, dit->dh);
    linear_back(dit, &dit->mod, dit->cact, n, dit->dmod, dit->dc);
    for (size_t layer = dit->s.layers; layer--;)
        layer_back(dit, layer, n);
    linear_back(dit, &dit->in, dit->x, T, dit->dh, NULL);
    memset(dit->g + dit->position, 0, tokens * D * sizeof *dit->g);
    for (size_t text = 0; text < n; text++)
        add(dit->g + dit->position, 1, dit->dh + text * tokens * D, tokens * D);
    silu_back(dit->c, dit->dc, n * D);
    linear_back(dit, &dit->time2, dit->t1act, n, dit->dc, dit->dt);
    silu_back(dit->t1, dit->dt, n * D);
    linear_back(dit, &dit->time1, dit->waves, n, dit->dt, NULL);
}
