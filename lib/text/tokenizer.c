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
#include "lib/text/tokenizer-parts.h"
#include "lib/text/utf8.h"

void tokenizer_cutters(struct tokenizer *t)
{
    struct buf work[2] = {{0}, {0}};
    t->raw.tokens = t->normal.tokens = t->added;
    for (size_t i = 0; i < t->n_added; i++) {
        const struct added *a = &t->added[i];
        size_t n = a->len;
        const char *text = a->normalized ? normalize_run(&t->normalizer, work, a->text, &n)
                                         : a->text;
        cutter_add(a->normalized ? &t->normal : &t->raw, text, n, (int32_t)i);
    }
    buf_free(&work[0]);
    buf_free(&work[1]);
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
    normalize_free(&t->normalizer);
    bpe_free(&t->bpe);
    buf_free(&t->pieces.bytes);
    free(t->pieces.v);
    free(t);
}

size_t tokenizer_size(const struct tokenizer *t)
{
    return t->pieces.n;
}

const struct ids *tokenizer_before(const struct tokenizer *t)
{
    return &t->front;
}

/* One walk over a text. Marks are a byte for each byte of text; no special token is found over a
 * byte whose mark is 1 (tokenizer_encode_marked). */
struct walk {
    const struct tokenizer *t;
    struct cutter_plain plain;
    const char *text; /* all of it */
    int at_start;     /* 1: the part at hand begins where the text does */
    struct ids *out;
    struct pretokenize_work split;
    struct bpe_work bpe;
    struct buf normal[2], marks, spaced;
};

/* A part of a text between added tokens, and its marks or NULL. */
struct part {
    const char *s, *marks;
    size_t n;
};

/* The part as Metaspace leaves it: U+2581 for spaces, perhaps one in front. */
static struct part spaced(struct walk *k, struct part x)
{
    const size_t len = strlen(TOKENIZER_SPACE);
    struct buf *b = &k->spaced;
    enum metaspace how = k->t->metaspace;
    buf_clear(b);
    int begins = x.s[0] == ' ' || (x.n >= len && !memcmp(x.s, TOKENIZER_SPACE, len));
    if (!begins && (how == METASPACE_ALWAYS || (how == METASPACE_FIRST && k->at_start)))
        buf_text(b, TOKENIZER_SPACE);
    for (size_t i = 0, end; i < x.n; i = end + 1) {
        const char *space = memchr(x.s + i, ' ', x.n - i);
        end = space ? (size_t)(space - x.s) : x.n;
        buf_put(b, x.s + i, end - i);
        if (space)
            buf_text(b, TOKENIZER_SPACE);
    }
    return (struct part){b->data, NULL, b->len};
}

static int add_words(struct walk *k, struct part x, struct err *e)
{
    if (k->t->metaspace)
        x = spaced(k, x);
    return pretokenize_run(&k->t->split, &k->split, x.s, x.n, e);
}

/* Pushes the tokens that c finds; between() gets the rest. */
static int cut_up(struct walk *k, const struct cutter *c, struct part x,
                  int (*between)(struct walk *, struct part, struct err *), struct err *e)
{
    size_t done = 0;
    int at_start = k->at_start, found = 1;
    struct cut m = {x.n, x.n, 0};
    const struct cutter_plain plain = {k->plain.all, x.marks};
    while (found) {
        found = cutter_next(c, x.s, x.n, done, plain, &m);
        if (!found)
            m.begin = m.end = x.n;
        k->at_start = at_start && done == 0;
        if (m.begin > done &&
            between(k, (struct part){x.s + done, x.marks ? x.marks + done : NULL, m.begin - done},
                    e))
            return -1;
        if (found)
            ids_push(k->out, m.id);
        done = m.end;
    }
    return 0;
}

/* The marks of the normalized part, n bytes: each run of equally marked bytes is normalized alone,
 * and its result gets the same mark. If the lengths do not add up to n, all bytes are marked. */
static const char *marks_after(struct walk *k, struct part x, size_t n)
{
    struct buf *b = &k->marks, work[2] = {{0}, {0}};
    buf_clear(b);
    for (size_t i = 0, end; i < x.n; i = end) {
        for (end = i + 1; end < x.n && x.marks[end] == x.marks[i];)
            end++;
        size_t len = end - i;
        normalize_run(&k->t->normalizer, work, x.s + i, &len);
        buf_reserve(b, len);
        memset(b->data + b->len, x.marks[i], len);
        b->len += len;
    }
    buf_free(&work[0]);
    buf_free(&work[1]);
    if (b->len != n) {
        buf_clear(b);
        buf_reserve(b, n);
        memset(b->data, 1, n);
    }
    return b->data;
}

static int normalize(struct walk *k, struct part x, struct err *e)
{
    struct part to = x;
    to.s = normalize_run(&k->t->normalizer, k->normal, x.s, &to.n);
    if (!k->t->normal.n || !to.n) { /* no tokens to look for */
        to.marks = NULL;
        return to.n ? add_words(k, to, e) : 0;
    }
    if (to.s != x.s && x.marks)
        to.marks = marks_after(k, x, to.n);
    return cut_up(k, &k->t->normal, to, add_words, e);
}

static int walk(struct walk *k, const char *text, size_t n, pretokenize_word *word, void *ctx,
                struct err *e)
{
    size_t good = n ? utf8_valid(text, n) : 0;
    if (good < n)
        return err_set(e, EXIT_BAD_DATA, "text: byte %zu: expected UTF-8, got 0x%02X", good,
                       (unsigned char)text[good]);
    pretokenize_work_init(&k->split, word, ctx);
    k->at_start = 1;
    int bad = n ? cut_up(k, &k->t->raw, (struct part){text, k->plain.marks, n}, normalize, e) : 0;
    pretokenize_work_free(&k->split);
    bpe_work_free(&k->bpe);
    buf_free(&k->normal[0]);
    buf_free(&k->normal[1]);
    buf_free(&k->marks);
    buf_free(&k->spaced);
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

/* The first U+2581; NULL: none. Faster than memmem for the short parts of a text. */
static const char *find_space(const char *s, size_t n)
{
    const char *end = s + n, *at;
    for (; (at = memchr(s, TOKENIZER_SPACE[0], (size_t)(end - s))); s = at + 1)
        if (end - at > 2 && at[1] == TOKENIZER_SPACE[1] && at[2] == TOKENIZER_SPACE[2])
            return at;
    return NULL;
}

/* Length of the word at s up to its next cut, at U+2581 as `cuts` says. */
static size_t find_cut(enum tokenizer_cuts cuts, const char *s, size_t n)
{
    const size_t len = strlen(TOKENIZER_SPACE);
    size_t after = 0; /* the end of the last space */
    for (size_t i = 0; cuts != TOKENIZER_WHOLE && i < n;) {
        const char *at = find_space(s + i, n - i);
        if (!at)
            break;
        i = (size_t)(at - s);
        if (i > 0 && (cuts == TOKENIZER_SPACES || i != after))
            return i;
        i += len;
        after = i;
    }
    return n;
}

static int add_word(void *ctx, const char *s, size_t n, struct err *e)
{
    struct walk *k = ctx;
    int bad = 0;
    for (size_t len; n > 0 && !bad; s += len, n -= len) {
        len = find_cut(k->t->cuts, s, n);
        bad = bpe_word(&k->t->bpe, &k->bpe, s, len, k->out, e);
    }
    return bad;
}

static int encode(struct walk *k, const char *text, size_t n, int flags, struct err *e)
{
    size_t before = k->out->n;
    if (flags & ENCODE_SPECIAL)
        ids_append(k->out, &k->t->front);
    if (walk(k, text, n, add_word, k, e)) {
        k->out->n = before;
        return -1;
    }
    if (flags & ENCODE_SPECIAL)
        ids_append(k->out, &k->t->back);
    return 0;
}

int tokenizer_encode(const struct tokenizer *t, const char *text, size_t n, int flags,
                     struct ids *out, struct err *e)
{
    struct walk k = {.t = t, .plain.all = (flags & ENCODE_PLAIN) != 0, .out = out};
    return encode(&k, text, n, flags, e);
}

int tokenizer_encode_marked(const struct tokenizer *t, const char *text, size_t n,
                            const char *marks, struct ids *out, struct err *e)
{
    struct walk k = {.t = t, .plain.marks = marks, .out = out};
    return encode(&k, text, n, 0, e);
}

/* ---- decoding ---- */

/* The byte that the text of a piece names: "<0x0A>". -1: it names none. */
static int byte_of(const struct tokenizer *t, const struct piece *p)
{
    unsigned byte = 0;
    if (!t->decoder.bytes || !(p->flags & PIECE_BYTE))
        return -1;
    for (size_t i = 3; i < 5; i++) {
        char c = t->pieces.bytes.data[p->at + i];
        byte = byte * 16 + (unsigned)(c <= '9' ? c - '0' : (c | 32) - 'a' + 10);
    }
    return (int)byte;
}

/* Appends the text of a piece that names no byte. spaces: 0: they are dropped. */
static void put_piece(const struct tokenizer *t, const struct piece *p, int spaces,
                      struct buf *out)
{
    const size_t len = strlen(TOKENIZER_SPACE);
    const char *s = t->pieces.bytes.data + p->at, *end = s + p->len, *at;
    while (t->decoder.spaces && (at = find_space(s, (size_t)(end - s)))) {
        buf_put(out, s, (size_t)(at - s));
        if (spaces)
            buf_char(out, ' ');
        s = at + len;
    }
    buf_put(out, s, (size_t)(end - s));
}

/* The piece of an id; NULL: decoding leaves the id out. */
static const struct piece *shown_piece(const struct tokenizer *t, int32_t id, int skip_special)
{
    if (id < 0 || (size_t)id >= t->pieces.n)
        return NULL;
    const struct piece *p = &t->pieces.v[id];
    return skip_special && p->flags & PIECE_SPECIAL ? NULL : p;
}

void tokenizer_bytes(const struct tokenizer *t, const int32_t *ids, size_t n, int skip_special,
                     struct buf *out)
{
    for (size_t i = 0; i < n; i++) {
        const struct piece *p = shown_piece(t, ids[i], skip_special);
        int byte = p ? byte_of(t, p) : -1;
        if (byte >= 0)
            buf_char(out, (char)byte);
        else if (p)
            put_piece(t, p, 1, out);
    }
}

/* Appends the bytes of pieces that name bytes, as the decoder ByteFallback does: all of them, or
 * U+FFFD for each when they are not valid UTF-8. */
static void put_run(struct buf *run, struct buf *out)
{
    int valid = !run->len || utf8_valid(run->data, run->len) == run->len;
    for (size_t i = 0; !valid && i < run->len; i++)
        utf8_put(out, 0xFFFD);
    if (valid)
        buf_put(out, run->data, run->len);
    buf_clear(run);
}

/* The decoders of SentencePiece. */
static void decode_pieces(const struct tokenizer *t, const int32_t *ids, size_t n,
                          int skip_special, struct buf *out)
{
    struct buf run = {0}, text = {0};
    int first = t->decoder.bare_first;
    for (size_t i = 0; i < n; i++) {
        const struct piece *p = shown_piece(t, ids[i], skip_special);
        int byte = p ? byte_of(t, p) : -1;
        if (byte >= 0)
            buf_char(&run, (char)byte);
        if (byte < 0 && p) {
            put_run(&run, &text);
            put_piece(t, p, !first, &text);
        }
        first = first && !p;
    }
    put_run(&run, &text);
    size_t strip = t->decoder.strip && text.len && text.data[0] == ' ';
    utf8_put_lossy(out, text.data ? text.data + strip : "", text.len - strip);
    buf_free(&run);
    buf_free(&text);
}

void tokenizer_decode(const struct tokenizer *t, const int32_t *ids, size_t n, int skip_special,
                      struct buf *out)
{
    if (t->bpe.by_character) {
        decode_pieces(t, ids, n, skip_special, out);
        return;
    }
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
    if (!t->bpe.by_character && n > 0 && utf8_valid(piece, n) == n && !alphabet_bytes(piece, n, &b))
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
