/* remote_record.c - see remote_record.h. Fields have the names and the order of those of our own
 * generators (lib/run/generation_record.c). */
#include "lib/remote/remote_record.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/mem.h"
#include "lib/record/json.h"
#include "lib/record/rec.h"

static void set_text(json_t *r, const char *key, const char *value)
{
    json_t *text = value ? json_string(value) : NULL;
    json_object_set_new(r, key, text ? text : json_null());
}

json_t *remote_record_about(const struct remote_place *at)
{
    json_t *r = json_object(), *about = json_object();
    char id[SETTINGS_ID];
    struct buf label = {0};
    buf_text(&label, at->model);
    settings_label(at->point, &label);
    buf_format(&label, " stack=%s", at->stack);
    set_text(r, "config", label.data);
    buf_free(&label);
    set_text(about, "model", at->model);
    set_text(about, "arch", "endpoint");
    set_text(about, "stack", at->stack);
    set_text(about, "device", "remote");
    if (at->conditions)
        set_text(about, "conditions", at->conditions);
    settings_put(at->point, about);
    settings_id(about, NULL, id);
    set_text(r, "point", id);
    set_text(r, "series", id);
    set_text(r, "axis", NULL);
    json_object_update(r, about);
    json_decref(about);
    return r;
}

static void set_prompt(json_t *r, const struct remote_place *at, const struct asked_prompt *p,
                       const struct reply *reply)
{
    static const char *const copied[] = {"reference", "answer", "task", "shots", "source"};
    char workload[SETTINGS_ID] = "", *text = asked_text(p);
    memcpy(workload, at->asked->in.sha256, SETTINGS_ID - 1);
    set_text(r, "workload", workload);
    rec_set_int(r, "prompts", (int64_t)at->asked->n);
    rec_set_int(r, "seed", (int64_t)at->seed);
    set_text(r, "prompt", text);
    free(text);
    for (size_t i = 0; i < sizeof copied / sizeof *copied; i++)
        if (json_has(p->record, copied[i]))
            json_object_set(r, copied[i], json_object_get(p->record, copied[i]));
    if (reply->prompt_tokens.is)
        rec_set_int(r, "prompt_tokens", reply->prompt_tokens.n);
    if (reply->cached_tokens.is)
        rec_set_int(r, "cached_tokens", reply->cached_tokens.n);
}

static void set_output(json_t *r, const struct remote_place *at, const struct reply *reply,
                       const struct recount *c)
{
    const struct reply_count *said = &reply->new_tokens;
    char mark[SETTINGS_ID] = "";
    snprintf(mark, sizeof mark, "%s", at->tokenizer ? at->tokenizer : "");
    json_object_set_new(r, "tokenizer", *mark ? json_string(mark) : json_null());
    json_object_set_new(r, "token_ids", json_null());
    set_text(r, "token_ids_reason", "the server sends text");
    json_t *text = json_stringn(reply->text.data ? reply->text.data : "", reply->text.len);
    json_object_set_new(r, "text", text);
    json_object_set(r, "text_to_eos", text);
    rec_set_int(r, "new_tokens", c->tokens);
    rec_set_int(r, "tokens_to_eos", c->tokens);
    rec_set_number(r, "usage_tokens", said->is ? (double)said->n : (double)NAN,
                   "the server counts none");
    rec_set_number(r, "retokenized_tokens",
                   c->retokenized < 0 ? (double)NAN : (double)c->retokenized,
                   "no tokenizer (-m)");
    set_text(r, "stop", reply->stop);
}

static void set_times(json_t *r, const struct remote_place *at, const struct load_request *q,
                      const struct recount *c)
{
    json_t *when = json_array();
    rec_set_int(r, "start_ns", at->start_ns);
    rec_set_int(r, "admit_ns", q->admit_ns);
    rec_set_int(r, "e2e_ns", q->e2e_ns);
    if (q->reply.n)
        rec_set_int(r, "ttft_ns", q->reply.emit[0].ns);
    else
        rec_set_number(r, "ttft_ns", (double)NAN, "no text");
    rec_set_int(r, "batch_ns", at->batch_ns);
    for (size_t i = 0; i < q->reply.n; i++)
        json_array_append_new(when, json_integer(q->reply.emit[i].ns));
    if (c->emitted) {
        json_object_set_new(r, "emit_ns", when);
        json_object_set_new(r, "emit_tokens", rec_int_list(c->emitted, q->reply.n));
        return;
    }
    json_decref(when);
    json_object_set_new(r, "emit_ns", json_null());
    json_object_set_new(r, "emit_tokens", json_null());
    set_text(r, "emit_ns_reason", "several tokens came at once, and no tokenizer (-m) tells how "
                                  "many");
}

json_t *remote_record(const struct remote_place *at, const struct asked_prompt *p,
                      const struct load_request *q, const struct recount *c, int64_t seq)
{
    json_t *r = json_object(), *about = remote_record_about(at);
    set_text(r, "id", p->id);
    json_object_update(r, about);
    json_decref(about);
    set_prompt(r, at, p, &q->reply);
    set_output(r, at, &q->reply, c);
    set_text(r, "phase", at->phase);
    rec_set_int(r, "launch", at->launch);
    rec_set_int(r, "round", at->round);
    rec_set_int(r, "seq", seq);
    rec_set_int(r, "batch_id", at->batch_id);
    rec_set_int(r, "warmup_batches", at->warmups);
    set_times(r, at, q, c);
    set_text(r, "status", "ok");
    return r;
}
