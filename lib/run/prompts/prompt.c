/* prompt.c - see prompt.h. A record has one of three forms. All become ids that are checked in one
 * place: inside the vocabulary, no mask id, and not empty if the model needs a first token. */
#include "lib/run/prompts/prompt.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/hash64.h"
#include "lib/base/mem.h"
#include "lib/base/rng.h"
#include "lib/record/json.h"

enum { SOME_IDS = 256 }; /* initial capacity */

static int is_special_id(const struct config *config, int64_t id)
{
    int special = id == config->bos || id == config->pad || id == config->mask || id == config->eot;
    for (size_t i = 0; i < config->n_eos; i++)
        special |= config->eos[i] == id;
    return special;
}

void prompt_pseudo_ids(const struct config *config, const char *text, struct ids *out)
{
    static const char space[] = " \t\r\n";
    for (text += strspn(text, space); *text; text += strspn(text, space)) {
        size_t n = strcspn(text, space);
        uint64_t h = hash64_fnv(HASH64_FNV, text, n);
        text += n;
        int64_t id = (int64_t)(h % config->vocab);
        while (is_special_id(config, id))
            id = (id + 1) % (int64_t)config->vocab;
        ids_push(out, (int32_t)id);
    }
}

static int encode_text(const struct prompt_encoder *encoder, const char *text, size_t n, int flags,
                       struct ids *out, struct err *e)
{
    if (!encoder->parse_special)
        flags |= ENCODE_PLAIN;
    return tokenizer_encode(encoder->tokenizer, text, n, flags, out, e);
}

static int encode_chat(const struct prompt_encoder *encoder, const struct chat_message *message,
                       size_t n, struct ids *out, struct err *e)
{
    for (size_t i = 0; i < n; i++)
        if (strstr(message[i].role, "<|"))
            return err_set(e, EXIT_BAD_DATA,
                           "messages[%zu].role: expected a name such as user, got '%.60s'", i,
                           message[i].role);
    return chat_encode(encoder->chat, encoder->tokenizer, message, n, encoder->parse_special, out,
                       e);
}

/* Encodes without a template: the text of a user, or the messages joined by blank lines. */
static int encode_plain(const struct prompt_encoder *encoder, const char *text, struct ids *out,
                        struct err *e)
{
    if (encoder->tokenizer)
        return encode_text(encoder, text, strlen(text), ENCODE_SPECIAL, out, e);
    if (!encoder->config->synth)
        return err_set(e, EXIT_BAD_DATA,
                       "the checkpoint has no tokenizer.json: expected prompt_ids, got text");
    prompt_pseudo_ids(encoder->config, text, out);
    return 0;
}

static int read_messages(const json_t *list, struct chat_message *message, struct err *e)
{
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *object = json_array_get(list, i);
        if (json_text(object, "messages", "role", &message[i].role, e) ||
            json_text(object, "messages", "content", &message[i].content, e))
            return -1;
    }
    return 0;
}

static int from_messages(struct prompt *prompt, const json_t *list,
                         const struct prompt_encoder *encoder, struct ids *out, struct err *e)
{
    size_t n = json_array_size(list);
    if (!n)
        return err_set(e, EXIT_BAD_DATA, "messages: expected an array of at least one message");
    struct chat_message *message = mem_zero(n, sizeof *message);
    int rc = read_messages(list, message, e);
    struct buf all = {0};
    for (size_t i = 0; i < n && !rc; i++)
        buf_format(&all, "%s%s", i ? "\n\n" : "", message[i].content);
    if (!rc)
        prompt->text = mem_text(all.data ? all.data : "");
    if (!rc)
        rc = encoder->chat ? encode_chat(encoder, message, n, out, e)
                           : encode_plain(encoder, prompt->text, out, e);
    buf_free(&all);
    free(message);
    return rc;
}

static int from_text(struct prompt *prompt, const json_t *text,
                     const struct prompt_encoder *encoder, struct ids *out, struct err *e)
{
    if (!json_is_string(text))
        return err_set(e, EXIT_BAD_DATA, "text: expected a string");
    const char *bytes = json_string_value(text);
    if (strlen(bytes) != json_string_length(text))
        return err_set(e, EXIT_BAD_DATA, "text: holds the character U+0000");
    prompt->text = mem_text(bytes);
    if (!encoder->chat)
        return encode_plain(encoder, bytes, out, e);
    struct chat_message user = {"user", bytes};
    return encode_chat(encoder, &user, 1, out, e);
}

static int from_ids(struct prompt *prompt, const json_t *list, const struct prompt_encoder *encoder,
                    struct ids *out, struct err *e)
{
    if (!json_is_array(list))
        return err_set(e, EXIT_BAD_DATA, "prompt_ids: expected an array of integers");
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *value = json_array_get(list, i);
        int64_t id = json_is_integer(value) ? json_integer_value(value) : -1;
        if (id < 0 || id >= (int64_t)encoder->config->vocab)
            return err_set(e, EXIT_BAD_DATA,
                           "prompt_ids[%zu]: expected an integer from 0 to %zu", i,
                           encoder->config->vocab - 1);
        ids_push(out, (int32_t)id);
    }
    struct buf text = {0};
    if (encoder->tokenizer)
        tokenizer_decode(encoder->tokenizer, out->v, out->n, 0, &text);
    prompt->text = encoder->tokenizer ? mem_text(text.data ? text.data : "") : NULL;
    buf_free(&text);
    return 0;
}

static int check_ids(const struct config *config, struct ids *ids, struct err *e)
{
    /* the row of a prompt token answers with the first new token, so there must be one */
    const int before = config->logit_shift || config->seeds;
    if (before && !ids->n && config->bos >= 0)
        ids_push(ids, (int32_t)config->bos);
    if (before && !ids->n)
        return err_set(e, EXIT_FAILED_RECORDS, "the prompt has no tokens");
    for (size_t i = 0; i < ids->n; i++) {
        if (ids->v[i] < 0 || (size_t)ids->v[i] >= config->vocab)
            return err_set(e, EXIT_BAD_DATA, "token %zu has id %d: expected below %zu", i,
                           (int)ids->v[i], config->vocab);
        if (config->mask >= 0 && ids->v[i] == config->mask)
            return err_set(e, EXIT_FAILED_RECORDS,
                           "prompt token %zu is the mask token %d: expected a prompt without masks",
                           i, (int)ids->v[i]);
    }
    return 0;
}

static int encode(struct prompt *prompt, const struct prompt_encoder *encoder, struct ids *out,
                  struct err *e)
{
    const json_t *object = prompt->record;
    int forms = json_has(object, "text") + json_has(object, "messages") +
                json_has(object, "prompt_ids");
    if (json_has(object, "prompt_ids"))
        return from_ids(prompt, json_object_get(object, "prompt_ids"), encoder, out, e);
    if (forms != 1)
        return err_set(e, EXIT_BAD_DATA, "expected one of text, messages, prompt_ids, got %s",
                       forms ? "several" : "none");
    return json_has(object, "text")
               ? from_text(prompt, json_object_get(object, "text"), encoder, out, e)
               : from_messages(prompt, json_object_get(object, "messages"), encoder, out, e);
}

int prompt_encoder_make(struct prompt_encoder *to, const struct checkpoint *model,
                        const struct tokenizer *tokenizer, const char *chat,
                        struct chat_choice *choice, struct err *e)
{
    struct checkpoint_chat own = {0};
    int is_auto = !strcmp(chat, "auto"), bad = 0;
    *to = (struct prompt_encoder){.config = &model->config, .tokenizer = tokenizer};
    *choice = (struct chat_choice){0};
    if (!tokenizer && !is_auto && strcmp(chat, "none"))
        return err_set(e, EXIT_BAD_DATA, "--chat %s: the checkpoint has no tokenizer", chat);
    if (tokenizer)
        bad = (is_auto && checkpoint_chat(model, &own, e)) ||
              chat_choose(chat, &own.source, model->config.chat, model->config.name, tokenizer,
                          choice, e);
    checkpoint_chat_free(&own);
    to->chat = choice->chosen;
    return bad ? -1 : 0;
}

int prompt_make(struct prompt *prompt, json_t *record, const char *where,
                const struct prompt_encoder *encoder, struct err *e)
{
    *prompt = (struct prompt){.record = record,
                              .where = mem_text(where),
                              .chat = json_has(record, "prompt_ids") ? NULL
                                                                     : chat_name(encoder->chat)};
    struct ids ids = {mem_alloc(SOME_IDS * sizeof *ids.v), 0, SOME_IDS};
    if (json_text(record, where, "id", &prompt->id, e) || encode(prompt, encoder, &ids, e) ||
        check_ids(encoder->config, &ids, e)) {
        ids_free(&ids);
        prompt_free(prompt);
        return -1;
    }
    const json_t *text = json_object_get(record, "text");
    if (json_has(record, "prompt_ids") && json_is_string(text)) {
        free(prompt->text); /* a record with prompt_ids may also hold the text */
        prompt->text = mem_text(json_string_value(text));
    }
    ids.v = mem_resize(ids.v, ids.n, sizeof *ids.v); /* there may be a million prompts */
    prompt->input = (struct generation_input){ids.v, ids.n, rng_derive(0, prompt->id), 0};
    return 0;
}

void prompt_free(struct prompt *prompt)
{
    json_decref(prompt->record);
    free(prompt->where);
    free(prompt->text);
    free((void *)(uintptr_t)prompt->input.ids);
    *prompt = (struct prompt){0};
}
