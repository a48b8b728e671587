/* measure - generation records in, metric records out: one per configuration and figure.
 *
 * Records are sorted into configurations by their `config` text and reduced to numbers as they
 * come. Nothing is summed before it is sorted, so a permuted input gives the same bytes.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/log.h"
#include "lib/base/mem.h"
#include "lib/base/opt.h"
#include "lib/analysis/idle.h"
#include "lib/record/rec.h"
#include "lib/analysis/roof.h"
#include "lib/analysis/about.h"
#include "lib/record/take.h"
#include "lib/analysis/timing.h"
#include "lib/stat/energy.h"
#include "lib/stat/events.h"
#include "lib/analysis/metrics.h"
#include "lib/stat/launch.h"

static const double LEVEL = 0.95;
enum { SAMPLES_KEPT = 1024 };

_Static_assert((int)MEMORY_METRICS == (int)TIMING_MEMORY, "as the records have it");

struct series { struct launch_sample *s; size_t n, cap; };
struct config {
    const char *name;   /* borrowed from `settings` */
    json_t *settings;   /* what all its records share; owned */
    json_t *outputs;    /* --verify: "seed id" -> hash of its tokens; owned */
    struct series of[METRICS];
    struct launch_turn *turns;
    size_t n_turns, cap_turns;
    struct launch_batch *batches;
    size_t n_batches, cap_batches;
    int64_t cold, warmup, timed, failed, oom, tainted;
    struct roof_limit roof;
    int repeated, differs; /* --verify: some id came twice; two outputs of one id differ */
    struct energy_basis basis;
    const char *no_energy[ENERGY_METRICS]; /* why there is none; static */
};

struct args { struct common common; int64_t max_failed; int human, verify; };

struct measure {
    struct args a;
    struct log log;
    struct rec_writer out;
    struct config *configs;
    size_t n, cap;
    struct roof roof;
    json_t *index;              /* config text -> place in configs */
    struct timing timing;       /* the record at hand */
    double *work, *gap;         /* scratch, `room` doubles each */
    size_t room;
    struct idle idle;
    struct take seen;
};

static void push(struct series *x, int64_t launch, double value, double weight)
{
    if (isnan(value))
        return;
    MEM_GROW(x->s, x->n, x->cap);
    x->s[x->n++] = (struct launch_sample){launch, value, weight};
}

/* Memory keeps one sample a launch: its maximum. */
static void push_peak(struct series *x, int64_t launch, double value)
{
    for (size_t i = 0; i < x->n; i++)
        if (x->s[i].launch == launch && !isnan(value)) {
            x->s[i].value = fmax(x->s[i].value, value);
            return;
        }
    push(x, launch, value, 1);
}

static void make_room(struct measure *m, size_t n)
{
    if (n <= m->room)
        return;
    m->room = 2 * n;
    m->gap = mem_resize(m->gap, m->room, sizeof *m->gap);
    m->work = mem_resize(m->work, m->room, sizeof *m->work);
}

/* The configuration of a record, made when new. NULL: *e filled. */
static struct config *find_config(struct measure *m, const json_t *r, struct err *e)
{
    const char *name = rec_text(r, "config");
    if (!name || !*name) {
        err_set(e, EXIT_BAD_DATA, "config: expected a text, got none");
        return NULL;
    }
    const json_t *at = json_object_get(m->index, name);
    if (at) {
        struct config *c = &m->configs[json_integer_value(at)];
        return about_check(c->settings, r, e) ? NULL : c;
    }
    MEM_GROW(m->configs, m->n, m->cap);
    struct config *c = &m->configs[m->n];
    *c = (struct config){.settings = about_of(r), .outputs = json_object()};
    c->name = rec_text(c->settings, "config");
    json_object_set_new(m->index, name, json_integer((json_int_t)m->n++));
    return c;
}

static void push_events(struct measure *m, struct config *c)
{
    struct timing *t = &m->timing;
    size_t n = events_cut(t->emit_ns, t->emit_tokens, t->n_emits, t->tokens_to_eos);
    make_room(m, n);
    push(&c->of[TPOT], t->launch, events_tpot(t->emit_ns, t->emit_tokens, n), 1);
    size_t gaps = events_gaps(t->emit_ns, t->emit_tokens, n, m->gap, m->work);
    for (size_t i = 0; i < gaps; i++)
        push(&c->of[ITL], t->launch, m->gap[i], m->work[i]);
}

static void note_repeat(struct config *c, int differs)
{
    c->repeated |= differs >= 0;
    c->differs |= differs > 0;
}

/* Takes the timed record in m->timing. */
static void take_timed(struct measure *m, struct config *c)
{
    const struct timing *t = &m->timing;
    double steps = t->denoise_steps, rows = t->canvas_positions;
    c->timed++;
    MEM_GROW(c->turns, c->n_turns, c->cap_turns);
    c->turns[c->n_turns++] = (struct launch_turn){t->launch, t->round, t->seq, t->e2e_ns};
    MEM_GROW(c->batches, c->n_batches, c->cap_batches);
    c->batches[c->n_batches++] = (struct launch_batch){
        t->launch, t->round, t->batch_id, t->batch_ns, t->tokens_to_eos, t->new_tokens, 1,
        {t->energy_j, t->energy_ticks, t->power_integral_j, NAN, t->looks, t->capped},
        {t->model_flops, t->model_bytes, t->prefill_flops, t->prefill_bytes, t->prefill_ns}};
    push(&c->of[E2E], t->launch, t->e2e_ns, 1);
    push(&c->of[TTFT], t->launch, t->ttft_ns, 1);
    push(&c->of[TTFT_COMMIT], t->launch, t->ttft_commit_ns, 1);
    push(&c->of[TTF_BLOCK], t->launch, t->ttf_block_ns, 1);
    push(&c->of[NORM], t->launch, t->tokens_to_eos > 0 ? t->e2e_ns / t->tokens_to_eos : NAN, 1);
    push(&c->of[TO_EOS], t->launch, t->tokens_to_eos, 1);
    push(&c->of[EFFICIENCY], t->launch,
         steps > 0 && rows > 0 ? t->committed_tokens / rows : NAN, 1);
    push(&c->of[PER_STEP], t->launch, steps > 0 ? t->committed_tokens / steps : NAN, 1);
    for (int i = 0; i < TIMING_MEMORY; i++)
        push_peak(&c->of[MEMORY + i], t->launch, t->memory[i]);
    push_events(m, c); /* last: it cuts the events */
}

static int take(void *ctx, const json_t *r, struct err *e)
{
    struct measure *m = ctx;
    if (!strcmp(rec_kind(r), "idle"))
        return idle_add(&m->idle, r, e);
    if (roof_take(&m->roof, r) || strcmp(rec_kind(r), "generation"))
        return 0;
    struct config *c = find_config(m, r, e);
    if (!c)
        return -1;
    switch (timing_read(&m->timing, r, e)) {
    case TIMING_BAD:
        return -1;
    case TIMING_OOM:
        c->oom++;
        break;
    case TIMING_FAILED:
        c->failed++;
        m->seen.failed++;
        break;
    case TIMING_COLD:
        c->cold++;
        break;
    case TIMING_WARMUP:
        c->warmup++;
        break;
    case TIMING_TAINTED:
        c->tainted++;
        break;
    case TIMING_TIMED:
        if (m->a.verify && timing_verify(&m->timing, r, e))
            return -1;
        if (m->a.verify)
            note_repeat(c, timing_repeats(c->outputs, r));
        take_timed(m, c);
    }
    return 1;
}

/* Percentiles with the sample size each one needs. Sorts the series. */
static void put_percentiles(struct measure *m, json_t *j, enum launch_kind kind, struct series *x,
                            size_t requests)
{
    static const struct { const char *key; double q; } tail[] = {
        {"p90", 0.90}, {"p95", 0.95}, {"p99", 0.99}};
    for (size_t i = 0; i < 3; i++) {
        char reason[32];
        snprintf(reason, sizeof reason, "n<%zu", launch_needed(tail[i].q, LEVEL));
        rec_set_number(j, tail[i].key,
                       launch_percentile(kind, x->s, x->n, requests, tail[i].q, m->work), reason);
    }
}

static void put_values(struct measure *m, struct config *c, enum metric f, json_t *j)
{
    const struct metric_row *row = &metrics[f];
    struct series *x = &c->of[f];
    size_t requests = x->n < (size_t)c->timed ? x->n : (size_t)c->timed, room = x->n;
    struct launch_value *launch = mem_zero(x->n, sizeof *launch);
    make_room(m, x->n);
    struct launch_summary s = launch_summarize(row->kind, x->s, x->n, launch, m->work);
    json_object_set_new(j, "value", json_real(s.at.value));
    rec_set_number(j, "lo", s.at.lo, s.reason);
    rec_set_number(j, "hi", s.at.hi, s.reason);
    json_object_set_new(j, "level", json_real(LEVEL));
    rec_set_int(j, "n", (int64_t)s.n);
    rec_set_int(j, "launches", (int64_t)s.launches);
    json_object_set_new(j, "method", json_string(s.method));
    json_t *list = json_array(), *samples = json_array();
    for (size_t i = 0; i < s.launches; i++)
        json_array_append_new(list, json_pack("{s:I, s:f}", "launch", (json_int_t)launch[i].launch,
                                              "value", launch[i].value));
    free(launch);
    if (row->kind != LAUNCH_RATIO && row->kind != LAUNCH_MAX) {
        rec_set_number(j, "min", s.min, "none");
        rec_set_number(j, "max", s.max, "none");
        put_percentiles(m, j, row->kind, x, requests);
    }
    json_object_set_new(j, "launch_values", list);
    int keep = row->kind == LAUNCH_MEDIAN && s.launches == 1 && room <= SAMPLES_KEPT;
    for (size_t i = 0; keep && i < room; i++)
        json_array_append_new(samples, json_real(x->s[i].value));
    if (keep)
        json_object_set(j, "samples", samples);
    json_decref(samples);
}

static const char *why_missing(const struct config *c, enum metric f)
{
    int share = f >= MFU && f <= DECODE_MBU, energy = f >= ENERGY && f < MEMORY;
    return !c->timed && c->oom       ? "oom"
           : !c->timed               ? "no timed records"
           : share && c->roof.why    ? c->roof.why
           : energy                  ? c->no_energy[f - ENERGY]
                                     : metrics[f].missing;
}

/* On what joules rest. */
static void describe_energy(const struct config *c, json_t *j)
{
    const struct energy_basis *b = &c->basis;
    json_object_set_new(j, "label", json_string("GPU board energy, NVML, excludes host"));
    rec_set_int(j, "energy_windows", (int64_t)b->windows);
    rec_set_number(j, "energy_ticks", b->ticks, "none");
    rec_set_number(j, "idle_power_w", b->idle_w, "no idle baseline");
    rec_set_number(j, "power_integral_ratio", b->integral, "no power readings");
    rec_set_flag(j, "power_agrees", energy_agrees(b), "no power readings");
}

/* One metric record; the caller's reference. */
static json_t *metric_of(struct measure *m, struct config *c, enum metric f, int is_steady)
{
    const struct metric_row *row = &metrics[f];
    int is_energy = f >= ENERGY && f < ENERGY + ENERGY_METRICS;
    json_t *j = json_copy(c->settings);
    json_object_set_new(j, "metric", json_string(row->name));
    json_object_set_new(j, "unit", json_string(row->unit));
    json_object_set_new(j, "direction", json_string(row->direction));
    if (c->of[f].n) {
        put_values(m, c, f, j);
        if (is_energy)
            describe_energy(c, j);
    } else {
        json_object_set_new(j, "value", json_null());
        json_object_set_new(j, "value_reason", json_string(why_missing(c, f)));
        json_object_set_new(j, "lo", json_null());
        json_object_set_new(j, "hi", json_null());
        rec_set_int(j, "n", 0);
        rec_set_int(j, "launches", 0);
    }
    rec_set_flag(j, "steady", is_steady, "n<8");
    if (m->a.verify)
        rec_set_flag(j, "deterministic", c->repeated ? !c->differs : -1,
                     "no repeats");
    rec_set_int(j, "cold", c->cold);
    rec_set_int(j, "warmup", c->warmup);
    rec_set_int(j, "timed", c->timed);
    rec_set_int(j, "failed", c->failed);
    rec_set_int(j, "oom", c->oom);
    rec_set_int(j, "tainted", c->tainted);
    json_object_set_new(j, "stop_reason", json_null());
    json_object_set_new(j, "status", json_string(c->oom && !c->timed ? "oom" : "ok"));
    return j;
}

static void say(const struct config *c, const json_t *e2e, const json_t *first, const json_t *rate)
{
    double lo = rec_number(e2e, "lo"), hi = rec_number(e2e, "hi");
    if (!c->of[E2E].n) {
        fprintf(stderr, "%s: no figures (%s)\n", c->name, rec_text(e2e, "value_reason"));
        return;
    }
    fprintf(stderr, "%s: an answer takes %.4g ms", c->name, rec_number(e2e, "value") / 1e6);
    if (isnan(lo))
        fprintf(stderr, " (%s)", rec_text(e2e, "lo_reason"));
    else
        fprintf(stderr, " [%.4g, %.4g]", lo / 1e6, hi / 1e6);
    if (!isnan(rec_number(first, "value")))
        fprintf(stderr, ", its first token %.4g ms", rec_number(first, "value") / 1e6);
    fprintf(stderr, "; %.4g tokens/s; %lld answers in %lld launches%s\n",
            rec_number(rate, "value"), (long long)c->timed,
            (long long)rec_int(e2e, "launches", 0),
            json_is_false(json_object_get(e2e, "steady")) ? "; NOT STEADY" : "");
}

/* Of n merged batches. */
static void fill_shares(struct config *c, const struct roof *roof, size_t n)
{
    c->roof = roof_find(roof, c->settings);
    const struct {
        enum metric f;
        enum launch_share share;
        double most;
    } rows[] = {
        {FLOPS_RATE, LAUNCH_FLOPS, 1},
        {BYTES_RATE, LAUNCH_BYTES, 1},
        {MFU, LAUNCH_FLOPS, c->roof.flops_per_s},
        {MBU, LAUNCH_BYTES, c->roof.bytes_per_s},
        {PREFILL_MFU, LAUNCH_PREFILL_FLOPS, c->roof.flops_per_s},
        {DECODE_MBU, LAUNCH_DECODE_BYTES, c->roof.bytes_per_s}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct series *x = &c->of[rows[i].f];
        x->s = mem_zero(n, sizeof *x->s);
        x->n = launch_shares(c->batches, n, rows[i].share, rows[i].most, x->s);
    }
}

/* The joules of the n merged batches of a configuration. */
static void put_energy(const struct measure *m, struct config *c, size_t n)
{
    const char *model = rec_text(c->settings, "model");
    for (size_t i = 0; i < n; i++)
        c->batches[i].energy.idle_w = idle_watts(&m->idle, model, c->batches[i].launch);
    for (int f = 0; f < ENERGY_METRICS; f++) {
        struct series *x = &c->of[ENERGY + f];
        x->s = mem_zero(n, sizeof *x->s);
        x->n = energy_samples((enum energy_metric)f, c->batches, n, x->s, &c->no_energy[f]);
    }
    c->basis = energy_basis(c->batches, n);
}

static int write_config(struct measure *m, struct config *c, struct err *e)
{
    json_t *j[METRICS];
    int bad = 0;
    size_t n = launch_batches(c->batches, c->n_batches);
    put_energy(m, c, n);
    fill_shares(c, &m->roof, n);
    for (size_t i = 0; i < n; i++) {
        const struct launch_batch *b = &c->batches[i];
        push(&c->of[OUTPUT_RATE], b->launch, b->to_eos, b->ns / 1e9);
        push(&c->of[SLOT_RATE], b->launch, b->slots, b->ns / 1e9);
        if (b->energy.looks > 0)
            push(&c->of[POWER_CAP], b->launch, b->energy.capped, b->energy.looks);
    }
    make_room(m, 2 * c->n_turns);
    int is_steady = launch_turns_steady(c->turns, c->n_turns, LEVEL, m->work);
    for (int f = 0; f < METRICS; f++)
        j[f] = metric_of(m, c, (enum metric)f, is_steady);
    if (m->a.human)
        say(c, j[E2E], j[TTFT], j[OUTPUT_RATE]);
    for (int f = 0; f < METRICS; f++)
        bad |= rec_write(&m->out, "metric", j[f], e);
    if (is_steady == 0)
        log_warn(&m->log, "W021", "%s: latency drifts in a launch; give more --warmup", c->name);
    if (c->of[ENERGY].n && energy_agrees(&c->basis) == 0)
        log_warn(&m->log, "W023", "%s: power readings and energy counter are %.1f %% apart; trust "
                 "neither", c->name, fabs(c->basis.integral - 1) * 100);
    if (c->differs)
        log_warn(&m->log, "W022", "%s: repeats of one prompt gave different tokens", c->name);
    return bad;
}

static int by_config(const void *a, const void *b)
{
    const struct config *x = a, *y = b;
    return about_order(x->settings, y->settings);
}

static void free_measure(struct measure *m)
{
    for (size_t i = 0; i < m->n; i++) {
        struct config *c = &m->configs[i];
        for (int f = 0; f < METRICS; f++)
            free(c->of[f].s);
        free(c->turns);
        free(c->batches);
        json_decref(c->settings);
        json_decref(c->outputs);
    }
    free(m->configs);
    timing_free(&m->timing);
    roof_free(&m->roof);
    idle_free(&m->idle);
    free(m->gap);
    free(m->work);
    json_decref(m->index);
}

static const char examples[] =
    "measure generations.ndjson > metrics.ndjson\n"
    "gen-llada -m llada-demo --steps 8,16 < prompts.ndjson | measure --human -o metrics.ndjson\n";

static const char notes[] =
    "Definitions. Only records of phase `timed` and status `ok` count; records of one `config`\n"
    "are one configuration. A token is output up to the first stop id; what follows is padding.\n"
    "  e2e_ns           request accepted to its last token final, padding included\n"
    "  ttft_ns          to the first readable token;  ttft_commit_ns: to the first position final\n"
    "                   anywhere;  ttf_block_ns: to the first block complete\n"
    "  tpot_ns          (t_last - t_first) / (n - k_first) over emissions of k tokens; null when\n"
    "                   all tokens came at once\n"
    "  itl_ns           gap before an emission / its tokens, counted once for each of them\n"
    "  norm_latency_ns_per_token   e2e_ns / n\n"
    "  output_tokens_per_s         sum of n / sum of batch makespans, each batch once\n"
    "  slot_tokens_per_s           the same over all slots of the canvas\n"
    "  position_efficiency_ratio   committed tokens / positions computed\n"
    "  memory_*_bytes   largest value seen\n"
    "  model_flops_per_s, model_bytes_per_s   what the work needs on paper / batch makespans\n"
    "  mfu_ratio, mbu_ratio   these / what the machine can do at most: ceilings in the input (see\n"
    "                   probe-roof) of that device, or of as many threads. mbu above 1: the\n"
    "                   weights lie in a cache\n"
    "  prefill_mfu_ratio, decode_mbu_ratio   of the first pass, and of all others\n"
    "  energy_j_per_token, energy_j_per_request, power_mean_w   joules of the GPU's board by the\n"
    "                   driver's counter, host excluded, a token, a request, a second;\n"
    "                   energy_net_*: less the power of the idle card. Null below 10 s or 100\n"
    "                   ticks in a launch and below 5 batches; power_agrees: the sum of\n"
    "                   power readings comes within 5 %\n"
    "  power_cap_ratio  looks at the card under its power cap / looks; such records do count\n"
    "Headline: mean of launch medians with Student's interval from two launches on; with one the\n"
    "median with its order-statistic interval (null below 6). Percentiles need n = 29 (p90),\n"
    "59 (p95), 299 (p99). steady: no launch drifts by 1 % or more beyond its slope's interval.\n";

static void check(struct measure *m, int bad, const struct err *e)
{
    if (!bad)
        return;
    rec_abandon(&m->out);
    err_die("measure", e);
}

int main(int argc, char **argv)
{
    struct measure m = {.a.common = COMMON_DEFAULTS};
    const struct opt options[] = {
        {"max-failed", 0, OPT_INT, &m.a.max_failed, 0, 1e15, .arg = "N",
         .help = "exit 0 with up to N failed records (0)"},
        {"verify", 0, OPT_FLAG, &m.a.verify,
         .help = "check that each record agrees with itself, and repeats with each other"},
        {"human", 0, OPT_FLAG, &m.a.human, .help = "one line per configuration on standard error"},
        OPT_COMMON(m.a.common),
        {0}};
    const struct tool tool = {"measure", "generation records in, metric records out", examples,
                              notes, options};
    int first = opt_parse(&tool, argc, argv);
    struct err e = {0};
    m.log = (struct log){"measure", m.a.common.quiet ? 0 : 1 + m.a.common.verbose};
    m.index = json_object();
    struct rec_reader *in = rec_read_open((const char *const *)argv + first,
                                          (size_t)(argc - first), &e);
    check(&m, !in, &e);
    check(&m, rec_open(&m.out, &m.a.common, "measure", argc, argv, NULL, &e), &e);
    check(&m, take_all(&m.seen, in, &m.out, &m.log, m.a.common.limit, take, &m, &e), &e);
    rec_read_close(in);
    if (!m.seen.taken && !m.seen.bad)
        check(&m, err_set(&e, EXIT_BAD_DATA, "no generation records in the input"), &e);
    if (m.n)
        qsort(m.configs, m.n, sizeof *m.configs, by_config);
    for (size_t i = 0; i < m.n; i++)
        check(&m, write_config(&m, &m.configs[i], &e), &e);
    int code = take_verdict(&m.seen, &m.log, m.a.max_failed);
    check(&m, rec_close(&m.out, code ? "failed" : "ok", &e), &e);
    free_measure(&m);
    return code;
}
