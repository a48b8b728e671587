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
    check(CHAT_CHATML_BOS, talk + 3, 1, "<|begin_of_text|><|im_start|>user\n<|im_end|>\n"
          "<|im_start|>assistant\n", "chatml-bos");
    check(CHAT_QWEN2, talk + 3, 1, "<|im_start|>system\nYou are a helpful assistant.<|im_end|>\n"
          "<|im_start|>user\n<|im_end|>\n<|im_start|>assistant\n",
          "qwen2: a system text of its own");
    check(CHAT_QWEN25, talk, 1, "<|im_start|>system\n Be brief.\n<|im_end|>\n"
          "<|im_start|>assistant\n", "qwen2.5: ... unless there is one");
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

/* Templates as a publisher might write them; ours, and not copied from any. */
#define TURN(trim)                                                                              \
    "{{ '<|start_header_id|>' + turn['role'] + \"<|end_header_id|>\\n\\n\" + turn.content" trim \
    " + '<|eot_id|>' }}"
#define TURNS "{% for turn in messages %}" TURN(" | trim") "{% endfor %}"
#define ASK                                                                                     \
    "{%- if add_generation_prompt %}\n"                                                         \
    "    {{- '<|start_header_id|>' ~ 'assistant<|end_header_id|>\n\n' -}}\n{% endif %}\n"
#define IM_TURN "{{ '<|im_start|>' + m.role + '\\n' + m.content + '<|im_end|>' + '\\n' }}"
#define IM_TURNS "{% for m in messages %}" IM_TURN "{% endfor %}"
#define IM_ASK "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}"
#define IM_SYSTEM(text)                                                                         \
    "{% if messages[0].role != 'system' %}{{ '<|im_start|>system\\n" text "<|im_end|>\\n' }}"   \
    "{% endif %}"
#define DATED                                                                                   \
    "{% if strftime_now is defined %}{% set day = strftime_now('%d %b %Y') %}{% else %}"        \
    "{% set day = '26 Jul 2024' %}{% endif %}"                                                  \
    "{% if messages[0].role == 'system' %}{% set first = messages[0].content.strip() %}"        \
    "{% set messages = messages[1:] %}{% else %}{% set first = '' %}{% endif %}"                \
    "{{ '<|start_header_id|>system<|end_header_id|>\\n\\n' }}"                                  \
    "{% if tools is not none and not strict %}{{ 'Environment: ipython\\n' }}{% endif %}"       \
    "{{ 'Cutting Knowledge Date: December 2023\\n' }}{{ 'Today Date: ' + day + '\\n\\n' }}"     \
    "{{ first }}{{ '<|eot_id|>' }}"
#define QWEN "You are Qwen, created by Alibaba Cloud. You are a helpful assistant."

struct published {
    const char *text;
    enum chat kind;   /* CHAT_NONE: not known */
    const char *said; /* of one that is not known: a part of the warning */
};
static const struct published published[] = {
    {"{{ bos_token }}" TURNS ASK, CHAT_LLAMA3, NULL},
    {"{% for turn in messages %}{% set all = '<|start_header_id|>' + turn.role + "
     "'<|end_header_id|>\\n\\n' + turn.content|trim + '<|eot_id|>' %}{% if loop.first %}"
     "{% set all = bos_token + all %}{% endif %}{{ all }}{% endfor %}" ASK, CHAT_LLAMA3, NULL},
    {"<|begin_of_text|>\n{#- a note: {{ 'x' }} #}" TURNS ASK, CHAT_LLAMA3, NULL},
    {"{{ bos_token }}{% for turn in messages %}\n  {% if turn.role not in ['user'] and x %}\n"
     "    {{- raise_exception('Only ' + turn.role) -}}\n  {% endif %}\n" TURN("|trim")
     "{% endfor %}" ASK, CHAT_LLAMA3, NULL},
    {"{{ bos_token }}" DATED TURNS ASK, CHAT_LLAMA31, NULL},
    {"{{ '<|startoftext|>' }}" TURNS ASK, CHAT_LLADA, NULL},
    {IM_TURNS IM_ASK, CHAT_CHATML, NULL},
    {"{% if tools %}{{ '# Tools' }}{% else %}{{ '' }}{% endif %}{% for m in messages %}"
     "{% if m.role == 'user' or (m.role == 'assistant' and not m.tool_calls) %}" IM_TURN
     "{% elif m.role == 'tool' %}{{ '<tool_response>' + m.content }}{% endif %}{% endfor %}" IM_ASK
     "{% if enable_thinking is defined and enable_thinking is false %}{{ '<think>' }}{% endif %}",
     CHAT_CHATML, NULL},
    {"{{ bos_token }}" IM_TURNS IM_ASK, CHAT_CHATML_BOS, NULL},
    {IM_SYSTEM(QWEN) IM_TURNS IM_ASK, CHAT_QWEN25, NULL},
    {IM_SYSTEM("You are a helpful assistant.") IM_TURNS IM_ASK, CHAT_QWEN2, NULL},
    {IM_SYSTEM("You are a helpful AI assistant named SmolLM, trained by Hugging Face") IM_TURNS
     IM_ASK, CHAT_SMOLLM2, NULL},
    {TURNS ASK, CHAT_NONE, "it lacks \"<|begin_of_text|>\"; prompts go without one: pass --chat "
                           "none, or --chat llama3 if"},
    {"{{ bos_token }}{% for turn in messages %}" TURN("") "{% endfor %}" ASK, CHAT_NONE,
     "lacks \"trim\""},
    {"{{ bos_token }}" TURNS, CHAT_NONE, "lacks \"the header of an answer\""},
    {"{{ bos_token }}{{ 'Be \\x1bkind.' }}" TURNS ASK, CHAT_NONE, "writes \"Be x1bkind.\""},
    {"{{ bos_token }}" TURNS "\n" ASK "Well,", CHAT_NONE, "writes \"Well,\""},
    {"{{ bos_token }}" TURNS "{{ messages[0].content }}" ASK, CHAT_NONE, "outside of a turn"},
    {"{% for m in messages %}{{ '[INST] ' + m.content + ' [/INST]' }}{% endfor %}", CHAT_NONE,
     "writes \"[INST] \"; prompts go without one: pass --chat none, or --chat NAME"},
    {IM_SYSTEM("You are Orca.") IM_TURNS IM_ASK, CHAT_NONE, "writes \"You are Orca.\""},
    {"{% if tools is none %}{{ 'Alone.' }}{% endif %}" IM_TURNS IM_ASK, CHAT_NONE, "Alone."},
    {"{% if not tools %}{{ 'Alone.' }}{% endif %}" IM_TURNS IM_ASK, CHAT_NONE, "Alone."},
    {"{% if tools or messages %}{{ 'Both.' }}{% endif %}" IM_TURNS IM_ASK, CHAT_NONE, "Both."},
    {"{% set think = true %}{% if think %}{{ '<think>' }}{% endif %}" IM_TURNS IM_ASK, CHAT_NONE,
     "<think>"},
    {"{% for m in messages %}{{ '<|im_start|>' + m.role | upper + '\\n' + m.content + "
     "'<|im_end|>\\n' }}{% endfor %}" IM_ASK, CHAT_NONE, "line 1: it calls upper"},
    {"\n{% macro f(x) %}{{ x }}{% endmacro %}" IM_TURNS IM_ASK, CHAT_NONE,
     "line 2: it has a tag macro"},
    {"", CHAT_NONE, "lacks"},
    {"{{ 'x", CHAT_NONE, "does not end"},
    {"{{ x", CHAT_NONE, "does not end"},
    {"{% if x %}", CHAT_NONE, "does not end"},
    {"{% endif %}", CHAT_NONE, "an end of nothing"},
    {"{% else %}", CHAT_NONE, "a branch of nothing"},
    {"{# x", CHAT_NONE, "does not end"},
    {"{{", CHAT_NONE, "does not end"},
    {"{", CHAT_NONE, "writes \"{\""},
    {"{{ ) ] } }}{%%}", CHAT_NONE, "tag"},
    {"\xff", CHAT_NONE, "not UTF-8"},
};

/* The choice of --chat auto for a template whose bos_token is `bos`. */
static enum chat judge(const char *text, size_t n, const char *bos, struct chat_choice *c)
{
    struct chat_source own = {text, n, bos, "<|eot_id|>", "there/tokenizer_config.json", ""};
    struct err e = {0};
    ok(!chat_choose("auto", &own, CHAT_LLAMA3, "m", all, c, &e), "auto refuses no template %s",
       e.text);
    return c->kind;
}

static void test_published(void)
{
    for (size_t i = 0; i < sizeof published / sizeof *published; i++) {
        const struct published *p = &published[i];
        struct chat_choice c;
        enum chat got = judge(p->text, strlen(p->text), "<|begin_of_text|>", &c);
        int said = strstr(c.said.text, p->said ? p->said : chat_name(p->kind)) &&
                   strstr(c.said.text, "there/tokenizer_config.json: ");
        ok(got == p->kind && c.unknown == !p->kind && said, "template %zu: %s: %s", i,
           chat_name(got), c.said.text);
    }
    struct chat_choice c;
    static const char with[] = "{{ bos_token }}" TURNS ASK;
    static const char im[] = "{{ bos_token }}" IM_TURNS IM_ASK;
    ok(judge(with, sizeof with - 1, "<|startoftext|>", &c) == CHAT_LLADA, "bos_token is a name");
    ok(judge(im, sizeof im - 1, NULL, &c) == CHAT_CHATML, "... of nothing, where there is none");
    ok(!judge(with, sizeof with - 1, "<s>", &c) && strstr(c.said.text, "<s>"), "... of another");
    static const char nul[] = IM_TURNS IM_ASK "\0more";
    ok(!judge(nul, sizeof nul - 1, NULL, &c) && c.unknown, "U+0000 ends nothing: %s", c.said.text);
}

/* n times `text`, then `end`. */
static void hostile(const char *text, size_t n, const char *end, const char *want)
{
    struct buf b = {0};
    struct chat_choice c;
    for (size_t i = 0; i < n; i++)
        buf_text(&b, text);
    buf_text(&b, end);
    ok(!judge(b.data, b.len, NULL, &c) && c.unknown && strstr(c.said.text, want), "%zu x %s: %s", n,
       text, c.said.text);
    buf_free(&b);
}

static void test_hostile(void)
{
    hostile("x", 1 << 20, "", "expected at most 262144 bytes, got 1048576");
    hostile("{% if x %}", 20000, "", "nested too deep");
    hostile("{% if x %}", 64, "", "does not end");
    hostile("{{ x }}", 30000, "", "outside of a turn");
    hostile("{%set a='b'%}", 100, "", "too many names");
    hostile("(", 100000, "", "writes \"((");
    hostile("{{", 100000, "", "tag");
    hostile("{% if (((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((x %}", 60, "",
            "does not end");
    hostile("{%if not not not tools(((]]))) or and or %}y{%endif%}", 4000, "", "writes \"y");
}

static void choose(const char *name, const struct tokenizer *t, int want_bad, enum chat want)
{
    static const struct chat_source none = {.fault = ""};
    struct chat_choice c;
    struct err e = {0};
    int bad = chat_choose(name, &none, CHAT_NONE, "m", t, &c, &e);
    ok(bad ? e.code == want_bad : !want_bad && c.kind == want && !c.unknown, "--chat %s: %d %s",
       name, (int)c.kind, e.text);
}

/* Choice and message of --chat auto when the checkpoint has no template, has one, or has one whose
 * tokens its vocabulary lacks. */
static void choose_own(const char *text, const char *fault, enum chat family,
                       const struct tokenizer *t, enum chat want, const char *said)
{
    struct chat_source own = {text, text ? strlen(text) : 0, "<|startoftext|>", NULL, "file",
                              fault};
    struct chat_choice c;
    struct err e = {0};
    ok(!chat_choose("auto", &own, family, "m", t, &c, &e) && c.kind == want &&
           (*said ? strstr(c.said.text, said) != NULL : !*c.said.text) &&
           c.unknown == (*fault != 0),
       "auto: %d, %s", (int)c.kind, c.said.text);
}

static void test_choose(void)
{
    struct tokenizer *llada = with("<|startoftext|>", 1), *base = with("<|startoftext|>", 0);
    struct tokenizer *llama = with("<|begin_of_text|>", 1);
    static const char ours[] = "{{ bos_token }}" TURNS ASK;
    choose_own(ours, "", CHAT_LLADA, llada, CHAT_LLADA, "file: chat template llada");
    choose_own(ours, "", CHAT_LLADA, base, CHAT_NONE, "no special token <|start_header_id|>");
    choose_own(NULL, "", CHAT_LLADA, llada, CHAT_NONE, "--chat llada applies one");
    choose_own(NULL, "", CHAT_LLADA, base, CHAT_NONE, "");
    choose_own(NULL, "", CHAT_NONE, all, CHAT_NONE, "");
    choose_own(IM_TURNS IM_ASK, "", CHAT_LLAMA3, all, CHAT_CHATML, "chat template chatml");
    choose_own(NULL, "it is a list", CHAT_LLAMA3, llama, CHAT_NONE, "it is a list; prompts go");
    choose("llama3", llama, 0, CHAT_LLAMA3);
    choose("llama3.1", llama, 0, CHAT_LLAMA31);
    choose("llada", llada, 0, CHAT_LLADA);
    choose("none", llada, 0, CHAT_NONE);
    choose("llada", base, EXIT_BAD_DATA, CHAT_NONE);
    choose("llama3", llada, EXIT_BAD_DATA, CHAT_NONE);
    choose("chatml", llama, EXIT_BAD_DATA, CHAT_NONE);
    choose("vicuna", llama, EXIT_BAD_USAGE, CHAT_NONE);
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
    test_published();
    test_hostile();
    test_choose();
    test_encode();
    fixture_end();
    return tap_done();
}
