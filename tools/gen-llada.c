/* gen-llada - prompt records in, generation records out, by masked diffusion (LLaDA). */
#include <string.h>

#include "lib/base/clock.h"
#include "lib/base/err.h"
#include "lib/decode/diffuse.h"
#include "lib/run/genrun.h"
#include "lib/record/rec.h"

struct args {
    struct gen_args gen;
    const char *steps, *remasking, *cache, *unmask;
    int64_t gen_length, block_length;
    double temperature, cfg_scale, threshold, factor;
    int logits_eos_inf, confidence_eos_eot_inf, stop_at_eos;
};

static volatile sig_atomic_t stop_signal;

static void note_signal(int signal_number)
{
    stop_signal = signal_number;
}

static const char examples[] =
    "gen-llada -m GSAI-ML/LLaDA-8B-Instruct < prompts.ndjson > answers.ndjson\n"
    "gen-llada -m data/models/llada-demo --steps 4,8,16,32 --gen-length 64 prompts.ndjson\n"
    "gen-llada -m synth:llada-8b --batch 1,4,8 --warmup 2 --repeat 5 prompts.ndjson\n"
    "gen-llada -m data/models/llada-demo --schedule schedule.ndjson --launch 3 prompts.ndjson\n";

static const char notes[] = GEN_NOTES
    "A denoising step computes every position of prompt and canvas; steps that would commit\n"
    "nothing (more steps than masks) are skipped. --unmask threshold and factor end a block when\n"
    "it is full, whatever --steps says. token_ids are all slots of the canvas; with --stop-at-eos\n"
    "the readable ones. The text drops special tokens and is not cut at the first of them.\n";

static struct diffuse settings_of(const struct args *a, const struct gen_point *p)
{
    struct diffuse d = {
        .gen_length = p->gen_length, .block_length = p->block_length, .steps = p->steps,
        .temperature = a->temperature, .cfg_scale = a->cfg_scale,
        .random_remasking = !strcmp(a->remasking, "random"),
        .unmask = {a->threshold, a->factor}, .logits_eos_inf = a->logits_eos_inf,
        .confidence_eos_eot_inf = a->confidence_eos_eot_inf, .stop_at_eos = a->stop_at_eos};
    unmask_find(a->unmask, &d.rule); /* there: the option lets only its choices through */
    return d;
}

static size_t extent(const struct gen_point *p)
{
    return p->gen_length;
}

static int check(const void *settings, const struct gen_point *p, struct err *e)
{
    const struct args *a = settings;
    struct diffuse d = settings_of(a, p);
    if (d.random_remasking && d.rule != UNMASK_SCHEDULE)
        return err_set(e, EXIT_BAD_USAGE, "--unmask %s needs --remasking low_confidence",
                       a->unmask);
    return diffuse_check(&d, e);
}

static struct memory_estimate estimate(const struct network *n, const void *settings, const struct gen_point *p,
                          const struct generation_input *in, size_t batch)
{
    const struct diffuse how = settings_of(settings, p);
    return diffuse_estimate(n, &how, in, batch);
}

static void run(const struct network *n, const void *settings, const struct gen_point *p,
                int prepare, uint64_t seed, const volatile sig_atomic_t *stop,
                const struct generation_input *in, size_t batch, struct generation *out,
                struct batch_trace *trace)
{
    struct diffuse d = settings_of(settings, p);
    d.prepare = prepare;
    d.seed = seed;
    d.stop = stop;
    diffuse(n, &d, in, batch, out, trace);
}

static void label(const void *settings, const struct gen_point *p, struct buf *out)
{
    const struct args *a = settings;
    buf_format(out, " steps=%zu gen=%zu block=%zu batch=%zu", p->steps, p->gen_length,
               p->block_length, p->batch);
    if (a->cfg_scale > 0)
        buf_format(out, " cfg=%.15g", a->cfg_scale);
    if (a->temperature > 0)
        buf_format(out, " temp=%.15g", a->temperature);
    if (strcmp(a->remasking, "low_confidence"))
        buf_format(out, " remask=%s", a->remasking);
    if (!strcmp(a->unmask, "threshold"))
        buf_format(out, " unmask=threshold:%.15g", a->threshold);
    if (!strcmp(a->unmask, "factor"))
        buf_format(out, " unmask=factor:%.15g", a->factor);
    if (strcmp(a->cache, "none"))
        buf_format(out, " cache=%s", a->cache);
    buf_format(out, "%s%s%s", a->logits_eos_inf ? " logits-eos-inf" : "",
               a->confidence_eos_eot_inf ? " confidence-eos-eot-inf" : "",
               a->stop_at_eos ? " stop-at-eos" : "");
}

static void describe(const void *settings, const struct gen_point *p, json_t *r)
{
    const struct args *a = settings;
    rec_set_number(r, "temperature", a->temperature, NULL);
    rec_set_int(r, "steps", (int64_t)p->steps);
    rec_set_int(r, "gen_length", (int64_t)p->gen_length);
    rec_set_int(r, "block_length", (int64_t)p->block_length);
    rec_set_number(r, "cfg_scale", a->cfg_scale, NULL);
    json_object_set_new(r, "remasking", json_string(a->remasking));
    json_object_set_new(r, "unmask", json_string(a->unmask));
    if (!strcmp(a->unmask, "threshold"))
        rec_set_number(r, "threshold", a->threshold, NULL);
    if (!strcmp(a->unmask, "factor"))
        rec_set_number(r, "factor", a->factor, NULL);
    json_object_set_new(r, "cache", json_string(a->cache));
    json_object_set_new(r, "logits_eos_inf", json_boolean(a->logits_eos_inf));
    json_object_set_new(r, "confidence_eos_eot_inf", json_boolean(a->confidence_eos_eot_inf));
    json_object_set_new(r, "stop_at_eos", json_boolean(a->stop_at_eos));
}

static const struct gen_method method = {"gen-llada", ARCH_LLADA, extent,  check,
                                         estimate,       run,        label,   describe};

static int parse(struct args *a, int argc, char **argv)
{
    const struct opt options[] = {
        {.type = OPT_HEADING, .name = "", .help = "Decoding:"},
        {"gen-length", 0, OPT_INT, &a->gen_length, 1, 1 << 20, .arg = "N",
         .help = "slots of the canvas (128)"},
        {"block-length", 0, OPT_INT, &a->block_length, 1, 1 << 20, .arg = "N",
         .help = "slots of a block (gen-length)"},
        {"steps", 's', OPT_TEXT, &a->steps, .arg = "N[,N...]",
         .help = "denoising steps over all blocks (gen-length); a list runs each"},
        {"temperature", 0, OPT_REAL, &a->temperature, 0, 1000, .arg = "T",
         .help = "0: argmax; else Gumbel noise (0)"},
        {"cfg-scale", 0, OPT_REAL, &a->cfg_scale, 0, 1000, .arg = "W",
         .help = "classifier-free guidance; doubles the work (0: off)"},
        {"remasking", 0, OPT_CHOICE, &a->remasking, .choices = "low_confidence|random",
         .help = "what stays masked (low_confidence)"},
        {"unmask", 0, OPT_CHOICE, &a->unmask, .choices = "schedule|threshold|factor",
         .help = "which rule commits (schedule)"},
        {"threshold", 0, OPT_REAL, &a->threshold, 0, 1, .arg = "P",
         .help = "--unmask threshold: commit from this confidence on (0.9)"},
        {"factor", 0, OPT_REAL, &a->factor, 0, 1000, .arg = "F",
         .help = "--unmask factor: commit j when (j + 1)(1 - c_j) <= F (1)"},
        {"cache", 0, OPT_CHOICE, &a->cache, .choices = "none",
         .help = "block caches are not built yet: only none"},
        {"stop-at-eos", 0, OPT_FLAG, &a->stop_at_eos,
         .help = "stop when the readable prefix holds a stop id"},
        {"logits-eos-inf", 0, OPT_FLAG, &a->logits_eos_inf, .help = "eos can never be chosen"},
        {"confidence-eos-eot-inf", 0, OPT_FLAG, &a->confidence_eos_eot_inf,
         .help = "eos and end of turn are committed last"},
        GEN_OPTIONS(a->gen),
        OPT_COMMON(a->gen.common),
        {0}};
    const struct tool tool = {"gen-llada", "masked diffusion: prompt records in, generations out",
                              examples, notes, options};
    return opt_parse(&tool, argc, argv);
}

int main(int argc, char **argv)
{
    int64_t begin = clock_ns();
    struct args a = {.gen = GEN_DEFAULTS, .remasking = "low_confidence", .cache = "none",
                     .unmask = "schedule", .gen_length = 128, .threshold = 0.9, .factor = 1};
    int first = parse(&a, argc, argv);
    struct err e = {0};
    struct gen_plan plan = {0};
    struct gen_point base = {.batch = 1, .gen_length = (size_t)a.gen_length,
                             .block_length = (size_t)a.block_length};
    int bad = a.gen.schedule
                  ? gen_plan_read(&plan, &base, a.gen.schedule, a.gen.launch, "llada", &e)
                  : gen_plan_cross(&plan, &base, a.steps, a.gen.batch, (size_t)a.gen.repeat,
                                   (uint64_t)a.gen.common.seed, &e);
    struct gen_job job = {.method = &method, .args = &a.gen, .settings = &a, .plan = &plan,
                          .files = (const char *const *)argv + first,
                          .n_files = (size_t)(argc - first), .argc = argc, .argv = argv,
                          .process_ns = begin, .stop = &stop_signal,
                          .note_signal = note_signal};
    int code = bad ? e.code : gen_run(&job, &e);
    gen_plan_free(&plan);
    if (e.code)
        err_die("gen-llada", &e);
    return code;
}
