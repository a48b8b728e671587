/* gen-llada - prompt records in, generation records out, by masked diffusion (LLaDA).
 *
 * All that is particular to diffusion is the decoder that is named here; options, points, batches
 * and records are those of every generator (lib/run/driver.h).
 */
#include "lib/run/driver.h"

static volatile sig_atomic_t stop_signal;

static void note_signal(int signal_number)
{
    stop_signal = signal_number;
}

static const char examples[] =
    "gen-llada -m GSAI-ML/LLaDA-8B-Instruct < prompts.ndjson > answers.ndjson\n"
    "gen-llada -m data/models/llada-demo --steps 4,8,16,32 --gen-length 64 prompts.ndjson\n"
    "gen-llada -m data/models/llada-demo --gen-length 64 --live prompts.ndjson -o answers.ndjson\n"
    "gen-llada -m DIR --unmask threshold --threshold 0.5,0.7,0.9 --block-length 32 prompts.ndjson\n"
    "gen-llada -m DIR --block-length 32 --cache prefix --suffix window,grow prompts.ndjson\n"
    "gen-llada -m synth:llada-8b --block-length 32 --unmask replay --commit-trace real.ndjson p\n"
    "gen-llada -m synth:llada-8b --batch 1,4,8 --warmup 2 --repeat 5 prompts.ndjson\n"
    "gen-llada -m data/models/llada-demo --schedule schedule.ndjson --launch 3 prompts.ndjson\n";

static const char notes[] =
    "A denoising step computes every position of prompt and canvas, unless --cache keeps some\n"
    "or --suffix leaves some out (rows counts what was computed); steps that would commit\n"
    "nothing (more steps than masks) are skipped. --unmask threshold and its like end a block\n"
    "when it is full, so steps are none of their settings. --unmask saber and wino may mask\n"
    "tokens of the block again (remasked_tokens): its slots are readable, and count as\n"
    "emitted, when it is done; wino computes a row more for each of them. token_ids are all\n"
    "slots of the canvas; with --stop-at-eos the readable ones. The text drops special tokens\n"
    "and is not cut at the first of them. commit_tokens is how many slots each pass filled.\n"
    "On drawn weights (synth:) an adaptive rule would commit at a pace of its own, and times\n"
    "would mean nothing: --unmask replay --commit-trace FILE commits as many as the passes in\n"
    "FILE did, records of one point of a trained model, block by block; each prompt takes the\n"
    "curve that its id draws, and such records say replayed and the hash of FILE. Lists are\n"
    "crossed: every combination is a point, run in this process. --admit continuous: one batch\n"
    "of all prompts, --batch of them at once; the times of a prompt count from admit_ns, when it\n"
    "joined.\n";

int main(int argc, char **argv)
{
    const struct driver d = {&decoder_diffuse,
                             "masked diffusion: prompt records in, generations out",
                             examples, notes, &stop_signal, note_signal};
    struct err e = {0};
    int code = driver_run(&d, argc, argv, &e);
    if (e.code)
        err_die(decoder_diffuse.tool, &e);
    return code;
}
