/* gen-llada - writes answers to prompts by masked diffusion (LLaDA).
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
    "gen-llada -m GSAI-ML/LLaDA-8B-Instruct < prompts.ndjson > answers.ndjson\n"
    "gen-llada -m data/models/llada-demo --steps 4,8,16 --gen-length 64 p.ndjson\n"
    "gen-llada -m data/models/llada-demo --stream p.ndjson -o answers.ndjson\n"
    "gen-llada -m DIR --unmask threshold --threshold 0.7,0.9 p.ndjson\n"
    "gen-llada -m DIR --block-length 32 --cache prefix --suffix grow p.ndjson\n"
    "gen-llada -m synth:llada-8b --batch 1,4,8 --warmup 2 --repeat 5 p.ndjson\n"
    "gen-llada -m DIR --schedule schedule.ndjson --launch 3 p.ndjson\n";

static const char notes[] =
    "A denoising step computes every position of the prompt and the canvas, except\n"
    "those that --cache keeps or --suffix leaves out; the field rows counts\n"
    "computed positions. Steps that would commit nothing (more steps than masks)\n"
    "are skipped. Adaptive rules (--unmask threshold and others) end a block when\n"
    "it is full and have no setting steps. --unmask saber and wino may mask tokens\n"
    "of the block again (remasked_tokens), joint may replace them (edited_tokens).\n"
    "The slots of their blocks become readable, and count as emitted, when the block\n"
    "is done. wino computes one more row for each slot of the block. joint takes at\n"
    "least one more pass for each block, after its last mask is filled.\n"
    "token_ids holds all slots of the canvas, with --stop-at-eos only the readable\n"
    "ones. The text drops special tokens and is not cut at the first one.\n"
    "commit_tokens counts the slots that each pass filled.\n"
    "With random weights (synth:) an adaptive rule commits at a meaningless pace.\n"
    "Lists are crossed: every combination of settings is a point, run in this\n"
    "process. --admit continuous: all prompts form one batch, --batch of them at a\n"
    "time. Times of a prompt count from admit_ns, when it joined (or arrived).\n";

int main(int argc, char **argv)
{
    const struct driver driver = {&decoder_diffuse,
                                  "masked diffusion: prompt records in, generations out",
                                  examples, notes, &stop_signal, note_signal};
    struct err e = {0};
    int code = driver_run(&driver, argc, argv, &e);
    if (e.code)
        err_die(decoder_diffuse.tool, &e);
    return code;
}
