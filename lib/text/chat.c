/* chat.c - the table of chat templates, the choice of a template, and the ids of messages.
 *
 * A template is rendered to one text, and each byte is marked if it comes from a message. A special
 * token counts only if none of its bytes is marked. The date in the system block of LLaMA 3.1 is a
 * constant, and so is the date that a checkpoint's own template gets (jinja.h), because otherwise
 * prompts of different days could not be compared. */
#include "lib/text/chat.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/mem.h"
#include "lib/text/jinja.h"
#include "lib/text/utf8.h"

struct chat_template {
    const char *name;
    struct jinja *program;
    json_t *variables; /* all variables of the template except `messages` */
};

#define HEADER(role) "<|start_header_id|>" role "<|end_header_id|>\n\n"
#define TURN(of) HEADER("{{ " of ".role }}") "{{ " of ".content | trim }}<|eot_id|>"
#define ASK "{{ '<|start_header_id|>assistant<|end_header_id|>\\n\\n' }}"
#define TURNS "{% for m in messages %}" TURN("m") "{% endfor %}" ASK
#define IM_TURNS                                                                                \
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"  \
    "{{ '<|im_start|>assistant\\n' }}"
#define IM_OTHERWISE(text)                                                                      \
    "{% if messages | length == 0 or messages[0].role != 'system' %}<|im_start|>system\n" text  \
    "<|im_end|>\n{% endif %}" IM_TURNS
#define HAS_SYSTEM "messages and messages[0].role == 'system'"
static const struct row {
    const char *name; /* word of --chat */
    const char *end;  /* token after a content */
    const char *text; /* the template, in Jinja */
} rows[CHAT_COUNT] = {
    [CHAT_NONE] = {"none", NULL, NULL},
    [CHAT_LLAMA3] = {"llama3", "<|eot_id|>", "<|begin_of_text|>" TURNS},
    [CHAT_LLAMA31] = {"llama3.1", "<|eot_id|>",
                      "<|begin_of_text|>" HEADER("system")
                      "Cutting Knowledge Date: December 2023\nToday Date: 26 Jul 2024\n\n"
                      "{% if " HAS_SYSTEM " %}{{ messages[0].content | trim }}"
                      "{% set messages = messages[1:] %}{% endif %}<|eot_id|>" TURNS},
    [CHAT_LLADA] = {"llada", "<|eot_id|>", "<|startoftext|>" TURNS},
    [CHAT_CHATML] = {"chatml", "<|im_end|>", IM_TURNS},
    [CHAT_CHATML_BOS] = {"chatml_bos", "<|im_end|>", "<|begin_of_text|>" IM_TURNS},
    [CHAT_QWEN2] = {"qwen2", "<|im_end|>", IM_OTHERWISE("You are a helpful assistant.")},
    [CHAT_QWEN25] = {"qwen2.5", "<|im_end|>",
                     IM_OTHERWISE("You are Qwen, created by Alibaba Cloud. "
                                  "You are a helpful assistant.")},
    [CHAT_SMOLLM2] = {"smollm2", "<|im_end|>",
                      IM_OTHERWISE("You are a helpful AI assistant named SmolLM, trained by "
                                   "Hugging Face")},
};
/* Tokens that begin and end turns. The tokenizer of a base model may lack some of them. Other names
 * in <|...|> are not checked, because they may be ordinary text, as <|user|> is for Zephyr. */
static const char *const controls[] = {
    "<|begin_of_text|>", "<|startoftext|>", "<|start_header_id|>", "<|end_header_id|>",
    "<|eot_id|>", "<|im_start|>", "<|im_end|>"};

const char *chat_name(const struct chat_template *chat)
{
    return chat ? chat->name : rows[CHAT_NONE].name;
}

const char *chat_end(enum chat kind)
{
    return rows[kind].end;
}

void chat_free(struct chat_template *chat)
{
    if (chat) {
        jinja_free(chat->program);
        json_decref(chat->variables);
    }
    free(chat);
}

/* Parses a template. NULL: *why has the line and the reason. */
static struct chat_template *make(const char *name, const char *text, size_t n,
                                  const json_t *tokens, struct err *why)
{
    struct jinja *program = jinja_parse(text, n, why);
    if (!program)
        return NULL;
    struct chat_template *chat = mem_zero(1, sizeof *chat);
    chat->name = name;
    chat->program = program;
    chat->variables = json_pack("{s:b,s:n,s:n}", "add_generation_prompt", 1, "tools",
                                    "documents");
    json_object_update(chat->variables, (json_t *)(uintptr_t)tokens);
    return chat;
}

static int render(const struct chat_template *chat, const struct chat_message *message,
                  size_t n, struct jinja_written *to, struct err *e)
{
    *to = (struct jinja_written){{0}, {0}};
    json_t *list = json_array(), *all = json_copy(chat->variables);
    int bad = 0;
    for (size_t i = 0; i < n && !bad; i++) {
        const char *text[] = {message[i].role, message[i].content};
        for (int k = 0; k < 2 && !bad; k++) {
            size_t len = strlen(text[k]), good = len ? utf8_valid(text[k], len) : 0;
            if (good < len)
                bad = err_set(e, EXIT_BAD_DATA, "text: byte %zu: expected UTF-8, got 0x%02X", good,
                              (unsigned char)text[k][good]);
        }
        if (!bad)
            json_array_append_new(list, json_pack("{s:s,s:s}", "role", text[0], "content",
                                                  text[1]));
    }
    json_object_set_new(all, "messages", list);
    bad = bad || jinja_render(chat->program, all, to, e) ? -1 : 0;
    json_decref(all);
    return bad;
}

/* The first control token that the template writes and the tokenizer lacks; NULL: none. Sets *why
 * if the template cannot be run for a user's message. */
static const char *find_lacking(const struct chat_template *chat,
                                const struct tokenizer *tokenizer, struct err *why)
{
    static const struct chat_message user = {"user", "x"};
    struct jinja_written written;
    const char *lacks = NULL;
    if (!render(chat, &user, 1, &written, why) &&
        (!written.given.len || !memchr(written.given.data, 1, written.given.len)))
        err_set(why, EXIT_BAD_DATA, "it does not write the message of a user");
    for (size_t i = 0; !lacks && written.text.len && i < sizeof controls / sizeof *controls; i++)
        if (memmem(written.text.data, written.text.len, controls[i], strlen(controls[i])) &&
            !tokenizer_is_special(tokenizer, tokenizer_id(tokenizer, controls[i])))
            lacks = controls[i];
    jinja_written_free(&written);
    return lacks;
}

/* Sets EXIT_BAD_USAGE; the message lists all names. */
static int refuse_name(const char *name, struct err *e)
{
    char list[160] = "auto";
    for (int k = 0; k < CHAT_COUNT; k++) {
        size_t n = strlen(list);
        snprintf(list + n, sizeof list - n, "%s%s", k + 1 < CHAT_COUNT ? ", " : " or ",
                 rows[k].name);
    }
    return err_set(e, EXIT_BAD_USAGE, "--chat: expected %s, got \"%s\"", list, name);
}

/* Chooses for --chat auto, and writes the message about the choice to to->said. */
static void choose_own(const struct chat_source *own, enum chat family, const char *model,
                       const struct tokenizer *tokenizer, struct chat_choice *to)
{
    struct err why = {0};
    const char *lacks = NULL;
    if (!own->text && !*own->fault) {
        struct chat_template *usual = family ? make("", rows[family].text,
                                                    strlen(rows[family].text), NULL, NULL) : NULL;
        if (usual && !find_lacking(usual, tokenizer, &why))
            err_set(&to->said, EXIT_OK, "%s: no chat template: the checkpoint has none (a "
                    "base model?); --chat %s applies one", model, rows[family].name);
        chat_free(usual);
        return;
    }
    if (*own->fault)
        err_set(&why, EXIT_BAD_DATA, "%s", own->fault);
    else if ((to->chosen = make("own", own->text, own->n, own->tokens, &why)))
        lacks = find_lacking(to->chosen, tokenizer, &why);
    to->unknown = why.code != 0;
    if (to->unknown)
        err_set(&to->said, EXIT_OK, "%s: a chat template that does not run here: %s; prompts go "
                "without one: pass --chat none, or --chat NAME for a similar template",
                own->where, why.text);
    else if (lacks)
        err_set(&to->said, EXIT_OK, "%s: no chat template: one is there, but tokenizer.json has "
                "no special token %s (a base model?)", own->where, lacks);
    else
        err_set(&to->said, EXIT_OK, "%s: chat template of the checkpoint", own->where);
    if (to->unknown || lacks) {
        chat_free(to->chosen);
        to->chosen = NULL;
    }
}

int chat_choose(const char *name, const struct chat_source *own, enum chat family,
                const char *model, const struct tokenizer *tokenizer, struct chat_choice *out,
                struct err *e)
{
    *out = (struct chat_choice){0};
    if (!strcmp(name, "auto")) {
        choose_own(own, family, model, tokenizer, out);
        return 0;
    }
    for (int k = 0; k < CHAT_COUNT; k++) {
        if (strcmp(name, rows[k].name) != 0)
            continue;
        if (k == CHAT_NONE)
            return 0;
        out->chosen = make(rows[k].name, rows[k].text, strlen(rows[k].text), NULL, e);
        err_set(&out->said, EXIT_OK, "%s: chat template %s (--chat)", model, name);
        const char *lacks = out->chosen ? find_lacking(out->chosen, tokenizer, e) : NULL;
        if (lacks)
            err_set(e, EXIT_BAD_DATA,
                    "%s: chat template %s: expected special token %s in tokenizer.json,"
                    " got none (a base model? try --chat none)", model, name, lacks);
        if (!lacks && out->chosen)
            return 0;
        chat_free(out->chosen);
        out->chosen = NULL;
        return -1;
    }
    return refuse_name(name, e);
}

/* Appends the ids of the contents without a template, with a line feed between two contents. */
static int encode_bare(const struct tokenizer *tokenizer, const struct chat_message *message,
                       size_t n, int flags, struct ids *out, struct err *e)
{
    struct buf text = {0};
    for (size_t i = 0; i < n; i++)
        buf_format(&text, "%s%s", i ? "\n" : "", message[i].content);
    int bad = text.len ? tokenizer_encode(tokenizer, text.data, text.len, flags, out, e) : 0;
    buf_free(&text);
    return bad;
}

int chat_encode(const struct chat_template *chat, const struct tokenizer *tokenizer,
                const struct chat_message *message, size_t n, int parse_special, struct ids *out,
                struct err *e)
{
    if (!chat)
        return encode_bare(tokenizer, message, n, parse_special ? 0 : ENCODE_PLAIN, out, e);
    struct jinja_written written;
    int bad = render(chat, message, n, &written, e);
    if (bad)
        err_prefix(e, "chat template %s", chat->name);
    else if (written.text.len)
        bad = tokenizer_encode_marked(tokenizer, written.text.data, written.text.len,
                                      parse_special ? NULL : written.given.data, out, e);
    jinja_written_free(&written);
    return bad;
}
