/* tokenizer-load.c - tokenizer.json into a struct tokenizer.
 *
 * An unknown setting that could change ids is refused, and the message prints it. The vocabulary
 * and the added tokens must fill 0..largest id of the vocabulary without gap or clash; larger ids
 * are added tokens, with gaps allowed, as in published files. truncation and padding are not read:
 * Hugging Face sets them per call.
 *
 * One file because its functions fill one struct tokenizer from one document: merges, added tokens
 * and templates name tokens of the vocabulary. */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/file.h"
#include "lib/base/hash.h"
#include "lib/base/mem.h"
#include "lib/record/json.h"
#include "lib/text/tokenizer/alphabet.h"
#include "lib/text/tokenizer-parts.h"
#include "lib/text/tokenizer.h"

enum { ADDED_LIMIT = 4096 };

struct load {
    struct tokenizer *t;
    const char *path;
    const json_t *vocab;
    json_t *added; /* text -> id */
    struct err *e;
};

/* "path: what: not supported: {...}" */
static int refuse(const struct load *l, const char *what, const json_t *j)
{
    char *text = j ? json_dumps(j, JSON_COMPACT | JSON_ENCODE_ANY | JSON_ENSURE_ASCII) : NULL;
    err_set(l->e, EXIT_BAD_DATA, "%s: %s: not supported: %.300s", l->path, what,
            text ? text : "nothing there");
    free(text);
    return -1;
}

static int bad_id(const struct load *l, const char *piece, const json_t *id)
{
    char *got = json_dumps(id, JSON_COMPACT | JSON_ENCODE_ANY);
    err_set(l->e, EXIT_BAD_DATA, "%s: id of \"%.60s\": expected integer from 0 to %d, got %.60s",
            l->path, piece, TOKEN_ID_LIMIT - 1, got ? got : "nothing");
    free(got);
    return -1;
}

static int is_id(const json_t *j)
{
    return json_is_integer(j) && json_integer_value(j) >= 0 &&
           json_integer_value(j) < TOKEN_ID_LIMIT;
}

/* "type" of a part, "" when it has none. */
static const char *type_of(const json_t *j)
{
    const char *type = json_string_value(json_object_get(j, "type"));
    return type ? type : "";
}

/* The text; NULL: no text, or one with a NUL, where C strings would end. */
static const char *text_of(const json_t *j)
{
    const char *text = json_string_value(j);
    return text && strlen(text) == json_string_length(j) ? text : NULL;
}

/* 1: the member exists and is not null, false, 0 or "". */
static int is_set(const json_t *j, const char *key)
{
    const json_t *v = json_object_get(j, key);
    return v && !json_is_null(v) && !json_is_false(v) &&
           !(json_is_number(v) && json_number_value(v) == 0) &&
           !(json_is_string(v) && json_string_length(v) == 0);
}

/* ---- added tokens and vocabulary -> pieces ---- */

static int read_added(const struct load *l, const json_t *j, struct added *a)
{
    const char *text = text_of(json_object_get(j, "content"));
    const json_t *id = json_object_get(j, "id");
    size_t n = text ? strlen(text) : 0;
    if (n == 0 || n > ADDED_LIMIT)
        return refuse(l, "added_tokens: \"content\" that is not text of 1 to 4096 bytes", j);
    if (!is_id(id))
        return bad_id(l, text, id);
    a->special = is_set(j, "special");
    a->normalized = json_object_get(j, "normalized") ? is_set(j, "normalized") : !a->special;
    a->single_word = is_set(j, "single_word");
    a->lstrip = is_set(j, "lstrip");
    a->rstrip = is_set(j, "rstrip");
    a->text = mem_text(text);
    a->len = n;
    a->id = (int32_t)json_integer_value(id);
    if (json_object_get(l->added, a->text))
        return refuse(l, "added_tokens: the same \"content\" twice", j);
    json_object_set(l->added, a->text, (json_t *)id);
    return 0;
}

static int load_added(const struct load *l, const json_t *list)
{
    struct tokenizer *t = l->t;
    if (!list || json_is_null(list))
        return 0;
    if (!json_is_array(list))
        return refuse(l, "added_tokens", list);
    t->added = mem_zero(json_array_size(list), sizeof *t->added);
    for (size_t i = 0; i < json_array_size(list); i++)
        if (read_added(l, json_array_get(list, i), &t->added[t->n_added++]))
            return -1;
    return 0;
}

/* Size of the id table and of the text of all pieces; checks every id of the vocabulary. */
static int measure_pieces(const struct load *l, size_t *n_vocab)
{
    struct pieces *p = &l->t->pieces;
    const char *piece;
    const json_t *id;
    *n_vocab = 0;
    json_object_foreach((json_t *)l->vocab, piece, id) {
        if (!is_id(id))
            return bad_id(l, piece, id);
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

static int place_vocab(const struct load *l)
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
        if (!alphabet_bytes(piece, strlen(piece), &p->bytes))
            *to = (struct piece){(uint32_t)at, (uint32_t)(p->bytes.len - at), PIECE_VOCAB};
        else if (!json_equal(json_object_get(l->added, piece), j))
            return err_set(l->e, EXIT_BAD_DATA,
                           "%s: model: vocab: expected the byte-level alphabet, got \"%.60s\"",
                           l->path, piece);
    }
    return 0;
}

static int place_added(const struct load *l)
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

static int load_pieces(const struct load *l)
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

static int32_t vocab_id(const struct load *l, const char *piece)
{
    const json_t *id = json_object_get(l->vocab, piece);
    return id ? (int32_t)json_integer_value(id) : -1;
}

/* Writes the two parts of a merge to b, each ended by a NUL. -1: not two. */
static int merge_parts(const json_t *j, struct buf *b, const char **right)
{
    const char *text = text_of(j);
    buf_clear(b);
    if (text) {
        buf_text(b, text);
        char *space = b->len ? strchr(b->data, ' ') : NULL;
        if (!space || strchr(space + 1, ' '))
            return -1;
        *space = 0;
        *right = space + 1;
    } else {
        const char *x = text_of(json_array_get(j, 0)), *y = text_of(json_array_get(j, 1));
        if (json_array_size(j) != 2 || !x || !y)
            return -1;
        buf_put(b, x, strlen(x) + 1);
        size_t at = b->len;
        buf_text(b, y);
        *right = b->data + at;
    }
    return *b->data && **right ? 0 : -1;
}

static int load_merge(const struct load *l, size_t i, const json_t *j, struct buf *b,
                      struct buf *both)
{
    const char *right;
    if (merge_parts(j, b, &right))
        return refuse(l, "model: merges: a rule that is not two pieces", j);
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

static int load_merges(const struct load *l, const json_t *list)
{
    if (!json_is_array(list))
        return refuse(l, "model: merges", list);
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

static int load_model(struct load *l, const json_t *model, const json_t *added)
{
    const char *type = type_of(model);
    l->vocab = json_object_get(model, "vocab");
    if (*type ? strcmp(type, "BPE") != 0 : !json_object_get(model, "merges"))
        return err_set(l->e, EXIT_BAD_DATA, "%s: model: expected type BPE, got \"%.60s\"", l->path,
                       type);
    if (!json_is_object(l->vocab))
        return refuse(l, "model: vocab", l->vocab);
    static const char *const foreign[] = {"dropout", "continuing_subword_prefix",
                                          "end_of_word_suffix"};
    for (size_t i = 0; i < sizeof foreign / sizeof *foreign; i++)
        if (is_set(model, foreign[i]))
            return refuse(l, foreign[i], json_object_get(model, foreign[i]));
    if (load_added(l, added) || load_pieces(l) ||
        load_merges(l, json_object_get(model, "merges")))
        return -1;
    bpe_finish(&l->t->bpe, l->t->pieces.v, is_set(model, "ignore_merges"));
    return 0;
}

/* ---- the other parts; each may be a Sequence ---- */

static int load_normalizer(const struct load *l, const json_t *j)
{
    if (!j || json_is_null(j))
        return 0;
    const json_t *list = json_object_get(j, "normalizers");
    if (!strcmp(type_of(j), "NFC"))
        l->t->nfc = 1;
    else if (strcmp(type_of(j), "Sequence") != 0 || !json_is_array(list))
        return refuse(l, "normalizer", j);
    for (size_t i = 0; i < json_array_size(list); i++) /* NFC twice is NFC */
        if (strcmp(type_of(json_array_get(list, i)), "NFC") != 0)
            return refuse(l, "normalizer", json_array_get(list, i));
        else
            l->t->nfc = 1;
    return 0;
}

/* Reads "behavior" into *how. -1: unknown. */
static int behavior_of(const json_t *j, const char *absent, enum pretokenize_how *how)
{
    static const char *const names[] = {"Isolated", "Contiguous", "MergedWithPrevious",
                                        "MergedWithNext", "Removed"}; /* as pretokenize_how */
    const json_t *given = json_object_get(j, "behavior");
    const char *name = given ? json_string_value(given) : absent;
    for (int i = 0; name && i < (int)(sizeof names / sizeof *names); i++)
        if (!strcmp(name, names[i])) {
            *how = (enum pretokenize_how)i;
            return 0;
        }
    return -1;
}

/* "invert" swaps matches and gaps; that changes nothing when both become pieces. */
static int load_split(const struct load *l, const json_t *j)
{
    const json_t *p = json_object_get(json_object_get(j, "pattern"), "Regex");
    struct pretokenize_rule rule = {.pattern = text_of(p)};
    if (!rule.pattern || behavior_of(j, "", &rule.how))
        return refuse(l, "pre_tokenizer", j);
    if (is_set(j, "invert") && rule.how == PRETOKENIZE_REMOVED)
        rule.how = PRETOKENIZE_KEPT;
    else if (is_set(j, "invert") && rule.how > PRETOKENIZE_CONTIGUOUS)
        return refuse(l, "pre_tokenizer", j);
    return pretokenize_add(&l->t->split, rule, l->path, l->e);
}

/* last: 1: no later step reads the byte alphabet. */
static int load_byte_level(const struct load *l, const json_t *j, int last)
{
    int prefix = !json_object_get(j, "add_prefix_space") || is_set(j, "add_prefix_space");
    int pattern = !json_object_get(j, "use_regex") || is_set(j, "use_regex");
    if (!prefix && !pattern && last)
        return 0;
    struct pretokenize_rule rule = {.prefix_space = prefix, .as_bytes = !last};
    rule.pattern = pattern ? pretokenize_gpt2 : NULL;
    return pretokenize_add(&l->t->split, rule, l->path, l->e);
}

static int load_step(const struct load *l, const json_t *j, int last, int *n_byte_levels)
{
    struct pretokenize_rule rule = {.pattern = NULL};
    if (!strcmp(type_of(j), "Split"))
        return load_split(l, j);
    if (!strcmp(type_of(j), "ByteLevel") && (*n_byte_levels)++ == 0)
        return load_byte_level(l, j, last);
    if (!strcmp(type_of(j), "Digits")) {
        rule.pattern = pretokenize_digit;
        rule.how = is_set(j, "individual_digits") ? PRETOKENIZE_ISOLATED : PRETOKENIZE_CONTIGUOUS;
    } else if (!strcmp(type_of(j), "Punctuation") && !behavior_of(j, "Isolated", &rule.how)) {
        rule.pattern = pretokenize_punctuation;
    } else {
        return refuse(l, "pre_tokenizer", j);
    }
    return pretokenize_add(&l->t->split, rule, l->path, l->e);
}

static int load_pre_tokenizer(const struct load *l, const json_t *j)
{
    if (!strcmp(type_of(j), "ByteLevel"))
        return load_byte_level(l, j, 1);
    const json_t *list = json_object_get(j, "pretokenizers");
    size_t n = json_array_size(list);
    if (strcmp(type_of(j), "Sequence") != 0 || n == 0)
        return refuse(l, "pre_tokenizer", j);
    int n_byte_levels = 0;
    for (size_t i = 0; i < n; i++)
        if (load_step(l, json_array_get(list, i), i + 1 == n, &n_byte_levels))
            return -1;
    return n_byte_levels ? 0 : refuse(l, "pre_tokenizer without ByteLevel", j);
}

/* Pushes the ids of one special token of a template. */
static int template_token(const struct load *l, const json_t *special, const json_t *j,
                          struct ids *to)
{
    const char *name = json_string_value(json_object_get(json_object_get(j, "SpecialToken"), "id"));
    const json_t *ids = name ? json_object_get(json_object_get(special, name), "ids") : NULL;
    if (json_array_size(ids) == 0)
        return refuse(l, "post_processor: a template part", j);
    for (size_t i = 0; i < json_array_size(ids); i++) {
        const json_t *id = json_array_get(ids, i);
        if (!is_id(id) || (size_t)json_integer_value(id) >= l->t->pieces.n ||
            !l->t->pieces.v[json_integer_value(id)].flags)
            return bad_id(l, name, id);
        ids_push(to, (int32_t)json_integer_value(id));
    }
    return 0;
}

/* "single": ids before and after the one Sequence A. The ids of an earlier template stay inside. */
static int load_template(const struct load *l, const json_t *j)
{
    const json_t *single = json_object_get(j, "single");
    const json_t *special = json_object_get(j, "special_tokens");
    struct ids side[2] = {{0}, {0}};
    int seen = 0, bad = 0;
    for (size_t i = 0; !bad && i < json_array_size(single); i++) {
        const json_t *part = json_array_get(single, i);
        const json_t *text = json_object_get(part, "Sequence");
        const char *which = json_string_value(json_object_get(text, "id"));
        if (!text)
            bad = template_token(l, special, part, &side[seen]);
        else if (!which || strcmp(which, "A") != 0 || seen++)
            bad = refuse(l, "post_processor: a template part", part);
    }
    if (!bad && !seen)
        bad = refuse(l, "post_processor: a template without Sequence A", single);
    ids_append(&side[0], &l->t->front);
    ids_append(&l->t->back, &side[1]);
    ids_free(&l->t->front);
    ids_free(&side[1]);
    l->t->front = side[0];
    return bad;
}

/* RoBERTa's and BERT's: "cls": [text, id] in front, "sep" behind. */
static int load_pair(const struct load *l, const json_t *j)
{
    static const char *const keys[] = {"cls", "sep"};
    for (int i = 0; i < 2; i++) {
        const json_t *id = json_array_get(json_object_get(j, keys[i]), 1);
        if (!is_id(id) || (size_t)json_integer_value(id) >= l->t->pieces.n)
            return refuse(l, "post_processor", j);
        ids_push(i ? &l->t->back : &l->t->front, (int32_t)json_integer_value(id));
    }
    return 0;
}

static int load_post_processor(const struct load *l, const json_t *j)
{
    const char *type = type_of(j);
    if (!j || json_is_null(j) || !strcmp(type, "ByteLevel"))
        return 0;
    if (!strcmp(type, "RobertaProcessing") || !strcmp(type, "BertProcessing"))
        return load_pair(l, j);
    if (!strcmp(type, "TemplateProcessing"))
        return load_template(l, j);
    const json_t *list = json_object_get(j, "processors");
    if (strcmp(type, "Sequence") != 0 || !json_is_array(list))
        return refuse(l, "post_processor", j);
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *step = json_array_get(list, i);
        if (!strcmp(type_of(step), "TemplateProcessing")) {
            if (load_template(l, step))
                return -1;
        } else if (strcmp(type_of(step), "ByteLevel") != 0) {
            return refuse(l, "post_processor", step);
        }
    }
    return 0;
}

/* Its pieces are characters with U+2581 for the space, not bytes. */
static int refuse_sentencepiece(const struct load *l, const json_t *j)
{
    int fallback = is_set(json_object_get(j, "model"), "byte_fallback");
    if (!fallback && strcmp(type_of(json_object_get(j, "pre_tokenizer")), "Metaspace") != 0)
        return 0;
    return err_set(l->e, EXIT_BAD_DATA,
                   "%s: %s: a SentencePiece tokenizer, as of LLaMA 2 and TinyLlama: not supported; "
                   "expected byte-level BPE (pre_tokenizer ByteLevel), as of LLaMA 3 and SmolLM2",
                   l->path, fallback ? "model: byte_fallback" : "pre_tokenizer: Metaspace");
}

/* ByteLevel, alone or as the only member of a Sequence. */
static int load_decoder(const struct load *l, const json_t *j)
{
    const json_t *list = json_object_get(j, "decoders"), *one = j;
    if (!strcmp(type_of(j), "Sequence") && json_array_size(list) == 1)
        one = json_array_get(list, 0);
    return strcmp(type_of(one), "ByteLevel") ? refuse(l, "decoder", j) : 0;
}

static int load_all(struct load *l, const json_t *j)
{
    if (!json_is_object(json_object_get(j, "model")))
        return err_set(l->e, EXIT_BAD_DATA, "%s: expected an object with \"model\"", l->path);
    if (refuse_sentencepiece(l, j) ||
        load_model(l, json_object_get(j, "model"), json_object_get(j, "added_tokens")) ||
        load_normalizer(l, json_object_get(j, "normalizer")) ||
        load_pre_tokenizer(l, json_object_get(j, "pre_tokenizer")) ||
        load_post_processor(l, json_object_get(j, "post_processor")) ||
        load_decoder(l, json_object_get(j, "decoder")))
        return -1;
    tokenizer_cutters(l->t);
    return 0;
}

struct tokenizer *tokenizer_load(const char *folder, struct err *e)
{
    char *path = mem_format("%s/tokenizer.json", folder);
    struct buf file = {0};
    struct tokenizer *t = mem_zero(1, sizeof *t);
    json_t *j = NULL;
    int bad = file_read(path, TOKENIZER_FILE_LIMIT, &file, e);
    if (!bad) {
        hash_bytes(file.data, file.len, t->hash);
        j = json_bytes(file.data, file.len, path, e);
        buf_free(&file);
        struct load l = {.t = t, .path = path, .added = json_object(), .e = e};
        bad = !j || load_all(&l, j);
        json_decref(l.added);
    }
    buf_free(&file);
    json_decref(j);
    free(path);
    if (bad) {
        tokenizer_free(t);
        return NULL;
    }
    return t;
}
