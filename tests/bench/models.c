/* models.c - the two ways of generating, timed through the generators of lib/model on networks with
 * drawn weights, and beside each the same work done by the peer, run in turn with ours.
 *
 *     prefill N     one pass over N tokens, one answer wanted
 *     decode N      N passes of one token from an empty cache
 *     batch B       passes of B tokens after prompts of 16
 *     diffuse       LLaDA's sampler without a cache: 128 slots, blocks of 32, 32 steps
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/file.h"
#include "lib/base/mem.h"
#include "lib/model/autoregress.h"
#include "lib/model/diffuse.h"
#include "lib/model/quantization.h"
#include "lib/model/unmask.h"
#include "lib/stat/stat.h"
#include "tests/bench/bench.h"

enum { PROMPT_MAX = 512, BATCH_MAX = 32, BATCH_PROMPT = 16, BATCH_TOKENS = 64 };
enum { CANVAS = 128, BLOCK = 32, STEPS = 32, REPEAT_MAX = 1000 };

enum job_kind { PREFILL, DECODE, BATCH, DIFFUSE };
static const char *const job_kinds[] = {"prefill", "decode", "batch", "diffuse"};
struct job {
    const char *name;
    enum job_kind kind;
    size_t prompt, tokens, batch; /* tokens: made by each text in the time that counts */
};
static const struct job jobs[] = {{"prefill 512", PREFILL, 512, 1, 1},
                                  {"prefill 128", PREFILL, 128, 1, 1},
                                  {"decode 128", DECODE, 1, 128, 1},
                                  {"batch 8", BATCH, BATCH_PROMPT, BATCH_TOKENS, 8},
                                  {"batch 32", BATCH, BATCH_PROMPT, BATCH_TOKENS, 32},
                                  {"diffuse 128 in 32 steps", DIFFUSE, 1, CANVAS, 1}};

struct models {
    struct bench *bench;
    const struct pair *pair;
    const struct kind *kind;
    struct network net;   /* as a llama; the same weights serve both */
    struct config llada;
    double block_bytes, head_bytes, block_weights; /* of one pass over all layers; values */
};

/* ---- what a pass must do at least ---- */

static double mat_bytes(const struct mat *m)
{
    return dtype_bytes(m->dtype, m->rows, m->cols);
}

static void count_weights(struct models *m)
{
    m->head_bytes = mat_bytes(&m->net.head);
    m->block_bytes = m->block_weights = 0;
    for (size_t l = 0; l < m->net.config.layers; l++) {
        const struct layer *y = &m->net.layer[l];
        const struct mat *mats[] = {&y->q, &y->k, &y->v, &y->o, &y->gate, &y->up, &y->down};
        for (size_t i = 0; i < sizeof mats / sizeof *mats; i++) {
            m->block_bytes += mat_bytes(mats[i]);
            m->block_weights += (double)(mats[i]->rows * mats[i]->cols);
        }
    }
}

/* A pass of `rows` rows that see `pairs` keys in all, of `keys` keys that are read, with `wanted`
 * answers. */
static void add_pass(struct task *t, const struct models *m, double rows, double pairs, double keys,
                     double wanted)
{
    const struct config *c = &m->net.config;
    double layers = (double)c->layers, head = (double)(c->vocab * c->width);
    double value = m->net.kv_dtype == DTYPE_BF16 ? 2 : 4;
    double operations = 2 * rows * m->block_weights + 2 * wanted * head +
                        4 * layers * (double)(c->heads * c->head_dim) * pairs;
    double bytes = m->block_bytes + m->head_bytes +
                   2 * layers * (double)(c->kv_heads * c->head_dim) * value * keys;
    task_add(t, &m->bench->roof, operations, bytes);
}

static struct task job_task(const struct models *m, const struct job *j, double bytes_per_s)
{
    struct task t = {.unit = dtype_unit(m->kind->dtype)};
    m->bench->roof.bytes_per_s = bytes_per_s;
    double B = (double)j->batch, P = (double)j->prompt;
    if (j->kind == PREFILL)
        add_pass(&t, m, P, P * (P + 1) / 2, P, 1);
    for (size_t i = 0; (j->kind == DECODE || j->kind == BATCH) && i < j->tokens; i++) {
        double keys = B * (P + (double)i + (j->kind == BATCH));
        add_pass(&t, m, B, keys, keys, B);
    }
    for (size_t s = 0; j->kind == DIFFUSE && s < STEPS; s++) {
        double T = P + CANVAS, per_block = STEPS * BLOCK / CANVAS;
        double wanted = BLOCK * (1 - (double)(s % (size_t)per_block) / per_block);
        add_pass(&t, m, T, T * T, T, wanted);
    }
    return t;
}

/* ---- ours ---- */

/* Seconds of the passes that count: all, or those after the first, which holds the prompts. */
static double passes_s(const struct generation *g, int after_first)
{
    double end = (double)g->step_ns[g->n_steps - 1];
    return (end - (after_first ? (double)g->step_ns[0] : 0)) / 1e9;
}

static double run_ours(struct models *m, const struct job *j)
{
    static int32_t ids[PROMPT_MAX];
    struct generation_input in[BATCH_MAX];
    struct generation out[BATCH_MAX] = {0};
    struct batch_trace trace = {0};
    struct network net = m->net;
    for (size_t i = 0; i < PROMPT_MAX; i++)
        ids[i] = (int32_t)(3 + i % 256);
    for (size_t i = 0; i < j->batch; i++)
        in[i] = (struct generation_input){ids, j->prompt, i};
    if (j->kind == DIFFUSE) {
        struct diffuse how = {.gen_length = CANVAS, .block_length = BLOCK, .steps = STEPS,
                              .rule = unmask_schedule};
        net.config = m->llada;
        diffuse(&net, &how, in, 1, out, &trace);
    } else {
        struct autoregress how = {.max_new = j->tokens + (j->kind == BATCH), .cache = 1,
                                  .ignore_eos = 1, .sample = {.top_p = 1}};
        autoregress(&net, &how, in, j->batch, out, &trace);
    }
    double took = out[0].oom || out[0].bad ? (double)NAN : passes_s(&out[0], j->kind == BATCH);
    for (size_t i = 0; i < j->batch; i++)
        generation_free(&out[i]);
    return took;
}

/* ---- the peer's, in turn with ours ---- */

static char *peer_file(const struct models *m, const struct job *j)
{
    if (!m->bench->peer)
        return NULL;
    const char *shape = j->kind == DIFFUSE ? m->pair->llada : m->pair->llama;
    char *path = mem_format("%s/%s.%s.gguf", m->bench->peer, shape, m->kind->peer_type);
    if (file_exists(path))
        return path;
    fprintf(stderr, "bench: %s: no such file, no peer column; make it with write-gguf\n", path);
    free(path);
    return NULL;
}

static double run_peer(const struct models *m, const struct job *j, const char *file)
{
    struct peer p = {file, m->bench->roof.threads};
    if (!file)
        return (double)NAN;
    switch (j->kind) {
    case PREFILL: return peer_prefill(&p, j->prompt);
    case DECODE: return peer_decode(&p, j->tokens);
    case BATCH: return peer_batch(&p, j->batch, j->prompt, j->tokens);
    case DIFFUSE: return peer_diffuse(&p, CANVAS, BLOCK, STEPS);
    }
    return (double)NAN;
}

/* NaN when a value is. */
static double median(double *v, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (isnan(v[i]))
            return (double)NAN;
    return stat_median(v, n);
}

static json_t *job_fields(const struct models *m, const struct job *j, double rate, double peer)
{
    const char *model = j->kind == DIFFUSE ? m->pair->llada : m->pair->llama;
    char name[96];
    snprintf(name, sizeof name, "%s %s, %s", model, m->kind->name, j->name);
    json_t *r = json_pack("{s:s, s:s, s:s, s:s, s:s, s:s}", "name", name, "model", model, "arch",
                          j->kind == DIFFUSE ? "llada" : "llama", "shape", m->pair->name, "dtype",
                          m->kind->name, "work", j->name);
    rec_set_int(r, "samples", m->bench->repeat);
    rec_set_number(r, "tokens_per_s", rate, NULL);
    if (!isnan(peer)) {
        char text[64];
        snprintf(text, sizeof text, "llama.cpp %s", m->kind->peer_type);
        json_object_set_new(r, "peer", json_string(text));
        rec_set_number(r, "peer_tokens_per_s", peer, NULL);
        rec_set_number(r, "peer_ratio", rate / peer, NULL);
    }
    return r;
}

static int bench_job(struct models *m, const struct job *j, struct err *e)
{
    static double took[REPEAT_MAX], peer[REPEAT_MAX], read[REPEAT_MAX];
    size_t n = (size_t)m->bench->repeat;
    double tokens = (double)(j->batch * (j->kind == PREFILL ? j->prompt : j->tokens));
    char *file = peer_file(m, j);
    if (n < 3)
        run_ours(m, j); /* warm-up; a median of three or more leaves a cold run out anyway */
    for (size_t i = 0; i < n; i++) {
        ceilings_refresh(&m->bench->roof, dtype_unit(m->kind->dtype), m->bench->backend->pool,
                         m->bench->reader);
        read[i] = m->bench->roof.bytes_per_s;
        took[i] = run_ours(m, j);
        peer[i] = run_peer(m, j, file);
    }
    free(file);
    double seconds = median(took, n);
    if (isnan(seconds))
        return err_set(e, EXIT_FAILED_RECORDS, "%s %s: no memory, or NaN in the logits",
                       m->pair->name, j->name);
    struct task task = job_task(m, j, median(read, n));
    json_t *fields = job_fields(m, j, tokens / seconds, median(peer, n));
    return bench_point(m->bench, fields, &task, seconds, e);
}

int bench_network(struct bench *b, const struct pair *p, const struct kind *k, struct network *n,
                  struct err *e)
{
    struct checkpoint c = {0};
    struct config shape;
    enum quant q = QUANT_NONE;
    if (k->precision.quant && (quant_named(k->precision.quant, &q) ||
                               config_synth(&shape, p->llama, NULL) ||
                               quant_check(q, &shape, NULL)))
        return 1;
    char *name = mem_format("synth:%s", p->llama);
    int bad = checkpoint_open(&c, name, 0, e) || network_load(n, b->backend, &c, &k->precision, e);
    free(name);
    checkpoint_close(&c);
    return bad ? -1 : 0;
}

static int run_jobs(struct models *m, struct err *e)
{
    int bad = config_synth(&m->llada, m->pair->llada, e);
    count_weights(m);
    for (size_t i = 0; !bad && i < sizeof jobs / sizeof *jobs; i++)
        if (jobs[i].prompt + jobs[i].tokens <= m->net.config.context &&
            bench_chosen(m->bench->jobs, job_kinds[jobs[i].kind]))
            bad = bench_job(m, &jobs[i], e);
    return bad;
}

int bench_models(struct bench *b, const struct pair *p, struct err *e)
{
    int bad = 0;
    for (const struct kind *k = bench_kinds; !bad && k->name; k++) {
        struct models m = {.bench = b, .pair = p, .kind = k};
        int refused = bench_chosen(b->dtypes, k->name) ? bench_network(b, p, k, &m.net, e) : 1;
        bad = refused < 0 || (!refused && run_jobs(&m, e));
        if (!refused)
            network_free(&m.net);
    }
    return bad ? -1 : 0;
}
