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

static int bad_event(const struct reply *reply, const char *what, const json_t *got, struct err *e)
{
    char shown[JSON_SHOWN];
    return err_set(e, EXIT_BAD_DATA, "event %zu: %s, got %s", reply->events, what,
                   json_shown(got, shown));
}

/* Appends a text, if there is one. */
static int take_text(struct reply *reply, const json_t *text, struct err *e)
{
    if (!text || json_is_null(text))
        return 0;
    if (!json_is_string(text))
        return bad_event(reply, "expected a text", text, e);
    buf_put(&reply->text, json_string_value(text), json_string_length(text));
    return 0;
}

/* Takes the texts of a delta or message. Some servers send one reasoning under two names, so only
 * the first of these names counts. */
static int take_message(struct reply *reply, const json_t *message, struct err *e)
{
    const json_t *reasoning = json_object_get(message, "reasoning_content");
    if (!message || json_is_null(message))
        return 0;
    if (!json_is_object(message))
        return bad_event(reply, "delta: expected an object", message, e);
    if (!reasoning || json_is_null(reasoning))
        reasoning = json_object_get(message, "reasoning");
    return take_text(reply, reasoning, e) ||
                   take_text(reply, json_object_get(message, "content"), e)
               ? -1
               : 0;
}

static int take_stop(struct reply *reply, const json_t *why, struct err *e)
{
    const char *word = json_string_value(why);
    if (!why || json_is_null(why))
        return 0;
    if (word && !strcmp(word, "stop"))
        reply->stop = "eos";
    else if (word && !strcmp(word, "length"))
        reply->stop = "length";
    else
        return bad_event(reply, "finish_reason: expected stop or length", why, e);
    return 0;
}

static int take_choices(struct reply *reply, const json_t *list, int64_t ns, struct err *e)
{
    const json_t *choice = json_array_get(list, 0);
    const size_t before = reply->text.len;
    if (!list || json_is_null(list))
        return 0;
    if (!json_is_array(list) || (choice && !json_is_object(choice)))
        return bad_event(reply, "choices: expected a list of objects", list, e);
    if (json_array_size(list) > 1)
        return bad_event(reply, "choices: expected one", list, e);
    const int ended = reply->stop != NULL;
    if (take_text(reply, json_object_get(choice, "text"), e) ||
        take_message(reply, json_object_get(choice, "delta"), e) ||
        take_message(reply, json_object_get(choice, "message"), e) ||
        take_stop(reply, json_object_get(choice, "finish_reason"), e))
        return -1;
    if (reply->text.len == before)
        return 0;
    if (ended)
        return bad_event(reply, "expected no text after a finish_reason", choice, e);
    MEM_GROW(reply->emit, reply->n, reply->cap);
    reply->emit[reply->n++] = (struct reply_emission){ns, reply->text.len};
    return 0;
}

static int take_count(struct reply *reply, const json_t *usage, const char *key,
                      struct reply_count *to, struct err *e)
{
    const json_t *value = json_object_get(usage, key);
    if (!value || json_is_null(value))
        return 0;
    *to = (struct reply_count){1, json_integer_value(value)};
    return json_is_integer(value) && to->n >= 0 && to->n <= COUNT_LIMIT
               ? 0
               : bad_event(reply, "usage: expected counts of tokens", value, e);
}

static int take_usage(struct reply *reply, const json_t *usage, struct err *e)
{
    if (!usage || json_is_null(usage))
        return 0;
    if (!json_is_object(usage))
        return bad_event(reply, "usage: expected an object", usage, e);
    const json_t *details = json_object_get(usage, "prompt_tokens_details");
    return take_count(reply, usage, "prompt_tokens", &reply->prompt_tokens, e) ||
                   take_count(reply, usage, "completion_tokens", &reply->new_tokens, e) ||
                   take_count(reply, details, "cached_tokens", &reply->cached_tokens, e)
               ? -1
               : 0;
}

/* Sets *e to the message of an error that the server states. Returns -1. */
static int refused(const struct reply *reply, const json_t *error, struct err *e)
{
    const char *text = json_is_string(error) ? json_string_value(error)
                                             : rec_text(error, "message");
    return text ? err_set(e, EXIT_BAD_DATA, "the server answers: %.300s", text)
                : bad_event(reply, "an error of the server", error, e);
}

int reply_event(struct reply *reply, const char *data, size_t n, int64_t ns, struct err *e)
{
    static const char last[] = "[DONE]";
    json_error_t why;
    const size_t valid = utf8_valid(data, n);
    reply->events++;
    if (reply->is_done)
        return err_set(e, EXIT_BAD_DATA, "event %zu: expected none after [DONE]", reply->events);
    if (valid < n)
        return err_set(e, EXIT_BAD_DATA, "event %zu: half a UTF-8 character at byte %zu of it",
                       reply->events, valid);
    if (n == sizeof last - 1 && !memcmp(data, last, n)) {
        reply->is_done = 1;
        return 0;
    }
    json_t *object = json_strict(data, n, &why);
    const json_t *error = json_object_get(object, "error");
    int bad = 0;
    if (!json_is_object(object))
        bad = object ? bad_event(reply, "expected an object", object, e)
                     : err_set(e, EXIT_BAD_DATA, "event %zu: expected JSON: %s", reply->events,
                               why.text);
    else if (error && !json_is_null(error))
        bad = refused(reply, error, e);
    else
        bad = take_choices(reply, json_object_get(object, "choices"), ns, e) ||
              take_usage(reply, json_object_get(object, "usage"), e);
    json_decref(object);
    return bad ? -1 : 0;
}

int reply_check(const struct reply *reply, struct err *e)
{
    if (!reply->events)
        return err_set(e, EXIT_BAD_DATA, "the server sent no event");
    if (!reply->stop)
        return err_set(e, EXIT_BAD_DATA, "the stream ended after %zu events (%zu bytes of text) "
                       "without a finish_reason", reply->events, reply->text.len);
    return 0;
}

void reply_free(struct reply *reply)
{
    buf_free(&reply->text);
    free(reply->emit);
    *reply = (struct reply){0};
}
