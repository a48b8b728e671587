/* tokenizer-vocab.c - reads vocabulary, added tokens and merges of tokenizer.json.
 *
 * Every id from 0 to the largest id of the vocabulary must belong to exactly one piece or added
 * token. Larger ids are added tokens; there may be gaps between them, as in published files. */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/mem.h"
#include "lib/text/tokenizer/alphabet.h"
#include "lib/text/tokenizer-load.h"

enum { ADDED_LIMIT = 4096 };

static int read_added(const struct tokenizer_load *load, const json_t *j, struct added *added)
{
    const char *text = tokenizer_text(json_object_get(j, "content"));
    const json_t *id = json_object_get(j, "id");
    size_t n = text ? strlen(text) : 0;
    if (n == 0 || n > ADDED_LIMIT)
        return tokenizer_refuse(load,
                                "added_tokens: \"content\" that is not text of 1 to 4096 bytes", j);
    if (!tokenizer_is_id(id))
        return tokenizer_bad_id(load, text, id);
    added->special = tokenizer_has(j, "special");
    added->normalized = json_object_get(j, "normalized") ? tokenizer_has(j, "normalized")
                                                         : !added->special;
    added->single_word = tokenizer_has(j, "single_word");
    added->lstrip = tokenizer_has(j, "lstrip");
    added->rstrip = tokenizer_has(j, "rstrip");
    added->text = mem_text(text);
    added->len = n;
    added->id = (int32_t)json_integer_value(id);
    if (json_object_get(load->added, added->text))
        return tokenizer_refuse(load, "added_tokens: the same \"content\" twice", j);
    json_object_set(load->added, added->text, (json_t *)id);
    return 0;
}

static int load_added(const struct tokenizer_load *load, const json_t *list)
{
    struct tokenizer *tokenizer = load->t;
    if (!list || json_is_null(list))
        return 0;
    if (!json_is_array(list))
        return tokenizer_refuse(load, "added_tokens", list);
    tokenizer->added = mem_zero(json_array_size(list), sizeof *tokenizer->added);
    for (size_t i = 0; i < json_array_size(list); i++)
        if (read_added(load, json_array_get(list, i), &tokenizer->added[tokenizer->n_added++]))
            return -1;
    return 0;
}

/* Checks every id of the vocabulary and allocates the table of pieces. *n_vocab = largest id of the
 * vocabulary + 1. */
static int measure_pieces(const struct tokenizer_load *load, size_t *n_vocab)
{
    struct pieces *pieces = &load->t->pieces;
    const char *piece;
    const json_t *id;
    *n_vocab = 0;
    json_object_foreach((json_t *)load->vocab, piece, id) {
        if (!tokenizer_is_id(id))
            return tokenizer_bad_id(load, piece, id);
        if ((size_t)json_integer_value(id) >= *n_vocab)
            *n_vocab = (size_t)json_integer_value(id) + 1;
    }
    pieces->n = *n_vocab;
    for (size_t i = 0; i < load->t->n_added; i++)
        if ((size_t)load->t->added[i].id >= pieces->n)
            pieces->n = (size_t)load->t->added[i].id + 1;
    if (pieces->n == 0)
        return err_set(load->e, EXIT_BAD_DATA, "%s: model: vocab: expected pieces, got none",
                       load->path);
    pieces->v = mem_zero(pieces->n, sizeof *pieces->v);
    return 0;
}

/* 1: the text names a byte, like "<0x0A>". */
static int names_byte(const char *text)
{
    return strlen(text) == 6 && !memcmp(text, "<0x", 3) && isxdigit((unsigned char)text[3]) &&
           isxdigit((unsigned char)text[4]) && text[5] == '>';
}

/* Appends the bytes that a piece stands for. -1: a byte-level piece has a character that is not in
 * the byte alphabet. */
static int put_piece(const struct tokenizer_load *load, const char *piece, struct buf *to)
{
    if (!load->by_character)
        return alphabet_bytes(piece, strlen(piece), to);
    buf_text(to, piece);
    return 0;
}

static int place_vocab(const struct tokenizer_load *load)
{
    struct pieces *pieces = &load->t->pieces;
    const char *piece;
    const json_t *j;
    json_object_foreach((json_t *)load->vocab, piece, j) {
        struct piece *to = &pieces->v[json_integer_value(j)];
        size_t at = pieces->bytes.len;
        if (to->flags)
            return err_set(load->e, EXIT_BAD_DATA, "%s: model: vocab: id %lld of \"%.60s\" twice",
                           load->path, (long long)json_integer_value(j), piece);
        if (!*piece)
            return err_set(load->e, EXIT_BAD_DATA, "%s: model: vocab: empty piece", load->path);
        uint8_t flags = load->by_character && names_byte(piece) ? PIECE_VOCAB | PIECE_BYTE
                                                                : PIECE_VOCAB;
        if (!put_piece(load, piece, &pieces->bytes))
            *to = (struct piece){(uint32_t)at, (uint32_t)(pieces->bytes.len - at), flags};
        else if (!json_equal(json_object_get(load->added, piece), j))
            return err_set(load->e, EXIT_BAD_DATA,
                           "%s: model: vocab: expected the byte-level alphabet, got \"%.60s\"",
                           load->path, piece);
    }
    return 0;
}

static int place_added(const struct tokenizer_load *load)
{
    struct pieces *pieces = &load->t->pieces;
    for (size_t i = 0; i < load->t->n_added; i++) {
        const struct added *added = &load->t->added[i];
        struct piece *to = &pieces->v[added->id];
        const json_t *known = json_object_get(load->vocab, added->text);
        if (known ? json_integer_value(known) != added->id || to->flags & PIECE_ADDED : to->flags)
            return err_set(load->e, EXIT_BAD_DATA,
                           "%s: added_tokens: id %d of \"%.60s\" clashes with another token",
                           load->path, (int)added->id, added->text);
        if (!to->flags) {
            to->at = (uint32_t)pieces->bytes.len;
            to->len = (uint32_t)added->len;
            buf_put(&pieces->bytes, added->text, added->len);
        }
        to->flags |= PIECE_ADDED;
        if (added->special)
            to->flags |= PIECE_SPECIAL;
    }
    return 0;
}

static int load_pieces(const struct tokenizer_load *load)
{
    size_t n_vocab;
    if (measure_pieces(load, &n_vocab) || place_vocab(load) || place_added(load))
        return -1;
    for (size_t id = 0; id < n_vocab; id++)
        if (!load->t->pieces.v[id].flags)
            return err_set(load->e, EXIT_BAD_DATA, "%s: model: vocab: no piece has id %zu of %zu",
                           load->path, id, n_vocab);
    return 0;
}

/* ---- merges ---- */

static int32_t vocab_id(const struct tokenizer_load *load, const char *piece)
{
    const json_t *id = json_object_get(load->vocab, piece);
    return id ? (int32_t)json_integer_value(id) : -1;
}

/* Writes the two parts of a merge to buffer, each ended by a NUL; *right = the second part. -1: the
 * merge does not have two parts. */
static int merge_parts(const json_t *j, struct buf *buffer, const char **right)
{
    const char *text = tokenizer_text(j);
    buf_clear(buffer);
    if (text) {
        buf_text(buffer, text);
        char *space = buffer->len ? strchr(buffer->data, ' ') : NULL;
        if (!space || strchr(space + 1, ' '))
            return -1;
        *space = 0;
        *right = space + 1;
    } else {
        const char *first = tokenizer_text(json_array_get(j, 0));
        const char *second = tokenizer_text(json_array_get(j, 1));
        if (json_array_size(j) != 2 || !first || !second)
            return -1;
        buf_put(buffer, first, strlen(first) + 1);
        size_t at = buffer->len;
        buf_text(buffer, second);
        *right = buffer->data + at;
    }
    return *buffer->data && **right ? 0 : -1;
}

static int load_merge(const struct tokenizer_load *load, size_t i, const json_t *j,
                      struct buf *text, struct buf *both)
{
    const char *right;
    if (merge_parts(j, text, &right))
        return tokenizer_refuse(load, "model: merges: a rule that is not two pieces", j);
    buf_clear(both);
    buf_text(both, text->data);
    buf_text(both, right);
    int32_t left_id = vocab_id(load, text->data), right_id = vocab_id(load, right),
            both_id = vocab_id(load, both->data);
    if (left_id < 0 || right_id < 0 || both_id < 0)
        return err_set(load->e, EXIT_BAD_DATA,
                       "%s: model: merges[%zu]: \"%.60s\" is not in the vocab", load->path, i,
                       left_id < 0    ? text->data
                       : right_id < 0 ? right
                                      : both->data);
    if (bpe_add(&load->t->bpe, left_id, right_id, both_id))
        return err_set(load->e, EXIT_BAD_DATA, "%s: model: merges[%zu]: \"%.60s %.60s\" twice",
                       load->path, i, text->data, right);
    return 0;
}

static int load_merges(const struct tokenizer_load *load, const json_t *list)
{
    if (!json_is_array(list))
        return tokenizer_refuse(load, "model: merges", list);
    if (json_array_size(list) >= TOKEN_RANK_LIMIT - 1)
        return err_set(load->e, EXIT_BAD_DATA, "%s: model: merges: expected fewer than %d, got %zu",
                       load->path, TOKEN_RANK_LIMIT - 1, json_array_size(list));
    struct buf buffer = {0}, both = {0};
    int bad = 0;
    bpe_init(&load->t->bpe, &load->t->pieces, json_array_size(list));
    for (size_t i = 0; !bad && i < json_array_size(list); i++) {
        const json_t *j = json_array_get(list, i);
        const char *text = json_string_value(j);
        if (i > 0 || !text || strncmp(text, "#version", 8) != 0)
            bad = load_merge(load, i, j, &buffer, &both);
    }
    buf_free(&buffer);
    buf_free(&both);
    return bad;
}

/* Reads unk_token, fuse_unk and byte_fallback: what becomes of characters or bytes without a
 * piece. */
static int load_fallback(const struct tokenizer_load *load, const json_t *model)
{
    struct bpe *bpe = &load->t->bpe;
    const json_t *unknown = json_object_get(model, "unk_token");
    char name[8];
    int by_bytes = load->by_character && tokenizer_has(model, "byte_fallback");
    int lacks = load->by_character;
    for (int byte = 0; byte < 256; byte++)
        lacks |= bpe->byte_id[byte] < 0;
    bpe->by_character = load->by_character;
    bpe->fuse = tokenizer_has(model, "fuse_unk");
    if (lacks && unknown && !json_is_null(unknown)) {
        bpe->unknown = tokenizer_text(unknown) ? vocab_id(load, tokenizer_text(unknown)) : -1;
        if (bpe->unknown < 0)
            return tokenizer_refuse(load, "model: unk_token that is not in the vocab", unknown);
    }
    for (int byte = 0; byte < 256 && by_bytes; byte++) {
        snprintf(name, sizeof name, "<0x%02X>", (unsigned)byte);
        if ((bpe->fallback[byte] = vocab_id(load, name)) < 0)
            return err_set(load->e, EXIT_BAD_DATA, "%s: model: byte_fallback: expected %s in the "
                           "vocab, got none", load->path, name);
    }
    return 0;
}

/* 1: text has U+2581 after another character. */
static int has_inner_space(const char *text, size_t n)
{
    const size_t len = strlen(TOKENIZER_SPACE);
    const char *end = text + n, *at, *after = text;
    for (const char *bytes = text;
         bytes < end && (at = memmem(bytes, (size_t)(end - bytes), TOKENIZER_SPACE, len));
         bytes = after = at + len)
        if (at != after)
            return 1;
    return 0;
}

/* Sets cuts: TOKENIZER_SAFE if no merge crosses the place before a space, else TOKENIZER_WHOLE. */
static void find_cuts(struct tokenizer *tokenizer, int ignore_merges)
{
    int safe = !ignore_merges &&
               bpe_find(&tokenizer->bpe, TOKENIZER_SPACE, strlen(TOKENIZER_SPACE)) >= 0;
    for (size_t i = 0; safe && i < tokenizer->bpe.n_merges; i++) {
        const struct piece *piece = &tokenizer->pieces.v[tokenizer->bpe.merged[i]];
        safe = !has_inner_space(tokenizer->pieces.bytes.data + piece->at, piece->len);
    }
    tokenizer->cuts = safe ? TOKENIZER_SAFE : TOKENIZER_WHOLE;
}

int tokenizer_load_model(struct tokenizer_load *load, const json_t *model, const json_t *added)
{
    const char *type = tokenizer_type(model);
    load->vocab = json_object_get(model, "vocab");
    if (*type ? strcmp(type, "BPE") != 0 : !json_object_get(model, "merges"))
        return err_set(load->e, EXIT_BAD_DATA, "%s: model: expected type BPE, got \"%.60s\"",
                       load->path, type);
    if (!json_is_object(load->vocab))
        return tokenizer_refuse(load, "model: vocab", load->vocab);
    static const char *const foreign[] = {"dropout", "continuing_subword_prefix",
                                          "end_of_word_suffix"};
    for (size_t i = 0; i < sizeof foreign / sizeof *foreign; i++)
        if (tokenizer_has(model, foreign[i]))
            return tokenizer_refuse(load, foreign[i], json_object_get(model, foreign[i]));
    if (load_added(load, added) || load_pieces(load) ||
        load_merges(load, json_object_get(model, "merges")))
        return -1;
    if (load_fallback(load, model))
        return -1;
    bpe_finish(&load->t->bpe, load->t->pieces.v, tokenizer_has(model, "ignore_merges"));
    if (load->by_character)
        find_cuts(load->t, tokenizer_has(model, "ignore_merges"));
    return 0;
}
