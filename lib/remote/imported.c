/* imported.c - makes the record of a request of any benchmark; see imported.h. Emissions are taken
 * over only if each is one token, because the tokens of other emissions are not known without their
 * texts. */
#include "lib/remote/imported.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/buf.h"
#include "lib/record/json.h"
#include "lib/record/rec.h"
#include "lib/setting/settings.h"

static const double NS_LIMIT = 9007199254740992.0; /* 2^53 */
/* Two equal sums of a benchmark may differ by this share and these ns, because it rounds times. */
static const double ROUNDING = 1e-6, ROUNDING_NS = 1000;

double imported_number(const json_t *object, const char *key, double scale)
{
    return rec_number(object, key) * scale;
}

double imported_at(const json_t *list, size_t i)
{
    const json_t *value = json_array_get(list, i);
    return json_is_number(value) ? json_number_value(value) : (double)NAN;
}

void imported_conditions(json_t *about, const json_t *object, const char *const *names, size_t n)
{
    struct buf text = {0};
    for (size_t i = 0; i < n; i++) {
        char shown[JSON_SHOWN];
        const json_t *value = json_object_get(object, names[i]);
        if (value && !json_is_null(value))
            buf_format(&text, "%s%s=%s", text.len ? " " : "", names[i],
                       json_is_string(value) ? json_string_value(value) : json_shown(value, shown));
    }
    if (text.len)
        json_object_set_new(about, "conditions", json_string(text.data));
    buf_free(&text);
}

json_t *imported_about(const struct imported *imported, const char *model, const char *stack,
                       double batch)
{
    const struct imported_how *how = imported->how;
    json_t *about = json_object();
    const char *name = how->model ? how->model : model;
    const char *slash = name ? strrchr(name, '/') : NULL;
    batch = how->batch ? (double)how->batch : batch;
    json_object_set_new(about, "model", json_string(name ? slash ? slash + 1 : name : "unknown"));
    json_object_set_new(about, "arch", json_string("endpoint"));
    json_object_set_new(about, "stack", json_string(how->stack ? how->stack : stack));
    json_object_set_new(about, "device", json_string("remote"));
    if (batch >= 1)
        rec_set_int(about, "batch", (int64_t)batch);
    return about;
}

static void set_ns(json_t *record, const char *key, double ns)
{
    if (isnan(ns))
        rec_set_number(record, key, ns, "not recorded");
    else
        rec_set_int(record, key, llround(ns));
}

/* 1: a number from 0 to the limit, or not known. */
static int is_possible(double v)
{
    return isnan(v) || (v >= 0 && v < NS_LIMIT);
}

/* Sets the emissions if each is one token: there are as many emissions as tokens, or one less,
 * since the token that ended the text has no emission. */
static void put_emissions(json_t *record, const struct imported_answer *answer)
{
    const double n = (double)answer->gaps + 1;
    double at = answer->ttft_ns;
    if (!answer->gap_ns || isnan(at) || !(answer->tokens - n <= 1) || !(answer->tokens >= n)) {
        json_object_set_new(record, "emit_ns", json_null());
        json_object_set_new(record, "emit_tokens", json_null());
        json_object_set_new(record, "emit_ns_reason",
                            json_string("tokens of emissions are not known"));
        return;
    }
    json_t *when = json_array(), *tokens = json_array();
    for (size_t i = 0; i <= answer->gaps; i++) {
        json_array_append_new(when, json_integer((json_int_t)llround(at)));
        json_array_append_new(tokens, json_integer(1));
        at += i < answer->gaps ? answer->gap_ns[i] : 0;
    }
    json_object_set_new(record, "emit_ns", when);
    json_object_set_new(record, "emit_tokens", tokens);
}

/* Returns when the last emission came; NaN: not known. */
static double last_of(const struct imported_answer *answer)
{
    double last = answer->ttft_ns;
    for (size_t i = 0; i < answer->gaps; i++)
        last += answer->gap_ns[i];
    return last;
}

/* 1: a is less than b by more than rounding. */
static int is_below(double a, double b)
{
    return b - a > ROUNDING * b + ROUNDING_NS;
}

static int check_answer(const struct imported_answer *answer, struct err *e)
{
    int bad = !(answer->e2e_ns > 0) || !(answer->tokens >= 0) || !is_possible(answer->e2e_ns) ||
              !is_possible(answer->ttft_ns) || !is_possible(answer->admit_ns) ||
              !is_possible(answer->batch_ns) || !is_possible(answer->prompt_tokens) ||
              answer->tokens > 1e9 || answer->ttft_ns > answer->e2e_ns;
    for (size_t i = 0; i < answer->gaps; i++)
        bad |= !(answer->gap_ns[i] >= 0) || !is_possible(answer->gap_ns[i]);
    const double last = last_of(answer);
    if (bad)
        return err_set(e, EXIT_BAD_DATA, "expected times and tokens of at least 0, and the first "
                       "token before the end; got %.6g ns, first after %.6g ns, %.6g tokens",
                       answer->e2e_ns, answer->ttft_ns, answer->tokens);
    if (is_below(answer->e2e_ns, last))
        return err_set(e, EXIT_BAD_DATA, "expected the end of a request after its last token; got "
                       "the end after %.9g ns, the last token after %.9g ns", answer->e2e_ns, last);
    if (is_below(answer->batch_ns, answer->e2e_ns))
        return err_set(e, EXIT_BAD_DATA, "expected a run no shorter than each of its requests; got "
                       "%.9g ns for the run, %.9g ns for this request", answer->batch_ns,
                       answer->e2e_ns);
    return 0;
}

static json_t *record_of(const struct imported *imported, const json_t *about,
                         const struct imported_answer *answer)
{
    json_t *record = json_object();
    char id[SETTINGS_ID];
    struct buf label = {0};
    const double batch = rec_number(about, "batch");
    buf_text(&label, rec_text(about, "model"));
    if (batch >= 1)
        buf_format(&label, " batch=%.0f", batch);
    buf_format(&label, " stack=%s", rec_text(about, "stack"));
    settings_id(about, NULL, id);
    json_object_set_new(record, "id", json_string(answer->id));
    json_object_set_new(record, "config", json_string(label.data));
    json_object_set_new(record, "point", json_string(id));
    json_object_update(record, (json_t *)(uintptr_t)about);
    buf_free(&label);
    if (!(batch >= 1))
        json_object_set_new(record, "batch", json_null());
    if (!isnan(answer->prompt_tokens))
        rec_set_int(record, "prompt_tokens", (int64_t)answer->prompt_tokens);
    json_object_set_new(record, "token_ids", json_null());
    rec_set_text(record, "text", answer->text);
    rec_set_int(record, "new_tokens", (int64_t)answer->tokens);
    json_object_set_new(record, "phase", json_string(answer->phase));
    rec_set_int(record, "launch", imported->how->launch);
    rec_set_int(record, "round", answer->round);
    rec_set_int(record, "seq", imported->seq);
    return record;
}

int imported_put(struct imported *imported, const json_t *about,
                 const struct imported_answer *answer, const char *where, struct err *e)
{
    struct err why = {0};
    if (check_answer(answer, &why)) {
        json_t *id = json_string(answer->id);
        int bad = imported->take->bad(imported->take->ctx, &why, where, id, e);
        json_decref(id);
        return bad;
    }
    json_t *record = record_of(imported, about, answer);
    imported->seq++;
    const double e2e = fmax(answer->e2e_ns, last_of(answer)); /* they differ by rounding at most */
    if (!isnan(answer->batch_ns)) {
        rec_set_int(record, "batch_id", answer->round);
        set_ns(record, "batch_ns", fmax(answer->batch_ns, e2e));
    }
    set_ns(record, "admit_ns", answer->admit_ns);
    set_ns(record, "e2e_ns", e2e);
    set_ns(record, "ttft_ns", answer->ttft_ns);
    put_emissions(record, answer);
    json_object_set_new(record, "status", json_string("ok"));
    return imported->take->record(imported->take->ctx, record, e);
}
