/* driver.c - see driver.h. The table of options is put together here: the rows of the decoder's
 * settings, each of which may take a list; the aliases of these rows; the extra options of the
 * decoder; the flags of the runner. */
#include "lib/run/driver.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/clock.h"
#include "lib/base/mem.h"
#include "lib/setting/optfile.h"
#include "lib/record/resume.h"
#include "lib/run/saving.h"
#include "lib/run/runner.h"

static const char clock_notes[] =
    "Clock: the clock of a batch starts when its token ids are in memory and its\n"
    "cache and activations are allocated. It ends with the pass that makes the last\n"
    "token final. No reading, tokenizing, loading, decoding text or writing counts.\n";

static const char notes[] =
    "Every *_ns field counts from the start of the clock, except start_ns, which\n"
    "counts from the start of the process. tokenize_ns: time to make the ids of a\n"
    "prompt. prepare_ns: from the ids of a batch to its clock.\n"
    "Phases: cold: first batch of the process, if --warmup is given; warmup: the\n"
    "other warm-up batches; timed: the rounds. Warm-up repeats one batch of\n"
    "prompts. It is steady (warmup_steady) when the better of the last two times is\n"
    "at most 2 % below the best time before and at most 5 % above it.\n"
    "Disturbed batches: while a run is timed the host is watched. A batch is\n"
    "`tainted` if tasks waited for a processor for 5 % of the time, other processes\n"
    "took 5 % of a processor, other guests stole 2 %, or heat slowed the processor;\n"
    "also if it was preempted 50 times a second on a system that does not report\n"
    "waiting. --again repeats such a batch at once: in all at most 8 repeats, plus\n"
    "one for every four batches.\n"
    "GPU: each kind of pass of a warmup or timed batch that can be foreseen runs once\n"
    "before the clock of that batch starts. So choosing kernels is inside the clock\n"
    "of the cold batch only. Recording graphs is, too, except where canvases of\n"
    "different lengths end at different times: a pass of a new kind then records its\n"
    "graph inside the clock. With --admit continuous it runs without a graph. `gpu`\n"
    "holds what a thread read from the card every 20 ms; records of kind idle show\n"
    "the card at rest.\n"
    "Memory: fields hold the bytes in use and the peak in the batch.\n"
    "device_peak_bytes and process_peak_bytes: on a host the peak resident set in\n"
    "the batch (null if the system cannot reset it), on a GPU the peak that the\n"
    "driver reported. load_peak_bytes: the largest resident set until loading\n"
    "ended. planned_bytes: the estimate for the batch. alloc_calls: blocks\n"
    "allocated in it. fragmentation_ratio: peak reserved / peak requested.\n"
    "--halve is for texts, not for times: records of halves say batch_halved,\n"
    "measure counts them as oom of the requested batch, and batch_filled is the\n"
    "number that ran together.\n"
    "model_flops, model_bytes: the least work of the passes of a batch, defined in\n"
    "measure --help-all and in the schema.\n"
    "Random draws depend on (seed, prompt id, step, position), not on batch or\n"
    "threads.\n"
    "synth: models have no tokenizer: the words of a prompt are hashed to ids, text\n"
    "is null.\n"
    RESUME_NOTES
    "A timed run (--warmup, --schedule, --repeat) is one process, so it always\n"
    "starts again.\n"
    "Watching (--trace, --stream) slows every pass but does not change the ids;\n"
    "records are `tainted` watched.\n"
    "Self-check: a short generation of the first prompt runs alone, outside the\n"
    "clock, before the 2nd timed batch, after every N batches and at the end. If\n"
    "its ids change: exit 70.\n"
    "Exit: 0 done; 1 with error or oom records; 64 usage; 65 bad data: no usable\n"
    "prompt, or the input was cut; 66 no input; 69 no device; 70 NaN in the logits,\n"
    "a lost device or a failed self-check; 73, 74 output; 129, 130, 143\n"
    "interrupted.\n";

static const char memory_notes[] =
    "Memory levels (--level). exact: nothing is switched on; mild: --kv-dtype bf16\n"
    "--row-tile 512; moderate: also --quant int8; aggressive: --quant nf4\n"
    "instead of int8, and --pruned instead of -m (--on-oom plan never takes\n"
    "--pruned: it is another model). An option that is given overrides its level.\n"
    "Attention and output layer always work in tiles, which changes no bit.\n"
    "(Levels of --isa are instruction sets.)\n"
    "Ablation switches: --attention dense or sliced, --ffn unfused, --head dense,\n"
    "--head-rows, --graphs off, --alloc direct. Each turns off an optimisation that\n"
    "is always on, to measure what it saves. Ids stay the same, except where\n"
    "another order of sums decides a tie: with dense attention, and with all\n"
    "switches on a GPU. --tf32 on is another kind: fp32 products of more than 8\n"
    "rows then round their inputs, so ids may change; records say so.\n"
    "--on-oom plan tries, in this order: run a batch that does not fit in free\n"
    "memory or --mem-cap as two halves (--halve); if one prompt does not fit, use\n"
    "the first --level from the given one on that fits; if none does, use the last\n"
    "level and offload the keys and values of as few layers as needed, or else as\n"
    "few whole layers as needed, unless --device-map is given. Steps and lengths\n"
    "stay. --on-oom cpu: run on the CPU if the device is too small. Each change is\n"
    "printed, and `level`, `device` and `offload_layers` of the records are what\n"
    "ran.\n"
    "--device-map N keeps N layers in memory. The others lie packed in a store (a\n"
    "file; for a GPU host memory) and are loaded into one of two slots while other\n"
    "layers compute; so are their keys and values, and new rows are written back.\n"
    "The tokens are the same.\n"
    "--kv-map N keeps the keys and values of N layers, wherever the matrices are:\n"
    "for a long context with a model that fits. auto offloads keys and values\n"
    "first, if that is enough. The offloaded layers are spread evenly; first:N and\n"
    "last:N keep the layers of one end. The bytes that a pass reads, the speed of\n"
    "the store and the predicted slow-down are printed before the run.\n"
    "offload_wait_ns: the time that a batch waited for layers.\n"
    "--explain writes a record of kind plan for each point: bytes by kind, and\n"
    "whether they fit.\n"
    "--settings FILE: a JSON object of options, {\"steps\": [8, 16], \"quant\":\n"
    "\"int8\"}, named as options or as record fields, in any case.\n";

#define DRIVER_OPTIONS(g)                                                                          \
    ENGINE_OPTIONS((g).engine),                                                                    \
    {.type = OPT_HEADING, .name = "", .help = "When memory is short:"},                            \
    {"level", 0, OPT_CHOICE, &(g).engine.level, .choices = SAVING_CHOICES,                         \
     .help = "set of options that save memory (see --help-all)"},                                  \
    {"pruned", 0, OPT_TEXT, &(g).engine.pruned, .arg = "MODEL", .rare = 1,                         \
     .help = "pruned copy of -m (pack-model --prune-heads, --prune-ffn) that --level "             \
             "aggressive runs"},                                                                   \
    {"on-oom", 0, OPT_CHOICE, &(g).on_oom, .choices = "fail|plan|cpu",                             \
     .help = "if memory is short: write oom records, find a level that fits, or use the CPU "      \
             "(fail)"},                                                                            \
    OFFLOAD_OPTIONS((g).engine),                                                                   \
    {"halve", 0, OPT_FLAG, &(g).halve, .rare = 1,                                                  \
     .help = "run a batch that does not fit as two halves, down to one prompt"},                   \
    {"trim", 0, OPT_CHOICE, &(g).trim, .choices = "batch|off", .rare = 1,                          \
     .help = "return freed memory to the system before each batch, or keep it (batch)"},           \
    {"explain", 0, OPT_FLAG, &(g).explain,                                                         \
     .help = "load nothing; print the memory that the run needs"},                                 \
    {"optimized-gpu-memory", 0, OPT_WORD, &(g).on_oom, .choices = "plan", .rare = 1,               \
     .help = "alias of --on-oom plan"},                                                            \
    {"apply-all", 0, OPT_WORD, &(g).engine.level, .choices = "aggressive", .rare = 1,              \
     .help = "alias of --level aggressive"},                                                       \
    {"load-in-8bit", 0, OPT_WORD, &(g).engine.quant, .choices = "int8", .rare = 1,                 \
     .help = "alias of --quant int8"},                                                             \
    {"load-in-4bit", 0, OPT_WORD, &(g).engine.quant, .choices = "nf4", .rare = 1,                  \
     .help = "alias of --quant nf4"},                                                              \
    {"cache-precision", 0, OPT_CHOICE, &(g).engine.kv_dtype,                                       \
     .choices = "bfloat16|float32|float16", .rare = 1,                                             \
     .help = "alias of --kv-dtype with torch names (float16 is refused)"},                         \
    {"compile", 0, OPT_CHOICE, &(g).engine.graphs, .choices = "on|off", .rare = 1,                 \
     .help = "alias of --graphs"},                                                                 \
    {.type = OPT_HEADING, .name = "", .help = "Run:"},                                             \
    {"parse-special", 0, OPT_FLAG, &(g).parse_special, .rare = 1,                                  \
     .help = "read names of special tokens in prompts as these tokens"},                           \
    {"settings", 0, OPT_TEXT, &(g).settings, .arg = "FILE", .rare = 1,                             \
     .help = "options from a JSON object; the command line overrides them"},                       \
    {"warmup", 0, OPT_INT, &(g).warmup, 0, 1000000, .arg = "N",                                    \
     .help = "run at least N warm-up batches before each point (0)"},                              \
    {"warmup-most", 0, OPT_INT, &(g).warmup_most, 0, 1000000, .arg = "N", .rare = 1,               \
     .help = "run up to N warm-up batches, until times are steady (as --warmup)"},                 \
    {"repeat", 0, OPT_INT, &(g).repeat, 1, 1000000, .arg = "N",                                    \
     .help = "rounds over all prompts (1)"},                                                       \
    {"again", 0, OPT_INT, &(g).again, 0, 1000, .arg = "N", .rare = 1,                              \
     .help = "repeat a disturbed timed batch up to N times (0)"},                                  \
    {"schedule", 0, OPT_TEXT, &(g).schedule, .arg = "FILE",                                        \
     .help = "run launch record K of FILE: settings and rounds"},                                  \
    {"launch", 0, OPT_INT, &(g).launch, 0, 1000000000, .arg = "K",                                 \
     .help = "number of this launch; with --schedule also of its launch record (0)"},              \
    {"turns", 0, OPT_TEXT, &(g).turns, .arg = "FILE", .rare = 1,                                   \
     .writes = WRITES_IT,                                                                          \
     .help = "take turns with other processes, prompt by prompt, on the same cores; they share "   \
             "FILE, a new name for each launch"},                                                  \
    {"party", 0, OPT_TEXT, &(g).party, .arg = "K/N", .rare = 1,                                    \
     .help = "number K (0..N-1) of this process among the N that take turns"},                     \
    {"handicap", 0, OPT_INT, &(g).handicap, 0, 1000000, .arg = "N", .rare = 1,                     \
     .help = "run every N-th pass twice: a known slow-down, to test a harness (0)"},               \
    {"idle-ms", 0, OPT_INT, &(g).idle_ms, 0, 600000, .arg = "N", .rare = 1,                        \
     .help = "milliseconds to watch the idle device before and after all batches (500)"},          \
    {"self-check", 0, OPT_INT, &(g).selfcheck, 0, 1000000000, .arg = "N", .rare = 1,               \
     .help = "after every N batches check that the device still gives the ids that it gave at "    \
             "first (GPU: 64; CPU: 0)"},                                                           \
    {"force", 0, OPT_FLAG, &(g).force, .rare = 1,                                                  \
     .help = "run timed batches on a GPU that other processes are using"},                         \
    RESUME_OPTION((g).fresh),                                                                      \
    {.type = OPT_HEADING, .name = "", .help = "Watching (only in runs that are not timed):"},      \
    {"trace", 0, OPT_TEXT, &(g).trace, .arg = "FILE", .rare = 1,                                   \
     .writes = WRITES_IT,                                                                          \
     .help = "write a commit record for each pass: tokens made final, and their confidence"},      \
    {"stream", 0, OPT_FLAG, &(g).stream,                                                           \
     .help = "print the text on standard error as it becomes readable (--batch 1)"}

/* Parses the command line, then the file of --settings, then the command line again, so that the
 * command line overrides the file. Returns the index of the first operand, or -1. */
static int parse_all(const struct tool *tool, const struct job_args *args, struct optfile *file,
                     int argc, char **argv, struct err *e)
{
    int first = opt_parse(tool, argc, argv);
    if (!args->settings)
        return first;
    return optfile_read(file, tool, args->settings, e) ? -1 : opt_parse(tool, argc, argv);
}

/* Reads the options into *a and given[]. Returns the index of the first operand, or -1. */
static int parse(const struct driver *driver, struct job_args *args, const char **given,
                 struct optfile *file, int argc, char **argv, struct err *e)
{
    const struct settings_table *table = driver->decoder->table;
    const struct opt shared[] = {DRIVER_OPTIONS(*args), OPT_COMMON(args->common), {0}};
    const size_t n = sizeof shared / sizeof *shared;
    struct opt *options = mem_zero(2 + table->n + SETTINGS_ALIASES + DECODER_EXTRAS + n,
                                   sizeof *options);
    options[0] = (struct opt){.type = OPT_HEADING, .name = "",
                              .help = "Decoding (comma-separated values run every "
                                      "combination):"};
    struct settings_texts texts = {0};
    size_t at = 1 + settings_options(table, given, options + 1, &texts);
    options[at++] = (struct opt){.type = OPT_HEADING, .name = "",
                                 .help = "Other names of these options, and inputs for them:"};
    at += settings_alias_options(table, given, options + at, &texts);
    if (driver->decoder->extra_options)
        at += driver->decoder->extra_options(&args->extras, options + at);
    memcpy(options + at, shared, sizeof shared);
    char *all = mem_format("%s\n%s%s%s", clock_notes, driver->notes, notes, memory_notes);
    const struct tool tool = {
        driver->decoder->tool, driver->about, driver->examples, all, options, NEEDS_LATER};
    int first = parse_all(&tool, args, file, argc, argv, e);
    if (first >= 0)
        opt_contain(&tool, argv + first);
    settings_texts_free(&texts);
    free(all);
    free(options);
    return first;
}

/* Opens and closes the model of --draft, to refuse a bad model before another launch of the
 * schedule loads it. */
static int check_draft(const struct job_args *args, struct err *e)
{
    struct checkpoint model;
    const struct checkpoint_opening how = {.ignore = args->engine.ignore_config};
    if (checkpoint_open_with(&model, args->extras.draft, &how, e))
        return -1;
    checkpoint_close(&model);
    return 0;
}

/* Without a schedule, --draft must be given exactly if a point asks for it; else -1
 * (EXIT_BAD_USAGE). With a schedule, a launch without such a point ignores --draft if it can be
 * opened, and the schedule says how many tokens are drafted. */
static int check_companion(const struct driver *driver, struct job_args *args,
                           const struct run_plan *plan, struct err *e)
{
    const char *setting = driver->decoder->companion_setting;
    int wanted = 0;
    for (size_t i = 0; setting && i < plan->points; i++)
        wanted |= settings_count(&plan->point[i], setting) > 0;
    if (args->schedule && !wanted && args->extras.draft) {
        if (check_draft(args, e))
            return -1;
        args->extras.draft = NULL;
    }
    if (!setting || wanted == (args->extras.draft != NULL))
        return 0;
    return wanted ? err_set(e, EXIT_BAD_USAGE, "%s above 0: expected --draft MODEL beside it",
                            setting)
                  : err_set(e, EXIT_BAD_USAGE, "--draft: expected a point with %s above 0",
                            setting);
}

/* Returns -1 (EXIT_BAD_USAGE) if a point reads --z-file but no file is given, or the reverse. */
static int check_latents(const struct job_args *args, const struct run_plan *plan, struct err *e)
{
    int wanted = 0;
    for (size_t i = 0; i < plan->points; i++) {
        const struct settings *point = &plan->point[i];
        wanted |= settings_find(point->table, "z") < point->table->n &&
                  settings_is(point, "z", "file");
    }
    return wanted == (args->extras.z_file != NULL) ? 0
               : err_set(e, EXIT_BAD_USAGE, "--z file and --z-file FILE: expected both or neither");
}

int driver_run(const struct driver *driver, int argc, char **argv, struct err *e)
{
    int64_t begin = clock_ns();
    struct job_args args = JOB_DEFAULTS;
    const char *given[SETTINGS_MAX] = {0};
    const struct settings_table *table = driver->decoder->table;
    struct optfile file = {0};
    struct run_plan plan = {0};
    int first = parse(driver, &args, given, &file, argc, argv, e);
    if (first < 0) {
        optfile_free(&file);
        return err_code(e);
    }
    if (args.extras.draft && !args.schedule &&
        !given[settings_find(table, driver->decoder->companion_setting)]) {
        given[settings_find(table, driver->decoder->companion_setting)] = "4";
        args.extras.draft_usual = 1;
    }
    int bad = args.schedule ? run_plan_read(&plan, table, given, args.schedule, args.launch, e)
                            : run_plan_cross(&plan, table, given, (size_t)args.repeat,
                                             (uint64_t)args.common.seed, e);
    if (bad && args.settings)
        err_prefix(e, "with --settings %s", args.settings);
    plan.launch = args.launch;
    bad = bad || check_companion(driver, &args, &plan, e) || check_latents(&args, &plan, e) ? -1
                                                                                            : 0;
    const struct job job = {.decoder = driver->decoder, .args = &args, .plan = &plan,
                            .options = file.object,
                            .files = (const char *const *)argv + first,
                            .n_files = (size_t)(argc - first), .argc = argc, .argv = argv,
                            .process_ns = begin, .stop = driver->stop,
                            .note_signal = driver->note_signal};
    int code = bad ? err_code(e) : runner_run(&job, e);
    run_plan_free(&plan);
    optfile_free(&file);
    return code;
}
