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

static int is_special_id(const struct config *c, int64_t id)
{
    int special = id == c->bos || id == c->pad || id == c->mask || id == c->eot;
    for (size_t i = 0; i < c->n_eos; i++)
        special |= c->eos[i] == id;
    return special;
}

void prompt_pseudo_ids(const struct config *c, const char *text, struct ids *out)
{
    static const char space[] = " \t\r\n";
    for (text += strspn(text, space); *text; text += strspn(text, space)) {
        size_t n = strcspn(text, space);
        uint64_t h = hash64_fnv(HASH64_FNV, text, n);
        text += n;
        int64_t id = (int64_t)(h % c->vocab);
        while (is_special_id(c, id))
            id = (id + 1) % (int64_t)c->vocab;
        ids_push(out, (int32_t)id);
    }
}

static int encode_text(const struct prompt_encoder *c, const char *text, size_t n, int flags,
                       struct ids *out, struct err *e)
{
    if (!c->parse_special)
        flags |= ENCODE_PLAIN;
    return tokenizer_encode(c->tokenizer, text, n, flags, out, e);
}

static int encode_chat(const struct prompt_encoder *c, const struct chat_message *m, size_t n,
                       struct ids *out, struct err *e)
{
    for (size_t i = 0; i < n; i++)
        if (strstr(m[i].role, "<|"))
            return err_set(e, EXIT_BAD_DATA,
                           "messages[%zu].role: expected a name such as user, got '%.60s'", i,
                           m[i].role);
    return chat_encode(c->chat, c->tokenizer, m, n, c->parse_special, out, e);
}

/* The text of a user, or the messages joined by blank lines, without a template. */
static int encode_plain(const struct prompt_encoder *c, const char *text, struct ids *out,
                        struct err *e)
{
    if (c->tokenizer)
        return encode_text(c, text, strlen(text), ENCODE_SPECIAL, out, e);
    if (!c->config->synth)
        return err_set(e, EXIT_BAD_DATA,
                       "the checkpoint has no tokenizer.json: expected prompt_ids, got text");
    prompt_pseudo_ids(c->config, text, out);
    return 0;
}

static int read_messages(const json_t *list, struct chat_message *m, struct err *e)
{
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *o = json_array_get(list, i);
        if (json_text(o, "messages", "role", &m[i].role, e) ||
            json_text(o, "messages", "content", &m[i].content, e))
            return -1;
    }
    return 0;
}

static int from_messages(struct prompt *p, const json_t *list, const struct prompt_encoder *c,
                         struct ids *out, struct err *e)
{
    size_t n = json_array_size(list);
    if (!n)
        return err_set(e, EXIT_BAD_DATA, "messages: expected an array of at least one message");
    struct chat_message *m = mem_zero(n, sizeof *m);
    int rc = read_messages(list, m, e);
    struct buf all = {0};
    for (size_t i = 0; i < n && !rc; i++)
        buf_format(&all, "%s%s", i ? "\n\n" : "", m[i].content);
    if (!rc)
        p->text = mem_text(all.data ? all.data : "");
    if (!rc)
        rc = c->chat ? encode_chat(c, m, n, out, e) : encode_plain(c, p->text, out, e);
    buf_free(&all);
    free(m);
    return rc;
}

static int from_text(struct prompt *p, const json_t *text, const struct prompt_encoder *c,
                     struct ids *out, struct err *e)
{
    if (!json_is_string(text))
        return err_set(e, EXIT_BAD_DATA, "text: expected a string");
    const char *s = json_string_value(text);
    if (strlen(s) != json_string_length(text))
        return err_set(e, EXIT_BAD_DATA, "text: holds the character U+0000");
    p->text = mem_text(s);
    if (!c->chat)
        return encode_plain(c, s, out, e);
    struct chat_message user = {"user", s};
    return encode_chat(c, &user, 1, out, e);
}

static int from_ids(struct prompt *p, const json_t *list, const struct prompt_encoder *c,
                    struct ids *out, struct err *e)
{
    if (!json_is_array(list))
        return err_set(e, EXIT_BAD_DATA, "prompt_ids: expected an array of integers");
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *v = json_array_get(list, i);
        int64_t id = json_is_integer(v) ? json_integer_value(v) : -1;
        if (id < 0 || id >= (int64_t)c->config->vocab)
            return err_set(e, EXIT_BAD_DATA,
                           "prompt_ids[%zu]: expected an integer from 0 to %zu", i,
                           c->config->vocab - 1);
        ids_push(out, (int32_t)id);
    }
    struct buf text = {0};
    if (c->tokenizer)
        tokenizer_decode(c->tokenizer, out->v, out->n, 0, &text);
    p->text = c->tokenizer ? mem_text(text.data ? text.data : "") : NULL;
    buf_free(&text);
    return 0;
}

static int check_ids(const struct config *c, struct ids *ids, struct err *e)
{
    const int before = c->logit_shift || c->seeds; /* the first token is the answer of a row */
    if (before && !ids->n && c->bos >= 0)
        ids_push(ids, (int32_t)c->bos);
    if (before && !ids->n)
        return err_set(e, EXIT_FAILED_RECORDS, "the prompt has no tokens");
    for (size_t i = 0; i < ids->n; i++) {
        if (ids->v[i] < 0 || (size_t)ids->v[i] >= c->vocab)
            return err_set(e, EXIT_BAD_DATA, "token %zu has id %d: expected below %zu", i,
                           (int)ids->v[i], c->vocab);
        if (c->mask >= 0 && ids->v[i] == c->mask)
            return err_set(e, EXIT_FAILED_RECORDS,
                           "prompt token %zu is the mask token %d: expected a prompt without masks",
                           i, (int)ids->v[i]);
    }
    return 0;
}

static int encode(struct prompt *p, const struct prompt_encoder *c, struct ids *out,
                  struct err *e)
{
    const json_t *o = p->record;
    int forms = json_has(o, "text") + json_has(o, "messages") + json_has(o, "prompt_ids");
    if (json_has(o, "prompt_ids"))
        return from_ids(p, json_object_get(o, "prompt_ids"), c, out, e);
    if (forms != 1)
        return err_set(e, EXIT_BAD_DATA, "expected one of text, messages, prompt_ids, got %s",
                       forms ? "several" : "none");
    return json_has(o, "text") ? from_text(p, json_object_get(o, "text"), c, out, e)
                               : from_messages(p, json_object_get(o, "messages"), c, out, e);
}

int prompt_encoder_make(struct prompt_encoder *to, const struct checkpoint *c,
                        const struct tokenizer *tokenizer, const char *chat,
                        struct chat_choice *choice, struct err *e)
{
    struct checkpoint_chat own = {0};
    int is_auto = !strcmp(chat, "auto"), bad = 0;
    *to = (struct prompt_encoder){.config = &c->config, .tokenizer = tokenizer};
    *choice = (struct chat_choice){0};
    if (!tokenizer && !is_auto && strcmp(chat, "none"))
        return err_set(e, EXIT_BAD_DATA, "--chat %s: the checkpoint has no tokenizer", chat);
    if (tokenizer)
        bad = (is_auto && checkpoint_chat(c, &own, e)) ||
              chat_choose(chat, &own.source, c->config.chat, c->config.name, tokenizer, choice, e);
    checkpoint_chat_free(&own);
    to->chat = choice->chosen;
    return bad ? -1 : 0;
}

int prompt_make(struct prompt *p, json_t *record, const char *where,
                const struct prompt_encoder *encoder, struct err *e)
{
    *p = (struct prompt){.record = record, .where = mem_text(where),
                         .chat = json_has(record, "prompt_ids") ? NULL : chat_name(encoder->chat)};
    struct ids ids = {mem_alloc(SOME_IDS * sizeof *ids.v), 0, SOME_IDS};
    if (json_text(record, where, "id", &p->id, e) || encode(p, encoder, &ids, e) ||
        check_ids(encoder->config, &ids, e)) {
        ids_free(&ids);
        prompt_free(p);
        return -1;
    }
    const json_t *text = json_object_get(record, "text");
    if (json_has(record, "prompt_ids") && json_is_string(text)) {
        free(p->text); /* a record with prompt_ids may also hold the text */
        p->text = mem_text(json_string_value(text));
    }
    ids.v = mem_resize(ids.v, ids.n, sizeof *ids.v); /* there may be a million prompts */
    p->input = (struct generation_input){ids.v, ids.n, rng_derive(0, p->id)};
    return 0;
}

void prompt_free(struct prompt *p)
{
    json_decref(p->record);
    free(p->where);
    free(p->text);
    free((void *)(uintptr_t)p->input.ids);
    *p = (struct prompt){0};
}
