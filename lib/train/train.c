/* train.c - the parameters of a network in training: one flat array per kind (values, gradients,
 * two moments), cut by role and layer, so that clipping, updating and saving are single loops. */
#include "lib/train/train.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lib/record/json.h"

#include "lib/base/mem.h"
#include "lib/base/rng.h"
#include "lib/train/train_parts.h"

static size_t role_count(const struct config *c, enum role r)
{
    size_t rows, cols;
    role_shape(c, r, &rows, &cols);
    return rows * cols;
}

static int is_norm(enum role r)
{
    return r == ROLE_ATTN_NORM || r == ROLE_FFN_NORM || r == ROLE_NORM;
}

/* Offsets of every role; a tied head shares the embedding's. Returns the number of parameters. */
static size_t lay_out(struct trainer *t)
{
    size_t n = 0;
    for (size_t l = 0; l < t->c.layers; l++)
        for (int r = 0; r < ROLE_COUNT; r++) {
            enum role role = (enum role)r;
            if (l && !role_per_layer(role)) {
                t->at[l][r] = t->at[0][r];
                continue;
            }
            int shared = role == ROLE_HEAD && t->c.tied;
            t->at[l][r] = shared ? t->at[0][ROLE_EMBED] : n;
            n += shared ? 0 : role_count(&t->c, role);
        }
    return n;
}

/* Standard deviation of a role at the start: 1/sqrt(inputs) keeps the size of what flows through,
 * so that attention can tell keys apart from the first step on; the two projections into the stream
 * are smaller, or 2L of them would outgrow the embedding; the head begins with nearly equal logits.
 */
static double start_std(const struct config *c, enum role r)
{
    size_t rows, cols;
    role_shape(c, r, &rows, &cols);
    double even = 1 / sqrt((double)cols);
    if (r == ROLE_EMBED)
        return c->tied ? 0.1 : 0.5;
    if (r == ROLE_HEAD)
        return 0.02;
    return r == ROLE_O || r == ROLE_DOWN ? even / sqrt(2.0 * (double)c->layers) : even;
}

static void draw(struct trainer *t, uint64_t seed)
{
    for (size_t l = 0; l < t->c.layers; l++)
        for (int r = 0; r < ROLE_COUNT; r++) {
            enum role role = (enum role)r;
            if ((l && !role_per_layer(role)) || (role == ROLE_HEAD && t->c.tied))
                continue;
            float *w = trainer_values(t, role, l);
            struct rng rng = {seed, (uint64_t)r << 32 | l, 0};
            double std = start_std(&t->c, role);
            for (size_t i = 0; i < role_count(&t->c, role); i++)
                w[i] = is_norm(role) ? 1.0f : (float)(std * rng_normal(&rng));
        }
}

static float *room(struct trainer *t, size_t n)
{
    return t->b->ops->alloc(t->b, n * sizeof(float), MEMORY_ACTIVATIONS);
}

static void make_tape(struct trainer *t)
{
    const struct config *c = &t->c;
    size_t T = t->rows, D = c->width, HE = c->heads * c->head_dim, KE = c->kv_heads * c->head_dim;
    for (size_t l = 0; l < c->layers; l++) {
        struct layer_tape *y = &t->tape[l];
        float **wide[] = {&y->x, &y->n1, &y->mid, &y->n2};
        for (int i = 0; i < 4; i++)
            *wide[i] = room(t, T * D);
        y->q = room(t, T * HE);
        y->y = room(t, T * HE);
        y->k = room(t, T * KE);
        y->v = room(t, T * KE);
        y->gate = room(t, T * c->ffn);
        y->up = room(t, T * c->ffn);
        y->act = room(t, T * c->ffn);
    }
}

/* Bytes of work that the largest product needs. */
static size_t products_work(const struct trainer *t)
{
    size_t most = 0;
    for (int r = 0; r < ROLE_COUNT; r++) {
        size_t N, K;
        role_shape(&t->c, (enum role)r, &N, &K);
        size_t bytes = is_norm((enum role)r) ? 0 : t->b->ops->matmul_work(t->b, t->rows, K, N);
        most = bytes > most ? bytes : most;
    }
    return most;
}

static void make_room(struct trainer *t)
{
    const struct config *c = &t->c;
    size_t T = t->rows, D = c->width, E = c->head_dim, HE = c->heads * E, KE = c->kv_heads * E;
    size_t forward = t->b->ops->attention_work(t->b, T, T, T, c->heads, c->kv_heads, E);
    size_t product = products_work(t), back = t->train->attention_back_work(t->b, T, E);
    forward = (forward > product ? forward : product) / sizeof(float) + 1;
    float **wide[] = {&t->top, &t->final, &t->pick, &t->dx, &t->dn};
    for (int i = 0; i < 5; i++)
        *wide[i] = room(t, T * D);
    t->dq = room(t, T * HE);
    t->dy = room(t, T * HE);
    t->dk = room(t, T * KE);
    t->dv = room(t, T * KE);
    t->dgate = room(t, T * c->ffn);
    t->dup = room(t, T * c->ffn);
    t->table = room(t, T * E);
    t->logits = room(t, LOGIT_ROWS * c->vocab);
    t->scratch = room(t, (forward > back ? forward : back) + 2 * T);
    t->inv_freq = mem_alloc(E / 2 * sizeof(float));
    t->row_loss = mem_zero(T, sizeof *t->row_loss);
    t->pos = mem_zero(T, sizeof *t->pos);
    t->slots = mem_zero(T, sizeof *t->slots);
    t->scored = mem_zero(T, sizeof *t->scored);
    t->target = mem_zero(T, sizeof *t->target);
    t->weight = mem_zero(T, sizeof *t->weight);
    t->seqs = mem_zero(T, sizeof *t->seqs);
    make_tape(t);
}

static int make_mats(struct trainer *t)
{
    for (size_t l = 0; l < t->c.layers; l++)
        for (int r = 0; r < ROLE_COUNT; r++) {
            enum role role = (enum role)r;
            size_t rows, cols;
            if (is_norm(role) || role == ROLE_EMBED || (l && !role_per_layer(role)))
                continue;
            role_shape(&t->c, role, &rows, &cols);
            struct mat_source s = mat_floats(trainer_values(t, role, l), rows, cols);
            if (t->b->ops->mat_make(t->b, trainer_mat(t, role, l), &s, DTYPE_F32))
                return -1;
        }
    return 0;
}

struct trainer *trainer_make(const struct config *c, struct backend *b, uint64_t seed, size_t rows,
                             struct err *e)
{
    const struct train_ops *ops = train_ops_of(b);
    if (!ops) {
        err_set(e, EXIT_NO_DEVICE, "the '%s' back end cannot train: use --device cpu",
                b->ops->name);
        return NULL;
    }
    struct trainer *t = mem_zero(1, sizeof *t);
    *t = (struct trainer){.c = *c, .b = b, .train = ops, .rows = rows};
    t->at = mem_zero(c->layers, sizeof *t->at);
    t->mats = mem_zero(c->layers * ROLE_COUNT, sizeof *t->mats);
    t->tape = mem_zero(c->layers, sizeof *t->tape);
    t->n = lay_out(t);
    float **flat[] = {&t->w, &t->g, &t->m1, &t->m2};
    for (int i = 0; i < 4; i++)
        *flat[i] = mem_zero(t->n, sizeof(float));
    draw(t, seed);
    make_room(t);
    config_rope(c, t->inv_freq);
    if (make_mats(t)) {
        err_set(e, EXIT_INTERNAL, "out of memory for training %zu parameters", t->n);
        trainer_free(t);
        return NULL;
    }
    return t;
}

void trainer_free(struct trainer *t)
{
    if (!t)
        return;
    const struct ops *ops = t->b->ops;
    for (size_t l = 0; l < t->c.layers; l++) {
        struct layer_tape *y = &t->tape[l];
        float *tape[] = {y->x,   y->n1, y->q,    y->k,  y->v,  y->y,
                         y->mid, y->n2, y->gate, y->up, y->act};
        for (size_t i = 0; i < sizeof tape / sizeof *tape; i++)
            ops->free(t->b, tape[i]);
    }
    for (size_t i = 0; i < t->c.layers * ROLE_COUNT; i++)
        ops->mat_free(t->b, &t->mats[i]);
    float *blocks[] = {t->top, t->final, t->pick, t->logits, t->dx,  t->dn,      t->dq,
                       t->dk,  t->dv,    t->dy,   t->dgate,  t->dup, t->scratch, t->table};
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++)
        ops->free(t->b, blocks[i]);
    void *host[] = {t->w,     t->g,      t->m1,       t->m2,       t->at,
                    t->mats,  t->tape,   t->inv_freq, t->row_loss, t->pos,
                    t->slots, t->scored, t->target,   t->weight,   t->seqs};
    for (size_t i = 0; i < sizeof host / sizeof *host; i++)
        free(host[i]);
    free(t);
}

float *trainer_values(struct trainer *t, enum role r, size_t layer)
{
    return t->w + t->at[layer][r];
}

float *trainer_gradients(struct trainer *t, enum role r, size_t layer)
{
    return t->g + t->at[layer][r];
}

struct mat *trainer_mat(struct trainer *t, enum role r, size_t layer)
{
    return &t->mats[(role_per_layer(r) ? layer : 0) * ROLE_COUNT + (size_t)r];
}

void trainer_pack(struct trainer *t)
{
    for (size_t l = 0; l < t->c.layers; l++)
        for (int r = 0; r < ROLE_COUNT; r++) {
            struct mat *m = &t->mats[l * ROLE_COUNT + (size_t)r];
            if (m->data)
                t->train->mat_refill(t->b, m, trainer_values(t, (enum role)r, l));
        }
}

int64_t trainer_step(const struct trainer *t) { return t->step; }

double trainer_update(struct trainer *t, double rate, double decay, double clip)
{
    double squares = 0;
    for (size_t i = 0; i < t->n; i++)
        squares += (double)t->g[i] * t->g[i];
    double norm = sqrt(squares);
    struct adamw a = {.rate = rate,
                      .beta1 = 0.9,
                      .beta2 = 0.95,
                      .eps = 1e-8,
                      .step = ++t->step,
                      .grad_scale = norm > clip ? clip / norm : 1};
    for (size_t l = 0; l < t->c.layers; l++)
        for (int r = 0; r < ROLE_COUNT; r++) {
            enum role role = (enum role)r;
            if ((l && !role_per_layer(role)) || (role == ROLE_HEAD && t->c.tied))
                continue;
            size_t at = t->at[l][r];
            a.decay = is_norm(role) ? 0 : decay;
            t->train->adamw(t->b, t->w + at, t->m1 + at, t->m2 + at, t->g + at,
                            role_count(&t->c, role), &a);
        }
    return norm;
}

/* ---- resuming ---- */

static struct tensor flat(const char *name, const float *x, size_t n)
{
    struct tensor v = {.name = (char *)(uintptr_t)name,
                       .dtype = "F32",
                       .rank = 1,
                       .shape = {n},
                       .bytes = n * sizeof *x,
                       .data = (const unsigned char *)x};
    return v;
}

int trainer_save(const struct trainer *t, const char *path, const json_t *note, struct err *e)
{
    json_t *all = note ? json_copy((json_t *)(uintptr_t)note) : json_object();
    json_object_set_new(all, "step", json_integer(t->step));
    char *text = json_dumps(all, JSON_COMPACT);
    struct tensor list[4] = {flat("values", t->w, t->n),
                             flat("moment_1", t->m1, t->n),
                             flat("moment_2", t->m2, t->n),
                             {0}};
    size_t n = strlen(text);
    list[3] = (struct tensor){.name = (char *)(uintptr_t) "note",
                              .dtype = "U8",
                              .rank = 1,
                              .shape = {n},
                              .bytes = n,
                              .data = (const unsigned char *)text};
    int bad = tensors_write(path, list, 4, NULL, e);
    free(text);
    json_decref(all);
    return bad;
}

static int take(const struct tensors *f, const char *path, const char *name, float *out, size_t n,
                struct err *e)
{
    const struct tensor *v = tensors_find(f, name);
    if (!v || strcmp(v->dtype, "F32") || v->bytes != n * sizeof *out)
        return err_set(e, EXIT_BAD_DATA,
                       "%s: '%s': expected F32 [%zu]: not a state of this network", path, name, n);
    memcpy(out, v->data, v->bytes);
    return 0;
}

int trainer_restore(struct trainer *t, const char *path, json_t **note, struct err *e)
{
    struct tensors *f = tensors_open_file(path, e);
    if (!f)
        return -1;
    int bad = take(f, path, "values", t->w, t->n, e) || take(f, path, "moment_1", t->m1, t->n, e) ||
              take(f, path, "moment_2", t->m2, t->n, e);
    const struct tensor *v = tensors_find(f, "note");
    json_t *all = v ? json_bytes((const char *)v->data, v->bytes, path, e) : NULL;
    int64_t step = 0;
    if (!v)
        bad = err_set(e, EXIT_BAD_DATA, "%s: no 'note': not a state of a training run", path);
    bad = bad || !all || json_int(all, path, "step", 0, INT64_MAX, &step, e);
    t->step = step;
    tensors_close(f);
    if (bad)
        json_decref(all);
    else
        *note = all;
    return bad ? -1 : 0;
}
