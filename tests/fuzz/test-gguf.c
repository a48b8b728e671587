/* test-gguf.c - feeds headers of GGUF files: tensors lie within the file, and the tokenizer of the
 * keys is made or refused. */
#include "lib/checkpoint/gguf.h"
#include "lib/text/tokenizer.h"
#include "tests/fuzz/fuzz.h"

static void put_number(struct buf *to, uint64_t v, int bytes)
{
    for (int i = 0; i < bytes; i++)
        buf_char(to, (char)(v >> 8 * i));
}

static void put_text(struct buf *to, const char *text)
{
    put_number(to, strlen(text), 8);
    buf_text(to, text);
}

static void put_key(struct buf *to, const char *key, const char *value)
{
    put_text(to, key);
    put_number(to, 8, 4);
    put_text(to, value);
}

static void put_list(struct buf *to, const char *key, const char *const *text, size_t n)
{
    put_text(to, key);
    put_number(to, 9, 4);
    put_number(to, 8, 4);
    put_number(to, n, 8);
    for (size_t i = 0; i < n; i++)
        put_text(to, text[i]);
}

/* The first seed has byte-level pieces, the second SentencePiece's. */
static int fuzz_seed(size_t i, struct buf *to)
{
    static const char *const tokens[] = {"<unk>", "a", "b", "ab", "\u2581", "\u2581ab"};
    static const char *const merges[] = {"a b"};
    const size_t keys = i == 0 ? 6 : 5;
    if (i > 1)
        return 0;
    buf_text(to, "GGUF");
    put_number(to, 3, 4);
    put_number(to, 1, 8);
    put_number(to, keys, 8);
    put_key(to, "general.architecture", "llama");
    put_key(to, "tokenizer.ggml.model", i == 0 ? "gpt2" : "llama");
    put_list(to, "tokenizer.ggml.tokens", tokens, i == 0 ? 4 : 6);
    put_text(to, "tokenizer.ggml.unknown_token_id");
    put_number(to, 4, 4);
    put_number(to, 0, 4);
    if (i == 0) {
        put_key(to, "tokenizer.ggml.pre", "qwen2");
        put_list(to, "tokenizer.ggml.merges", merges, 1);
    } else {
        put_text(to, "llama.rope.freq_base");
        put_number(to, 6, 4);
        put_number(to, 0x461c4000, 4);
    }
    put_text(to, "token_embd.weight");
    put_number(to, 2, 4);
    put_number(to, 32, 8);
    put_number(to, 2, 8);
    put_number(to, 8, 4);
    put_number(to, 0, 8);
    while (to->len % 32)
        buf_char(to, 0);
    put_number(to, 0, 8);
    for (int k = 0; k < 60; k++)
        buf_char(to, (char)k);
    return 1;
}

static void check_tensor(const struct tensor *t, const char *bytes, size_t n)
{
    const unsigned char *begin = (const unsigned char *)bytes;
    float row[256];
    fuzz_check(t->data >= begin && t->bytes <= n && t->data + t->bytes <= begin + n);
    fuzz_check(t->rank >= 1 && t->rank <= 4 && tensor_is_readable(t->dtype));
    const size_t values = tensor_has_blocks(t->dtype) && strchr(t->dtype, 'K') ? 256 : 32;
    if (t->bytes >= 2048)
        tensor_floats(t, 0, values, row);
}

static void fuzz_one(const char *bytes, size_t n)
{
    struct tensor *list;
    size_t count;
    json_t *meta;
    struct err e = {0};
    if (gguf_parse((const unsigned char *)bytes, n, "x.gguf", &list, &count, &meta, &e)) {
        fuzz_check_refused(&e);
        fuzz_check(e.code == EXIT_BAD_DATA && !list && !meta);
        return;
    }
    for (size_t i = 0; i < count; i++) {
        check_tensor(&list[i], bytes, n);
        free(list[i].name);
    }
    free(list);
    json_t *j = tokenizer_of_gguf(meta, "x.gguf", &e);
    struct tokenizer *t = j ? tokenizer_load_json(j, "x.gguf", &e) : NULL;
    if (!t)
        fuzz_check_refused(&e);
    tokenizer_free(t);
    json_decref(j);
    json_decref(meta);
}

FUZZ_TARGET("gguf", 2000)
