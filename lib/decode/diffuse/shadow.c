/* shadow.c - the shadow rows of a block, for rules that need the probability of an id when its slot
 * is hidden (kernels/unmask/wino.h), or the id that would come after all before it (s2d2.h).
 *
 * A shadow row is a mask at the position of a slot of the block. It reads the keys that the rows of
 * the canvas read, except that slot, and the shadow rows of the block; only shadow rows read shadow
 * rows. A row that checks a draft reads only the keys before it, and itself. Attention takes lists
 * of keys, so each shadow row is a sequence of its own and needs no mask. Their keys and values are
 * stored after those of all canvases. Source: Hong et al. 2025, "Wide-In, Narrow-Out", arXiv
 * 2507.18578, and the attention mask of LLaDA/decoding.py in github.com/Feng-Hong/WINO-DLLM. */
#include "lib/decode/diffuse/diffuse_run.h"

/* 1: rows that check drafts come later, because the block has masks. */
static int is_drafting(const struct diffuse_run *r, size_t i)
{
    const struct canvas_state *c = &r->host.state[i];
    const struct canvas_loop *l = &r->plan.loop;
    int32_t k = canvas_block_begin(l, c), end = canvas_block_end(l, c);
    while (k < end && r->host.token[c->first + k] != l->mask)
        k++;
    return unmask_has(r->how->rule, UNMASK_CHECKS) && k < end;
}

/* Lists the keys of the shadow row of position `hidden`; `own`: slot of the first shadow row of the
 * block. Returns their number. */
static size_t list_keys(struct diffuse_run *r, size_t i, int32_t hidden, int32_t offset,
                        int32_t own, size_t listed)
{
    const int checks = unmask_has(r->how->rule, UNMASK_CHECKS) != 0;
    const struct canvas_state *c = &r->host.state[i];
    const struct rows *w = &r->work->host.rows;
    const struct cache_part *a = &r->part;
    const int32_t *at = r->kv ? a->key : a->row;
    const int32_t begin = canvas_block_begin(&r->plan.loop, c);
    const int32_t end = canvas_block_end(&r->plan.loop, c);
    size_t n = listed, keys = r->kv ? a->n_keys : a->n_rows;
    for (size_t j = 0; j < keys; j++)
        if (checks ? at[j] < hidden : at[j] != hidden) {
            w->slots[n] = r->kv ? r->slot[i] + at[j] : r->host.row_of[c->first + at[j]];
            w->slot_pos[n++] = at[j] + offset;
        }
    for (int32_t k = begin; k < end; k++)
        if (!checks || k == hidden) {
            w->slots[n] = own + k - begin;
            w->slot_pos[n++] = k + offset;
        }
    return n - listed;
}

size_t diffuse_shadow(struct diffuse_run *r, size_t i, size_t listed)
{
    struct pass *p = &r->plan.pass;
    const struct rows *w = &r->work->host.rows;
    const struct canvas_state *c = &r->host.state[i];
    const int32_t begin = canvas_block_begin(&r->plan.loop, c);
    const int32_t end = canvas_block_end(&r->plan.loop, c);
    size_t behind = (r->batch - i) * r->shadows;
    int32_t own = (int32_t)(r->kv ? r->slots - behind : p->T);
    size_t n, pairs = 0;
    const int32_t offset = w->pos[p->T - 1] - r->part.row[r->part.n_rows - 1];
    r->shade[i] = (struct extent){0};
    if (is_drafting(r, i))
        return 0;
    for (int32_t k = begin; k < end; k++, p->T++, pairs += n) {
        w->token[p->T] = (int32_t)r->n->config.mask;
        w->pos[p->T] = k + offset;
        w->slot[p->T] = own + k - begin;
        r->host.origin[p->T] = -1;
        r->host.check_of[c->first + k] = (int32_t)p->T;
        n = list_keys(r, i, k, offset, own, listed + pairs);
        w->seqs[p->n_seqs++] = (struct attn_seq){(int32_t)p->T, 1, (int32_t)(listed + pairs),
                                                 (int32_t)n};
        p->max_slots = n > p->max_slots ? n : p->max_slots;
    }
    const double rows = end - begin;
    r->shade[i] = (struct extent){.rows = rows, .pairs = (double)pairs,
                                  .read = r->kv ? (double)pairs : 0,
                                  .written = r->kv ? rows : 0};
    return pairs;
}
