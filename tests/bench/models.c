/* models.c - times the two ways of generating, by the generators of lib/decode on networks with
 * random weights. The peer does the same work as each job, in turn with our generators.
 *
 *     prefill N     one pass over N tokens, one answer wanted
 *     decode N      N passes of one token from an empty cache
 *     batch B       passes of B tokens after prompts of 16
 *     after         passes of 1 and of 32 tokens after prompts of 128
 *     diffuse       LLaDA's sampler without a cache: 128 slots, blocks of 32, 32 steps
 *
 * passes.c has the jobs of single passes, whole.c those about memory and loading. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/checkpoint/synth.h"
#include "lib/base/clock.h"
#include "lib/base/file.h"
#include "lib/base/mem.h"
#include "lib/decode/autoregress.h"
#include "lib/decode/diffuse.h"
#include "lib/checkpoint/quantization.h"
#include "lib/stat/stat.h"
#include "tests/bench/bench.h"

enum { PROMPT_MAX = 512, BATCH_MAX = 32, BATCH_PROMPT = 16, BATCH_TOKENS = 64 };
enum { CANVAS = 128, BLOCK = 32, STEPS = 32, REPEAT_MAX = 1000, AFTER_PROMPT = 128 };

enum job_kind { PREFILL, DECODE, BATCH, AFTER, DIFFUSE };
static const char *const job_kinds[] = {"prefill", "decode", "batch", "after", "diffuse"};
struct job {
    const char *name;
    enum job_kind kind;
    size_t prompt, tokens, batch; /* tokens: made for each text in the timed part */
};
static const struct job jobs[] = {{"prefill 512", PREFILL, 512, 1, 1},
                                  {"prefill 128", PREFILL, 128, 1, 1},
                                  {"decode 128", DECODE, 1, 128, 1},
                                  {"batch 8", BATCH, BATCH_PROMPT, BATCH_TOKENS, 8},
                                  {"batch 32", BATCH, BATCH_PROMPT, BATCH_TOKENS, 32},
                                  {"decode", AFTER, AFTER_PROMPT, AFTER_PROMPT, 1},
                                  {"decode", AFTER, AFTER_PROMPT, AFTER_PROMPT, 32},
                                  {"diffuse 128 in 32 steps", DIFFUSE, 1, CANVAS, 1}};

/* ---- the least work of a pass ---- */

void add_pass(struct task *t, const struct models *m, double rows, double pairs, double keys,
              double wanted)
{
    struct extent x = {.rows = rows, .pairs = pairs, .wanted = wanted, .read = keys};
    cost_experts(&m->cost_model, &x);
    const struct cost least = cost_of(&m->cost_model, &x);
    task_add(t, &m->bench->roof, least.flops, least.bytes);
}

/* Returns 1 if the first pass, which computes the prompts, is not timed. */
static int after_prompts(const struct job *j)
{
    return j->kind == BATCH || j->kind == AFTER;
}

static struct task job_task(const struct models *m, const struct job *j, double bytes_per_s)
{
    struct task t = {.unit = dtype_info[m->kind->dtype].unit};
    if (!bench_on_device(m->bench))
        m->bench->roof.bytes_per_s = bytes_per_s;
    double B = (double)j->batch, P = (double)j->prompt;
    if (j->kind == PREFILL)
        add_pass(&t, m, P, P * (P + 1) / 2, P, 1);
    for (size_t i = 0; (j->kind == DECODE || after_prompts(j)) && i < j->tokens; i++) {
        double keys = B * (P + (double)i + after_prompts(j));
        add_pass(&t, m, B, keys, keys, B);
    }
    for (size_t s = 0; j->kind == DIFFUSE && s < STEPS; s++) {
        double T = P + CANVAS, per_block = STEPS * BLOCK / CANVAS;
        double wanted = BLOCK * (1 - (double)(s % (size_t)per_block) / per_block);
        add_pass(&t, m, T, T * T, T, wanted);
    }
    return t;
}

/* ---- our generators ---- */

/* Processor time at the ends of the first and the last pass of a batch. */
struct processor {
    int64_t first_ns, last_ns;
};

static void note_pass(void *ctx)
{
    struct processor *p = ctx;
    p->last_ns = clock_cpu_ns();
    p->first_ns = p->first_ns ? p->first_ns : p->last_ns;
}

/* Returns the seconds of the timed passes: all passes, or all but the first, which has the
 * prompts. */
static double passes_s(const struct bench *b, const struct generation *g,
                       const struct batch_trace *trace, const struct processor *p, int after_first)
{
    if (bench_by_processor(b))
        return (double)(p->last_ns - (after_first ? p->first_ns : trace->start_cpu_ns)) / 1e9 /
               (double)b->roof.threads;
    double end = (double)g->step_ns[g->n_steps - 1];
    return (end - (after_first ? (double)g->step_ns[0] : 0)) / 1e9;
}

static void make_prompts(struct generation_input *in, size_t batch, size_t prompt)
{
    static int32_t ids[PROMPT_MAX];
    for (size_t i = 0; i < PROMPT_MAX; i++)
        ids[i] = (int32_t)(3 + i % 256);
    for (size_t i = 0; i < batch; i++)
        in[i] = (struct generation_input){ids, prompt, i, 0};
}

double run_texts(const struct models *m, size_t batch, size_t prompt, size_t tokens,
                 int after_first)
{
    struct generation_input in[BATCH_MAX] = {0};
    struct generation out[BATCH_MAX] = {0};
    struct batch_trace trace = {0};
    struct processor cpu = {0};
    const struct observer observer = {.passed = note_pass, .ctx = &cpu};
    const struct autoregress how = {.max_new = tokens + (size_t)after_first, .cache = 1,
                                    .ignore_eos = 1, .sample = {.top_p = 1}, .prepare = 1,
                                    .observer = &observer, .stop = m->bench->stop};
    make_prompts(in, batch, prompt);
    autoregress(&m->net, &how, in, batch, out, &trace);
    double took = out[0].oom || out[0].bad
                      ? (double)NAN
                      : passes_s(m->bench, &out[0], &trace, &cpu, after_first);
    for (size_t i = 0; i < batch; i++)
        generation_free(&out[i]);
    return took;
}

static double run_canvas(const struct models *m, size_t prompt)
{
    struct generation_input in;
    struct generation out = {0};
    struct batch_trace trace = {0};
    struct processor cpu = {0};
    const struct observer observer = {.passed = note_pass, .ctx = &cpu};
    const struct diffuse how = {.gen_length = CANVAS, .block_length = BLOCK, .steps = STEPS,
                                .rule = UNMASK_SCHEDULE, .prepare = 1,
                                .observer = &observer, .stop = m->bench->stop};
    make_prompts(&in, 1, prompt);
    diffuse(&m->net, &how, &in, 1, &out, &trace);
    double took = out.oom || out.bad ? (double)NAN : passes_s(m->bench, &out, &trace, &cpu, 0);
    generation_free(&out);
    return took;
}

static double run_ours(const struct models *m, const struct job *j)
{
    return j->kind == DIFFUSE ? run_canvas(m, j->prompt)
                              : run_texts(m, j->batch, j->prompt, j->tokens, after_prompts(j));
}

/* ---- the peer, in turn with our generators ---- */

static char *peer_file(const struct models *m, const struct job *j)
{
    if (!m->bench->peer || !m->kind->peer_type)
        return NULL;
    const char *shape = j->kind == DIFFUSE ? m->pair->llada : m->pair->llama;
    char *path = mem_format("%s/%s.%s.gguf", m->bench->peer, shape, m->kind->peer_type);
    if (file_exists(path))
        return path;
    peer_failed(m->bench, path, "no such file, make it with write-gguf");
    free(path);
    return NULL;
}

static double run_peer(const struct models *m, const struct job *j, const char *file)
{
    struct peer p = {m->bench, file, m->bench->roof.threads};
    if (!file)
        return (double)NAN;
    switch (j->kind) {
    case PREFILL: return peer_prefill(&p, j->prompt);
    case DECODE: return peer_decode(&p, j->tokens);
    case BATCH:
    case AFTER: return peer_batch(&p, j->batch, j->prompt, j->tokens);
    case DIFFUSE: return peer_diffuse(&p, CANVAS, BLOCK, STEPS);
    }
    return (double)NAN;
}

/* ---- records ---- */

json_t *model_fields(const struct models *m, const char *work)
{
    int llada = m->paradigm != PARADIGM_AUTOREGRESSIVE;
    const char *model = llada ? m->pair->llada : m->pair->llama;
    char name[128];
    snprintf(name, sizeof name, "%s %s, %s", model, m->kind->name, work);
    return json_pack("{s:s, s:s, s:s, s:s, s:s, s:s}", "name", name, "model", model, "arch",
                     llada ? "llada" : "llama", "shape", m->pair->name, "dtype", m->kind->name,
                     "work", work);
}

void set_rates(const struct models *m, json_t *r, double rate, const char *peer, double peer_rate)
{
    rec_set_number(r, "tokens_per_s", rate, NULL);
    double own = NAN;
    const json_t *line = peer_line(m->bench, r, &own);
    if (isnan(peer_rate) && line) {
        peer = rec_text(line, "peer");
        peer = peer ? peer : "peer";
        peer_rate = own;
    }
    if (!isnan(peer_rate)) {
        json_object_set_new(r, "peer", json_string(peer));
        rec_set_number(r, "peer_tokens_per_s", peer_rate, NULL);
        rec_set_number(r, "peer_ratio", rate / peer_rate, NULL);
    }
}

/* Sets the ratio of our rate to the peer's for each turn. A turn in which the peer failed has
 * none. */
static void set_turns(json_t *r, size_t n, const double *took, const double *peer, double tokens)
{
    json_t *turns = json_array();
    for (size_t i = 0; i < n; i++)
        if (!isnan(tokens / took[i] / peer[i]))
            json_array_append_new(turns, json_real(tokens / took[i] / peer[i]));
    if (json_array_size(turns))
        json_object_set(r, "turn_ratios", turns);
    json_decref(turns);
}

static const char *work_of(const struct job *j, char *text, size_t room)
{
    if (j->kind != AFTER)
        return j->name;
    snprintf(text, room, "%s %zu after %zu, batch %zu", j->name, j->tokens, j->prompt, j->batch);
    return text;
}

static int bench_job(struct models *m, const struct job *j, struct err *e)
{
    static double took[REPEAT_MAX], peer[REPEAT_MAX], read[REPEAT_MAX];
    size_t n = (size_t)m->bench->repeat;
    double tokens = (double)(j->batch * (j->kind == PREFILL ? j->prompt : j->tokens));
    char *file = peer_file(m, j), text[64];
    json_t *fields = model_fields(m, work_of(j, text, sizeof text));
    if (n < 3)
        run_ours(m, j); /* warm-up; a median of three or more excludes a cold run anyway */
    for (size_t i = 0; i < n && !*m->bench->stop; i++) {
        ceilings_refresh(m->bench, dtype_info[m->kind->dtype].unit);
        read[i] = m->bench->roof.bytes_per_s;
        took[i] = run_ours(m, j);
        peer[i] = run_peer(m, j, file);
        peer_turn(m->bench, fields);
    }
    free(file);
    set_turns(fields, n, took, peer, tokens);
    double seconds = median_of(took, n);
    if (bench_stopped(m->bench, e) ||
        (isnan(seconds) && err_set(e, EXIT_FAILED_RECORDS, "%s %s: no memory, or NaN in the logits",
                                   m->pair->name, rec_text(fields, "work")))) {
        json_decref(fields);
        return -1;
    }
    struct task task = job_task(m, j, median_of(read, n));
    rec_set_int(fields, "samples", m->bench->repeat);
    snprintf(text, sizeof text, "llama.cpp %s", m->kind->peer_type ? m->kind->peer_type : "");
    set_rates(m, fields, tokens / seconds, text, median_of(peer, n));
    return bench_point(m->bench, fields, &task, seconds, e);
}

/* ---- networks ---- */

int bench_network(struct bench *b, const char *shape, const struct kind *k, struct network *n,
                  struct err *e)
{
    struct checkpoint c = {0};
    struct config f;
    enum dtype q = QUANT_NONE;
    if (bench_stopped(b, e) || synth_config(&f, shape, e) || bench_backend(b, e))
        return -1;
    if (bench_refuses(b->backend, &f, k) ||
        (k->precision.quant &&
         (quantization_named(k->precision.quant, &q) || quantization_check(q, &f, NULL))))
        return 1;
    bench_level(b, k->dtype);
    char *name = mem_format("synth:%s", shape);
    int bad = checkpoint_open(&c, name, 0, e) || network_load(n, b->backend, &c, &k->precision, e);
    free(name);
    checkpoint_close(&c);
    return bad ? -1 : 0;
}

static int run_jobs(struct models *m, struct err *e)
{
    int bad = 0;
    m->cost_model = cost_model_of(&m->net);
    for (size_t i = 0; !bad && i < sizeof jobs / sizeof *jobs; i++) {
        struct job j = jobs[i];
        struct err why = {0};
        if (j.kind == AFTER) {
            j.prompt = shrunk(m->pair, j.prompt);
            j.tokens = shrunk(m->pair, j.tokens);
        }
        if ((j.kind == DIFFUSE) == (m->paradigm != PARADIGM_AUTOREGRESSIVE) &&
            j.prompt + j.tokens <= m->net.config.context &&
            bench_chosen(m->bench->jobs, job_kinds[j.kind]) && bench_job(m, &j, &why))
            bad = bench_forgive(m->bench, &why, j.name, e);
    }
    return bad;
}

/* Memory is measured first: later jobs leave cached memory, which must not count. */
static int bench_arch(struct models *m, const char *shape, struct err *e)
{
    struct err why = {0};
    int refused = bench_network(m->bench, shape, m->kind, &m->net, &why);
    if (refused < 0)
        return bench_forgive(m->bench, &why, shape, e);
    if (refused)
        return 0;
    int bad = bench_whole(m, e) || run_jobs(m, e) || bench_passes(m, e);
    network_free(&m->net);
    return bad ? -1 : 0;
}

static const char *const llama_jobs[] = {"prefill", "decode", "batch", "after",
                                         "gap", "parts", NULL};
static const char *const llada_jobs[] = {"diffuse", "full", "block", "parts", "memory", NULL};

static int any_chosen(const struct bench *b, const char *const *names)
{
    while (*names && !bench_chosen(b->jobs, *names))
        names++;
    return *names != NULL;
}

int bench_models(struct bench *b, const struct pair *p, struct err *e)
{
    int bad = 0;
    for (const struct kind *k = bench_kinds; !bad && k->name; k++) {
        struct models llama = {.bench = b, .pair = p, .kind = k,
                               .paradigm = PARADIGM_AUTOREGRESSIVE};
        struct models llada = {.bench = b, .pair = p, .kind = k,
                               .paradigm = PARADIGM_MASKED_DIFFUSION};
        if (!bench_chosen(b->dtypes, k->name))
            continue;
        bad = (any_chosen(b, llama_jobs) && bench_arch(&llama, p->llama, e)) ||
              (any_chosen(b, llada_jobs) && bench_arch(&llada, p->llada, e)) ||
              (bench_chosen(b->jobs, "load") && bench_load(b, k, e));
    }
    return bad ? -1 : 0;
}
