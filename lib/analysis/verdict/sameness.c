/* sameness.c - see sameness.h. An answer of the base is found by model, point and prompt. The label
 * of a point may name a device or a format in which the two runs differ on purpose. So if the model
 * has only one point in the base, its answers are found by prompt alone. */
#include "lib/analysis/verdict/sameness.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/mem.h"
#include "lib/record/rec.h"

static int is_answer(const json_t *record)
{
    const char *status = rec_text(record, "status");
    return !rec_is(record, "phase", "warmup") && (!status || !strcmp(status, "ok")) &&
           rec_text(record, "id") && rec_text(record, "model");
}

static char *key_of(const json_t *record, int by_prompt)
{
    const char *point = rec_text(record, "config");
    return mem_format("%s\n%s\n%s", rec_text(record, "model"), by_prompt || !point ? "" : point,
                      rec_text(record, "id"));
}

/* 1: all answers of the model belong to one point. */
static int is_single(const json_t *base, const char *model)
{
    const json_t *record, *first = NULL;
    size_t i;
    json_array_foreach(base, i, record) {
        const json_t *point = json_object_get(record, "config");
        if (!is_answer(record) || !rec_is(record, "model", model))
            continue;
        if (first && !json_equal(first, point))
            return 0;
        first = point;
    }
    return 1;
}

/* {key_of(): token ids} for the answers of a model. */
static json_t *index_of(const json_t *base, const char *model, int by_prompt)
{
    json_t *index = json_object(), *record;
    size_t i;
    json_array_foreach(base, i, record)
        if (is_answer(record) && rec_is(record, "model", model)) {
            char *key = key_of(record, by_prompt);
            json_object_set(index, key, json_object_get(record, "token_ids"));
            free(key);
        }
    return index;
}

static const char *device_in(const json_t *records, const char *model)
{
    const json_t *record;
    size_t i;
    json_array_foreach(records, i, record)
        if (rec_is(record, "model", model) && rec_text(record, "device"))
            return rec_text(record, "device");
    return "";
}

static json_t *judge_model(const json_t *base, const json_t *run, const json_t *first, double least)
{
    const char *model = rec_text(first, "model"), *arch = rec_text(first, "arch");
    const char *here = device_in(base, model), *there = rec_text(first, "device");
    const char *dtype = rec_text(first, "dtype");
    const int by_prompt = is_single(base, model), is_other = there && strcmp(here, there);
    json_t *index = index_of(base, model, by_prompt), *check = json_object(), *record;
    size_t i, all = 0, same = 0, ids = 0;
    json_array_foreach(run, i, record)
        if (is_answer(record) && rec_is(record, "model", model)) {
            char *key = key_of(record, by_prompt);
            const json_t *mine = json_object_get(record, "token_ids");
            const json_t *of = json_object_get(index, key);
            all++;
            ids += json_array_size(mine);
            same += json_is_array(mine) && of && json_equal(mine, of);
            free(key);
        }
    char *on = is_other ? mem_format(" on %s and %s", there, here) : mem_text("");
    char *text = mem_format("%s: %zu of %zu generations identical%s (%s, %s, %zu ids)",
                            arch ? arch : "model", same, all, on, model,
                            dtype ? dtype : "any dtype", ids);
    json_object_set_new(check, "check", json_string("ids"));
    rec_copy(check, "arch", first, "arch");
    rec_copy(check, "model", first, "model");
    rec_set_int(check, "records", (int64_t)all);
    rec_set_int(check, "identical", (int64_t)same);
    rec_set_flag(check, "pass", all && (double)same >= least * (double)all, NULL);
    json_object_set_new(check, "text", json_string(text));
    json_decref(index);
    free(on);
    free(text);
    return check;
}

json_t *sameness_judge(const json_t *base, const json_t *run, double least)
{
    json_t *checks = json_array(), *met = json_object(), *record;
    size_t i;
    json_array_foreach(run, i, record)
        if (is_answer(record) && !json_object_get(met, rec_text(record, "model"))) {
            json_object_set_new(met, rec_text(record, "model"), json_true());
            json_array_append_new(checks, judge_model(base, run, record, least));
        }
    json_decref(met);
    return checks;
}
