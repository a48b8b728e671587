/* measure - computes metric records from generation records: one for each point, set of prompts and
 * metric.
 *
 * Records are grouped into measurements (measurement.h) by point and workload. Records of two
 * machines are two experiments and are never merged. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lib/analysis/about.h"
#include "lib/analysis/measure/measurement.h"
#include "lib/base/cli/log.h"
#include "lib/base/cli/opt.h"
#include "lib/base/mem.h"
#include "lib/base/plain.h"
#include "lib/record/rec.h"
#include "lib/analysis/records/take.h"

enum {
    POINTS_NAMED = 3 /* points named in a warning; the records mark every point */
};

struct args {
    struct common common;
    const char *stopped;
    int64_t max_failed;
    double ttft_limit_ms, itl_limit_ms; /* 0: none */
    int verify;
};

struct measure {
    struct args a;
    struct log log;
    struct rec_writer out;
    struct measurement *v;
    size_t n, cap;
    struct roof roof;
    struct idle idle;
    json_t *index;          /* text "point\nworkload" -> index in v */
    char *machine, *other;  /* fingerprint of the first stream; one that differs, or NULL */
    int has_origin;         /* 1: the output has the meta record of a generator */
    struct measurement_work work;
    struct take seen;
    size_t drifting, cold; /* points that drift in a launch; points with too short a warm-up */
};

/* Finds or creates the measurement of a record. Returns NULL with *e filled if the record has no
 * point. */
static struct measurement *find(struct measure *measure, const json_t *record, struct err *e)
{
    const char *point = about_point(record);
    if (!point) {
        err_set(e, EXIT_BAD_DATA, "point, config: expected a text, got none");
        return NULL;
    }
    char *key = mem_format("%s\n%s", point, about_workload(record));
    const json_t *at = json_object_get(measure->index, key);
    size_t place = at ? (size_t)json_integer_value(at) : measure->n;
    if (!at) {
        MEM_GROW(measure->v, measure->n, measure->cap);
        measurement_open(&measure->v[measure->n], record);
        measure->n++;
        json_object_set_new(measure->index, key, json_integer((json_int_t)place));
    }
    free(key);
    return &measure->v[place];
}

/* Copies the meta record of the first generator to the output. measure may run on another machine
 * than the generator, and this record names the machine of the numbers. */
static int note_machine(struct measure *measure, const json_t *meta, struct err *e)
{
    const char *is = rec_text(json_object_get(meta, "machine"), "fingerprint"),
               *tool = rec_text(meta, "tool");
    int is_origin = is && tool && !strncmp(tool, "gen-", 4) && !measure->has_origin;
    if (is && !measure->machine)
        measure->machine = mem_text(is);
    else if (is && !measure->other && strcmp(is, measure->machine))
        measure->other = mem_text(is);
    measure->has_origin |= is_origin;
    return is_origin && !measure->a.common.no_meta ? rec_pass(&measure->out, meta, e) : 0;
}

static int take(void *ctx, const json_t *record, struct err *e)
{
    struct measure *measure = ctx;
    const char *kind = rec_kind(record);
    if (!strcmp(kind, "idle"))
        return idle_add(&measure->idle, record, e);
    if (!strcmp(kind, "meta") && note_machine(measure, record, e))
        return -1;
    if (roof_take(&measure->roof, record) || strcmp(kind, "generation"))
        return 0;
    struct measurement *point = find(measure, record, e);
    enum timing_class class = point ? measurement_take(point, record, measure->a.verify,
                                                       &measure->work, e)
                                   : TIMING_BAD;
    measure->seen.failed += class == TIMING_FAILED;
    return class == TIMING_BAD ? -1 : 1;
}

static void warn(struct measure *measure, const struct measurement *point)
{
    const char *name = rec_text(point->about, "config");
    name = name ? name : about_point(point->about);
    if (point->is_steady == 0 && ++measure->drifting <= POINTS_NAMED)
        log_warn(&measure->log, "W021", "%s: latency drifts in a launch; give more --warmup", name);
    if (point->warmed == 0 && ++measure->cold <= POINTS_NAMED)
        log_warn(&measure->log, "W024",
                 "%s: a warm-up ended before its times were steady; give more "
                 "--warmup-most", name);
    if (point->is_disturbed)
        log_warn(&measure->log, "W025",
                 "%s: other work disturbed every timed batch, so values have "
                 "no intervals; end the other work and measure again", name);
    if (measurement_has(point, ENERGY) && energy_agrees(&point->basis) == 0)
        log_warn(&measure->log, "W023",
                 "%s: power readings and energy counter are %.1f %% apart; trust "
                 "neither", name, fabs(point->basis.integral - 1) * 100);
    size_t ids = json_object_size(point->outputs);
    /* random weights may give any answer */
    int drawn = json_is_true(json_object_get(point->about, "weights_random"));
    if (measure->a.verify && !drawn && point->distinct_ratio * (double)ids < 1.5 && ids > 3)
        log_warn(&measure->log, "W026",
                 "%s: all %zu prompts have the same answer: is the prompt read?", name, ids);
    if (measure->a.verify && point->repeat_ratio < 0.9)
        log_warn(&measure->log, "W027", "%s: repeats take %.2f of the time of the first answers: "
                 "something is cached between them", name, point->repeat_ratio);
    if (point->differs && !about_is_drawn(point->about))
        log_warn(&measure->log, "W022", "%s: repeats of one prompt gave different tokens", name);
    if (point->partial)
        log_note(&measure->log, "%s: %lld answers of batches that were not full are left out", name,
                 (long long)point->partial);
}

static void warn_of_more(const struct measure *measure)
{
    if (measure->drifting > POINTS_NAMED)
        log_warn(&measure->log, "W021", "latency drifts at %zu further points",
                 measure->drifting - POINTS_NAMED);
    if (measure->cold > POINTS_NAMED)
        log_warn(&measure->log, "W024",
                 "warm-ups of %zu further points ended before their times were "
                 "steady",
                 measure->cold - POINTS_NAMED);
}

static int write_one(struct measure *measure, struct measurement *point, struct err *e)
{
    json_t *j[METRICS];
    int bad = 0;
    measurement_finish(point, &measure->roof, &measure->idle, &measure->work);
    if (batches_check(&point->batches, e))
        return err_prefix(e, "%.200s", about_point(point->about));
    for (int metric = 0; metric < METRICS; metric++) {
        j[metric] = measurement_metric(point, (enum metric)metric, measure->a.verify,
                                       &measure->work);
        if (measure->a.stopped)
            json_object_set_new(j[metric], "stop_reason", json_string(measure->a.stopped));
    }
    for (int metric = 0; metric < METRICS; metric++)
        bad |= rec_write(&measure->out, "metric", j[metric], e);
    json_t *times = measurement_times(point);
    if (times)
        bad |= rec_write(&measure->out, "times", times, e);
    warn(measure, point);
    return bad;
}

static int by_about(const void *a, const void *b)
{
    const struct measurement *x = a, *y = b;
    return about_order(x->about, y->about);
}

/* Returns -1 if the input is not one experiment. */
static int check_input(const struct measure *measure, struct err *e)
{
    if (measure->other)
        return err_set(e, EXIT_BAD_DATA, "records of two machines, %s and %s: measure each alone",
                       measure->machine, measure->other);
    return measure->seen.taken || measure->seen.bad
               ? 0
               : err_set(e, EXIT_BAD_DATA, "no generation records in the input");
}

static void free_measure(struct measure *measure)
{
    for (size_t i = 0; i < measure->n; i++)
        measurement_free(&measure->v[i]);
    free(measure->v);
    measurement_work_free(&measure->work);
    roof_free(&measure->roof);
    idle_free(&measure->idle);
    free(measure->machine);
    free(measure->other);
    json_decref(measure->index);
}

static const char examples[] =
    "measure generations.ndjson > metrics.ndjson\n"
    "gen-llada -m llada-demo --steps 8,16 p.ndjson | measure -o m.ndjson\n";

static const char notes[] =
    "Only records of phase `timed` and status `ok` count. Tainted ones (the machine\n"
    "was disturbed) count only if a point has no others; its values then have no\n"
    "intervals and are marked `disturbed`. A token is output up to the first stop id;\n"
    "the rest is padding.\n"
    "  e2e_ns           from the accepted request (its ids are in memory, the work\n"
    "                   area of its batch is allocated; with --arrival-rate: from its\n"
    "                   arrival) to its last final token, padding included\n"
    "  ttft_ns          to the first readable token; null for an empty answer\n"
    "  ttft_commit_ns   to the first final position anywhere\n"
    "  ttf_block_ns     to the first complete block\n"
    "  tpot_ns          (t_last - t_first) / (n - k_first) over emissions of k\n"
    "                   tokens; null if all tokens came at once\n"
    "  itl_ns           gap before an emission / its tokens, counted once for each\n"
    "                   token\n"
    "  visible_gap_ns   time between two changes of the readable text\n"
    "  longest_gap_ns   the longest visible gap of an answer\n"
    "  tokenize_ns      making the ids of a prompt; outside of e2e_ns\n"
    "  prepare_ns       from the ids of a batch to its clock; outside of e2e_ns\n"
    "  output_tokens_per_s        sum of n / sum of batch makespans, each batch once\n"
    "  slot_tokens_per_s          the same for all slots of the canvas\n"
    "  output_bytes_per_s         the same for bytes of text: compares models with\n"
    "                             different tokenizers\n"
    "  requests_per_s, goodput_per_s\n"
    "                             answers / sum of batch makespans: requests_per_s\n"
    "                             counts all, goodput_per_s those within\n"
    "                             --ttft-limit-ms (ttft_ns) and --itl-limit-ms\n"
    "                             (tpot_ns, the mean of an answer)\n"
    "  norm_latency_ns_per_token  e2e_ns / n\n"
    "  norm_latency_ns_per_word   e2e_ns / words of the text up to the stop id, as wc\n"
    "                             -w counts them\n"
    "  passes, rows               denoising passes of an answer; positions computed\n"
    "                             for it\n"
    "  position_efficiency_ratio  committed tokens / positions computed\n"
    "  memory_*_bytes             largest value seen\n"
    "\n"
    "  model_flops_per_s, model_bytes_per_s\n"
    "    operations and bytes that the work needs at least / batch makespans\n"
    "  mfu_ratio, mbu_ratio\n"
    "    these rates / the ceilings in the input (see probe-roof) of the same device,\n"
    "    or of as many threads. mbu above 1: the weights are in a CPU cache.\n"
    "  prefill_mfu_ratio, decode_mbu_ratio\n"
    "    the same for the first pass, and for all others\n"
    "  energy_j_per_token, energy_j_per_request, power_mean_w\n"
    "    GPU: energy of the board by the driver's counter, without the host. CPU:\n"
    "    energy of the packages (RAPL) without memory, board and power supply;\n"
    "    everything that ran is included. energy_net_*: minus the power of the idle\n"
    "    device. Null below 100 ticks in a launch, on a GPU also below 10 s and 5\n"
    "    batches. power_agrees: the sum of power readings is within 5 %.\n"
    "  power_cap_ratio\n"
    "    share of the readings in which the GPU was under its power cap; such records\n"
    "    count\n"
    "\n"
    "Records of one point and one set of prompts are one measurement. Records of two\n"
    "machines are refused; a record of kind parent names the machine they were made\n"
    "on, wherever measure itself runs. A repeated record counts once. Answers of a\n"
    "batch that is not full are counted as `partial` and left out, unless prompts\n"
    "arrive one by one (--arrival-rate).\n"
    "A value is the geometric mean of launch medians (for rates: sum over sum), with\n"
    "Student's interval of the logarithms. It is null below 5 launches, because the\n"
    "answers of one process are not independent. Percentiles need n = 29 (p90), 59\n"
    "(p95), 299 (p99). steady: no launch drifts or jumps by 1 % or more beyond noise.\n"
    "Records of kind times have the wall time and the processor time of each prompt\n"
    "in each launch of a point, for compare, pareto and conclude. A disturbed wall\n"
    "time is null.\n"
    "Memory at the peak: about 360 bytes for each answer of batch size 1, 16 to 32\n"
    "for each gap between emissions, and 32 for each gap of the point that is being\n"
    "summarized.\n";

static void check(struct measure *measure, int bad, const struct err *e)
{
    if (!bad)
        return;
    rec_abandon(&measure->out);
    err_die("measure", e);
}

int main(int argc, char **argv)
{
    struct measure measure = {.a = {.common = COMMON_DEFAULTS}};
    const struct opt options[] = {
        TAKE_OPTION(measure.a.max_failed),
        {"verify", 0, OPT_FLAG, &measure.a.verify,
         .help = "also check memory, lengths and stops, and that repeats are identical"},
        {"ttft-limit-ms", 0, OPT_REAL, &measure.a.ttft_limit_ms, 1e-6, 1e9, .arg = "MS",
         .help = "goodput: an answer is good if its first token comes within MS (no limit)"},
        {"itl-limit-ms", 0, OPT_REAL, &measure.a.itl_limit_ms, 1e-6, 1e9, .arg = "MS",
         .help = "goodput: an answer is good if its mean time per token after the first is at most "
                 "MS (no limit)"},
        {"stopped", 0, OPT_TEXT, &measure.a.stopped, .arg = "WHY",
         .help = "stop_reason to record: precision, budget, launches, ... (null)"},
        OPT_COMMON(measure.a.common),
        {0}};
    const struct tool tool = {"measure", "generation records in, metric records out", examples,
                              notes, options, NEEDS_NOTHING};
    int first = opt_parse(&tool, argc, argv);
    struct err e = {0};
    measure.log = (struct log){"measure",
                               measure.a.common.quiet ? 0 : 1 + measure.a.common.verbose};
    measure.index = json_object();
    measure.work.limits = (struct samples_limits){
        {measure.a.ttft_limit_ms * 1e6, measure.a.itl_limit_ms * 1e6}};
    struct rec_reader *in = rec_read_open((const char *const *)argv + first,
                                          (size_t)(argc - first), &e);
    check(&measure, !in, &e);
    check(&measure, rec_open(&measure.out, &measure.a.common, "measure", argc, argv, NULL, &e), &e);
    check(&measure,
          take_all(&measure.seen, in, &measure.out, &measure.log, measure.a.common.limit, take,
                   &measure, &e),
          &e);
    rec_read_close(in);
    check(&measure, check_input(&measure, &e), &e);
    if (measure.n)
        qsort(measure.v, measure.n, sizeof *measure.v, by_about);
    for (size_t i = 0; i < measure.n; i++)
        check(&measure, write_one(&measure, &measure.v[i], &e), &e);
    warn_of_more(&measure);
    int code = take_verdict(&measure.seen, &measure.log, measure.a.max_failed);
    check(&measure, rec_close(&measure.out, code ? "failed" : "ok", &e), &e);
    free_measure(&measure);
    return code;
}
