/* gen-ltm - prompt records in, generation records out, left to right under latent thoughts that are
 * fitted to the prompt first (the latent thought model).
 *
 * All that is particular to it is the decoder that is named here; options, points, batches and
 * records are those of every generator (lib/run/driver.h).
 */
#include "lib/latent/think.h"
#include "lib/run/driver.h"

static volatile sig_atomic_t stop_signal;

static void note_signal(int signal_number)
{
    stop_signal = signal_number;
}

static const char examples[] =
    "gen-ltm -m DIR --vi-steps 16 < prompts.ndjson > answers.ndjson\n"
    "gen-ltm -m DIR --vi-steps 0,4,8,16,32,64 --max-new 64 prompts.ndjson\n"
    "gen-ltm -m DIR --z posterior,prior,zero --temperature 0.8 --seed 7 prompts.ndjson\n"
    "gen-ltm -m DIR --refit 16 --batch 4 prompts.ndjson\n"
    "gen-ltm -m synth:tiny-ltm --ignore-eos --warmup 2 --repeat 5 prompts.ndjson\n";

static const char notes[] =
    "First a posterior of the latents (mean and log variance, AdamW, fresh noise each step) is\n"
    "fitted to the prompt, the weights as they are; then the answer is written a token a pass.\n"
    "Fitting is inside the clock: ttft_ns holds it and the pass over the prompt; vi_ns is what\n"
    "it took for the batch, decode_ns the rest of e2e_ns. passes and rows are those of decoding;\n"
    "model_flops hold the fit too. elbo_nats bounds the prompt by one draw: score-ppl --mode\n"
    "elbo draws more. A text keeps the keys and values of at most twice its window, or with\n"
    "mixer rwkv6 or rwkv7 one state (state_bytes), so a token costs the same at every position.\n"
    "After --refit N tokens the latents go on being fitted, to prompt and answer, and the text is\n"
    "read again under them.\n"
    "On a GPU the same gradients are made there, in fp32: --dtype f32, bf16-f32 or f16 and no\n"
    "--quant; a step of a fit is recorded once and replayed. --z dit needs the processor.\n"
    "Lists are crossed: every combination is a point, run in this process.\n";

int main(int argc, char **argv)
{
    const struct driver d = {&decoder_think,
                             "latent thoughts: prompt records in, generations out",
                             examples, notes, &stop_signal, note_signal};
    struct err e = {0};
    int code = driver_run(&d, argc, argv, &e);
    if (e.code)
        err_die(decoder_think.tool, &e);
    return code;
}
