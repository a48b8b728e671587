/* driver.c - see driver.h. The option table is put together here: first the rows of the decoder's
 * settings, each of which may take a list, then the flags of the runner. A generator has no option
 * of its own besides.
 */
#include "lib/run/driver.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/clock.h"
#include "lib/base/mem.h"
#include "lib/setting/optfile.h"
#include "lib/record/resume.h"
#include "lib/run/saving.h"
#include "lib/run/runner.h"

static const char notes[] =
    "Inside the clock (t0 of every *_ns field but start_ns): from the moment when the ids of the\n"
    "batch are in memory and its cache and activations are allocated, to the end of the pass\n"
    "that makes the last token final. Outside: reading, tokenizing, loading, decoding text,\n"
    "writing. Phases: cold = first batch of the process when --warmup is given, warmup = the\n"
    "other warm-up batches, timed = the rounds. start_ns counts from the start of the process.\n"
    "tokenize_ns: making a prompt's ids; prepare_ns: from the ids of a batch to its clock.\n"
    "Warm-up: one batch of prompts again and again. It is steady when the better of the last two\n"
    "times is at most 2 % below the best before, and 5 % above it: warmup_steady.\n"
    "Where anything is timed the host is watched too: a batch in which tasks waited for a\n"
    "processor for 5 % of the time, others took 5 % of a processor or 2 % was stolen by other\n"
    "guests, or the processor was slowed by heat, is `tainted`, and so is one preempted 50 times\n"
    "a second on a system that does not tell how long tasks waited. --again runs it again at\n"
    "once; in all, 8 batches and a quarter.\n"
    "On a GPU each kind of pass that a warmup or timed batch can come to is tried before its\n"
    "clock: choosing kernels and recording graphs is inside the clock of the cold batch alone.\n"
    "--halve: for texts, not for times. Halves say batch_halved, and measure counts them as oom\n"
    "of the batch asked for; batch_filled is what ran together.\n"
    "Memory: bytes in use, and at most in the batch. device_peak_bytes, process_peak_bytes: of\n"
    "a host the peak resident set in the batch (null where the system does not count it anew),\n"
    "on a GPU what the driver told during the batch. gpu: what a thread saw of the card every\n"
    "20 ms of it; records of kind idle: the card at rest.\n"
    "model_flops, model_bytes: the least that the passes of a batch need, as measure --help and\n"
    "the schema define them.\n"
    "Random draws depend on (seed, prompt id, step, position), not on batch or threads.\n"
    "synth: models have no tokenizer: words of a prompt are hashed to ids, text is null.\n"
    RESUME_NOTES
    "What is timed (--warmup, --schedule, --repeat) is one process, so it always starts anew.\n"
    "Who looks on (--trace, --stream, --live) makes every pass wait: ids are the same, times are\n"
    "not those of the model, and records are `tainted` watched.\n"
    "Self-check: a short generation of the first prompt, outside the clock, alone, before the\n"
    "2nd timed batch, after each N and at the end; other ids than the first time: exit 70.\n"
    "Exit: 0 done; 1 with error or oom records; 64 usage; 65 bad data: none of the prompts is\n"
    "good, or they were cut; 66 no input; 69 no device; 70 NaN in the logits, a lost device, a\n"
    "failed self-check; 73, 74 output; 129, 130, 143 interrupted.\n";

static const char memory_notes[] =
    "Levels of --level: exact switches nothing on (attention and head in tiles are always on and\n"
    "change no bit); mild: --kv-dtype bf16 --row-tile 512; moderate: that and --quant int8;\n"
    "aggressive: that and --quant nf4, and what --pruned names in place of -m (never by a plan:\n"
    "it is another model). An option that is said wins over its level. (--isa has\n"
    "other levels: those are instruction sets.)\n"
    "What is always on can be left out to see what it saves: --attention dense or sliced, --ffn\n"
    "unfused, --head dense, --head-rows, --graphs off, --alloc direct. Ids stay as they are, but\n"
    "where sums in another order decide a tie: dense attention, and all of them on a GPU.\n"
    "--tf32 on is no such switch: products in fp32 of more than 8 rows then round what they\n"
    "multiply, so ids may change. Records say so, and without it nothing is ever rounded so.\n"
    "--on-oom plan gives way in this order: a batch that does not fit what is free, or --mem-cap,\n"
    "runs in halves, as with --halve; where one prompt alone does not fit, the run takes the\n"
    "first level from the one asked for on at which it does; where none does, the last one, with\n"
    "keys and values of as few layers offloaded as it takes, or, where those will not do, as\n"
    "few layers with theirs, unless --device-map was said. Steps and lengths stay.\n"
    "cpu: on the processor, where the device is too small. Each is said on standard error, and\n"
    "`level`, `device` and `offload_layers` of the records are what ran.\n"
    "--device-map N: N layers stay in memory, the others lie packed in a store (a file; for a GPU\n"
    "memory of the host) and come into one of two slots while others compute, and so do their\n"
    "keys and values, of which the rows that a pass makes go back. The tokens are the same.\n"
    "--kv-map N: keys and values of N layers stay, wherever the matrices are: for a long context\n"
    "beside a model that fits. auto, of either map: keys and values first, where they will do.\n"
    "The layers outside lie evenly between the others; first:N and last:N keep those at one\n"
    "end. What a pass then reads, how fast the store was and how much slower that makes a pass is\n"
    "said before; offload_wait_ns of a record is how long its batch waited for layers.\n"
    "--explain writes a record of kind plan a point: bytes by kind, and whether they fit.\n"
    "planned_bytes of a generation is the same sum for its batch; alloc_calls: blocks taken in\n"
    "it; fragmentation_ratio: reserved / requested, of the peaks;\n"
    "load_peak_bytes: the resident set up to the end of loading, at most.\n"
    "--settings FILE: an object of options, {\"steps\": [8, 16], \"quant\": \"int8\"}, by their\n"
    "names or those of record fields, in any case.\n";

#define DRIVER_OPTIONS(g, attention_word)                                                       \
    ENGINE_OPTIONS((g).engine),                                                                 \
    {.type = OPT_HEADING, .name = "", .help = "When memory is short:"},                         \
    {"level", 0, OPT_CHOICE, &(g).engine.level, .choices = SAVING_CHOICES,                       \
     .help = "options that save memory, by one word"},                                          \
    {"pruned", 0, OPT_TEXT, &(g).engine.pruned, .arg = "MODEL",                                 \
     .help = "what pack-model --prune-heads, --prune-ffn made of -m: --level aggressive runs it"}, \
    {"on-oom", 0, OPT_CHOICE, &(g).on_oom, .choices = "fail|plan|cpu",                          \
     .help = "what is too large: a record, or at a level that fits, or on the CPU (fail)"},      \
    OFFLOAD_OPTIONS((g).engine),                                                                \
    {"halve", 0, OPT_FLAG, &(g).halve,                                                          \
     .help = "run a batch that memory is short for as two halves, down to one prompt"},         \
    {"trim", 0, OPT_CHOICE, &(g).trim, .choices = "batch|off",                                  \
     .help = "give freed memory back to the system before each batch, or keep it (batch)"},     \
    {"explain", 0, OPT_FLAG, &(g).explain,                                                      \
     .help = "load nothing: say what the run would take, and whether it fits"},                 \
    {"optimized-gpu-memory", 0, OPT_WORD, &(g).on_oom, .choices = "plan",                       \
     .help = "--on-oom plan"},                                                                  \
    {"apply-all", 0, OPT_WORD, &(g).engine.level, .choices = "aggressive",                      \
     .help = "--level aggressive"},                                                             \
    {"load-in-8bit", 0, OPT_WORD, &(g).engine.quant, .choices = "int8",                         \
     .help = "--quant int8"},                                                                   \
    {"load-in-4bit", 0, OPT_WORD, &(g).engine.quant, .choices = "nf4", .help = "--quant nf4"},  \
    {"enable-flash-attention", 0, OPT_WORD, attention_word, .choices = "tiled",                  \
     .help = "--attention tiled"},                                                              \
    {"enable-attention-slicing", 0, OPT_WORD, attention_word, .choices = "sliced",               \
     .help = "--attention sliced"},                                                             \
    {"cache-precision", 0, OPT_CHOICE, &(g).engine.kv_dtype,                                    \
     .choices = "bfloat16|float32|float16",                                                     \
     .help = "--kv-dtype, by torch's names (float16 is refused)"},                              \
    {"compile", 0, OPT_CHOICE, &(g).engine.graphs, .choices = "on|off", .help = "--graphs"},    \
    {.type = OPT_HEADING, .name = "", .help = "Prompts:"},                                      \
    {"chat", 0, OPT_CHOICE, &(g).chat, .choices = CHAT_CHOICES,                                  \
     .help = "chat template (auto: what the model's own chat_template says, or none)"},          \
    {"parse-special", 0, OPT_FLAG, &(g).parse_special,                                          \
     .help = "special-token texts inside prompts mean the tokens"},                             \
    {.type = OPT_HEADING, .name = "", .help = "What is run:"},                                  \
    {"settings", 0, OPT_TEXT, &(g).settings, .arg = "FILE",                                     \
     .help = "options from a JSON object; those of the command line win"},                      \
    {"warmup", 0, OPT_INT, &(g).warmup, 0, 1000000, .arg = "N",                                 \
     .help = "warm-up batches before each setting, at least (0)"},                              \
    {"warmup-most", 0, OPT_INT, &(g).warmup_most, 0, 1000000, .arg = "N",                       \
     .help = "and further ones, up to N, until their times are steady (as --warmup)"},          \
    {"repeat", 0, OPT_INT, &(g).repeat, 1, 1000000, .arg = "N",                                 \
     .help = "rounds over all prompts (1)"},                                                    \
    {"again", 0, OPT_INT, &(g).again, 0, 1000, .arg = "N",                                      \
     .help = "run a timed batch that was disturbed again, up to N times (0)"},             \
    {"schedule", 0, OPT_TEXT, &(g).schedule, .arg = "FILE",                                     \
     .help = "settings and rounds from a launch record instead"},                               \
    {"launch", 0, OPT_INT, &(g).launch, 0, 1000000000, .arg = "K",                              \
     .help = "number of this process in its run; of its record in --schedule (0)"},             \
    {"turns", 0, OPT_TEXT, &(g).turns, .arg = "FILE",                                           \
     .help = "work in turn with other processes, prompt by prompt, through a new FILE"},         \
    {"party", 0, OPT_TEXT, &(g).party, .arg = "K/N",                                            \
     .help = "with --turns: this process is party K (0..N-1) of N"},                             \
    {"handicap", 0, OPT_INT, &(g).handicap, 0, 1000000, .arg = "N",                             \
     .help = "run every N-th pass twice: a slow-down of known size, to test a harness (0)"},     \
    {"idle-ms", 0, OPT_INT, &(g).idle_ms, 0, 600000, .arg = "N",                                \
     .help = "watch the idle device so long before and after all batches (500)"},               \
    {"self-check", 0, OPT_INT, &(g).selfcheck, 0, 1000000000, .arg = "N",                      \
     .help = "look whether the device still says the same each N batches (64; host 0)"},        \
    {"force", 0, OPT_FLAG, &(g).force,                                                          \
     .help = "time on a GPU that other processes compute on, too"},                             \
    RESUME_OPTION((g).fresh),                                                                   \
    {.type = OPT_HEADING, .name = "", .help = "To look on (nothing is timed then):"},           \
    {"trace", 0, OPT_TEXT, &(g).trace, .arg = "FILE",                                           \
     .help = "write what each pass makes final, and how sure it is, as commit records"},        \
    {"stream", 0, OPT_FLAG, &(g).stream,                                                        \
     .help = "the text on standard error as it becomes readable (--batch 1)"},                  \
    {"live", 0, OPT_FLAG, &(g).live,                                                            \
     .help = "the answer in the terminal, drawn after each pass (--batch 1)"}

/* The command line, and below it what --settings says. Returns the index of the first operand, or
 * -1. */
static int parse_all(const struct tool *t, const struct job_args *a, struct optfile *file,
                     int argc, char **argv, struct err *e)
{
    int first = opt_parse(t, argc, argv);
    if (!a->settings)
        return first;
    return optfile_read(file, t, a->settings, e) ? -1 : opt_parse(t, argc, argv);
}

/* Reads the options into *a and given[]. Returns the index of the first operand, or -1. */
static int parse(const struct driver *d, struct job_args *a, const char **given,
                 struct optfile *file, int argc, char **argv, struct err *e)
{
    const struct settings_table *t = d->decoder->table;
    const struct opt shared[] = {DRIVER_OPTIONS(*a, &given[settings_find(t, "attention")]),
                                 OPT_COMMON(a->common), {0}};
    const size_t n = sizeof shared / sizeof *shared;
    struct opt *options = mem_zero(1 + t->n + SETTINGS_ALIASES + DECODER_EXTRAS + n,
                                   sizeof *options);
    options[0] = (struct opt){.type = OPT_HEADING, .name = "",
                              .help = "Decoding (a list, as in --batch 1,4, runs each value; "
                                      "several lists run\nall combinations):"};
    struct settings_texts texts = {0};
    size_t at = 1 + settings_options(t, given, options + 1, &texts);
    at += settings_alias_options(t, given, options + at, &texts);
    if (d->decoder->extra_options)
        at += d->decoder->extra_options(&a->extras, options + at);
    memcpy(options + at, shared, sizeof shared);
    char *all = mem_format("%s%s%s", d->notes, notes, memory_notes);
    const struct tool tool = {d->decoder->tool, d->about, d->examples, all, options};
    int first = parse_all(&tool, a, file, argc, argv, e);
    settings_texts_free(&texts);
    free(all);
    free(options);
    return first;
}

/* *t = the trace that the points replay. -1: it cannot be read, or no point asks for it. */
static int read_trace(struct commit_trace *t, const struct job_args *a,
                      const struct run_plan *plan, struct err *e)
{
    const char *path = a->extras.commit_trace;
    if (path && commit_trace_read(t, path, e))
        return -1;
    for (size_t i = 0; i < plan->points; i++)
        if (commit_trace_check(path ? t : NULL, &plan->point[i], e))
            return -1;
    return 0;
}

/* --draft or --early-quant is there exactly if a point asks for it: else -1 (EXIT_BAD_USAGE). */
static int check_companion(const struct driver *d, const struct job_args *a,
                           const struct run_plan *plan, struct err *e)
{
    const char *setting = d->decoder->companion_setting;
    int wanted = 0;
    for (size_t i = 0; setting && i < plan->points; i++)
        wanted |= settings_count(&plan->point[i], setting) > 0;
    if (!setting || wanted == (a->extras.draft || a->extras.early_quant))
        return 0;
    const int early = d->decoder->companion_is_model;
    return wanted ? err_set(e, EXIT_BAD_USAGE, "%s above 0: expected %s beside it", setting,
                            early ? "--early-quant FORMAT" : "--draft MODEL")
                  : err_set(e, EXIT_BAD_USAGE, "%s: expected a point with %s above 0",
                            early ? "--early-quant" : "--draft", setting);
}

/* --z-file is there exactly if a point reads it: else -1 (EXIT_BAD_USAGE). */
static int check_latents(const struct job_args *a, const struct run_plan *plan, struct err *e)
{
    int wanted = 0;
    for (size_t i = 0; i < plan->points; i++) {
        const struct settings *point = &plan->point[i];
        wanted |= settings_find(point->table, "z") < point->table->n &&
                  settings_is(point, "z", "file");
    }
    return wanted == (a->extras.z_file != NULL) ? 0
               : err_set(e, EXIT_BAD_USAGE, "--z file and --z-file FILE: expected both or neither");
}

int driver_run(const struct driver *d, int argc, char **argv, struct err *e)
{
    int64_t begin = clock_ns();
    struct job_args a = JOB_DEFAULTS;
    const char *given[SETTINGS_MAX] = {0};
    const struct settings_table *t = d->decoder->table;
    struct optfile file = {0};
    struct run_plan plan = {0};
    int first = parse(d, &a, given, &file, argc, argv, e);
    if (first < 0) {
        optfile_free(&file);
        return err_code(e);
    }
    if (a.extras.draft && !given[settings_find(t, d->decoder->companion_setting)])
        given[settings_find(t, d->decoder->companion_setting)] = "4";
    int bad = a.schedule ? run_plan_read(&plan, t, given, a.schedule, a.launch, e)
                         : run_plan_cross(&plan, t, given, (size_t)a.repeat,
                                      (uint64_t)a.common.seed, e);
    if (bad && a.settings)
        err_prefix(e, "with --settings %s", a.settings);
    plan.launch = a.launch;
    struct commit_trace trace = {0};
    bad = bad || check_companion(d, &a, &plan, e) || check_latents(&a, &plan, e) ||
          read_trace(&trace, &a, &plan, e) ? -1 : 0;
    const struct job job = {.decoder = d->decoder, .args = &a, .plan = &plan,
                            .replay = a.extras.commit_trace ? &trace : NULL, .options = file.object,
                            .files = (const char *const *)argv + first,
                            .n_files = (size_t)(argc - first), .argc = argc, .argv = argv,
                            .process_ns = begin, .stop = d->stop, .note_signal = d->note_signal};
    int code = bad ? err_code(e) : runner_run(&job, e);
    run_plan_free(&plan);
    commit_trace_free(&trace);
    optfile_free(&file);
    return code;
}
