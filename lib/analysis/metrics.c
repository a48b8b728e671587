/* metrics.c - see metrics.h. A metric that is null says why; "not recorded" is for what a
 * generation record may always lack. A new metric is a row here, its enumerator, and the line in
 * measurement.c that feeds it. */
#include "lib/analysis/metrics.h"

#include <stddef.h>

const struct metric_row metrics[METRICS] = {
    [E2E] = {"e2e_ns", "ns", "lower", LAUNCH_MEDIAN, "not recorded"},
    [TTFT] = {"ttft_ns", "ns", "lower", LAUNCH_MEDIAN, "not recorded"},
    [TTFT_COMMIT] = {"ttft_commit_ns", "ns", "lower", LAUNCH_MEDIAN, "not recorded"},
    [TTF_BLOCK] = {"ttf_block_ns", "ns", "lower", LAUNCH_MEDIAN, "not recorded"},
    [TPOT] = {"tpot_ns", "ns", "lower", LAUNCH_MEDIAN, "all tokens at once, or no emissions"},
    [ITL] = {"itl_ns", "ns", "lower", LAUNCH_WEIGHTED, "all tokens at once, or no emissions"},
    [NORM] = {"norm_latency_ns_per_token", "ns", "lower", LAUNCH_MEDIAN, "no tokens"},
    [OUTPUT_RATE] = {"output_tokens_per_s", "per_s", "higher", LAUNCH_RATIO, "not recorded"},
    [SLOT_RATE] = {"slot_tokens_per_s", "per_s", "higher", LAUNCH_RATIO, "not recorded"},
    [TO_EOS] = {"tokens_to_eos", "tokens", "higher", LAUNCH_MEDIAN, "not recorded"},
    [EFFICIENCY] = {"position_efficiency_ratio", "ratio", "higher", LAUNCH_MEDIAN,
                    "no denoising steps"},
    [PASSES] = {"passes", "passes", "lower", LAUNCH_MEDIAN, "no denoising passes"},
    [ROWS] = {"rows", "rows", "lower", LAUNCH_MEDIAN, "not recorded"},
    [PER_STEP] = {"tokens_per_step", "tokens", "higher", LAUNCH_MEDIAN, "no denoising steps"},
    [FLOPS_RATE] = {"model_flops_per_s", "per_s", "higher", LAUNCH_RATIO, "not recorded"},
    [BYTES_RATE] = {"model_bytes_per_s", "per_s", "higher", LAUNCH_RATIO, "not recorded"},
    [MFU] = {"mfu_ratio", "ratio", "higher", LAUNCH_RATIO, "not recorded"},
    [MBU] = {"mbu_ratio", "ratio", "higher", LAUNCH_RATIO, "not recorded"},
    [PREFILL_MFU] = {"prefill_mfu_ratio", "ratio", "higher", LAUNCH_RATIO,
                     "no pass of the prompts alone"},
    [DECODE_MBU] = {"decode_mbu_ratio", "ratio", "higher", LAUNCH_RATIO,
                    "no pass without the prompt"},
    [POWER_CAP] = {"power_cap_ratio", "ratio", "lower", LAUNCH_RATIO,
                   "no GPU that tells its clocks"},
    [ENERGY] = {"energy_j_per_token", "j", "lower", LAUNCH_RATIO, NULL},
    [ENERGY + 1] = {"energy_net_j_per_token", "j", "lower", LAUNCH_RATIO, NULL},
    [ENERGY + 2] = {"energy_j_per_request", "j", "lower", LAUNCH_RATIO, NULL},
    [ENERGY + 3] = {"power_mean_w", "w", "lower", LAUNCH_RATIO, NULL},
    [MEMORY] = {"memory_weights_bytes", "bytes", "lower", LAUNCH_MAX, "not recorded", 1},
    [MEMORY + 1] = {"memory_kv_bytes", "bytes", "lower", LAUNCH_MAX, "not recorded"},
    [MEMORY + 2] = {"memory_activations_bytes", "bytes", "lower", LAUNCH_MAX, "not recorded"},
    [MEMORY + 3] = {"memory_requested_peak_bytes", "bytes", "lower", LAUNCH_MAX, "not recorded"},
    [MEMORY + 4] = {"memory_allocated_peak_bytes", "bytes", "lower", LAUNCH_MAX, "not recorded"},
    [MEMORY + 5] = {"memory_reserved_peak_bytes", "bytes", "lower", LAUNCH_MAX, "not recorded"},
    [MEMORY + 6] = {"memory_device_peak_bytes", "bytes", "lower", LAUNCH_MAX, "not recorded"},
    [MEMORY + 7] = {"memory_process_peak_bytes", "bytes", "lower", LAUNCH_MAX, "not recorded"},
};
