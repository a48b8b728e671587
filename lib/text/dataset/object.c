/* object.c - turns ShareGPT conversations, JSON lines, prompt records and items of tasks into
 * prompts; see dataset.h. Texts are never trimmed or changed, so that a prompt has the bytes of the
 * data set. */
#include "lib/text/dataset/object.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/mem.h"
#include "lib/record/json.h"
#include "lib/record/rec.h"
#include "lib/text/task.h"

int dataset_is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

/* ---- members of objects ---- */

static void put(json_t *to, const char *key, json_t *value)
{
    if (value && json_object_set(to, key, value))
        err_machine(__FILE__, __LINE__, "out of memory");
}

int dataset_put(json_t *to, const char *key, const char *bytes, size_t n)
{
    json_t *text = json_stringn(bytes, n);
    if (!text)
        return -1; /* not UTF-8 */
    put(to, key, text);
    json_decref(text);
    return 0;
}

static int is_empty(const json_t *text)
{
    const char *bytes = json_string_value(text);
    while (bytes && dataset_is_blank(*bytes))
        bytes++;
    return !bytes || !*bytes;
}

/* The value of the first of `names` ("a|b|c") that object has and that is not null, or NULL. */
static json_t *first_of(const json_t *object, const char *names)
{
    char name[64];
    while (*names) {
        size_t n = strcspn(names, "|");
        memcpy(name, names, n);
        name[n] = 0;
        json_t *value = json_object_get(object, name);
        if (value && !json_is_null(value))
            return value;
        names += n + (names[n] == '|');
    }
    return NULL;
}

json_t *dataset_as_text(json_t *value)
{
    if (json_is_string(value))
        return json_incref(value);
    if (!json_is_number(value))
        return NULL;
    char *text = json_dumps(value, JSON_ENCODE_ANY | JSON_REAL_PRECISION(15));
    json_t *t = text ? json_string(text) : NULL;
    free(text);
    return t;
}

/* ---- JSON formats ---- */

/* The text of turn i of a conversation, or NULL. *speaker = who speaks, or NULL. */
static json_t *turn(const json_t *turns, size_t i, const char **speaker)
{
    const json_t *t = json_array_get(turns, i);
    *speaker = json_string_value(first_of(t, "from|role"));
    json_t *text = first_of(t, "value|content|text");
    return json_is_string(text) ? text : NULL;
}

static enum dataset_piece from_sharegpt(const struct dataset_options *options, json_t *object,
                                        json_t *out, struct err *e)
{
    const json_t *turns = first_of(object, "conversations|conversation|items");
    if (!json_is_array(turns))
        return err_set(e, EXIT_BAD_DATA, "conversations: expected an array of turns");
    const char *first = NULL, *second = NULL;
    if (json_array_size(turns) < (size_t)options->min_turns || json_array_size(turns) == 0)
        return DATASET_SKIPPED;
    json_t *text = turn(turns, 0, &first), *reference = turn(turns, 1, &second);
    if (!first || (strcmp(first, "human") && strcmp(first, "user")) || is_empty(text))
        return DATASET_SKIPPED;
    if (options->min_turns >= 2 && is_empty(reference))
        return DATASET_SKIPPED;
    put(out, "text", text);
    put(out, "reference", reference);
    return DATASET_KEPT;
}

static json_t *field(const json_t *object, const char *named, const char *usual)
{
    return named ? json_at(object, named) : first_of(object, usual);
}

static int need_text(const json_t *value, const char *name, struct err *e)
{
    if (!value || json_is_null(value) || json_is_string(value))
        return 0;
    return err_set(e, EXIT_BAD_DATA, "field \"%s\": expected a text, got %s", name,
                   rec_type(value));
}

/* Source: Taori et al. 2023, Stanford Alpaca, prompts of the 52K instructions. */
static const char ALPACA[] =
    "Below is an instruction that describes a task, paired with an input that provides further "
    "context. Write a response that appropriately completes the request.\n\n"
    "### Instruction:\n%s\n\n### Input:\n%s\n\n### Response:";

/* 1: a row with an instruction and an answer. Its member `text`, if any, contains both of them, so
 * it is not the prompt. */
static int is_instruction(const json_t *object)
{
    return first_of(object, "instruction") && first_of(object, "output|response");
}

/* Sets the answer. In GSM8K the answer follows "####" at the end of the worked solution, which then
 * becomes the reference. */
static void put_answer(json_t *out, json_t *answer)
{
    const char *text = json_string_value(answer), *mark = text ? strstr(text, "####") : NULL;
    if (!mark) {
        put(out, "answer", answer);
        return;
    }
    if (!first_of(out, "reference"))
        put(out, "reference", answer);
    const char *number = mark + 4;
    while (dataset_is_blank(*number))
        number++;
    size_t n = strlen(number);
    while (n > 0 && dataset_is_blank(number[n - 1]))
        n--;
    (void)dataset_put(out, "answer", number, n);
}

/* Sets text to an instruction and its input in Alpaca's prompt form. */
static void put_alpaca(json_t *out, const json_t *object, const json_t *input)
{
    const char *instruction = json_string_value(json_object_get(object, "instruction"));
    char *text = mem_format(ALPACA, instruction, json_string_value(input));
    (void)dataset_put(out, "text", text, strlen(text));
    free(text);
}

static enum dataset_piece from_jsonl(const struct dataset_options *options, json_t *object,
                                     json_t *out, struct err *e)
{
    json_t *text = field(object, options->text_field, is_instruction(object) ? "instruction"
                                                      : "text|prompt|question|instruction");
    json_t *reference = field(object, options->reference_field,
                              "reference|canonical_solution|completion|response|output");
    int instructs = !options->text_field && text && text == json_object_get(object, "instruction");
    const json_t *input = instructs ? json_object_get(object, "input") : NULL;
    json_t *answer = dataset_as_text(field(object, options->answer_field, "answer"));
    json_t *task = field(object, options->task_field, "task");
    int bad = 0;
    if (!json_is_string(text))
        bad = err_set(e, EXIT_BAD_DATA, "field \"%s\": expected a text, got %s (--field)",
                      options->text_field ? options->text_field : "text", rec_type(text));
    if (bad || need_text(reference, "reference", e) || need_text(task, "task", e) ||
        need_text(input, "input", e)) {
        json_decref(answer);
        return DATASET_BROKEN;
    }
    int empty = is_empty(text), joins = !is_empty(input);
    if (joins)
        put_alpaca(out, object, input);
    else
        put(out, "text", text);
    put(out, "reference", reference);
    if (answer)
        put_answer(out, answer);
    put(out, "task", task);
    json_decref(answer);
    return empty ? DATASET_SKIPPED : joins ? DATASET_ALPACA : DATASET_KEPT;
}

/* Checks prompt_ids: at most 10 million integers from 0 to 2^31 - 1. */
static int check_ids(const json_t *ids, struct err *e)
{
    size_t n = json_array_size(ids);
    if (!json_is_array(ids) || n > 10000000)
        return err_set(e, EXIT_BAD_DATA, "prompt_ids: expected an array of at most 10000000 ids");
    for (size_t i = 0; i < n; i++) {
        const json_t *value = json_array_get(ids, i);
        json_int_t id = json_integer_value(value);
        if (!json_is_integer(value) || id < 0 || id > INT32_MAX)
            return err_set(e, EXIT_BAD_DATA, "prompt_ids[%zu]: expected an integer from 0 to %d", i,
                           INT32_MAX);
    }
    return 0;
}

/* If the last message is by the assistant: removes it, and makes it the reference if there is
 * none. */
static int cut_answer(json_t *out, struct err *e)
{
    json_t *messages = json_object_get(out, "messages");
    size_t n = json_array_size(messages);
    const json_t *last = json_array_get(messages, n - 1);
    const char *role = n ? rec_text(last, "role") : NULL;
    if (!role || strcmp(role, "assistant"))
        return 0;
    json_t *answer = json_object_get(last, "content");
    if (n == 1)
        return err_set(e, EXIT_BAD_DATA, "messages: expected a turn before the assistant's answer");
    if (!json_is_string(answer))
        return err_set(e, EXIT_BAD_DATA, "messages[%zu].content: expected a text, got %s", n - 1,
                       rec_type(answer));
    if (!first_of(out, "reference"))
        put(out, "reference", answer);
    json_array_remove(messages, n - 1);
    return 0;
}

static enum dataset_piece from_prompts(json_t *object, json_t *out, struct err *e)
{
    const char *kind = json_string_value(json_object_get(object, "kind"));
    if (kind && (!strcmp(kind, "meta") || !strcmp(kind, "end")))
        return DATASET_FRAME;
    if (kind && strcmp(kind, "prompt"))
        return err_set(e, EXIT_BAD_DATA, "kind: expected \"prompt\", got \"%s\"", kind);
    json_t *ids = first_of(object, "prompt_ids");
    if (ids && check_ids(ids, e))
        return -1;
    json_t *text = first_of(object, "text");
    if (need_text(text, "text", e))
        return -1;
    if (!ids && !text && !json_is_array(first_of(object, "messages")))
        return err_set(e, EXIT_BAD_DATA, "expected one of text, prompt_ids, messages");
    json_object_del(object, "id"); /* `out` already has the id */
    if (json_object_update(out, object))
        err_machine(__FILE__, __LINE__, "out of memory");
    json_object_del(out, "schema");
    json_object_del(out, "kind");
    json_t *answer = json_object_get(object, "answer");
    if (json_is_string(answer))
        put_answer(out, answer);
    return cut_answer(out, e) ? DATASET_BROKEN : DATASET_KEPT;
}

/* Makes a prompt of an item of a task. The task's name is put before the id, so that ids of several
 * tasks differ. */
static enum dataset_piece from_item(const struct dataset_options *options, const json_t *object,
                                    json_t *out, struct err *e)
{
    int left = task_fill(options->task, object, out, e)
                   ? -1 : task_leaves_out(options->task, object, e);
    if (left)
        return left < 0 ? DATASET_BROKEN : DATASET_FRAME;
    json_t *id = dataset_as_text(json_object_get(out, "id"));
    if (id)
        json_object_set_new(out, "id", json_sprintf("%s-%s", rec_text(out, "task"),
                                                    json_string_value(id)));
    json_decref(id);
    return DATASET_KEPT;
}

static const char *json_format(const struct dataset_options *options, const json_t *object)
{
    if (first_of(object, "conversations"))
        return "sharegpt";
    if (first_of(object, "schema") || (!options->text_field && first_of(object, "messages")))
        return "prompts";
    if (options->text_field || is_instruction(object) || !first_of(object, "id") ||
        !first_of(object, "text|prompt_ids"))
        return "jsonl";
    return "prompts";
}

enum dataset_piece dataset_from_json(const struct dataset_options *options, const char **format,
                                     const char *bytes, size_t n, json_t *out, struct err *e)
{
    json_error_t je = {.text = "a NUL byte"}; /* jansson would take a NUL for the end of the text */
    json_t *object = memchr(bytes, 0, n) ? NULL : json_loadb(bytes, n, JSON_REJECT_DUPLICATES, &je);
    enum dataset_piece piece;
    if (!json_is_object(object)) {
        json_decref(object);
        return err_set(e, EXIT_BAD_DATA, "expected a JSON object: %s",
                       object ? "got another value" : je.text);
    }
    if (!*format)
        *format = json_format(options, object);
    put(out, "id",
        field(object, options->id_field, strcmp(*format, "jsonl") ? "id" : "id|task_id"));
    if (options->task)
        piece = from_item(options, object, out, e);
    else if (!strcmp(*format, "sharegpt"))
        piece = from_sharegpt(options, object, out, e);
    else if (!strcmp(*format, "prompts"))
        piece = from_prompts(object, out, e);
    else
        piece = from_jsonl(options, object, out, e);
    json_decref(object);
    return piece;
}
