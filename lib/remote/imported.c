/* imported.c - see imported.h: a request of any benchmark as a record. Emissions are taken over
 * only if each is one token, because without texts the tokens of other emissions are not known. */
#include "lib/remote/imported.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/buf.h"
#include "lib/record/json.h"
#include "lib/record/rec.h"
#include "lib/setting/settings.h"

static const double NS_LIMIT = 9007199254740992.0; /* 2^53 */
/* The largest difference between two equal sums of a benchmark, which rounds its times. */
static const double ROUNDING = 1e-6, ROUNDING_NS = 1000;

double imported_number(const json_t *o, const char *key, double scale)
{
    return rec_number(o, key) * scale;
}

double imported_at(const json_t *list, size_t i)
{
    const json_t *v = json_array_get(list, i);
    return json_is_number(v) ? json_number_value(v) : (double)NAN;
}

void imported_conditions(json_t *about, const json_t *o, const char *const *names, size_t n)
{
    struct buf b = {0};
    for (size_t i = 0; i < n; i++) {
        char shown[JSON_SHOWN];
        const json_t *v = json_object_get(o, names[i]);
        if (v && !json_is_null(v))
            buf_format(&b, "%s%s=%s", b.len ? " " : "", names[i],
                       json_is_string(v) ? json_string_value(v) : json_shown(v, shown));
    }
    if (b.len)
        json_object_set_new(about, "conditions", json_string(b.data));
    buf_free(&b);
}

json_t *imported_about(const struct imported *f, const char *model, const char *stack,
                       double batch)
{
    const struct imported_how *how = f->how;
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

static void set_ns(json_t *r, const char *key, double ns)
{
    if (isnan(ns))
        rec_set_number(r, key, ns, "not recorded");
    else
        rec_set_int(r, key, llround(ns));
}

/* 1: a number from 0 to the limit, or not known. */
static int is_possible(double v)
{
    return isnan(v) || (v >= 0 && v < NS_LIMIT);
}

/* Sets the emissions, if each is one token: all tokens, or all but one, which ended the text. */
static void put_emissions(json_t *r, const struct imported_answer *a)
{
    const double n = (double)a->gaps + 1;
    double at = a->ttft_ns;
    if (!a->gap_ns || isnan(at) || !(a->tokens - n <= 1) || !(a->tokens >= n)) {
        json_object_set_new(r, "emit_ns", json_null());
        json_object_set_new(r, "emit_tokens", json_null());
        json_object_set_new(r, "emit_ns_reason", json_string("tokens of emissions are not known"));
        return;
    }
    json_t *when = json_array(), *tokens = json_array();
    for (size_t i = 0; i <= a->gaps; i++) {
        json_array_append_new(when, json_integer((json_int_t)llround(at)));
        json_array_append_new(tokens, json_integer(1));
        at += i < a->gaps ? a->gap_ns[i] : 0;
    }
    json_object_set_new(r, "emit_ns", when);
    json_object_set_new(r, "emit_tokens", tokens);
}

/* When the last emission came; NaN: not known. */
static double last_of(const struct imported_answer *a)
{
    double last = a->ttft_ns;
    for (size_t i = 0; i < a->gaps; i++)
        last += a->gap_ns[i];
    return last;
}

/* 1: a is less than b by more than rounding. */
static int is_below(double a, double b)
{
    return b - a > ROUNDING * b + ROUNDING_NS;
}

static int check_answer(const struct imported_answer *a, struct err *e)
{
    int bad = !(a->e2e_ns > 0) || !(a->tokens >= 0) || !is_possible(a->e2e_ns) ||
              !is_possible(a->ttft_ns) || !is_possible(a->admit_ns) || !is_possible(a->batch_ns) ||
              !is_possible(a->prompt_tokens) || a->tokens > 1e9 || a->ttft_ns > a->e2e_ns;
    for (size_t i = 0; i < a->gaps; i++)
        bad |= !(a->gap_ns[i] >= 0) || !is_possible(a->gap_ns[i]);
    const double last = last_of(a);
    if (bad)
        return err_set(e, EXIT_BAD_DATA, "expected times and tokens of at least 0, and the first "
                       "token before the end; got %.6g ns, first after %.6g ns, %.6g tokens",
                       a->e2e_ns, a->ttft_ns, a->tokens);
    if (is_below(a->e2e_ns, last))
        return err_set(e, EXIT_BAD_DATA, "expected the end of a request after its last token; got "
                       "the end after %.9g ns, the last token after %.9g ns", a->e2e_ns, last);
    if (is_below(a->batch_ns, a->e2e_ns))
        return err_set(e, EXIT_BAD_DATA, "expected a run no shorter than each of its requests; got "
                       "%.9g ns for the run, %.9g ns for this request", a->batch_ns, a->e2e_ns);
    return 0;
}

static json_t *record_of(const struct imported *f, const json_t *about,
                         const struct imported_answer *a)
{
    json_t *r = json_object();
    char id[SETTINGS_ID];
    struct buf label = {0};
    const double batch = rec_number(about, "batch");
    buf_text(&label, rec_text(about, "model"));
    if (batch >= 1)
        buf_format(&label, " batch=%.0f", batch);
    buf_format(&label, " stack=%s", rec_text(about, "stack"));
    settings_id(about, NULL, id);
    json_object_set_new(r, "id", json_string(a->id));
    json_object_set_new(r, "config", json_string(label.data));
    json_object_set_new(r, "point", json_string(id));
    json_object_update(r, (json_t *)(uintptr_t)about);
    buf_free(&label);
    if (!(batch >= 1))
        json_object_set_new(r, "batch", json_null());
    if (!isnan(a->prompt_tokens))
        rec_set_int(r, "prompt_tokens", (int64_t)a->prompt_tokens);
    json_object_set_new(r, "token_ids", json_null());
    rec_set_text(r, "text", a->text);
    rec_set_int(r, "new_tokens", (int64_t)a->tokens);
    json_object_set_new(r, "phase", json_string(a->phase));
    rec_set_int(r, "launch", f->how->launch);
    rec_set_int(r, "round", a->round);
    rec_set_int(r, "seq", f->seq);
    return r;
}

int imported_put(struct imported *f, const json_t *about, const struct imported_answer *a,
                 const char *where, struct err *e)
{
    struct err why = {0};
    if (check_answer(a, &why)) {
        json_t *id = json_string(a->id);
        int bad = f->take->bad(f->take->ctx, &why, where, id, e);
        json_decref(id);
        return bad;
    }
    json_t *r = record_of(f, about, a);
    f->seq++;
    const double e2e = fmax(a->e2e_ns, last_of(a)); /* apart by rounding at most */
    if (!isnan(a->batch_ns)) {
        rec_set_int(r, "batch_id", a->round);
        set_ns(r, "batch_ns", fmax(a->batch_ns, e2e));
    }
    set_ns(r, "admit_ns", a->admit_ns);
    set_ns(r, "e2e_ns", e2e);
    set_ns(r, "ttft_ns", a->ttft_ns);
    put_emissions(r, a);
    json_object_set_new(r, "status", json_string("ok"));
    return f->take->record(f->take->ctx, r, e);
}
