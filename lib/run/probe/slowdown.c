/* slowdown.c - see slowdown.h. A network of few layers and tokens is loaded and run like any other,
 * so its layers take the time that they take in the run. */
#include "lib/run/probe/slowdown.h"

#include <stdlib.h>

#include "lib/base/mem.h"
#include "lib/network/forward.h"

enum { FEW_TOKENS = 64, TRIES = 3, MORE_TRIES = 12, BLOCKS = 6, BLOCK_MOST = 64 << 20 };

static int64_t read_clock(struct backend *backend)
{
    return backend->ops->event_wait(backend, backend->ops->event_record(backend));
}

/* ---- the store ---- */

/* Measures the rate of a store. *rate is not set if there is no memory. Returns -1 with *e filled
 * if no store is possible. */
static int time_store(const struct network *n, double *rate, struct err *e)
{
    struct backend *backend = n->backend;
    size_t layer = network_layer_bytes(n), bytes = layer < BLOCK_MOST ? layer : BLOCK_MOST;
    struct store *store = backend->ops->store_open(backend, offload_folder(&n->wish), BLOCKS, bytes,
                                                   e);
    if (!store)
        return -1;
    unsigned char *room = backend->ops->alloc(backend, 2 * bytes + STORE_GRAIN, MEMORY_WEIGHTS);
    unsigned char *first = room ? room + -(uintptr_t)room % STORE_GRAIN : NULL;
    unsigned char *const slot[] = {first, first ? first + bytes : NULL};
    int bad = 0;
    for (size_t i = 0; i < BLOCKS && room && !bad; i++)
        bad = backend->ops->store_put(backend, store, i, 0, first, bytes, e);
    for (int i = 0; i < 2 && room && !bad; i++) /* the first round touches the slots */
        *rate = offload_rate(backend, store, BLOCKS, bytes, slot);
    backend->ops->free(backend, room);
    backend->ops->store_close(backend, store);
    return bad;
}

/* ---- a layer ---- */

/* Returns the least seconds of a pass over the layers; 0: no memory. All rows are wanted, because
 * the last layer computes only wanted rows completely. The first pass does the work that is done
 * once. Passes that are short compared with interruptions by other guests are repeated, for a
 * second at most. */
static double time_pass(const struct network *n, size_t rows)
{
    int32_t *zero = mem_zero(rows, sizeof *zero);
    const struct forward_seq seq = {.rows = rows, .n_slots = rows};
    const struct forward input = {.token = zero, .pos = zero, .seqs = &seq, .n_seqs = 1,
                                  .mask = MASK_FULL, .wanted = zero, .n_wanted = rows};
    const struct work_size size = {.rows = rows, .seqs = 1, .slots = rows, .listed = rows,
                                   .wanted = rows};
    struct work *work = work_make(n, &size);
    struct head_row *out = mem_zero(rows, sizeof *out);
    const double long_enough = 1, worth_more = 0.01;
    double least = 0, all = 0;
    for (int i = 0; work && least < long_enough && i <= MORE_TRIES &&
                    (i <= TRIES || (least > worth_more && all < long_enough)); i++) {
        int64_t begin = read_clock(n->backend);
        forward(n, NULL, work, &input, out, NULL);
        double seconds = (double)(read_clock(n->backend) - begin) * 1e-9;
        least = i == 0 || seconds < least ? seconds : least;
        all += seconds;
    }
    work_free(work, n);
    free(out);
    free(zero);
    return least;
}

/* Returns the number of layers that are timed together: more than the caches of a processor hold,
 * so that each layer comes from memory as in the run, but no more than the run keeps in memory. */
static size_t count_timed_layers(const struct network *n)
{
    enum { BEYOND_CACHES = 128 << 20, IN_SLOTS = 2 };
    size_t wanted = BEYOND_CACHES / network_layer_bytes(n) + 1, L = n->config.layers;
    size_t most = L - n->wish.layers + IN_SLOTS;
    most = most < L ? most : L;
    return wanted < most ? wanted : most;
}

/* Returns the work of a pass divided by the work of its layers alone: the larger of the two ratios
 * in flops and in bytes. */
static double rest_of_pass(const struct network *n, struct extent extent)
{
    const struct cost_model model = cost_model_of(n);
    cost_experts(&model, &extent);
    const struct cost cost = cost_of(&model, &extent);
    double row = model.row_flops + model.last_flops, layers = model.block_bytes + model.last_bytes;
    double flops = cost.flops / (row * extent.rows + model.pair_flops * extent.rows * extent.rows);
    double bytes = cost.bytes / (layers + extent.experts * model.expert_bytes);
    return bytes > flops ? bytes : flops;
}

/* Times both kinds of passes; whole_s and most_s stay 0 if there is no memory. The formats of the
 * run are named, because a network with random weights would choose others; a packed checkpoint
 * stays packed. */
static void time_layers(struct slowdown *slowdown, const struct network *n,
                        const struct passes *passes)
{
    const struct precision precision = {.dtype = dtype_info[n->dtype].name,
                                        .kv = dtype_info[n->kv_dtype].name,
                                        .quant = n->config.quant != QUANT_NONE
                                             ? NULL
                                             : quantization_name(n->quant)};
    struct config shape = n->config;
    struct checkpoint model;
    struct network some;
    shape.layers = count_timed_layers(n);
    shape.dense = 0; /* most layers have experts, if any */
    shape.vocab = FEW_TOKENS;
    const double times = (double)n->config.layers / (double)shape.layers;
    checkpoint_draw(&model, &shape, 0);
    if (!network_load(&some, n->backend, &model, &precision, NULL)) {
        slowdown->whole_s = times * time_pass(&some, (size_t)passes->whole.rows) *
                            rest_of_pass(n, passes->whole);
        slowdown->most_s = slowdown->whole_s;
        if (passes->whole_share < 1)
            slowdown->most_s = times * time_pass(&some, (size_t)passes->most.rows) *
                               rest_of_pass(n, passes->most);
        network_free(&some);
    }
    checkpoint_close(&model);
}

static double larger(double a, double b)
{
    return a > b ? a : b;
}

static void conclude(struct slowdown *slowdown, double rate)
{
    const double w = slowdown->whole_share;
    slowdown->bytes_per_s = rate;
    slowdown->stream_s = (double)slowdown->bytes / rate;
    slowdown->compute_s = w * slowdown->whole_s + (1 - w) * slowdown->most_s;
    slowdown->ratio = (w * larger(slowdown->whole_s, slowdown->stream_s) +
                       (1 - w) * larger(slowdown->most_s, slowdown->stream_s)) /
                      slowdown->compute_s;
}

int slowdown_foresee(struct slowdown *slowdown, const struct network *n,
                     const struct memory_estimate *need, const struct passes *passes, struct err *e)
{
    struct backend *backend = n->backend;
    double rate = 0;
    *slowdown = (struct slowdown){.bytes = need->outside, .kv_bytes = need->outside_kv,
                                  .whole_share = passes->whole_share};
    if (time_store(n, &rate, e))
        return -1;
    if (rate > 0)
        time_layers(slowdown, n, passes);
    if (backend->ops->trim)
        backend->ops->trim(backend);
    memory_reset_peak(&backend->memory);
    slowdown->known = slowdown->whole_s > 0 && slowdown->most_s > 0;
    if (slowdown->known)
        conclude(slowdown, rate);
    return 0;
}

void slowdown_settle(struct slowdown *slowdown, const struct network *n)
{
    if (slowdown->known)
        conclude(slowdown, n->offload->bytes_per_s);
}

void slowdown_say(const struct slowdown *slowdown, const struct network *n, const struct log *log)
{
    if (!slowdown->known)
        log_note(log, "%s: %zu of %zu layers are offloaded; there is not enough memory to predict "
                 "the slow-down", n->config.name, n->wish.layers, n->config.layers);
    else
        log_note(log, "%s: %zu of %zu layers are offloaded: a pass reads %.4g MB (%.4g of keys and "
                 "values) at %.4g MB/s (measured), which takes %.3g s, while it computes for "
                 "%.3g s (measured on layers): %.2f times as long", n->config.name, n->wish.layers,
                 n->config.layers, (double)slowdown->bytes * 1e-6,
                 (double)slowdown->kv_bytes * 1e-6, slowdown->bytes_per_s * 1e-6,
                 slowdown->stream_s, slowdown->compute_s, slowdown->ratio);
}
