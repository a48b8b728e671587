/* network.c - loads the weights of a network into a back end, and reads them back; see network.h.
 * network-precision.c settles the precision before. */
#include "lib/network/network.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/experts.h"
#include "kernels/finite.h"
#include "lib/base/hash64.h"
#include "lib/base/mem.h"
#include "lib/base/resident.h"

/* ---- weights ---- */

static int short_of_memory(const struct network *n, enum role role, struct err *e)
{
    size_t rows, cols;
    role_shape(&n->config, role, &rows, &cols);
    return err_set(e, EXIT_FAILED_RECORDS, "%s: out of memory for %s [%zu, %zu] (%zu bytes are "
                   "in use; try --quant, a smaller --dtype or a larger --mem-cap)", n->config.name,
                   role_name(role), rows, cols, n->backend->memory.reserved);
}

static int load_mat(struct network *n, const struct checkpoint *model, enum role role, size_t layer,
                    struct mat *weight, struct err *e)
{
    struct weight w = {model, role, layer};
    struct mat_source source = checkpoint_source(&w);
    enum dtype dtype = quantization_dtype(n->quant, &n->config, role, layer, n->dtype);
    int odd = 0;
    source.odd = model->role ? &odd : NULL; /* random weights are finite */
    checkpoint_reached(model, &w);
    int bad = n->backend->ops->mat_make(n->backend, weight, &source, dtype);
    checkpoint_drop(&w);
    if (bad)
        return short_of_memory(n, role, e);
    return odd ? checkpoint_check_tensor(model, role, layer, e) : 0; /* names the value */
}

/* A copy of from[count] in memory of the back end. NULL: no memory. */
static float *put_floats(struct network *n, const float *from, size_t count)
{
    const struct ops *ops = n->backend->ops;
    float *to = ops->alloc(n->backend, count * sizeof *to, MEMORY_WEIGHTS);
    if (to)
        ops->write(n->backend, to, from, count * sizeof *to);
    return to;
}

/* Loads a gain or a bias into *out. *out is not set if the layer does not have the role. */
static int load_vector(struct network *n, const struct checkpoint *model, enum role role,
                       size_t layer, float **out, struct err *e)
{
    size_t rows, cols;
    if (!role_has(&n->config, role, layer))
        return 0;
    layer = role_number(&n->config, role, layer);
    role_shape(&n->config, role, &rows, &cols);
    float *values = mem_alloc(rows * sizeof *values);
    checkpoint_floats(model, role, layer, values);
    int odd = !finite_floats(values, rows);
    *out = put_floats(n, values, rows);
    free(values);
    if (!*out)
        return short_of_memory(n, role, e);
    return odd ? checkpoint_check_tensor(model, role, layer, e) : 0;
}

static int load_rope(struct network *n, struct err *e)
{
    size_t half = n->config.head_dim / 2;
    float *inv_freq = mem_alloc(half * sizeof *inv_freq);
    config_rope(&n->config, inv_freq);
    n->inv_freq = put_floats(n, inv_freq, half);
    memset(inv_freq, 0, half * sizeof *inv_freq);
    if (config_leaves_unrotated(&n->config))
        n->still = put_floats(n, inv_freq, half);
    free(inv_freq);
    return n->inv_freq && (n->still || !config_leaves_unrotated(&n->config))
               ? 0
               : short_of_memory(n, ROLE_Q, e);
}

/* The matrices of a layer that are not experts, in the order in which a store keeps them. Matrix i
 * of a layer: these, then the matrices of time mixing (from OF_ALL), then the experts (from
 * LAYER_MATS): all gates, all ups, all downs. */
static const enum role layer_roles[] = {ROLE_Q,       ROLE_K,       ROLE_V,       ROLE_O,
                                        ROLE_GATE,    ROLE_UP,      ROLE_DOWN,    ROLE_CROSS_Q,
                                        ROLE_CROSS_K, ROLE_CROSS_V, ROLE_CROSS_O, ROLE_ROUTER,
                                        ROLE_SHARED_GATE, ROLE_SHARED_UP, ROLE_SHARED_DOWN,
                                        ROLE_DENSE_GATE, ROLE_DENSE_UP, ROLE_DENSE_DOWN};
enum { OF_ALL = sizeof layer_roles / sizeof *layer_roles, LAYER_MATS = OF_ALL + MIXING_MATRICES };

static size_t count_mats(const struct network *n)
{
    return LAYER_MATS + EXPERTS_PARTS * n->config.experts;
}

static enum role layer_role(const struct network *n, size_t i)
{
    if (i >= LAYER_MATS)
        return (enum role)(ROLE_GATE + (i - LAYER_MATS) / n->config.experts);
    return i < OF_ALL ? layer_roles[i] : (enum role)(MIXING_MATRIX + i - OF_ALL);
}

/* The index of matrix i of this layer among all tensors that have the role of the matrix. */
static size_t layer_number(const struct network *n, size_t layer, size_t i)
{
    const size_t first = role_number(&n->config, layer_role(n, i), layer);
    return i < LAYER_MATS ? first : first + (i - LAYER_MATS) % n->config.experts;
}

static int is_of_expert(const struct network *n, enum role role)
{
    return n->config.experts && (role == ROLE_GATE || role == ROLE_UP || role == ROLE_DOWN);
}

static int has_mat(const struct network *n, size_t layer, size_t i)
{
    enum role role = layer_role(n, i);
    return role_has(&n->config, role, layer) && (i >= LAYER_MATS || !is_of_expert(n, role));
}

static struct mat *layer_mat(struct layer *weights, size_t i)
{
    if (i >= LAYER_MATS)
        return &weights->expert[i - LAYER_MATS];
    if (i >= OF_ALL)
        return &weights->mixing[i - OF_ALL];
    struct mat *const mats[OF_ALL] = {
        &weights->q, &weights->k, &weights->v, &weights->o, &weights->gate, &weights->up,
        &weights->down, &weights->cross_q, &weights->cross_k, &weights->cross_v, &weights->cross_o,
        &weights->router, &weights->shared_gate, &weights->shared_up, &weights->shared_down,
        &weights->gate, &weights->up, &weights->down};
    return mats[i];
}

static int is_outside(const struct network *n, size_t layer)
{
    return offload_number(&n->wish, n->config.layers, layer) >= 0;
}

/* Writes weights->table: the addresses of the matrices of the experts of this layer. */
static int put_table(struct network *n, size_t layer, struct err *e)
{
    struct layer *weights = &n->layer[layer];
    const struct ops *ops = n->backend->ops;
    const size_t count = config_mixes(&n->config, layer) ? EXPERTS_PARTS * n->config.experts : 0;
    const void *data[EXPERTS_PARTS * EXPERTS_MOST];
    for (size_t i = 0; i < count; i++)
        data[i] = weights->expert[i].data;
    if (count && !weights->table)
        weights->table = ops->alloc(n->backend, count * sizeof *data, MEMORY_WEIGHTS);
    if (count && !weights->table)
        return short_of_memory(n, ROLE_ROUTER, e);
    if (count)
        ops->write(n->backend, weights->table, data, count * sizeof *data);
    return 0;
}

/* Loads the matrices of this layer; of an offloaded layer moves each into the store. */
static int load_mats(struct network *n, const struct checkpoint *model, size_t layer, struct err *e)
{
    size_t at = 0;
    int bad = 0;
    n->layer[layer].expert = mem_zero(EXPERTS_PARTS * n->config.experts, sizeof(struct mat));
    for (size_t i = 0; i < count_mats(n) && !bad; i++) {
        struct mat *weight = layer_mat(&n->layer[layer], i);
        if (!has_mat(n, layer, i))
            continue;
        bad = load_mat(n, model, layer_role(n, i), layer_number(n, layer, i), weight, e);
        if (bad && is_outside(n, layer))
            n->backend->ops->mat_free(n->backend, weight);
        else if (!bad && is_outside(n, layer))
            bad = offload_take(n->offload, layer, weight, &at, e);
    }
    return bad || put_table(n, layer, e) ? -1 : 0;
}

static int load_vectors(struct network *n, const struct checkpoint *model, size_t layer,
                        struct err *e)
{
    struct layer *weights = &n->layer[layer];
    for (size_t i = 0; i < MIXING_VECTORS; i++)
        if (load_vector(n, model, (enum role)(MIXING_VECTOR + i), layer, &weights->term[i], e))
            return -1;
    return load_vector(n, model, ROLE_ATTN_NORM, layer, &weights->attn_norm, e) ||
                   load_vector(n, model, ROLE_FFN_NORM, layer, &weights->ffn_norm, e) ||
                   load_vector(n, model, ROLE_Q_BIAS, layer, &weights->q_bias, e) ||
                   load_vector(n, model, ROLE_K_BIAS, layer, &weights->k_bias, e) ||
                   load_vector(n, model, ROLE_V_BIAS, layer, &weights->v_bias, e) ||
                   load_vector(n, model, ROLE_Q_NORM, layer, &weights->q_norm, e) ||
                   load_vector(n, model, ROLE_K_NORM, layer, &weights->k_norm, e) ||
                   load_vector(n, model, ROLE_CROSS_NORM, layer, &weights->cross_norm, e) ||
                   load_vector(n, model, ROLE_ROUTER_BIAS, layer, &weights->router_bias, e)
               ? -1
               : 0;
}

/* Loads the offloaded layers. load_all() calls load_outside() first, while memory is still free,
 * because a matrix needs memory until it is in the store. */
static int load_outside(struct network *n, const struct checkpoint *model, struct err *e)
{
    const struct ops *ops = n->backend->ops;
    if (!n->wish.layers)
        return 0;
    n->offload = offload_open(n->backend, &n->wish, n->config.layers, network_layer_bytes(n),
                              MEMORY_WEIGHTS, e);
    int bad = !n->offload;
    for (size_t layer = 0; !bad && layer < n->config.layers; layer++)
        bad = is_outside(n, layer) && load_mats(n, model, layer, e);
    if (!bad && ops->trim)
        ops->trim(n->backend);
    return bad;
}

/* ---- loading ---- */

static size_t mat_bytes(const struct network *n, enum role role, size_t layer)
{
    size_t rows, cols;
    role_shape(&n->config, role, &rows, &cols);
    enum dtype dtype = quantization_dtype(n->quant, &n->config, role, layer, n->dtype);
    return n->backend->ops->mat_bytes(rows, cols, dtype);
}

size_t network_layer_bytes(const struct network *n)
{
    size_t most = 0;
    for (size_t layer = 0; layer < n->config.layers; layer++) {
        size_t sum = 0;
        for (size_t i = 0; i < count_mats(n); i++)
            if (has_mat(n, layer, i))
                sum += offload_part(mat_bytes(n, layer_role(n, i), layer_number(n, layer, i)));
        most = sum > most ? sum : most;
    }
    return most;
}

/* The sum of taken(bytes) over all blocks of the weights, where taken(bytes) is the memory that a
 * block of `bytes` bytes takes. */
static size_t expected(const struct network *n, size_t (*taken)(size_t bytes))
{
    const struct config *config = &n->config;
    size_t outside = n->wish.layers, sum = taken(config->head_dim / 2 * sizeof(float));
    sum += config_leaves_unrotated(config) ? taken(config->head_dim / 2 * sizeof(float)) : 0;
    if (config->translates)
        sum += taken(config_answers(config) * sizeof(int32_t));
    if (outside)
        sum += taken(offload_slots(&n->wish, network_layer_bytes(n)));
    if (config->experts)
        sum += (config->layers - config->dense) *
               taken(EXPERTS_PARTS * config->experts * sizeof(void *));
    for (int i = 0; i < ROLE_COUNT; i++) {
        enum role role = (enum role)i;
        size_t rows, cols;
        role_shape(config, role, &rows, &cols);
        if (role == ROLE_HEAD && config->tied)
            continue;
        for (size_t layer = 0; layer < role_tensors(config, role); layer++) {
            int vector = role_is_vector(role);
            int elsewhere = role_per_layer(role) && is_outside(n, role_layer(config, role, layer));
            if (vector || !elsewhere)
                sum += taken(vector ? rows * cols * sizeof(float) : mat_bytes(n, role, layer));
        }
    }
    return sum;
}

size_t network_expected_bytes(const struct network *n)
{
    return expected(n, memory_rounded);
}

static size_t pages(size_t bytes)
{
    return memory_pages(memory_rounded(bytes));
}

size_t network_expected_pages(const struct network *n)
{
    return expected(n, pages);
}

/* -1 (EXIT_BUSY): the weights would fit on the device if other processes did not use its memory.
 * Memory of a host is not checked, because the system can free memory of the file cache. */
static int check_room(const struct network *n, struct err *e)
{
    struct backend *backend = n->backend;
    size_t need = network_expected_bytes(n), available, total, cap = backend->memory.cap;
    if (!backend->name[0] || (cap && need > cap))
        return 0;
    backend->ops->room(backend, &available, &total);
    if (need <= available || need > total)
        return 0;
    return err_set(e, EXIT_BUSY,
                   "%s: %zu bytes of weights, but %s has %zu free of %zu: other processes use it",
                   n->config.name, need, backend->name, available, total);
}

static int load_ids(struct network *n, const struct checkpoint *model, struct err *e)
{
    const struct ops *ops = n->backend->ops;
    const size_t bytes = config_answers(&n->config) * sizeof *n->ids;
    if (!model->ids)
        return 0;
    n->ids = ops->alloc(n->backend, bytes, MEMORY_WEIGHTS);
    if (!n->ids)
        return short_of_memory(n, ROLE_HEAD, e);
    ops->write(n->backend, n->ids, model->ids, bytes);
    return 0;
}

static int load_all(struct network *n, const struct checkpoint *model, struct err *e)
{
    const struct config *config = &n->config;
    int bad = load_outside(n, model, e) || load_rope(n, e) || load_ids(n, model, e) ||
              (role_has(config, ROLE_FUSE, 0) && load_mat(n, model, ROLE_FUSE, 0, &n->fuse, e)) ||
              (role_has(config, ROLE_EMBED, 0) && load_mat(n, model, ROLE_EMBED, 0, &n->embed, e));
    if (!bad && n->config.tied)
        n->head = n->embed;
    else if (!bad && role_has(config, ROLE_HEAD, 0))
        bad = load_mat(n, model, ROLE_HEAD, 0, &n->head, e);
    bad = bad || load_vector(n, model, ROLE_FUSE_NORM, 0, &n->fuse_norm, e) ||
          load_vector(n, model, ROLE_NORM, 0, &n->norm, e);
    for (size_t layer = 0; !bad && layer < n->config.layers; layer++)
        bad = load_vectors(n, model, layer, e) ||
              (!is_outside(n, layer) && load_mats(n, model, layer, e));
    return bad || (model->tensors && safetensors_unchanged(model->tensors, e)) ? -1 : 0;
}

static uint64_t identity_of(const struct network *n)
{
    uint64_t h = hash64_fnv(HASH64_FNV, &n->config, sizeof n->config);
    h = hash64_fnv(h, n->layer, n->config.layers * sizeof *n->layer);
    for (size_t layer = 0; layer < n->config.layers; layer++)
        h = hash64_fnv(h, n->layer[layer].expert,
                       EXPERTS_PARTS * n->config.experts * sizeof(struct mat));
    const void *const others[] = {n->embed.data, n->head.data, n->norm, n->inv_freq,
                                  n->fuse.data, n->fuse_norm, n->ids};
    const enum dtype dtypes[] = {n->embed.dtype, n->head.dtype, n->kv_dtype, n->backend->act};
    return hash64_fnv(hash64_fnv(h, others, sizeof others), dtypes, sizeof dtypes);
}

void network_lend(struct network *n, const struct network *from)
{
    if (!role_has(&n->config, ROLE_EMBED, 0))
        n->embed = from->embed;
    if (!role_has(&n->config, ROLE_HEAD, 0))
        n->head = from->head;
    n->identity = identity_of(n);
}

int network_load(struct network *n, struct backend *backend, const struct checkpoint *model,
                 const struct precision *precision, struct err *e)
{
    if (network_settle(n, backend, model, precision, e) || check_room(n, e))
        return -1;
    n->layer = mem_zero(n->config.layers, sizeof *n->layer);
    const int bad = load_all(n, model, e);
    checkpoint_reached(model, NULL);
    if (!bad && n->offload) { /* now that nothing else reads from a disk */
        offload_time(n->offload);
        offload_start(n->offload);
    }
    if (!bad) {
        n->identity = identity_of(n);
        n->huge_page_bytes = *backend->name ? -1 : resident_huge();
        return 0;
    }
    struct network what = {.config = n->config, .backend = backend, .dtype = n->dtype,
                           .kv_dtype = n->kv_dtype, .quant = n->quant, .wish = n->wish,
                           .kv_wish = n->kv_wish, .row_tile = n->row_tile};
    network_free(n);
    *n = what;
    return -1;
}

/* The matrix with this number among the tensors of its role. For a role outside the layers: the
 * head, else the embedding. */
static struct mat *mat_of(struct network *n, enum role role, size_t number)
{
    const size_t layer = role_layer(&n->config, role, number);
    for (size_t i = 0; i < count_mats(n) && role_per_layer(role); i++)
        if (layer_role(n, i) == role && has_mat(n, layer, i) && layer_number(n, layer, i) == number)
            return layer_mat(&n->layer[layer], i);
    return role == ROLE_HEAD ? &n->head : &n->embed;
}

int network_part(struct network *n, const struct checkpoint *model, enum part part, size_t layer,
                 enum dtype dtype, struct err *e)
{
    int bad = 0;
    assert(!n->offload);
    n->quant = QUANT_MIXED;
    n->config.mix[layer][part] = (uint8_t)dtype;
    for (int i = 0; i < ROLE_COUNT && !bad; i++) {
        enum role role = (enum role)i;
        if (quantization_part(&n->config, role) != part || (role == ROLE_HEAD && n->config.tied) ||
            (role_per_layer(role) && !role_has(&n->config, role, layer)))
            continue;
        for (size_t k = 0; k < role_each(&n->config, role) && !bad; k++) {
            size_t number = role_number(&n->config, role, layer) + k;
            n->backend->ops->mat_free(n->backend, mat_of(n, role, number));
            bad = load_mat(n, model, role, number, mat_of(n, role, number), e);
        }
    }
    bad = bad || put_table(n, layer, e);
    if (n->config.tied)
        n->head = n->embed;
    n->identity = identity_of(n);
    return bad || network_check(n, e) ? -1 : 0;
}

void network_free(struct network *n)
{
    if (!n->layer)
        return;
    const struct ops *ops = n->backend->ops;
    for (size_t layer = 0; layer < n->config.layers; layer++) {
        struct layer *weights = &n->layer[layer];
        for (size_t i = 0; weights->expert && i < count_mats(n) && !is_outside(n, layer); i++)
            if (has_mat(n, layer, i))
                ops->mat_free(n->backend, layer_mat(weights, i));
        ops->free(n->backend, weights->table);
        free(weights->expert);
        float *vectors[] = {weights->attn_norm, weights->ffn_norm, weights->q_bias, weights->k_bias,
                            weights->v_bias, weights->q_norm,    weights->k_norm,
                            weights->cross_norm, weights->router_bias};
        for (size_t i = 0; i < sizeof vectors / sizeof *vectors; i++)
            ops->free(n->backend, vectors[i]);
        for (size_t i = 0; i < MIXING_VECTORS; i++)
            ops->free(n->backend, weights->term[i]);
    }
    if (role_has(&n->config, ROLE_FUSE, 0))
        ops->mat_free(n->backend, &n->fuse);
    if (!n->config.tied && role_has(&n->config, ROLE_HEAD, 0))
        ops->mat_free(n->backend, &n->head);
    if (role_has(&n->config, ROLE_EMBED, 0))
        ops->mat_free(n->backend, &n->embed);
    ops->free(n->backend, n->ids);
    ops->free(n->backend, n->fuse_norm);
    ops->free(n->backend, n->norm);
    ops->free(n->backend, n->inv_freq);
    ops->free(n->backend, n->still);
    offload_close(n->offload);
    free(n->layer);
    *n = (struct network){0};
}

size_t network_weight_bytes(const struct network *n)
{
    return n->backend->memory.kind[MEMORY_WEIGHTS];
}

/* ---- reading back ---- */

static const float *vector_of(const struct network *n, enum role role, size_t layer)
{
    const struct layer *weights = &n->layer[layer];
    if (role >= ROLE_SHIFT_R && role < ROLE_LERP_DOWN_R)
        return weights->term[role - ROLE_SHIFT_R];
    const float *const vectors[ROLE_COUNT] = {
        [ROLE_NORM] = n->norm,            [ROLE_ATTN_NORM] = weights->attn_norm,
        [ROLE_FFN_NORM] = weights->ffn_norm,    [ROLE_CROSS_NORM] = weights->cross_norm,
        [ROLE_Q_BIAS] = weights->q_bias,        [ROLE_K_BIAS] = weights->k_bias,
        [ROLE_V_BIAS] = weights->v_bias,        [ROLE_Q_NORM] = weights->q_norm,
        [ROLE_K_NORM] = weights->k_norm,        [ROLE_ROUTER_BIAS] = weights->router_bias};
    return vectors[role];
}

void network_values(const struct network *n, enum role role, size_t layer, const int32_t *ids,
                    float *out)
{
    struct backend *backend = n->backend;
    size_t rows, cols;
    role_shape(&n->config, role, &rows, &cols);
    assert(backend->act == DTYPE_F32 && !is_outside(n, layer));
    if (role_is_vector(role))
        backend->ops->copy(backend, out, vector_of(n, role, layer), rows * sizeof *out);
    else
        backend->ops->embed(backend, out, mat_of((struct network *)(uintptr_t)n, role, layer), ids,
                            rows);
}
