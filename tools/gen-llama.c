/* gen-llama - prompt records in, generation records out, left to right with a KV cache (LLaMA).
 *
 * All that is particular to autoregression is the decoder that is named here; options, points,
 * batches and records are those of every generator (lib/run/driver.h).
 */
#include "lib/run/driver.h"

static volatile sig_atomic_t stop_signal;

static void note_signal(int signal_number)
{
    stop_signal = signal_number;
}

static const char examples[] =
    "gen-llama -m meta-llama/Meta-Llama-3-8B-Instruct < prompts.ndjson > answers.ndjson\n"
    "gen-llama -m data/models/llama-demo --max-new 64 prompts.ndjson\n"
    "gen-llama -m synth:llama3-8b --ignore-eos --batch 1,4,8 --warmup 2 --repeat 5 prompts.ndjson\n"
    "gen-llama -m DIR --temperature 0,0.6,1 --top-p 0.9 --seed 7 prompts.ndjson\n"
    "gen-llama -m DIR --lookup 0,4,8 prompts.ndjson\n"
    "gen-llama -m DIR --draft SMALLER --draft-tokens 0,2,4 --batch 1,8 prompts.ndjson\n";

static const char notes[] =
    "The first pass computes all tokens of the prompts, each later one a token a text; a text\n"
    "that ends leaves the batch. token_ids go up to and without the stop id; e2e_ns includes\n"
    "the pass that found it. Filters in the order of Hugging Face: temperature, top-k, top-p;\n"
    "unlike there, top-k is off unless asked for. Lists are crossed: every combination is a\n"
    "point, run in this process.\n"
    "--lookup and --draft guess tokens that one pass then verifies (speculative decoding). A\n"
    "guess is taken where it is the token that would have been chosen, at a temperature too: the\n"
    "text is the same without guesses (on a GPU but for rounding, as with another --batch). What\n"
    "a pass adds is one event; new_tokens / passes are the tokens a pass. Making guesses is\n"
    "inside the clock, and in model_flops; the weights and cache of --draft are in memory.\n"
    "--admit continuous: one batch of all prompts, --batch of them at once; the times of a prompt\n"
    "count from admit_ns, when it joined.\n";

int main(int argc, char **argv)
{
    const struct driver d = {&decoder_autoregress,
                             "autoregressive: prompt records in, generations out",
                             examples, notes, &stop_signal, note_signal};
    struct err e = {0};
    int code = driver_run(&d, argc, argv, &e);
    if (e.code)
        err_die(decoder_autoregress.tool, &e);
    return code;
}
