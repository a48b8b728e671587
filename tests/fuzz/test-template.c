/* test-template.c - chat templates: the scanner finds the text that a template writes, or names the
 * obstacle; and recognizes the templates of --chat. */
#include "lib/text/chat.h"
#include "lib/text/jinja.h"
#include "lib/text/tokenizer.h"
#include "tests/fuzz/fuzz.h"

#define SAYS "{{ '<|start_header_id|>' + message['role'] + '<|end_header_id|>\n\n' + "            \
    "message['content'] | trim + '<|eot_id|>' }}"

static int fuzz_seed(size_t i, struct buf *to)
{
    static const char *const text[] = {
        "{% set loop_messages = messages %}{% for message in loop_messages %}"
        "{% set content = '<|start_header_id|>' + message['role'] + '<|end_header_id|>\n\n'+ "
        "message['content'] | trim + '<|eot_id|>' %}{% if loop.index0 == 0 %}"
        "{% set content = bos_token + content %}{% endif %}{{ content }}{% endfor %}"
        "{% if add_generation_prompt %}"
        "{{ '<|start_header_id|>assistant<|end_header_id|>\n\n' }}{% endif %}",
        "{%- if tools and not (x or y[1]) %}\n{{- raise_exception(\"no\") }}\n{%- elif a is not "
        "none %}{{ '<|im_start|>system\nYou are a helpful assistant.<|im_end|>\n' }}{%- endif -%}\n"
        "{# a comment -#} {%- for m in messages -%}\n{{ '<|im_start|>' ~ m.role + '\\n' + "
        "m.content.strip() + '<|im_end|>' + '\\n' }}{%- endfor %}",
        "{{ bos_token }}{% for message in messages %}" SAYS "{% endfor %}"
        "{% if m[1:] %}x{% endif %}",
    };
    if (i < sizeof text / sizeof *text)
        buf_text(to, text[i]);
    return to->len > 0;
}

static void fuzz_one(const char *bytes, size_t n)
{
    static struct tokenizer *t;
    struct err e = {0};
    struct jinja_written w;
    t = t ? t : tokenizer_load("data/models/llama-demo", NULL);
    if (jinja_read(&w, bytes, n, "<|begin_of_text|>", NULL, &e)) {
        fuzz_check_refused(&e);
        fuzz_check(e.code == EXIT_BAD_DATA);
    } else {
        fuzz_check(!w.text.len || !memchr(w.text.data, 0, w.text.len));
        fuzz_check(w.text.len <= 64 * n + 64);
    }
    jinja_free(&w);
    struct chat_source own = {bytes, n, "<|begin_of_text|>", NULL, "template", ""};
    struct chat_choice choice = {0};
    e = (struct err){0};
    if (chat_choose("auto", &own, CHAT_LLAMA3, "model", t, &choice, &e))
        fuzz_check_refused(&e);
}

FUZZ_TARGET("template", 2000)
