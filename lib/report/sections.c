/* sections.c - tables of metrics, and sample texts; see sections.h.
 *
 * Every number has its unit and, if it is estimated, its interval. A null value shows its reason.
 * Columns that do not fit into the table are in a folded table below it. */
#include "lib/report/sections.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lib/analysis/about.h"
#include "lib/analysis/config_table.h"
#include "lib/analysis/words/display.h"
#include "lib/base/mem.h"
#include "lib/record/rec.h"

#define COUNT(list) (sizeof(list) / sizeof *(list))
enum { MAX_COLUMNS = 7, MAX_TEXTS = 12 };

const char *sections_dash(const char *text)
{
    return text && *text ? text : "–";
}

void sections_cell(struct page *page, struct buf *text)
{
    page_cell(page, sections_dash(text->data));
    buf_free(text);
}

/* Appends 100 (v - none) with its sign. */
static void put_share(struct buf *text, double v, double none)
{
    double p = 100 * (v - none);
    p = fabs(p) < 0.0005 ? 0 : p; /* no -0 and no +0 */
    buf_text(text, p > 0 ? "+" : "");
    display_digits(text, p);
}

void sections_change(struct buf *text, double value, double lo, double hi, double none)
{
    if (isnan(value))
        return;
    put_share(text, value, none);
    if (!isnan(lo) && !isnan(hi)) {
        buf_text(text, " [");
        put_share(text, lo, none);
        buf_text(text, ", ");
        put_share(text, hi, none);
        buf_text(text, "]");
    }
    buf_text(text, none > 0 ? " %" : " points");
}

/* ---- tables of metrics ---- */

struct shown { /* a column: the value of a metric with its interval, or another field */
    const char *metric, *field; /* field NULL: the value with its interval */
    const char *name, *title;   /* of the column; NULL: name and title of the metric */
};

/* 1: some configuration has a number for the column. */
static int is_any(const struct runset *set, const struct config_table *all, const char *kind,
                  const struct shown *shown)
{
    for (size_t i = 0; i < all->n; i++) {
        const json_t *record = runset_find(set, kind, all->v[i].point, shown->metric);
        if (!isnan(rec_number(record, shown->field ? shown->field : "value")))
            return 1;
    }
    return 0;
}

static void put_field(struct page *page, const json_t *record, const struct shown *shown)
{
    const char *field = shown->field ? shown->field : "value";
    char *key = mem_format("%s_reason", field);
    double lo = shown->field ? (double)NAN : rec_number(record, "lo");
    double hi = shown->field ? (double)NAN : rec_number(record, "hi");
    page_value(page, rec_number(record, field), lo, hi, rec_text(record, key));
    free(key);
}

/* Puts a table of n <= MAX_COLUMNS columns besides the name. Rows without a value are left out. */
static void put_columns(struct page *page, const struct runset *set, const struct config_table *all,
                        const char *kind, const char *caption, const struct shown *list, size_t n,
                        int folded)
{
    struct page_column columns[MAX_COLUMNS + 1] = {{"Configuration", NULL}};
    struct buf names = {0};
    for (size_t k = 0; k < n; k++) {
        const char *title = list[k].title ? list[k].title : display_metric_name(list[k].metric);
        columns[k + 1] = (struct page_column){title, list[k].name ? list[k].name : list[k].metric};
        buf_format(&names, "%s%s", k ? ", " : "Further columns: ", title);
    }
    if (folded)
        page_table_folded(page, names.data, caption, n + 1, columns);
    else
        page_table(page, caption, n + 1, columns);
    for (size_t i = 0; i < all->n; i++) {
        int any = 0;
        for (size_t k = 0; k < n; k++)
            any |= runset_find(set, kind, all->v[i].point, list[k].metric) != NULL;
        if (any)
            page_cell(page, all->v[i].config);
        for (size_t k = 0; any && k < n; k++)
            put_field(page, runset_find(set, kind, all->v[i].point, list[k].metric), &list[k]);
    }
    page_table_end(page);
    buf_free(&names);
}

struct heading { const char *id, *title; };

/* Puts tables with a row for each configuration and a column for each entry of list[n]. Rows and
 * columns without a value are left out. Columns from MAX_COLUMNS on are in folded tables. heading
 * NULL: no new section. */
static void put_shown(struct page *page, const struct runset *set, const struct config_table *all,
                      const char *kind, const struct heading *heading, const char *caption,
                      const struct shown *list, size_t n)
{
    struct shown *used = mem_zero(n, sizeof *used);
    size_t columns = 0;
    for (size_t at = 0; at < n; at++)
        if (is_any(set, all, kind, &list[at]))
            used[columns++] = list[at];
    if (columns && heading)
        page_section(page, heading->id, heading->title);
    for (size_t from = 0; from < columns; from += MAX_COLUMNS)
        put_columns(page, set, all, kind, from ? "Further columns of the table above." : caption,
                    used + from, columns - from < MAX_COLUMNS ? columns - from : MAX_COLUMNS,
                    from > 0);
    free(used);
}

static void put_metrics(struct page *page, const struct runset *set, const struct config_table *all,
                        const char *kind, const struct heading *heading, const char *caption,
                        const char *const *metrics, size_t n)
{
    struct shown *list = mem_zero(n, sizeof *list);
    for (size_t i = 0; i < n; i++)
        list[i].metric = metrics[i];
    put_shown(page, set, all, kind, heading, caption, list, n);
    free(list);
}

/* The place of a quality column: accuracy first, then perplexity, then diversity, then others. */
static size_t rank_of(const char *metric)
{
    static const char *const first[] = {"accuracy", "judge_ppl", "judge_bits_per_byte",
                                        "entropy_nats", "distinct_2_ratio", "repetition_ratio"};
    size_t i = 0;
    while (i < COUNT(first) && strcmp(first[i], metric))
        i++;
    return strncmp(metric, "accuracy_", strlen("accuracy_")) ? i : 0; /* accuracy of a task */
}

static void put_quality(struct page *page, const struct runset *set, const struct config_table *all)
{
    const char **metrics = NULL;
    size_t n = 0, cap = 0, i;
    const json_t *record;
    json_array_foreach(runset_kind(set, "quality"), i, record) {
        const char *metric = rec_text(record, "metric");
        size_t at = 0;
        while (metric && at < n && strcmp(metrics[at], metric))
            at++;
        if (!metric || at < n)
            continue;
        MEM_GROW(metrics, n, cap);
        for (at = n++; at > 0 && rank_of(metrics[at - 1]) > rank_of(metric); at--)
            metrics[at] = metrics[at - 1];
        metrics[at] = metric;
    }
    put_metrics(page, set, all, "quality", &(const struct heading){"quality", "Quality"},
                "Quality with 95 % intervals over prompts. Repetitive texts have a low "
                "perplexity, so the table has the diversity of the texts too.",
                metrics, n);
    free(metrics);
}

/* ---- the machine's limits ---- */

static void put_ceilings(struct page *page, const struct runset *set)
{
    static const struct page_column columns[] = {
        {"Ceiling", NULL}, {"GFLOP/s", ""}, {"GB/s", ""}, {"Instructions", NULL}};
    size_t i;
    int said = 0;
    const json_t *record;
    json_array_foreach(runset_kind(set, "roofline"), i, record) {
        if (!json_is_true(json_object_get(record, "ceiling")))
            continue;
        const char *library = rec_text(record, "library");
        if (!said++)
            page_table(page, "Ceilings of the machine, measured before the run. The shares "
                             "above are relative to them.", COUNT(columns), columns);
        struct buf text = {0};
        page_cell(page, sections_dash(rec_text(record, "name")));
        page_count(page, rec_number(record, "flops_per_s") / 1e9);
        page_count(page, rec_number(record, "bytes_per_s") / 1e9);
        buf_text(&text, sections_dash(rec_text(record, "isa")));
        if (rec_text(record, "device_name"))
            buf_format(&text, ", %s", library ? library : "without the vendor library: too low");
        page_cell(page, text.data);
        buf_free(&text);
    }
    if (said)
        page_table_end(page);
}

static int has_one_tokenizer(const struct runset *set, const struct config_table *all)
{
    const json_t *first = NULL;
    for (size_t i = 0; i < all->n; i++) {
        const json_t *about = runset_config(set, all->v[i].point);
        first = first || !rec_text(about, "tokenizer") ? first : about;
        if (about_other_tokens(first, about))
            return 0;
    }
    return 1;
}

void sections_tables(struct page *page, const struct runset *set)
{
    static const char *const latency[] = {
        "e2e_ns",       "ttft_ns",     "ttft_commit_ns",           "ttf_block_ns",
        "tpot_ns",      "tokenize_ns", "norm_latency_ns_per_token", "prepare_ns"};
    static const struct shown gaps[] = {
        {.metric = "itl_ns"},
        {"itl_ns", "p95", "itl_ns_p95", "inter-token latency, p95"},
        {.metric = "visible_gap_ns"},
        {"visible_gap_ns", "p95", "visible_gap_ns_p95", "gap, p95"},
        {"longest_gap_ns", NULL, NULL, "longest gap in an answer, median"},
        {"longest_gap_ns", "max", "longest_gap_ns_max", "longest gap, maximum"}};
    static const struct shown percentiles[] = {
        {"e2e_ns", "p90", "e2e_ns_p90", "latency, p90"},
        {"e2e_ns", "p95", "e2e_ns_p95", "latency, p95"},
        {"e2e_ns", "p99", "e2e_ns_p99", "latency, p99"},
        {"e2e_ns", "max", "e2e_ns_max", "latency, maximum"},
        {"ttft_ns", "p90", "ttft_ns_p90", "first token, p90"},
        {"ttft_ns", "p95", "ttft_ns_p95", "first token, p95"},
        {"ttft_ns", "p99", "ttft_ns_p99", "first token, p99"}};
    static const char *const rate[] = {"output_bytes_per_s", "output_tokens_per_s",
                                       "slot_tokens_per_s",
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
    config_table_all(&all, set);
    put_quality(page, set, &all);
    put_metrics(page, set, &all, "metric", &(const struct heading){"latency", "Latency"},
                "Latency of one answer: medians of launches with 95 % intervals. Lower is better.",
                latency, COUNT(latency));
    put_shown(page, set, &all, "metric", NULL,
              "Time between tokens. Inter-token latency divides the time of a step by the tokens "
              "that it made final. The gap is the time between two visible changes of the text. "
              "Medians with 95 % intervals; percentiles over all gaps.",
              gaps, COUNT(gaps));
    put_shown(page, set, &all, "metric", NULL,
              "Percentiles over answers; a percentile that needs more answers is left out.",
              percentiles, COUNT(percentiles));
    int same = has_one_tokenizer(set, &all); /* 1: leaves out the column bytes a second */
    put_metrics(page, set, &all, "metric", &(const struct heading){"throughput", "Throughput"},
                same ? "Tokens a second. \"To EOS\" counts tokens up to the end of the text; \"all "
                       "slots\" also counts the canvas after it."
                     : "Text and tokens a second. \"To EOS\" counts tokens up to the end of the "
                       "text; \"all slots\" also counts the canvas after it. The tokenizers "
                       "differ: only bytes a second can be compared between the models.",
                rate + same, COUNT(rate) - (size_t)same);
    put_metrics(page, set, &all, "metric",
                &(const struct heading){"limits", "Share of the machine's limits"},
                "The least work of an answer, divided by its time and by the ceiling of the "
                "machine. Work in bytes: every matrix once a pass, and the KV cache. Work in "
                "flops: multiplications and additions of the computed rows. Bandwidth above 100 "
                "%: the weights fit in a processor cache.",
                share, COUNT(share));
    put_ceilings(page, set);
    put_metrics(page, set, &all, "metric", &(const struct heading){"memory", "Memory"},
                "Memory by the counters of the allocator, where requested <= allocated <= reserved "
                "<= process.",
                memory, COUNT(memory));
    put_metrics(page, set, &all, "metric", &(const struct heading){"energy", "Energy"},
                "Joules during the batches. GPU: the board (NVML), without the host. CPU: the "
                "processor packages (RAPL), without memory, board and power supply, with all other "
                "work on the machine.",
                energy, COUNT(energy));
    config_table_free(&all);
}

/* ---- texts ---- */

void sections_texts(struct page *page, const struct runset *set)
{
    struct config_table all = {0};
    int said = 0;
    config_table_all(&all, set);
    for (size_t i = 0; i < all.n && said < MAX_TEXTS; i++) {
        const json_t *about = runset_config(set, all.v[i].point);
        const char *prompt = rec_text(about, "prompt"), *text = rec_text(about, "text");
        if (!text)
            continue;
        if (!said++)
            page_section(page, "texts", "Sample texts");
        char *head = display_cleaned(prompt, 120), *body = display_cleaned(text, 400);
        page_item(page, "%s: “%s” → “%s”", all.v[i].config, head, body);
        free(head);
        free(body);
    }
    config_table_free(&all);
}
