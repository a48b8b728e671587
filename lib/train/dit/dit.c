/* dit.c - memory, training and files of a transformer over latents; see dit.h. dit_pass.c computes
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
    struct dit_linear linear = {*at, *at + in * out, in, out};
    *at += in * out + out;
    return linear;
}

static void lay_out(struct dit *dit)
{
    const struct dit_shape *shape = &dit->s;
    size_t D = shape->width, at = 0;
    dit->in = place(&at, shape->values, D);
    dit->position = at;
    at += shape->tokens * D;
    dit->time1 = place(&at, DIT_WAVES, D);
    dit->time2 = place(&at, D, D);
    for (size_t layer = 0; layer < shape->layers; layer++)
        dit->block[layer] = (struct dit_block){place(&at, D, 6 * D), place(&at, D, 3 * D),
                                               place(&at, D, D), place(&at, D, 4 * D),
                                               place(&at, 4 * D, D)};
    dit->mod = place(&at, D, 2 * D);
    dit->out = place(&at, D, shape->values);
    dit->n = at;
}

/* Places the arrays of a pass one after another in `base`. Returns the number of floats in all of
 * them. If base is NULL, it only counts, and the pointers to the arrays become NULL. */
static size_t cut(struct dit *dit, float *base)
{
    size_t D = dit->s.width, B = dit->batch, T = B * dit->s.tokens, at = 0;
    struct take {
        float **to;
        size_t n;
    };
    const struct take own[] = {
        {&dit->waves, B * DIT_WAVES}, {&dit->t1, B * D}, {&dit->t1act, B * D}, {&dit->c, B * D},
        {&dit->cact, B * D}, {&dit->top_mod, B * 2 * D}, {&dit->top.hat, T * D}, {&dit->top.inv, T},
        {&dit->top.in, T * D}, {&dit->x, T * dit->s.values}, {&dit->v, T * dit->s.values},
        {&dit->aim, T * dit->s.values}, {&dit->h, T * D}, {&dit->dh, T * D}, {&dit->dn, T * D},
        {&dit->dwide, T * 4 * D}, {&dit->dmod, B * 6 * D}, {&dit->dc, B * D}, {&dit->dt, B * D}};
    for (size_t i = 0; i < sizeof own / sizeof *own; i++) {
        *own[i].to = base ? base + at : NULL;
        at += own[i].n;
    }
    for (size_t layer = 0; layer < dit->s.layers; layer++) {
        struct dit_tape *tape = &dit->tape[layer];
        const struct take parts[] = {
            {&tape->mod, B * 6 * D}, {&tape->norm[0].hat, T * D}, {&tape->norm[0].inv, T},
            {&tape->norm[0].in, T * D}, {&tape->norm[1].hat, T * D}, {&tape->norm[1].inv, T},
            {&tape->norm[1].in, T * D}, {&tape->out[0], T * D}, {&tape->out[1], T * D},
            {&tape->qkv, T * 3 * D}, {&tape->share, T * dit->s.heads * dit->s.tokens},
            {&tape->y, T * D}, {&tape->up, T * 4 * D}, {&tape->act, T * 4 * D}};
        for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
            *parts[i].to = base ? base + at : NULL;
            at += parts[i].n;
        }
    }
    return at;
}

/* Bytes of scratch for a linear layer over `rows` rows. Three products share the scratch: y, the
 * gradient of W and the gradient of x. The result is the largest need of the three. */
static size_t product_work(const struct dit *dit, size_t rows, size_t in, size_t out)
{
    const struct train_ops *ops = train_ops_of(dit->b->ops);
    size_t y = ops->gemm_work(dit->b, rows, out, in), w = ops->gemm_work(dit->b, out, in, rows);
    size_t x = ops->gemm_work(dit->b, rows, in, out);
    y = w > y ? w : y;
    return x > y ? x : y;
}

static size_t most_work(const struct dit *dit)
{
    size_t D = dit->s.width, T = dit->batch * dit->s.tokens, most = 0;
    const size_t shape[][3] = {{T, dit->s.values, D}, {T, D, 3 * D}, {T, D, D}, {T, D, 4 * D},
                               {T, 4 * D, D}, {T, D, dit->s.values}, {dit->batch, D, 6 * D},
                               {dit->batch, DIT_WAVES, D}};
    for (size_t i = 0; i < sizeof shape / sizeof *shape; i++) {
        size_t bytes = product_work(dit, shape[i][0], shape[i][1], shape[i][2]);
        most = bytes > most ? bytes : most;
    }
    return most;
}

/* Draws W: normal, std 1/sqrt(inputs). The bias stays 0. */
static void draw(const struct dit *dit, const struct dit_linear *linear, uint64_t seed)
{
    struct rng rng = {seed, linear->w, 0};
    for (size_t i = 0; i < linear->in * linear->out; i++)
        dit->w[linear->w + i] = (float)(rng_normal(&rng) / sqrt((double)linear->in));
}

/* A and F of dit.h (`mod`) stay 0, so the gates a1 and a2 start at 0 (adaLN-Zero). */
static void draw_all(struct dit *dit, uint64_t seed)
{
    const struct dit_linear *own[] = {&dit->in, &dit->time1, &dit->time2, &dit->out};
    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        draw(dit, own[i], seed);
    for (size_t layer = 0; layer < dit->s.layers; layer++) {
        const struct dit_block *block = &dit->block[layer];
        const struct dit_linear *linear[] = {&block->qkv, &block->o, &block->up, &block->down};
        for (size_t i = 0; i < sizeof linear / sizeof *linear; i++)
            draw(dit, linear[i], seed);
    }
    struct rng rng = {seed, dit->position, 0};
    for (size_t i = 0; i < dit->s.tokens * dit->s.width; i++)
        dit->w[dit->position + i] = (float)(0.02 * rng_normal(&rng));
    memcpy(dit->average, dit->w, dit->n * sizeof *dit->w);
}

static float *take(struct dit *dit, size_t floats)
{
    return dit->b->ops->alloc(dit->b, floats * sizeof(float), MEMORY_ACTIVATIONS);
}

struct dit *dit_make(const struct dit_shape *shape, struct backend *backend, uint64_t seed,
                     size_t batch, struct err *e)
{
    if (*backend->name) {
        err_set(e, EXIT_NO_DEVICE, "a learned prior of latents is computed on the processor: "
                "expected --device cpu, got %s", backend->ops->name);
        return NULL;
    }
    struct dit *dit = mem_zero(1, sizeof *dit);
    *dit = (struct dit){.s = *shape, .b = backend, .batch = batch};
    dit->block = mem_zero(shape->layers, sizeof *dit->block);
    dit->tape = mem_zero(shape->layers, sizeof *dit->tape);
    dit->times = mem_zero(batch, sizeof *dit->times);
    dit->mean = mem_zero(shape->tokens * shape->values, sizeof *dit->mean);
    dit->deviation = mem_zero(shape->tokens * shape->values, sizeof *dit->deviation);
    for (size_t i = 0; i < shape->tokens * shape->values; i++)
        dit->deviation[i] = 1;
    lay_out(dit);
    float **values[VALUES] = {&dit->w, &dit->g, &dit->m1, &dit->m2, &dit->average};
    int lacks = 0;
    for (size_t i = 0; i < VALUES; i++)
        lacks |= !(*values[i] = take(dit, dit->n));
    lacks |= !(dit->room = take(dit, cut(dit, NULL))) ||
             !(dit->work = backend->ops->alloc(backend, most_work(dit), MEMORY_ACTIVATIONS));
    if (lacks) {
        dit_free(dit);
        err_set(e, EXIT_FAILED_RECORDS, "out of memory for a transformer over %zu latents, %zu at "
                "a time", shape->tokens, batch);
        return NULL;
    }
    cut(dit, dit->room);
    draw_all(dit, seed);
    return dit;
}

void dit_free(struct dit *dit)
{
    if (!dit)
        return;
    void *own[] = {dit->w, dit->g, dit->m1, dit->m2, dit->average, dit->room, dit->work};
    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        dit->b->ops->free(dit->b, own[i]);
    free(dit->block);
    free(dit->tape);
    free(dit->times);
    free(dit->mean);
    free(dit->deviation);
    free(dit);
}

size_t dit_bytes(const struct dit *dit)
{
    struct dit sized = *dit; /* a copy: cut() overwrites the pointers */
    struct dit_tape *tape = mem_zero(dit->s.layers, sizeof *tape);
    sized.tape = tape;
    size_t room = cut(&sized, NULL) * sizeof(float);
    free(tape);
    return VALUES * memory_rounded(dit->n * sizeof(float)) + memory_rounded(room) +
           memory_rounded(most_work(dit));
}

size_t dit_parameters(const struct dit *dit)
{
    return dit->n;
}

const struct dit_shape *dit_shape_of(const struct dit *dit)
{
    return &dit->s;
}

size_t dit_batch(const struct dit *dit)
{
    return dit->batch;
}

int64_t dit_step(const struct dit *dit)
{
    return dit->step;
}

float *dit_values(struct dit *dit)
{
    return dit->w;
}

const float *dit_gradients(const struct dit *dit)
{
    return dit->g;
}

void dit_use_average(struct dit *dit)
{
    memcpy(dit->w, dit->average, dit->n * sizeof *dit->w);
}

/* ---- training ---- */

void dit_predict(struct dit *dit, const float *x, const double *t, size_t n, float *v)
{
    dit_forward(dit, x, t, n, v);
}

double dit_loss(struct dit *dit, const float *latents, size_t n, uint64_t seed, uint64_t draw,
                int gradients)
{
    size_t each = dit->s.tokens * dit->s.values, all = n * each;
    struct rng rng = {seed, draw, 0};
    for (size_t text = 0; text < n; text++) {
        /* The time of sample k is in k/n .. (k + 1)/n, so the times of a batch cover 0..1. */
        dit->times[text] = ((double)text + rng_uniform(&rng)) / (double)n;
        double alpha = cos(pi * dit->times[text] / 2), sigma = sin(pi * dit->times[text] / 2);
        for (size_t i = text * each; i < (text + 1) * each; i++) {
            double noise = rng_normal(&rng);
            dit->x[i] = (float)(alpha * latents[i] + sigma * noise);
            dit->aim[i] = (float)(alpha * noise - sigma * latents[i]);
        }
    }
    dit_forward(dit, dit->x, dit->times, n, dit->v);
    double sum = 0;
    for (size_t i = 0; i < all; i++) {
        double off = (double)dit->v[i] - dit->aim[i];
        sum += off * off;
        dit->aim[i] = (float)(2 * off / (double)all);
    }
    if (gradients)
        dit_backward(dit, n, dit->aim);
    return sum / (double)all;
}

double dit_update(struct dit *dit, double rate, double clip, double keep)
{
    const struct train_ops *train = train_ops_of(dit->b->ops);
    double work[SQUARES_PARTS], norm = sqrt(train->squares(dit->b, dit->g, dit->n, work));
    struct adamw adamw = {.rate = rate, .beta1 = 0.9, .beta2 = 0.95, .eps = 1e-8,
                          .step = ++dit->step, .grad_scale = norm > clip ? clip / norm : 1};
    train->adamw(dit->b, dit->w, dit->m1, dit->m2, dit->g, dit->n, &adamw);
    for (size_t i = 0; i < dit->n; i++)
        dit->average[i] = (float)(keep * dit->average[i] + (1 - keep) * dit->w[i]);
    return norm;
}

/* ---- mean and deviation of the training set ---- */

void dit_standardize(struct dit *dit, const float *z, size_t n)
{
    size_t each = dit->s.tokens * dit->s.values;
    for (size_t i = 0; i < each; i++) {
        double sum = 0, square = 0;
        for (size_t b = 0; b < n; b++)
            sum += z[b * each + i];
        for (size_t b = 0; b < n; b++)
            square += pow(z[b * each + i] - sum / (double)n, 2);
        dit->mean[i] = (float)(sum / (double)n);
        dit->deviation[i] = (float)fmax(1e-6, sqrt(square / (double)n));
    }
}

void dit_to_standard(const struct dit *dit, float *z, size_t n)
{
    size_t each = dit->s.tokens * dit->s.values;
    for (size_t i = 0; i < n * each; i++)
        z[i] = (z[i] - dit->mean[i % each]) / dit->deviation[i % each];
}

void dit_from_standard(const struct dit *dit, float *z, size_t n)
{
    size_t each = dit->s.tokens * dit->s.values;
    for (size_t i = 0; i < n * each; i++)
        z[i] = z[i] * dit->deviation[i % each] + dit->mean[i % each];
}

double dit_log_deviation(const struct dit *dit)
{
    double sum = 0;
    for (size_t i = 0; i < dit->s.tokens * dit->s.values; i++)
        sum += log(dit->deviation[i]);
    return sum;
}

/* ---- files ---- */

/* An array of a file. Every file has the first FILE_ALWAYS arrays; a file with whole = 1 has all
 * FILE_PARTS. */
struct dit_part {
    const char *name;
    float *data;
    size_t n;
};
enum { FILE_PARTS = 6, FILE_ALWAYS = 3 };

static void parts_of(const struct dit *dit, struct dit_part list[FILE_PARTS])
{
    size_t each = dit->s.tokens * dit->s.values;
    const struct dit_part all[FILE_PARTS] = {
        {"average", dit->average, dit->n}, {"mean", dit->mean, each},
        {"deviation", dit->deviation, each}, {"values", dit->w, dit->n},
        {"moment_1", dit->m1, dit->n}, {"moment_2", dit->m2, dit->n}};
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

static json_t *note_of(const struct dit *dit)
{
    json_t *note = json_object();
    for (size_t i = 0; i < SHAPE_KEYS; i++) {
        size_t v = *(const size_t *)((const char *)&dit->s + shape_keys[i].offset);
        json_object_set_new(note, shape_keys[i].key, json_integer((json_int_t)v));
    }
    json_object_set_new(note, "step", json_integer(dit->step));
    return note;
}

int dit_save(const struct dit *dit, const char *path, int whole, struct err *e)
{
    struct dit_part part[FILE_PARTS];
    struct tensor list[FILE_PARTS + 1];
    size_t n = whole ? FILE_PARTS : FILE_ALWAYS;
    json_t *note = note_of(dit);
    char *text = json_dumps(note, JSON_COMPACT);
    parts_of(dit, part);
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

static int read_note(const struct tensors *tensors, const char *path, struct dit_shape *shape,
                     int64_t *step, struct err *e)
{
    const struct tensor *tensor = safetensors_find(tensors, "note");
    if (!tensor)
        return err_set(e, EXIT_BAD_DATA, "%s: no 'note': not a prior over latents", path);
    json_t *note = json_bytes((const char *)tensor->data, tensor->bytes, path, e);
    int bad = !note || json_int(note, path, "step", 0, INT64_MAX, step, e);
    for (size_t i = 0; !bad && i < SHAPE_KEYS; i++) {
        int64_t number = 0;
        bad = json_int(note, path, shape_keys[i].key, 1, SHAPE_MOST, &number, e);
        *(size_t *)((char *)shape + shape_keys[i].offset) = (size_t)number;
    }
    json_decref(note);
    if (!bad && shape->width % shape->heads)
        bad = err_set(e, EXIT_BAD_DATA, "%s: heads: expected a divisor of width %zu, got %zu", path,
                      shape->width, shape->heads);
    return bad ? -1 : 0;
}

/* -1: 'average' is missing, is not F32, or its size does not fit the shape. dit_open() calls
 * check_size() before it allocates arrays of this shape, because the shape in the file may be
 * wrong. */
static int check_size(const struct tensors *tensors, const char *path,
                      const struct dit_shape *shape, struct err *e)
{
    struct dit dit = {.s = *shape};
    dit.block = mem_zero(shape->layers, sizeof *dit.block);
    lay_out(&dit);
    free(dit.block);
    const struct tensor *tensor = safetensors_find(tensors, "average");
    if (tensor && !strcmp(tensor->dtype, "F32") && tensor->bytes == dit.n * sizeof(float))
        return 0;
    return err_set(e, EXIT_BAD_DATA, "%s: average: expected F32 [%zu] for its shape", path, dit.n);
}

static int read_parts(struct dit *dit, const struct tensors *tensors, const char *path,
                      struct err *e)
{
    struct dit_part part[FILE_PARTS];
    parts_of(dit, part);
    memcpy(dit->w, safetensors_find(tensors, "average")->data, dit->n * sizeof *dit->w);
    for (size_t i = 0; i < FILE_PARTS; i++) {
        const struct tensor *tensor = safetensors_find(tensors, part[i].name);
        if (!tensor && i >= FILE_ALWAYS)
            continue;
        if (!tensor || strcmp(tensor->dtype, "F32") || tensor->bytes != part[i].n * sizeof(float))
            return err_set(e, EXIT_BAD_DATA, "%s: %s: expected F32 [%zu]", path, part[i].name,
                           part[i].n);
        memcpy(part[i].data, tensor->data, tensor->bytes);
        if (!finite_floats(part[i].data, part[i].n))
            return err_set(e, EXIT_BAD_DATA, "%s: %s: holds a value that is not finite", path,
                           part[i].name);
    }
    return 0;
}

struct dit *dit_open(const char *path, struct backend *backend, size_t batch, struct err *e)
{
    struct tensors *tensors = safetensors_open_file(path, e);
    struct dit_shape shape = {0};
    struct dit *dit = NULL;
    int64_t step = 0;
    if (tensors && !read_note(tensors, path, &shape, &step, e) &&
        !check_size(tensors, path, &shape, e))
        dit = dit_make(&shape, backend, 0, batch, e);
    if (dit && read_parts(dit, tensors, path, e)) {
        dit_free(dit);
        dit = NULL;
    }
    if (dit)
        dit->step = step;
    if (tensors)
        safetensors_close(tensors);
    return dit;
}
