/* test-template.c - chat templates: each runs within its limits, or the message names the obstacle;
 * the choice of --chat auto. */
#include "lib/text/chat.h"
#include "lib/text/jinja.h"
#include "lib/text/tokenizer.h"
#include "tests/fuzz/fuzz.h"

static int fuzz_seed(size_t i, struct buf *to)
{
    static const char *const text[] = {
        "{% set loop_messages = messages %}{% for message in loop_messages %}"
        "{% set content = '<|start_header_id|>' + message['role'] + '<|end_header_id|>\n\n'+ "
        "message['content'] | trim + '<|eot_id|>' %}{% if loop.index0 == 0 %}"
        "{% set content = bos_token + content %}{% endif %}{{ content }}{% endfor %}"
        "{% if add_generation_prompt %}{{ 'assistant\n\n' }}{% endif %}",
        "{%- if tools and not (x or y[1]) %}\n{{- raise_exception(\"no\") }}\n{%- elif a is not "
        "none %}{{ '<|im_start|>system\nYou are.<|im_end|>\n' }}{%- endif -%}\n"
        "{# a comment -#} {%- for m in messages[::-1] -%}\n{{ '<|im_start|>' ~ m.role + '\\n' + "
        "m.content.strip() + '<|im_end|>' + '\\n' }}{%- endfor %}",
        "{% macro f(a, b='q') %}[{{ a[1:3] }}-{{ b }}]{% endmacro %}{% set ns = namespace(n=1) %}"
        "{% for k, v in messages[0].items() if k not in ['x'] %}{% set ns.n = ns.n * 3 - "
        "loop.index %}{{ f(v, b=ns.n) }}{% if loop.last %}{% break %}{% endif %}{% endfor %}",
        "{{ messages | selectattr('role', 'equalto', 'user') | map(attribute='content') | list | "
        "tojson(indent=2) }}{{ {'a': (1, none), 'b': [true]} }}{% set x | upper %}a{{ 'b' * 3 }}"
        "{% endset %}{{ x.split('B', 1) | join('-') | replace('A', x) }}{{ -7 // 2 % 3 }}",
        "{% filter trim %} {% generation %}{{ messages[0]['content'].replace('i', '') | title "
        "if messages else 'none' | default(x, true) }}{% endgeneration %}{% endfilter %}"
        "{{ '\\x41\\u00e9' 'b' | first ~ strftime_now('%d %b %Y') }}"
        "{{ range(3) | reverse | list }}",
    };
    if (i < sizeof text / sizeof *text)
        buf_text(to, text[i]);
    return to->len > 0;
}

/* The choice of --chat auto. */
static void choose(const char *bytes, size_t n)
{
    static struct tokenizer *t;
    struct chat_source own = {bytes, n, NULL, "template", ""};
    struct chat_choice choice = {0};
    struct err e = {0};
    t = t ? t : tokenizer_load("data/models/llama-demo", NULL);
    fuzz_check(!chat_choose("auto", &own, CHAT_LLAMA3, "model", t, &choice, &e));
    fuzz_check(*choice.said.text && !choice.chosen == (choice.unknown || strstr(
                   choice.said.text, "no chat template")));
    chat_free(choice.chosen);
}

static void fuzz_one(const char *bytes, size_t n)
{
    static json_t *all;
    struct err e = {0};
    struct jinja_written w = {{0}, {0}};
    if (!all)
        all = json_pack("{s:[{s:s,s:s},{s:s,s:s}],s:s,s:n,s:b}", "messages", "role", "user",
                        "content", " Hi <|eot_id|>\n", "role", "assistant", "content", "\u00e9",
                        "bos_token", "<s>", "tools", "add_generation_prompt", 1);
    struct jinja *program = jinja_parse(bytes, n, &e);
    if (!program || jinja_render(program, all, &w, &e)) {
        fuzz_check_refused(&e);
        fuzz_check(e.code == EXIT_BAD_DATA);
    } else {
        fuzz_check(w.text.len == w.given.len && w.text.len <= 64 << 20);
        for (size_t i = 0; i < w.given.len; i++)
            fuzz_check((unsigned char)w.given.data[i] <= 1);
    }
    jinja_written_free(&w);
    jinja_free(program);
    if (n % 8 == 0) /* it parses and runs the template again */
        choose(bytes, n);
}

FUZZ_TARGET("template", 2000)
