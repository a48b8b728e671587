/* gen-llama - writes answers to prompts autoregressively, with a KV cache (LLaMA).
 *
 * This file only names the decoder. lib/run/driver.h has what all generators share: options,
 * points, batches and records. */
#include "lib/run/driver.h"

static volatile sig_atomic_t stop_signal;

static void note_signal(int signal_number)
{
    stop_signal = signal_number;
}

static const char examples[] =
    "gen-llama -m meta-llama/Meta-Llama-3-8B-Instruct p.ndjson > answers.ndjson\n"
    "gen-llama -m data/models/llama-demo --gen-length 64 prompts.ndjson\n"
    "gen-llama -m synth:llama3-8b --ignore-eos --batch 1,4,8 --warmup 2 p.ndjson\n"
    "gen-llama -m DIR --temperature 0,0.6,1 --top-p 0.9 --seed 7 prompts.ndjson\n"
    "gen-llama -m DIR --lookup 0,4,8 prompts.ndjson\n"
    "gen-llama -m DIR --draft SMALLER --draft-tokens 0,2,4 prompts.ndjson\n";

static const char notes[] =
    "The first pass computes all tokens of the prompts; each later pass adds one\n"
    "token to each text. A finished text leaves the batch. token_ids end before the\n"
    "stop id; e2e_ns includes the pass that found it. Filters apply in the order of\n"
    "Hugging Face: temperature, top-k, top-p. Unlike there, top-k is off by\n"
    "default.\n"
    "Lists are crossed: every combination of settings is a point, run in this\n"
    "process. Speculative decoding: --lookup and --draft guess tokens that one pass\n"
    "verifies. A guess is accepted only if it is the token that the model would\n"
    "have chosen, also at a temperature, so the text does not change (on a GPU\n"
    "rounding may differ, as with another --batch). The tokens that a pass adds are\n"
    "one event; new_tokens / passes is tokens per pass. The clock and model_flops\n"
    "include the guessing. The weights and the cache of --draft stay in memory.\n"
    "--admit continuous: all prompts form one batch, --batch of them at a time. The\n"
    "times of a prompt count from admit_ns, when it joined the batch, or with\n"
    "--arrival-rate when it came: queue_ns is the wait before it joined.\n";

int main(int argc, char **argv)
{
    const struct driver driver = {&decoder_autoregress,
                                  "autoregressive: prompt records in, generations out",
                                  examples, notes, &stop_signal, note_signal};
    struct err e = {0};
    int code = driver_run(&driver, argc, argv, &e);
    if (e.code)
        err_die(decoder_autoregress.tool, &e);
    return code;
}
