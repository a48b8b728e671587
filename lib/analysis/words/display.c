/* display.c - see display.h. One table has the English name of each metric. The suffix of a name
 * gives the unit. Texts of records are cleaned before they are printed, because a terminal or a
 * page could obey control characters in them. */
#include "lib/analysis/words/display.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/plain.h"

static const struct {
    const char *name, *english;
} names[] = {
    {"e2e_ns", "end-to-end latency"},
    {"ttft_ns", "time to first readable token"},
    {"ttft_commit_ns", "time to first committed token"},
    {"ttf_block_ns", "time to first block"},
    {"tpot_ns", "time per output token"},
    {"itl_ns", "inter-token latency"},
    {"visible_gap_ns", "gap between visible changes"},
    {"longest_gap_ns", "longest gap of an answer"},
    {"tokenize_ns", "time to tokenize"},
    {"prepare_ns", "time to prepare"},
    {"norm_latency_ns_per_token", "latency per token"},
    {"norm_latency_ns_per_word", "latency per word"},
    {"output_tokens_per_s", "output tokens per second, to EOS"},
    {"requests_per_s", "requests per second"},
    {"goodput_per_s", "requests per second within the limits"},
    {"slot_tokens_per_s", "tokens per second, all slots"},
    {"output_bytes_per_s", "bytes of text per second, to EOS"},
    {"tokens_to_eos", "tokens to EOS"},
    {"position_efficiency_ratio", "committed / computed positions"},
    {"energy_j_per_token", "joules per token"},
    {"energy_net_j_per_token", "joules per token, less idle power"},
    {"energy_j_per_request", "joules per answer"},
    {"power_mean_w", "mean power of the board (W)"},
    {"power_cap_ratio", "time under the power cap"},
    {"tokens_per_step", "tokens per step"},
    {"passes", "denoising passes"},
    {"rows", "positions computed"},
    {"mfu_ratio", "share of peak arithmetic"},
    {"mbu_ratio", "share of bandwidth"},
    {"prefill_mfu_ratio", "share of peak arithmetic, prompts"},
    {"decode_mbu_ratio", "share of bandwidth, after the prompts"},
    {"model_flops_per_s", "operations per second"},
    {"model_bytes_per_s", "bytes per second"},
    {"memory_weights_bytes", "weights"},
    {"memory_kv_bytes", "K/V cache"},
    {"memory_activations_bytes", "activations"},
    {"memory_requested_peak_bytes", "peak memory, requested"},
    {"memory_allocated_peak_bytes", "peak memory, allocated"},
    {"memory_reserved_peak_bytes", "peak memory, reserved"},
    {"memory_device_peak_bytes", "peak memory, device"},
    {"memory_process_peak_bytes", "peak memory, process"},
    {"judge_ppl", "judge perplexity"},
    {"judge_nll_nats", "judge NLL (nats)"},
    {"judge_bits_per_byte", "judge bits per byte"},
    {"entropy_nats", "token entropy (nats)"},
    {"distinct_1_ratio", "distinct 1-grams"},
    {"distinct_2_ratio", "distinct 2-grams"},
    {"repetition_ratio", "repetition"},
    {"accuracy", "accuracy (exact match)"},
    {"ppl", "perplexity"},
    {"bits_per_byte", "bits per byte"},
    {"nll_ppl", "perplexity, exact"},
    {"nll_nats", "NLL (nats)"},
    {"nll_bits_per_byte", "bits per byte, exact"},
    {"elbo_ppl", "perplexity, at most (ELBO)"},
    {"elbo_nats", "NLL bound (nats, ELBO)"},
    {"elbo_bits_per_byte", "bits per byte, at most (ELBO)"},
    {"iwae_ppl", "perplexity, at most (IWAE)"},
    {"iwae_nats", "NLL bound (nats, IWAE)"},
    {"iwae_bits_per_byte", "bits per byte, at most (IWAE)"},
    {"kstep_ppl", "perplexity, at most (K steps)"},
    {"kstep_nats", "NLL bound (nats, K steps)"},
    {"kstep_bits_per_byte", "bits per byte, at most (K steps)"},
};

const char *display_metric_name(const char *metric)
{
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (!strcmp(names[i].name, metric))
            return names[i].english;
    return metric;
}

void display_clean(struct buf *text, const char *bytes, size_t max)
{
    for (size_t chars = 0; bytes && *bytes; chars++) {
        if (chars == max) {
            buf_text(text, "…");
            return;
        }
        int shown;
        size_t n = plain_next(bytes, &shown);
        if (shown)
            buf_put(text, bytes, n);
        else
            buf_text(text, "\xEF\xBF\xBD");
        bytes += n;
    }
}

char *display_cleaned(const char *text, size_t max)
{
    struct buf buffer = {0};
    buf_reserve(&buffer, 1);
    buffer.data[buffer.len] = 0;
    display_clean(&buffer, text, max);
    return buffer.data;
}

int display_ends_with(const char *metric, const char *suffix)
{
    size_t n = strlen(metric), m = strlen(suffix);
    return n >= m && !strcmp(metric + n - m, suffix);
}

struct display_scale display_scale(const char *metric, double typical)
{
    double size = fabs(typical);
    if (strstr(metric, "_ns"))
        return size >= 1e9   ? (struct display_scale){1e9, "s"}
               : size >= 1e6 ? (struct display_scale){1e6, "ms"}
               : size >= 1e3 ? (struct display_scale){1e3, "µs"}
                             : (struct display_scale){1, "ns"};
    if (display_ends_with(metric, "_bytes"))
        return size >= 1024.0 * 1024 * 1024 ? (struct display_scale){1024.0 * 1024 * 1024, "GiB"}
               : size >= 1024.0 * 1024      ? (struct display_scale){1024.0 * 1024, "MiB"}
                                            : (struct display_scale){1024, "KiB"};
    if (display_ends_with(metric, "_flops_per_s"))
        return (struct display_scale){1e9, "GFLOP/s"};
    if (!strcmp(metric, "output_bytes_per_s"))
        return (struct display_scale){1, "B/s"};
    if (display_ends_with(metric, "_bytes_per_s"))
        return (struct display_scale){1e9, "GB/s"};
    if (display_ends_with(metric, "_per_s"))
        return (struct display_scale){1, "/s"};
    if (!strncmp(metric, "accuracy", strlen("accuracy")) ||
        !strncmp(metric, "differing_", strlen("differing_")) ||
        display_ends_with(metric, "mfu_ratio") || display_ends_with(metric, "mbu_ratio"))
        return (struct display_scale){0.01, "%"};
    return (struct display_scale){1, ""};
}

void display_digits(struct buf *text, double v)
{
    double a = fabs(v);
    if (!isfinite(v))
        buf_text(text, "–");
    else if (a != 0 && (a < 1e-3 || a >= 1e7)) /* exact: zero has no magnitude */
        buf_format(text, "%.3g", v);
    else if (v >= rint(v) && v <= rint(v)) /* a whole number */
        buf_format(text, "%.0f", v);
    else
        buf_format(text, "%.*f", a >= 100 ? 0 : a >= 10 ? 1 : a >= 1 ? 2 : 3, v);
}

void display_value(struct buf *text, const char *metric, double value)
{
    display_interval(text, metric, value, NAN, NAN);
}

void display_interval(struct buf *text, const char *metric, double value, double lo, double hi)
{
    struct display_scale scale = display_scale(metric, value);
    display_digits(text, value / scale.divide);
    if (!isfinite(value))
        return;
    if (isfinite(lo) && isfinite(hi)) {
        buf_text(text, " [");
        display_digits(text, lo / scale.divide);
        buf_text(text, ", ");
        display_digits(text, hi / scale.divide);
        buf_text(text, "]");
    }
    if (*scale.unit)
        buf_format(text, " %s", scale.unit);
}
