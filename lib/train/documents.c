/* documents.c - encodes a corpus and fills batches from it; see documents.h.
 *
 * Every draw is rng_at(seed, step, place), where `place` numbers the draws of a step. No state
 * passes from one step to the next, so a resumed training gets the same batches. */
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

static void keep_pair(struct texts *texts, const char *prompt, const char *answer)
{
    if (texts->n + 2 > texts->cap) {
        texts->cap = texts->cap ? 2 * texts->cap : 1024;
        texts->v = mem_resize(texts->v, texts->cap, sizeof *texts->v);
    }
    texts->v[texts->n++] = mem_text(prompt);
    texts->v[texts->n++] = mem_text(answer);
}

int documents_read(const char *const *paths, size_t n_paths, int64_t limit, const char *task,
                   int64_t times, char ***texts, size_t *n, size_t *unique, struct err *e)
{
    struct rec_reader *reader = rec_read_open(paths, n_paths, e);
    if (!reader)
        return -1;
    struct texts first = {0}, again = {0};
    json_t *record;
    int got = 0;
    while ((!limit || first.n / 2 < (size_t)limit) && (got = rec_read(reader, &record, e)) == 1) {
        const char *prompt = rec_text(record, "text"), *answer = rec_text(record, "reference");
        const char *own = rec_text(record, "task");
        if (prompt && answer) {
            keep_pair(&first, prompt, answer);
            for (int64_t i = 1; task && own && !strcmp(task, own) && i < times; i++)
                keep_pair(&again, prompt, answer);
        }
        json_decref(record);
    }
    rec_read_close(reader);
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

int documents_make(struct documents *documents, const struct tokenizer *tokenizer,
                   char *const *texts, size_t n, int64_t bos, int64_t eos, int64_t mask,
                   uint64_t seed, struct err *e)
{
    *documents = (struct documents){.n = n, .bos = bos, .eos = eos, .mask = mask, .seed = seed};
    documents->begin = mem_alloc((n + 1) * sizeof *documents->begin);
    documents->answer = mem_alloc(n * sizeof *documents->answer);
    uint32_t *order = mem_alloc(n * sizeof *order);
    for (size_t i = 0; i < n; i++)
        order[i] = (uint32_t)i;
    struct rng rng = {.seed = rng_derive(seed, "order")};
    rng_shuffle(&rng, order, n);
    int bad = 0;
    for (size_t i = 0; i < n && !bad; i++) {
        const char *prompt = texts[2 * order[i]], *answer = texts[2 * order[i] + 1];
        documents->begin[i] = documents->all.n;
        if (bos >= 0)
            ids_push(&documents->all, (int32_t)bos);
        bad = tokenizer_encode(tokenizer, prompt, strlen(prompt), ENCODE_PLAIN, &documents->all, e);
        documents->answer[i] = documents->all.n;
        bad = bad ||
              tokenizer_encode(tokenizer, answer, strlen(answer), ENCODE_PLAIN, &documents->all, e);
        ids_push(&documents->all, (int32_t)eos);
    }
    documents->begin[n] = documents->all.n;
    free(order);
    if (bad)
        documents_free(documents);
    return bad ? -1 : 0;
}

int documents_open(struct documents *documents, const struct tokenizer *tokenizer,
                   const char *const *paths, size_t n_paths, int64_t limit, int64_t bos,
                   int64_t eos, int64_t mask, uint64_t seed, struct err *e)
{
    char **texts;
    size_t n, unique;
    if (documents_read(paths, n_paths, limit, NULL, 1, &texts, &n, &unique, e))
        return -1;
    int bad = documents_make(documents, tokenizer, texts, n, bos, eos, mask, seed, e);
    documents_free_texts(texts, n);
    return bad;
}

void documents_free(struct documents *documents)
{
    ids_free(&documents->all);
    free(documents->begin);
    free(documents->answer);
    *documents = (struct documents){0};
}

void documents_hash(const struct documents *documents, char hex[65])
{
    struct hash *hash = hash_new();
    hash_add(hash, documents->all.v, documents->all.n * sizeof *documents->all.v);
    hash_add(hash, documents->begin, (documents->n + 1) * sizeof *documents->begin);
    hash_add(hash, documents->answer, documents->n * sizeof *documents->answer);
    hash_hex(hash, hex);
    hash_free(hash);
}

/* The random number in 0..n-1 of a place of a step. With n below 2^20 the remainder has a bias
 * below 1e-13. */
static size_t draw_below(const struct documents *documents, int64_t step, uint64_t place, size_t n)
{
    return (size_t)(rng_at(documents->seed, (uint64_t)step, place) % n);
}

void documents_fill_next_token(const struct documents *documents, int64_t step, size_t rows,
                               size_t len, struct train_batch *batch)
{
    batch->len = len;
    batch->seqs = rows / len;
    float weight = 1 / (float)(batch->seqs * len);
    for (size_t row = 0; row < batch->seqs; row++) {
        size_t at = documents->begin[draw_below(documents, step, row, documents->n)];
        for (size_t i = 0; i < len; i++) {
            batch->token[row * len + i] = documents->all.v[(at + i) % documents->all.n];
            batch->target[row * len + i] = documents->all.v[(at + i + 1) % documents->all.n];
            batch->weight[row * len + i] = weight;
        }
    }
}

/* Tokens of the document in sequence `row` of a step, at most `most`. */
static size_t length_of(const struct documents *documents, int64_t step, size_t row, size_t most)
{
    size_t doc = draw_below(documents, step, row, documents->n),
           n = documents->begin[doc + 1] - documents->begin[doc];
    return n < most ? n : most;
}

/* The last token of a document has no target, because it is EOS or the document is cut behind
 * it. */
void documents_fill_whole(const struct documents *documents, int64_t step, size_t rows,
                          size_t max_len, struct train_batch *batch)
{
    size_t seqs = 0, len = 0;
    for (; seqs < rows / TRAINING_ROW_LEAST; seqs++) {
        size_t n = length_of(documents, step, seqs, max_len), longest = n > len ? n : len;
        if ((seqs + 1) * longest > rows)
            break;
        len = longest;
    }
    batch->seqs = seqs;
    batch->len = len;
    for (size_t row = 0; row < seqs; row++) {
        const int32_t *from = documents->all.v +
                              documents->begin[draw_below(documents, step, row, documents->n)];
        size_t n = length_of(documents, step, row, len);
        for (size_t i = 0; i < len; i++) {
            batch->token[row * len + i] = i < n ? from[i] : (int32_t)documents->eos;
            batch->target[row * len + i] = i + 1 < n ? from[i + 1] : (int32_t)documents->eos;
            batch->weight[row * len + i] = i + 1 < n ? 1 : 0;
        }
    }
}

/* The tokens of a sequence that can be masked: all, after a random place, the response
 * (documents.h). */
enum row_kind { ROW_WHOLE, ROW_CUT, ROW_RESPONSE };

static enum row_kind row_kind(const struct documents *documents, int64_t step, uint64_t place)
{
    double lot = rng_unit(rng_at(documents->seed, (uint64_t)step, place));
    return lot < documents->whole                    ? ROW_WHOLE
           : lot < documents->whole + documents->cut ? ROW_CUT
                                                     : ROW_RESPONSE;
}

/* out = a document as a sequence of len tokens: prompt, response, padding of EOS. Returns the first
 * token that can be masked. The last eight tokens can always be masked. `place` selects the random
 * place of ROW_CUT. */
static size_t fill_row(const struct documents *documents, size_t doc, enum row_kind kind,
                       size_t place, size_t len, int32_t *out)
{
    size_t n = documents->begin[doc + 1] - documents->begin[doc],
           first = documents->answer[doc] - documents->begin[doc];
    for (size_t i = 0; i < len; i++)
        out[i] = i < n ? documents->all.v[documents->begin[doc] + i] : (int32_t)documents->eos;
    if (kind == ROW_WHOLE)
        return 0;
    if (kind == ROW_CUT)
        first += place % (n - first);
    return first < len - 8 ? first : len - 8;
}

/* Tokens first .. end - 1 of a sequence, which are masked at random. */
struct span {
    size_t first, end;
};

/* Selects one of the whole blocks between `first` and len by the random number `lot`, or all tokens
 * from `first` on if there is no whole block. Sets last[i], the last position that token i sees.
 * Blocks are counted from `first` if config->attends_from_end is set, else from the beginning of
 * the sequence. */
static struct span choose_block(const struct config *config, size_t first, size_t len, size_t lot,
                              int32_t *last)
{
    const size_t B = config->attends_block,
                 from = config->attends_from_end ? first : first - first % B;
    const size_t n = (len - from) / B,
                 begin = from + (n ? lot % n : 0) * B;
    const size_t shift = (B - begin % B) % B;
    for (size_t i = 0; i < len; i++) {
        const int prompt = config->attends_prompt && i < from;
        const size_t end = prompt ? from : ((i + shift) / B + 1) * B - shift;
        last[i] = (int32_t)(end < len ? end : len) - 1;
    }
    return (struct span){begin > first ? begin : first, begin + B < len ? begin + B : len};
}

/* Moves targets and weights of a sequence to the token before (logit_shift). */
static void shift_row(int32_t *target, float *weight, size_t len)
{
    memmove(target, target + 1, (len - 1) * sizeof *target);
    memmove(weight, weight + 1, (len - 1) * sizeof *weight);
    weight[len - 1] = 0;
}

void documents_fill_diffusion(const struct documents *documents, const struct config *config,
                              int64_t step, size_t rows, size_t min_len, size_t max_len,
                              struct train_batch *batch)
{
    enum { LENGTH = 1 << 20, SHIFT, DOC = 1 << 21, KIND = 1 << 22, CUT = 3 << 21, MASKS = 1 << 23,
           BLOCK = 5 << 21 };
    size_t len = min_len + 8 * draw_below(documents, step, LENGTH, (max_len - min_len) / 8 + 1);
    batch->len = len;
    batch->seqs = rows / len;
    double shift = rng_unit(rng_at(documents->seed, (uint64_t)step, SHIFT));
    for (size_t row = 0; row < batch->seqs; row++) {
        int32_t *target = batch->target + row * len, *token = batch->token + row * len;
        float *weight = batch->weight + row * len;
        size_t place = draw_below(documents, step, CUT + row, SIZE_MAX);
        size_t first = fill_row(documents, draw_below(documents, step, DOC + row, documents->n),
                                row_kind(documents, step, KIND + row), place, len, target);
        struct span hide = {config->logit_shift && !first ? 1 : first, len};
        if (config->attends == MASK_BLOCK_CAUSAL)
            hide = choose_block(config, hide.first, len,
                                draw_below(documents, step, BLOCK + row, SIZE_MAX),
                                batch->last + row * len);
        double uniform = ((double)row + shift) / (double)batch->seqs,
               chance = (1 - 1e-3) * uniform * uniform + 1e-3;
        float scale = (float)(2 * uniform /
                              (chance * (double)(hide.end - hide.first) * (double)batch->seqs));
        for (size_t i = 0; i < len; i++) {
            double coin = rng_unit(rng_at(documents->seed, (uint64_t)step, MASKS + row * len + i));
            int hidden = i >= hide.first && i < hide.end && coin < chance;
            token[i] = hidden ? (int32_t)documents->mask : target[i];
            weight[i] = hidden ? scale : 0;
        }
        if (config->logit_shift)
            shift_row(target, weight, len);
    }
}
