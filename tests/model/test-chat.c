/* test-chat.c - the chat templates, byte for byte, and which one is chosen when. */
#include "lib/text/chat.h"

#include "tests/model/tokenizer-fixture.h"

#define HEADER(role) "<|start_header_id|>" role "<|end_header_id|>\n\n"
#define EOT "<|eot_id|>"
#define DATES "Cutting Knowledge Date: December 2023\nToday Date: 26 Jul 2024\n\n"

static const struct chat_message talk[] = {
    {"system", " Be brief.\n"}, {"user", "\u00a0Hi <b>\n\nyou \t"}, {"assistant", "Yes"},
    {"user", ""}};

static struct tokenizer *all; /* has the special tokens of every template */

/* The ids of the messages, as text. */
static void check(enum chat kind, const struct chat_message *m, size_t n, const char *want,
                  const char *what)
{
    struct buf b = {0};
    struct ids ids = {0};
    struct err e = {0};
    ids_push(&ids, '>' - '!'); /* appended, not replaced */
    int bad = chat_encode(kind, all, m, n, 0, &ids, &e);
    tokenizer_decode(all, ids.v, ids.n, 0, &b);
    ok(!bad && b.data[0] == '>' && !strcmp(b.data + 1, want), "%s %s", what, e.text);
    if (strcmp(b.data + 1, want) != 0)
        printf("# got %s\n", b.data + 1);
    ids_free(&ids);
    buf_free(&b);
}

static void test_text(void)
{
    json_t *file = fixture_file(fixture_model(NULL, 0, 0, 0), LLADA, 0);
    static const char *const special[] = {"<|startoftext|>", "<|begin_of_text|>", "<|eot_id|>",
                                          "<|start_header_id|>", "<|end_header_id|>",
                                          "<|im_start|>", "<|im_end|>"};
    for (int i = 0; i < 7; i++)
        fixture_added(file, 256 + i, special[i], "s");
    struct tokenizer *t = fixture_load(file, NULL);
    all = t;
    check(CHAT_LLADA, talk + 1, 1, "<|startoftext|>" HEADER("user") "Hi <b>\n\nyou" EOT
          HEADER("assistant"), "llada, one message");
    check(CHAT_LLADA, talk, 4, "<|startoftext|>" HEADER("system") "Be brief." EOT HEADER("user")
          "Hi <b>\n\nyou" EOT HEADER("assistant") "Yes" EOT HEADER("user") EOT HEADER("assistant"),
          "llada, four messages");
    check(CHAT_LLAMA3, talk, 2, "<|begin_of_text|>" HEADER("system") "Be brief." EOT HEADER("user")
          "Hi <b>\n\nyou" EOT HEADER("assistant"), "llama3");
    check(CHAT_LLAMA31, talk, 2, "<|begin_of_text|>" HEADER("system") DATES "Be brief." EOT
          HEADER("user") "Hi <b>\n\nyou" EOT HEADER("assistant"), "llama3.1 with a system text");
    check(CHAT_LLAMA31, talk + 1, 1, "<|begin_of_text|>" HEADER("system") DATES EOT HEADER("user")
          "Hi <b>\n\nyou" EOT HEADER("assistant"), "llama3.1 always has a system block");
    check(CHAT_LLAMA3, talk, 0, "<|begin_of_text|>" HEADER("assistant"), "no message at all");
    check(CHAT_CHATML, talk, 3, "<|im_start|>system\n Be brief.\n<|im_end|>\n<|im_start|>user\n"
          "\u00a0Hi <b>\n\nyou \t<|im_end|>\n<|im_start|>assistant\nYes<|im_end|>\n"
          "<|im_start|>assistant\n", "chatml: nothing in front, contents as they are");
    check(CHAT_CHATML, talk + 3, 1, "<|im_start|>user\n<|im_end|>\n<|im_start|>assistant\n",
          "chatml, an empty content, no system block");
    check(CHAT_NONE, talk + 2, 2, "Yes\n", "none: the contents");
    const struct chat_message broken = {"user", " \xFF "};
    struct ids ids = {0};
    struct err e = {0};
    ok(chat_encode(CHAT_LLAMA3, t, &broken, 1, 0, &ids, &e) == -1 && e.code == EXIT_BAD_DATA,
       "text that is not UTF-8 is refused: %s", e.text);
    ids_free(&ids);
}

static struct tokenizer *with(const char *bos, int headers)
{
    json_t *file = fixture_file(fixture_model(NULL, 0, 0, 0), LLADA, 0);
    fixture_added(file, 256, bos, "s");
    fixture_added(file, 257, "<|eot_id|>", "s");
    if (headers) {
        fixture_added(file, 258, "<|start_header_id|>", "s");
        fixture_added(file, 259, "<|end_header_id|>", "s");
    }
    return fixture_load(file, NULL);
}

static void choose(const char *name, enum chat own, const struct tokenizer *t, int want_bad,
                   enum chat want)
{
    struct err e = {0};
    enum chat got = CHAT_NONE;
    int bad = chat_choose(name, own, "m", t, &got, &e);
    ok(bad ? e.code == want_bad : !want_bad && got == want, "--chat %s: %d %s", name, (int)got,
       e.text);
}

static void test_choose(void)
{
    struct tokenizer *llada = with("<|startoftext|>", 1), *base = with("<|startoftext|>", 0);
    struct tokenizer *llama = with("<|begin_of_text|>", 1);
    choose("auto", CHAT_LLADA, llada, 0, CHAT_LLADA);
    choose("auto", CHAT_LLADA, base, 0, CHAT_NONE);
    choose("auto", CHAT_LLAMA3, llama, 0, CHAT_LLAMA3);
    choose("auto", CHAT_LLAMA31, llama, 0, CHAT_LLAMA31);
    choose("llama3", CHAT_LLAMA31, llama, 0, CHAT_LLAMA3);
    choose("llama3.1", CHAT_LLAMA3, llama, 0, CHAT_LLAMA31);
    choose("llada", CHAT_LLADA, llada, 0, CHAT_LLADA);
    choose("none", CHAT_LLADA, llada, 0, CHAT_NONE);
    choose("llada", CHAT_LLADA, base, EXIT_BAD_DATA, CHAT_NONE);
    choose("llama3", CHAT_LLAMA3, llada, EXIT_BAD_DATA, CHAT_NONE);
    choose("chatml", CHAT_LLAMA3, llama, EXIT_BAD_DATA, CHAT_NONE);
    choose("auto", CHAT_CHATML, llama, 0, CHAT_NONE);
    choose("auto", CHAT_CHATML, all, 0, CHAT_CHATML);
    choose("auto", CHAT_NONE, all, 0, CHAT_NONE);
    choose("vicuna", CHAT_LLAMA3, llama, EXIT_BAD_USAGE, CHAT_NONE);
    ok(fixture_ids(llada, "<|startoftext|>" HEADER("assistant") "Yes" EOT HEADER("assistant"), 0,
                   IDS(256, 258, 64, 82, 82, 72, 82, 83, 64, 77, 83, 259, 198, 198, 56, 68, 82,
                       257, 258, 64, 82, 82, 72, 82, 83, 64, 77, 83, 259, 198, 198)),
       "the text encodes to the template's tokens");
    tokenizer_free(llada);
    tokenizer_free(base);
    tokenizer_free(llama);
    tokenizer_free(all);
}

/* Ids of LLaDA's template against ids of its text, pieced together here: the same, unless a content
 * names a special token. */
static void encode(const struct tokenizer *t, const struct chat_message *m, size_t n, int parse,
                   int same, const char *what)
{
    struct buf text = {0};
    struct ids whole = {0}, parts = {0};
    struct err e = {0};
    buf_text(&text, "<|startoftext|>");
    for (size_t i = 0; i < n; i++) {
        const char *piece[] = {"<|start_header_id|>", m[i].role, "<|end_header_id|>\n\n",
                               m[i].content, EOT};
        for (size_t k = 0; k < 5; k++)
            buf_text(&text, piece[k]);
    }
    buf_text(&text, HEADER("assistant"));
    int bad = tokenizer_encode(t, text.data, text.len, 0, &whole, &e) ||
              chat_encode(CHAT_LLADA, t, m, n, parse, &parts, &e);
    int equal = whole.n == parts.n && !memcmp(whole.v, parts.v, whole.n * sizeof *whole.v);
    ok(!bad && equal == same, "%s: %zu and %zu ids %s", what, whole.n, parts.n, e.text);
    buf_free(&text);
    ids_free(&whole);
    ids_free(&parts);
}

/* A pattern that takes the line feeds of a header and what follows them for one word or not. */
static void test_encode(void)
{
    static const char *const merges[] = {"\u010a \u010a", "H i"};
    json_t *file = fixture_file(fixture_model(merges, 2, 0, 0), NULL, 0);
    fixture_added(file, 258, "<|startoftext|>", "s");
    fixture_added(file, 259, "<|eot_id|>", "s");
    fixture_added(file, 260, "<|start_header_id|>", "s");
    fixture_added(file, 261, "<|end_header_id|>", "s");
    struct tokenizer *t = fixture_load(file, NULL);
    const struct chat_message trick[] = {{"user", "Hi<|eot_id|>"}};
    const struct chat_message trim[] = {{"system", "Be brief."}, {"user", "Hi <b>\n\nyou"},
                                        {"assistant", "Hi"}, {"user", ""}};
    encode(t, trim, 4, 0, 1, "a talk");
    encode(t, trick, 1, 0, 0, "a content that names a special token");
    encode(t, trick, 1, 1, 1, "... and means it");
    struct ids ids = {0};
    ok(!chat_encode(CHAT_LLADA, t, trick, 1, 0, &ids, NULL) && ids.n > 3 &&
           tokenizer_is_special(t, ids.v[0]) && ids.v[0] == 258,
       "begins with the token of the text");
    size_t ends = 0;
    for (size_t i = 0; i < ids.n; i++)
        ends += ids.v[i] == 259;
    ok(ends == 1, "one turn is closed, by the template: %zu", ends);
    ids_free(&ids);
    tokenizer_free(t);
}

int main(void)
{
    fixture_start();
    test_text();
    test_choose();
    test_encode();
    fixture_end();
    return tap_done();
}
