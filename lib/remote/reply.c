/* reply.c - see reply.h. Nothing that a server sends is trusted: a member is used only if it has
 * the expected type and range, and the first fault ends the answer. */
#include "lib/remote/reply.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/mem.h"
#include "lib/record/json.h"
#include "lib/record/rec.h"
#include "lib/text/utf8.h"

static const int64_t COUNT_LIMIT = 1000000000; /* of tokens */

static int bad_event(const struct reply *r, const char *what, const json_t *got, struct err *e)
{
    char shown[JSON_SHOWN];
    return err_set(e, EXIT_BAD_DATA, "event %zu: %s, got %s", r->events, what,
                   json_shown(got, shown));
}

/* Appends a text, if there is one. */
static int take_text(struct reply *r, const json_t *text, struct err *e)
{
    if (!text || json_is_null(text))
        return 0;
    if (!json_is_string(text))
        return bad_event(r, "expected a text", text, e);
    buf_put(&r->text, json_string_value(text), json_string_length(text));
    return 0;
}

/* The texts of a delta or message. Some servers send the same reasoning under both names. */
static int take_message(struct reply *r, const json_t *message, struct err *e)
{
    const json_t *reasoning = json_object_get(message, "reasoning_content");
    if (!message || json_is_null(message))
        return 0;
    if (!json_is_object(message))
        return bad_event(r, "delta: expected an object", message, e);
    if (!reasoning || json_is_null(reasoning))
        reasoning = json_object_get(message, "reasoning");
    return take_text(r, reasoning, e) || take_text(r, json_object_get(message, "content"), e) ? -1
                                                                                             : 0;
}

static int take_stop(struct reply *r, const json_t *why, struct err *e)
{
    const char *word = json_string_value(why);
    if (!why || json_is_null(why))
        return 0;
    if (word && !strcmp(word, "stop"))
        r->stop = "eos";
    else if (word && !strcmp(word, "length"))
        r->stop = "length";
    else
        return bad_event(r, "finish_reason: expected stop or length", why, e);
    return 0;
}

static int take_choices(struct reply *r, const json_t *list, int64_t ns, struct err *e)
{
    const json_t *choice = json_array_get(list, 0);
    const size_t before = r->text.len;
    if (!list || json_is_null(list))
        return 0;
    if (!json_is_array(list) || (choice && !json_is_object(choice)))
        return bad_event(r, "choices: expected a list of objects", list, e);
    if (json_array_size(list) > 1)
        return bad_event(r, "choices: expected one", list, e);
    const int ended = r->stop != NULL;
    if (take_text(r, json_object_get(choice, "text"), e) ||
        take_message(r, json_object_get(choice, "delta"), e) ||
        take_message(r, json_object_get(choice, "message"), e) ||
        take_stop(r, json_object_get(choice, "finish_reason"), e))
        return -1;
    if (r->text.len == before)
        return 0;
    if (ended)
        return bad_event(r, "expected no text after a finish_reason", choice, e);
    MEM_GROW(r->emit, r->n, r->cap);
    r->emit[r->n++] = (struct reply_emission){ns, r->text.len};
    return 0;
}

static int take_count(struct reply *r, const json_t *usage, const char *key,
                      struct reply_count *to, struct err *e)
{
    const json_t *v = json_object_get(usage, key);
    if (!v || json_is_null(v))
        return 0;
    *to = (struct reply_count){1, json_integer_value(v)};
    return json_is_integer(v) && to->n >= 0 && to->n <= COUNT_LIMIT
               ? 0
               : bad_event(r, "usage: expected counts of tokens", v, e);
}

static int take_usage(struct reply *r, const json_t *usage, struct err *e)
{
    if (!usage || json_is_null(usage))
        return 0;
    if (!json_is_object(usage))
        return bad_event(r, "usage: expected an object", usage, e);
    const json_t *details = json_object_get(usage, "prompt_tokens_details");
    return take_count(r, usage, "prompt_tokens", &r->prompt_tokens, e) ||
                   take_count(r, usage, "completion_tokens", &r->new_tokens, e) ||
                   take_count(r, details, "cached_tokens", &r->cached_tokens, e)
               ? -1
               : 0;
}

/* The message of an error that the server states. */
static int refused(const struct reply *r, const json_t *error, struct err *e)
{
    const char *text = json_is_string(error) ? json_string_value(error)
                                             : rec_text(error, "message");
    return text ? err_set(e, EXIT_BAD_DATA, "the server answers: %.300s", text)
                : bad_event(r, "an error of the server", error, e);
}

int reply_event(struct reply *r, const char *data, size_t n, int64_t ns, struct err *e)
{
    static const char last[] = "[DONE]";
    json_error_t why;
    const size_t valid = utf8_valid(data, n);
    r->events++;
    if (r->is_done)
        return err_set(e, EXIT_BAD_DATA, "event %zu: expected none after [DONE]", r->events);
    if (valid < n)
        return err_set(e, EXIT_BAD_DATA, "event %zu: half a UTF-8 character at byte %zu of it",
                       r->events, valid);
    if (n == sizeof last - 1 && !memcmp(data, last, n)) {
        r->is_done = 1;
        return 0;
    }
    json_t *o = json_strict(data, n, &why);
    const json_t *error = json_object_get(o, "error");
    int bad = 0;
    if (!json_is_object(o))
        bad = o ? bad_event(r, "expected an object", o, e)
                : err_set(e, EXIT_BAD_DATA, "event %zu: expected JSON: %s", r->events, why.text);
    else if (error && !json_is_null(error))
        bad = refused(r, error, e);
    else
        bad = take_choices(r, json_object_get(o, "choices"), ns, e) ||
              take_usage(r, json_object_get(o, "usage"), e);
    json_decref(o);
    return bad ? -1 : 0;
}

int reply_check(const struct reply *r, struct err *e)
{
    if (!r->events)
        return err_set(e, EXIT_BAD_DATA, "the server sent no event");
    if (!r->stop)
        return err_set(e, EXIT_BAD_DATA, "the stream ended after %zu events (%zu bytes of text) "
                       "without a finish_reason", r->events, r->text.len);
    return 0;
}

void reply_free(struct reply *r)
{
    buf_free(&r->text);
    free(r->emit);
    *r = (struct reply){0};
}
