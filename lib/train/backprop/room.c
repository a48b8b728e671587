/* room.c - the memory of a forward and backward pass; see backprop_run.h. cut_all() both measures
 * the block of the back end and cuts it, so that size and layout agree. */
#include <stdlib.h>

#include "lib/base/mem.h"
#include "lib/train/backprop/backprop_run.h"

enum { ALIGN = 256 };

static float *room(struct backprop *backprop, size_t n)
{
    unsigned char *at = backprop->block ? backprop->block + backprop->bytes : NULL;
    backprop->bytes += (n * sizeof(float) + ALIGN - 1) / ALIGN * ALIGN;
    return (float *)(void *)at;
}

/* An array of n floats that only gradients of matrices read. Each layer has its own array. If
 * gradients of parameters are never wanted, all layers share `first`, the array of the first layer.
 * With time mixing other gradients read such arrays too, so layers never share them. */
static float *input_room(struct backprop *backprop, size_t layer, float *first, size_t n)
{
    return layer && backprop->how.latents && !config_recurs(&backprop->c) ? first
                                                                          : room(backprop, n);
}

static void cut_latents(struct backprop *backprop, struct layer_tape *tape, size_t layer)
{
    const struct config *config = &backprop->c;
    size_t T = backprop->rows, HE = config->heads * config->head_dim,
           latents = backprop->seqs * config->latents;
    tape->nc = input_room(backprop, layer, backprop->tape->nc, T * config->width);
    tape->cq = room(backprop, T * HE);
    tape->cy = input_room(backprop, layer, backprop->tape->cy, T * HE);
    tape->zk = room(backprop, latents * config->kv_heads * config->head_dim);
    tape->zv = room(backprop, latents * config->kv_heads * config->head_dim);
    tape->crossed = room(backprop, T * config->width);
}

static void cut_layer(struct backprop *backprop, struct layer_tape *tape, size_t layer)
{
    const struct config *config = &backprop->c;
    size_t T = backprop->rows, D = config->width, HE = config->heads * config->head_dim,
           KE = config->kv_heads * config->head_dim;
    tape->x = room(backprop, T * D);
    tape->n1 = input_room(backprop, layer, backprop->tape->n1, T * D);
    tape->mid = room(backprop, T * D);
    tape->n2 = input_room(backprop, layer, backprop->tape->n2, T * D);
    tape->q = room(backprop, T * HE);
    tape->y = input_room(backprop, layer, backprop->tape->y, T * HE);
    tape->k = room(backprop, T * KE);
    tape->v = room(backprop, T * KE);
    tape->raw_q = config->qk_norm ? room(backprop, T * HE) : NULL;
    tape->raw_k = config->qk_norm ? room(backprop, T * KE) : NULL;
    tape->gate = room(backprop, T * config->ffn);
    tape->up = room(backprop, T * config->ffn);
    tape->act = input_room(backprop, layer, backprop->tape->act, T * config->ffn);
    tape->crossed = tape->mid;
    if (backprop->seqs)
        cut_latents(backprop, tape, layer);
    if (config_recurs(config))
        backprop_mix_tape(backprop, &tape->mix, room);
}

/* The first `every` layers have tapes; a later layer uses the tape of the layer `every` before it.
 * The first layer of each part keeps its own input. With RWKV 7 all layers read v of the first
 * layer, so no later layer shares that array. */
static void cut_tape(struct backprop *backprop)
{
    size_t every = backprop->how.every;
    for (size_t layer = 0; layer < backprop->c.layers; layer++) {
        if (layer < every) {
            cut_layer(backprop, &backprop->tape[layer], layer);
            continue;
        }
        backprop->tape[layer] = backprop->tape[layer - every];
        if (layer % every == 0)
            backprop->tape[layer].x = room(backprop, backprop->rows * backprop->c.width);
        if (layer == every && config_recurs(&backprop->c))
            backprop->tape[layer].v = room(backprop, backprop->rows * backprop->c.kv_heads *
                                                         backprop->c.head_dim);
    }
}

/* Bytes of scratch for the largest of the three products of any matrix. Products of the head have
 * the rows of one block of logits. */
static size_t products_work(const struct backprop *backprop)
{
    size_t most = 0, latents = backprop->seqs * backprop->c.latents,
           all = backprop->rows > latents ? backprop->rows : latents;
    for (int role = 0; role < ROLE_COUNT; role++) {
        size_t rows, cols, T = role == ROLE_HEAD || role == ROLE_EMBED ? backprop->logit_rows : all;
        role_shape(&backprop->c, (enum role)role, &rows, &cols);
        const size_t shape[][3] = {{T, rows, cols}, {T, cols, rows}, {rows, cols, T}};
        const int there = role_layers(&backprop->c, (enum role)role) &&
                          !role_is_vector((enum role)role);
        for (int i = 0; i < 3 && there; i++) {
            size_t bytes = backprop->train->gemm_work(backprop->b, shape[i][0], shape[i][1],
                                                      shape[i][2]);
            most = bytes > most ? bytes : most;
        }
    }
    return most;
}

static size_t scratch_floats(const struct backprop *backprop)
{
    const struct config *config = &backprop->c;
    size_t T = backprop->rows, longest = T > config->latents ? T : config->latents;
    size_t forward = backprop->b->ops->attention_work(backprop->b, T, T, longest, config->heads,
                                                      config->kv_heads, config->head_dim, 0);
    size_t product = products_work(backprop);
    size_t back = backprop->train->attention_back_work(backprop->b, T, longest, config->heads,
                                                       config->head_dim);
    if (config_recurs(config)) {
        size_t mixing = backprop_mix_work(backprop);
        forward = forward > mixing ? forward : mixing;
    }
    forward = (forward > product ? forward : product) / sizeof(float) + 1;
    return (forward > back ? forward : back) + 2 * T * (config->qk_norm ? config->heads : 1);
}

/* Cuts count * bytes from the block at *at and advances *at. block NULL: only advances *at. */
static void *part(unsigned char *block, size_t *at, size_t count, size_t bytes)
{
    void *p = block ? block + *at : NULL;
    *at += (count * bytes + ALIGN - 1) / ALIGN * ALIGN;
    return p;
}

/* Cuts the index arrays from a block and returns their bytes. block NULL: only measures. */
static size_t cut_lists(const struct backprop *backprop, struct lists *lists, unsigned char *block)
{
    const size_t T = backprop->rows, latents = backprop->seqs * backprop->c.latents;
    int32_t **const all[] = {&lists->all.row,  &lists->all.pos,  &lists->scored.row,
                             &lists->scored.pos, &lists->all.last, &lists->token,
                             &lists->scored.last, &lists->slots, &lists->place,    &lists->target};
    struct askers *const who[] = {&lists->all, &lists->scored};
    size_t at = 0;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        *all[i] = part(block, &at, T, sizeof **all[i]);
    for (int i = 0; i < 2; i++) {
        who[i]->seqs = part(block, &at, T, sizeof *who[i]->seqs);
        who[i]->cross = part(block, &at, backprop->seqs, sizeof *who[i]->cross);
    }
    lists->weight = part(block, &at, T, sizeof *lists->weight);
    lists->zpos = part(block, &at, latents, sizeof *lists->zpos);
    lists->zslots = part(block, &at, latents, sizeof *lists->zslots);
    return at;
}

/* Cuts all arrays from backprop->block and sets backprop->bytes; block NULL: only measures. */
static void cut_all(struct backprop *backprop)
{
    const struct config *config = &backprop->c;
    size_t T = backprop->rows, D = config->width, E = config->head_dim, HE = config->heads * E,
           KE = config->kv_heads * E;
    size_t latents = backprop->seqs * config->latents;
    backprop->bytes = backprop->list_bytes = cut_lists(backprop, &backprop->at, backprop->block);
    backprop->inv_freq = room(backprop, E / 2);
    backprop->ones = config->qkv_bias ? room(backprop, T) : NULL;
    float **wide[] = {&backprop->asked, &backprop->top, &backprop->final, &backprop->dx,
                      &backprop->dn};
    for (int i = 0; i < 5; i++)
        *wide[i] = room(backprop, T * D);
    backprop->dq = room(backprop, T * HE);
    backprop->dy = room(backprop, T * HE);
    backprop->dk = room(backprop, T * KE);
    backprop->dv = room(backprop, T * KE);
    backprop->dup = room(backprop, T * config->ffn);
    backprop->logits = room(backprop, backprop->logit_rows * config->vocab);
    if (config_recurs(config))
        backprop_mix_room(backprop, room);
    backprop->at.all.table = room(backprop, T * E);
    backprop->at.scored.table = room(backprop, T * E);
    backprop->z = room(backprop, config->layers * latents * D);
    backprop->row_loss = (double *)(void *)room(backprop, 2 * T);
    backprop->dz = room(backprop, config->layers * latents * D);
    backprop->dzk = room(backprop, latents * KE);
    backprop->dzv = room(backprop, latents * KE);
    backprop->ztable = room(backprop, latents * E);
    cut_tape(backprop);
    backprop->scratch = room(backprop, scratch_floats(backprop));
}

/* Allocates the memory of the host. Writes the frequencies of the rotation and, if there are
 * biases, the array of ones. */
static void make_host(struct backprop *backprop)
{
    const struct config *config = &backprop->c;
    const size_t latents = config->layers * backprop->seqs * config->latents * config->width *
                           sizeof *backprop->dz;
    float *inv_freq = mem_alloc(config->head_dim / 2 * sizeof *inv_freq);
    config_rope(config, inv_freq);
    backprop->b->ops->write(backprop->b, backprop->inv_freq, inv_freq,
                            config->head_dim / 2 * sizeof *inv_freq);
    free(inv_freq);
    if (backprop->ones) {
        float *ones = mem_alloc(backprop->rows * sizeof *ones);
        for (size_t i = 0; i < backprop->rows; i++)
            ones[i] = 1;
        backprop->b->ops->write(backprop->b, backprop->ones, ones, backprop->rows * sizeof *ones);
        free(ones);
    }
    backprop->host_lists = mem_zero(backprop->list_bytes, 1);
    cut_lists(backprop, &backprop->host, backprop->host_lists);
    backprop->answers = mem_zero(
        (size_t)((unsigned char *)backprop->dz - (unsigned char *)backprop->row_loss) + latents, 1);
    backprop->loss = mem_zero(backprop->rows, sizeof *backprop->loss);
}

static size_t logit_rows(const struct config *config, size_t rows, const struct backprop_how *how)
{
    size_t n = BACKPROP_LOGIT_ROWS;
    while (n * config->vocab > BACKPROP_LOGITS && n > BACKPROP_LOGIT_ROWS_LEAST)
        n /= 2;
    return how->whole_loss || rows < n ? rows : n;
}

static struct backprop *measure_room(const struct config *config, struct backend *backend,
                                     size_t rows, size_t seqs, const struct backprop_how *how)
{
    struct backprop *backprop = mem_zero(1, sizeof *backprop);
    *backprop = (struct backprop){.c = *config, .b = backend, .train = train_ops_of(backend->ops),
                                  .rows = rows, .seqs = config->latents ? seqs : 0,
                                  .dtype = how->products, .how = *how,
                                  .logit_rows = logit_rows(config, rows, how)};
    if (!how->every || how->every > config->layers)
        backprop->how.every = config->layers;
    backprop->tape = mem_zero(config->layers, sizeof *backprop->tape);
    cut_all(backprop);
    return backprop;
}

size_t backprop_bytes(const struct config *config, struct backend *backend, size_t rows,
                      size_t seqs, const struct backprop_how *how)
{
    struct backprop *backprop = measure_room(config, backend, rows, seqs, how);
    size_t bytes = backprop->bytes;
    free(backprop->tape);
    free(backprop);
    return bytes;
}

struct backprop *backprop_make(struct parameters *parameters, size_t rows, size_t seqs,
                               enum dtype products)
{
    return backprop_make_as(parameters, rows, seqs, &(struct backprop_how){.products = products});
}

struct backprop *backprop_make_as(struct parameters *parameters, size_t rows, size_t seqs,
                                  const struct backprop_how *how)
{
    struct backprop *backprop = measure_room(&parameters->c, parameters->b, rows, seqs, how);
    backprop->parameters = parameters;
    backprop->block = parameters->b->ops->alloc(parameters->b, backprop->bytes, MEMORY_ACTIVATIONS);
    if (!backprop->block) {
        backprop_free(backprop);
        return NULL;
    }
    cut_all(backprop);
    make_host(backprop);
    return backprop;
}

void backprop_free(struct backprop *backprop)
{
    if (!backprop)
        return;
    backprop->b->ops->free(backprop->b, backprop->block);
    void *host[] = {backprop->tape, backprop->host_lists, backprop->answers, backprop->loss};
    for (size_t i = 0; i < sizeof host / sizeof *host; i++)
        free(host[i]);
    free(backprop);
}
