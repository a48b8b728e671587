/* test-tokenizer.c - tokenizer.json, and a text that its tokenizer encodes. A NUL separates the
 * file from the text. */
#include "lib/text/tokenizer.h"
#include "lib/text/utf8.h"
#include "tests/fuzz/memory.h"

#define BYTES(more)                                                                             \
    "\"type\":\"BPE\",\"vocab\":{\"a\":0,\"b\":1,\"\xc4\xa0\":2,\"ab\":3,\"\xc4\xa0" "ab\":4," \
    "\"1\":5" more "},\"merges\":[\"a b\",[\"\xc4\xa0\",\"ab\"]]"

static int fuzz_seed(size_t i, struct buf *to)
{
    static const char *const file[] = {
        "{\"model\":{" BYTES("") "},\"pre_tokenizer\":{\"type\":\"ByteLevel\"},"
        "\"decoder\":{\"type\":\"ByteLevel\"}}",
        "{\"model\":{" BYTES(",\"<s>\":6") ",\"ignore_merges\":true},"
        "\"added_tokens\":[{\"id\":6,\"content\":\"<s>\",\"special\":true},"
        "{\"id\":9,\"content\":\"ba\",\"lstrip\":true,\"rstrip\":true,\"single_word\":true}],"
        "\"normalizer\":{\"type\":\"NFC\"},\"pre_tokenizer\":{\"type\":\"Sequence\","
        "\"pretokenizers\":[{\"type\":\"Split\",\"pattern\":{\"Regex\":\"\\\\p{N}|a+\\\\s?\"},"
        "\"behavior\":\"Isolated\",\"invert\":false},{\"type\":\"ByteLevel\","
        "\"add_prefix_space\":true,\"use_regex\":false}]},"
        "\"post_processor\":{\"type\":\"TemplateProcessing\",\"single\":[{\"SpecialToken\":"
        "{\"id\":\"<s>\",\"type_id\":0}},{\"Sequence\":{\"id\":\"A\",\"type_id\":0}}],"
        "\"special_tokens\":{\"<s>\":{\"id\":\"<s>\",\"ids\":[6],\"tokens\":[\"<s>\"]}}},"
        "\"decoder\":{\"type\":\"ByteLevel\"}}",
        "{\"model\":{" BYTES("") "},\"normalizer\":{\"type\":\"Sequence\",\"normalizers\":[]},"
        "\"pre_tokenizer\":{\"type\":\"Sequence\",\"pretokenizers\":[{\"type\":\"Digits\","
        "\"individual_digits\":true},{\"type\":\"Punctuation\",\"behavior\":\"Contiguous\"},"
        "{\"type\":\"ByteLevel\",\"use_regex\":true}]},"
        "\"post_processor\":{\"type\":\"RobertaProcessing\",\"cls\":[\"a\",0],\"sep\":[\"b\",1]},"
        "\"decoder\":{\"type\":\"Sequence\",\"decoders\":[{\"type\":\"ByteLevel\"}]}}",
        "{\"model\":{" BYTES("") "},\"added_tokens\":[{\"id\":6,\"content\":\"<\\u0000s>\"}],"
        "\"pre_tokenizer\":{\"type\":\"ByteLevel\"},\"decoder\":{\"type\":\"ByteLevel\"}}",
    };
    static const char *const text[] = {"ab ab1", "<s>ab 1 ba\xcc\x81 <s>", "a1b, ab  ", "<s>"};
    if (i >= sizeof text / sizeof *text)
        return 0;
    buf_text(to, file[i]);
    buf_put(to, "", 1);
    buf_text(to, text[i]);
    return 1;
}

/* Encodes and decodes a text: ids are in the vocabulary, and the decoded text is valid UTF-8. */
static void use(const struct tokenizer *t, const char *text, size_t n)
{
    struct err e = {0};
    struct ids ids = {0};
    struct buf back = {0}, piece = {0};
    for (int flags = 0; flags <= (ENCODE_SPECIAL | ENCODE_PLAIN); flags++) {
        ids.n = 0;
        e = (struct err){0};
        if (tokenizer_encode(t, text, n, flags, &ids, &e)) {
            fuzz_check_refused(&e);
            continue;
        }
        for (size_t i = 0; i < ids.n; i++)
            fuzz_check(ids.v[i] >= 0 && (size_t)ids.v[i] < tokenizer_size(t));
        buf_clear(&back);
        tokenizer_decode(t, ids.v, ids.n, flags & 1, &back);
        fuzz_check(utf8_valid(back.data ? back.data : "", back.len) == back.len);
    }
    for (int32_t id = -1; id <= (int32_t)tokenizer_size(t) && id < 300; id++) {
        buf_clear(&piece);
        tokenizer_bytes(t, &id, 1, 0, &piece);
        fuzz_check(!tokenizer_is_special(t, id) || piece.len);
    }
    ids_free(&ids);
    buf_free(&back);
    buf_free(&piece);
}

static void fuzz_one(const char *bytes, size_t n)
{
    struct err e = {0};
    struct buf file = fuzz_part(&bytes, &n);
    memory_put_part(0, MEMORY_FOLDER "/tokenizer.json", &file);
    struct tokenizer *t = tokenizer_load(MEMORY_FOLDER, &e);
    if (!t)
        fuzz_check_refused(&e);
    else
        use(t, bytes, n);
    tokenizer_free(t);
    buf_free(&file);
}

FUZZ_TARGET("tokenizer", 1000)
