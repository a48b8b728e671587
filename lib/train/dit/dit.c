/* dit.c - see dit.h: memory, training and files of a transformer over latents. dit_pass.c computes
 * the passes. */
#include "lib/train/dit.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/finite.h"
#include "lib/base/mem.h"
#include "lib/base/rng.h"
#include "lib/checkpoint/safetensors.h"
#include "lib/record/json.h"
#include "lib/train/dit/dit_pass.h"

static const double pi = 3.14159265358979323846;

/* ---- memory ---- */

enum { VALUES = 5 /* weights, gradients, moments, average */ };

/* Places a linear layer after the layers placed so far. */
static struct dit_linear place(size_t *at, size_t in, size_t out)
{
    struct dit_linear l = {*at, *at + in * out, in, out};
    *at += in * out + out;
    return l;
}

static void lay_out(struct dit *d)
{
    const struct dit_shape *s = &d->s;
    size_t D = s->width, at = 0;
    d->in = place(&at, s->values, D);
    d->position = at;
    at += s->tokens * D;
    d->time1 = place(&at, DIT_WAVES, D);
    d->time2 = place(&at, D, D);
    for (size_t l = 0; l < s->layers; l++)
        d->block[l] = (struct dit_block){place(&at, D, 6 * D), place(&at, D, 3 * D),
                                         place(&at, D, D), place(&at, D, 4 * D),
                                         place(&at, 4 * D, D)};
    d->mod = place(&at, D, 2 * D);
    d->out = place(&at, D, s->values);
    d->n = at;
}

/* Cuts the arrays of a pass from `base`; NULL: only counts. Returns the number of floats. */
static size_t cut(struct dit *d, float *base)
{
    size_t D = d->s.width, B = d->batch, T = B * d->s.tokens, at = 0;
    struct take {
        float **to;
        size_t n;
    };
    const struct take own[] = {
        {&d->waves, B * DIT_WAVES}, {&d->t1, B * D}, {&d->t1act, B * D}, {&d->c, B * D},
        {&d->cact, B * D}, {&d->top_mod, B * 2 * D}, {&d->top.hat, T * D}, {&d->top.inv, T},
        {&d->top.in, T * D}, {&d->x, T * d->s.values}, {&d->v, T * d->s.values},
        {&d->aim, T * d->s.values}, {&d->h, T * D}, {&d->dh, T * D}, {&d->dn, T * D},
        {&d->dwide, T * 4 * D}, {&d->dmod, B * 6 * D}, {&d->dc, B * D}, {&d->dt, B * D}};
    for (size_t i = 0; i < sizeof own / sizeof *own; i++) {
        *own[i].to = base ? base + at : NULL;
        at += own[i].n;
    }
    for (size_t l = 0; l < d->s.layers; l++) {
        struct dit_tape *y = &d->tape[l];
        const struct take parts[] = {
            {&y->mod, B * 6 * D}, {&y->norm[0].hat, T * D}, {&y->norm[0].inv, T},
            {&y->norm[0].in, T * D}, {&y->norm[1].hat, T * D}, {&y->norm[1].inv, T},
            {&y->norm[1].in, T * D}, {&y->out[0], T * D}, {&y->out[1], T * D},
            {&y->qkv, T * 3 * D}, {&y->share, T * d->s.heads * d->s.tokens}, {&y->y, T * D},
            {&y->up, T * 4 * D}, {&y->act, T * 4 * D}};
        for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
            *parts[i].to = base ? base + at : NULL;
            at += parts[i].n;
        }
    }
    return at;
}

/* Bytes of work for the largest product of a linear layer over `rows` rows. */
static size_t product_work(const struct dit *d, size_t rows, size_t in, size_t out)
{
    const struct train_ops *ops = train_ops_of(d->b->ops);
    size_t y = ops->gemm_work(d->b, rows, out, in), w = ops->gemm_work(d->b, out, in, rows);
    size_t x = ops->gemm_work(d->b, rows, in, out);
    y = w > y ? w : y;
    return x > y ? x : y;
}

static size_t most_work(const struct dit *d)
{
    size_t D = d->s.width, T = d->batch * d->s.tokens, most = 0;
    const size_t shape[][3] = {{T, d->s.values, D}, {T, D, 3 * D}, {T, D, D}, {T, D, 4 * D},
                               {T, 4 * D, D}, {T, D, d->s.values}, {d->batch, D, 6 * D},
                               {d->batch, DIT_WAVES, D}};
    for (size_t i = 0; i < sizeof shape / sizeof *shape; i++) {
        size_t bytes = product_work(d, shape[i][0], shape[i][1], shape[i][2]);
        most = bytes > most ? bytes : most;
    }
    return most;
}

static void draw(const struct dit *d, const struct dit_linear *l, uint64_t seed)
{
    struct rng rng = {seed, l->w, 0};
    for (size_t i = 0; i < l->in * l->out; i++)
        d->w[l->w + i] = (float)(rng_normal(&rng) / sqrt((double)l->in));
}

/* The modulations stay 0, so the gates are 0 too. */
static void draw_all(struct dit *d, uint64_t seed)
{
    const struct dit_linear *own[] = {&d->in, &d->time1, &d->time2, &d->out};
    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        draw(d, own[i], seed);
    for (size_t l = 0; l < d->s.layers; l++) {
        const struct dit_block *y = &d->block[l];
        const struct dit_linear *linear[] = {&y->qkv, &y->o, &y->up, &y->down};
        for (size_t i = 0; i < sizeof linear / sizeof *linear; i++)
            draw(d, linear[i], seed);
    }
    struct rng rng = {seed, d->position, 0};
    for (size_t i = 0; i < d->s.tokens * d->s.width; i++)
        d->w[d->position + i] = (float)(0.02 * rng_normal(&rng));
    memcpy(d->average, d->w, d->n * sizeof *d->w);
}

static float *take(struct dit *d, size_t floats)
{
    return d->b->ops->alloc(d->b, floats * sizeof(float), MEMORY_ACTIVATIONS);
}

struct dit *dit_make(const struct dit_shape *s, struct backend *b, uint64_t seed, size_t batch,
                     struct err *e)
{
    if (*b->name) {
        err_set(e, EXIT_NO_DEVICE, "a learned prior of latents is computed on the processor: "
                "expected --device cpu, got %s", b->ops->name);
        return NULL;
    }
    struct dit *d = mem_zero(1, sizeof *d);
    *d = (struct dit){.s = *s, .b = b, .batch = batch};
    d->block = mem_zero(s->layers, sizeof *d->block);
    d->tape = mem_zero(s->layers, sizeof *d->tape);
    d->times = mem_zero(batch, sizeof *d->times);
    d->mean = mem_zero(s->tokens * s->values, sizeof *d->mean);
    d->deviation = mem_zero(s->tokens * s->values, sizeof *d->deviation);
    for (size_t i = 0; i < s->tokens * s->values; i++)
        d->deviation[i] = 1;
    lay_out(d);
    float **values[VALUES] = {&d->w, &d->g, &d->m1, &d->m2, &d->average};
    int lacks = 0;
    for (size_t i = 0; i < VALUES; i++)
        lacks |= !(*values[i] = take(d, d->n));
    lacks |= !(d->room = take(d, cut(d, NULL))) ||
             !(d->work = b->ops->alloc(b, most_work(d), MEMORY_ACTIVATIONS));
    if (lacks) {
        dit_free(d);
        err_set(e, EXIT_FAILED_RECORDS, "out of memory for a transformer over %zu latents, %zu at "
                "a time", s->tokens, batch);
        return NULL;
    }
    cut(d, d->room);
    draw_all(d, seed);
    return d;
}

void dit_free(struct dit *d)
{
    if (!d)
        return;
    void *own[] = {d->w, d->g, d->m1, d->m2, d->average, d->room, d->work};
    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        d->b->ops->free(d->b, own[i]);
    free(d->block);
    free(d->tape);
    free(d->times);
    free(d->mean);
    free(d->deviation);
    free(d);
}

size_t dit_bytes(const struct dit *d)
{
    struct dit sized = *d; /* a copy: cut() overwrites the pointers */
    struct dit_tape *tape = mem_zero(d->s.layers, sizeof *tape);
    sized.tape = tape;
    size_t room = cut(&sized, NULL) * sizeof(float);
    free(tape);
    return VALUES * memory_rounded(d->n * sizeof(float)) + memory_rounded(room) +
           memory_rounded(most_work(d));
}

size_t dit_parameters(const struct dit *d)
{
    return d->n;
}

const struct dit_shape *dit_shape_of(const struct dit *d)
{
    return &d->s;
}

size_t dit_batch(const struct dit *d)
{
    return d->batch;
}

int64_t dit_step(const struct dit *d)
{
    return d->step;
}

float *dit_values(struct dit *d)
{
    return d->w;
}

const float *dit_gradients(const struct dit *d)
{
    return d->g;
}

void dit_use_average(struct dit *d)
{
    memcpy(d->w, d->average, d->n * sizeof *d->w);
}

/* ---- training ---- */

void dit_predict(struct dit *d, const float *x, const double *t, size_t n, float *v)
{
    dit_forward(d, x, t, n, v);
}

double dit_loss(struct dit *d, const float *z, size_t n, uint64_t seed, uint64_t draw_at,
                int gradients)
{
    size_t each = d->s.tokens * d->s.values, all = n * each;
    struct rng rng = {seed, draw_at, 0};
    for (size_t b = 0; b < n; b++) {
        /* one time in each n-th part of 0..1, so that a batch covers the interval */
        d->times[b] = ((double)b + rng_uniform(&rng)) / (double)n;
        double alpha = cos(pi * d->times[b] / 2), s = sin(pi * d->times[b] / 2);
        for (size_t i = b * each; i < (b + 1) * each; i++) {
            double noise = rng_normal(&rng);
            d->x[i] = (float)(alpha * z[i] + s * noise);
            d->aim[i] = (float)(alpha * noise - s * z[i]);
        }
    }
    dit_forward(d, d->x, d->times, n, d->v);
    double sum = 0;
    for (size_t i = 0; i < all; i++) {
        double off = (double)d->v[i] - d->aim[i];
        sum += off * off;
        d->aim[i] = (float)(2 * off / (double)all);
    }
    if (gradients)
        dit_backward(d, n, d->aim);
    return sum / (double)all;
}

double dit_update(struct dit *d, double rate, double clip, double keep)
{
    const struct train_ops *train = train_ops_of(d->b->ops);
    double work[SQUARES_PARTS], norm = sqrt(train->squares(d->b, d->g, d->n, work));
    struct adamw a = {.rate = rate, .beta1 = 0.9, .beta2 = 0.95, .eps = 1e-8, .step = ++d->step,
                      .grad_scale = norm > clip ? clip / norm : 1};
    train->adamw(d->b, d->w, d->m1, d->m2, d->g, d->n, &a);
    for (size_t i = 0; i < d->n; i++)
        d->average[i] = (float)(keep * d->average[i] + (1 - keep) * d->w[i]);
    return norm;
}

/* ---- mean and deviation of the training set ---- */

void dit_standardize(struct dit *d, const float *z, size_t n)
{
    size_t each = d->s.tokens * d->s.values;
    for (size_t i = 0; i < each; i++) {
        double sum = 0, square = 0;
        for (size_t b = 0; b < n; b++)
            sum += z[b * each + i];
        for (size_t b = 0; b < n; b++)
            square += pow(z[b * each + i] - sum / (double)n, 2);
        d->mean[i] = (float)(sum / (double)n);
        d->deviation[i] = (float)fmax(1e-6, sqrt(square / (double)n));
    }
}

void dit_to_standard(const struct dit *d, float *z, size_t n)
{
    size_t each = d->s.tokens * d->s.values;
    for (size_t i = 0; i < n * each; i++)
        z[i] = (z[i] - d->mean[i % each]) / d->deviation[i % each];
}

void dit_from_standard(const struct dit *d, float *z, size_t n)
{
    size_t each = d->s.tokens * d->s.values;
    for (size_t i = 0; i < n * each; i++)
        z[i] = z[i] * d->deviation[i % each] + d->mean[i % each];
}

double dit_log_deviation(const struct dit *d)
{
    double sum = 0;
    for (size_t i = 0; i < d->s.tokens * d->s.values; i++)
        sum += log(d->deviation[i]);
    return sum;
}

/* ---- files ---- */

/* The arrays of a file. Every file has the first FILE_ALWAYS, a whole one has all. */
struct dit_part {
    const char *name;
    float *data;
    size_t n;
};
enum { FILE_PARTS = 6, FILE_ALWAYS = 3 };

static void parts_of(const struct dit *d, struct dit_part list[FILE_PARTS])
{
    size_t each = d->s.tokens * d->s.values;
    const struct dit_part all[FILE_PARTS] = {
        {"average", d->average, d->n}, {"mean", d->mean, each},
        {"deviation", d->deviation, each}, {"values", d->w, d->n},
        {"moment_1", d->m1, d->n}, {"moment_2", d->m2, d->n}};
    memcpy(list, all, sizeof all);
}

static const struct {
    const char *key;
    size_t offset;
} shape_keys[] = {{"tokens", offsetof(struct dit_shape, tokens)},
                  {"values", offsetof(struct dit_shape, values)},
                  {"width", offsetof(struct dit_shape, width)},
                  {"layers", offsetof(struct dit_shape, layers)},
                  {"heads", offsetof(struct dit_shape, heads)}};
enum { SHAPE_KEYS = sizeof shape_keys / sizeof *shape_keys, SHAPE_MOST = 4096 };

static json_t *note_of(const struct dit *d)
{
    json_t *note = json_object();
    for (size_t i = 0; i < SHAPE_KEYS; i++) {
        size_t v = *(const size_t *)((const char *)&d->s + shape_keys[i].offset);
        json_object_set_new(note, shape_keys[i].key, json_integer((json_int_t)v));
    }
    json_object_set_new(note, "step", json_integer(d->step));
    return note;
}

int dit_save(const struct dit *d, const char *path, int whole, struct err *e)
{
    struct dit_part part[FILE_PARTS];
    struct tensor list[FILE_PARTS + 1];
    size_t n = whole ? FILE_PARTS : FILE_ALWAYS;
    json_t *note = note_of(d);
    char *text = json_dumps(note, JSON_COMPACT);
    parts_of(d, part);
    for (size_t i = 0; i < n; i++)
        list[i] = (struct tensor){.name = (char *)(uintptr_t)part[i].name, .dtype = "F32",
                                  .rank = 1, .shape = {part[i].n},
                                  .bytes = part[i].n * sizeof(float),
                                  .data = (const unsigned char *)part[i].data};
    list[n] = (struct tensor){.name = (char *)(uintptr_t) "note", .dtype = "U8", .rank = 1,
                              .shape = {strlen(text)}, .bytes = strlen(text),
                              .data = (const unsigned char *)text};
    int bad = safetensors_write(path, list, n + 1, NULL, e);
    free(text);
    json_decref(note);
    return bad;
}

static int read_note(const struct tensors *f, const char *path, struct dit_shape *s, int64_t *step,
                     struct err *e)
{
    const struct tensor *t = safetensors_find(f, "note");
    if (!t)
        return err_set(e, EXIT_BAD_DATA, "%s: no 'note': not a prior over latents", path);
    json_t *note = json_bytes((const char *)t->data, t->bytes, path, e);
    int bad = !note || json_int(note, path, "step", 0, INT64_MAX, step, e);
    for (size_t i = 0; !bad && i < SHAPE_KEYS; i++) {
        int64_t v = 0;
        bad = json_int(note, path, shape_keys[i].key, 1, SHAPE_MOST, &v, e);
        *(size_t *)((char *)s + shape_keys[i].offset) = (size_t)v;
    }
    json_decref(note);
    if (!bad && s->width % s->heads)
        bad = err_set(e, EXIT_BAD_DATA, "%s: heads: expected a divisor of width %zu, got %zu", path,
                      s->width, s->heads);
    return bad ? -1 : 0;
}

/* Checked before anything of that shape is allocated. */
static int check_size(const struct tensors *f, const char *path, const struct dit_shape *s,
                      struct err *e)
{
    struct dit d = {.s = *s};
    d.block = mem_zero(s->layers, sizeof *d.block);
    lay_out(&d);
    free(d.block);
    const struct tensor *t = safetensors_find(f, "average");
    if (t && !strcmp(t->dtype, "F32") && t->bytes == d.n * sizeof(float))
        return 0;
    return err_set(e, EXIT_BAD_DATA, "%s: average: expected F32 [%zu] for its shape", path, d.n);
}

static int read_parts(struct dit *d, const struct tensors *f, const char *path, struct err *e)
{
    struct dit_part part[FILE_PARTS];
    parts_of(d, part);
    memcpy(d->w, safetensors_find(f, "average")->data, d->n * sizeof *d->w);
    for (size_t i = 0; i < FILE_PARTS; i++) {
        const struct tensor *t = safetensors_find(f, part[i].name);
        if (!t && i >= FILE_ALWAYS)
            continue;
        if (!t || strcmp(t->dtype, "F32") || t->bytes != part[i].n * sizeof(float))
            return err_set(e, EXIT_BAD_DATA, "%s: %s: expected F32 [%zu]", path, part[i].name,
                           part[i].n);
        memcpy(part[i].data, t->data, t->bytes);
        if (!finite_floats(part[i].data, part[i].n))
            return err_set(e, EXIT_BAD_DATA, "%s: %s: holds a value that is not finite", path,
                           part[i].name);
    }
    return 0;
}

struct dit *dit_open(const char *path, struct backend *b, size_t batch, struct err *e)
{
    struct tensors *f = safetensors_open_file(path, e);
    struct dit_shape s = {0};
    struct dit *d = NULL;
    int64_t step = 0;
    if (f && !read_note(f, path, &s, &step, e) && !check_size(f, path, &s, e))
        d = dit_make(&s, b, 0, batch, e);
    if (d && read_parts(d, f, path, e)) {
        dit_free(d);
        d = NULL;
    }
    if (d)
        d->step = step;
    if (f)
        safetensors_close(f);
    return d;
}
