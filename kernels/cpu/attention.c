/* attention.c - softmax(q k^T / sqrt(E)) v over a list of cache slots.
 *
 * The rows of a sequence, times the G query heads that share a key head, are the queries of that
 * key head: query i is row i / G, head i % G of the group. A panel is up to QUERIES of them. Keys
 * come in chunks of CHUNK slots; a chunk is fetched once for BLOCK panels, keys turned so that one
 * lane is one key:
 *
 *             E              chunk                   chunk              E
 *           +---+          +-------+               +-------+          +---+
 *   queries | q |  x   E   | keys  |   = scores,   |   p   | x  chunk | v |  =  y
 *           +---+          +-------+               +-------+          +---+
 *
 * Chunks are counted from the start of the list. Each makes a part (maximum, sum, y) per query, and
 * parts are merged in their order (online softmax). A key that a query may not see adds exact
 * zeros. So a row's bits depend on the row and its list alone: not on the rows beside it, nor on
 * whether the parts were computed one after another or by several threads. With attn.dense:
 * attention-dense.c.
 */
#include <math.h>

#include "kernels/cpu/cpu.h"
#include "kernels/cpu/fetch.h"
#include "kernels/cpu/transpose.h"
#include DENSE /* tiled_product, where the level has tiles */

/* A product's tile is ROWS x 2 registers, or for few queries FEW x WIDE, where the level has none
 * of its own (DENSE). QUERIES is a multiple of LANES. A row of scores is a line longer than a
 * chunk: else rows fight for the same cache sets. */
enum {
    CHUNK = 256,
    BLOCK = 8,
    QUERIES = 32,
    ROWS = LANES == 16 ? 8 : 4,
    FEW = 4,
    WIDE = KEYS / LANES,
    STRIDE = CHUNK + LINE
};

/* The result of one panel over some keys: max[QUERIES], sum[QUERIES], y[QUERIES, E']. */
struct part {
    float *max, *y;
    double *sum;
};

struct panel {
    size_t count;        /* queries */
    size_t at[QUERIES];  /* where each begins in q and y */
    int32_t *last;       /* [QUERIES] the last position that each query may see */
    int32_t least, most; /* of last */
    uint32_t *q;         /* [QUERIES, words of E], scaled */
    struct part all;
};

/* A worker's memory. */
struct scratch {
    struct panel panels[BLOCK];
    uint32_t *keys;   /* [CHUNK / KEYS, words of E, KEYS] */
    uint32_t *values; /* [CHUNK, E'], or pairs */
    float *scores;    /* [QUERIES, STRIDE], and then the probabilities in its place */
    struct part part;
};

static size_t part_floats(size_t E) { return (wide(E) + 3) * QUERIES; }
static size_t panel_floats(size_t E) { return (E + 1) * QUERIES + part_floats(E); }
static size_t chunks_of(size_t slots) { return (slots + CHUNK - 1) / CHUNK; }

static size_t worker_floats(size_t E)
{
    return BLOCK * panel_floats(E) + part_floats(E) + CHUNK * (E + wide(E)) + QUERIES * STRIDE;
}

/* Keys are split over threads when tasks of few queries are fewer than two a thread and do not
 * share out evenly. */
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

static struct part part_at(float *p)
{
    return (struct part){.sum = (double *)(void *)p, .max = p + 2 * QUERIES, .y = p + 3 * QUERIES};
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

/* One query, scaled, as words. */
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

/* Idle queries, up to a whole tile, are zeros; nobody reads what they give. */
static void pack_panel(const struct side *d, struct panel *p, size_t first, size_t count)
{
    const struct attn *a = d->a;
    size_t words = words_of(a->head_dim, d->pairs);
    size_t row = d->row + first / d->group, head = first % d->group;
    p->count = count;
    p->least = INT32_MAX;
    p->most = INT32_MIN;
    for (size_t i = 0; i < count; i++) {
        p->at[i] = (row * a->heads + d->kh * d->group + head) * a->head_dim;
        pack_query(d, (const float *)a->q + p->at[i], p->q + i * words);
        p->last[i] = last_seen(a, a->pos[row]);
        p->least = p->last[i] < p->least ? p->last[i] : p->least;
        p->most = p->last[i] > p->most ? p->last[i] : p->most;
        head = head + 1 < d->group ? head + 1 : 0;
        row += head == 0;
    }
    memset(p->q + count * words, 0, (QUERIES - count) * words * sizeof *p->q);
}

/* ---- one panel, one chunk ---- */

/* out[rows, regs * LANES] = a[rows, K] m[K, regs * LANES], rows lda, ldm, ldo words apart. */
INLINE void tile(const int rows, const int regs, const int pairs, float *out, size_t ldo,
                 const uint32_t *a, size_t lda, const uint32_t *m, size_t ldm, size_t K)
{
    vec sum[ROWS * WIDE];
    for (int i = 0; i < rows * regs; i++)
        sum[i] = (vec){0};
    for (size_t k = 0; k < K; k++) {
        for (int r = 0; r < rows; r++) {
            uint32_t word;
            memcpy(&word, a + (size_t)r * lda + k, sizeof word);
            vecu x = splat_bits(word);
            for (int g = 0; g < regs; g++) {
                vecu y = load_bits(m + g * LANES);
                vec *s = &sum[r * regs + g];
                *s = pairs ? dot_bf16(*s, x, y) : *s + (vec)x * (vec)y;
            }
        }
        m += ldm;
    }
    for (int r = 0; r < rows; r++)
        for (int g = 0; g < regs; g++)
            put(out + (size_t)r * ldo + g * LANES, sum[r * regs + g]);
}

/* out[rows, cols] = a[rows, K] m[K, cols] by tiles: whole ones, so both have idle rows or columns.
 * Few rows take wide tiles when the columns allow it. */
INLINE void product(const int pairs, size_t rows, size_t cols, size_t K, float *out, size_t ldo,
                    const uint32_t *a, size_t lda, const uint32_t *m, size_t ldm)
{
    if (TILED && pairs) {
        tiled_product(rows, cols, K, out, ldo, a, lda, m, ldm);
        return;
    }
    if (rows <= FEW && cols % KEYS == 0) {
        for (size_t c = 0; c < cols; c += KEYS)
            tile(FEW, WIDE, pairs, out + c, ldo, a, lda, m + c, ldm, K);
        return;
    }
    for (size_t c = 0; c < cols; c += 2 * LANES)
        for (size_t r = 0; r < rows; r += ROWS)
            tile(ROWS, 2, pairs, out + r * ldo + c, ldo, a + r * lda, lda, m + c, ldm, K);
}

/* The largest score, or the sum, of LANES rows, from those of their lanes. */
INLINE vec row_largest(vecu v[LANES])
{
    transpose(v);
    vec most = (vec)v[0];
    for (int i = 1; i < LANES; i++)
        most = vmax((vec)v[i], most);
    return most;
}

INLINE void row_sums(vecu v[LANES], double *out)
{
    transpose(v);
    vecd sum = {0};
    for (int i = 0; i < LANES; i++)
        sum += __builtin_convertvector((vec)v[i], vecd);
    memcpy(out, &sum, sizeof sum);
}

/* The first position that a query may see, by the last one. */
static int32_t first_seen(const struct attn *a, int32_t last)
{
    return a->window ? last - (int32_t)a->window + 1 : INT32_MIN;
}

/* Scores of keys that the query may not see become -inf. */
static void hide(float *scores, const int32_t *slot_pos, size_t n, int32_t first, int32_t last)
{
    size_t j = 0;
    for (; j + LANES <= n; j += LANES) {
        veci at = (veci)load_bits(slot_pos + j), seen = (at >= first) & (at <= last);
        put(scores + j, pick(seen, load(scores + j), splat(-INFINITY)));
    }
    for (; j < n; j++)
        scores[j] = slot_pos[j] >= first && slot_pos[j] <= last ? scores[j] : -INFINITY;
}

/* LANES rows of scores[n] (n a multiple of LANES) to probabilities e^(s - max), in place, as words.
 * `rows` of them count. A lane is summed in float, the lanes in double. */
INLINE void probabilities(const int pairs, float *scores, size_t rows, size_t n, float *max,
                          double *sum)
{
    vecu v[LANES];
    for (size_t r = 0; r < LANES; r++) {
        vec most = splat(-INFINITY);
        for (size_t j = 0; r < rows && j < n; j += LANES)
            most = vmax(load(scores + r * STRIDE + j), most);
        v[r] = (vecu)most;
    }
    put(max, row_largest(v));
    for (size_t r = 0; r < LANES; r++) {
        float *s = scores + r * STRIDE, base = max[r] == -INFINITY ? 0 : max[r];
        vec total = {0};
        for (size_t j = 0; r < rows && j < n; j += LANES) {
            vec p = vexp(load(s + j) - base);
            vech half = bf16_narrow(p);
            total += p;
            if (pairs)
                memcpy(s + j / 2, &half, sizeof half);
            else
                put(s + j, p);
        }
        v[r] = (vecu)total;
    }
    row_sums(v, sum);
}

/* The part that the first n keys of a chunk make of panel p. */
INLINE void panel_part(const int pairs, const struct side *d, const struct panel *p,
                       const uint32_t *keys, const struct words *values, const int32_t *slot_pos,
                       size_t n, int hidden, float *scores, const struct part *part)
{
    size_t E = d->a->head_dim, words = words_of(E, pairs), whole = up(n, LANES);
    for (size_t j = 0; j < n; j += KEYS)
        product(pairs, p->count, KEYS, words, scores + j, STRIDE, p->q, words,
                keys + j * words, KEYS);
    for (size_t i = 0; i < p->count; i++) {
        if (hidden)
            hide(scores + i * STRIDE, slot_pos, n, first_seen(d->a, p->last[i]), p->last[i]);
        for (size_t j = n; j < whole; j++)
            scores[i * STRIDE + j] = -INFINITY;
    }
    for (size_t i = 0; i < p->count; i += LANES)
        probabilities(pairs, scores + i * STRIDE, p->count - i, whole, part->max + i,
                      part->sum + i);
    product(pairs, p->count, wide(E), pairs ? (n + 1) / 2 : n, part->y, wide(E),
            (const uint32_t *)(const void *)scores, STRIDE, values->at, values->row);
}

static void run_part(const struct side *d, const struct panel *p, const uint32_t *keys,
                     const struct words *values, const int32_t *slot_pos, size_t n, int hidden,
                     float *scores, const struct part *part)
{
    if (BF16_DOT && d->pairs)
        panel_part(1, d, p, keys, values, slot_pos, n, hidden, scores, part);
    else
        panel_part(0, d, p, keys, values, slot_pos, n, hidden, scores, part);
}

static void part_clear(const struct part *p, size_t E)
{
    for (size_t i = 0; i < QUERIES; i++) {
        p->max[i] = -INFINITY;
        p->sum[i] = 0;
    }
    memset(p->y, 0, QUERIES * wide(E) * sizeof *p->y);
}

/* all += part, `rows` queries. One that saw no key on a side takes all from the other. */
static __attribute__((noinline)) void merge(const struct part *all, const struct part *part,
                                            size_t rows, size_t E)
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

/* y = the panel's result; zeros where no key was seen. */
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

/* Keys first.. of the list for all panels; parts are merged, or left in `into`. */
static void run_chunk(const struct side *d, struct scratch *w, size_t panels, size_t first,
                      const struct part *into)
{
    size_t n = d->n_slots - first < CHUNK ? d->n_slots - first : CHUNK;
    size_t E = d->a->head_dim;
    const int32_t *slot_pos = d->slot_pos + first;
    int32_t least = INT32_MAX, most = INT32_MIN;
    for (size_t j = 0; j < n; j++) {
        least = slot_pos[j] < least ? slot_pos[j] : least;
        most = slot_pos[j] > most ? slot_pos[j] : most;
    }
    struct words values = {0};
    tiled_begin();
    for (size_t i = 0; i < panels; i++) {
        const struct panel *p = &w->panels[i];
        const struct part *part = into ? into : &w->part;
        if (p->most < least) {
            if (into)
                part_clear(into, E);
            continue;
        }
        if (!values.at) {
            CPU(fetch_keys)(d, first, n, w->keys);
            values = CPU(fetch_values)(d, first, n, w->values);
        }
        size_t seen = n;
        while (slot_pos[seen - 1] > p->most)
            seen--;
        run_part(d, p, w->keys, &values, slot_pos, seen,
                 most > p->least || least < first_seen(d->a, p->most), w->scores, part);
        if (!into)
            merge(&p->all, part, p->count, E);
    }
    tiled_end();
}

struct job {
    const struct attn *a;
    float *work, *parts;
    size_t blocks; /* of BLOCK panels, of the sequence that has most rows */
    size_t chunks; /* of the longest list, when split by keys */
};

static struct side side_of(const struct attn *a, size_t i)
{
    const struct attn_seq *s = &a->seqs[i / a->kv_heads];
    return (struct side){.a = a,
                         .row = (size_t)s->row_begin,
                         .rows = (size_t)s->rows,
                         .n_slots = (size_t)s->n_slots,
                         .slots = a->slots + s->slot_begin,
                         .slot_pos = a->slot_pos + s->slot_begin,
                         .kh = i % a->kv_heads,
                         .group = a->heads / a->kv_heads,
                         .pairs = BF16_DOT && a->half};
}

static size_t pack_block(const struct side *d, struct scratch *w, size_t block)
{
    size_t queries = d->rows * d->group, panels = 0;
    for (size_t q = block * BLOCK * QUERIES; q < queries && panels < BLOCK; q += QUERIES)
        pack_panel(d, &w->panels[panels++], q, queries - q < QUERIES ? queries - q : QUERIES);
    return panels;
}

/* One task: a block of panels of one sequence and key head, all keys. */
static void blocks_part(void *ctx, size_t begin, size_t end, size_t worker)
{
    const struct job *j = ctx;
    size_t E = j->a->head_dim;
    struct scratch w = scratch_at(j->work + worker * worker_floats(E), E);
    for (size_t i = begin; i < end; i++) {
        struct side d = side_of(j->a, i / j->blocks);
        size_t panels = pack_block(&d, &w, i % j->blocks);
        for (size_t p = 0; p < panels; p++)
            part_clear(&w.panels[p].all, E);
        for (size_t first = 0; panels && first < d.n_slots; first += CHUNK)
            run_chunk(&d, &w, panels, first, NULL);
        for (size_t p = 0; p < panels; p++)
            finish(&d, &w.panels[p]);
    }
}

/* One task: one panel, one chunk of keys; its part is kept. */
static void keys_part(void *ctx, size_t begin, size_t end, size_t worker)
{
    const struct job *j = ctx;
    size_t E = j->a->head_dim;
    struct scratch w = scratch_at(j->work + worker * worker_floats(E), E);
    for (size_t i = begin; i < end; i++) {
        struct side d = side_of(j->a, i / j->chunks);
        size_t first = i % j->chunks * CHUNK;
        struct part part = part_at(j->parts + i * part_floats(E));
        if (first < d.n_slots && pack_block(&d, &w, 0))
            run_chunk(&d, &w, 1, first, &part);
    }
}

static void merge_parts(const struct job *j, size_t sides)
{
    size_t E = j->a->head_dim;
    struct scratch w = scratch_at(j->work, E);
    for (size_t i = 0; i < sides; i++) {
        struct side d = side_of(j->a, i);
        if (!pack_block(&d, &w, 0))
            continue;
        part_clear(&w.panels[0].all, E);
        for (size_t c = 0; c < chunks_of(d.n_slots); c++) {
            struct part part = part_at(j->parts + (i * j->chunks + c) * part_floats(E));
            merge(&w.panels[0].all, &part, w.panels[0].count, E);
        }
        finish(&d, &w.panels[0]);
    }
}

static void attention_tiled(struct backend *b, const struct attn *a, void *work)
{
    size_t group = a->heads / a->kv_heads, E = a->head_dim, rows = 0, slots = 0, pairs = 0;
    size_t threads = pool_threads(b->pool), sides = a->n_seqs * a->kv_heads;
    for (size_t s = 0; s < a->n_seqs; s++) {
        size_t r = (size_t)a->seqs[s].rows, n = (size_t)a->seqs[s].n_slots;
        rows = r > rows ? r : rows;
        slots = n > slots ? n : slots;
        pairs += r * n;
    }
    struct job j = {.a = a, .work = work, .parts = (float *)work + threads * worker_floats(E)};
    j.blocks = (rows * group + BLOCK * QUERIES - 1) / (BLOCK * QUERIES);
    j.chunks = chunks_of(slots);
    int split = rows * group <= QUERIES && sides < 2 * threads && sides % threads && j.chunks > 1;
    size_t tasks = sides * (split ? j.chunks : j.blocks);
    size_t products = 2 * pairs * a->heads * E / (tasks ? tasks : 1);
    pool_run(b->pool, tasks, grain(products), split ? keys_part : blocks_part, &j);
    if (split)
        merge_parts(&j, sides);
}

void OWN_CPU(attention)(struct backend *b, const struct attn *a, void *work)
{
    (a->dense ? CPU(attention_dense) : attention_tiled)(b, a, work);
}
