/* dataset-json.c - ShareGPT conversations, JSON lines and prompt records as prompts; see dataset.h.
 * Fields are taken as they are and never trimmed: a prompt must come out of the pipeline byte for
 * byte as it went in. */
#include "lib/text/dataset-json.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "lib/record/json.h"

int dataset_is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

/* ---- members of the result ---- */

static void put(json_t *to, const char *key, json_t *v)
{
    if (v && json_object_set(to, key, v))
        err_machine(__FILE__, __LINE__, "out of memory");
}

int dataset_put(json_t *to, const char *key, const char *s, size_t n)
{
    json_t *text = json_stringn(s, n);
    if (!text)
        return -1; /* not UTF-8 */
    put(to, key, text);
    json_decref(text);
    return 0;
}

static int is_empty(const json_t *text)
{
    const char *s = json_string_value(text);
    while (s && dataset_is_blank(*s))
        s++;
    return !s || !*s;
}

/* The first of `names` ("|" between) that o has, or NULL. */
static json_t *first_of(const json_t *o, const char *names)
{
    char name[64];
    while (*names) {
        size_t n = strcspn(names, "|");
        memcpy(name, names, n);
        name[n] = 0;
        json_t *v = json_object_get(o, name);
        if (v && !json_is_null(v))
            return v;
        names += n + (names[n] == '|');
    }
    return NULL;
}

/* A number or a text as a text; NULL: neither. The caller's reference. */
json_t *dataset_as_text(json_t *v)
{
    if (json_is_string(v))
        return json_incref(v);
    if (!json_is_number(v))
        return NULL;
    char *s = json_dumps(v, JSON_ENCODE_ANY | JSON_REAL_PRECISION(15));
    json_t *t = s ? json_string(s) : NULL;
    free(s);
    return t;
}

/* ---- JSON formats ---- */

/* Text of a turn of a conversation and, in *speaker, who says it. */
static json_t *turn(const json_t *turns, size_t i, const char **speaker)
{
    const json_t *t = json_array_get(turns, i);
    *speaker = json_string_value(first_of(t, "from|role"));
    json_t *text = first_of(t, "value|content|text");
    return json_is_string(text) ? text : NULL;
}

static int from_sharegpt(const struct dataset_options *p, json_t *o, json_t *out, struct err *e)
{
    const json_t *turns = first_of(o, "conversations|conversation|items");
    if (!json_is_array(turns))
        return err_set(e, EXIT_BAD_DATA, "conversations: expected an array of turns");
    const char *first = NULL, *second = NULL;
    if (json_array_size(turns) < (size_t)p->min_turns || json_array_size(turns) == 0)
        return 0;
    json_t *text = turn(turns, 0, &first), *reference = turn(turns, 1, &second);
    if (!first || (strcmp(first, "human") && strcmp(first, "user")) || is_empty(text))
        return 0;
    if (p->min_turns >= 2 && is_empty(reference))
        return 0;
    put(out, "id", first_of(o, "id"));
    put(out, "text", text);
    put(out, "reference", reference);
    return 1;
}

static json_t *field(const json_t *o, const char *named, const char *usual)
{
    return named ? json_object_get(o, named) : first_of(o, usual);
}

static int need_text(const json_t *v, const char *name, struct err *e)
{
    if (!v || json_is_null(v) || json_is_string(v))
        return 0;
    return err_set(e, EXIT_BAD_DATA, "field \"%s\": expected a text", name);
}

/* GSM8K: the answer stands after "####" at the end of the worked solution. */
static void put_answer(json_t *out, json_t *answer)
{
    const char *s = json_string_value(answer), *mark = s ? strstr(s, "####") : NULL;
    if (!mark) {
        put(out, "answer", answer);
        return;
    }
    if (!json_object_get(out, "reference"))
        put(out, "reference", answer);
    const char *a = mark + 4;
    while (dataset_is_blank(*a))
        a++;
    size_t n = strlen(a);
    while (n > 0 && dataset_is_blank(a[n - 1]))
        n--;
    (void)dataset_put(out, "answer", a, n);
}

static int from_jsonl(const struct dataset_options *p, json_t *o, json_t *out, struct err *e)
{
    json_t *text = field(o, p->text_field, "text|prompt|question|instruction");
    json_t *reference = field(o, p->reference_field,
                              "reference|canonical_solution|response|output");
    json_t *answer = dataset_as_text(field(o, p->answer_field, "answer"));
    json_t *task = field(o, p->task_field, "task");
    char got[JSON_SHOWN];
    int bad = 0;
    if (!json_is_string(text))
        bad = err_set(e, EXIT_BAD_DATA, "field \"%s\": expected a text, got %s (--field)",
                      p->text_field ? p->text_field : "text", json_shown(text, got));
    if (bad || need_text(reference, "reference", e) || need_text(task, "task", e)) {
        json_decref(answer);
        return -1;
    }
    put(out, "id", field(o, p->id_field, "id|task_id"));
    put(out, "text", text);
    put(out, "reference", reference);
    if (answer)
        put_answer(out, answer);
    put(out, "task", task);
    json_decref(answer);
    return is_empty(text) ? 0 : 1;
}

/* Ids of a prompt: integers from 0 to 2^31 - 1, at most 10 million of them. */
static int check_ids(const json_t *ids, struct err *e)
{
    size_t n = json_array_size(ids);
    if (!json_is_array(ids) || n > 10000000)
        return err_set(e, EXIT_BAD_DATA, "prompt_ids: expected an array of at most 10000000 ids");
    for (size_t i = 0; i < n; i++) {
        const json_t *v = json_array_get(ids, i);
        json_int_t id = json_integer_value(v);
        if (!json_is_integer(v) || id < 0 || id > INT32_MAX)
            return err_set(e, EXIT_BAD_DATA, "prompt_ids[%zu]: expected an integer from 0 to %d", i,
                           INT32_MAX);
    }
    return 0;
}

static int from_prompts(json_t *o, json_t *out, struct err *e)
{
    const char *kind = json_string_value(json_object_get(o, "kind"));
    if (kind && (!strcmp(kind, "meta") || !strcmp(kind, "end")))
        return 0;
    if (kind && strcmp(kind, "prompt"))
        return err_set(e, EXIT_BAD_DATA, "kind: expected \"prompt\", got \"%s\"", kind);
    json_t *ids = first_of(o, "prompt_ids");
    if (ids && check_ids(ids, e))
        return -1;
    json_t *text = first_of(o, "text");
    if (need_text(text, "text", e))
        return -1;
    if (!ids && !text && !json_is_array(first_of(o, "messages")))
        return err_set(e, EXIT_BAD_DATA, "expected one of text, prompt_ids, messages");
    if (json_object_update(out, o))
        err_machine(__FILE__, __LINE__, "out of memory");
    json_object_del(out, "schema");
    json_object_del(out, "kind");
    return 1;
}

static const char *json_format(const json_t *o)
{
    if (first_of(o, "conversations"))
        return "sharegpt";
    if (first_of(o, "schema") || (first_of(o, "id") && first_of(o, "text|prompt_ids|messages")))
        return "prompts";
    return "jsonl";
}

int dataset_from_json(const struct dataset_options *p, const char **format, const char *bytes,
                      size_t n, json_t *out, struct err *e)
{
    json_error_t je;
    json_t *o = json_loadb(bytes, n, JSON_REJECT_DUPLICATES, &je);
    int r;
    if (!json_is_object(o)) {
        json_decref(o);
        return err_set(e, EXIT_BAD_DATA, "expected a JSON object: %s",
                       o ? "got another value" : je.text);
    }
    if (!*format)
        *format = json_format(o);
    if (!strcmp(*format, "sharegpt"))
        r = from_sharegpt(p, o, out, e);
    else if (!strcmp(*format, "prompts"))
        r = from_prompts(o, out, e);
    else
        r = from_jsonl(p, o, out, e);
    json_decref(o);
    return r;
}
