/* test-documents.c - tests batches of a denoiser (documents_fill_diffusion) with full and
 * block-causal masks: which tokens are masked, which keys each row sees, where its target is; and
 * the sum of weights, whose mean is 1. */
#include "lib/base/mem.h"
#include "lib/checkpoint/family.h"
#include "lib/train/documents.h"
#include "tests/tap.h"

enum { EOS = 1, MASK, FIRST, DOCS = 7, STEPS = 400, ROWS = 640, LEAST = 40, MOST = 72 };

/* Documents of 20 to 80 tokens. No id occurs twice. Half of each document is the response. */
static struct documents made(double whole)
{
    struct documents l = {.n = DOCS, .bos = -1, .eos = EOS, .mask = MASK, .whole = whole,
                          .cut = (1 - whole) / 2, .seed = 3};
    l.begin = mem_zero(DOCS + 1, sizeof *l.begin);
    l.answer = mem_zero(DOCS, sizeof *l.answer);
    for (size_t d = 0; d < DOCS; d++) {
        const size_t n = 20 + 10 * d;
        l.begin[d] = l.all.n;
        l.answer[d] = l.all.n + n / 2;
        for (size_t i = 0; i < n; i++)
            ids_push(&l.all, (int32_t)(FIRST + l.all.n));
        l.begin[d + 1] = l.all.n;
    }
    return l;
}

/* The document of a row: its first token, or target, belongs to only one document. */
static size_t document_of(const struct documents *l, const int32_t *token, const int32_t *target)
{
    const int32_t first = token[0] == MASK ? target[0] : token[0];
    size_t d = 0;
    while (d + 1 < l->n && (size_t)(first - FIRST) >= l->begin[d + 1])
        d++;
    return d;
}

static int32_t text_at(const struct documents *l, size_t doc, size_t i)
{
    const size_t n = l->begin[doc + 1] - l->begin[doc];
    return i < n ? l->all.v[l->begin[doc] + i] : EOS;
}

struct seen {
    int texts, targets, blocks, ascends, starts, prompt; /* 1: all rows were right */
    double weight;                               /* sum over all steps */
    size_t masked, before;                       /* masked tokens; those at positions below 8 */
};

/* Checks a row: the masked tokens are the tokens with a weight, and all are in one block; the other
 * tokens are the text. */
static void check_row(struct seen *s, const struct documents *l, const struct config *c,
                      const struct train_batch *b, size_t row)
{
    const size_t len = b->len, at = row * len, B = c->attends_block, shift = c->logit_shift > 0;
    const int32_t *token = b->token + at, *target = b->target + at, *last = b->last + at;
    const float *weight = b->weight + at;
    const size_t doc = document_of(l, token, target);
    int32_t end = -1;
    for (size_t i = 0; i < len; i++) {
        const int masked = token[i] == MASK;
        const size_t from = i - shift; /* the row that answers for position i */
        s->texts &= masked || token[i] == text_at(l, doc, i);
        s->targets &= masked ? i >= shift && weight[from] > 0 && target[from] == text_at(l, doc, i)
                             : i < shift || weight[from] == 0;
        s->masked += (size_t)masked;
        s->before += masked && i < 8;
        s->weight += weight[i];
        if (!B)
            continue;
        s->prompt &= !c->attends_prompt || i || last[0] > 8;
        s->ascends &= last[i] >= (int32_t)i && (c->attends_prompt || last[i] < (int32_t)(i + B)) &&
                      (!i || last[i] >= last[i - 1]) && last[i] < (int32_t)len;
        s->starts &= c->attends_from_end || last[i] + 1 == (int32_t)len ||
                     (last[i] + 1) % (int32_t)B == 0;
        s->blocks &= !masked || end < 0 || end == last[i];
        end = masked ? last[i] : end;
    }
    s->targets &= !shift || weight[len - 1] == 0;
}

static void fills(const struct family *f, size_t B, double whole)
{
    struct documents l = made(whole);
    struct train_batch b = train_batch_room(ROWS), again = train_batch_room(ROWS);
    struct config c = f->start;
    struct seen s = {1, 1, 1, 1, 1, 1, 0, 0, 0};
    c.attends_block = B;
    c.attends = B ? MASK_BLOCK_CAUSAL : MASK_FULL;
    for (int step = 0; step < STEPS; step++) {
        documents_fill_diffusion(&l, &c, step, ROWS, LEAST, MOST, &b);
        for (size_t row = 0; row < b.seqs; row++)
            check_row(&s, &l, &c, &b, row);
    }
    documents_fill_diffusion(&l, &c, STEPS - 1, ROWS, LEAST, MOST, &again);
    ok(s.texts && s.targets && s.masked > 1000, "%s, blocks of %zu: texts, masks and targets",
       f->name, B);
    ok(s.blocks && s.ascends && s.starts && (whole > 0 || s.prompt),
       "the masked tokens of a row are of one block");
    ok(fabs(s.weight / STEPS - 1) < 0.05, "a loss of 1 a token is %.3f", s.weight / STEPS);
    ok(whole > 0 ? s.before > 0 : s.before == 0, "%zu of %zu masks at the beginning of a row",
       s.before, s.masked);
    ok(b.len == again.len && !memcmp(b.token, again.token, b.seqs * b.len * sizeof *b.token),
       "a batch is a function of its step");
    train_batch_free(&b);
    train_batch_free(&again);
    documents_free(&l);
}

int main(void)
{
    for (int whole = 0; whole < 2; whole++) {
        fills(&llada_family, 0, whole);
        fills(&dream_family, 0, whole);
        fills(&sdar_family, 4, whole);
        fills(&a2d_qwen3_family, 32, whole);
        fills(&a2d_llama_family, 6, whole);
        fills(&fast_dllm_family, 16, whole);
        fills(&llada_family, 5, whole); /* as in D2F: the prompt is one block */
    }
    return tap_done();
}
