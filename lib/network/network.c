/* network.c - loads a network into a back end, and reads it back (network.h). network-precision.c
 * settles the precision before the first weight is read. */
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

static int short_of_memory(const struct network *n, enum role r, struct err *e)
{
    size_t rows, cols;
    role_shape(&n->config, r, &rows, &cols);
    return err_set(e, EXIT_FAILED_RECORDS, "%s: out of memory for %s [%zu, %zu] (%zu bytes are "
                   "in use; try --quant, a smaller --dtype or a larger --mem-cap)", n->config.name,
                   role_name(r), rows, cols, n->backend->memory.reserved);
}

static int load_mat(struct network *n, const struct checkpoint *c, enum role r, size_t layer,
                    struct mat *m, struct err *e)
{
    struct weight w = {c, r, layer};
    struct mat_source s = checkpoint_source(&w);
    enum dtype dtype = quantization_dtype(n->quant, &n->config, r, layer, n->dtype);
    int odd = 0;
    s.odd = c->role ? &odd : NULL; /* random weights are finite */
    checkpoint_advise(&w, 1);
    int bad = n->backend->ops->mat_make(n->backend, m, &s, dtype);
    checkpoint_advise(&w, 0);
    if (bad)
        return short_of_memory(n, r, e);
    return odd ? checkpoint_check_tensor(c, r, layer, e) : 0; /* reports which value */
}

/* NULL: no memory. */
static float *put_floats(struct network *n, const float *from, size_t count)
{
    const struct ops *ops = n->backend->ops;
    float *to = ops->alloc(n->backend, count * sizeof *to, MEMORY_WEIGHTS);
    if (to)
        ops->write(n->backend, to, from, count * sizeof *to);
    return to;
}

/* Loads a gain or a bias; it stays NULL if the network has none. */
static int load_vector(struct network *n, const struct checkpoint *c, enum role r, size_t layer,
                       float **out, struct err *e)
{
    size_t rows, cols;
    if (!role_has(&n->config, r, layer))
        return 0;
    layer = role_number(&n->config, r, layer);
    role_shape(&n->config, r, &rows, &cols);
    float *v = mem_alloc(rows * sizeof *v);
    checkpoint_floats(c, r, layer, v);
    int odd = !finite_floats(v, rows);
    *out = put_floats(n, v, rows);
    free(v);
    if (!*out)
        return short_of_memory(n, r, e);
    return odd ? checkpoint_check_tensor(c, r, layer, e) : 0;
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

/* The matrices of a layer, in the order in which a store keeps them. */
static const enum role layer_roles[] = {ROLE_Q,       ROLE_K,       ROLE_V,       ROLE_O,
                                        ROLE_GATE,    ROLE_UP,      ROLE_DOWN,    ROLE_CROSS_Q,
                                        ROLE_CROSS_K, ROLE_CROSS_V, ROLE_CROSS_O, ROLE_ROUTER,
                                        ROLE_SHARED_GATE, ROLE_SHARED_UP, ROLE_SHARED_DOWN,
                                        ROLE_DENSE_GATE, ROLE_DENSE_UP, ROLE_DENSE_DOWN};
enum { OF_ALL = sizeof layer_roles / sizeof *layer_roles, LAYER_MATS = OF_ALL + MIXING_MATRICES };

/* Then come those of time mixing, then gate, up and down of every expert. */
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

/* The number of matrix i of layer l in its role. */
static size_t layer_number(const struct network *n, size_t l, size_t i)
{
    const size_t first = role_number(&n->config, layer_role(n, i), l);
    return i < LAYER_MATS ? first : first + (i - LAYER_MATS) % n->config.experts;
}

static int is_of_expert(const struct network *n, enum role r)
{
    return n->config.experts && (r == ROLE_GATE || r == ROLE_UP || r == ROLE_DOWN);
}

static int has_mat(const struct network *n, size_t l, size_t i)
{
    enum role r = layer_role(n, i);
    return role_has(&n->config, r, l) && (i >= LAYER_MATS || !is_of_expert(n, r));
}

static struct mat *layer_mat(struct layer *y, size_t i)
{
    if (i >= LAYER_MATS)
        return &y->expert[i - LAYER_MATS];
    if (i >= OF_ALL)
        return &y->mixing[i - OF_ALL];
    struct mat *const mats[OF_ALL] = {
        &y->q, &y->k, &y->v, &y->o, &y->gate, &y->up, &y->down, &y->cross_q, &y->cross_k,
        &y->cross_v, &y->cross_o, &y->router, &y->shared_gate, &y->shared_up, &y->shared_down,
        &y->gate, &y->up, &y->down};
    return mats[i];
}

static int is_outside(const struct network *n, size_t l)
{
    return offload_number(&n->wish, n->config.layers, l) >= 0;
}

/* Tells the back end where the matrices of the experts of layer l are. */
static int put_table(struct network *n, size_t l, struct err *e)
{
    struct layer *y = &n->layer[l];
    const struct ops *ops = n->backend->ops;
    const size_t count = config_mixes(&n->config, l) ? EXPERTS_PARTS * n->config.experts : 0;
    const void *data[EXPERTS_PARTS * EXPERTS_MOST];
    for (size_t i = 0; i < count; i++)
        data[i] = y->expert[i].data;
    if (count && !y->table)
        y->table = ops->alloc(n->backend, count * sizeof *data, MEMORY_WEIGHTS);
    if (count && !y->table)
        return short_of_memory(n, ROLE_ROUTER, e);
    if (count)
        ops->write(n->backend, y->table, data, count * sizeof *data);
    return 0;
}

/* Loads the matrices of layer l, into memory or on their way into the store. */
static int load_mats(struct network *n, const struct checkpoint *c, size_t l, struct err *e)
{
    size_t at = 0;
    int bad = 0;
    n->layer[l].expert = mem_zero(EXPERTS_PARTS * n->config.experts, sizeof(struct mat));
    for (size_t i = 0; i < count_mats(n) && !bad; i++) {
        struct mat *m = layer_mat(&n->layer[l], i);
        if (!has_mat(n, l, i))
            continue;
        bad = load_mat(n, c, layer_role(n, i), layer_number(n, l, i), m, e);
        if (bad && is_outside(n, l))
            n->backend->ops->mat_free(n->backend, m);
        else if (!bad && is_outside(n, l))
            bad = offload_take(n->offload, l, m, &at, e);
    }
    return bad || put_table(n, l, e) ? -1 : 0;
}

static int load_vectors(struct network *n, const struct checkpoint *c, size_t l, struct err *e)
{
    struct layer *y = &n->layer[l];
    for (size_t i = 0; i < MIXING_VECTORS; i++)
        if (load_vector(n, c, (enum role)(MIXING_VECTOR + i), l, &y->term[i], e))
            return -1;
    return load_vector(n, c, ROLE_ATTN_NORM, l, &y->attn_norm, e) ||
                   load_vector(n, c, ROLE_FFN_NORM, l, &y->ffn_norm, e) ||
                   load_vector(n, c, ROLE_Q_BIAS, l, &y->q_bias, e) ||
                   load_vector(n, c, ROLE_K_BIAS, l, &y->k_bias, e) ||
                   load_vector(n, c, ROLE_V_BIAS, l, &y->v_bias, e) ||
                   load_vector(n, c, ROLE_Q_NORM, l, &y->q_norm, e) ||
                   load_vector(n, c, ROLE_K_NORM, l, &y->k_norm, e) ||
                   load_vector(n, c, ROLE_CROSS_NORM, l, &y->cross_norm, e) ||
                   load_vector(n, c, ROLE_ROUTER_BIAS, l, &y->router_bias, e)
               ? -1
               : 0;
}

/* Runs first, while memory is still free: a matrix on its way into the store takes memory too. */
static int load_outside(struct network *n, const struct checkpoint *c, struct err *e)
{
    const struct ops *ops = n->backend->ops;
    if (!n->wish.layers)
        return 0;
    n->offload = offload_open(n->backend, &n->wish, n->config.layers, network_layer_bytes(n),
                              MEMORY_WEIGHTS, e);
    int bad = !n->offload;
    for (size_t l = 0; !bad && l < n->config.layers; l++)
        bad = is_outside(n, l) && load_mats(n, c, l, e);
    if (!bad) {
        offload_time(n->offload);
        offload_start(n->offload);
    }
    if (!bad && ops->trim)
        ops->trim(n->backend);
    return bad;
}

/* ---- loading ---- */

static size_t mat_bytes(const struct network *n, enum role r, size_t l)
{
    size_t rows, cols;
    role_shape(&n->config, r, &rows, &cols);
    enum dtype d = quantization_dtype(n->quant, &n->config, r, l, n->dtype);
    return n->backend->ops->mat_bytes(rows, cols, d);
}

size_t network_layer_bytes(const struct network *n)
{
    size_t most = 0;
    for (size_t l = 0; l < n->config.layers; l++) {
        size_t sum = 0;
        for (size_t i = 0; i < count_mats(n); i++)
            if (has_mat(n, l, i))
                sum += offload_part(mat_bytes(n, layer_role(n, i), layer_number(n, l, i)));
        most = sum > most ? sum : most;
    }
    return most;
}

/* taken(bytes): the memory that a block of `bytes` bytes takes. */
static size_t expected(const struct network *n, size_t (*taken)(size_t bytes))
{
    const struct config *c = &n->config;
    size_t outside = n->wish.layers, sum = taken(c->head_dim / 2 * sizeof(float));
    sum += config_leaves_unrotated(c) ? taken(c->head_dim / 2 * sizeof(float)) : 0;
    if (config_answers(c) < c->vocab)
        sum += taken(config_answers(c) * sizeof(int32_t));
    if (outside)
        sum += taken(offload_slots(&n->wish, network_layer_bytes(n)));
    if (c->experts)
        sum += (c->layers - c->dense) * taken(EXPERTS_PARTS * c->experts * sizeof(void *));
    for (int i = 0; i < ROLE_COUNT; i++) {
        enum role r = (enum role)i;
        size_t rows, cols;
        role_shape(c, r, &rows, &cols);
        if (r == ROLE_HEAD && c->tied)
            continue;
        for (size_t l = 0; l < role_tensors(c, r); l++) {
            int vector = role_is_vector(r);
            int elsewhere = role_per_layer(r) && is_outside(n, role_layer(c, r, l));
            if (vector || !elsewhere)
                sum += taken(vector ? rows * cols * sizeof(float) : mat_bytes(n, r, l));
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

/* -1 (EXIT_BUSY): the weights would fit the device if other processes did not use it. The host is
 * not checked: its file cache gives memory back. */
static int check_room(const struct network *n, struct err *e)
{
    struct backend *b = n->backend;
    size_t need = network_expected_bytes(n), available, total, cap = b->memory.cap;
    if (!b->name[0] || (cap && need > cap))
        return 0;
    b->ops->room(b, &available, &total);
    if (need <= available || need > total)
        return 0;
    return err_set(e, EXIT_BUSY,
                   "%s: %zu bytes of weights, but %s has %zu free of %zu: other processes use it",
                   n->config.name, need, b->name, available, total);
}

static int load_ids(struct network *n, const struct checkpoint *c, struct err *e)
{
    const struct ops *ops = n->backend->ops;
    const size_t bytes = config_answers(&n->config) * sizeof *n->ids;
    if (!c->ids)
        return 0;
    n->ids = ops->alloc(n->backend, bytes, MEMORY_WEIGHTS);
    if (!n->ids)
        return short_of_memory(n, ROLE_HEAD, e);
    ops->write(n->backend, n->ids, c->ids, bytes);
    return 0;
}

static int load_all(struct network *n, const struct checkpoint *c, struct err *e)
{
    const struct config *f = &n->config;
    int bad = load_outside(n, c, e) || load_rope(n, e) || load_ids(n, c, e) ||
              (role_has(f, ROLE_FUSE, 0) && load_mat(n, c, ROLE_FUSE, 0, &n->fuse, e)) ||
              (role_has(f, ROLE_EMBED, 0) && load_mat(n, c, ROLE_EMBED, 0, &n->embed, e));
    if (!bad && n->config.tied)
        n->head = n->embed;
    else if (!bad && role_has(f, ROLE_HEAD, 0))
        bad = load_mat(n, c, ROLE_HEAD, 0, &n->head, e);
    bad = bad || load_vector(n, c, ROLE_FUSE_NORM, 0, &n->fuse_norm, e) ||
          load_vector(n, c, ROLE_NORM, 0, &n->norm, e);
    for (size_t l = 0; !bad && l < n->config.layers; l++)
        bad = load_vectors(n, c, l, e) || (!is_outside(n, l) && load_mats(n, c, l, e));
    return bad || (c->tensors && safetensors_unchanged(c->tensors, e)) ? -1 : 0;
}

static uint64_t identity_of(const struct network *n)
{
    uint64_t h = hash64_fnv(HASH64_FNV, &n->config, sizeof n->config);
    h = hash64_fnv(h, n->layer, n->config.layers * sizeof *n->layer);
    for (size_t l = 0; l < n->config.layers; l++)
        h = hash64_fnv(h, n->layer[l].expert,
                       EXPERTS_PARTS * n->config.experts * sizeof(struct mat));
    const void *const others[] = {n->embed.data, n->head.data, n->norm, n->inv_freq};
    const enum dtype dtypes[] = {n->embed.dtype, n->head.dtype, n->kv_dtype, n->backend->act};
    return hash64_fnv(hash64_fnv(h, others, sizeof others), dtypes, sizeof dtypes);
}

int network_load(struct network *n, struct backend *b, const struct checkpoint *c,
                 const struct precision *p, struct err *e)
{
    if (network_settle(n, b, c, p, e) || check_room(n, e))
        return -1;
    n->layer = mem_zero(n->config.layers, sizeof *n->layer);
    if (!load_all(n, c, e)) {
        n->identity = identity_of(n);
        n->huge_page_bytes = *b->name ? -1 : resident_huge();
        return 0;
    }
    struct network what = {.config = n->config, .backend = b, .dtype = n->dtype,
                           .kv_dtype = n->kv_dtype, .quant = n->quant, .wish = n->wish,
                           .kv_wish = n->kv_wish, .row_tile = n->row_tile};
    network_free(n);
    *n = what;
    return -1;
}

/* A matrix by its number in its role, if the network has it. */
static struct mat *mat_of(struct network *n, enum role r, size_t number)
{
    const size_t l = role_layer(&n->config, r, number);
    for (size_t i = 0; i < count_mats(n) && role_per_layer(r); i++)
        if (layer_role(n, i) == r && has_mat(n, l, i) && layer_number(n, l, i) == number)
            return layer_mat(&n->layer[l], i);
    return r == ROLE_HEAD ? &n->head : &n->embed;
}

int network_part(struct network *n, const struct checkpoint *c, enum part p, size_t layer,
                 enum dtype d, struct err *e)
{
    int bad = 0;
    assert(!n->offload);
    n->quant = QUANT_MIXED;
    n->config.mix[layer][p] = (uint8_t)d;
    for (int i = 0; i < ROLE_COUNT && !bad; i++) {
        enum role r = (enum role)i;
        if (quantization_part(&n->config, r) != p || (r == ROLE_HEAD && n->config.tied) ||
            (role_per_layer(r) && !role_has(&n->config, r, layer)))
            continue;
        for (size_t k = 0; k < role_each(&n->config, r) && !bad; k++) {
            size_t number = role_number(&n->config, r, layer) + k;
            n->backend->ops->mat_free(n->backend, mat_of(n, r, number));
            bad = load_mat(n, c, r, number, mat_of(n, r, number), e);
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
    for (size_t l = 0; l < n->config.layers; l++) {
        struct layer *y = &n->layer[l];
        for (size_t i = 0; y->expert && i < count_mats(n) && !is_outside(n, l); i++)
            if (has_mat(n, l, i))
                ops->mat_free(n->backend, layer_mat(y, i));
        ops->free(n->backend, y->table);
        free(y->expert);
        float *vectors[] = {y->attn_norm, y->ffn_norm, y->q_bias, y->k_bias, y->v_bias,
                            y->q_norm,    y->k_norm,   y->cross_norm, y->router_bias};
        for (size_t i = 0; i < sizeof vectors / sizeof *vectors; i++)
            ops->free(n->backend, vectors[i]);
        for (size_t i = 0; i < MIXING_VECTORS; i++)
            ops->free(n->backend, y->term[i]);
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

static const float *vector_of(const struct network *n, enum role r, size_t l)
{
    const struct layer *y = &n->layer[l];
    if (r >= ROLE_SHIFT_R && r < ROLE_LERP_DOWN_R)
        return y->term[r - ROLE_SHIFT_R];
    const float *const vectors[ROLE_COUNT] = {
        [ROLE_NORM] = n->norm,            [ROLE_ATTN_NORM] = y->attn_norm,
        [ROLE_FFN_NORM] = y->ffn_norm,    [ROLE_CROSS_NORM] = y->cross_norm,
        [ROLE_Q_BIAS] = y->q_bias,        [ROLE_K_BIAS] = y->k_bias,
        [ROLE_V_BIAS] = y->v_bias,        [ROLE_Q_NORM] = y->q_norm,
        [ROLE_K_NORM] = y->k_norm,        [ROLE_ROUTER_BIAS] = y->router_bias};
    return vectors[r];
}

void network_values(const struct network *n, enum role r, size_t layer, const int32_t *ids,
                    float *out)
{
    struct backend *b = n->backend;
    size_t rows, cols;
    role_shape(&n->config, r, &rows, &cols);
    assert(b->act == DTYPE_F32 && !is_outside(n, layer));
    if (role_is_vector(r))
        b->ops->copy(b, out, vector_of(n, r, layer), rows * sizeof *out);
    else
        b->ops->embed(b, out, mat_of((struct network *)(uintptr_t)n, r, layer), ids, rows);
}
