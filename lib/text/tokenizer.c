/* tokenizer.c - encoding and decoding; see tokenizer.h.
 *
 * The order is Hugging Face's: cut tokens with normalized=false out of the raw text; normalize the
 * rest and cut tokens with normalized=true out of it; split the rest into words; merge each word
 * into ids. A tokenizer does not change after loading, so any number of threads may use it. */
#include "lib/text/tokenizer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/text/tokenizer/alphabet.h"
#include "lib/text/tokenizer/nfc.h"
#include "lib/text/tokenizer-parts.h"
#include "lib/text/utf8.h"

void tokenizer_cutters(struct tokenizer *t)
{
    struct buf b = {0};
    t->raw.tokens = t->normal.tokens = t->added;
    for (size_t i = 0; i < t->n_added; i++) {
        const struct added *a = &t->added[i];
        buf_clear(&b);
        if (a->normalized && t->nfc)
            nfc_put(a->text, a->len, &b);
        else
            buf_put(&b, a->text, a->len);
        cutter_add(a->normalized ? &t->normal : &t->raw, b.data, b.len, (int32_t)i);
    }
    buf_free(&b);
}

void tokenizer_free(struct tokenizer *t)
{
    if (!t)
        return;
    for (size_t i = 0; i < t->n_added; i++)
        free(t->added[i].text);
    free(t->added);
    cutter_free(&t->raw);
    cutter_free(&t->normal);
    ids_free(&t->front);
    ids_free(&t->back);
    pretokenize_free(&t->split);
    bpe_free(&t->bpe);
    buf_free(&t->pieces.bytes);
    free(t->pieces.v);
    free(t);
}

size_t tokenizer_size(const struct tokenizer *t)
{
    return t->pieces.n;
}

/* One walk over a text. */
struct walk {
    const struct tokenizer *t;
    int plain;
    struct ids *out;
    struct pretokenize_work split;
    struct bpe_work bpe;
    struct buf normal;
};

static int add_words(struct walk *k, const char *s, size_t n, struct err *e)
{
    return pretokenize_run(&k->t->split, &k->split, s, n, e);
}

/* Pushes the tokens that c finds; between() gets the rest. */
static int cut_up(struct walk *k, const struct cutter *c, const char *s, size_t n,
                  int (*between)(struct walk *, const char *, size_t, struct err *),
                  struct err *e)
{
    size_t done = 0;
    struct cut m;
    while (cutter_next(c, s, n, done, k->plain, &m)) {
        if (m.begin > done && between(k, s + done, m.begin - done, e))
            return -1;
        ids_push(k->out, m.id);
        done = m.end;
    }
    return n > done ? between(k, s + done, n - done, e) : 0;
}

static int normalize(struct walk *k, const char *s, size_t n, struct err *e)
{
    if (k->t->nfc && nfc_may_change(s, n)) {
        buf_clear(&k->normal);
        nfc_put(s, n, &k->normal);
        s = k->normal.data;
        n = k->normal.len;
    }
    return cut_up(k, &k->t->normal, s, n, add_words, e);
}

static int walk(struct walk *k, const char *text, size_t n, pretokenize_word *word, void *ctx,
                struct err *e)
{
    size_t good = n ? utf8_valid(text, n) : 0;
    if (good < n)
        return err_set(e, EXIT_BAD_DATA, "text: byte %zu: expected UTF-8, got 0x%02X", good,
                       (unsigned char)text[good]);
    pretokenize_work_init(&k->split, word, ctx);
    int bad = n ? cut_up(k, &k->t->raw, text, n, normalize, e) : 0;
    pretokenize_work_free(&k->split);
    bpe_work_free(&k->bpe);
    buf_free(&k->normal);
    return bad;
}

int tokenizer_words(const struct tokenizer *t, const char *text, size_t n, pretokenize_word *word,
                    void *ctx, struct err *e)
{
    struct ids dropped = {0};
    struct walk k = {.t = t, .out = &dropped};
    int bad = walk(&k, text, n, word, ctx, e);
    ids_free(&dropped);
    return bad;
}

static int add_word(void *ctx, const char *s, size_t n, struct err *e)
{
    struct walk *k = ctx;
    return bpe_word(&k->t->bpe, &k->bpe, s, n, k->out, e);
}

int tokenizer_encode(const struct tokenizer *t, const char *text, size_t n, int flags,
                     struct ids *out, struct err *e)
{
    size_t before = out->n;
    struct walk k = {.t = t, .plain = (flags & ENCODE_PLAIN) != 0, .out = out};
    if (flags & ENCODE_SPECIAL)
        ids_append(out, &t->front);
    if (walk(&k, text, n, add_word, &k, e)) {
        out->n = before;
        return -1;
    }
    if (flags & ENCODE_SPECIAL)
        ids_append(out, &t->back);
    return 0;
}

void tokenizer_bytes(const struct tokenizer *t, const int32_t *ids, size_t n, int skip_special,
                     struct buf *out)
{
    for (size_t i = 0; i < n; i++) {
        if (ids[i] < 0 || (size_t)ids[i] >= t->pieces.n)
            continue;
        const struct piece *p = &t->pieces.v[ids[i]];
        if (!(skip_special && p->flags & PIECE_SPECIAL))
            buf_put(out, t->pieces.bytes.data + p->at, p->len);
    }
}

void tokenizer_decode(const struct tokenizer *t, const int32_t *ids, size_t n, int skip_special,
                      struct buf *out)
{
    struct buf bytes = {0};
    tokenizer_bytes(t, ids, n, skip_special, &bytes);
    utf8_put_lossy(out, bytes.data, bytes.len);
    buf_free(&bytes);
}

/* Added tokens by their text; vocabulary by the file's spelling ("\u0120the") or by plain bytes. */
int32_t tokenizer_id(const struct tokenizer *t, const char *piece)
{
    size_t n = strlen(piece);
    for (size_t i = 0; i < t->n_added; i++)
        if (t->added[i].len == n && !memcmp(t->added[i].text, piece, n))
            return t->added[i].id;
    struct buf b = {0};
    int32_t id = -1;
    if (n > 0 && utf8_valid(piece, n) == n && !alphabet_bytes(piece, n, &b))
        id = bpe_find(&t->bpe, b.data, b.len);
    if (id < 0 && n > 0)
        id = bpe_find(&t->bpe, piece, n);
    buf_free(&b);
    return id;
}

int tokenizer_is_special(const struct tokenizer *t, int32_t id)
{
    return id >= 0 && (size_t)id < t->pieces.n && t->pieces.v[id].flags & PIECE_SPECIAL ? 1 : 0;
}

const char *tokenizer_hash(const struct tokenizer *t)
{
    return t->hash;
}

static int same_piece(const struct tokenizer *a, const struct tokenizer *b, size_t id)
{
    const struct piece *x = &a->pieces.v[id], *y = &b->pieces.v[id];
    return !x->flags == !y->flags && x->len == y->len &&
           (x->flags & PIECE_SPECIAL) == (y->flags & PIECE_SPECIAL) &&
           !memcmp(a->pieces.bytes.data + x->at, b->pieces.bytes.data + y->at, x->len);
}

/* "'word'" as far as it can be shown. */
static void show(const struct tokenizer *t, size_t id, char text[64])
{
    const struct piece *p = &t->pieces.v[id];
    int n = snprintf(text, 64, "'%.*s'", p->len < 50 ? (int)p->len : 50,
                     p->len ? t->pieces.bytes.data + p->at : "");
    for (int i = 0; i < n; i++)
        if ((unsigned char)text[i] < ' ' || (unsigned char)text[i] > '~')
            text[i] = '?';
}

int tokenizer_differs(const struct tokenizer *a, const struct tokenizer *b,
                      char what[TOKENIZER_DIFFERS])
{
    char x[64], y[64];
    if (!strcmp(a->hash, b->hash))
        return 0;
    if (a->pieces.n != b->pieces.n)
        return snprintf(what, TOKENIZER_DIFFERS, "%zu ids, not %zu", a->pieces.n, b->pieces.n) > 0;
    for (size_t id = 0; id < a->pieces.n; id++)
        if (!same_piece(a, b, id)) {
            show(a, id, x);
            show(b, id, y);
            return snprintf(what, TOKENIZER_DIFFERS, "id %zu is %s, not %s", id, x, y) > 0;
        }
    return 0;
}
