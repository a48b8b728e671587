/* tokenizer-gguf.c - makes a tokenizer.json from the tokenizer in the keys of a GGUF file.
 *
 * Model gpt2: byte-level merges; the key tokenizer.ggml.pre names how words are cut. Model llama:
 * SentencePiece, which has scores of pieces instead of merges. Each way to cut a piece into two
 * pieces is a merge, and the merge with the best score of its result comes first, as in
 * convert_slow_tokenizer.py of github.com/huggingface/transformers. Source of the names:
 * src/llama-vocab.cpp of github.com/ggml-org/llama.cpp. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/mem.h"
#include "lib/text/tokenizer-parts.h"
#include "lib/text/tokenizer.h"
#include "lib/text/tokenizer/pretokenize.h"

#define KEY "tokenizer.ggml."
enum { TYPE_NORMAL = 1, TYPE_UNKNOWN, TYPE_CONTROL, TYPE_USER, TYPE_UNUSED,
       PIECE_MOST = 256 /* longer pieces, in bytes, get no merges: this limits the work */ };

struct keys {
    const json_t *all, *tokens, *types;
    size_t n; /* tokens without the unused ones at the end */
    const char *path;
    struct err *e;
};

#define WORDS "[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|"
#define REST "| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"
#define ENDINGS "(?i:'s|'t|'re|'ve|'m|'ll|'d)|"
/* Ways to cut words, by the name in tokenizer.ggml.pre. pattern NULL: the pattern of ByteLevel.
 * digits: each digit is a word. nfc: the text is normalized. whole: ignore_merges. bos: default of
 * add_bos_token. */
static const struct way {
    const char *name, *pattern;
    int digits, nfc, whole, bos;
} ways[] = {
    {"gpt-2", NULL, 0, 0, 0, 0},
    {"smollm", NULL, 1, 0, 0, 0},
    {"llama-bpe", ENDINGS WORDS "\\p{N}{1,3}" REST, 0, 0, 1, 1},
    {"qwen2", ENDINGS WORDS "\\p{N}" REST, 0, 1, 0, 0},
    {"bailingmoe", pretokenize_llada, 0, 1, 0, 0},
    {"llada-moe", pretokenize_llada, 0, 1, 0, 0},
};

static const json_t *key(const struct keys *k, const char *name)
{
    char full[64];
    snprintf(full, sizeof full, KEY "%s", name);
    return json_object_get(k->all, full);
}

/* The value of a boolean key; `otherwise` if the key is absent. */
static int flag(const struct keys *k, const char *name, int otherwise)
{
    const json_t *value = key(k, name);
    return json_is_boolean(value) ? json_is_true(value) : otherwise;
}

/* Sets *id to the value of key `name`, or to -1 if that is no integer. Returns the text of token
 * *id, or NULL if there is none. */
static const char *token_of(const struct keys *k, const char *name, json_int_t *id)
{
    const json_t *value = key(k, name);
    *id = json_is_integer(value) ? json_integer_value(value) : -1;
    return *id < 0 ? NULL : json_string_value(json_array_get(k->tokens, (size_t)*id));
}

static int type_of(const struct keys *k, size_t i)
{
    return k->types ? (int)json_integer_value(json_array_get(k->types, i)) : TYPE_NORMAL;
}

/* An object of pieces and their ids. Appends to `added` the tokens that are cut out of a text
 * before the text is split. NULL: the tokens are refused. */
static json_t *vocab_of(const struct keys *k, json_t *added)
{
    json_t *vocab = json_object();
    for (size_t i = 0; i < k->n; i++) {
        const json_t *token = json_array_get(k->tokens, i);
        const char *text = json_string_value(token);
        const int type = type_of(k, i);
        if (!text || strlen(text) != json_string_length(token) ||
            json_object_set_new(vocab, text, json_integer((json_int_t)i)) ||
            json_object_size(vocab) <= i) {
            err_set(k->e, EXIT_BAD_DATA, "%s: " KEY "tokens[%zu]: expected a text that no other "
                    "token has, got %.60s", k->path, i, text ? text : "none");
            json_decref(vocab);
            return NULL;
        }
        if (type >= TYPE_UNKNOWN && type <= TYPE_USER)
            json_array_append_new(added, json_pack("{s:I,s:s,s:b,s:b,s:b,s:b,s:b}", "id",
                                                   (json_int_t)i, "content", text, "single_word", 0,
                                                   "lstrip", 0, "rstrip", 0, "normalized", 0,
                                                   "special", type != TYPE_USER));
    }
    return vocab;
}

/* ---- SentencePiece ---- */

struct merge {
    double score;
    size_t piece, left, right; /* ids */
};

static int by_score(const void *a, const void *b)
{
    const struct merge *x = a, *y = b;
    if (x->score != y->score)
        return x->score > y->score ? -1 : 1;
    if (x->piece != y->piece)
        return x->piece < y->piece ? -1 : 1;
    if (x->left != y->left)
        return x->left < y->left ? -1 : 1;
    return (x->right > y->right) - (x->right < y->right);
}

/* The merges of SentencePiece, ordered by score. Stops at TOKEN_RANK_LIMIT merges, because the
 * loader refuses more. */
static json_t *merges_by_score(const struct keys *k, const json_t *vocab)
{
    const json_t *scores = key(k, "scores");
    struct merge *list = NULL;
    size_t n = 0, cap = 0;
    for (size_t i = 0; i < k->n && n < TOKEN_RANK_LIMIT; i++) {
        char *text = mem_text(json_string_value(json_array_get(k->tokens, i)));
        if (strlen(text) > PIECE_MOST)
            *text = 0;
        for (char *at = text; *at && *++at;) {
            const char kept = *at;
            if (((unsigned char)kept & 0xc0) == 0x80)
                continue; /* not the first byte of a character */
            const json_t *right = json_object_get(vocab, at);
            *at = 0;
            const json_t *left = right ? json_object_get(vocab, text) : NULL;
            *at = kept;
            if (!left)
                continue;
            MEM_GROW(list, n, cap);
            list[n++] = (struct merge){json_number_value(json_array_get(scores, i)), i,
                                       (size_t)json_integer_value(left),
                                       (size_t)json_integer_value(right)};
        }
        free(text);
    }
    if (n)
        qsort(list, n, sizeof *list, by_score);
    json_t *merges = json_array();
    for (size_t i = 0; i < n; i++)
        json_array_append_new(merges, json_pack("[O,O]", json_array_get(k->tokens, list[i].left),
                                                json_array_get(k->tokens, list[i].right)));
    free(list);
    return merges;
}

static json_t *replace(const char *from, const char *to)
{
    return json_pack("{s:s,s:{s:s},s:s}", "type", "Replace", "pattern", "String", from, "content",
                     to);
}

static json_t *sentence_pieces(const struct keys *k, json_t *vocab, json_t *added)
{
    const int spaced = flag(k, "add_space_prefix", 1);
    json_int_t bos, unknown;
    const char *start = token_of(k, "bos_token_id", &bos);
    const char *none = token_of(k, "unknown_token_id", &unknown);
    json_t *normalizer = json_pack("{s:s,s:[o]}", "type", "Sequence", "normalizers",
                                   replace(" ", TOKENIZER_SPACE));
    json_t *decoder = json_pack("{s:s,s:[o,{s:s},{s:s}]}", "type", "Sequence", "decoders",
                                replace(TOKENIZER_SPACE, " "), "type", "ByteFallback", "type",
                                "Fuse");
    if (spaced) {
        json_array_insert_new(json_object_get(normalizer, "normalizers"), 0,
                              json_pack("{s:s,s:s}", "type", "Prepend", "prepend",
                                        TOKENIZER_SPACE));
        json_array_append_new(json_object_get(decoder, "decoders"),
                              json_pack("{s:s,s:s,s:i,s:i}", "type", "Strip", "content", " ",
                                        "start", 1, "stop", 0));
    }
    return json_pack("{s:O,s:o,s:n,s:o*,s:o,s:{s:s,s:b,s:b,s:s*,s:O,s:o}}", "added_tokens", added,
                     "normalizer", normalizer, "pre_tokenizer", "post_processor",
                     flag(k, "add_bos_token", 1) && start ? tokenizer_template(start, bos) : NULL,
                     "decoder", decoder, "model", "type", "BPE", "byte_fallback", 1, "fuse_unk", 1,
                     "unk_token", none, "vocab", vocab, "merges", merges_by_score(k, vocab));
}

/* ---- byte-level ---- */

static json_t *byte_level(const struct keys *k, const struct way *way, json_t *vocab, json_t *added)
{
    json_int_t bos;
    const char *start = token_of(k, "bos_token_id", &bos);
    json_t *steps = json_array();
    if (way->digits)
        json_array_append_new(steps, json_pack("{s:s,s:b}", "type", "Digits", "individual_digits",
                                               1));
    if (way->pattern)
        json_array_append_new(steps, json_pack("{s:s,s:{s:s},s:s,s:b}", "type", "Split", "pattern",
                                               "Regex", way->pattern, "behavior", "Isolated",
                                               "invert", 0));
    json_array_append_new(steps, json_pack("{s:s,s:b,s:b,s:b}", "type", "ByteLevel",
                                           "add_prefix_space", 0, "trim_offsets", 1, "use_regex",
                                           !way->pattern));
    return json_pack("{s:O,s:o*,s:{s:s,s:o},s:o,s:o,s:{s:s,s:b,s:O,s:O}}", "added_tokens", added,
                     "normalizer", way->nfc ? json_pack("{s:s}", "type", "NFC") : NULL,
                     "pre_tokenizer", "type", "Sequence", "pretokenizers", steps, "post_processor",
                     tokenizer_template(flag(k, "add_bos_token", way->bos) ? start : NULL, bos),
                     "decoder", tokenizer_byte_level(), "model", "type", "BPE", "ignore_merges",
                     way->whole, "vocab", vocab, "merges", key(k, "merges"));
}

static const struct way *find_way(const struct keys *k)
{
    const char *name = json_string_value(key(k, "pre"));
    for (size_t i = 0; name && i < sizeof ways / sizeof *ways; i++)
        if (!strcmp(name, ways[i].name))
            return &ways[i];
    err_set(k->e, EXIT_BAD_DATA, "%s: " KEY "pre: expected gpt-2, smollm, llama-bpe, qwen2, "
            "bailingmoe or llada-moe, got %.60s", k->path, name ? name : "none");
    return NULL;
}

json_t *tokenizer_of_gguf(const json_t *keys, const char *path, struct err *e)
{
    struct keys k = {.all = keys, .path = path, .e = e};
    k.tokens = key(&k, "tokens");
    k.types = key(&k, "token_type");
    k.n = json_array_size(k.tokens);
    while (k.n && type_of(&k, k.n - 1) == TYPE_UNUSED)
        k.n--;
    const char *model = json_string_value(key(&k, "model"));
    const int pieces = model && !strcmp(model, "llama"), bytes = model && !strcmp(model, "gpt2");
    if ((!pieces && !bytes) || !k.n) {
        err_set(e, EXIT_BAD_DATA, "%s: " KEY "model and tokens: expected gpt2 or llama with "
                "tokens, got %.60s with %zu", path, model ? model : "none", k.n);
        return NULL;
    }
    const struct way *way = bytes ? find_way(&k) : NULL;
    json_t *added = json_array(), *j = NULL;
    json_t *vocab = pieces || way ? vocab_of(&k, added) : NULL;
    if (vocab)
        j = pieces ? sentence_pieces(&k, vocab, added) : byte_level(&k, way, vocab, added);
    if (vocab && !j)
        err_set(e, EXIT_BAD_DATA, "%s: " KEY "merges: expected texts", path);
    json_decref(vocab);
    json_decref(added);
    return j;
}
