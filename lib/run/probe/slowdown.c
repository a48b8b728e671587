/* slowdown.c - see slowdown.h. A network of few layers and tokens is loaded and run like any other,
 * so its layers take the time that they take in the run. */
#include "lib/run/probe/slowdown.h"

#include <stdlib.h>

#include "lib/base/mem.h"
#include "lib/network/forward.h"

enum { FEW_TOKENS = 64, TRIES = 3, MORE_TRIES = 12, BLOCKS = 6, BLOCK_MOST = 64 << 20 };

static int64_t read_clock(struct backend *b)
{
    return b->ops->event_wait(b, b->ops->event_record(b));
}

/* ---- the store ---- */

/* Returns 0; *rate is not set if there is no memory. */
static int time_store(const struct network *n, double *rate, struct err *e)
{
    struct backend *b = n->backend;
    size_t layer = network_layer_bytes(n), bytes = layer < BLOCK_MOST ? layer : BLOCK_MOST;
    struct store *s = b->ops->store_open(b, offload_folder(&n->wish), BLOCKS, bytes, e);
    if (!s)
        return -1;
    unsigned char *p = b->ops->alloc(b, 2 * bytes + STORE_GRAIN, MEMORY_WEIGHTS);
    unsigned char *first = p ? p + -(uintptr_t)p % STORE_GRAIN : NULL;
    unsigned char *const slot[] = {first, first ? first + bytes : NULL};
    int bad = 0;
    for (size_t i = 0; i < BLOCKS && p && !bad; i++)
        bad = b->ops->store_put(b, s, i, 0, first, bytes, e);
    for (int i = 0; i < 2 && p && !bad; i++) /* the first round touches the slots */
        *rate = offload_rate(b, s, BLOCKS, bytes, slot);
    b->ops->free(b, p);
    b->ops->store_close(b, s);
    return bad;
}

/* ---- a layer ---- */

/* Least seconds of a pass over the layers, with all rows wanted, since the last layer computes only
 * those whole; 0: no memory. The first pass does the work that is done once. Passes that are short
 * compared with interruptions by other guests are repeated, for a second at most. */
static double time_pass(const struct network *n, size_t rows)
{
    int32_t *zero = mem_zero(rows, sizeof *zero);
    const struct forward_seq seq = {.rows = rows, .n_slots = rows};
    const struct forward f = {.token = zero, .pos = zero, .seqs = &seq, .n_seqs = 1,
                              .mask = MASK_FULL, .wanted = zero, .n_wanted = rows};
    const struct work_size size = {.rows = rows, .seqs = 1, .slots = rows, .listed = rows,
                                   .wanted = rows};
    struct work *w = work_make(n, &size);
    struct head_row *out = mem_zero(rows, sizeof *out);
    const double long_enough = 1, worth_more = 0.01;
    double least = 0, all = 0;
    for (int i = 0; w && least < long_enough && i <= MORE_TRIES &&
                    (i <= TRIES || (least > worth_more && all < long_enough)); i++) {
        int64_t begin = read_clock(n->backend);
        forward(n, NULL, w, &f, out, NULL);
        double s = (double)(read_clock(n->backend) - begin) * 1e-9;
        least = i == 0 || s < least ? s : least;
        all += s;
    }
    work_free(w, n);
    free(out);
    free(zero);
    return least;
}

/* The number of layers that are timed together: more than the caches of a processor hold, so that
 * each comes from memory as in the run, but no more than the run keeps in memory. */
static size_t count_timed_layers(const struct network *n)
{
    enum { BEYOND_CACHES = 128 << 20, IN_SLOTS = 2 };
    size_t wanted = BEYOND_CACHES / network_layer_bytes(n) + 1, L = n->config.layers;
    size_t most = L - n->wish.layers + IN_SLOTS;
    most = most < L ? most : L;
    return wanted < most ? wanted : most;
}

/* Work of a pass divided by that of its layers alone: in flops or in bytes, whichever is larger. */
static double rest_of_pass(const struct network *n, struct extent x)
{
    const struct cost_model t = cost_model_of(n);
    cost_experts(&t, &x);
    const struct cost c = cost_of(&t, &x);
    double row = t.row_flops + t.last_flops, layers = t.block_bytes + t.last_bytes;
    double flops = c.flops / (row * x.rows + t.pair_flops * x.rows * x.rows);
    double bytes = c.bytes / (layers + x.experts * t.expert_bytes);
    return bytes > flops ? bytes : flops;
}

/* Times both kinds of passes; 0 s: no memory. Formats are those of the run, since a network with
 * random weights would choose others; a packed checkpoint stays packed. */
static void time_layers(struct slowdown *s, const struct network *n, const struct passes *x)
{
    const struct precision p = {.dtype = dtype_info[n->dtype].name,
                                .kv = dtype_info[n->kv_dtype].name,
                                .quant = n->config.quant != QUANT_NONE
                                             ? NULL
                                             : quantization_name(n->quant)};
    struct config shape = n->config;
    struct checkpoint c;
    struct network some;
    shape.layers = count_timed_layers(n);
    shape.dense = 0; /* most layers have experts, if any */
    shape.vocab = FEW_TOKENS;
    const double times = (double)n->config.layers / (double)shape.layers;
    checkpoint_draw(&c, &shape, 0);
    if (!network_load(&some, n->backend, &c, &p, NULL)) {
        s->whole_s = times * time_pass(&some, (size_t)x->whole.rows) * rest_of_pass(n, x->whole);
        s->most_s = s->whole_s;
        if (x->whole_share < 1)
            s->most_s = times * time_pass(&some, (size_t)x->most.rows) * rest_of_pass(n, x->most);
        network_free(&some);
    }
    checkpoint_close(&c);
}

static double larger(double a, double b)
{
    return a > b ? a : b;
}

static void conclude(struct slowdown *s, double rate)
{
    const double w = s->whole_share;
    s->bytes_per_s = rate;
    s->stream_s = (double)s->bytes / rate;
    s->compute_s = w * s->whole_s + (1 - w) * s->most_s;
    s->ratio = (w * larger(s->whole_s, s->stream_s) + (1 - w) * larger(s->most_s, s->stream_s)) /
               s->compute_s;
}

int slowdown_foresee(struct slowdown *s, const struct network *n,
                     const struct memory_estimate *need, const struct passes *p, struct err *e)
{
    struct backend *b = n->backend;
    double rate = 0;
    *s = (struct slowdown){.bytes = need->outside, .kv_bytes = need->outside_kv,
                           .whole_share = p->whole_share};
    if (time_store(n, &rate, e))
        return -1;
    if (rate > 0)
        time_layers(s, n, p);
    if (b->ops->trim)
        b->ops->trim(b);
    memory_reset_peak(&b->memory);
    s->known = s->whole_s > 0 && s->most_s > 0;
    if (s->known)
        conclude(s, rate);
    return 0;
}

void slowdown_settle(struct slowdown *s, const struct network *n)
{
    if (s->known)
        conclude(s, n->offload->bytes_per_s);
}

void slowdown_say(const struct slowdown *s, const struct network *n, const struct log *log)
{
    if (!s->known)
        log_note(log, "%s: %zu of %zu layers are offloaded; there is not enough memory to predict "
                 "the slow-down", n->config.name, n->wish.layers, n->config.layers);
    else
        log_note(log, "%s: %zu of %zu layers are offloaded: a pass reads %.4g MB (%.4g of keys and "
                 "values) at %.4g MB/s (measured), which takes %.3g s, while it computes for "
                 "%.3g s (measured on layers): %.2f times as long", n->config.name, n->wish.layers,
                 n->config.layers, (double)s->bytes * 1e-6, (double)s->kv_bytes * 1e-6,
                 s->bytes_per_s * 1e-6, s->stream_s, s->compute_s, s->ratio);
}
