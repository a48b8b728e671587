/* checkpoint-chat.c - finds the chat template of a checkpoint: chat_template.jinja, else
 * chat_template of tokenizer_config.json, else chat_template.json.
 *
 * A file has one template or a list of named templates, of which "default" is for plain
 * conversations. A value of another type does not refuse the model: a warning reports it. */
#include <stdlib.h>
#include <string.h>

#include "lib/base/file.h"
#include "lib/base/mem.h"
#include "lib/checkpoint/checkpoint.h"
#include "lib/record/json.h"

enum { FILE_MAX_BYTES = 16 << 20, TOKEN_MAX_BYTES = 256 };

/* Sets c->path. 0: there is no such file. */
static int find(struct checkpoint_chat *c, const char *folder, const char *name)
{
    free(c->path);
    c->path = mem_format("%s/%s", folder, name);
    return file_exists(c->path);
}

static void take(struct checkpoint_chat *c, const json_t *text)
{
    c->source.text = json_string_value(text);
    c->source.n = json_string_length(text);
}

/* Takes a text or a list of {name, template}. 0: there is no template and no fault. */
static int take_member(struct checkpoint_chat *c, const json_t *o)
{
    const json_t *v = json_object_get(o, "chat_template"), *one, *text = NULL;
    size_t i;
    if (!v || json_is_null(v))
        return 0;
    if (json_is_string(v))
        take(c, v);
    json_array_foreach(v, i, one) {
        const char *name = json_string_value(json_object_get(one, "name"));
        if (name && !strcmp(name, "default"))
            text = json_object_get(one, "template");
    }
    if (json_is_string(text))
        take(c, text);
    else if (json_is_array(v))
        c->source.fault = "chat_template is a list without a text named \"default\"";
    else if (!json_is_string(v))
        c->source.fault = "chat_template is neither a text nor a list of named texts";
    return 1;
}

/* {"bos_token": "TEXT", ...}: in the file, a token is a text or {"content": "TEXT"}. */
static json_t *tokens_of(const json_t *o)
{
    json_t *tokens = json_object(), *v;
    const char *key;
    json_object_foreach((json_t *)(uintptr_t)o, key, v) {
        json_t *inner = json_object_get(v, "content"), *text = inner ? inner : v;
        size_t n = strlen(key);
        if (n > 6 && !strcmp(key + n - 6, "_token") && json_is_string(text) &&
            json_string_length(text) <= TOKEN_MAX_BYTES)
            json_object_set(tokens, key, text);
    }
    return tokens;
}

int checkpoint_chat(const struct checkpoint *c, struct checkpoint_chat *out, struct err *e)
{
    *out = (struct checkpoint_chat){.source.fault = ""};
    if (!c->folder)
        return 0;
    if (c->tokenizer) {
        out->config = checkpoint_gguf_chat(c);
        out->path = mem_text(safetensors_file(c->tensors, 0));
        out->source.tokens = out->tokens = tokens_of(out->config);
        take_member(out, out->config);
        out->source.where = out->path;
        return 0;
    }
    if (find(out, c->folder, "tokenizer_config.json") &&
        !(out->config = json_file(out->path, FILE_MAX_BYTES, e)))
        return -1;
    out->source.tokens = out->tokens = tokens_of(out->config);
    if (find(out, c->folder, "chat_template.jinja")) {
        if (file_read(out->path, FILE_MAX_BYTES, &out->text, e))
            return -1;
        out->source.text = out->text.data ? out->text.data : "";
        out->source.n = out->text.len;
    } else if (!(find(out, c->folder, "tokenizer_config.json"), take_member(out, out->config)) &&
               find(out, c->folder, "chat_template.json")) {
        if (!(out->processor = json_file(out->path, FILE_MAX_BYTES, e)))
            return -1;
        take_member(out, out->processor);
    }
    out->source.where = out->path;
    return 0;
}

void checkpoint_chat_free(struct checkpoint_chat *c)
{
    json_decref(c->config);
    json_decref(c->tokens);
    json_decref(c->processor);
    buf_free(&c->text);
    free(c->path);
    *c = (struct checkpoint_chat){0};
}
