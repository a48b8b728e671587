/* parameters.c - the parameters of a network in training and AdamW; see parameters.h.
 *
 * One flat array per kind (values, gradients, two moments), divided by role and layer, so that
 * clipping, updating and saving are single loops. A tied head has the offset of the embedding, so
 * both gradients are added there. */
#include "lib/train/parameters.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/mixing.h"
#include "lib/base/mem.h"
#include "lib/base/rng.h"
#include "lib/checkpoint/role.h"
#include "lib/record/json.h"

enum { FLAT = 4 /* values, gradients, moments */ };

/* Number of values of a role in one layer; 0 when the network does not have the role. */
static size_t value_count(const struct config *c, enum role r)
{
    size_t rows, cols;
    role_shape(c, r, &rows, &cols);
    return role_layers(c, r) ? rows * cols : 0;
}

/* Sets the offsets of all roles. Returns the number of parameters. */
static size_t lay_out(struct parameters *p)
{
    size_t n = 0;
    for (size_t l = 0; l < p->c.layers; l++)
        for (int r = 0; r < ROLE_COUNT; r++) {
            enum role role = (enum role)r;
            if (l && !role_per_layer(role)) {
                p->at[l][r] = p->at[0][r];
                continue;
            }
            int shared = role == ROLE_HEAD && p->c.tied;
            p->at[l][r] = shared ? p->at[0][ROLE_EMBED] : n;
            n += shared ? 0 : value_count(&p->c, role);
        }
    return n;
}

/* Standard deviation of a role at the start. 1/sqrt(inputs) keeps the scale of activations, so that
 * attention can tell keys apart from the first step on. Projections into the stream are smaller,
 * because 2L of them add up beside the embedding. The head starts with nearly equal logits.
 * Low-rank parts start near zero: the authors use zeros, but here no tensor may be all zeros. */
static double start_std(const struct config *c, enum role r)
{
    size_t rows, cols;
    role_shape(c, r, &rows, &cols);
    double even = 1 / sqrt((double)cols);
    if (r == ROLE_EMBED)
        return c->tied ? 0.1 : 0.5;
    if (r == ROLE_HEAD)
        return 0.02;
    if (role_is_low_rank(r))
        return even * 0.1 * (role_cols(r) == ALONG_RANK ? 1 : 0.1);
    int adds = r == ROLE_O || r == ROLE_DOWN || r == ROLE_CROSS_O;
    return adds ? even / sqrt(2.0 * (double)c->layers) : even;
}

/* Value i of a vector at the start: gains are 1; vectors of a mixer depend on layer and channel, as
 * in the authors' code. Source: Peng et al. 2024 (arXiv 2404.05892), 2025 (arXiv 2503.14456), and
 * https://github.com/BlinkDL/RWKV-LM. */
static double start_value(const struct config *c, enum role r, size_t layer, size_t i)
{
    const double deep = c->layers > 1 ? (double)layer / (double)(c->layers - 1) : 0;
    const double low = 1 - (double)layer / (double)c->layers, n = (double)(c->heads * c->head_dim);
    const double part = (double)i / (double)c->width, channel = n > 1 ? (double)i / (n - 1) : 0;
    const double E = (double)c->head_dim, turn = 2 * (double)(i % c->head_dim) / fmax(E - 1, 1) - 1;
    const int seven = c->mixer == MIXER_RWKV7;
    static const double bends[MIXING_LANES] = {0.2, 0.9, 0.7, 0.7, 0.2, 0.9};
    switch (r) {
    case ROLE_DECAY:
        return seven ? -5.5 + 6 * pow(channel, 1 + pow(deep, 0.3)) + 2.5 * turn * fabs(turn)
                     : -6 + 5 * pow(channel, 0.7 + 1.3 * deep);
    case ROLE_BONUS:
        return seven ? -0.04 : deep * (1 - channel) + 0.1 * ((double)((i + 1) % 3) - 1);
    case ROLE_HEADS_BIAS: return 0;
    case ROLE_RATE: return -0.19;
    case ROLE_FIRST: return 0.73;
    case ROLE_KEY_SCALE: return 0.71;
    case ROLE_KEY_RATE: return 1.02;
    case ROLE_SHIFT_X: return 1 - pow(part, low);
    default: break;
    }
    if (r < ROLE_SHIFT_R || r > ROLE_SHIFT_A)
        return 1;
    if (seven)
        return 1 - pow(part, bends[r - ROLE_SHIFT_R] * low);
    const int half = r == ROLE_SHIFT_R || r == ROLE_SHIFT_G;
    return 1 - pow(part, half ? 0.5 * low : low) - (r == ROLE_SHIFT_V ? 0.3 * deep : 0);
}

/* Draws on the host, then sends all values. */
static void draw(struct parameters *p, uint64_t seed)
{
    float *all = mem_zero(p->n, sizeof *all);
    for (size_t l = 0; l < p->c.layers; l++)
        for (int r = 0; r < ROLE_COUNT; r++) {
            enum role role = (enum role)r;
            if ((l && !role_per_layer(role)) || (role == ROLE_HEAD && p->c.tied))
                continue;
            float *w = all + p->at[l][r];
            struct rng rng = {seed, (uint64_t)r << 32 | l, 0};
            double std = start_std(&p->c, role);
            for (size_t i = 0; i < value_count(&p->c, role); i++)
                w[i] = (float)(role_is_vector(role) ? start_value(&p->c, role, l, i)
                                                    : std * rng_normal(&rng));
        }
    p->b->ops->write(p->b, p->w, all, p->n * sizeof *all);
    free(all);
}

struct parameters *parameters_make(const struct config *c, struct backend *b,
                                   const struct train_ops *ops, uint64_t seed)
{
    struct parameters *p = mem_zero(1, sizeof *p);
    *p = (struct parameters){.c = *c, .b = b, .ops = ops, .quant = QUANT_NONE};
    p->at = mem_zero(c->layers, sizeof *p->at);
    p->n = lay_out(p);
    p->w = p->block = b->ops->alloc(b, parameters_bytes_trained(c), MEMORY_WEIGHTS);
    if (!p->w) {
        parameters_free(p);
        return NULL;
    }
    p->g = p->w + p->n;
    p->m1 = p->g + p->n;
    p->m2 = p->m1 + p->n;
    p->work = (double *)(void *)(p->m2 + p->n);
    draw(p, seed);
    return p;
}

size_t parameters_bytes(const struct config *c)
{
    struct parameters p = {.c = *c};
    p.at = mem_zero(c->layers, sizeof *p.at);
    size_t n = lay_out(&p);
    free(p.at);
    return n * sizeof *p.w;
}

size_t parameters_bytes_trained(const struct config *c)
{
    return FLAT * parameters_bytes(c) + SQUARES_PARTS * sizeof(double);
}

/* -1: no memory of the back end. */
static int read_values(struct parameters *p, const struct network *n)
{
    const struct ops *ops = p->b->ops;
    size_t most = 0, rows, cols;
    for (int r = 0; r < ROLE_COUNT; r++) {
        role_shape(&p->c, (enum role)r, &rows, &cols);
        most = rows > most ? rows : most;
    }
    int32_t *ids = mem_alloc(most * sizeof *ids);
    int32_t *there = ops->alloc(p->b, most * sizeof *ids, MEMORY_ACTIVATIONS);
    for (size_t i = 0; i < most; i++)
        ids[i] = (int32_t)i;
    if (there)
        ops->write(p->b, there, ids, most * sizeof *ids);
    for (int r = 0; there && r < ROLE_COUNT; r++)
        for (size_t l = 0; l < role_layers(&p->c, (enum role)r); l++)
            network_values(n, (enum role)r, l, there, parameters_values(p, (enum role)r, l));
    ops->free(p->b, there);
    free(ids);
    return there ? 0 : -1;
}

struct parameters *parameters_read(const struct network *n)
{
    struct backend *b = n->backend;
    struct parameters *p = mem_zero(1, sizeof *p);
    *p = (struct parameters){.c = n->config, .b = b, .ops = train_ops_of(b->ops),
                             .quant = QUANT_NONE};
    p->at = mem_zero(p->c.layers, sizeof *p->at);
    p->n = lay_out(p);
    p->w = p->block = b->ops->alloc(b, p->n * sizeof *p->w, MEMORY_WEIGHTS);
    if (!p->w) {
        parameters_free(p);
        return NULL;
    }
    if (!read_values(p, n))
        return p;
    parameters_free(p);
    return NULL;
}

void parameters_free(struct parameters *p)
{
    if (!p)
        return;
    p->b->ops->free(p->b, p->block);
    p->b->ops->free(p->b, p->seen_block);
    free(p->copy);
    free(p->at);
    free(p);
}

float *parameters_values(struct parameters *p, enum role r, size_t layer)
{
    return p->w + p->at[layer][r];
}

float *parameters_on_host(struct parameters *p, enum role r, size_t layer)
{
    const size_t at = p->at[layer][r];
    if (!*p->b->name)
        return p->w + at;
    if (!p->copy)
        p->copy = mem_zero(p->n, sizeof *p->copy);
    p->b->ops->read(p->b, p->copy + at, p->w + at, value_count(&p->c, r) * sizeof *p->w);
    return p->copy + at;
}

float *parameters_gradients(struct parameters *p, enum role r, size_t layer)
{
    return p->g + p->at[layer][r];
}

void parameters_clear_gradients(struct parameters *p)
{
    for (size_t l = 0; l < p->c.layers; l++)
        for (int r = 0; r < ROLE_COUNT; r++) {
            enum role role = (enum role)r;
            int sums = role_is_vector(role) || !role_per_layer(role);
            if (sums && (!l || role_per_layer(role)))
                p->b->ops->clear(p->b, p->g + p->at[l][r],
                                 value_count(&p->c, role) * sizeof *p->g);
        }
}

/* The end of the run of values from `at` on whose roles are all vectors or all matrices; *vectors
 * tells which. */
static size_t run_end(const struct parameters *p, size_t at, int *vectors)
{
    size_t end = at;
    for (size_t l = 0; l < p->c.layers; l++)
        for (int r = 0; r < ROLE_COUNT; r++) {
            enum role role = (enum role)r;
            const size_t n = value_count(&p->c, role);
            if (p->at[l][r] != end || !n || (l && !role_per_layer(role)))
                continue;
            if (end == at)
                *vectors = role_is_vector(role);
            if (*vectors != role_is_vector(role))
                return end;
            end += n;
        }
    return end;
}

double parameters_update(struct parameters *p, double rate, double decay, double clip)
{
    double norm = sqrt(p->ops->squares(p->b, p->g, p->n, p->work));
    struct adamw a = {.rate = rate, .beta1 = 0.9, .beta2 = 0.95, .eps = 1e-8, .step = ++p->step,
                      .grad_scale = norm > clip ? clip / norm : 1};
    int vectors = 0;
    for (size_t at = 0, end; at < p->n; at = end) {
        end = run_end(p, at, &vectors);
        a.decay = vectors ? 0 : decay;
        p->ops->adamw(p->b, p->w + at, p->m1 + at, p->m2 + at, p->g + at, end - at, &a);
    }
    return norm;
}

/* ---- resuming ---- */

static struct tensor flat(const char *name, const float *x, size_t n)
{
    struct tensor v = {.name = (char *)(uintptr_t)name, .dtype = "F32", .rank = 1, .shape = {n},
                       .bytes = n * sizeof *x, .data = (const unsigned char *)x};
    return v;
}

int parameters_save(const struct parameters *p, const char *path, const json_t *note, struct err *e)
{
    json_t *all = note ? json_copy((json_t *)(uintptr_t)note) : json_object();
    json_object_set_new(all, "step", json_integer(p->step));
    char *text = json_dumps(all, JSON_COMPACT);
    const float *const from[] = {p->w, p->m1, p->m2};
    const int here = !*p->b->name; /* a host's memory is written as it is */
    float *copy = here ? NULL : mem_zero(3 * p->n, sizeof *copy);
    const float *x[3];
    for (size_t i = 0; i < 3; i++) {
        x[i] = here ? from[i] : copy + i * p->n;
        if (!here)
            p->b->ops->read(p->b, copy + i * p->n, from[i], p->n * sizeof *copy);
    }
    struct tensor list[4] = {flat("values", x[0], p->n), flat("moment_1", x[1], p->n),
                             flat("moment_2", x[2], p->n), {0}};
    size_t n = strlen(text);
    list[3] = (struct tensor){.name = (char *)(uintptr_t) "note", .dtype = "U8", .rank = 1,
                              .shape = {n}, .bytes = n, .data = (const unsigned char *)text};
    int bad = safetensors_write(path, list, 4, NULL, e);
    free(copy);
    free(text);
    json_decref(all);
    return bad;
}

static int take(struct parameters *p, const struct tensors *f, const char *path, const char *name,
                float *out, struct err *e)
{
    const struct tensor *v = safetensors_find(f, name);
    if (!v || strcmp(v->dtype, "F32") || v->bytes != p->n * sizeof *out)
        return err_set(e, EXIT_BAD_DATA,
                       "%s: '%s': expected F32 [%zu]: not a state of this network", path, name,
                       p->n);
    p->b->ops->write(p->b, out, v->data, v->bytes);
    return 0;
}

int parameters_restore(struct parameters *p, const char *path, json_t **note, struct err *e)
{
    struct tensors *f = safetensors_open_file(path, e);
    if (!f)
        return -1;
    int bad = take(p, f, path, "values", p->w, e) || take(p, f, path, "moment_1", p->m1, e) ||
              take(p, f, path, "moment_2", p->m2, e);
    const struct tensor *v = safetensors_find(f, "note");
    json_t *all = v ? json_bytes((const char *)v->data, v->bytes, path, e) : NULL;
    int64_t step = 0;
    if (!v)
        bad = err_set(e, EXIT_BAD_DATA, "%s: no 'note': not a state of a training run", path);
    bad = bad || !all || json_int(all, path, "step", 0, INT64_MAX, &step, e);
    p->step = step;
    safetensors_close(f);
    if (bad)
        json_decref(all);
    else
        *note = all;
    return bad ? -1 : 0;
}
