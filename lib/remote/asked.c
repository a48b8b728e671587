/* asked.c - see asked.h. The form of a prompt is checked when its request is made, so that a bad
 * prompt loses only its own request. */
#include "lib/remote/asked.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/mem.h"
#include "lib/record/json.h"
#include "lib/record/rec.h"

static int take(void *ctx, json_t *record, const char *where, struct err *why)
{
    struct asked *asked = ctx;
    (void)why;
    MEM_GROW(asked->v, asked->n, asked->cap);
    asked->v[asked->n++] = (struct asked_prompt){record, mem_text(where), rec_text(record, "id")};
    return 0;
}

int asked_read(struct asked *asked, const char *const *files, size_t n_files, int64_t limit,
               struct err *e)
{
    *asked = (struct asked){0};
    return prompt_input_read(&asked->in, files, n_files, limit, take, asked, e);
}

void asked_free(struct asked *asked)
{
    for (size_t i = 0; i < asked->n; i++) {
        json_decref(asked->v[i].record);
        free(asked->v[i].where);
    }
    free(asked->v);
    prompt_input_free(&asked->in);
    *asked = (struct asked){0};
}

/* ---- requests ---- */

const char *asked_path(const struct settings *point)
{
    return settings_is(point, "api", "chat") ? "/chat/completions" : "/completions";
}

/* Sets the prompt of a request for completions. */
static int put_prompt(json_t *body, const struct asked_prompt *prompt, struct err *e)
{
    json_t *text = json_object_get(prompt->record, "text");
    json_t *ids = json_object_get(prompt->record, "prompt_ids");
    if (json_is_string(text))
        return json_object_set(body, "prompt", text);
    if (json_is_array(ids))
        return json_object_set(body, "prompt", ids);
    return err_set(e, EXIT_BAD_DATA, "prompt '%.200s': expected text or prompt_ids%s", prompt->id,
                   json_object_get(prompt->record, "messages") ? ": messages need --api chat" : "");
}

/* Sets the messages of a request for chat. */
static int put_messages(json_t *body, const struct asked_prompt *prompt, struct err *e)
{
    json_t *text = json_object_get(prompt->record, "text");
    json_t *messages = json_object_get(prompt->record, "messages");
    if (json_is_array(messages))
        return json_object_set(body, "messages", messages);
    if (json_is_string(text))
        return json_object_set_new(body, "messages",
                                   json_pack("[{s:s, s:O}]", "role", "user", "content", text));
    return err_set(e, EXIT_BAD_DATA, "prompt '%.200s': expected text or messages", prompt->id);
}

/* Sets the members that the settings of the point ask for. */
static void put_settings(json_t *body, const struct settings *settings)
{
    const size_t k = settings_count(settings, "top_k");
    json_object_set_new(body, "max_tokens",
                        json_integer((json_int_t)settings_count(settings, "max_new")));
    json_object_set_new(body, "temperature", json_real(settings_number(settings, "temperature")));
    if (settings_counts(settings, settings_find(settings->table, "top_p")))
        json_object_set_new(body, "top_p", json_real(settings_number(settings, "top_p")));
    if (settings_counts(settings, settings_find(settings->table, "top_k")) && k)
        json_object_set_new(body, "top_k", json_integer((json_int_t)k));
    if (settings_is(settings, "contract", "fixed"))
        json_object_set_new(body, "ignore_eos", json_true());
}

char *asked_body(const struct asked_prompt *prompt, const struct asked_how *how, size_t *n,
                 struct err *e)
{
    json_t *body = json_pack("{s:s, s:b, s:{s:b}, s:I}", "model", how->model, "stream", 1,
                             "stream_options", "include_usage", 1, "seed",
                             (json_int_t)(how->seed & INT32_MAX));
    int forms = 0;
    static const char *const names[] = {"text", "messages", "prompt_ids"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        forms += json_has(prompt->record, names[i]);
    put_settings(body, how->point);
    int bad = forms != 1 ? err_set(e, EXIT_BAD_DATA, "prompt '%.200s': expected one of text, "
                                   "messages, prompt_ids, got %d of them", prompt->id, forms)
              : settings_is(how->point, "api", "chat") ? put_messages(body, prompt, e)
                                                       : put_prompt(body, prompt, e);
    if (!bad && how->more)
        json_object_update(body, (json_t *)(uintptr_t)how->more);
    char *text = bad ? NULL : json_dumps(body, JSON_COMPACT);
    json_decref(body);
    *n = text ? strlen(text) : 0;
    return text;
}

char *asked_text(const struct asked_prompt *prompt)
{
    const char *text = rec_text(prompt->record, "text");
    const json_t *list = json_object_get(prompt->record, "messages"), *message;
    struct buf all = {0};
    size_t i;
    if (text)
        return mem_text(text);
    json_array_foreach(list, i, message) {
        const char *content = rec_text(message, "content");
        buf_format(&all, "%s%s", i ? "\n\n" : "", content ? content : "");
    }
    return all.data;
}

int64_t asked_tokens(const struct asked_prompt *prompt, const struct tokenizer *tokenizer)
{
    const json_t *given = json_object_get(prompt->record, "prompt_ids");
    const int chat = json_has(prompt->record, "messages");
    char *text = asked_text(prompt);
    struct ids ids = {0};
    struct err ignored = {0};
    int64_t n = json_is_array(given) ? (int64_t)json_array_size(given) : -1;
    const int flags = chat ? ENCODE_PLAIN : ENCODE_SPECIAL | ENCODE_PLAIN;
    if (n < 0 && tokenizer && text &&
        !tokenizer_encode(tokenizer, text, strlen(text), flags, &ids, &ignored))
        n = (int64_t)ids.n;
    ids_free(&ids);
    free(text);
    return n;
}
