/* forward.c - a pass from its description to its answers (forward.h).
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

/* Writes the sequences of f and, with a cache, their slots with the position of each. */
static void list_seqs(const struct forward *f, const struct kv *kv, struct work *w, struct pass *p)
{
    const struct rows *r = &w->host.rows;
    size_t row = 0, at = 0;
    assert(f->n_seqs <= w->size.seqs);
    for (size_t s = 0; s < f->n_seqs; s++) {
        const struct forward_seq *q = &f->seqs[s];
        size_t n_slots = kv ? q->n_slots : q->rows;
        assert(row + q->rows <= w->size.rows && (!kv || at + n_slots <= w->size.listed));
        r->seqs[s] = (struct attn_seq){(int32_t)row, (int32_t)q->rows, (int32_t)(kv ? at : row),
                                       (int32_t)n_slots};
        for (size_t j = 0; kv && j < n_slots; j++, at++) {
            r->slots[at] = q->slots[j];
            r->slot_pos[at] = kv->pos[q->slots[j]];
        }
        if (w->size.latent)
            w->host.cross[s] = latent_seq(kv->latents, q->latent, (int32_t)row, (int32_t)q->rows);
        p->max_rows = order_max(p->max_rows, q->rows);
        p->max_slots = order_max(p->max_slots, n_slots);
        row += q->rows;
    }
    p->max_slots = pass_slots(w, p->max_slots);
}

static void describe_rows(const struct forward *f, struct kv *kv, struct work *w, struct pass *p)
{
    const struct rows *r = &w->host.rows;
    for (size_t s = 0; s < f->n_seqs; s++)
        p->T += f->seqs[s].rows;
    assert(p->T <= w->size.rows && (kv || !w->size.cached));
    copy_ids(r->token, f->token, p->T);
    copy_ids(r->pos, f->pos, p->T);
    for (size_t t = 0; kv && t < p->T; t++) {
        assert((size_t)f->slot[t] < kv->slots);
        kv->pos[f->slot[t]] = f->pos[t];
        r->slot[t] = f->slot[t];
    }
    if (!kv)
        pass_list_rows(w, p->T);
    p->n_seqs = f->n_seqs;
    p->mask = f->mask;
    p->mask_block = f->mask_block;
    list_seqs(f, kv, w, p);
}

static void describe_answers(const struct forward *f, struct work *w, struct pass *p)
{
    const struct index *h = &w->host, *t = &w->device;
    const struct head_query *q = &f->query;
    size_t R = p->R = f->n_wanted;
    assert(R <= w->size.wanted && (!f->uncond || w->size.guided));
    assert(q->n_ban <= ADVANCE_STOPS && q->n_quiet <= ADVANCE_STOPS);
    copy_ids(h->rows.wanted, f->wanted, R);
    copy_ids(h->rows.uncond, f->uncond, f->uncond ? R : 0);
    copy_ids(h->target, q->target, q->target ? R : 0);
    copy_ids(h->ban, q->ban, q->n_ban);
    copy_ids(h->quiet, q->quiet, q->n_quiet);
    if (q->keys && R)
        memcpy(h->rows.key, q->keys, R * sizeof *q->keys);
    p->guided = f->uncond != NULL;
    p->query = *q;
    p->query.keys = q->keys ? t->rows.key : NULL;
    p->query.target = q->target ? t->target : NULL;
    p->query.ban = t->ban;
    p->query.quiet = t->quiet;
}

/* A pass that was described and sent. */
struct running {
    const struct network *n;
    struct kv *kv;
    struct work *w;
    struct pass pass;
};

static void describe(struct running *r, const struct forward *f, int logits)
{
    pass_begin(&r->pass, r->n, r->kv, r->w);
    describe_rows(f, r->kv, r->w, &r->pass);
    describe_answers(f, r->w, &r->pass);
    r->pass.logits = logits;
    assert(!logits || r->w->size.logits);
    pass_write(r->n, r->w);
}

static void step(void *ctx)
{
    struct running *r = ctx;
    pass_run(r->n, r->kv, r->w, &r->pass);
}

void forward(const struct network *n, struct kv *kv, struct work *w, const struct forward *f,
             struct head_row *out, float *logits)
{
    struct backend *b = n->backend;
    struct running r = {.n = n, .kv = kv, .w = w};
    describe(&r, f, logits != NULL);
    if (f->again)
        b->ops->run(b, &r.pass, sizeof r.pass, step, &r);
    else
        step(&r);
    b->ops->read(b, out, w->answer, r.pass.R * sizeof *out);
    if (logits)
        b->ops->read(b, logits, w->logits, r.pass.R * n->config.vocab * sizeof *logits);
}

void forward_prepare(const struct network *n, struct kv *kv, struct work *w,
                     const struct forward *f)
{
    struct backend *b = n->backend;
    struct running r = {.n = n, .kv = kv, .w = w};
    describe(&r, f, 0);
    if (b->ops->prepare)
        b->ops->prepare(b, &r.pass, sizeof r.pass, step, &r);
}
