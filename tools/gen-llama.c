/* gen-llama - prompt records in, generation records out, left to right with a KV cache (LLaMA). */
#include <string.h>

#include "lib/base/clock.h"
#include "lib/base/err.h"
#include "lib/record/rec.h"
#include "lib/decode/autoregress.h"
#include "lib/run/genrun.h"

struct args {
    struct gen_args gen;
    int64_t max_new, top_k;
    double temperature, top_p;
    const char *cache;
    int ignore_eos;
};

static volatile sig_atomic_t stop_signal;

static void note_signal(int signal_number)
{
    stop_signal = signal_number;
}

static const char examples[] =
    "gen-llama -m meta-llama/Meta-Llama-3-8B-Instruct < prompts.ndjson > answers.ndjson\n"
    "gen-llama -m data/models/llama-demo --max-new 64 prompts.ndjson\n"
    "gen-llama -m synth:llama3-8b --ignore-eos --batch 1,4,8 --warmup 2 --repeat 5 prompts.ndjson\n"
    "gen-llama -m data/models/llama-demo --temperature 0.6 --top-p 0.9 --seed 7 prompts.ndjson\n";

static const char notes[] = GEN_NOTES
    "The first pass computes all tokens of the prompts, each later one a token a text; a text\n"
    "that ends leaves the batch. token_ids go up to and without the stop id; e2e_ns includes\n"
    "the pass that found it. Filters in the order of Hugging Face: temperature, top-k, top-p;\n"
    "unlike there, top-k is off unless asked for.\n";

static size_t extent(const struct gen_point *p)
{
    return p->max_new;
}

static int check(const void *settings, const struct gen_point *p, struct err *e)
{
    (void)settings, (void)p, (void)e;
    return 0;
}

static struct autoregress settings_of(const struct args *a, const struct gen_point *p)
{
    return (struct autoregress){.max_new = p->max_new,
                                .sample = {a->temperature, (size_t)a->top_k, a->top_p},
                                .cache = !strcmp(a->cache, "on"), .ignore_eos = a->ignore_eos};
}

static struct memory_estimate estimate(const struct network *n, const void *settings, const struct gen_point *p,
                          const struct generation_input *in, size_t batch)
{
    const struct autoregress how = settings_of(settings, p);
    return autoregress_estimate(n, &how, in, batch);
}

static void run(const struct network *n, const void *settings, const struct gen_point *p,
                int prepare, uint64_t seed, const volatile sig_atomic_t *stop,
                const struct generation_input *in, size_t batch, struct generation *out,
                struct batch_trace *trace)
{
    struct autoregress how = settings_of(settings, p);
    how.prepare = prepare;
    how.seed = seed;
    how.stop = stop;
    autoregress(n, &how, in, batch, out, trace);
}

static void label(const void *settings, const struct gen_point *p, struct buf *out)
{
    const struct args *a = settings;
    buf_format(out, " max_new=%zu batch=%zu", p->max_new, p->batch);
    if (a->temperature > 0)
        buf_format(out, " temp=%.15g", a->temperature);
    if (a->temperature > 0 && a->top_k > 0)
        buf_format(out, " top_k=%lld", (long long)a->top_k);
    if (a->temperature > 0 && a->top_p < 1)
        buf_format(out, " top_p=%.15g", a->top_p);
    if (a->ignore_eos)
        buf_text(out, " ignore-eos");
    if (strcmp(a->cache, "on"))
        buf_format(out, " cache=%s", a->cache);
}

static void describe(const void *settings, const struct gen_point *p, json_t *r)
{
    const struct args *a = settings;
    rec_set_number(r, "temperature", a->temperature, NULL);
    json_object_set_new(r, "steps", json_null());
    rec_set_int(r, "max_new", (int64_t)p->max_new);
    rec_set_int(r, "top_k", a->top_k);
    rec_set_number(r, "top_p", a->top_p, NULL);
    json_object_set_new(r, "cache", json_string(a->cache));
    json_object_set_new(r, "ignore_eos", json_boolean(a->ignore_eos));
}

static const struct gen_method method = {"gen-llama", ARCH_LLAMA, extent,  check,
                                         estimate,       run,        label,   describe};

static int parse(struct args *a, int argc, char **argv)
{
    const struct opt options[] = {
        {.type = OPT_HEADING, .name = "", .help = "Decoding:"},
        {"max-new", 'n', OPT_INT, &a->max_new, 1, 1 << 20, .arg = "N",
         .help = "tokens at most (128)"},
        {"temperature", 0, OPT_REAL, &a->temperature, 0, 1000, .arg = "T",
         .help = "0: argmax; else a draw (0)"},
        {"top-k", 0, OPT_INT, &a->top_k, 0, 1 << 24, .arg = "K",
         .help = "only the K most likely, and ties (0: off)"},
        {"top-p", 0, OPT_REAL, &a->top_p, 1e-9, 1, .arg = "P",
         .help = "only the most likely that hold mass P (1: off)"},
        {"ignore-eos", 0, OPT_FLAG, &a->ignore_eos,
         .help = "a stop id is a token like any other: always max-new tokens"},
        {"cache", 0, OPT_CHOICE, &a->cache, .choices = "on|off",
         .help = "keep K and V, or compute everything at each token (on)"},
        GEN_OPTIONS(a->gen),
        OPT_COMMON(a->gen.common),
        {0}};
    const struct tool tool = {"gen-llama", "autoregressive: prompt records in, generations out",
                              examples, notes, options};
    return opt_parse(&tool, argc, argv);
}

int main(int argc, char **argv)
{
    int64_t begin = clock_ns();
    struct args a = {.gen = GEN_DEFAULTS, .max_new = 128, .top_p = 1, .cache = "on"};
    int first = parse(&a, argc, argv);
    struct err e = {0};
    struct gen_plan plan = {0};
    struct gen_point base = {.batch = 1, .max_new = (size_t)a.max_new};
    int bad = a.gen.schedule
                  ? gen_plan_read(&plan, &base, a.gen.schedule, a.gen.launch, "llama", &e)
                  : gen_plan_cross(&plan, &base, NULL, a.gen.batch, (size_t)a.gen.repeat,
                                   (uint64_t)a.gen.common.seed, &e);
    struct gen_job job = {.method = &method, .args = &a.gen, .settings = &a, .plan = &plan,
                          .files = (const char *const *)argv + first,
                          .n_files = (size_t)(argc - first), .argc = argc, .argv = argv,
                          .process_ns = begin, .stop = &stop_signal,
                          .note_signal = note_signal};
    int code = bad ? e.code : gen_run(&job, &e);
    gen_plan_free(&plan);
    if (e.code)
        err_die("gen-llama", &e);
    return code;
}
