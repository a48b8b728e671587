/* test-chat.c - tests the chat templates, byte for byte, and the choice of a template. */
#include "lib/text/chat.h"

#include "tests/model/tokenizer-fixture.h"

#define HEADER(role) "<|start_header_id|>" role "<|end_header_id|>\n\n"
#define EOT "<|eot_id|>"
#define DATES "Cutting Knowledge Date: December 2023\nToday Date: 26 Jul 2024\n\n"

static const struct chat_message talk[] = {
    {"system", " Be brief.\n"}, {"user", "\u00a0Hi <b>\n\nyou \t"}, {"assistant", "Yes"},
    {"user", ""}};

static struct tokenizer *all; /* has the special tokens of every template */

/* Tests the ids of the messages, shown as text. */
static void check(const struct chat_template *template, const struct chat_message *m, size_t n,
                  const char *want, const char *what)
{
    struct buf b = {0};
    struct ids ids = {0};
    struct err e = {0};
    ids_push(&ids, '>' - '!'); /* chat_encode() must append to these, not replace them */
    int bad = chat_encode(template, all, m, n, 0, &ids, &e);
    tokenizer_decode(all, ids.v, ids.n, 0, &b);
    ok(!bad && b.data[0] == '>' && !strcmp(b.data + 1, want), "%s %s", what, e.text);
    if (strcmp(b.data + 1, want) != 0)
        printf("# got %s\n", b.data + 1);
    ids_free(&ids);
    buf_free(&b);
}

static struct chat_template *named(const char *name, const struct tokenizer *t)
{
    static const struct chat_source none = {.fault = ""};
    struct chat_choice c;
    struct err e = {0};
    ok(!chat_choose(name, &none, CHAT_NONE, "m", t, &c, &e) && !strcmp(chat_name(c.chosen), name),
       "--chat %s %s", name, e.text);
    return c.chosen;
}

static void check_named(const char *name, const struct chat_message *m, size_t n,
                        const char *want, const char *what)
{
    struct chat_template *template = named(name, all);
    check(template, m, n, want, what);
    chat_free(template);
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
    check_named("llada", talk + 1, 1, "<|startoftext|>" HEADER("user") "Hi <b>\n\nyou" EOT
          HEADER("assistant"), "llada, one message");
    check_named("llada", talk, 4, "<|startoftext|>" HEADER("system") "Be brief." EOT HEADER("user")
          "Hi <b>\n\nyou" EOT HEADER("assistant") "Yes" EOT HEADER("user") EOT HEADER("assistant"),
          "llada, four messages");
    check_named("llama3", talk, 2,
                "<|begin_of_text|>" HEADER("system") "Be brief." EOT HEADER("user")
          "Hi <b>\n\nyou" EOT HEADER("assistant"), "llama3");
    check_named("llama3.1", talk, 2, "<|begin_of_text|>" HEADER("system") DATES "Be brief." EOT
          HEADER("user") "Hi <b>\n\nyou" EOT HEADER("assistant"), "llama3.1 with a system text");
    check_named("llama3.1", talk + 1, 1,
                "<|begin_of_text|>" HEADER("system") DATES EOT HEADER("user")
          "Hi <b>\n\nyou" EOT HEADER("assistant"), "llama3.1 always has a system block");
    check_named("llama3", talk, 0, "<|begin_of_text|>" HEADER("assistant"), "no message at all");
    check_named("chatml", talk, 3, "<|im_start|>system\n Be brief.\n<|im_end|>\n<|im_start|>user\n"
          "\u00a0Hi <b>\n\nyou \t<|im_end|>\n<|im_start|>assistant\nYes<|im_end|>\n"
          "<|im_start|>assistant\n", "chatml: nothing in front, contents as they are");
    check_named("chatml", talk + 3, 1, "<|im_start|>user\n<|im_end|>\n<|im_start|>assistant\n",
          "chatml, an empty content, no system block");
    check_named("chatml_bos", talk + 3, 1, "<|begin_of_text|><|im_start|>user\n<|im_end|>\n"
          "<|im_start|>assistant\n", "chatml_bos");
    check_named("qwen2", talk + 3, 1, "<|im_start|>system\nYou are a helpful assistant.<|im_end|>\n"
          "<|im_start|>user\n<|im_end|>\n<|im_start|>assistant\n",
          "qwen2: a system text of its own");
    check_named("qwen2.5", talk, 1, "<|im_start|>system\n Be brief.\n<|im_end|>\n"
          "<|im_start|>assistant\n", "qwen2.5: ... unless there is one");
    check_named("none", talk + 2, 2, "Yes\n", "none: the contents");
    const struct chat_message broken = {"user", " \xFF "};
    struct ids ids = {0};
    struct err e = {0};
    struct chat_template *llama = named("llama3", t);
    ok(chat_encode(llama, t, &broken, 1, 0, &ids, &e) == -1 && e.code == EXIT_BAD_DATA &&
           strstr(e.text, "byte 1"),
       "text that is not UTF-8 is refused: %s", e.text);
    chat_free(llama);
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

/* Templates as a publisher might write them. They were written for this project. */
#define TURNS                                                                                   \
    "{% for turn in messages %}{{ '<|start_header_id|>' + turn['role'] + "                      \
    "\"<|end_header_id|>\\n\\n\" + turn.content | trim + '<|eot_id|>' }}{% endfor %}"
#define ASK                                                                                     \
    "{%- if add_generation_prompt %}\n"                                                         \
    "    {{- '<|start_header_id|>' ~ 'assistant<|end_header_id|>\n\n' -}}\n{% endif %}\n"
#define IM_TURNS                                                                                \
    "{% for m in messages %}{{ '<|im_start|>' + m.role + '\\n' + m.content + '<|im_end|>\\n' }}" \
    "{% endfor %}"
#define IM_ASK "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}"

/* The choice of --chat auto for a template, if `bos` is the checkpoint's bos_token. */
static struct chat_choice judge(const char *text, size_t n, const char *bos)
{
    json_t *tokens = json_pack("{s:s?,s:s}", "bos_token", bos, "eos_token", "<|eot_id|>");
    struct chat_source own = {text, n, tokens, "there/tokenizer_config.json", ""};
    struct chat_choice c;
    struct err e = {0};
    ok(!chat_choose("auto", &own, CHAT_LLAMA3, "m", all, &c, &e), "auto refuses no template %s",
       e.text);
    json_decref(tokens);
    return c;
}

/* Tests the template of a checkpoint on the messages. */
static void check_own(const char *text, const char *bos, const struct chat_message *m, size_t n,
                      const char *want)
{
    struct chat_choice c = judge(text, strlen(text), bos);
    ok(c.chosen && !c.unknown && !strcmp(chat_name(c.chosen), "own") &&
           !strcmp(c.said.text, "there/tokenizer_config.json: chat template of the checkpoint"),
       "the checkpoint's own template runs: %s", c.said.text);
    if (c.chosen)
        check(c.chosen, m, n, want, "the checkpoint's own template writes");
    chat_free(c.chosen);
}

static void test_own(void)
{
    check_own("{{ bos_token }}" TURNS ASK, "<|begin_of_text|>", talk, 2, "<|begin_of_text|>"
              HEADER("system") "Be brief." EOT HEADER("user") "Hi <b>\n\nyou" EOT
              HEADER("assistant"));
    check_own("{{ bos_token }}" TURNS ASK, "<|startoftext|>", talk + 2, 1, "<|startoftext|>"
              HEADER("assistant") "Yes" EOT HEADER("assistant"));
    check_own("{{ bos_token }}" IM_TURNS IM_ASK, NULL, talk + 3, 1,
              "None<|im_start|>user\n<|im_end|>\n<|im_start|>assistant\n");
    check_own("{% for m in messages %}{% if m.role == 'user' %}[INST] {{ m.content.strip() }} "
              "[/INST]{% else %}{{ m.content + eos_token }}{% endif %}{% endfor %}", NULL, talk + 1,
              2, "[INST] Hi <b>\n\nyou [/INST]Yes" EOT);
    check_own("{% if messages[0].role == 'system' %}{{ raise_exception('no system') }}{% endif %}"
              "{{ messages[-1].content }}", NULL, talk + 1, 2, "Yes");
}

static void test_refused(void)
{
    static const struct { const char *text, *said; } cases[] = {
        {"{% for m in messages %}{{ m.content | upper }}\n{{ m.content | center }}{% endfor %}",
         "line 2: the filter center: not supported; prompts go without one"},
        {"\n\n{% include 'x' %}{{ messages }}", "line 3: the tag include: not supported"},
        {"{{ messages[0].content.encode() }}", "line 1: the method encode of a string"},
        {"{{ now() }}", "line 1: the function now: not supported"},
        {"{{ raise_exception('only\ntools') }}", "the template says: only\\x0atools"},
        {"{{ 'x", "line 1: a string that does not end"},
        {"Always this.", "it does not write the message of a user"},
        {"", "it does not write the message of a user"},
        {"\xff{{ messages }}", "it is not UTF-8"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct chat_choice c = judge(cases[i].text, strlen(cases[i].text), NULL);
        ok(!c.chosen && c.unknown && strstr(c.said.text, cases[i].said) &&
               strstr(c.said.text, "there/tokenizer_config.json: "),
           "refused: %s", c.said.text);
    }
    struct chat_choice c = judge("{{ messages }}\0{% if", 20, NULL);
    ok(!c.chosen && c.unknown, "U+0000 ends nothing: %s", c.said.text);
    char *large = mem_alloc(1 << 20);
    memset(large, 'x', 1 << 20);
    c = judge(large, 1 << 20, NULL);
    ok(!c.chosen && strstr(c.said.text, "expected at most 262144 bytes, got 1048576"), "%s",
       c.said.text);
    free(large);
}

/* Templates make tokens of roles. A content or an unknown role that looks like a token stays
 * text. */
static void test_roles(void)
{
    static const char text[] = "{% for m in messages %}{{ '<|' + m.role + '|>' + m.content }}"
                               "{% endfor %}";
    static const struct chat_message m[] = {{"im_start", "<|im_end|>"}, {"im_end|><|im_end", "x"}};
    struct chat_choice c = judge(text, sizeof text - 1, NULL);
    struct ids ids = {0};
    struct err e = {0};
    size_t special = 0;
    ok(c.chosen && !chat_encode(c.chosen, all, m, 2, 0, &ids, &e), "a role in a token %s",
       e.text);
    for (size_t i = 0; i < ids.n; i++)
        special += tokenizer_is_special(all, ids.v[i]) != 0;
    ok(special == 1 && ids.v[0] == tokenizer_id(all, "<|im_start|>"), "%zu special tokens",
       special);
    ids_free(&ids);
    chat_free(c.chosen);
}

/* A template that refuses some messages is still run for other messages. */
static void test_exception(void)
{
    static const char text[] = "{% if messages[0].role == 'system' %}{{ raise_exception('no system "
                               "role') }}{% endif %}{{ messages[0].content }}";
    struct chat_choice c = judge(text, sizeof text - 1, NULL);
    struct ids ids = {0};
    struct err e = {0};
    ok(c.chosen && chat_encode(c.chosen, all, talk, 2, 0, &ids, &e) == -1 &&
           e.code == EXIT_BAD_DATA && !ids.n &&
           strstr(e.text, "chat template own: line 1: the template says: no system role"),
       "the messages are refused: %s", e.text);
    chat_free(c.chosen);
}

static void choose(const char *name, const struct tokenizer *t, int want_bad)
{
    static const struct chat_source none = {.fault = ""};
    struct chat_choice c;
    struct err e = {0};
    int bad = chat_choose(name, &none, CHAT_NONE, "m", t, &c, &e);
    ok(bad ? e.code == want_bad && !c.chosen
           : !want_bad && !strcmp(chat_name(c.chosen), name) && !c.unknown,
       "--chat %s: %s", name, e.text);
    chat_free(c.chosen);
}

/* Tests the choice and the message of --chat auto for a checkpoint without a template, with a
 * template, and with a template whose tokens the vocabulary lacks. */
static void choose_own(const char *text, const char *fault, enum chat family,
                       const struct tokenizer *t, const char *want, const char *said)
{
    json_t *tokens = json_pack("{s:s}", "bos_token", "<|startoftext|>");
    struct chat_source own = {text, text ? strlen(text) : 0, tokens, "file", fault};
    struct chat_choice c;
    struct err e = {0};
    ok(!chat_choose("auto", &own, family, "m", t, &c, &e) && !strcmp(chat_name(c.chosen), want) &&
           (*said ? strstr(c.said.text, said) != NULL : !*c.said.text) &&
           c.unknown == (*fault != 0),
       "auto: %s, %s", chat_name(c.chosen), c.said.text);
    chat_free(c.chosen);
    json_decref(tokens);
}

static void test_choose(void)
{
    struct tokenizer *llada = with("<|startoftext|>", 1), *base = with("<|startoftext|>", 0);
    struct tokenizer *llama = with("<|begin_of_text|>", 1);
    static const char ours[] = "{{ bos_token }}" TURNS ASK;
    choose_own(ours, "", CHAT_LLADA, llada, "own", "file: chat template of the checkpoint");
    choose_own(ours, "", CHAT_LLADA, base, "none", "no special token <|start_header_id|>");
    choose_own(NULL, "", CHAT_LLADA, llada, "none", "--chat llada applies one");
    choose_own(NULL, "", CHAT_LLADA, base, "none", "");
    choose_own(NULL, "", CHAT_NONE, all, "none", "");
    choose_own(NULL, "it is a list", CHAT_LLAMA3, llama, "none", "it is a list; prompts go");
    choose("llama3", llama, 0);
    choose("llama3.1", llama, 0);
    choose("llada", llada, 0);
    choose("none", llada, 0);
    choose("llada", base, EXIT_BAD_DATA);
    choose("llama3", llada, EXIT_BAD_DATA);
    choose("chatml", llama, EXIT_BAD_DATA);
    choose("vicuna", llama, EXIT_BAD_USAGE);
    ok(fixture_ids(llada, "<|startoftext|>" HEADER("assistant") "Yes" EOT HEADER("assistant"), 0,
                   IDS(256, 258, 64, 82, 82, 72, 82, 83, 64, 77, 83, 259, 198, 198, 56, 68, 82,
                       257, 258, 64, 82, 82, 72, 82, 83, 64, 77, 83, 259, 198, 198)),
       "the text encodes to the template's tokens");
    tokenizer_free(llada);
    tokenizer_free(base);
    tokenizer_free(llama);
    tokenizer_free(all);
}

/* Compares the ids of LLaDA's template with the ids of the text that this test puts together. They
 * are equal unless a content names a special token. */
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
    struct chat_template *template = named("llada", t);
    int bad = tokenizer_encode(t, text.data, text.len, 0, &whole, &e) ||
              chat_encode(template, t, m, n, parse, &parts, &e);
    chat_free(template);
    int equal = whole.n == parts.n && !memcmp(whole.v, parts.v, whole.n * sizeof *whole.v);
    ok(!bad && equal == same, "%s: %zu and %zu ids %s", what, whole.n, parts.n, e.text);
    buf_free(&text);
    ids_free(&whole);
    ids_free(&parts);
}

/* Tests two patterns: one takes the line feeds of a header and the next text as one word, one
 * not. */
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
    encode(t, trick, 1, 1, 1, "a content that names a special token, parsed as one");
    struct ids ids = {0};
    struct chat_template *template = named("llada", t);
    ok(!chat_encode(template, t, trick, 1, 0, &ids, NULL) && ids.n > 3 &&
           tokenizer_is_special(t, ids.v[0]) && ids.v[0] == 258,
       "begins with the token of the text");
    chat_free(template);
    size_t ends = 0;
    for (size_t i = 0; i < ids.n; i++)
        ends += ids.v[i] == 259;
    ok(ends == 1, "one turn is closed, by the template: %zu", ends);
    ids_free(&ids);
    tokenizer_free(t);
}

/* Prompts are kept by word of --chat (lib/run/prompts/promptset.h). */
static void test_words(void)
{
    size_t words = 1;
    for (const char *c = CHAT_CHOICES; *c; c++)
        words += *c == '|';
    ok(words == CHAT_WORDS, "%zu words of --chat: auto and a word for each template", words);
}

int main(void)
{
    fixture_start();
    test_words();
    test_text();
    test_own();
    test_refused();
    test_roles();
    test_exception();
    test_choose();
    test_encode();
    fixture_end();
    return tap_done();
}
