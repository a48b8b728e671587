/* test-wordpiece.c - vocabularies of BERT encoders (the first byte chooses tokenizer.json or
 * vocab.txt), and a text that is encoded. A NUL separates the file from the text. */
#include "lib/text/utf8.h"
#include "lib/text/wordpiece.h"
#include "tests/fuzz/memory.h"

static int fuzz_seed(size_t i, struct buf *to)
{
    static const char *const file[] = {
        "[PAD]\n[UNK]\r\n[CLS]\n[SEP]\na\n##b\nca\nc\n##a\n\xe4\xb8\xad\n",
        "{\"model\":{\"type\":\"WordPiece\",\"unk_token\":\"[UNK]\",\"continuing_subword_prefix\":"
        "\"##\",\"max_input_chars_per_word\":100,\"vocab\":{\"[UNK]\":0,\"[CLS]\":1,\"[SEP]\":2,"
        "\"a\":3,\"##b\":4,\"e\":7}},\"normalizer\":{\"type\":\"BertNormalizer\",\"clean_text\":"
        "true,\"handle_chinese_chars\":true,\"strip_accents\":null,\"lowercase\":true},"
        "\"pre_tokenizer\":{\"type\":\"BertPreTokenizer\"}}",
    };
    if (i >= sizeof file / sizeof *file)
        return 0;
    buf_text(to, file[i]);
    buf_put(to, "", 1);
    buf_text(to, "Ab, caab \xe4\xb8\xad\xc3\xa9\xcc\x81 \xef\xbf\xbd x");
    return 1;
}

static void fuzz_one(const char *bytes, size_t n)
{
    struct err e = {0};
    struct buf file = fuzz_part(&bytes, &n), text = {0};
    int json = file.len && *file.data == '{';
    memory_put_part(0, json ? MEMORY_FOLDER "/tokenizer.json" : MEMORY_FOLDER "/vocab.txt", &file);
    struct wordpiece *w = wordpiece_load(MEMORY_FOLDER, &e);
    struct ids ids = {0};
    if (!w)
        fuzz_check_refused(&e);
    buf_text(&text, "");
    utf8_put_lossy(&text, bytes, n);
    if (w && !memchr(text.data, 0, text.len))
        wordpiece_encode(w, text.data, &ids);
    for (size_t i = 0; i < ids.n; i++)
        fuzz_check(ids.v[i] >= 0 && (size_t)ids.v[i] < wordpiece_size(w));
    fuzz_check(ids.n <= text.len + 2);
    ids_free(&ids);
    wordpiece_free(w);
    buf_free(&file);
    buf_free(&text);
}

FUZZ_TARGET("wordpiece", 1000)
