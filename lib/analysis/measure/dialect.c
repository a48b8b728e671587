/* dialect.c - see dialect.h. A value is a list of numbers, one a request or one a gap, and what is
 * said of it: so a benchmark is a table of rows. A request for which a definition has no value (one
 * token, no emission) is left out of that list, as those tools do.
 */
#include "lib/analysis/measure/dialect.h"

#include <math.h>
#include <stdlib.h>

#include "lib/base/mem.h"
#include "lib/record/rec.h"
#include "lib/stat/stat.h"

void dialect_take(struct dialect *d, const struct timing *t, size_t n)
{
    MEM_GROW(d->v, d->n, d->cap);
    d->v[d->n++] = (struct dialect_request){
        .e2e = n ? t->emit_ns[n - 1] : NAN, .ttft = n ? t->emit_ns[0] : NAN,
        .n = t->tokens_to_eos, .prompt = t->prompt_tokens, .first = n ? t->emit_tokens[0] : NAN,
        .slots = t->new_tokens, .stops = t->stop_tokens, .stopped = t->stopped,
        .again = t->retokenized};
    for (size_t i = 1; i < n; i++) {
        MEM_GROW(d->gap, d->n_gaps, d->cap_gaps);
        d->gap[d->n_gaps++] = (struct dialect_gap){t->emit_ns[i] - t->emit_ns[i - 1],
                                                   t->emit_tokens[i]};
    }
}

void dialect_free(struct dialect *d)
{
    free(d->v);
    free(d->gap);
    *d = (struct dialect){0};
}

/* ---- what a request is worth in a definition; NaN: it has no value ---- */

static double ttft(const struct dialect_request *r)
{
    return r->ttft;
}
static double e2e(const struct dialect_request *r)
{
    return r->e2e;
}
static double after_first(const struct dialect_request *r)
{
    return r->n > 1 ? (r->e2e - r->ttft) / (r->n - 1) : NAN;
}
static double with_first(const struct dialect_request *r)
{
    return r->n > 0 ? r->e2e / r->n : NAN;
}
static double suffix(const struct dialect_request *r)
{
    return r->n > r->first ? (r->e2e - r->ttft) / (r->n - r->first) : NAN;
}
static double user_rate(const struct dialect_request *r)
{
    double itl = after_first(r);
    return itl > 0 ? 1e9 / itl : NAN;
}
static double prefill_rate(const struct dialect_request *r)
{
    return r->ttft > 0 ? r->prompt * 1e9 / r->ttft : NAN;
}

/* What is said of a list: its mean, or a percentile. */
enum { MEAN = -1 };
struct row {
    const char *name;
    double (*of)(const struct dialect_request *); /* NULL: of the gaps */
    int per_token; /* gaps: each divided by its tokens */
    int percent;   /* MEAN or a percentile */
    const char *unit;
};
#define SAID(name, of, per_token, unit)                                                         \
    {"mean_" name, of, per_token, MEAN, unit}, {"p50_" name, of, per_token, 50, unit},          \
        {"p99_" name, of, per_token, 99, unit}

static const struct row vllm[] = {SAID("ttft", ttft, 0, "ns"), SAID("tpot", after_first, 0, "ns"),
                                  SAID("itl", NULL, 0, "ns"), SAID("e2el", e2e, 0, "ns"), {0}};
static const struct row aiperf[] = {
    SAID("ttft", ttft, 0, "ns"), SAID("inter_token_latency", after_first, 0, "ns"),
    SAID("inter_chunk_latency", NULL, 0, "ns"), SAID("request_latency", e2e, 0, "ns"),
    {"mean_output_token_throughput_per_user", user_rate, 0, MEAN, "per_s"},
    {"mean_prefill_throughput_per_user", prefill_rate, 0, MEAN, "per_s"}, {0}};
static const struct row genai[] = {SAID("time_to_first_token", ttft, 0, "ns"),
                                   SAID("inter_token_latency", NULL, 1, "ns"),
                                   SAID("request_latency", e2e, 0, "ns"), {0}};
static const struct row guide[] = {SAID("ttft", ttft, 0, "ns"), SAID("tpot", with_first, 0, "ns"),
                                   SAID("itl", after_first, 0, "ns"), {0}};
static const struct row mlperf[] = {{"p99_ttft", ttft, 0, 99, "ns"},
                                    {"p99_tpot", after_first, 0, 99, "ns"},
                                    {"p90_tpot_endpoints", suffix, 0, 90, "ns"}, {0}};
static const struct {
    const char *tool;
    const struct row *row;
} tools[] = {{"vllm", vllm}, {"aiperf", aiperf}, {"genai-perf", genai}, {"guidellm", guide},
             {"mlperf", mlperf}};

static int by_number(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double said(double *x, size_t n, int percent)
{
    if (n == 0 || percent == MEAN)
        return n ? stat_mean(x, n) : NAN;
    qsort(x, n, sizeof *x, by_number);
    double at = percent / 100.0 * (double)(n - 1);
    size_t i = (size_t)at, next = i + 1 < n ? i + 1 : i;
    return x[i] + (at - (double)i) * (x[next] - x[i]);
}

/* work: room for all requests and all gaps. */
static double value_of(const struct dialect *d, const struct row *r, double *work)
{
    size_t n = 0;
    for (size_t i = 0; r->of && i < d->n; i++) {
        double v = r->of(&d->v[i]);
        if (!isnan(v))
            work[n++] = v;
    }
    for (size_t i = 0; !r->of && i < d->n_gaps; i++)
        work[n++] = d->gap[i].ns / (r->per_token ? d->gap[i].tokens : 1);
    return said(work, n, r->percent);
}

static void append(json_t *list, const char *name, double v, const char *unit)
{
    json_t *o = json_pack("{s:s, s:s}", "name", name, "unit", unit);
    rec_set_number(o, "value", v, "no request has one");
    json_array_append_new(list, o);
}

json_t *dialect_records(const struct dialect *d, double seconds)
{
    json_t *all = json_array();
    double *work = mem_zero(d->n + d->n_gaps + 1, sizeof *work), tokens = 0;
    for (size_t i = 0; i < d->n; i++)
        tokens += d->v[i].n;
    for (size_t t = 0; t < sizeof tools / sizeof *tools; t++) {
        json_t *values = json_array();
        for (const struct row *r = tools[t].row; r->name; r++)
            append(values, r->name, value_of(d, r, work), r->unit);
        if (tools[t].row == mlperf)
            append(values, "user_rate_endpoints",
                   1e9 / value_of(d, &(struct row){"", suffix, 0, 90, ""}, work), "per_s");
        append(values, "output_throughput", tokens / seconds, "per_s");
        json_array_append_new(all, json_pack("{s:s, s:o}", "tool", tools[t].tool, "values",
                                             values));
    }
    free(work);
    return all;
}

/* ---- rules of counting ---- */

static double to_eos(const struct dialect_request *r)
{
    return r->n;
}
static double with_stop(const struct dialect_request *r)
{
    return r->n + r->stopped;
}
static double not_stops(const struct dialect_request *r)
{
    return r->slots - r->stops;
}
static double with_prompt(const struct dialect_request *r)
{
    return r->prompt + r->slots - r->stops;
}
static double encoded_again(const struct dialect_request *r)
{
    return r->again;
}
static double all_slots(const struct dialect_request *r)
{
    return r->slots;
}

json_t *dialect_audit(const struct dialect *d, double seconds)
{
    static const struct {
        const char *name, *source;
        double (*of)(const struct dialect_request *);
    } rules[] = {
        {"to_eos", "tokens before the first stop id: here", to_eos},
        {"with_stop_id", "completion tokens of servers (vLLM, SGLang)", with_stop},
        {"not_stop_ids", "dInfer, benchmark_dataset.py", not_stops},
        {"prompt_and_not_stop_ids", "Fast-dLLM, eval_llada.py, HumanEval", with_prompt},
        {"encoded_again", "Fast-dLLM, eval_llada.py, other tasks", encoded_again},
        {"all_slots", "length of the canvas", all_slots}};
    json_t *list = json_array();
    double base = 0;
    for (size_t k = 0; k < sizeof rules / sizeof *rules; k++) {
        double tokens = 0;
        for (size_t i = 0; i < d->n; i++)
            tokens += rules[k].of(&d->v[i]);
        base = k ? base : tokens;
        json_t *o = json_pack("{s:s, s:s}", "name", rules[k].name, "source", rules[k].source);
        rec_set_number(o, "tokens", tokens, "not recorded");
        rec_set_number(o, "tokens_per_s", tokens / seconds, "not recorded");
        rec_set_number(o, "ratio", base > 0 ? tokens / base : NAN, "no tokens");
        json_array_append_new(list, o);
    }
    return json_pack("{s:o}", "rules", list);
}
