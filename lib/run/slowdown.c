/* slowdown.c - see slowdown.h. The layer is that of a network of one layer and a few tokens, loaded
 * and run like any other: what takes its time in the run takes it here.
 */
#include "lib/run/slowdown.h"

#include <stdlib.h>

#include "lib/base/mem.h"
#include "lib/network/forward.h"

enum { FEW_TOKENS = 64, TRIES = 3, BLOCKS = 6, BLOCK_MOST = 64 << 20 };

static int64_t now(struct backend *b)
{
    return b->ops->event_wait(b, b->ops->event_record(b));
}

/* ---- the store ---- */

/* 0 and *rate; 0 and no rate: no memory. */
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
    if (p && !bad)
        *rate = offload_rate(b, s, BLOCKS, bytes, slot);
    b->ops->free(b, p);
    b->ops->store_close(b, s);
    return bad;
}

/* ---- a layer ---- */

/* Seconds of a pass over the layer; 0: no memory. The first pass settles what is settled once. */
static double time_pass(const struct network *n, size_t rows)
{
    int32_t *zero = mem_zero(rows, sizeof *zero), wanted = 0;
    const struct forward_seq seq = {.rows = rows, .n_slots = rows};
    const struct forward f = {.token = zero, .pos = zero, .seqs = &seq, .n_seqs = 1,
                              .mask = MASK_FULL, .wanted = &wanted, .n_wanted = 1};
    const struct work_size size = {.rows = rows, .seqs = 1, .slots = rows, .listed = rows,
                                   .wanted = 1};
    struct work *w = work_make(n, &size);
    struct head_row out;
    double best = 0;
    for (int i = 0; w && i <= TRIES; i++) {
        int64_t begin = now(n->backend);
        forward(n, NULL, w, &f, &out, NULL);
        double s = (double)(now(n->backend) - begin) * 1e-9;
        best = i < 2 || s < best ? s : best;
    }
    work_free(w, n);
    free(zero);
    return best;
}

/* As precise as the run: a network that is drawn would choose otherwise. A packed one is packed. */
static double time_layer(const struct network *n, size_t rows)
{
    const struct precision p = {.dtype = dtype_info[n->dtype].name,
                                .kv = dtype_info[n->kv_dtype].name,
                                .quant = n->config.quant != QUANT_NONE
                                             ? NULL
                                             : quantization_name(n->quant)};
    struct config shape = n->config;
    struct checkpoint c;
    struct network one;
    double s = 0;
    shape.layers = 1;
    shape.vocab = FEW_TOKENS;
    checkpoint_draw(&c, &shape, 0);
    if (!network_load(&one, n->backend, &c, &p, NULL)) {
        s = time_pass(&one, rows);
        network_free(&one);
    }
    checkpoint_close(&c);
    return s;
}

/* Time of the head over that of all layers, by what limits a pass: the matrices that it reads, or
 * what it multiplies. */
static double head_share(const struct network *n, const struct extent *x)
{
    const struct cost_model t = cost_model_of(n);
    double bytes = t.head_bytes / t.block_bytes;
    double flops = t.answer_flops * x->wanted / (t.row_flops * x->rows);
    return bytes > flops ? bytes : flops;
}

static void conclude(struct slowdown *s, const struct network *n, double rate)
{
    s->bytes_per_s = rate;
    s->stream_s = (double)(n->wish.layers * network_layer_bytes(n)) / rate;
    s->ratio = s->stream_s > s->compute_s ? s->stream_s / s->compute_s : 1;
}

int slowdown_foresee(struct slowdown *s, const struct network *n, const struct extent *x,
                     struct err *e)
{
    struct backend *b = n->backend;
    double rate = 0;
    *s = (struct slowdown){0};
    if (time_store(n, &rate, e))
        return -1;
    double layer = rate > 0 ? time_layer(n, (size_t)x->rows) : 0;
    if (b->ops->trim)
        b->ops->trim(b);
    memory_reset_peak(&b->memory);
    if (!(layer > 0))
        return 0;
    s->known = 1;
    s->compute_s = (double)n->config.layers * layer * (1 + head_share(n, x));
    conclude(s, n, rate);
    return 0;
}

void slowdown_settle(struct slowdown *s, const struct network *n)
{
    if (s->known)
        conclude(s, n, n->offload->bytes_per_s);
}

void slowdown_say(const struct slowdown *s, const struct network *n, const struct log *log)
{
    size_t bytes = n->wish.layers * network_layer_bytes(n);
    if (!s->known)
        log_note(log, "%s: %zu of %zu layers are offloaded; there was no memory to find out how "
                 "much slower that is", n->config.name, n->wish.layers, n->config.layers);
    else
        log_note(log, "%s: %zu of %zu layers are offloaded: a pass reads %.4g MB at %.4g MB/s "
                 "(measured), which takes %.3g s, while it computes for %.3g s (measured on a "
                 "layer): %.2f times as long", n->config.name, n->wish.layers, n->config.layers,
                 (double)bytes * 1e-6, s->bytes_per_s * 1e-6, s->stream_s, s->compute_s, s->ratio);
}
