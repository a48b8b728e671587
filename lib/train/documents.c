/* documents.c - encodes a corpus and fills batches from it; see documents.h.
 *
 * All draws are rng_at(seed, step, place). No state passes from one step to the next, so a resumed
 * training gets the same batches. */
#include "lib/train/documents.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/hash.h"
#include "lib/base/mem.h"
#include "lib/base/rng.h"
#include "lib/record/rec.h"

struct texts {
    char **v;
    size_t n, cap; /* n: strings */
};

static void keep_pair(struct texts *t, const char *prompt, const char *answer)
{
    if (t->n + 2 > t->cap) {
        t->cap = t->cap ? 2 * t->cap : 1024;
        t->v = mem_resize(t->v, t->cap, sizeof *t->v);
    }
    t->v[t->n++] = mem_text(prompt);
    t->v[t->n++] = mem_text(answer);
}

int documents_read(const char *const *paths, size_t n_paths, int64_t limit, const char *task,
                   int64_t times, char ***texts, size_t *n, size_t *unique, struct err *e)
{
    struct rec_reader *r = rec_read_open(paths, n_paths, e);
    if (!r)
        return -1;
    struct texts first = {0}, again = {0};
    json_t *record;
    int got = 0;
    while ((!limit || first.n / 2 < (size_t)limit) && (got = rec_read(r, &record, e)) == 1) {
        const char *prompt = rec_text(record, "text"), *answer = rec_text(record, "reference");
        const char *own = rec_text(record, "task");
        if (prompt && answer) {
            keep_pair(&first, prompt, answer);
            for (int64_t i = 1; task && own && !strcmp(task, own) && i < times; i++)
                keep_pair(&again, prompt, answer);
        }
        json_decref(record);
    }
    rec_read_close(r);
    if (got >= 0 && !first.n)
        got = err_set(e, EXIT_BAD_DATA, "%s: no record with 'text' and 'reference'",
                      paths[0]);
    *unique = first.n / 2;
    for (size_t i = 0; i < again.n; i += 2)
        keep_pair(&first, again.v[i], again.v[i + 1]);
    documents_free_texts(again.v, again.n / 2);
    *texts = first.v;
    *n = first.n / 2;
    if (got < 0)
        documents_free_texts(*texts, *n);
    return got < 0 ? -1 : 0;
}

void documents_free_texts(char **texts, size_t n)
{
    for (size_t i = 0; i < 2 * n; i++)
        free(texts[i]);
    free(texts);
}

int documents_make(struct documents *l, const struct tokenizer *t, char *const *texts, size_t n,
                   int64_t bos, int64_t eos, int64_t mask, uint64_t seed, struct err *e)
{
    *l = (struct documents){.n = n, .bos = bos, .eos = eos, .mask = mask, .seed = seed};
    l->begin = mem_alloc((n + 1) * sizeof *l->begin);
    l->answer = mem_alloc(n * sizeof *l->answer);
    uint32_t *order = mem_alloc(n * sizeof *order);
    for (size_t i = 0; i < n; i++)
        order[i] = (uint32_t)i;
    struct rng rng = {.seed = rng_derive(seed, "order")};
    rng_shuffle(&rng, order, n);
    int bad = 0;
    for (size_t i = 0; i < n && !bad; i++) {
        const char *prompt = texts[2 * order[i]], *answer = texts[2 * order[i] + 1];
        l->begin[i] = l->all.n;
        if (bos >= 0)
            ids_push(&l->all, (int32_t)bos);
        bad = tokenizer_encode(t, prompt, strlen(prompt), ENCODE_PLAIN, &l->all, e);
        l->answer[i] = l->all.n;
        bad = bad || tokenizer_encode(t, answer, strlen(answer), ENCODE_PLAIN, &l->all, e);
        ids_push(&l->all, (int32_t)eos);
    }
    l->begin[n] = l->all.n;
    free(order);
    if (bad)
        documents_free(l);
    return bad ? -1 : 0;
}

int documents_open(struct documents *l, const struct tokenizer *t, const char *const *paths,
                   size_t n_paths, int64_t limit, int64_t bos, int64_t eos, int64_t mask,
                   uint64_t seed, struct err *e)
{
    char **texts;
    size_t n, unique;
    if (documents_read(paths, n_paths, limit, NULL, 1, &texts, &n, &unique, e))
        return -1;
    int bad = documents_make(l, t, texts, n, bos, eos, mask, seed, e);
    documents_free_texts(texts, n);
    return bad;
}

void documents_free(struct documents *l)
{
    ids_free(&l->all);
    free(l->begin);
    free(l->answer);
    *l = (struct documents){0};
}

void documents_hash(const struct documents *l, char hex[65])
{
    struct hash *h = hash_new();
    hash_add(h, l->all.v, l->all.n * sizeof *l->all.v);
    hash_add(h, l->begin, (l->n + 1) * sizeof *l->begin);
    hash_add(h, l->answer, l->n * sizeof *l->answer);
    hash_hex(h, hex);
    hash_free(h);
}

/* A random number in 0..n-1 for a place of a step; the bias of the remainder is below 1e-13. */
static size_t draw_below(const struct documents *l, int64_t step, uint64_t place, size_t n)
{
    return (size_t)(rng_at(l->seed, (uint64_t)step, place) % n);
}

void documents_fill_next_token(const struct documents *l, int64_t step, size_t rows,
                               size_t len, struct train_batch *b)
{
    b->len = len;
    b->seqs = rows / len;
    float weight = 1 / (float)(b->seqs * len);
    for (size_t s = 0; s < b->seqs; s++) {
        size_t at = l->begin[draw_below(l, step, s, l->n)];
        for (size_t i = 0; i < len; i++) {
            b->token[s * len + i] = l->all.v[(at + i) % l->all.n];
            b->target[s * len + i] = l->all.v[(at + i + 1) % l->all.n];
            b->weight[s * len + i] = weight;
        }
    }
}

/* Length in tokens of the document in row s of a step, at most `most`. */
static size_t length_of(const struct documents *l, int64_t step, size_t s, size_t most)
{
    size_t doc = draw_below(l, step, s, l->n), n = l->begin[doc + 1] - l->begin[doc];
    return n < most ? n : most;
}

/* The last token of a row has no target: it is EOS, or the document was cut there. */
void documents_fill_whole(const struct documents *l, int64_t step, size_t rows,
                          size_t max_len, struct train_batch *b)
{
    size_t seqs = 0, len = 0;
    for (; seqs < rows / TRAINING_ROW_LEAST; seqs++) {
        size_t n = length_of(l, step, seqs, max_len), longest = n > len ? n : len;
        if ((seqs + 1) * longest > rows)
            break;
        len = longest;
    }
    b->seqs = seqs;
    b->len = len;
    for (size_t s = 0; s < seqs; s++) {
        const int32_t *from = l->all.v + l->begin[draw_below(l, step, s, l->n)];
        size_t n = length_of(l, step, s, len);
        for (size_t i = 0; i < len; i++) {
            b->token[s * len + i] = i < n ? from[i] : (int32_t)l->eos;
            b->target[s * len + i] = i + 1 < n ? from[i + 1] : (int32_t)l->eos;
            b->weight[s * len + i] = i + 1 < n ? 1 : 0;
        }
    }
}

/* The tokens of a row that can be masked, see documents.h. */
enum row_kind { ROW_WHOLE, ROW_CUT, ROW_RESPONSE };

static enum row_kind row_kind(const struct documents *l, int64_t step, uint64_t place)
{
    double lot = rng_unit(rng_at(l->seed, (uint64_t)step, place));
    return lot < l->whole ? ROW_WHOLE : lot < l->whole + l->cut ? ROW_CUT : ROW_RESPONSE;
}

/* One document as a row of len tokens: prompt, response, padding of EOS. Returns the first token
 * that can be masked; the last eight tokens always can. */
static size_t fill_row(const struct documents *l, size_t doc, enum row_kind kind, size_t place,
                       size_t len, int32_t *out)
{
    size_t n = l->begin[doc + 1] - l->begin[doc], first = l->answer[doc] - l->begin[doc];
    for (size_t i = 0; i < len; i++)
        out[i] = i < n ? l->all.v[l->begin[doc] + i] : (int32_t)l->eos;
    if (kind == ROW_WHOLE)
        return 0;
    if (kind == ROW_CUT)
        first += place % (n - first);
    return first < len - 8 ? first : len - 8;
}

/* The tokens of a row that are masked at random. */
struct span {
    size_t first, end;
};

/* One of the whole blocks between `first` and len (the rest, if there is none), by a random number;
 * sets the last position that each token sees. Blocks are counted from the first token that can be
 * masked, or from the beginning of the row. */
static struct span choose_block(const struct config *c, size_t first, size_t len, size_t lot,
                              int32_t *last)
{
    const size_t B = c->attends_block, from = c->attends_from_end ? first : first - first % B;
    const size_t n = (len - from) / B, begin = from + (n ? lot % n : 0) * B;
    const size_t shift = (B - begin % B) % B;
    for (size_t i = 0; i < len; i++) {
        const int prompt = c->attends_prompt && i < from;
        const size_t end = prompt ? from : ((i + shift) / B + 1) * B - shift;
        last[i] = (int32_t)(end < len ? end : len) - 1;
    }
    return (struct span){begin > first ? begin : first, begin + B < len ? begin + B : len};
}

/* Moves targets and weights of a row to the token before. */
static void shift_row(int32_t *target, float *weight, size_t len)
{
    memmove(target, target + 1, (len - 1) * sizeof *target);
    memmove(weight, weight + 1, (len - 1) * sizeof *weight);
    weight[len - 1] = 0;
}

void documents_fill_diffusion(const struct documents *l, const struct config *c, int64_t step,
                              size_t rows, size_t min_len, size_t max_len, struct train_batch *b)
{
    enum { LENGTH = 1 << 20, SHIFT, DOC = 1 << 21, KIND = 1 << 22, CUT = 3 << 21, MASKS = 1 << 23,
           BLOCK = 5 << 21 };
    size_t len = min_len + 8 * draw_below(l, step, LENGTH, (max_len - min_len) / 8 + 1);
    b->len = len;
    b->seqs = rows / len;
    double shift = rng_unit(rng_at(l->seed, (uint64_t)step, SHIFT));
    for (size_t s = 0; s < b->seqs; s++) {
        int32_t *target = b->target + s * len, *token = b->token + s * len;
        float *weight = b->weight + s * len;
        size_t place = draw_below(l, step, CUT + s, SIZE_MAX);
        size_t first = fill_row(l, draw_below(l, step, DOC + s, l->n), row_kind(l, step, KIND + s),
                                place, len, target);
        struct span hide = {c->logit_shift && !first ? 1 : first, len};
        if (c->attends == MASK_BLOCK_CAUSAL)
            hide = choose_block(c, hide.first, len, draw_below(l, step, BLOCK + s, SIZE_MAX),
                              b->last + s * len);
        double u = ((double)s + shift) / (double)b->seqs, p = (1 - 1e-3) * u * u + 1e-3;
        float scale = (float)(2 * u / (p * (double)(hide.end - hide.first) * (double)b->seqs));
        for (size_t i = 0; i < len; i++) {
            double coin = rng_unit(rng_at(l->seed, (uint64_t)step, MASKS + s * len + i));
            int hidden = i >= hide.first && i < hide.end && coin < p;
            token[i] = hidden ? (int32_t)l->mask : target[i];
            weight[i] = hidden ? scale : 0;
        }
        if (c->logit_shift)
            shift_row(target, weight, len);
    }
}
