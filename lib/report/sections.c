/* sections.c - see sections.h: the answer, the tables, the texts. Numbers are printed with their
 * interval and their unit or not at all; a value that is null says why. */
#include "lib/report/sections.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/mem.h"
#include "lib/analysis/config_table.h"
#include "lib/analysis/format.h"
#include "lib/record/rec.h"
#include "lib/analysis/verdict.h"

enum { MAX_COLUMNS = 12, MAX_TEXTS = 12 };

static const char *or_dash(const char *s)
{
    return s && *s ? s : "–";
}

/* ---- the answer ---- */

void section_answers(struct page *p, const struct runset *s)
{
    size_t i;
    const json_t *r;
    int said = 0;
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
            page_lead(p, b.data);
        buf_free(&b);
    }
    if (!said)
        page_lead(p, "These records hold no crossover, so they do not answer the question yet: "
                     "it takes the latency and the quality of LLaDA at several step counts and of "
                     "LLaMA, and then pareto.");
    json_array_foreach(runset_kind(s, "suggest"), i, r) {
        char *steps = json_dumps(json_object_get(r, "steps"), JSON_COMPACT);
        page_text(p, "To narrow the answer, measure step counts %s with %lld prompts: %s.",
                  steps ? steps : "[]", (long long)rec_int(r, "prompts", 0),
                  or_dash(rec_text(r, "reason")));
        free(steps);
    }
}

static void put_bracket(struct page *p, const json_t *bracket)
{
    struct buf b = {0};
    for (size_t i = 0; i < 2; i++) {
        const json_t *v = json_array_get(bracket, i);
        buf_text(&b, i ? ", " : "[");
        format_digits(&b, json_is_number(v) ? json_number_value(v) : (double)NAN);
    }
    buf_text(&b, "]");
    page_cell(p, json_array_size(bracket) ? b.data : "–");
    buf_free(&b);
}

void section_crossovers(struct page *p, const struct runset *s)
{
    static const char *const headers[] = {"Crossover",  "Quality",     "Batch", "Exists",
                                          "Steps [95 %]", "Bracket", "Probability"};
    const json_t *list = runset_kind(s, "crossover"), *r;
    size_t i;
    if (!json_array_size(list))
        return;
    page_table(p, "The three crossovers. X_lat: as fast as LLaMA; X_q: as good; X_par: both. "
                  "Bracket: the measured step counts on either side, which need no interpolation.",
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
        verdict_steps(&b, s, r);
        page_cell(p, b.data);
        put_bracket(p, json_object_get(r, "bracket"));
        buf_clear(&b);
        format_digits(&b, rec_number(r, "probability"));
        page_cell(p, b.data);
        buf_free(&b);
    }
    page_table_end(p);
}

/* ---- tables of figures ---- */

/* One row a configuration, one column a metric; rows and columns without any value are left out. */
static void put_metrics(struct page *p, const struct runset *s, const struct config_table *all,
                        const char *kind, const char *heading, const char *caption,
                        const char *const *metrics, int n)
{
    const char *headers[MAX_COLUMNS + 1] = {"Configuration"};
    const char *used[MAX_COLUMNS];
    int columns = 0;
    for (int m = 0; m < n && columns < MAX_COLUMNS; m++) {
        int any = 0;
        for (size_t i = 0; i < all->n && !any; i++)
            any = !isnan(rec_number(runset_find(s, kind, all->v[i].config, metrics[m]), "value"));
        if (any) {
            used[columns++] = metrics[m];
            headers[columns] = format_metric_name(metrics[m]);
        }
    }
    if (!columns)
        return;
    page_heading(p, heading);
    page_table(p, caption, columns + 1, headers);
    for (size_t i = 0; i < all->n; i++) {
        int any = 0;
        for (int k = 0; k < columns; k++)
            any |= runset_find(s, kind, all->v[i].config, used[k]) != NULL;
        for (int k = -1; any && k < columns; k++) {
            const json_t *r = k < 0 ? NULL : runset_find(s, kind, all->v[i].config, used[k]);
            const char *why = rec_text(r, "value_reason");
            struct buf b = {0};
            if (k >= 0 && isnan(rec_number(r, "value")) && why)
                format_clean(&b, why, 40);
            else if (k >= 0)
                format_interval(&b, used[k], rec_number(r, "value"), rec_number(r, "lo"),
                                rec_number(r, "hi"));
            page_cell(p, k < 0 ? all->v[i].config : b.data);
            buf_free(&b);
        }
    }
    page_table_end(p);
}

static void put_quality(struct page *p, const struct runset *s, const struct config_table *all)
{
    const char *metrics[MAX_COLUMNS];
    int n = 0;
    size_t i;
    const json_t *r;
    json_array_foreach(runset_kind(s, "quality"), i, r) {
        const char *m = rec_text(r, "metric");
        int at = 0;
        while (m && at < n && strcmp(metrics[at], m))
            at++;
        if (m && at == n && n < MAX_COLUMNS)
            metrics[n++] = m;
    }
    put_metrics(p, s, all, "quality", "Quality",
                "Quality with 95 % intervals over prompts. Perplexity alone rewards repetition, so "
                "diversity stands beside it.",
                metrics, n);
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

#define COUNT(list) ((int)(sizeof(list) / sizeof *(list)))

void section_tables(struct page *p, const struct runset *s)
{
    static const char *const latency[] = {"e2e_ns", "ttft_ns", "ttft_commit_ns", "ttf_block_ns",
                                          "tpot_ns", "norm_latency_ns_per_token"};
    static const char *const rate[] = {"output_tokens_per_s", "slot_tokens_per_s",
                                       "tokens_to_eos", "tokens_per_step",
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

void section_texts(struct page *p, const struct runset *s)
{
    struct config_table all = {0};
    int said = 0;
    config_table_all(&all, s);
    for (size_t i = 0; i < all.n && said < MAX_TEXTS; i++) {
        const json_t *about = runset_config(s, all.v[i].config);
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
