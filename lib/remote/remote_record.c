/* remote_record.c - see remote_record.h. Fields have the names and the order of the records of our
 * own generators (lib/run/generation_record.c). */
#include "lib/remote/remote_record.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/mem.h"
#include "lib/record/json.h"
#include "lib/record/rec.h"

static void set_text(json_t *record, const char *key, const char *value)
{
    json_t *text = value ? json_string(value) : NULL;
    json_object_set_new(record, key, text ? text : json_null());
}

json_t *remote_record_about(const struct remote_place *at)
{
    json_t *record = json_object(), *about = json_object();
    char id[SETTINGS_ID];
    struct buf label = {0};
    buf_text(&label, at->model);
    settings_label(at->point, &label);
    buf_format(&label, " stack=%s", at->stack);
    set_text(record, "config", label.data);
    buf_free(&label);
    set_text(about, "model", at->model);
    set_text(about, "arch", "endpoint");
    set_text(about, "stack", at->stack);
    set_text(about, "device", "remote");
    if (at->conditions)
        set_text(about, "conditions", at->conditions);
    settings_put(at->point, about);
    settings_id(about, NULL, id);
    set_text(record, "point", id);
    set_text(record, "series", id);
    set_text(record, "axis", NULL);
    json_object_update(record, about);
    json_decref(about);
    return record;
}

static void set_prompt(json_t *record, const struct remote_place *at,
                       const struct asked_prompt *prompt, const struct reply *reply)
{
    static const char *const copied[] = {"reference", "answer", "task", "shots", "source"};
    char workload[SETTINGS_ID] = "", *text = asked_text(prompt);
    memcpy(workload, at->asked->in.sha256, SETTINGS_ID - 1);
    set_text(record, "workload", workload);
    rec_set_int(record, "prompts", (int64_t)at->asked->n);
    rec_set_int(record, "seed", (int64_t)at->seed);
    set_text(record, "prompt", text);
    free(text);
    for (size_t i = 0; i < sizeof copied / sizeof *copied; i++)
        if (json_has(prompt->record, copied[i]))
            json_object_set(record, copied[i], json_object_get(prompt->record, copied[i]));
    if (reply->prompt_tokens.is)
        rec_set_int(record, "prompt_tokens", reply->prompt_tokens.n);
    if (reply->cached_tokens.is)
        rec_set_int(record, "cached_tokens", reply->cached_tokens.n);
}

static void set_output(json_t *record, const struct remote_place *at, const struct reply *reply,
                       const struct recount *recount)
{
    const struct reply_count *said = &reply->new_tokens;
    char mark[SETTINGS_ID] = "";
    snprintf(mark, sizeof mark, "%s", at->tokenizer ? at->tokenizer : "");
    json_object_set_new(record, "tokenizer", *mark ? json_string(mark) : json_null());
    json_object_set_new(record, "token_ids", json_null());
    set_text(record, "token_ids_reason", "the server sends text");
    json_t *text = json_stringn(reply->text.data ? reply->text.data : "", reply->text.len);
    json_object_set_new(record, "text", text);
    json_object_set(record, "text_to_eos", text);
    rec_set_int(record, "new_tokens", recount->tokens);
    rec_set_int(record, "tokens_to_eos", recount->tokens);
    rec_set_number(record, "usage_tokens", said->is ? (double)said->n : (double)NAN,
                   "the server counts none");
    rec_set_number(record, "retokenized_tokens",
                   recount->retokenized < 0 ? (double)NAN : (double)recount->retokenized,
                   "no tokenizer (-m)");
    set_text(record, "stop", reply->stop);
}

static void set_times(json_t *record, const struct remote_place *at,
                      const struct load_request *request, const struct recount *recount)
{
    json_t *when = json_array();
    rec_set_int(record, "start_ns", at->start_ns);
    rec_set_int(record, "admit_ns", request->admit_ns);
    rec_set_int(record, "e2e_ns", request->e2e_ns);
    if (request->reply.n)
        rec_set_int(record, "ttft_ns", request->reply.emit[0].ns);
    else
        rec_set_number(record, "ttft_ns", (double)NAN, "no text");
    rec_set_int(record, "batch_ns", at->batch_ns);
    for (size_t i = 0; i < request->reply.n; i++)
        json_array_append_new(when, json_integer(request->reply.emit[i].ns));
    if (recount->emitted) {
        json_object_set_new(record, "emit_ns", when);
        json_object_set_new(record, "emit_tokens",
                            rec_int_list(recount->emitted, request->reply.n));
        return;
    }
    json_decref(when);
    json_object_set_new(record, "emit_ns", json_null());
    json_object_set_new(record, "emit_tokens", json_null());
    set_text(record, "emit_ns_reason",
             "several tokens came at once, and no tokenizer (-m) tells how "
             "many");
}

json_t *remote_record(const struct remote_place *at, const struct asked_prompt *prompt,
                      const struct load_request *request, const struct recount *recount,
                      int64_t seq)
{
    json_t *record = json_object(), *about = remote_record_about(at);
    set_text(record, "id", prompt->id);
    json_object_update(record, about);
    json_decref(about);
    set_prompt(record, at, prompt, &request->reply);
    set_output(record, at, &request->reply, recount);
    set_text(record, "phase", at->phase);
    rec_set_int(record, "launch", at->launch);
    rec_set_int(record, "round", at->round);
    rec_set_int(record, "seq", seq);
    rec_set_int(record, "batch_id", at->batch_id);
    rec_set_int(record, "warmup_batches", at->warmups);
    set_times(record, at, request, recount);
    set_text(record, "status", "ok");
    return record;
}
