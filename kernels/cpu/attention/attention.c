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
 * Chunks are counted from the start of the list. Each chunk gives a part (maximum, sum, y) per
 * query, and parts are merged in order (online softmax). A key that a query may not see adds exact
 * zeros. So the bits of a row depend only on the row and its key list, not on the rows beside it or
 * on how threads divide the work. attention-dense.c runs instead if attn.dense is set.
 *
 * With few queries a sequence, as in decoding with a cache, most of the time is spent on reading
 * keys. The key heads of a slot lie side by side, and reading them together is several times as
 * fast as reading one head of all slots after the other. So a panel then holds the queries of
 * several key heads and first reads the rows of all of them. */
#include <math.h>

#include "kernels/cpu/attention/attention_panel.h"
#include "kernels/cpu/cpu.h"

enum { BLOCK = 8 /* panels that share the keys of a chunk */ };

/* A worker's memory. */
struct scratch {
    struct panel panels[BLOCK];
    uint32_t *keys;   /* [CHUNK / KEYS, words of E, KEYS] */
    uint32_t *values; /* [CHUNK, E'] floats, or pairs */
    float *scores;    /* [QUERIES, STRIDE] scores, then probabilities */
    struct attn_part part;
};

static size_t part_floats(size_t E) { return (wide(E) + 3) * QUERIES; }
static size_t panel_floats(size_t E) { return (E + 1) * QUERIES + part_floats(E); }
static size_t chunks_of(size_t slots) { return (slots + CHUNK - 1) / CHUNK; }

static size_t worker_floats(size_t E)
{
    return BLOCK * panel_floats(E) + part_floats(E) + CHUNK * (E + wide(E)) + QUERIES * STRIDE;
}

/* Floats for the parts when keys are divided among threads. This happens if each sequence has few
 * queries, there are fewer than two tasks a thread, and the tasks do not divide evenly. */
static size_t split_floats(size_t threads, size_t slots, size_t E)
{
    return threads > 1 ? 2 * threads * chunks_of(slots) * part_floats(E) : 0;
}

size_t OWN_CPU(attention_work)(const struct backend *backend, size_t T, size_t n_seqs,
                               size_t max_slots, size_t heads, size_t kv_heads, size_t head_dim,
                               size_t dense)
{
    (void)n_seqs, (void)heads, (void)kv_heads;
    if (dense)
        return CPU(attention_dense_work)(backend, T, max_slots, head_dim, dense);
    size_t threads = pool_threads(backend->pool);
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
    struct scratch scratch;
    for (size_t i = 0; i < BLOCK; i++, p += panel_floats(E)) {
        scratch.panels[i].all = part_at(p);
        scratch.panels[i].last = (int32_t *)(void *)(p + part_floats(E));
        scratch.panels[i].q = (uint32_t *)(void *)(p + part_floats(E) + QUERIES);
    }
    scratch.part = part_at(p);
    scratch.scores = p + part_floats(E);
    scratch.values = (uint32_t *)(void *)(scratch.scores + QUERIES * STRIDE);
    scratch.keys = scratch.values + CHUNK * wide(E);
    return scratch;
}

/* ---- queries ---- */

/* The last position that a row at `pos` may see. */
static int32_t last_seen(const struct attn *attention, int32_t pos)
{
    if (attention->mask == MASK_FULL)
        return INT32_MAX;
    if (attention->mask == MASK_CAUSAL)
        return pos;
    int32_t block = (int32_t)attention->mask_block;
    return (pos / block + 1) * block - 1;
}

/* Scales one query and packs it into words. */
static void pack_query(const struct side *side, const float *query, uint32_t *out)
{
    const size_t E = side->a->head_dim;
    float scale = (float)(1 / sqrt((double)E));
    for (size_t e = 0; e < E; e += LANES) {
        size_t n = E - e < LANES ? E - e : LANES;
        vec x = (vec)load_words(query, E * sizeof *query, e) * scale;
        if (side->pairs) {
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

/* Packs queries first .. first + each - 1 of `heads` key heads. The panel is filled up with queries
 * of zeros, whose results are not read. */
static void pack_panel(const struct side *side, struct panel *panel, size_t first, size_t each,
                       size_t heads)
{
    const struct attn *attention = side->a;
    size_t words = words_of(attention->head_dim, side->pairs);
    panel->count = each * heads;
    panel->heads = heads;
    panel->least = INT32_MAX;
    panel->most = INT32_MIN;
    for (size_t i = 0; i < panel->count; i++) {
        size_t query = first + i % each, kh = side->kh + i / each,
               row = side->row + query / side->group;
        panel->at[i] = (row * attention->heads + kh * side->group + query % side->group) *
                       attention->head_dim;
        pack_query(side, (const float *)attention->q + panel->at[i], panel->q + i * words);
        panel->last[i] = last_seen(attention, attention->pos[row]);
        panel->least = panel->last[i] < panel->least ? panel->last[i] : panel->least;
        panel->most = panel->last[i] > panel->most ? panel->last[i] : panel->most;
    }
    memset(panel->q + panel->count * words, 0, (QUERIES - panel->count) * words * sizeof *panel->q);
}

static void part_clear(const struct attn_part *part, size_t E)
{
    for (size_t i = 0; i < QUERIES; i++) {
        part->max[i] = -INFINITY;
        part->sum[i] = 0;
    }
    memset(part->y, 0, QUERIES * wide(E) * sizeof *part->y);
}

/* Merges *part into *all, for `rows` queries. A query that saw no key in *part keeps the values of
 * *all, and the other way round. */
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
        float *y = all->y + i * wide(E), *more = part->y + i * wide(E);
        for (size_t e = 0; e < wide(E); e += LANES)
            put(y + e, load(y + e) * keep[i] + load(more + e) * take[i]);
    }
}

/* y = the result of the panel; zeros for a query that saw no key. */
static void finish(const struct side *side, const struct panel *panel)
{
    size_t E = side->a->head_dim;
    for (size_t i = 0; i < panel->count; i++) {
        float *y = (float *)side->a->y + panel->at[i], *z = panel->all.y + i * wide(E);
        float inverse = panel->all.sum[i] == 0 ? 0 : (float)(1 / panel->all.sum[i]);
        size_t e = 0;
        for (; e + LANES <= E; e += LANES)
            put(y + e, load(z + e) * inverse);
        for (; e < E; e++)
            y[e] = z[e] * inverse;
    }
}

/* ---- chunks and tasks ---- */

/* Computes the chunk of keys from `first` on for all panels. The part of a panel is merged into
 * panel.all, or stored in `into`. */
static void run_chunk(const struct side *side, struct scratch *scratch, size_t panels, size_t first,
                      const struct attn_part *into)
{
    size_t n = side->n_slots - first < CHUNK ? side->n_slots - first : CHUNK;
    size_t E = side->a->head_dim;
    const int32_t *slot_pos = side->slot_pos + first;
    int32_t least = INT32_MAX, most = INT32_MIN;
    for (size_t j = 0; j < n; j++) {
        least = slot_pos[j] < least ? slot_pos[j] : least;
        most = slot_pos[j] > most ? slot_pos[j] : most;
    }
    struct key_chunk chunk = {
        .d = side, .first = first, .room_k = scratch->keys, .room_v = scratch->values};
    tiled_begin();
    for (size_t i = 0; i < panels; i++) {
        const struct panel *panel = &scratch->panels[i];
        const struct attn_part *part = into ? into : &scratch->part;
        if (panel->most < least) {
            if (into)
                part_clear(into, E);
            continue;
        }
        if (panels > 1 && !chunk.shared) {
            CPU(fetch_keys)(side, first, n, scratch->keys);
            chunk.values = CPU(fetch_values)(side, first, n, scratch->values);
            chunk.shared = 1;
        }
        chunk.n = n;
        while (slot_pos[chunk.n - 1] > panel->most)
            chunk.n--;
        run_part(&chunk, panel, most > panel->least || least < first_seen(side->a, panel->most),
                 scratch->scores, part);
        if (!into)
            merge(&panel->all, part, panel->count, E);
    }
    tiled_end();
}

struct attn_job {
    const struct attn *a;
    float *work, *parts;
    size_t heads;  /* key heads in a panel */
    size_t groups; /* groups of `heads` key heads in a sequence */
    size_t blocks; /* blocks of BLOCK panels in the sequence with the most rows */
    size_t chunks; /* chunks of the longest list, when keys are divided */
};

static struct side side_of(const struct attn_job *j, size_t i)
{
    const struct attn *attention = j->a;
    const struct attn_seq *sequence = &attention->seqs[i / j->groups];
    return (struct side){.a = attention, .row = (size_t)sequence->row_begin,
                         .rows = (size_t)sequence->rows, .n_slots = (size_t)sequence->n_slots,
                         .slots = attention->slots + sequence->slot_begin,
                         .slot_pos = attention->slot_pos + sequence->slot_begin,
                         .kh = i % j->groups * j->heads,
                         .group = attention->heads / attention->kv_heads,
                         .pairs = BF16_DOT && attention->half};
}

static size_t pack_block(const struct attn_job *j, const struct side *side, struct scratch *scratch,
                         size_t block)
{
    size_t queries = side->rows * side->group, left = side->a->kv_heads - side->kh, panels = 0;
    size_t heads = left < j->heads ? left : j->heads;
    for (size_t q = block * BLOCK * QUERIES; q < queries && panels < BLOCK; q += QUERIES)
        pack_panel(side, &scratch->panels[panels++], q,
                   queries - q < QUERIES ? queries - q : QUERIES, heads);
    return panels;
}

/* A task is a block of panels of one sequence and key head, or one panel of several key heads, with
 * all keys. */
static void blocks_part(void *ctx, size_t begin, size_t end, size_t worker)
{
    const struct attn_job *j = ctx;
    size_t E = j->a->head_dim;
    struct scratch scratch = scratch_at(j->work + worker * worker_floats(E), E);
    for (size_t i = begin; i < end; i++) {
        struct side side = side_of(j, i / j->blocks);
        size_t panels = pack_block(j, &side, &scratch, i % j->blocks);
        for (size_t panel = 0; panel < panels; panel++)
            part_clear(&scratch.panels[panel].all, E);
        for (size_t first = 0; panels && first < side.n_slots; first += CHUNK)
            run_chunk(&side, &scratch, panels, first, NULL);
        for (size_t panel = 0; panel < panels; panel++)
            finish(&side, &scratch.panels[panel]);
    }
}

/* A task is one panel and one chunk of keys; the part is stored for merge_parts(). */
static void keys_part(void *ctx, size_t begin, size_t end, size_t worker)
{
    const struct attn_job *j = ctx;
    size_t E = j->a->head_dim;
    struct scratch scratch = scratch_at(j->work + worker * worker_floats(E), E);
    for (size_t i = begin; i < end; i++) {
        struct side side = side_of(j, i / j->chunks);
        size_t first = i % j->chunks * CHUNK;
        struct attn_part part = part_at(j->parts + i * part_floats(E));
        if (first < side.n_slots && pack_block(j, &side, &scratch, 0))
            run_chunk(&side, &scratch, 1, first, &part);
    }
}

static void merge_parts(const struct attn_job *j, size_t sides)
{
    size_t E = j->a->head_dim;
    struct scratch scratch = scratch_at(j->work, E);
    for (size_t i = 0; i < sides; i++) {
        struct side side = side_of(j, i);
        if (!pack_block(j, &side, &scratch, 0))
            continue;
        part_clear(&scratch.panels[0].all, E);
        for (size_t chunk = 0; chunk < chunks_of(side.n_slots); chunk++) {
            struct attn_part part = part_at(j->parts + (i * j->chunks + chunk) * part_floats(E));
            merge(&scratch.panels[0].all, &part, scratch.panels[0].count, E);
        }
        finish(&side, &scratch.panels[0]);
    }
}

/* The number of key heads in a panel, if each has `queries` queries: as many as fit, but so few
 * that threads have about equal work. */
static size_t panel_heads(const struct attn *attention, size_t queries, size_t chunks,
                          size_t threads)
{
    const int low = !TILED && queries <= FEW && wide(attention->head_dim) % KEYS == 0;
    size_t heads = (QUERIES - up(queries, low ? FEW : TALL)) / queries + 1;
    for (heads = heads < attention->kv_heads ? heads : attention->kv_heads; heads > 1;
         heads = (heads + 1) / 2) {
        size_t tasks = attention->n_seqs * ((attention->kv_heads + heads - 1) / heads) * chunks;
        if (10 * tasks >= 9 * up(tasks, threads))
            break;
    }
    return heads;
}

static void attention_tiled(struct backend *backend, const struct attn *attention, void *work)
{
    size_t group = attention->heads / attention->kv_heads, E = attention->head_dim, rows = 0,
           slots = 0, pairs = 0;
    size_t threads = pool_threads(backend->pool);
    for (size_t sequence = 0; sequence < attention->n_seqs; sequence++) {
        size_t own = (size_t)attention->seqs[sequence].rows,
               n = (size_t)attention->seqs[sequence].n_slots;
        rows = own > rows ? own : rows;
        slots = n > slots ? n : slots;
        pairs += own * n;
    }
    struct attn_job j = {
        .a = attention, .work = work, .parts = (float *)work + threads * worker_floats(E)};
    j.blocks = (rows * group + BLOCK * QUERIES - 1) / (BLOCK * QUERIES);
    j.chunks = chunks_of(slots);
    int few = rows * group <= QUERIES && rows;
    int keys = few && j.chunks > 1 && attention->n_seqs < 2 * threads &&
               attention->n_seqs % threads;
    j.heads = few ? panel_heads(attention, rows * group, keys ? j.chunks : 1, threads) : 1;
    j.groups = (attention->kv_heads + j.heads - 1) / j.heads;
    size_t sides = attention->n_seqs * j.groups;
    int split = keys && sides < 2 * threads && sides % threads;
    size_t tasks = sides * (split ? j.chunks : j.blocks);
    /* with few queries transposing the keys costs about as much as the products */
    size_t products = (few ? 4 : 2) * pairs * attention->heads * E / (tasks ? tasks : 1);
    pool_run(backend->pool, tasks, grain(products), split ? keys_part : blocks_part, &j);
    if (split)
        merge_parts(&j, sides);
}

void OWN_CPU(attention)(struct backend *backend, const struct attn *attn, void *work)
{
    (attn->dense ? CPU(attention_dense) : attention_tiled)(backend, attn, work);
}
