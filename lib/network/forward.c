/* forward.c - a pass from its description to its answers; see forward.h.
 *
 * The description is copied into the index arrays of the work area, so the caller's arrays are free
 * when forward() returns. The position of each cache slot stays on the host, in kv.pos, for later
 * passes that read it. */
#include "lib/network/forward.h"
#include "lib/base/order.h"

#include <assert.h>
#include <string.h>

#include "lib/network/latent.h"

static void copy_ids(int32_t *to, const int32_t *from, size_t n)
{
    if (n)
        memcpy(to, from, n * sizeof *to);
}

/* Writes the sequences of the pass and, with a cache, the slots that they read with the position of
 * each slot. */
static void list_seqs(const struct forward *forward, const struct kv *kv, struct work *work,
                      struct pass *pass)
{
    const struct rows *rows = &work->host.rows;
    size_t row = 0, at = 0;
    assert(forward->n_seqs <= work->size.seqs);
    for (size_t sequence = 0; sequence < forward->n_seqs; sequence++) {
        const struct forward_seq *seq = &forward->seqs[sequence];
        size_t n_slots = kv ? seq->n_slots : seq->rows;
        assert(row + seq->rows <= work->size.rows && (!kv || at + n_slots <= work->size.listed));
        rows->seqs[sequence] = (struct attn_seq){(int32_t)row, (int32_t)seq->rows,
                                                 (int32_t)(kv ? at : row), (int32_t)n_slots};
        for (size_t j = 0; kv && j < n_slots; j++, at++) {
            rows->slots[at] = seq->slots[j];
            rows->slot_pos[at] = kv->pos[seq->slots[j]];
        }
        if (work->size.latent)
            work->host.cross[sequence] = latent_seq(kv->latents, seq->latent, (int32_t)row,
                                                    (int32_t)seq->rows);
        pass->max_rows = order_max(pass->max_rows, seq->rows);
        pass->max_slots = order_max(pass->max_slots, n_slots);
        row += seq->rows;
    }
    pass->max_slots = pass_slots(work, pass->max_slots);
}

static void describe_rows(const struct forward *forward, struct kv *kv, struct work *work,
                          struct pass *pass)
{
    const struct rows *rows = &work->host.rows;
    for (size_t at = 0; at < forward->n_seqs; at++)
        pass->T += forward->seqs[at].rows;
    assert(pass->T <= work->size.rows && (kv || !work->size.cached));
    copy_ids(rows->token, forward->token, pass->T);
    copy_ids(rows->pos, forward->pos, pass->T);
    for (size_t row = 0; kv && row < pass->T; row++) {
        assert((size_t)forward->slot[row] < kv->slots);
        kv->pos[forward->slot[row]] = forward->pos[row];
        rows->slot[row] = forward->slot[row];
    }
    if (!kv)
        pass_list_rows(work, pass->T);
    pass->n_seqs = forward->n_seqs;
    pass->mask = forward->mask;
    pass->mask_block = forward->mask_block;
    list_seqs(forward, kv, work, pass);
}

static void describe_answers(const struct forward *forward, struct work *work, struct pass *pass)
{
    const struct index *host = &work->host, *device = &work->device;
    const struct head_query *query = &forward->query;
    size_t rows = pass->R = forward->n_wanted;
    assert(rows <= work->size.wanted && (!forward->uncond || work->size.guided));
    assert(query->n_ban <= ADVANCE_STOPS && query->n_quiet <= ADVANCE_STOPS);
    copy_ids(host->rows.wanted, forward->wanted, rows);
    copy_ids(host->rows.uncond, forward->uncond, forward->uncond ? rows : 0);
    copy_ids(host->target, query->target, query->target ? rows : 0);
    copy_ids(host->ban, query->ban, query->n_ban);
    copy_ids(host->quiet, query->quiet, query->n_quiet);
    if (query->keys && rows)
        memcpy(host->rows.key, query->keys, rows * sizeof *query->keys);
    pass->guided = forward->uncond != NULL;
    pass->query = *query;
    pass->query.keys = query->keys ? device->rows.key : NULL;
    pass->query.target = query->target ? device->target : NULL;
    pass->query.ban = device->ban;
    pass->query.quiet = device->quiet;
}

/* A pass that was described and sent. */
struct running {
    const struct network *n;
    struct kv *kv;
    struct work *w;
    struct pass pass;
};

static void describe(struct running *running, const struct forward *forward, int logits)
{
    pass_begin(&running->pass, running->n, running->kv, running->w);
    describe_rows(forward, running->kv, running->w, &running->pass);
    describe_answers(forward, running->w, &running->pass);
    running->pass.logits = logits;
    assert(!logits || running->w->size.logits);
    pass_write(running->n, running->w);
}

static void step(void *ctx)
{
    struct running *running = ctx;
    pass_run(running->n, running->kv, running->w, &running->pass);
}

void forward(const struct network *n, struct kv *kv, struct work *work, const struct forward *f,
             struct head_row *out, float *logits)
{
    struct backend *backend = n->backend;
    struct running running = {.n = n, .kv = kv, .w = work};
    describe(&running, f, logits != NULL);
    if (f->again)
        backend->ops->run(backend, &running.pass, sizeof running.pass, step, &running);
    else
        step(&running);
    backend->ops->read(backend, out, work->answer, running.pass.R * sizeof *out);
    if (logits)
        backend->ops->read(backend, logits, work->logits,
                           running.pass.R * n->config.vocab * sizeof *logits);
}

void forward_prepare(const struct network *n, struct kv *kv, struct work *work,
                     const struct forward *forward)
{
    struct backend *backend = n->backend;
    struct running running = {.n = n, .kv = kv, .w = work};
    describe(&running, forward, 0);
    if (backend->ops->prepare)
        backend->ops->prepare(backend, &running.pass, sizeof running.pass, step, &running);
}
