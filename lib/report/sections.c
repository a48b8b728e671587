/* sections.c - see sections.h: the answer, the tables, the texts. Numbers are printed with their
 * interval and their unit or not at all; a value that is null says why; a table that would be too
 * wide goes on in another one. */
#include "lib/report/sections.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lib/analysis/about.h"
#include "lib/analysis/config_table.h"
#include "lib/analysis/format.h"
#include "lib/analysis/verdict.h"
#include "lib/base/mem.h"
#include "lib/record/rec.h"

enum { MAX_COLUMNS = 12, MAX_TEXTS = 12 };

static const char *or_dash(const char *s)
{
    return s && *s ? s : "–";
}

/* ---- the answer ---- */

/* What to measure next, when there is anything. */
static void put_suggestion(struct page *p, const json_t *r)
{
    const json_t *values = json_object_get(r, "values");
    const char *axis = rec_text(r, "axis");
    double prompts = rec_number(r, "prompts");
    struct buf b = {0};
    values = values ? values : json_object_get(r, "steps");
    for (size_t i = 0; i < json_array_size(values); i++) {
        buf_format(&b, "%s", i ? ", " : " ");
        about_value(&b, json_array_get(values, i));
    }
    if (b.len)
        page_text(p, "To narrow the answer, measure %s%s: %s.",
                  about_axis_name(axis ? axis : "steps"), b.data, or_dash(rec_text(r, "reason")));
    else if (rec_number(r, "octaves") > 1 && !isnan(prompts))
        page_text(p, "To narrow the answer, measure with %.0f prompts%s: %s.", prompts,
                  json_is_true(json_object_get(r, "prompts_at_least")) ? " or more" : "",
                  or_dash(rec_text(r, "reason")));
    buf_free(&b);
}

/* What the harness could not show of itself; NULL: it passed, or was not asked. The caller's. */
static char *doubts(const struct runset *s)
{
    struct buf b = {0};
    size_t i;
    const json_t *r;
    json_array_foreach(runset_kind(s, "check"), i, r) {
        const char *verdict = rec_text(r, "verdict"), *text = rec_text(r, "text");
        if (json_is_true(json_object_get(r, "pass")))
            continue;
        int open = verdict && !strcmp(verdict, "UNDECIDED");
        buf_format(&b, "%sHarness check %s: %s%s%s.", b.len ? " " : "",
                   or_dash(rec_text(r, "check")), open ? "UNDECIDED" : "FAILED", text ? ": " : "",
                   text ? text : "");
    }
    return b.data;
}

void sections_answers(struct page *p, const struct runset *s)
{
    size_t i;
    const json_t *r;
    int said = 0;
    char *doubt = doubts(s);
    json_array_foreach(runset_kind(s, "crossover"), i, r) {
        const char *name = rec_text(r, "name");
        if (!name || strcmp(name, "X_par"))
            continue;
        struct buf b = {0};
        verdict_answer(&b, s, r);
        verdict_price(&b, s, r);
        if (said++)
            page_item(p, "%s", b.data);
        else
            page_lead(p, doubt, b.data);
        buf_free(&b);
    }
    if (!said)
        page_lead(p, doubt,
                  "These records hold no crossover, so they do not answer the question yet: "
                  "it takes the latency and the quality of LLaDA at several step counts and of "
                  "LLaMA, and then pareto.");
    free(doubt);
    json_array_foreach(runset_kind(s, "suggest"), i, r) {
        put_suggestion(p, r);
    }
}

static void put_bracket(struct page *p, const json_t *r)
{
    const json_t *bracket = json_object_get(r, "bracket");
    struct buf b = {0};
    for (size_t i = 0; i < 2; i++) {
        const json_t *v = json_array_get(bracket, i);
        buf_text(&b, i ? ", " : "[");
        format_digits(&b, json_is_number(v) ? json_number_value(v) : (double)NAN);
    }
    buf_text(&b, "]");
    verdict_values(&b, r);
    page_cell(p, json_array_size(bracket) ? b.data : "–");
    buf_free(&b);
}

void sections_crossovers(struct page *p, const struct runset *s)
{
    static const char *const headers[] = {"Crossover",  "Quality",     "Batch", "Exists",
                                          "Place [95 %]", "Bracket", "Probability"};
    const json_t *list = runset_kind(s, "crossover"), *r;
    size_t i;
    if (!json_array_size(list))
        return;
    page_table(p, "The three crossovers. X_lat: as fast as LLaMA; X_q: as good; X_par: both. "
                  "Bracket: the measured points on either side, which need no interpolation.",
               7, headers);
    json_array_foreach(list, i, r) {
        struct buf b = {0};
        const char *quality = rec_text(r, "quality_metric");
        int exists = json_is_true(json_object_get(r, "exists"));
        page_cell(p, or_dash(rec_text(r, "name")));
        page_cell(p, quality ? format_metric_name(quality) : "–");
        double known = rec_number(r, "batch");
        char *batch = mem_format("%.0f", isnan(known) ? 1 : known);
        page_cell(p, batch);
        free(batch);
        page_cell(p, exists ? "yes" : "no");
        buf_clear(&b);
        verdict_place(&b, s, r);
        if (exists)
            buf_format(&b, " %s", verdict_unit(r, 0));
        page_cell(p, b.data);
        put_bracket(p, r);
        buf_clear(&b);
        format_digits(&b, rec_number(r, "probability"));
        page_cell(p, b.data);
        buf_free(&b);
    }
    page_table_end(p);
}

/* ---- tables of metrics ---- */

/* One table of some columns. Rows without any value are left out. */
static void put_columns(struct page *p, const struct runset *s, const struct config_table *all,
                        const char *kind, const char *caption, const char *const *metrics,
                        int columns)
{
    const char *headers[MAX_COLUMNS + 1] = {"Configuration"};
    for (int k = 0; k < columns; k++)
        headers[k + 1] = format_metric_name(metrics[k]);
    page_table(p, caption, columns + 1, headers);
    for (size_t i = 0; i < all->n; i++) {
        int any = 0;
        for (int k = 0; k < columns; k++)
            any |= runset_find(s, kind, all->v[i].point, metrics[k]) != NULL;
        for (int k = -1; any && k < columns; k++) {
            const json_t *r = k < 0 ? NULL : runset_find(s, kind, all->v[i].point, metrics[k]);
            const char *why = rec_text(r, "value_reason");
            struct buf b = {0};
            if (k >= 0 && isnan(rec_number(r, "value")) && why)
                format_clean(&b, why, 40);
            else if (k >= 0)
                format_interval(&b, metrics[k], rec_number(r, "value"), rec_number(r, "lo"),
                                rec_number(r, "hi"));
            page_cell(p, k < 0 ? all->v[i].config : b.data);
            buf_free(&b);
        }
    }
    page_table_end(p);
}

/* One row a configuration, one column a metric; rows and columns without any value are left out.
 * More columns than a table holds go on in the next one. */
static void put_metrics(struct page *p, const struct runset *s, const struct config_table *all,
                        const char *kind, const char *heading, const char *caption,
                        const char *const *metrics, size_t n)
{
    const char **used = mem_zero(n, sizeof *used);
    size_t columns = 0;
    for (size_t m = 0; m < n; m++) {
        int any = 0;
        for (size_t i = 0; i < all->n && !any; i++)
            any = !isnan(rec_number(runset_find(s, kind, all->v[i].point, metrics[m]), "value"));
        if (any)
            used[columns++] = metrics[m];
    }
    if (columns)
        page_heading(p, heading);
    for (size_t from = 0; from < columns; from += MAX_COLUMNS)
        put_columns(p, s, all, kind, from ? "Further columns of the table above." : caption,
                    used + from,
                    columns - from < MAX_COLUMNS ? (int)(columns - from) : (int)MAX_COLUMNS);
    free(used);
}

static void put_quality(struct page *p, const struct runset *s, const struct config_table *all)
{
    const char **metrics = NULL;
    size_t n = 0, cap = 0, i;
    const json_t *r;
    json_array_foreach(runset_kind(s, "quality"), i, r) {
        const char *m = rec_text(r, "metric");
        size_t at = 0;
        while (m && at < n && strcmp(metrics[at], m))
            at++;
        if (!m || at < n)
            continue;
        MEM_GROW(metrics, n, cap);
        metrics[n++] = m;
    }
    put_metrics(p, s, all, "quality", "Quality",
                "Quality with 95 % intervals over prompts. Perplexity alone rewards repetition, so "
                "diversity stands beside it.",
                metrics, n);
    free(metrics);
}

/* ---- the machine's limits ---- */

static void put_ceilings(struct page *p, const struct runset *s)
{
    static const char *const headers[] = {"Ceiling", "GFLOP/s", "GB/s", "Instructions"};
    size_t i;
    int said = 0;
    const json_t *r;
    json_array_foreach(runset_kind(s, "roofline"), i, r) {
        if (!json_is_true(json_object_get(r, "ceiling")))
            continue;
        const char *library = rec_text(r, "library");
        if (!said++)
            page_table(p, "What the machine can do at most, measured before the run: the shares "
                          "above are of these.", 4, headers);
        struct buf b = {0};
        page_cell(p, or_dash(rec_text(r, "name")));
        format_digits(&b, rec_number(r, "flops_per_s") / 1e9);
        page_cell(p, b.data);
        buf_clear(&b);
        format_digits(&b, rec_number(r, "bytes_per_s") / 1e9);
        page_cell(p, b.data);
        buf_clear(&b);
        buf_text(&b, or_dash(rec_text(r, "isa")));
        if (rec_text(r, "device_name"))
            buf_format(&b, ", %s", library ? library : "no library of the vendor: too low");
        page_cell(p, b.data);
        buf_free(&b);
    }
    if (said)
        page_table_end(p);
}

#define COUNT(list) (sizeof(list) / sizeof *(list))

void sections_tables(struct page *p, const struct runset *s)
{
    static const char *const latency[] = {"e2e_ns", "ttft_ns", "ttft_commit_ns", "ttf_block_ns",
                                          "tpot_ns", "norm_latency_ns_per_token"};
    static const char *const rate[] = {"output_tokens_per_s", "slot_tokens_per_s",
                                       "tokens_to_eos", "passes", "rows", "tokens_per_step",
                                       "position_efficiency_ratio"};
    static const char *const share[] = {"mbu_ratio", "mfu_ratio", "decode_mbu_ratio",
                                        "prefill_mfu_ratio", "model_bytes_per_s",
                                        "model_flops_per_s"};
    static const char *const memory[] = {
        "memory_weights_bytes",        "memory_kv_bytes",
        "memory_activations_bytes",    "memory_requested_peak_bytes",
        "memory_allocated_peak_bytes", "memory_reserved_peak_bytes",
        "memory_process_peak_bytes",   "memory_device_peak_bytes"};
    static const char *const energy[] = {"energy_j_per_token", "energy_net_j_per_token",
                                         "energy_j_per_request", "power_mean_w",
                                         "power_cap_ratio"};
    struct config_table all = {0};
    config_table_all(&all, s);
    put_quality(p, s, &all);
    put_metrics(p, s, &all, "metric", "Latency",
                "Latency of one answer: medians of launches with 95 % intervals. Lower is better.",
                latency, COUNT(latency));
    put_metrics(p, s, &all, "metric", "Throughput",
                "Tokens a second. To EOS counts what a reader gets; all slots counts also what a "
                "canvas holds after the end of the text.",
                rate, COUNT(rate));
    put_metrics(p, s, &all, "metric", "Share of the machine's limits",
                "What the work needs on paper (matrices once a pass, the cache; multiplications "
                "and additions of the rows computed), over its time, over what the machine can do. "
                "Bandwidth above 100 %: the weights lie in a cache.",
                share, COUNT(share));
    put_ceilings(p, s);
    put_metrics(p, s, &all, "metric", "Memory",
                "Memory as the allocator saw it: requested <= allocated <= reserved <= process.",
                memory, COUNT(memory));
    put_metrics(p, s, &all, "metric", "Energy",
                "GPU board energy, NVML, excludes host: by the counter of the driver over the time "
                "of the batches.",
                energy, COUNT(energy));
    config_table_free(&all);
}

/* ---- texts ---- */

void sections_texts(struct page *p, const struct runset *s)
{
    struct config_table all = {0};
    int said = 0;
    config_table_all(&all, s);
    for (size_t i = 0; i < all.n && said < MAX_TEXTS; i++) {
        const json_t *about = runset_config(s, all.v[i].point);
        const char *prompt = rec_text(about, "prompt"), *text = rec_text(about, "text");
        if (!text)
            continue;
        if (!said++)
            page_heading(p, "What the texts look like");
        char *head = format_cleaned(prompt, 120), *body = format_cleaned(text, 400);
        page_item(p, "%s: “%s” → “%s”", all.v[i].config, head, body);
        free(head);
        free(body);
    }
    config_table_free(&all);
}
