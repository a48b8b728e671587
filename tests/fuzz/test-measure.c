/* test-measure.c - metrics of mutated generation records: answers that contradict themselves or
 * each other, energy counters that run backwards, ceilings of zero. */
#include "tests/fuzz/tool.h"

#define main tool_main
#include "tools/measure.c"
#undef main

/* Six launches of a batch of two answers, with joules. */
static void put_launches(struct buf *to, int per_host)
{
    for (int i = 0; i < 12; i++) {
        buf_format(to, "{\"kind\":\"generation\",\"id\":\"p%d\",\"config\":\"c\",\"model\":\"m\","
                   "\"arch\":\"llada\",\"batch\":2,\"batch_filled\":2,\"launch\":%d,\"round\":0,"
                   "\"seq\":%d,\"batch_id\":%d,\"phase\":\"timed\",\"status\":\"ok\",\"e2e_ns\":%d,"
                   "\"batch_ns\":%lld,\"new_tokens\":4,\"tokens_to_eos\":3,\"stop_tokens\":1,"
                   "\"stop\":\"eos\",\"prompt_tokens\":5,\"retokenized_tokens\":3,\"token_ids\":"
                   "[5,6,7,2],\"text\":\"a b\",\"emit_ns\":[%d,2000000%d],\"emit_tokens\":[2,1],"
                   "\"ttft_ns\":%d,\"threads\":2,\"flops_unit\":\"f32\",\"model_flops\":1e9,"
                   "\"model_bytes\":2e9,\"prefill_flops\":5e8,\"prefill_bytes\":1e9,"
                   "\"prefill_ns\":1000,\"device_name\":%s,", i % 2, i / 2, i % 2, i / 2,
                   2000000000 + i, 12000000000LL, 1000000 + i, i % 10, 1000000 + i,
                   per_host ? "null" : "\"g\"");
        buf_format(to, per_host ? "\"host\":{\"window_ns\":3000000000,\"energy_begin_j\":%d,"
                                  "\"energy_end_j\":%d}}\n"
                                : "\"gpu\":{\"energy_begin_j\":%d,\"energy_end_j\":%d,"
                                  "\"energy_ticks\":120,\"power_integral_j\":61,\"samples\":20,"
                                  "\"power_capped_samples\":3}}\n",
                   100 * i, 100 * i + 60);
    }
    buf_text(to, "{\"kind\":\"roofline\",\"ceiling\":true,\"unit\":\"f32\",\"threads\":2,"
                 "\"flops_per_s\":1e12,\"bytes_per_s\":1e10}\n"
                 "{\"kind\":\"idle\",\"model\":\"m\",\"device_name\":\"g\",\"launch\":1,"
                 "\"power_w\":10}\n");
}

static int fuzz_seed(size_t i, struct buf *to)
{
    static const char fixture[] = "tests/fixtures/measure-generation.ndjson";
    if (i < 4)
        buf_char(to, (char)('a' + i));
    if (i < 2)
        put_launches(to, (int)i);
    else if (i < 4)
        mutate_take(fixture, i - 2, 3, 12, to);
    return i < 4;
}

static void fuzz_one(const char *bytes, size_t n)
{
    static const char *const options[][8] = {{NULL}, {"--verify", NULL}};
    static const char *const ours[] = {"metric", "error", NULL};
    TOOL_STREAM(options, ours, bytes, n);
}

FUZZ_TARGET("measure", 25)
