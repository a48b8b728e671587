/* attention.c - softmax(q k^T / sqrt(E)) v over a list of cache slots.
 *
 * The rows of a sequence, times the G query heads that share a key head, are the queries of that
 * key head: query i is row i / G, head i % G of the group. A panel is up to QUERIES of them. Keys
 * come in chunks of CHUNK slots. A chunk is fetched once for BLOCK panels, with keys transposed so
 * that one lane is one key:
 *
 *             E              chunk                   chunk              E
 *           +---+          +-------+               +-------+          +---+
 *   queries | q |  x   E   | keys  |   = scores,   |   p   | x  chunk | v |  =  y
 *           +---+          +-------+               +-------+          +---+
 *
 * Chunks are counted from the start of the list. Each makes a part (maximum, sum, y) per query, and
 * parts are merged in order (online softmax). A key that a query may not see adds exact zeros. So
 * the bits of a row depend only on the row and its key list, not on the rows beside it, nor on how
 * threads divide the parts. With attn.dense: attention-dense.c.
 *
 * With few queries a sequence, as in decoding with a cache, the time is that of reading keys. The
 * key heads of a slot lie side by side, and reading all in a row is several times as fast as one
 * by one. So such a panel holds the queries of several key heads and reads their rows first. */
#include <math.h>

#include "kernels/cpu/attention/attention_panel.h"
#include "kernels/cpu/cpu.h"

enum { BLOCK = 8 /* panels that share the keys of a chunk */ };

/* A worker's memory. */
struct scratch {
    struct panel panels[BLOCK];
    uint32_t *keys;   /* [CHUNK / KEYS, words of E, KEYS] */
    uint32_t *values; /* [CHUNK, E'] floats, or pairs */
    float *scores;    /* [QUERIES, STRIDE], overwritten by the probabilities */
    struct attn_part part;
};

static size_t part_floats(size_t E) { return (wide(E) + 3) * QUERIES; }
static size_t panel_floats(size_t E) { return (E + 1) * QUERIES + part_floats(E); }
static size_t chunks_of(size_t slots) { return (slots + CHUNK - 1) / CHUNK; }

static size_t worker_floats(size_t E)
{
    return BLOCK * panel_floats(E) + part_floats(E) + CHUNK * (E + wide(E)) + QUERIES * STRIDE;
}

/* Floats for the parts of divided keys. Keys are divided among threads if each sequence has few
 * queries, there are fewer than two tasks a thread, and the tasks do not divide evenly. */
static size_t split_floats(size_t threads, size_t slots, size_t E)
{
    return threads > 1 ? 2 * threads * chunks_of(slots) * part_floats(E) : 0;
}

size_t OWN_CPU(attention_work)(const struct backend *b, size_t T, size_t n_seqs, size_t max_slots,
                               size_t heads, size_t kv_heads, size_t head_dim, size_t dense)
{
    (void)n_seqs, (void)heads, (void)kv_heads;
    if (dense)
        return CPU(attention_dense_work)(b, T, max_slots, head_dim, dense);
    size_t threads = pool_threads(b->pool);
    size_t floats = threads * worker_floats(head_dim) + split_floats(threads, max_slots, head_dim);
    return floats * sizeof(float);
}

static struct attn_part part_at(float *p)
{
    return (struct attn_part){
        .sum = (double *)(void *)p, .max = p + 2 * QUERIES, .y = p + 3 * QUERIES};
}

static struct scratch scratch_at(float *p, size_t E)
{
    struct scratch w;
    for (size_t i = 0; i < BLOCK; i++, p += panel_floats(E)) {
        w.panels[i].all = part_at(p);
        w.panels[i].last = (int32_t *)(void *)(p + part_floats(E));
        w.panels[i].q = (uint32_t *)(void *)(p + part_floats(E) + QUERIES);
    }
    w.part = part_at(p);
    w.scores = p + part_floats(E);
    w.values = (uint32_t *)(void *)(w.scores + QUERIES * STRIDE);
    w.keys = w.values + CHUNK * wide(E);
    return w;
}

/* ---- queries ---- */

/* The last position that a row at `pos` may see. */
static int32_t last_seen(const struct attn *a, int32_t pos)
{
    if (a->mask == MASK_FULL)
        return INT32_MAX;
    if (a->mask == MASK_CAUSAL)
        return pos;
    int32_t block = (int32_t)a->mask_block;
    return (pos / block + 1) * block - 1;
}

/* Scales one query and packs it into words. */
static void pack_query(const struct side *d, const float *q, uint32_t *out)
{
    const size_t E = d->a->head_dim;
    float scale = (float)(1 / sqrt((double)E));
    for (size_t e = 0; e < E; e += LANES) {
        size_t n = E - e < LANES ? E - e : LANES;
        vec x = (vec)load_words(q, E * sizeof *q, e) * scale;
        if (d->pairs) {
            uint16_t half[LANES];
            vech y = bf16_narrow(x);
            memcpy(half, &y, sizeof half);
            memcpy((char *)out + 2 * e, half, up(2 * n, sizeof *out));
        } else {
            float whole[LANES];
            put(whole, x);
            memcpy(out + e, whole, n * sizeof *out);
        }
    }
}

/* Packs queries first .. first + each - 1 of so many key heads. Idle queries, up to a whole tile,
 * are zeros; their results are not read. */
static void pack_panel(const struct side *d, struct panel *p, size_t first, size_t each,
                       size_t heads)
{
    const struct attn *a = d->a;
    size_t words = words_of(a->head_dim, d->pairs);
    p->count = each * heads;
    p->heads = heads;
    p->least = INT32_MAX;
    p->most = INT32_MIN;
    for (size_t i = 0; i < p->count; i++) {
        size_t query = first + i % each, kh = d->kh + i / each, row = d->row + query / d->group;
        p->at[i] = (row * a->heads + kh * d->group + query % d->group) * a->head_dim;
        pack_query(d, (const float *)a->q + p->at[i], p->q + i * words);
        p->last[i] = last_seen(a, a->pos[row]);
        p->least = p->last[i] < p->least ? p->last[i] : p->least;
        p->most = p->last[i] > p->most ? p->last[i] : p->most;
    }
    memset(p->q + p->count * words, 0, (QUERIES - p->count) * words * sizeof *p->q);
}

static void part_clear(const struct attn_part *p, size_t E)
{
    for (size_t i = 0; i < QUERIES; i++) {
        p->max[i] = -INFINITY;
        p->sum[i] = 0;
    }
    memset(p->y, 0, QUERIES * wide(E) * sizeof *p->y);
}

/* all += part, for `rows` queries. A query that saw no key on one side takes the other side. */
static __attribute__((noinline)) void merge(const struct attn_part *all,
                                            const struct attn_part *part, size_t rows, size_t E)
{
    float keep[QUERIES], take[QUERIES];
    for (size_t i = 0; i < QUERIES; i += LANES) {
        vec was = load(all->max + i), is = load(part->max + i), max = vmax(is, was);
        vec base = pick(max == -INFINITY, splat(0), max);
        put(keep + i, vexp(was - base));
        put(take + i, vexp(is - base));
        put(all->max + i, max);
    }
    for (size_t i = 0; i < rows; i++) {
        all->sum[i] = all->sum[i] * keep[i] + part->sum[i] * take[i];
        float *y = all->y + i * wide(E), *z = part->y + i * wide(E);
        for (size_t e = 0; e < wide(E); e += LANES)
            put(y + e, load(y + e) * keep[i] + load(z + e) * take[i]);
    }
}

/* y = the result of the panel; zeros for a query that saw no key. */
static void finish(const struct side *d, const struct panel *p)
{
    size_t E = d->a->head_dim;
    for (size_t i = 0; i < p->count; i++) {
        float *y = (float *)d->a->y + p->at[i], *z = p->all.y + i * wide(E);
        float inverse = p->all.sum[i] == 0 ? 0 : (float)(1 / p->all.sum[i]);
        size_t e = 0;
        for (; e + LANES <= E; e += LANES)
            put(y + e, load(z + e) * inverse);
        for (; e < E; e++)
            y[e] = z[e] * inverse;
    }
}

/* ---- chunks and tasks ---- */

/* Runs keys first.. of the list for all panels. Parts are merged, or stored in `into`. */
static void run_chunk(const struct side *d, struct scratch *w, size_t panels, size_t first,
                      const struct attn_part *into)
{
    size_t n = d->n_slots - first < CHUNK ? d->n_slots - first : CHUNK;
    size_t E = d->a->head_dim;
    const int32_t *slot_pos = d->slot_pos + first;
    int32_t least = INT32_MAX, most = INT32_MIN;
    for (size_t j = 0; j < n; j++) {
        least = slot_pos[j] < least ? slot_pos[j] : least;
        most = slot_pos[j] > most ? slot_pos[j] : most;
    }
    struct key_chunk c = {.d = d, .first = first, .room_k = w->keys, .room_v = w->values};
    tiled_begin();
    for (size_t i = 0; i < panels; i++) {
        const struct panel *p = &w->panels[i];
        const struct attn_part *part = into ? into : &w->part;
        if (p->most < least) {
            if (into)
                part_clear(into, E);
            continue;
        }
        if (panels > 1 && !c.shared) {
            CPU(fetch_keys)(d, first, n, w->keys);
            c.values = CPU(fetch_values)(d, first, n, w->values);
            c.shared = 1;
        }
        c.n = n;
        while (slot_pos[c.n - 1] > p->most)
            c.n--;
        run_part(&c, p, most > p->least || least < first_seen(d->a, p->most), w->scores, part);
        if (!into)
            merge(&p->all, part, p->count, E);
    }
    tiled_end();
}

struct attn_job {
    const struct attn *a;
    float *work, *parts;
    size_t heads;  /* key heads in a block of one panel; else 1 */
    size_t groups; /* groups of so many heads in a sequence */
    size_t blocks; /* blocks of BLOCK panels in the sequence with the most rows */
    size_t chunks; /* chunks of the longest list, when keys are divided */
};

static struct side side_of(const struct attn_job *j, size_t i)
{
    const struct attn *a = j->a;
    const struct attn_seq *s = &a->seqs[i / j->groups];
    return (struct side){.a = a, .row = (size_t)s->row_begin, .rows = (size_t)s->rows,
                         .n_slots = (size_t)s->n_slots, .slots = a->slots + s->slot_begin,
                         .slot_pos = a->slot_pos + s->slot_begin, .kh = i % j->groups * j->heads,
                         .group = a->heads / a->kv_heads, .pairs = BF16_DOT && a->half};
}

static size_t pack_block(const struct attn_job *j, const struct side *d, struct scratch *w,
                         size_t block)
{
    size_t queries = d->rows * d->group, left = d->a->kv_heads - d->kh, panels = 0;
    size_t heads = left < j->heads ? left : j->heads;
    for (size_t q = block * BLOCK * QUERIES; q < queries && panels < BLOCK; q += QUERIES)
        pack_panel(d, &w->panels[panels++], q, queries - q < QUERIES ? queries - q : QUERIES,
                   heads);
    return panels;
}

/* One task: a block of panels of one sequence and key head, or one panel of several key heads; all
 * keys. */
static void blocks_part(void *ctx, size_t begin, size_t end, size_t worker)
{
    const struct attn_job *j = ctx;
    size_t E = j->a->head_dim;
    struct scratch w = scratch_at(j->work + worker * worker_floats(E), E);
    for (size_t i = begin; i < end; i++) {
        struct side d = side_of(j, i / j->blocks);
        size_t panels = pack_block(j, &d, &w, i % j->blocks);
        for (size_t p = 0; p < panels; p++)
            part_clear(&w.panels[p].all, E);
        for (size_t first = 0; panels && first < d.n_slots; first += CHUNK)
            run_chunk(&d, &w, panels, first, NULL);
        for (size_t p = 0; p < panels; p++)
            finish(&d, &w.panels[p]);
    }
}

/* One task: one panel and one chunk of keys; its part is stored. */
static void keys_part(void *ctx, size_t begin, size_t end, size_t worker)
{
    const struct attn_job *j = ctx;
    size_t E = j->a->head_dim;
    struct scratch w = scratch_at(j->work + worker * worker_floats(E), E);
    for (size_t i = begin; i < end; i++) {
        struct side d = side_of(j, i / j->chunks);
        size_t first = i % j->chunks * CHUNK;
        struct attn_part part = part_at(j->parts + i * part_floats(E));
        if (first < d.n_slots && pack_block(j, &d, &w, 0))
            run_chunk(&d, &w, 1, first, &part);
    }
}

static void merge_parts(const struct attn_job *j, size_t sides)
{
    size_t E = j->a->head_dim;
    struct scratch w = scratch_at(j->work, E);
    for (size_t i = 0; i < sides; i++) {
        struct side d = side_of(j, i);
        if (!pack_block(j, &d, &w, 0))
            continue;
        part_clear(&w.panels[0].all, E);
        for (size_t c = 0; c < chunks_of(d.n_slots); c++) {
            struct attn_part part = part_at(j->parts + (i * j->chunks + c) * part_floats(E));
            merge(&w.panels[0].all, &part, w.panels[0].count, E);
        }
        finish(&d, &w.panels[0]);
    }
}

/* The number of key heads in a panel with `queries` of each: as many as fit, but few enough that
 * threads have equal work. */
static size_t panel_heads(const struct attn *a, size_t queries, size_t chunks, size_t threads)
{
    const int low = !TILED && queries <= FEW && wide(a->head_dim) % KEYS == 0;
    size_t heads = (QUERIES - up(queries, low ? FEW : TALL)) / queries + 1;
    for (heads = heads < a->kv_heads ? heads : a->kv_heads; heads > 1; heads = (heads + 1) / 2) {
        size_t tasks = a->n_seqs * ((a->kv_heads + heads - 1) / heads) * chunks;
        if (10 * tasks >= 9 * up(tasks, threads))
            break;
    }
    return heads;
}

static void attention_tiled(struct backend *b, const struct attn *a, void *work)
{
    size_t group = a->heads / a->kv_heads, E = a->head_dim, rows = 0, slots = 0, pairs = 0;
    size_t threads = pool_threads(b->pool);
    for (size_t s = 0; s < a->n_seqs; s++) {
        size_t r = (size_t)a->seqs[s].rows, n = (size_t)a->seqs[s].n_slots;
        rows = r > rows ? r : rows;
        slots = n > slots ? n : slots;
        pairs += r * n;
    }
    struct attn_job j = {.a = a, .work = work, .parts = (float *)work + threads * worker_floats(E)};
    j.blocks = (rows * group + BLOCK * QUERIES - 1) / (BLOCK * QUERIES);
    j.chunks = chunks_of(slots);
    int few = rows * group <= QUERIES && rows;
    int keys = few && j.chunks > 1 && a->n_seqs < 2 * threads && a->n_seqs % threads;
    j.heads = few ? panel_heads(a, rows * group, keys ? j.chunks : 1, threads) : 1;
    j.groups = (a->kv_heads + j.heads - 1) / j.heads;
    size_t sides = a->n_seqs * j.groups;
    int split = keys && sides < 2 * threads && sides % threads;
    size_t tasks = sides * (split ? j.chunks : j.blocks);
    /* transposing keys costs the same for few queries, about as much as their products */
    size_t products = (few ? 4 : 2) * pairs * a->heads * E / (tasks ? tasks : 1);
    pool_run(b->pool, tasks, grain(products), split ? keys_part : blocks_part, &j);
    if (split)
        merge_parts(&j, sides);
}

void OWN_CPU(attention)(struct backend *b, const struct attn *a, void *work)
{
    (a->dense ? CPU(attention_dense) : attention_tiled)(b, a, work);
}
