/* genrun.h - what gen-llama and gen-llada share: flags, prompts, warm-up, rounds, records.
 *
 *     for each round, for each point of the plan:
 *         first time: warm-up batches            phase "cold" (the very first), "warmup"
 *         all prompts, `batch` at a time         phase "timed"
 *
 * A batch that memory is short for is a result: records with status oom, which phase 5 draws as
 * such. Who wants the texts and not the times says --halve: then it is tried again as two halves,
 * down to one prompt. A halved batch keeps the configuration that was asked for and says
 * batch_halved; measure counts it as oom there, since what ran is another, smaller batch. It is off
 * by default because every record but those of the warm-up is one that may be timed.
 *
 * A generator is a `gen_method`: how one batch is generated and how its settings are named.
 */
#ifndef RUN_GENRUN_H
#define RUN_GENRUN_H

#include <jansson.h>
#include <signal.h>

#include "lib/base/buf.h"
#include "lib/base/opt.h"
#include "lib/record/resume.h"
#include "lib/run/engine.h"
#include "lib/decode/generation.h"
#include "lib/run/genplan.h"

struct gen_args {
    struct common common;
    struct engine engine;
    const char *batch, *chat, *schedule;
    int64_t warmup, repeat, launch, idle_ms, selfcheck;
    int parse_special, halve, fresh;
};
#define GEN_DEFAULTS                                                                            \
    {.common = COMMON_DEFAULTS, .engine = ENGINE_DEFAULTS, .batch = "1", .chat = "auto",        \
     .repeat = 1, .idle_ms = 500, .selfcheck = -1}
#define GEN_OPTIONS(g)                                                                          \
    ENGINE_OPTIONS((g).engine),                                                                 \
    {.type = OPT_HEADING, .name = "", .help = "Prompts:"},                                      \
    {"chat", 0, OPT_CHOICE, &(g).chat, .choices = "auto|none|llama3|llama3.1|llada",            \
     .help = "chat template (auto: the model's own, when its tokenizer has one)"},              \
    {"parse-special", 0, OPT_FLAG, &(g).parse_special,                                          \
     .help = "special-token texts inside prompts mean the tokens"},                             \
    {.type = OPT_HEADING, .name = "", .help = "What is run:"},                                  \
    {"batch", 0, OPT_TEXT, &(g).batch, .arg = "N[,N...]",                                       \
     .help = "prompts generated together; a list runs each (1)"},                               \
    {"halve", 0, OPT_FLAG, &(g).halve,                                                          \
     .help = "run a batch that memory is short for as two halves, down to one prompt"},         \
    {"warmup", 0, OPT_INT, &(g).warmup, 0, 1000000, .arg = "N",                                 \
     .help = "warm-up batches before each setting (0)"},                                        \
    {"repeat", 0, OPT_INT, &(g).repeat, 1, 1000000, .arg = "N",                                 \
     .help = "rounds over all prompts (1)"},                                                    \
    {"schedule", 0, OPT_TEXT, &(g).schedule, .arg = "FILE",                                     \
     .help = "settings and rounds from a launch record instead"},                               \
    {"launch", 0, OPT_INT, &(g).launch, 0, 1000000000, .arg = "K",                              \
     .help = "which launch record of --schedule (0)"},                                          \
    {"idle-ms", 0, OPT_INT, &(g).idle_ms, 0, 600000, .arg = "N",                                \
     .help = "watch an idle GPU so long before and after all batches (500)"},                   \
    {"self-check", 0, OPT_INT, &(g).selfcheck, 0, 1000000000, .arg = "N",                              \
     .help = "look whether the device still says the same each N batches (64; host 0)"},        \
    RESUME_OPTION((g).fresh)

/* Definitions for --help, the same in both tools. */
#define GEN_NOTES                                                                               \
    "Inside the clock (t0 of every *_ns field but start_ns): from the moment when the ids of the\n"\
    "batch are in memory and its cache and activations are allocated, to the end of the pass\n" \
    "that makes the last token final. Outside: reading, tokenizing, loading, decoding text,\n"  \
    "writing. Phases: cold = first batch of the process when --warmup is given, warmup = the\n" \
    "other warm-up batches, timed = the rounds. start_ns counts from the start of the process.\n"\
    "On a GPU each kind of pass that a warmup or timed batch can come to is tried before its\n" \
    "clock: choosing kernels and recording graphs is inside the clock of the cold batch alone.\n"\
    "--halve: for texts, not for times. Halves say batch_halved, and measure counts them as oom\n"\
    "of the batch asked for; batch_filled is what ran together.\n"                             \
    "Memory: bytes in use, and at most in the batch. device_peak_bytes, process_peak_bytes: of\n"\
    "a host the peak resident set, on a GPU what the driver told during the batch. gpu: what a\n"\
    "thread saw of the card every 20 ms of it; records of kind idle: the card at rest.\n"        \
    "model_flops, model_bytes: the least that the passes of a batch need on estimate, as measure\n" \
    "--help and the schema define them.\n"                                                     \
    "Random draws depend on (seed, prompt id, step, position), not on batch or threads.\n"      \
    "synth: models have no tokenizer: words of a prompt are hashed to ids, text is null.\n"     \
    RESUME_NOTES                                                                                \
    "What is timed (--warmup, --schedule, --repeat) is one process, so it always starts anew.\n" \
    "Self-check: a short generation of the first prompt, outside the clock, alone, before the 2nd\n" \
    "timed batch, after each N and at the end; other ids than the first time: exit 70.\n"      \
    "Exit: 0 done; 1 with error or oom records; 64 usage; 65 bad data; 66 no input; 69 no\n"    \
    "device; 70 NaN in the logits, a lost device, a failed self-check; 73, 74 output; 129, 130, 143\n"     \
    "interrupted.\n"

struct gen_method {
    const char *tool;
    enum arch arch;
    /* Tokens that a point adds to a prompt at most. */
    size_t (*extent)(const struct gen_point *p);
    /* 0, or -1 with EXIT_BAD_USAGE naming the constraint that the point breaks. */
    int (*check)(const void *settings, const struct gen_point *p, struct err *e);
    /* What a batch takes, by the lengths of its prompts; *n as network_settle leaves it. */
    struct memory_estimate (*estimate)(const struct network *n, const void *settings, const struct gen_point *p,
                          const struct generation_input *in, size_t batch);
    /* Generates one batch; see autoregress.h, diffuse.h. */
    void (*run)(const struct network *n, const void *settings, const struct gen_point *p,
                int prepare, uint64_t seed, const volatile sig_atomic_t *stop,
                const struct generation_input *in, size_t batch, struct generation *out,
                struct batch_trace *trace);
    /* Appends " steps=16 gen=64 block=32 batch=1" and the settings that are not default. */
    void (*label)(const void *settings, const struct gen_point *p, struct buf *out);
    /* Sets the fields of a generation record that name the settings. */
    void (*describe)(const void *settings, const struct gen_point *p, json_t *record);
};

struct gen_job {
    const struct gen_method *method;
    const struct gen_args *args;
    const void *settings;
    const struct gen_plan *plan;
    const char *const *files; /* prompts; n_files 0: standard input */
    size_t n_files;
    int argc;
    char **argv;
    int64_t process_ns;                /* clock_ns() when the process began */
    const volatile sig_atomic_t *stop; /* the signal that came, or 0 */
    void (*note_signal)(int);          /* the tool's handler: stores its argument in *stop */
};
/* Runs the plan. Returns the exit code; e->code is set when there is something to say. */
int gen_run(const struct gen_job *job, struct err *e);

#endif
