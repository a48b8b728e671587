/* schedule - writes the points and launches of a run from settings (lib/setting/launches.h).
 *
 * The tool has no table of its own: its options are the settings of all systems. An earlier
 * schedule is extended by new launches and never changed. */
#include <stdlib.h>
#include <string.h>

#include "lib/base/cli/log.h"
#include "lib/base/cli/opt.h"
#include "lib/base/err.h"
#include "lib/base/mem.h"
#include "lib/record/rec.h"
#include "lib/setting/launches.h"

struct args {
    struct common common;
    const char *systems, *previous, *methods;
    struct launches_given given;
    struct launches plan;
};

static const char TOOL[] = "schedule";

/* Reads the launch records of an earlier schedule; records of other kinds are dropped. */
static json_t *read_previous(const char *path, struct err *e)
{
    json_t *list = json_array(), *record;
    struct rec_reader *reader = rec_read_open(&path, 1, e);
    int got = reader ? 1 : -1;
    while (got > 0 && (got = rec_read(reader, &record, e)) > 0) {
        if (!strcmp(rec_kind(record), "launch"))
            json_array_append(list, record);
        json_decref(record);
    }
    rec_read_close(reader);
    if (got == 0 && json_array_size(list) == 0)
        got = err_set(e, EXIT_BAD_DATA, "%s: no launch records", path);
    if (got == 0)
        return list;
    json_decref(list);
    return NULL;
}

static int write_all(struct rec_writer *out, const json_t *previous, const json_t *fresh,
                     struct err *e)
{
    int bad = 0;
    for (size_t i = 0; i < json_array_size(previous) && !bad; i++)
        bad = rec_pass(out, json_array_get(previous, i), e);
    for (size_t i = 0; i < json_array_size(fresh) && !bad; i++)
        bad = rec_write(out, "launch", json_incref(json_array_get(fresh, i)), e);
    return bad;
}

static int run(const struct args *args, int argc, char **argv)
{
    struct err e = {0};
    struct rec_writer out;
    json_t *previous = args->previous ? read_previous(args->previous, &e) : json_array();
    json_t *fresh = previous ? launches_schedule(&args->plan, previous, &e) : NULL;
    if (!fresh && args->previous)
        err_prefix(&e, "--previous");
    if (!fresh || rec_open(&out, &args->common, TOOL, argc, argv, NULL, &e))
        err_die(TOOL, &e);
    int bad = write_all(&out, previous, fresh, &e);
    json_decref(previous);
    json_decref(fresh);
    if (bad)
        rec_abandon(&out);
    if (bad || rec_close(&out, "ok", &e))
        err_die(TOOL, &e);
    return EXIT_OK;
}

static const char EXAMPLES[] =
    "schedule --steps 4,16,64 --launches 8 > schedule.ndjson\n"
    "schedule --steps 4,16,32,64 --previous schedule.ndjson > longer.ndjson\n"
    "schedule --steps 64 --methods data/methods.ndjson > methods-schedule.ndjson\n";

static const char NOTES[] =
    "One record per launch: {launch, system, seed, rounds, units, points: [{round,\n"
    "...}]}. A generator runs it with --schedule FILE --launch K. Launches with the\n"
    "same number are a pair: one of each system. Each round holds each point once, in\n"
    "a new random order.\n"
    "\n"
    "With --previous the old launches stay as they are. Only points that they do not\n"
    "hold get new launches. Each new launch also repeats two old points (\"bridge\":\n"
    "true), so that a change of the machine between two sessions can be seen.\n";

/* The tool's own options, then those of the settings, then the common ones. */
static struct opt *join(const struct opt *own, size_t n_own, struct launches_given *given,
                        const struct opt *last, size_t n_last, struct settings_texts *texts)
{
    struct opt *settings;
    size_t n = launches_options(given, &settings, texts);
    struct opt *all = mem_zero(n_own + 1 + n + n_last, sizeof *all);
    memcpy(all, own, n_own * sizeof *all);
    all[n_own] = (struct opt){.type = OPT_HEADING, .name = "",
                              .help = "Settings of the points (comma-separated values run every "
                                      "combination; defaults here: --steps 2,4,8,16,32,64, "
                                      "--gen-length 64, --block-length 32):"};
    memcpy(all + n_own + 1, settings, n * sizeof *all);
    memcpy(all + n_own + 1 + n, last, n_last * sizeof *all);
    free(settings);
    return all;
}

static void check(const struct tool *tool, struct args *args)
{
    struct launches *launches = &args->plan;
    launches->seed = (uint64_t)args->common.seed;
    struct err e = {0};
    struct methods methods = {0};
    if (args->methods && methods_read(&methods, args->methods, &e))
        err_die(TOOL, &e);
    if (launches_systems(launches, args->systems, &e) ||
        launches_points(launches, &args->given, &methods, &e))
        opt_usage(tool, "%s", e.text);
    methods_free(&methods);
}

#define HUGE_INT 9007199254740991.0

int main(int argc, char **argv)
{
    struct args args = {.common = COMMON_DEFAULTS, .systems = "llada,llama",
                        .plan = {.launches = 5, .rounds = 1}};
    launches_say(&args.given, "steps", "2,4,8,16,32,64");
    launches_say(&args.given, "gen_length", "64");
    launches_say(&args.given, "block_length", "32");
    launches_say(&args.given, "batch", "1");
    const struct opt own[] = {
        {"launches", 0, OPT_INT, &args.plan.launches, 1, HUGE_INT, .arg = "N",
         .help = "launches (fresh processes) of each system (5)"},
        {"rounds", 0, OPT_INT, &args.plan.rounds, 1, HUGE_INT, .arg = "N",
         .help = "rounds over all points in a launch (1)"},
        {"systems", 0, OPT_TEXT, &args.systems, .arg = "LIST",
         .help = "systems in the order of their first turn: llada, llama, ltm (llada,llama)"},
        {"previous", 0, OPT_TEXT, &args.previous, .arg = "FILE", .help = "schedule to extend"},
        {"methods", 0, OPT_TEXT, &args.methods, .arg = "FILE",
         .help = "also run the decoding methods of this file"}};
    const struct opt last[] = {OPT_COMMON(args.common), {0}};
    struct settings_texts texts = {0};
    struct opt *options = join(own, sizeof own / sizeof *own, &args.given, last,
                               sizeof last / sizeof *last, &texts);
    const struct tool tool = {TOOL, "settings in, the points and launches of a run out", EXAMPLES,
                              NOTES, options, NEEDS_NOTHING};
    int first = opt_parse(&tool, argc, argv);
    if (first < argc)
        opt_usage(&tool, "expected no files, got '%s'", argv[first]);
    check(&tool, &args);
    settings_texts_free(&texts);
    free(options);
    int code = run(&args, argc, argv);
    launches_free(&args.plan);
    return code;
}
