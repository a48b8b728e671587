/* tokenizer-vocab.c - vocabulary, added tokens and merges of tokenizer.json.
 *
 * The vocabulary and the added tokens must fill 0..largest id of the vocabulary without gap or
 * clash; larger ids are added tokens, with gaps allowed, as in published files. */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/mem.h"
#include "lib/text/tokenizer/alphabet.h"
#include "lib/text/tokenizer-load.h"

enum { ADDED_LIMIT = 4096 };

static int read_added(const struct tokenizer_load *l, const json_t *j, struct added *a)
{
    const char *text = tokenizer_text(json_object_get(j, "content"));
    const json_t *id = json_object_get(j, "id");
    size_t n = text ? strlen(text) : 0;
    if (n == 0 || n > ADDED_LIMIT)
        return tokenizer_refuse(l, "added_tokens: \"content\" that is not text of 1 to 4096 bytes",
                                j);
    if (!tokenizer_is_id(id))
        return tokenizer_bad_id(l, text, id);
    a->special = tokenizer_has(j, "special");
    a->normalized = json_object_get(j, "normalized") ? tokenizer_has(j, "normalized")
                                                     : !a->special;
    a->single_word = tokenizer_has(j, "single_word");
    a->lstrip = tokenizer_has(j, "lstrip");
    a->rstrip = tokenizer_has(j, "rstrip");
    a->text = mem_text(text);
    a->len = n;
    a->id = (int32_t)json_integer_value(id);
    if (json_object_get(l->added, a->text))
        return tokenizer_refuse(l, "added_tokens: the same \"content\" twice", j);
    json_object_set(l->added, a->text, (json_t *)id);
    return 0;
}

static int load_added(const struct tokenizer_load *l, const json_t *list)
{
    struct tokenizer *t = l->t;
    if (!list || json_is_null(list))
        return 0;
    if (!json_is_array(list))
        return tokenizer_refuse(l, "added_tokens", list);
    t->added = mem_zero(json_array_size(list), sizeof *t->added);
    for (size_t i = 0; i < json_array_size(list); i++)
        if (read_added(l, json_array_get(list, i), &t->added[t->n_added++]))
            return -1;
    return 0;
}

/* Size of the id table and of the text of all pieces; checks every id of the vocabulary. */
static int measure_pieces(const struct tokenizer_load *l, size_t *n_vocab)
{
    struct pieces *p = &l->t->pieces;
    const char *piece;
    const json_t *id;
    *n_vocab = 0;
    json_object_foreach((json_t *)l->vocab, piece, id) {
        if (!tokenizer_is_id(id))
            return tokenizer_bad_id(l, piece, id);
        if ((size_t)json_integer_value(id) >= *n_vocab)
            *n_vocab = (size_t)json_integer_value(id) + 1;
    }
    p->n = *n_vocab;
    for (size_t i = 0; i < l->t->n_added; i++)
        if ((size_t)l->t->added[i].id >= p->n)
            p->n = (size_t)l->t->added[i].id + 1;
    if (p->n == 0)
        return err_set(l->e, EXIT_BAD_DATA, "%s: model: vocab: expected pieces, got none",
                       l->path);
    p->v = mem_zero(p->n, sizeof *p->v);
    return 0;
}

/* 1: the text names a byte, as "<0x0A>". */
static int names_byte(const char *text)
{
    return strlen(text) == 6 && !memcmp(text, "<0x", 3) && isxdigit((unsigned char)text[3]) &&
           isxdigit((unsigned char)text[4]) && text[5] == '>';
}

/* Appends the bytes that a piece stands for. -1: a byte-level piece has others. */
static int put_piece(const struct tokenizer_load *l, const char *piece, struct buf *to)
{
    if (!l->by_character)
        return alphabet_bytes(piece, strlen(piece), to);
    buf_text(to, piece);
    return 0;
}

static int place_vocab(const struct tokenizer_load *l)
{
    struct pieces *p = &l->t->pieces;
    const char *piece;
    const json_t *j;
    json_object_foreach((json_t *)l->vocab, piece, j) {
        struct piece *to = &p->v[json_integer_value(j)];
        size_t at = p->bytes.len;
        if (to->flags)
            return err_set(l->e, EXIT_BAD_DATA, "%s: model: vocab: id %lld of \"%.60s\" twice",
                           l->path, (long long)json_integer_value(j), piece);
        if (!*piece)
            return err_set(l->e, EXIT_BAD_DATA, "%s: model: vocab: empty piece", l->path);
        uint8_t flags = l->by_character && names_byte(piece) ? PIECE_VOCAB | PIECE_BYTE
                                                             : PIECE_VOCAB;
        if (!put_piece(l, piece, &p->bytes))
            *to = (struct piece){(uint32_t)at, (uint32_t)(p->bytes.len - at), flags};
        else if (!json_equal(json_object_get(l->added, piece), j))
            return err_set(l->e, EXIT_BAD_DATA,
                           "%s: model: vocab: expected the byte-level alphabet, got \"%.60s\"",
                           l->path, piece);
    }
    return 0;
}

static int place_added(const struct tokenizer_load *l)
{
    struct pieces *p = &l->t->pieces;
    for (size_t i = 0; i < l->t->n_added; i++) {
        const struct added *a = &l->t->added[i];
        struct piece *to = &p->v[a->id];
        const json_t *known = json_object_get(l->vocab, a->text);
        if (known ? json_integer_value(known) != a->id || to->flags & PIECE_ADDED : to->flags)
            return err_set(l->e, EXIT_BAD_DATA,
                           "%s: added_tokens: id %d of \"%.60s\" clashes with another token",
                           l->path, (int)a->id, a->text);
        if (!to->flags) {
            to->at = (uint32_t)p->bytes.len;
            to->len = (uint32_t)a->len;
            buf_put(&p->bytes, a->text, a->len);
        }
        to->flags |= PIECE_ADDED;
        if (a->special)
            to->flags |= PIECE_SPECIAL;
    }
    return 0;
}

static int load_pieces(const struct tokenizer_load *l)
{
    size_t n_vocab;
    if (measure_pieces(l, &n_vocab) || place_vocab(l) || place_added(l))
        return -1;
    for (size_t id = 0; id < n_vocab; id++)
        if (!l->t->pieces.v[id].flags)
            return err_set(l->e, EXIT_BAD_DATA, "%s: model: vocab: no piece has id %zu of %zu",
                           l->path, id, n_vocab);
    return 0;
}

/* ---- merges ---- */

static int32_t vocab_id(const struct tokenizer_load *l, const char *piece)
{
    const json_t *id = json_object_get(l->vocab, piece);
    return id ? (int32_t)json_integer_value(id) : -1;
}

/* Writes the two parts of a merge to b, each ended by a NUL. -1: not two. */
static int merge_parts(const json_t *j, struct buf *b, const char **right)
{
    const char *text = tokenizer_text(j);
    buf_clear(b);
    if (text) {
        buf_text(b, text);
        char *space = b->len ? strchr(b->data, ' ') : NULL;
        if (!space || strchr(space + 1, ' '))
            return -1;
        *space = 0;
        *right = space + 1;
    } else {
        const char *x = tokenizer_text(json_array_get(j, 0));
        const char *y = tokenizer_text(json_array_get(j, 1));
        if (json_array_size(j) != 2 || !x || !y)
            return -1;
        buf_put(b, x, strlen(x) + 1);
        size_t at = b->len;
        buf_text(b, y);
        *right = b->data + at;
    }
    return *b->data && **right ? 0 : -1;
}

static int load_merge(const struct tokenizer_load *l, size_t i, const json_t *j, struct buf *b,
                      struct buf *both)
{
    const char *right;
    if (merge_parts(j, b, &right))
        return tokenizer_refuse(l, "model: merges: a rule that is not two pieces", j);
    buf_clear(both);
    buf_text(both, b->data);
    buf_text(both, right);
    int32_t x = vocab_id(l, b->data), y = vocab_id(l, right), z = vocab_id(l, both->data);
    if (x < 0 || y < 0 || z < 0)
        return err_set(l->e, EXIT_BAD_DATA, "%s: model: merges[%zu]: \"%.60s\" is not in the vocab",
                       l->path, i, x < 0 ? b->data : y < 0 ? right : both->data);
    if (bpe_add(&l->t->bpe, x, y, z))
        return err_set(l->e, EXIT_BAD_DATA, "%s: model: merges[%zu]: \"%.60s %.60s\" twice",
                       l->path, i, b->data, right);
    return 0;
}

static int load_merges(const struct tokenizer_load *l, const json_t *list)
{
    if (!json_is_array(list))
        return tokenizer_refuse(l, "model: merges", list);
    if (json_array_size(list) >= TOKEN_RANK_LIMIT - 1)
        return err_set(l->e, EXIT_BAD_DATA, "%s: model: merges: expected fewer than %d, got %zu",
                       l->path, TOKEN_RANK_LIMIT - 1, json_array_size(list));
    struct buf b = {0}, both = {0};
    int bad = 0;
    bpe_init(&l->t->bpe, &l->t->pieces, json_array_size(list));
    for (size_t i = 0; !bad && i < json_array_size(list); i++) {
        const json_t *j = json_array_get(list, i);
        const char *text = json_string_value(j);
        if (i > 0 || !text || strncmp(text, "#version", 8) != 0)
            bad = load_merge(l, i, j, &b, &both);
    }
    buf_free(&b);
    buf_free(&both);
    return bad;
}

/* Reads the settings for characters or bytes without a piece. */
static int load_fallback(const struct tokenizer_load *l, const json_t *model)
{
    struct bpe *b = &l->t->bpe;
    const json_t *unknown = json_object_get(model, "unk_token");
    char name[8];
    int by_bytes = l->by_character && tokenizer_has(model, "byte_fallback");
    int lacks = l->by_character;
    for (int byte = 0; byte < 256; byte++)
        lacks |= b->byte_id[byte] < 0;
    b->by_character = l->by_character;
    b->fuse = tokenizer_has(model, "fuse_unk");
    if (lacks && unknown && !json_is_null(unknown)) {
        b->unknown = tokenizer_text(unknown) ? vocab_id(l, tokenizer_text(unknown)) : -1;
        if (b->unknown < 0)
            return tokenizer_refuse(l, "model: unk_token that is not in the vocab", unknown);
    }
    for (int byte = 0; byte < 256 && by_bytes; byte++) {
        snprintf(name, sizeof name, "<0x%02X>", (unsigned)byte);
        if ((b->fallback[byte] = vocab_id(l, name)) < 0)
            return err_set(l->e, EXIT_BAD_DATA, "%s: model: byte_fallback: expected %s in the "
                           "vocab, got none", l->path, name);
    }
    return 0;
}

/* 1: text has U+2581 after another character. */
static int has_inner_space(const char *text, size_t n)
{
    const size_t len = strlen(TOKENIZER_SPACE);
    const char *end = text + n, *at, *after = text;
    for (const char *s = text; s < end && (at = memmem(s, (size_t)(end - s), TOKENIZER_SPACE, len));
         s = after = at + len)
        if (at != after)
            return 1;
    return 0;
}

/* Words may be cut before spaces where no merge crosses such a place. */
static void find_cuts(struct tokenizer *t, int ignore_merges)
{
    int safe = !ignore_merges &&
               bpe_find(&t->bpe, TOKENIZER_SPACE, strlen(TOKENIZER_SPACE)) >= 0;
    for (size_t i = 0; safe && i < t->bpe.n_merges; i++) {
        const struct piece *p = &t->pieces.v[t->bpe.merged[i]];
        safe = !has_inner_space(t->pieces.bytes.data + p->at, p->len);
    }
    t->cuts = safe ? TOKENIZER_SAFE : TOKENIZER_WHOLE;
}

int tokenizer_load_model(struct tokenizer_load *l, const json_t *model, const json_t *added)
{
    const char *type = tokenizer_type(model);
    l->vocab = json_object_get(model, "vocab");
    if (*type ? strcmp(type, "BPE") != 0 : !json_object_get(model, "merges"))
        return err_set(l->e, EXIT_BAD_DATA, "%s: model: expected type BPE, got \"%.60s\"", l->path,
                       type);
    if (!json_is_object(l->vocab))
        return tokenizer_refuse(l, "model: vocab", l->vocab);
    static const char *const foreign[] = {"dropout", "continuing_subword_prefix",
                                          "end_of_word_suffix"};
    for (size_t i = 0; i < sizeof foreign / sizeof *foreign; i++)
        if (tokenizer_has(model, foreign[i]))
            return tokenizer_refuse(l, foreign[i], json_object_get(model, foreign[i]));
    if (load_added(l, added) || load_pieces(l) ||
        load_merges(l, json_object_get(model, "merges")))
        return -1;
    if (load_fallback(l, model))
        return -1;
    bpe_finish(&l->t->bpe, l->t->pieces.v, tokenizer_has(model, "ignore_merges"));
    if (l->by_character)
        find_cuts(l->t, tokenizer_has(model, "ignore_merges"));
    return 0;
}
