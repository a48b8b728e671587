/* gen-ltm - writes answers to prompts with a latent thought model: latents are fitted to the
 * prompt, then the answer is written autoregressively under these latents.
 *
 * This file only names the decoder. lib/run/driver.h has what all generators share: options,
 * points, batches and records. */
#include "lib/latent/think.h"
#include "lib/run/driver.h"

static volatile sig_atomic_t stop_signal;

static void note_signal(int signal_number)
{
    stop_signal = signal_number;
}

static const char examples[] =
    "gen-ltm -m DIR --vi-steps 16 < prompts.ndjson > answers.ndjson\n"
    "gen-ltm -m DIR --vi-steps 0,4,8,16,32,64 --gen-length 64 prompts.ndjson\n"
    "gen-ltm -m DIR --z posterior,prior,zero --temperature 0.8 --seed 7 p.ndjson\n"
    "gen-ltm -m DIR --refit 16 --batch 4 prompts.ndjson\n"
    "gen-ltm -m synth:tiny-ltm --ignore-eos --warmup 2 --repeat 5 prompts.ndjson\n";

static const char notes[] =
    "First a posterior of the latents (mean and log variance) is fitted to the\n"
    "prompt by AdamW with fresh noise at each step; the weights do not change. Then\n"
    "the answer is written, one token per pass. The clock includes the fit: ttft_ns\n"
    "is the fit and the pass over the prompt, vi_ns the fit of the whole batch,\n"
    "decode_ns the rest of e2e_ns. passes and rows count only decoding; model_flops\n"
    "includes the fit. elbo_nats is a bound of the prompt by one draw; score-ppl\n"
    "--mode elbo uses more draws.\n"
    "A text keeps the keys and values of at most twice its window, or with mixer\n"
    "rwkv6 or rwkv7 one state (state_bytes), so a token costs the same at every\n"
    "position.\n"
    "After each --refit N tokens the latents are fitted further, to prompt and\n"
    "answer, and the text is read again under the new latents.\n"
    "A GPU computes the gradients in fp32: this needs --dtype f32, bf16-f32 or f16\n"
    "and no --quant. A step of a fit is recorded once and replayed. --z dit runs\n"
    "only on the CPU. Lists are crossed: every combination of settings is a point,\n"
    "run in this process.\n";

int main(int argc, char **argv)
{
    const struct driver driver = {&decoder_think,
                                  "latent thoughts: prompt records in, generations out",
                                  examples, notes, &stop_signal, note_signal};
    struct err e = {0};
    int code = driver_run(&driver, argc, argv, &e);
    if (e.code)
        err_die(decoder_think.tool, &e);
    return code;
}
