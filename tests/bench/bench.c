/* bench - measures the ceilings of this machine or of a device, then kernels and models as
 * fractions of these ceilings. Writes roofline records on standard output, a table on standard
 * error. After a signal, or an error after the first point, the stream ends with the records so
 * far, and its end record has "interrupted" or "failed".
 *
 * A fraction is least time / time. The least time of a product is the larger of operations / peak
 * rate of its number format and bytes / read bandwidth, where bytes are the weights read once, and
 * the keys and values. The least time of a model is the sum over its passes. Weights are cold:
 * kernels walk over many copies, as a network does. For kernels the fastest walk counts, for models
 * the median. */
#include "tests/bench/bench.h"

#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/cli/opt.h"
#include "lib/base/clock.h"
#include "lib/run/engine.h"
#include "lib/run/probe/level_choice.h"
#include "lib/checkpoint/synth.h"
#include "tests/bench/card.h"

static const char tool_name[] = "bench";
static volatile sig_atomic_t stop_signal;
static const char parts[] = "ceilings,kernels,wkv,models,growth,training,activations,"
                            "solvers,tools,peer";
static const char usual_parts[] = "ceilings,kernels,models,growth";
static const char jobs[] = "prefill,decode,batch,diffuse,after,full,block,parts,gap,memory,load";
static const char usual_jobs[] = "prefill,decode,batch,diffuse";
static const char kinds[] = "f32,bf16,int8,nf4,q4,fp8";
static const char usual_kinds[] = "f32,bf16,int8,nf4";
static const char shapes[] = "tiny,small,1b,8b,qwen3-0.6b,llada-moe-7b-a1b";

static const struct pair pairs[] = {{"tiny", "tiny-llama", "tiny-llada", 16},
                                    {"small", "small-llama", "small-llada", 1},
                                    {"1b", "llama3.2-1b", "llada3.2-1b", 1},
                                    {"8b", "llama3-8b", "llada-8b", 1},
                                    {"qwen3-0.6b", "qwen3-0.6b", "qwen3-0.6b-mdlm", 1},
                                    {"llada-moe-7b-a1b", "llama3.2-1b", "llada-moe-7b-a1b", 1},
                                    {0}};
const struct kind bench_kinds[] = {{"f32", DTYPE_F32, {.dtype = "f32"}, "f32"},
                                   {"bf16", DTYPE_BF16, {.dtype = "bf16"}, "bf16"},
                                   {"int8", DTYPE_INT8, {.quant = "int8"}, "q8_0"},
                                   {"nf4", DTYPE_NF4, {.quant = "nf4"}, "q4_0"},
                                   {"q4", DTYPE_Q4, {.quant = "q4"}, "q4_0"},
                                   {"fp8", DTYPE_FP8, {.quant = "fp8"}, NULL},
                                   {0}};

int bench_chosen(const char *list, const char *word)
{
    size_t n = strlen(word);
    for (const char *p = list; p; p = strchr(p, ',')) {
        p += *p == ',';
        if (!strncmp(p, word, n) && (p[n] == ',' || !p[n]))
            return 1;
    }
    return 0;
}

size_t shrunk(const struct pair *p, size_t length)
{
    return length > p->shrink ? length / p->shrink : 1;
}

int bench_on_device(const struct bench *b)
{
    return *b->backend->name != 0;
}

int bench_by_processor(const struct bench *b)
{
    return !strcmp(b->clock, "cpu") && !bench_on_device(b);
}

int64_t bench_now_ns(const struct bench *b)
{
    return bench_by_processor(b) ? clock_cpu_ns() / (int64_t)pool_threads(b->backend->pool)
                                 : clock_ns();
}

int bench_backend(struct bench *b, struct err *e)
{
    const struct engine engine = {.device = b->device, .isa = b->isa, .threads = b->threads};
    backend_close(b->backend);
    b->backend = NULL;
    return engine_open(&engine, &b->backend, e);
}

void bench_level(struct bench *b, enum dtype dtype)
{
    if (!strcmp(b->isa, "auto"))
        level_choice_use(b->backend, dtype, NULL);
}

static void describe(const struct bench *b, json_t *r)
{
    const struct backend *k = b->backend;
    json_object_set_new(r, "device", json_string(k->ops->name));
    json_object_set_new(r, "device_name", *k->name ? json_string(k->name) : json_null());
    json_object_set_new(r, "isa", json_string(k->level));
    json_object_set_new(r, "library", *k->library ? json_string(k->library) : json_null());
    engine_put_choices(r, k);
    if (!bench_on_device(b))
        rec_set_int(r, "threads", (int64_t)b->roof.threads);
    if (bench_by_processor(b))
        json_object_set_new(r, "clock", json_string(b->clock));
}

static void note_signal(int number)
{
    stop_signal = number;
}

static void catch_signals(void)
{
    struct sigaction once = {.sa_flags = (int)SA_RESETHAND}; /* a second signal ends at once */
    once.sa_handler = note_signal;
    sigaction(SIGINT, &once, NULL);
    sigaction(SIGTERM, &once, NULL);
    sigaction(SIGHUP, &once, NULL);
}

int bench_stopped(const struct bench *b, struct err *e)
{
    return *b->stop ? err_set(e, 128 + *b->stop, "stopped by signal %d", (int)*b->stop) : 0;
}

/* Without the vendor's library the back end's own kernels give a low ceiling, under which
 * everything looks good. A bf16 ceiling below half of the card's nominal rate is therefore
 * marked. */
static void set_estimate(const struct bench *b, json_t *r, double reached)
{
    struct card card;
    const char *why;
    char remark[160];
    int unknown = card_read(b->backend, &card, &why);
    double nominal = unknown ? (double)NAN : card_flops_per_s(&card);
    rec_set_number(r, "nominal_flops_per_s", nominal, why);
    if (unknown || reached >= nominal / 2)
        return;
    snprintf(remark, sizeof remark, "%.0f %% of %d multiprocessors x %.0f MHz x %.0f flop: a low "
             "ceiling flatters (are the vendor's products missing?)", 100 * reached / nominal,
             card.multiprocessors, card.clock_hz / 1e6, card.flops_per_cycle);
    json_object_set_new(r, "remark", json_string(remark));
    fprintf(stderr, "bench: bf16 ceiling: %s\n", remark);
}

/* Adds a remark on how the ceiling of a device was measured. */
static void set_remark(const struct bench *b, json_t *r, int unit, double reached)
{
    if (bench_on_device(b) && unit == UNIT_BF16)
        set_estimate(b, r, reached);
    if (bench_on_device(b) && unit == UNIT_INT8)
        json_object_set_new(r, "remark", json_string("LLM.int8() as a whole, with coding and "
                                                     "outliers: not what the int8 units can do"));
}

/* The text about the spread of the host's loops; a device has no spread. */
enum { SPREAD_TEXT = 32 };
static const char *spread_text(const struct bench *b, double spread, char text[SPREAD_TEXT])
{
    *text = 0;
    if (!bench_on_device(b))
        snprintf(text, SPREAD_TEXT, ", spread %.0f %%%s", 100 * spread, ceiling_remark(spread));
    return text;
}

static int put_ceiling(struct bench *b, const struct ceilings *c, enum unit u, struct err *e)
{
    char spread[SPREAD_TEXT];
    json_t *r = ceiling_record(c, b->backend, u);
    fprintf(stderr, "%-36s %8.1f GOP/s  (%s)%s\n", rec_text(r, "name"),
            c->operations_per_s[u] / 1e9, rec_text(r, "isa"),
            spread_text(b, c->operations_spread[u], spread));
    set_remark(b, r, u, c->operations_per_s[u]);
    if (!bench_on_device(b) && rec_text(r, "remark"))
        fprintf(stderr, "bench: %s\n", rec_text(r, "remark"));
    return rec_write(&b->out, "roofline", r, e);
}

static int put_ceilings(struct bench *b, const struct ceilings *c, struct err *e)
{
    char spread[SPREAD_TEXT];
    int bad = 0;
    for (int u = 0; u < UNITS && !bad; u++)
        if (c->operations_per_s[u] > 0)
            bad = put_ceiling(b, c, (enum unit)u, e);
    if (bench_on_device(b))
        fprintf(stderr, "%-36s %8.1f GB/s  (%s)\n", "memory copy, read + written",
                c->bytes_per_s / 1e9, b->backend->name);
    else
        fprintf(stderr, "%-36s %8.1f GB/s  (%zu thread%s)%s\n", "memory read",
                c->bytes_per_s / 1e9, c->threads, c->threads > 1 ? "s" : "",
                spread_text(b, c->bytes_spread, spread));
    return bad;
}

int bench_point(struct bench *b, json_t *fields, const struct task *t, double seconds,
                struct err *e)
{
    const char *bound = 2 * t->compute_s > t->least_s ? "compute" : "memory";
    const char *peer = rec_text(fields, "peer");
    double rate = rec_number(fields, "tokens_per_s"), ratio = rec_number(fields, "peer_ratio");
    double share = task_share(b, t, seconds);
    describe(b, fields);
    json_object_set_new(fields, "unit", json_string(dtype_unit_name(t->unit)));
    json_object_set_new(fields, "bound", json_string(bound));
    rec_set_number(fields, "took_ns", seconds * 1e9, NULL);
    rec_set_number(fields, "flops_per_s", t->operations / seconds, NULL);
    rec_set_number(fields, "bytes_per_s", t->bytes / seconds, NULL);
    rec_set_number(fields, "flops_per_byte", t->operations / t->bytes, NULL);
    rec_set_number(fields, "ceiling_bytes_per_s", b->roof.bytes_per_s, NULL);
    rec_set_number(fields, "ceiling_fraction", share,
                   "above 1: a ceiling was measured too low, because the machine was busy");
    fprintf(stderr, "%-46s %10.3f ms %8.1f GOP/s %6.1f GB/s  ", rec_text(fields, "name"),
            1e3 * seconds, t->operations / seconds / 1e9, t->bytes / seconds / 1e9);
    if (isnan(share))
        fprintf(stderr, "above the roof of %s", bound);
    else
        fprintf(stderr, "%3.0f %% of %s", 100 * share, bound);
    if (!isnan(rate))
        fprintf(stderr, "  %8.1f tokens/s", rate);
    if (peer && !isnan(ratio))
        fprintf(stderr, "  %.2f x %s", ratio, peer);
    fputc('\n', stderr);
    b->points++;
    b->beyond += isnan(share) ? 1 : 0;
    return rec_write(&b->out, "roofline", fields, e) ? -1 : bench_stopped(b, e);
}

int bench_figure(struct bench *b, json_t *fields, struct err *e)
{
    const char *key;
    json_t *value;
    describe(b, fields);
    fprintf(stderr, "%s", rec_text(fields, "name"));
    json_object_foreach(fields, key, value) {
        if (json_is_number(value) && strcmp(key, "threads"))
            fprintf(stderr, "  %s %.6g", key, json_number_value(value));
        else if (strstr(key, "_reason"))
            fprintf(stderr, "  %s", json_string_value(value));
    }
    fputc('\n', stderr);
    b->points++;
    return rec_write(&b->out, "bench", fields, e) ? -1 : bench_stopped(b, e);
}

int bench_forgive(struct bench *b, const struct err *why, const char *where, struct err *e)
{
    if (why->code != EXIT_FAILED_RECORDS)
        return err_set(e, why->code, "%s", why->text);
    fprintf(stderr, "%s\n", why->text);
    return rec_error(&b->out, why, where, NULL, e);
}

/* ---- the parts ---- */

static int run_ceilings(struct bench *b, struct err *e)
{
    const char *level = strcmp(b->isa, "auto") ? b->isa : NULL;
    int bad = 0;
    if (bench_on_device(b))
        return ceiling_device(&b->roof, b->backend, e) || put_ceilings(b, &b->roof, e);
    if (pool_threads(b->backend->pool) > 1 && bench_chosen(b->only, "ceilings")) {
        struct pool *single = pool_new(1);
        ceiling_host(&b->roof, single, level, b->reader);
        pool_free(single);
        bad = put_ceilings(b, &b->roof, e);
    }
    ceiling_host(&b->roof, b->backend->pool, level, b->reader);
    return bad || put_ceilings(b, &b->roof, e);
}

/* Returns 1 if a chosen part compares something with the ceilings. */
static int has_roofs(const struct bench *b)
{
    return bench_chosen(b->only, "ceilings") || bench_chosen(b->only, "kernels") ||
           bench_chosen(b->only, "wkv") || bench_chosen(b->only, "models") ||
           bench_chosen(b->only, "growth");
}

static int run(struct bench *b, struct err *e)
{
    if (b->peer_command) /* the peer gets the machine, or the device, for itself */
        peer_ask(b);
    int bad = bench_stopped(b, e) || (bench_chosen(b->only, "tools") && bench_tools(b, e)) ||
              (bench_chosen(b->only, "solvers") && bench_solvers(b, e)) ||
              (bench_chosen(b->only, "activations") && bench_activations(b, e)) ||
              (has_roofs(b) && run_ceilings(b, e)) || bench_stopped(b, e);
    for (const struct pair *p = pairs; !bad && p->name; p++) {
        if (!bench_chosen(b->shapes, p->name))
            continue;
        if (bench_chosen(b->only, "kernels"))
            bad = bench_kernels(b, p, e);
        if (!bad && bench_chosen(b->only, "wkv"))
            bad = bench_wkv(b, p, e);
        if (!bad && bench_chosen(b->only, "models"))
            bad = bench_models(b, p, e);
        if (!bad && bench_chosen(b->only, "growth"))
            bad = bench_growth(b, p, e);
        if (!bad && bench_chosen(b->only, "training"))
            bad = bench_training(b, p, e);
    }
    return bad ? -1 : 0;
}

/* Checks that every word of the list is one of `known`. */
static void check_list(const struct tool *t, const char *option, const char *list,
                       const char *known)
{
    for (const char *p = list; *p; p += strspn(p, ",")) {
        char word[32];
        size_t n = strcspn(p, ",");
        snprintf(word, sizeof word, "%.*s", (int)(n < 31 ? n : 31), p);
        if (!bench_chosen(known, word))
            opt_usage(t, "--%s: expected a list of %s, got \"%s\"", option, known, word);
        p += n;
    }
}

static const char jobs_text[] =
    "Jobs of the models (LLaMA: prefill to gap; LLaDA: the others; both: parts):\n"
    "  prefill N   one pass over N tokens, one answer\n"
    "  decode N    N passes of one token from an empty cache\n"
    "  batch B     passes of B tokens after prompts of 16\n"
    "  after       128 passes of 1 and of 32 tokens after prompts of 128\n"
    "  gap         the share of a decode step outside its recorded pass: one of many passes\n"
    "              behind each other against a pass as the generator spaces them; and the\n"
    "              share of the pass beyond its bytes at copy bandwidth: its gaps at most\n"
    "  diffuse     the sampler without a cache: 128 slots, blocks of 32, 32 steps\n"
    "  full        one pass over 1 x 356, 1 x 1024, 1 x 1256 and 8 x 1024 rows that all see each\n"
    "              other, without a cache, and the head: of the last 32 rows of each sequence,\n"
    "              as a step of the sampler asks for, or of all rows, as the public code\n"
    "              computes; tokens are rows\n"
    "  block       one pass over the last 32 of 1032 positions, the others cached, head of all 32\n"
    "  parts       the time of each kind of operation alone, in one pass of 1 x 256 rows (LLaDA)\n"
    "              or in a decode step after 192 tokens (LLaMA); parts_fraction: the sum of these\n"
    "              times as a share of the pass\n"
    "  memory      peak memory of one pass of the sampler: prompt of 1024, 1024 slots, one block\n"
    "  load        weights of --model in bytes a second, the second time\n"
    "With tiny shapes the lengths of after, gap, full, block, parts and memory are a\n"
    "sixteenth.\n"
    "The part tools: measure, score-exact, score-text, report and pareto over records, by bytes a\n"
    "second of processor time, peak resident memory (looked at every 5 ms), and the shares of\n"
    "reading, hashing and parsing, which are those of three readers of the same bytes in this\n"
    "process; below 40 MB/s the row says which share is the largest.\n"
    "The part training: a loss with its gradient over 1024 rows (tiny: 64), with layers computed\n"
    "again and with logits of all rows at once: bytes of the activations, and time.\n"
    "The part activations: the bytes of a latent thought model of 12 layers, 768 wide, with 50258\n"
    "tokens, over 4096 rows; planned, none are taken.\n"
    "The part solvers: how far samples are off after so many evaluations, on a mixture whose flow\n"
    "is known exactly (4000 samples, the noise is that of --seed).\n"
    "The part wkv: sequential_ratio is against a call for each token, recurrent_ratio against the\n"
    "recurrent form of all tokens in one call. Chunks of RWKV 7 multiply about as often as its\n"
    "recurrence does, so that they win where calls or memory cost, and not here.\n"
    "The part peer: what --peer-command tells, and nothing of ours.\n"
    "A signal ends the stream with what it has and an end record \"interrupted\": 129, 130, 143.\n";

static void parse(struct bench *b, int argc, char **argv)
{
    const struct opt options[] = {
        {"only", 0, OPT_TEXT, &b->only, .arg = "LIST",
         .help = "parts to run: ceilings, kernels, models, growth (these four), wkv, training, "
                 "activations, "
                 "solvers, tools, peer"},
        {"jobs", 0, OPT_TEXT, &b->jobs, .arg = "LIST",
         .help = "jobs of the models: prefill, decode, batch, diffuse (these four), after, full, "
                 "block, gap, memory, load"},
        {"shapes", 0, OPT_TEXT, &b->shapes, .arg = "LIST",
         .help = "pairs of synth: shapes: tiny, small, 1b, 8b, qwen3-0.6b, llada-moe-7b-a1b "
                 "(small)"},
        {"dtypes", 0, OPT_TEXT, &b->dtypes, .arg = "LIST",
         .help = "number formats: f32, bf16, int8, nf4 (these four), q4, fp8"},
        {"device", 0, OPT_TEXT, &b->device, .arg = "cpu|cuda[:N]", .help = "back end (cpu)"},
        ISA_OPTION(b->isa),
        {"threads", 0, OPT_INT, &b->threads, 0, 1024, .arg = "N", .help = "(0: all)"},
        {"repeat", 0, OPT_INT, &b->repeat, 1, 1000, .arg = "N",
         .help = "runs of a model, of which the median counts (3)"},
        {"clock", 0, OPT_CHOICE, &b->clock, .arg = "CLOCK", .choices = "wall|cpu",
         .help = "kernels and models, and llama.cpp's tools, by elapsed time, or by processor time "
                 "of all threads divided by their number, which other programs change less (wall)"},
        {"point", 0, OPT_REAL, &b->point_s, 1e-3, 60, .arg = "SECONDS",
         .help = "time for each kernel, and for each pass of full, block, parts (0.3)"},
        {"array", 0, OPT_BYTES, &b->array_bytes, 1 << 20, 1e12, .arg = "BYTES",
         .help = "the ceiling of memory is that of reading so many, K/M/G: more than the caches "
                 "of all threads together (256M)"},
        {"peer", 0, OPT_TEXT, &b->peer, .arg = "DIR",
         .help = "run llama.cpp's tools between ours, on SHAPE.TYPE.gguf of this folder"},
        {"peer-command", 0, OPT_TEXT, &b->peer_command, .arg = "COMMAND",
         .help = "run this first: it prints a JSON object a line, with work and tokens_per_s, "
                 "and where they matter model, dtype and peer, its name (data/peers)"},
        {"peer-limit", 0, OPT_REAL, &b->peer_limit_s, 1e-3, 1e6, .arg = "SECONDS",
         .help = "a peer that takes longer is ended, and its column stays empty (900)"},
        {"bin", 0, OPT_TEXT, &b->bin, .arg = "DIR", .help = "the tools that the part tools runs"},
        {"stream", 0, OPT_BYTES, &b->stream_bytes, 1, 1e15, .arg = "BYTES",
         .help = "of records that each of them reads, K/M/G, written below $TMPDIR (16M)"},
        {"model", 'm', OPT_TEXT, &b->model, .arg = "MODEL",
         .help = "checkpoint whose weights the job load loads"},
        OPT_COMMON(b->common),
        {0}};
    const struct tool tool = {tool_name, "ceilings of this machine, kernels and models under them",
                              "bench --only models --shapes small,1b --dtypes bf16\n"
                              "bench --device cuda --shapes 8b --jobs after,full,block\n",
                              jobs_text,
                              options, NEEDS_ALL /* peers and tools are programs */};
    int first = opt_parse(&tool, argc, argv);
    if (first < argc)
        opt_usage(&tool, "expected no operands, got %s", argv[first]);
    check_list(&tool, "only", b->only, parts);
    if (bench_chosen(b->only, "tools") && !b->bin)
        opt_usage(&tool, "--only tools: expected --bin DIR, where the tools are");
    if (bench_chosen(b->only, "peer") && !b->peer_command)
        opt_usage(&tool, "--only peer: expected --peer-command COMMAND");
    check_list(&tool, "jobs", b->jobs, jobs);
    check_list(&tool, "shapes", b->shapes, shapes);
    check_list(&tool, "dtypes", b->dtypes, kinds);
}

/* Opens everything that is needed before the first measurement. */
static int open_all(struct bench *b, struct err *e)
{
    if (!has_roofs(b))
        return 0;
    if (bench_backend(b, e))
        return -1;
    if (bench_on_device(b))
        return 0;
    b->reader = ceiling_reader_open((size_t)b->array_bytes, e);
    if (b->reader && bench_by_processor(b))
        ceiling_reader_by_processor(b->reader);
    return b->reader ? 0 : -1;
}

/* Ends the stream with its status, and returns the exit code. */
static int finish(struct bench *b, int bad, struct err *e)
{
    struct err why = {0};
    if (!bad)
        return peer_finish(b, e) || rec_close(&b->out, "ok", e) ? -1 : 0;
    const char *status = *b->stop                           ? "interrupted"
                         : b->points && e->code != EXIT_IO ? "failed"
                                                           : NULL;
    if (!status)
        rec_abandon(&b->out);
    else if (peer_finish(b, &why) || rec_close(&b->out, status, &why))
        *e = why;
    return -1;
}

int main(int argc, char **argv)
{
    struct bench b = {.common = COMMON_DEFAULTS, .only = usual_parts, .shapes = "small",
                      .dtypes = usual_kinds, .jobs = usual_jobs, .device = "cpu", .isa = "auto",
                      .clock = "wall", .repeat = 3, .point_s = 0.3, .peer_limit_s = 900,
                      .array_bytes = CEILING_ARRAY_BYTES, .stream_bytes = 16 << 20,
                      .stop = &stop_signal};
    struct err e = {0};
    parse(&b, argc, argv);
    if (open_all(&b, &e) || rec_open(&b.out, &b.common, tool_name, argc, argv, NULL, &e))
        err_die(tool_name, &e);
    catch_signals();
    b.normal = synth_table();
    int bad = finish(&b, run(&b, &e), &e);
    free(b.normal);
    json_decref(b.told);
    if (b.beyond)
        fprintf(stderr, "bench: %llu points are faster than the limits that were measured beside "
                "them, so they have no share; run again on a quiet machine\n",
                (unsigned long long)b.beyond);
    /* without ceilings only the peer was measured, so its failure is the result */
    int failed = b.beyond || (b.peers_failed && !has_roofs(&b));
    json_decref(b.peers_failed);
    ceiling_reader_close(b.reader);
    backend_close(b.backend);
    if (bad)
        err_die(tool_name, &e);
    return failed ? EXIT_FAILED_RECORDS : EXIT_OK;
}
