/* shadow.c - adds the shadow rows of a block, for rules that need the probability of an id when its
 * slot is hidden (kernels/unmask/wino.h), or when its row sees only the ids before it (s2d2.h).
 *
 * A shadow row is a mask at the position of a slot of the block. It reads the keys that the rows of
 * the canvas read, except that slot, and the shadow rows of the block; only shadow rows read shadow
 * rows. A row that checks a draft reads only the keys before it, and itself. Attention takes lists
 * of keys, so each shadow row is a sequence of its own and needs no mask. Keys and values of shadow
 * rows are stored after those of all canvases. Source: Hong et al. 2025, "Wide-In, Narrow-Out",
 * arXiv 2507.18578, and the attention mask of LLaDA/decoding.py in
 * github.com/Feng-Hong/WINO-DLLM. */
#include "lib/decode/diffuse/diffuse_run.h"

/* 1: the rule checks drafts, and the block has masks. The rows that check come in a later pass. */
static int is_drafting(const struct diffuse_run *run, size_t i)
{
    const struct canvas_state *canvas = &run->host.state[i];
    const struct canvas_loop *loop = &run->plan.loop;
    int32_t k = canvas_block_begin(loop, canvas), end = canvas_block_end(loop, canvas);
    while (k < end && run->host.token[canvas->first + k] != loop->mask)
        k++;
    return unmask_has(run->how->rule, UNMASK_CHECKS) && k < end;
}

/* Lists the keys of the shadow row of position `hidden`; `own`: slot of the first shadow row of the
 * block. Returns their number. */
static size_t list_keys(struct diffuse_run *run, size_t i, int32_t hidden, int32_t offset,
                        int32_t own, size_t listed)
{
    const int checks = unmask_has(run->how->rule, UNMASK_CHECKS) != 0;
    const struct canvas_state *canvas = &run->host.state[i];
    const struct rows *rows = &run->work->host.rows;
    const struct cache_part *part = &run->part;
    const int32_t *at = run->kv ? part->key : part->row;
    const int32_t begin = canvas_block_begin(&run->plan.loop, canvas);
    const int32_t end = canvas_block_end(&run->plan.loop, canvas);
    size_t n = listed, keys = run->kv ? part->n_keys : part->n_rows;
    for (size_t j = 0; j < keys; j++)
        if (checks ? at[j] < hidden : at[j] != hidden) {
            rows->slots[n] = run->kv ? run->slot[i] + at[j]
                                     : run->host.row_of[canvas->first + at[j]];
            rows->slot_pos[n++] = at[j] + offset;
        }
    for (int32_t k = begin; k < end; k++)
        if (!checks || k == hidden) {
            rows->slots[n] = own + k - begin;
            rows->slot_pos[n++] = k + offset;
        }
    return n - listed;
}

size_t diffuse_shadow(struct diffuse_run *run, size_t i, size_t listed)
{
    struct pass *pass = &run->plan.pass;
    const struct rows *host = &run->work->host.rows;
    const struct canvas_state *canvas = &run->host.state[i];
    const int32_t begin = canvas_block_begin(&run->plan.loop, canvas);
    const int32_t end = canvas_block_end(&run->plan.loop, canvas);
    size_t behind = (run->batch - i) * run->shadows;
    int32_t own = (int32_t)(run->kv ? run->slots - behind : pass->T);
    size_t n, pairs = 0;
    const int32_t offset = host->pos[pass->T - 1] - run->part.row[run->part.n_rows - 1];
    run->shade[i] = (struct extent){0};
    if (is_drafting(run, i))
        return 0;
    for (int32_t k = begin; k < end; k++, pass->T++, pairs += n) {
        host->token[pass->T] = (int32_t)run->n->config.mask;
        host->pos[pass->T] = k + offset;
        host->slot[pass->T] = own + k - begin;
        run->host.origin[pass->T] = -1;
        run->host.check_of[canvas->first + k] = (int32_t)pass->T;
        n = list_keys(run, i, k, offset, own, listed + pairs);
        host->seqs[pass->n_seqs++] = (struct attn_seq){(int32_t)pass->T, 1,
                                                       (int32_t)(listed + pairs), (int32_t)n};
        pass->max_slots = n > pass->max_slots ? n : pass->max_slots;
    }
    const double rows = end - begin;
    run->shade[i] = (struct extent){.rows = rows, .pairs = (double)pairs,
                                    .read = run->kv ? (double)pairs : 0,
                                    .written = run->kv ? rows : 0};
    return pairs;
}
