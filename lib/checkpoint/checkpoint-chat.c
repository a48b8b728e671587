/* checkpoint-chat.c - finds the chat template of a checkpoint: chat_template.jinja, else
 * chat_template of tokenizer_config.json, else chat_template.json.
 *
 * A file has one template or a list of named templates; the template named "default" is for plain
 * conversations. A value of another type does not stop the model: source.fault becomes a
 * warning. */
#include <stdlib.h>
#include <string.h>

#include "lib/base/file.h"
#include "lib/base/mem.h"
#include "lib/checkpoint/checkpoint.h"
#include "lib/record/json.h"

enum { FILE_MAX_BYTES = 16 << 20, TOKEN_MAX_BYTES = 256 };

/* Sets chat->path to folder/name. 0: this file does not exist. */
static int find(struct checkpoint_chat *chat, const char *folder, const char *name)
{
    free(chat->path);
    chat->path = mem_format("%s/%s", folder, name);
    return file_exists(chat->path);
}

static void take(struct checkpoint_chat *chat, const json_t *text)
{
    chat->source.text = json_string_value(text);
    chat->source.n = json_string_length(text);
}

/* Takes the member chat_template: a text, or a list of {name, template}. Returns 0 if there is no
 * such member; 1 if a template or a fault was set. */
static int take_member(struct checkpoint_chat *chat, const json_t *object)
{
    const json_t *value = json_object_get(object, "chat_template"), *one, *text = NULL;
    size_t i;
    if (!value || json_is_null(value))
        return 0;
    if (json_is_string(value))
        take(chat, value);
    json_array_foreach(value, i, one) {
        const char *name = json_string_value(json_object_get(one, "name"));
        if (name && !strcmp(name, "default"))
            text = json_object_get(one, "template");
    }
    if (json_is_string(text))
        take(chat, text);
    else if (json_is_array(value))
        chat->source.fault = "chat_template is a list without a text named \"default\"";
    else if (!json_is_string(value))
        chat->source.fault = "chat_template is neither a text nor a list of named texts";
    return 1;
}

/* Returns {"bos_token": "TEXT", ...}. In tokenizer_config.json a token is a text or
 * {"content": "TEXT"}. */
static json_t *tokens_of(const json_t *object)
{
    json_t *tokens = json_object(), *value;
    const char *key;
    json_object_foreach((json_t *)(uintptr_t)object, key, value) {
        json_t *inner = json_object_get(value, "content"), *text = inner ? inner : value;
        size_t n = strlen(key);
        if (n > 6 && !strcmp(key + n - 6, "_token") && json_is_string(text) &&
            json_string_length(text) <= TOKEN_MAX_BYTES)
            json_object_set(tokens, key, text);
    }
    return tokens;
}

int checkpoint_chat(const struct checkpoint *model, struct checkpoint_chat *out, struct err *e)
{
    *out = (struct checkpoint_chat){.source.fault = ""};
    if (!model->folder)
        return 0;
    if (model->tokenizer) {
        out->config = checkpoint_gguf_chat(model);
        out->path = mem_text(safetensors_file(model->tensors, 0));
        out->source.tokens = out->tokens = tokens_of(out->config);
        take_member(out, out->config);
        out->source.where = out->path;
        return 0;
    }
    if (find(out, model->folder, "tokenizer_config.json") &&
        !(out->config = json_file(out->path, FILE_MAX_BYTES, e)))
        return -1;
    out->source.tokens = out->tokens = tokens_of(out->config);
    if (find(out, model->folder, "chat_template.jinja")) {
        if (file_read(out->path, FILE_MAX_BYTES, &out->text, e))
            return -1;
        out->source.text = out->text.data ? out->text.data : "";
        out->source.n = out->text.len;
    } else if (!(find(out, model->folder, "tokenizer_config.json"),
                 take_member(out, out->config)) &&
               find(out, model->folder, "chat_template.json")) {
        if (!(out->processor = json_file(out->path, FILE_MAX_BYTES, e)))
            return -1;
        take_member(out, out->processor);
    }
    out->source.where = out->path;
    return 0;
}

void checkpoint_chat_free(struct checkpoint_chat *chat)
{
    json_decref(chat->config);
    json_decref(chat->tokens);
    json_decref(chat->processor);
    buf_free(&chat->text);
    free(chat->path);
    *chat = (struct checkpoint_chat){0};
}
