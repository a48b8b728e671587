/* parameters.c - the parameters of a network in training and AdamW; see parameters.h.
 *
 * Values, gradients and the two moments are one flat array each, divided by role and layer, so that
 * clipping, updating and saving are single loops. A tied head has the offset of the embedding, so
 * the gradients of head and embedding are added in one place. */
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
static size_t value_count(const struct config *config, enum role role)
{
    size_t rows, cols;
    role_shape(config, role, &rows, &cols);
    return role_layers(config, role) ? rows * cols : 0;
}

/* Sets the offsets of all roles. Returns the number of parameters. */
static size_t lay_out(struct parameters *parameters)
{
    size_t n = 0;
    for (size_t layer = 0; layer < parameters->c.layers; layer++)
        for (int which = 0; which < ROLE_COUNT; which++) {
            enum role role = (enum role)which;
            if (layer && !role_per_layer(role)) {
                parameters->at[layer][which] = parameters->at[0][which];
                continue;
            }
            int shared = role == ROLE_HEAD && parameters->c.tied;
            parameters->at[layer][which] = shared ? parameters->at[0][ROLE_EMBED] : n;
            n += shared ? 0 : value_count(&parameters->c, role);
        }
    return n;
}

/* Standard deviation of a role at the start. 1/sqrt(inputs) keeps the scale of activations, so that
 * attention can tell keys apart from the first step on. Projections into the stream are smaller,
 * because the stream is the sum of the embedding and 2L projections. The head starts with nearly
 * equal logits. Low-rank parts of RWKV start near zero; its authors use zeros, but in this project
 * no tensor of a checkpoint may be all zeros. */
static double start_std(const struct config *config, enum role role)
{
    size_t rows, cols;
    role_shape(config, role, &rows, &cols);
    double even = 1 / sqrt((double)cols);
    if (role == ROLE_EMBED)
        return config->tied ? 0.1 : 0.5;
    if (role == ROLE_HEAD)
        return 0.02;
    if (role_is_low_rank(role))
        return even * 0.1 * (role_cols(role) == ALONG_RANK ? 1 : 0.1);
    int adds = role == ROLE_O || role == ROLE_DOWN || role == ROLE_CROSS_O;
    return adds ? even / sqrt(2.0 * (double)config->layers) : even;
}

/* Value i of a vector at the start: gains are 1; vectors of RWKV 6 and 7 depend on layer and
 * channel as in the code of the RWKV authors. Source: Peng et al. 2024 (arXiv 2404.05892), 2025
 * (arXiv 2503.14456), and https://github.com/BlinkDL/RWKV-LM. */
static double start_value(const struct config *config, enum role role, size_t layer, size_t i)
{
    const double deep = config->layers > 1 ? (double)layer / (double)(config->layers - 1) : 0;
    const double low = 1 - (double)layer / (double)config->layers,
                 n = (double)(config->heads * config->head_dim);
    const double part = (double)i / (double)config->width,
                 channel = n > 1 ? (double)i / (n - 1) : 0;
    const double E = (double)config->head_dim,
                 turn = 2 * (double)(i % config->head_dim) / fmax(E - 1, 1) - 1;
    const int seven = config->mixer == MIXER_RWKV7;
    static const double bends[MIXING_LANES] = {0.2, 0.9, 0.7, 0.7, 0.2, 0.9};
    switch (role) {
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
    if (role < ROLE_SHIFT_R || role > ROLE_SHIFT_A)
        return 1;
    if (seven)
        return 1 - pow(part, bends[role - ROLE_SHIFT_R] * low);
    const int half = role == ROLE_SHIFT_R || role == ROLE_SHIFT_G;
    return 1 - pow(part, half ? 0.5 * low : low) - (role == ROLE_SHIFT_V ? 0.3 * deep : 0);
}

/* Draws on the host, then sends all values. */
static void draw(struct parameters *parameters, uint64_t seed)
{
    float *all = mem_zero(parameters->n, sizeof *all);
    for (size_t layer = 0; layer < parameters->c.layers; layer++)
        for (int which = 0; which < ROLE_COUNT; which++) {
            enum role role = (enum role)which;
            if ((layer && !role_per_layer(role)) || (role == ROLE_HEAD && parameters->c.tied))
                continue;
            float *w = all + parameters->at[layer][which];
            struct rng rng = {seed, (uint64_t)which << 32 | layer, 0};
            double std = start_std(&parameters->c, role);
            for (size_t i = 0; i < value_count(&parameters->c, role); i++)
                w[i] = (float)(role_is_vector(role) ? start_value(&parameters->c, role, layer, i)
                                                    : std * rng_normal(&rng));
        }
    parameters->b->ops->write(parameters->b, parameters->w, all, parameters->n * sizeof *all);
    free(all);
}

struct parameters *parameters_make(const struct config *config, struct backend *backend,
                                   const struct train_ops *ops, uint64_t seed)
{
    struct parameters *parameters = mem_zero(1, sizeof *parameters);
    *parameters = (struct parameters){.c = *config, .b = backend, .ops = ops, .quant = QUANT_NONE};
    parameters->at = mem_zero(config->layers, sizeof *parameters->at);
    parameters->n = lay_out(parameters);
    parameters->w = parameters->block = backend->ops->alloc(
        backend, parameters_bytes_trained(config), MEMORY_WEIGHTS);
    if (!parameters->w) {
        parameters_free(parameters);
        return NULL;
    }
    parameters->g = parameters->w + parameters->n;
    parameters->m1 = parameters->g + parameters->n;
    parameters->m2 = parameters->m1 + parameters->n;
    parameters->work = (double *)(void *)(parameters->m2 + parameters->n);
    draw(parameters, seed);
    return parameters;
}

size_t parameters_bytes(const struct config *config)
{
    struct parameters parameters = {.c = *config};
    parameters.at = mem_zero(config->layers, sizeof *parameters.at);
    size_t n = lay_out(&parameters);
    free(parameters.at);
    return n * sizeof *parameters.w;
}

size_t parameters_bytes_trained(const struct config *config)
{
    return FLAT * parameters_bytes(config) + SQUARES_PARTS * sizeof(double);
}

/* -1: no memory of the back end. */
static int read_values(struct parameters *parameters, const struct network *n)
{
    const struct ops *ops = parameters->b->ops;
    size_t most = 0, rows, cols;
    for (int which = 0; which < ROLE_COUNT; which++) {
        role_shape(&parameters->c, (enum role)which, &rows, &cols);
        most = rows > most ? rows : most;
    }
    int32_t *ids = mem_alloc(most * sizeof *ids);
    int32_t *there = ops->alloc(parameters->b, most * sizeof *ids, MEMORY_ACTIVATIONS);
    for (size_t i = 0; i < most; i++)
        ids[i] = (int32_t)i;
    if (there)
        ops->write(parameters->b, there, ids, most * sizeof *ids);
    for (int which = 0; there && which < ROLE_COUNT; which++)
        for (size_t layer = 0; layer < role_layers(&parameters->c, (enum role)which); layer++)
            network_values(n, (enum role)which, layer, there,
                           parameters_values(parameters, (enum role)which, layer));
    ops->free(parameters->b, there);
    free(ids);
    return there ? 0 : -1;
}

struct parameters *parameters_read(const struct network *n)
{
    struct backend *backend = n->backend;
    struct parameters *parameters = mem_zero(1, sizeof *parameters);
    *parameters = (struct parameters){.c = n->config, .b = backend,
                                      .ops = train_ops_of(backend->ops), .quant = QUANT_NONE};
    parameters->at = mem_zero(parameters->c.layers, sizeof *parameters->at);
    parameters->n = lay_out(parameters);
    parameters->w = parameters->block = backend->ops->alloc(
        backend, parameters->n * sizeof *parameters->w, MEMORY_WEIGHTS);
    if (!parameters->w) {
        parameters_free(parameters);
        return NULL;
    }
    if (!read_values(parameters, n))
        return parameters;
    parameters_free(parameters);
    return NULL;
}

void parameters_free(struct parameters *parameters)
{
    if (!parameters)
        return;
    parameters->b->ops->free(parameters->b, parameters->block);
    parameters->b->ops->free(parameters->b, parameters->seen_block);
    free(parameters->copy);
    free(parameters->at);
    free(parameters);
}

float *parameters_values(struct parameters *parameters, enum role role, size_t layer)
{
    return parameters->w + parameters->at[layer][role];
}

float *parameters_on_host(struct parameters *parameters, enum role role, size_t layer)
{
    const size_t at = parameters->at[layer][role];
    if (!*parameters->b->name)
        return parameters->w + at;
    if (!parameters->copy)
        parameters->copy = mem_zero(parameters->n, sizeof *parameters->copy);
    parameters->b->ops->read(parameters->b, parameters->copy + at, parameters->w + at,
                             value_count(&parameters->c, role) * sizeof *parameters->w);
    return parameters->copy + at;
}

float *parameters_gradients(struct parameters *parameters, enum role role, size_t layer)
{
    return parameters->g + parameters->at[layer][role];
}

void parameters_clear_gradients(struct parameters *parameters)
{
    for (size_t layer = 0; layer < parameters->c.layers; layer++)
        for (int which = 0; which < ROLE_COUNT; which++) {
            enum role role = (enum role)which;
            int sums = role_is_vector(role) || !role_per_layer(role);
            if (sums && (!layer || role_per_layer(role)))
                parameters->b->ops->clear(
                    parameters->b, parameters->g + parameters->at[layer][which],
                    value_count(&parameters->c, role) * sizeof *parameters->g);
        }
}

/* The end of the run of values from `at` on that belong to vectors only (*vectors 1) or to matrices
 * only (*vectors 0). */
static size_t run_end(const struct parameters *parameters, size_t at, int *vectors)
{
    size_t end = at;
    for (size_t layer = 0; layer < parameters->c.layers; layer++)
        for (int which = 0; which < ROLE_COUNT; which++) {
            enum role role = (enum role)which;
            const size_t n = value_count(&parameters->c, role);
            if (parameters->at[layer][which] != end || !n || (layer && !role_per_layer(role)))
                continue;
            if (end == at)
                *vectors = role_is_vector(role);
            if (*vectors != role_is_vector(role))
                return end;
            end += n;
        }
    return end;
}

double parameters_update(struct parameters *parameters, double rate, double decay, double clip)
{
    double norm = sqrt(
        parameters->ops->squares(parameters->b, parameters->g, parameters->n, parameters->work));
    struct adamw adamw = {.rate = rate, .beta1 = 0.9, .beta2 = 0.95, .eps = 1e-8,
                          .step = ++parameters->step, .grad_scale = norm > clip ? clip / norm : 1};
    int vectors = 0;
    for (size_t at = 0, end; at < parameters->n; at = end) {
        end = run_end(parameters, at, &vectors);
        adamw.decay = vectors ? 0 : decay;
        parameters->ops->adamw(parameters->b, parameters->w + at, parameters->m1 + at,
                               parameters->m2 + at, parameters->g + at, end - at, &adamw);
    }
    return norm;
}

/* ---- resuming ---- */

static struct tensor flat(const char *name, const float *x, size_t n)
{
    struct tensor tensor = {.name = (char *)(uintptr_t)name, .dtype = "F32", .rank = 1,
                            .shape = {n}, .bytes = n * sizeof *x, .data = (const unsigned char *)x};
    return tensor;
}

int parameters_save(const struct parameters *parameters, const char *path, const json_t *note,
                    struct err *e)
{
    json_t *all = note ? json_copy((json_t *)(uintptr_t)note) : json_object();
    json_object_set_new(all, "step", json_integer(parameters->step));
    char *text = json_dumps(all, JSON_COMPACT);
    const float *const from[] = {parameters->w, parameters->m1, parameters->m2};
    const int here = !*parameters->b->name; /* a host's memory is written as it is */
    float *copy = here ? NULL : mem_zero(3 * parameters->n, sizeof *copy);
    const float *x[3];
    for (size_t i = 0; i < 3; i++) {
        x[i] = here ? from[i] : copy + i * parameters->n;
        if (!here)
            parameters->b->ops->read(parameters->b, copy + i * parameters->n, from[i],
                                     parameters->n * sizeof *copy);
    }
    struct tensor list[4] = {flat("values", x[0], parameters->n),
                             flat("moment_1", x[1], parameters->n),
                             flat("moment_2", x[2], parameters->n), {0}};
    size_t n = strlen(text);
    list[3] = (struct tensor){.name = (char *)(uintptr_t) "note", .dtype = "U8", .rank = 1,
                              .shape = {n}, .bytes = n, .data = (const unsigned char *)text};
    int bad = safetensors_write(path, list, 4, NULL, e);
    free(copy);
    free(text);
    json_decref(all);
    return bad;
}

static int take(struct parameters *parameters, const struct tensors *tensors, const char *path,
                const char *name, float *out, struct err *e)
{
    const struct tensor *tensor = safetensors_find(tensors, name);
    if (!tensor || strcmp(tensor->dtype, "F32") || tensor->bytes != parameters->n * sizeof *out)
        return err_set(e, EXIT_BAD_DATA,
                       "%s: '%s': expected F32 [%zu]: not a state of this network", path, name,
                       parameters->n);
    parameters->b->ops->write(parameters->b, out, tensor->data, tensor->bytes);
    return 0;
}

int parameters_restore(struct parameters *parameters, const char *path, json_t **note,
                       struct err *e)
{
    struct tensors *tensors = safetensors_open_file(path, e);
    if (!tensors)
        return -1;
    int bad = take(parameters, tensors, path, "values", parameters->w, e) ||
              take(parameters, tensors, path, "moment_1", parameters->m1, e) ||
              take(parameters, tensors, path, "moment_2", parameters->m2, e);
    const struct tensor *tensor = safetensors_find(tensors, "note");
    json_t *all = tensor ? json_bytes((const char *)tensor->data, tensor->bytes, path, e) : NULL;
    int64_t step = 0;
    if (!tensor)
        bad = err_set(e, EXIT_BAD_DATA, "%s: no 'note': not a state of a training run", path);
    bad = bad || !all || json_int(all, path, "step", 0, INT64_MAX, &step, e);
    parameters->step = step;
    safetensors_close(tensors);
    if (bad)
        json_decref(all);
    else
        *note = all;
    return bad ? -1 : 0;
}
