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

void tokenizer_cutters(struct tokenizer *tokenizer)
{
    struct buf work[2] = {{0}, {0}};
    tokenizer->raw.tokens = tokenizer->normal.tokens = tokenizer->added;
    for (size_t i = 0; i < tokenizer->n_added; i++) {
        const struct added *added = &tokenizer->added[i];
        size_t n = added->len;
        const char *text = added->normalized
                               ? normalize_run(&tokenizer->normalizer, work, added->text, &n)
                               : added->text;
        cutter_add(added->normalized ? &tokenizer->normal : &tokenizer->raw, text, n, (int32_t)i);
    }
    buf_free(&work[0]);
    buf_free(&work[1]);
}

void tokenizer_free(struct tokenizer *tokenizer)
{
    if (!tokenizer)
        return;
    for (size_t i = 0; i < tokenizer->n_added; i++)
        free(tokenizer->added[i].text);
    free(tokenizer->added);
    cutter_free(&tokenizer->raw);
    cutter_free(&tokenizer->normal);
    ids_free(&tokenizer->front);
    ids_free(&tokenizer->back);
    pretokenize_free(&tokenizer->split);
    normalize_free(&tokenizer->normalizer);
    bpe_free(&tokenizer->bpe);
    buf_free(&tokenizer->pieces.bytes);
    free(tokenizer->pieces.v);
    free(tokenizer);
}

size_t tokenizer_size(const struct tokenizer *tokenizer)
{
    return tokenizer->pieces.n;
}

const struct ids *tokenizer_before(const struct tokenizer *tokenizer)
{
    return &tokenizer->front;
}

/* The state of one walk over a text. A mark is a byte for a byte of text; no special token is found
 * over a byte whose mark is 1 (tokenizer_encode_marked). */
struct walk {
    const struct tokenizer *t;
    struct cutter_plain plain;
    int at_start;     /* 1: the current part begins at the beginning of the text */
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

/* The part after the pre-tokenizer Metaspace: U+2581 in place of spaces, and perhaps one U+2581 in
 * front. */
static struct part spaced(struct walk *k, struct part part)
{
    const size_t len = strlen(TOKENIZER_SPACE);
    struct buf *text = &k->spaced;
    enum metaspace how = k->t->metaspace;
    buf_clear(text);
    int begins = part.s[0] == ' ' || (part.n >= len && !memcmp(part.s, TOKENIZER_SPACE, len));
    if (!begins && (how == METASPACE_ALWAYS || (how == METASPACE_FIRST && k->at_start)))
        buf_text(text, TOKENIZER_SPACE);
    for (size_t i = 0, end; i < part.n; i = end + 1) {
        const char *space = memchr(part.s + i, ' ', part.n - i);
        end = space ? (size_t)(space - part.s) : part.n;
        buf_put(text, part.s + i, end - i);
        if (space)
            buf_text(text, TOKENIZER_SPACE);
    }
    return (struct part){text->data, NULL, text->len};
}

static int add_words(struct walk *k, struct part part, struct err *e)
{
    if (k->t->metaspace)
        part = spaced(k, part);
    return pretokenize_run(&k->t->split, &k->split, part.s, part.n, e);
}

/* Pushes the ids of the tokens that the cutter finds, and calls between() for each part between
 * them. */
static int cut_up(struct walk *k, const struct cutter *cutter, struct part part,
                  int (*between)(struct walk *, struct part, struct err *), struct err *e)
{
    size_t done = 0;
    int at_start = k->at_start, found = 1;
    struct cut cut = {part.n, part.n, 0};
    const struct cutter_plain plain = {k->plain.all, part.marks};
    while (found) {
        found = cutter_next(cutter, part.s, part.n, done, plain, &cut);
        if (!found)
            cut.begin = cut.end = part.n;
        k->at_start = at_start && done == 0;
        if (cut.begin > done &&
            between(k,
                    (struct part){part.s + done, part.marks ? part.marks + done : NULL,
                                  cut.begin - done},
                    e))
            return -1;
        if (found)
            ids_push(k->out, cut.id);
        done = cut.end;
    }
    return 0;
}

/* The marks of the normalized part, n bytes. Each run of equally marked bytes is normalized alone,
 * and its result gets the mark of the run. If the lengths of the results do not add up to n, all n
 * bytes are marked. */
static const char *marks_after(struct walk *k, struct part part, size_t n)
{
    struct buf *text = &k->marks, work[2] = {{0}, {0}};
    buf_clear(text);
    for (size_t i = 0, end; i < part.n; i = end) {
        for (end = i + 1; end < part.n && part.marks[end] == part.marks[i];)
            end++;
        size_t len = end - i;
        normalize_run(&k->t->normalizer, work, part.s + i, &len);
        buf_reserve(text, len);
        memset(text->data + text->len, part.marks[i], len);
        text->len += len;
    }
    buf_free(&work[0]);
    buf_free(&work[1]);
    if (text->len != n) {
        buf_clear(text);
        buf_reserve(text, n);
        memset(text->data, 1, n);
    }
    return text->data;
}

static int normalize(struct walk *k, struct part part, struct err *e)
{
    struct part to = part;
    to.s = normalize_run(&k->t->normalizer, k->normal, part.s, &to.n);
    if (!k->t->normal.n || !to.n) { /* there are no added tokens to find after normalizing */
        to.marks = NULL;
        return to.n ? add_words(k, to, e) : 0;
    }
    if (to.s != part.s && part.marks)
        to.marks = marks_after(k, part, to.n);
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

int tokenizer_words(const struct tokenizer *tokenizer, const char *text, size_t n,
                    pretokenize_word *word, void *ctx, struct err *e)
{
    struct ids dropped = {0};
    struct walk k = {.t = tokenizer, .out = &dropped};
    int bad = walk(&k, text, n, word, ctx, e);
    ids_free(&dropped);
    return bad;
}

/* The first U+2581; NULL: none. This is faster than memmem() for short texts. */
static const char *find_space(const char *text, size_t n)
{
    const char *end = text + n, *at;
    for (; (at = memchr(text, TOKENIZER_SPACE[0], (size_t)(end - text))); text = at + 1)
        if (end - at > 2 && at[1] == TOKENIZER_SPACE[1] && at[2] == TOKENIZER_SPACE[2])
            return at;
    return NULL;
}

/* Length of the word that text begins with: up to the next U+2581 where `cuts` allows a cut. */
static size_t find_cut(enum tokenizer_cuts cuts, const char *text, size_t n)
{
    const size_t len = strlen(TOKENIZER_SPACE);
    size_t after = 0; /* the end of the last space */
    for (size_t i = 0; cuts != TOKENIZER_WHOLE && i < n;) {
        const char *at = find_space(text + i, n - i);
        if (!at)
            break;
        i = (size_t)(at - text);
        if (i > 0 && (cuts == TOKENIZER_SPACES || i != after))
            return i;
        i += len;
        after = i;
    }
    return n;
}

static int add_word(void *ctx, const char *text, size_t n, struct err *e)
{
    struct walk *k = ctx;
    int bad = 0;
    for (size_t len; n > 0 && !bad; text += len, n -= len) {
        len = find_cut(k->t->cuts, text, n);
        bad = bpe_word(&k->t->bpe, &k->bpe, text, len, k->out, e);
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

int tokenizer_encode(const struct tokenizer *tokenizer, const char *text, size_t n, int flags,
                     struct ids *out, struct err *e)
{
    struct walk k = {.t = tokenizer, .plain.all = (flags & ENCODE_PLAIN) != 0, .out = out};
    return encode(&k, text, n, flags, e);
}

int tokenizer_encode_marked(const struct tokenizer *tokenizer, const char *text, size_t n,
                            const char *marks, struct ids *out, struct err *e)
{
    struct walk k = {.t = tokenizer, .plain.marks = marks, .out = out};
    return encode(&k, text, n, 0, e);
}

/* ---- decoding ---- */

/* The byte that the text of a piece names: "<0x0A>". -1: it names none. */
static int byte_of(const struct tokenizer *tokenizer, const struct piece *piece)
{
    unsigned byte = 0;
    if (!tokenizer->decoder.bytes || !(piece->flags & PIECE_BYTE))
        return -1;
    for (size_t i = 3; i < 5; i++) {
        char c = tokenizer->pieces.bytes.data[piece->at + i];
        byte = byte * 16 + (unsigned)(c <= '9' ? c - '0' : (c | 32) - 'a' + 10);
    }
    return (int)byte;
}

/* Appends the text of a piece that names no byte. spaces 0: its spaces are dropped. */
static void put_piece(const struct tokenizer *tokenizer, const struct piece *piece, int spaces,
                      struct buf *out)
{
    const size_t len = strlen(TOKENIZER_SPACE);
    const char *text = tokenizer->pieces.bytes.data + piece->at, *end = text + piece->len, *at;
    while (tokenizer->decoder.spaces && (at = find_space(text, (size_t)(end - text)))) {
        buf_put(out, text, (size_t)(at - text));
        if (spaces)
            buf_char(out, ' ');
        text = at + len;
    }
    buf_put(out, text, (size_t)(end - text));
}

/* The piece of an id; NULL: decoding leaves the id out. */
static const struct piece *shown_piece(const struct tokenizer *tokenizer, int32_t id,
                                       int skip_special)
{
    if (id < 0 || (size_t)id >= tokenizer->pieces.n)
        return NULL;
    const struct piece *piece = &tokenizer->pieces.v[id];
    return skip_special && piece->flags & PIECE_SPECIAL ? NULL : piece;
}

void tokenizer_bytes(const struct tokenizer *tokenizer, const int32_t *ids, size_t n,
                     int skip_special, struct buf *out)
{
    for (size_t i = 0; i < n; i++) {
        const struct piece *piece = shown_piece(tokenizer, ids[i], skip_special);
        int byte = piece ? byte_of(tokenizer, piece) : -1;
        if (byte >= 0)
            buf_char(out, (char)byte);
        else if (piece)
            put_piece(tokenizer, piece, 1, out);
    }
}

/* Appends the bytes of a run of pieces that name bytes, as the decoder ByteFallback does: all bytes
 * if they are valid UTF-8, else U+FFFD for each byte. */
static void put_run(struct buf *run, struct buf *out)
{
    int valid = !run->len || utf8_valid(run->data, run->len) == run->len;
    for (size_t i = 0; !valid && i < run->len; i++)
        utf8_put(out, 0xFFFD);
    if (valid)
        buf_put(out, run->data, run->len);
    buf_clear(run);
}

/* Runs the decoders of SentencePiece. */
static void decode_pieces(const struct tokenizer *tokenizer, const int32_t *ids, size_t n,
                          int skip_special, struct buf *out)
{
    struct buf run = {0}, text = {0};
    int first = tokenizer->decoder.bare_first;
    for (size_t i = 0; i < n; i++) {
        const struct piece *piece = shown_piece(tokenizer, ids[i], skip_special);
        int byte = piece ? byte_of(tokenizer, piece) : -1;
        if (byte >= 0)
            buf_char(&run, (char)byte);
        if (byte < 0 && piece) {
            put_run(&run, &text);
            put_piece(tokenizer, piece, !first, &text);
        }
        first = first && !piece;
    }
    put_run(&run, &text);
    size_t strip = tokenizer->decoder.strip && text.len && text.data[0] == ' ';
    utf8_put_lossy(out, text.data ? text.data + strip : "", text.len - strip);
    buf_free(&run);
    buf_free(&text);
}

void tokenizer_decode(const struct tokenizer *tokenizer, const int32_t *ids, size_t n,
                      int skip_special, struct buf *out)
{
    if (tokenizer->bpe.by_character) {
        decode_pieces(tokenizer, ids, n, skip_special, out);
        return;
    }
    struct buf bytes = {0};
    tokenizer_bytes(tokenizer, ids, n, skip_special, &bytes);
    utf8_put_lossy(out, bytes.data, bytes.len);
    buf_free(&bytes);
}

/* Finds an added token by its text, and a piece of the vocabulary by its spelling in the file
 * ("\u0120the") or by its bytes. */
int32_t tokenizer_id(const struct tokenizer *tokenizer, const char *piece)
{
    size_t n = strlen(piece);
    for (size_t i = 0; i < tokenizer->n_added; i++)
        if (tokenizer->added[i].len == n && !memcmp(tokenizer->added[i].text, piece, n))
            return tokenizer->added[i].id;
    struct buf text = {0};
    int32_t id = -1;
    if (!tokenizer->bpe.by_character && n > 0 && utf8_valid(piece, n) == n &&
        !alphabet_bytes(piece, n, &text))
        id = bpe_find(&tokenizer->bpe, text.data, text.len);
    if (id < 0 && n > 0)
        id = bpe_find(&tokenizer->bpe, piece, n);
    buf_free(&text);
    return id;
}

int tokenizer_is_special(const struct tokenizer *tokenizer, int32_t id)
{
    return id >= 0 && (size_t)id < tokenizer->pieces.n &&
                   tokenizer->pieces.v[id].flags & PIECE_SPECIAL
               ? 1
               : 0;
}

const char *tokenizer_hash(const struct tokenizer *tokenizer)
{
    return tokenizer->hash;
}

static int same_piece(const struct tokenizer *a, const struct tokenizer *b, size_t id)
{
    const struct piece *x = &a->pieces.v[id], *y = &b->pieces.v[id];
    return !x->flags == !y->flags && x->len == y->len &&
           (x->flags & PIECE_SPECIAL) == (y->flags & PIECE_SPECIAL) &&
           !memcmp(a->pieces.bytes.data + x->at, b->pieces.bytes.data + y->at, x->len);
}

/* Writes the text of an id in quotes, at most 50 bytes; '?' for bytes that cannot be shown. */
static void show(const struct tokenizer *tokenizer, size_t id, char text[64])
{
    const struct piece *piece = &tokenizer->pieces.v[id];
    int n = snprintf(text, 64, "'%.*s'", piece->len < 50 ? (int)piece->len : 50,
                     piece->len ? tokenizer->pieces.bytes.data + piece->at : "");
    for (int i = 0; i < n; i++)
        if ((unsigned char)text[i] < ' ' || (unsigned char)text[i] > '~')
            text[i] = '?';
}

int tokenizer_differs(const struct tokenizer *one, const struct tokenizer *other,
                      char what[TOKENIZER_DIFFERS])
{
    char own[64], others[64];
    if (!strcmp(one->hash, other->hash))
        return 0;
    if (one->pieces.n != other->pieces.n)
        return snprintf(what, TOKENIZER_DIFFERS, "%zu ids, not %zu", one->pieces.n,
                        other->pieces.n) > 0;
    for (size_t id = 0; id < one->pieces.n; id++)
        if (!same_piece(one, other, id)) {
            show(one, id, own);
            show(other, id, others);
            return snprintf(what, TOKENIZER_DIFFERS, "id %zu is %s, not %s", id, own, others) > 0;
        }
    return 0;
}
