/* train-prior - a latent thought model and texts in, a learned prior of their latents out
 * (gen-ltm --z dit draws from it), with its loss curve.
 *
 * First a posterior is fitted to each of --count documents and one draw of it is kept. Then a
 * transformer learns the distribution of these draws (lib/train/dit.h). Every tenth document is
 * held out: the last record compares the prior with N(0, I) on them, by bounds of
 * KL(q(z|x) || prior).
 *
 * A resumed run computes the same numbers as an uninterrupted one: OUT.fits holds the draws so far,
 * OUT.state the transformer with its moments and its average, and a batch is a function of seed and
 * step. */
#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "lib/base/file.h"
#include "lib/base/hash.h"
#include "lib/base/mem.h"
#include "lib/base/cli/progress.h"
#include "lib/base/rng.h"
#include "kernels/finite.h"
#include "lib/checkpoint/safetensors.h"
#include "lib/latent/prior.h"
#include "lib/network/latent.h"
#include "lib/record/json.h"
#include "lib/record/rec.h"
#include "lib/run/engine.h"
#include "lib/train/posterior.h"
#include "lib/train/documents.h"
#include "lib/train/training_note.h"

enum { HELD = 10 /* one document in ten is held out */ };

struct args {
    struct common common;
    struct engine engine;
    const char *out;
    int64_t count, vi_steps, rows, max_len, width, layers, heads, batch, steps, report, bound,
        save;
    double vi_rate, rate, keep, warmup;
};

static const char examples[] =
    "train-prior -m models/ltm corpus.ndjson > loss.ndjson\n"
    "train-prior -m models/ltm --count 2000 --out p.safetensors corpus.ndjson\n";
static const char notes[] =
    "Each record {text, reference} is a document. The prior is a diffusion\n"
    "transformer that predicts v of a cosine schedule, trained by AdamW with linear\n"
    "warm-up. The file holds a running average of its weights. The record of kind\n"
    "prior gives the KL of held-out posteriors to N(0, I) and to the prior, in nats\n"
    "per document; the second is an upper bound. The same command resumes an\n"
    "interrupted training from OUT.fits and OUT.state, with the same bits.\n";

enum { OPTIONS_MOST = 56 };
static void options(struct opt *o, struct args *a)
{
    const struct opt table[] = {
        ENGINE_OPTIONS(a->engine),
        {.type = OPT_HEADING, .name = "", .help = "Latents:"},
        {"count", 0, OPT_INT, &a->count, 2 * HELD, 1 << 24, .arg = "N",
         .help = "documents to fit (1000)"},
        {"vi-steps", 0, OPT_INT, &a->vi_steps, 1, 1000, .arg = "N",
         .help = "steps to fit a posterior (16)"},
        {"vi-rate", 0, OPT_REAL, &a->vi_rate, 1e-9, 10, .arg = "R", .rare = 1,
         .help = "first learning rate of a fit; it falls to a tenth (0.34)"},
        {"rows", 0, OPT_INT, &a->rows, 16, 65536, .arg = "N",
         .help = "tokens fitted together (1024)"},
        {"max-len", 0, OPT_INT, &a->max_len, 16, 8192, .arg = "N",
         .help = "longest document in tokens (128)"},
        {.type = OPT_HEADING, .name = "", .help = "Prior:"},
        {"out", 0, OPT_TEXT, &a->out, .arg = "FILE", .writes = WRITES_IT,
         .help = "file to write (MODEL/" PRIOR_FILE ")"},
        {"width", 0, OPT_INT, &a->width, 8, 4096, .arg = "N", .help = "width of the prior (96)"},
        {"layers", 0, OPT_INT, &a->layers, 1, 64, .arg = "N", .help = "layers of the prior (3)"},
        {"heads", 0, OPT_INT, &a->heads, 1, 64, .arg = "N",
         .help = "attention heads of the prior (4)"},
        {"batch", 0, OPT_INT, &a->batch, 1, 65536, .arg = "N", .help = "samples per step (32)"},
        {"steps", 0, OPT_INT, &a->steps, 1, 10000000, .arg = "N", .help = "updates (2000)"},
        {"rate", 0, OPT_REAL, &a->rate, 1e-9, 1, .arg = "R", .help = "learning rate (0.001)"},
        {"warmup", 0, OPT_REAL, &a->warmup, 1, 1e6, .arg = "N", .help = "warm-up steps (100)"},
        {"keep", 0, OPT_REAL, &a->keep, 0, 1, .arg = "R", .rare = 1,
         .help = "decay of the moving average of the weights (0.995)"},
        {"bound-steps", 0, OPT_INT, &a->bound, 1, 100000, .arg = "N", .rare = 1,
         .help = "random draws that estimate the bound in the prior record (200)"},
        {"report", 0, OPT_INT, &a->report, 1, 1000000, .arg = "N",
         .help = "steps between two records (50)"},
        {"save", 0, OPT_INT, &a->save, 1, 1000000, .arg = "N", .rare = 1,
         .help = "steps (while fitting: batches) between two saves (200)"},
        OPT_COMMON(a->common),
        {0}};
    static_assert(sizeof table <= OPTIONS_MOST * sizeof *table, "room for all");
    memcpy(o, table, sizeof table);
}

struct prior_training {
    const struct args *a;
    const struct opt *options; /* the table that filled *a */
    struct log log;
    struct rec_writer records;
    struct checkpoint model;
    struct backend *backend;
    struct network network;
    struct documents corpus;
    float *z;            /* [n, L n D] one draw per posterior; the last `held` are held out */
    double *kl, *log_q;  /* [n] KL to N(0, I); log q of the draw */
    size_t n, held, each;
    int64_t batches;     /* of documents fitted so far */
    struct dit *prior;
    char *path, *fits, *state;
    json_t *note;        /* saved states must have an equal note */
};

/* ---- states ---- */

static int make_note(struct prior_training *r, struct err *e)
{
    static const char *const harmless[] = {"model", "limit", NULL}; /* by hash */
    json_t *about = checkpoint_describe(&r->model, e), *file, *hashes = json_array();
    size_t i;
    char hex[65];
    json_array_foreach(json_object_get(about, "files"), i, file)
        json_array_append(hashes, json_object_get(file, "sha256"));
    json_t *note = r->note = training_note(r->options, harmless);
    json_object_set_new(note, "model", hashes);
    documents_hash(&r->corpus, hex);
    json_object_set_new(note, "corpus", json_string(hex));
    int bad = about ? 0 : -1;
    json_decref(about);
    return bad;
}

static struct tensor flat(const char *name, const char *dtype, const void *data, size_t n,
                          size_t bytes)
{
    struct tensor t = {.name = (char *)(uintptr_t)name, .rank = 1, .shape = {n}, .bytes = bytes,
                       .data = data};
    snprintf(t.dtype, sizeof t.dtype, "%s", dtype);
    return t;
}

static int save_fits(const struct prior_training *r, struct err *e)
{
    json_t *note = json_copy(r->note);
    json_object_set_new(note, "documents", json_integer((json_int_t)r->n));
    json_object_set_new(note, "batches", json_integer((json_int_t)r->batches));
    char *text = json_dumps(note, JSON_COMPACT);
    size_t values = r->n * r->each, len = strlen(text);
    const struct tensor list[] = {flat("z", "F32", r->z, values, values * sizeof *r->z),
                                  flat("kl", "F64", r->kl, r->n, r->n * sizeof *r->kl),
                                  flat("log_q", "F64", r->log_q, r->n, r->n * sizeof *r->log_q),
                                  flat("note", "U8", text, len, len)};
    int bad = safetensors_write(r->fits, list, sizeof list / sizeof *list, NULL, e);
    free(text);
    json_decref(note);
    return bad;
}

static int take(const struct prior_training *r, const struct tensors *f, const char *name,
                void *out, size_t bytes, struct err *e)
{
    const struct tensor *t = safetensors_find(f, name);
    if (!t || t->bytes != bytes)
        return err_set(e, EXIT_BAD_DATA, "%s: %s: expected %zu bytes", r->fits, name, bytes);
    memcpy(out, t->data, bytes);
    return 0;
}

static int take_fits(struct prior_training *r, const struct tensors *f, const json_t *note,
                     struct err *e)
{
    int64_t n;
    if (training_note_check(r->note, note, r->fits, e) ||
        json_int(note, r->fits, "documents", 0, r->a->count, &n, e) ||
        json_int(note, r->fits, "batches", 0, INT64_MAX, &r->batches, e) ||
        take(r, f, "z", r->z, (size_t)n * r->each * sizeof *r->z, e) ||
        take(r, f, "kl", r->kl, (size_t)n * sizeof *r->kl, e) ||
        take(r, f, "log_q", r->log_q, (size_t)n * sizeof *r->log_q, e))
        return -1;
    if (!finite_floats(r->z, (size_t)n * r->each))
        return err_set(e, EXIT_BAD_DATA, "%s: z: holds a value that is not finite", r->fits);
    r->n = (size_t)n;
    return 0;
}

/* Reads the draws of an interrupted run of the same command, if there are any. Without them,
 * removes the state of the prior, which fits no other draws. */
static int restore_fits(struct prior_training *r, struct err *e)
{
    if (!file_exists(r->fits)) {
        unlink(r->state);
        return 0;
    }
    struct tensors *f = safetensors_open_file(r->fits, e);
    const struct tensor *t = f ? safetensors_find(f, "note") : NULL;
    json_t *note = t ? json_bytes((const char *)t->data, t->bytes, r->fits, e) : NULL;
    if (f && !t)
        err_set(e, EXIT_BAD_DATA, "%s: no 'note': not a state of train-prior", r->fits);
    int bad = note ? take_fits(r, f, note, e) : -1;
    json_decref(note);
    if (f)
        safetensors_close(f);
    if (!bad)
        log_note(&r->log, "resuming after %zu documents", r->n);
    return bad;
}

static int restore_prior(struct prior_training *r, struct err *e)
{
    if (!file_exists(r->state))
        return 0;
    struct dit *former = dit_open(r->state, r->backend, (size_t)r->a->batch, e);
    if (!former)
        return -1;
    const struct dit_shape *s = dit_shape_of(former), *mine = dit_shape_of(r->prior);
    if (s->tokens != mine->tokens || s->values != mine->values || s->width != mine->width ||
        s->layers != mine->layers || s->heads != mine->heads || dit_step(former) > r->a->steps) {
        dit_free(former);
        return err_set(e, EXIT_BAD_DATA, "%s: expected the shape of this command: remove the "
                       "file to start again", r->state);
    }
    dit_free(r->prior);
    r->prior = former;
    log_note(&r->log, "resuming after step %lld", (long long)dit_step(former));
    return 0;
}

/* ---- latents ---- */

static int read_corpus(struct prior_training *r, char **paths, size_t n_paths, struct err *e)
{
    const struct config *c = &r->model.config;
    struct tokenizer *t;
    if (checkpoint_tokenizer(&r->model, &t, e))
        return -1;
    int bad = documents_open(&r->corpus, t, (const char *const *)paths, n_paths,
                             r->a->common.limit, c->bos, c->eos[0], -1,
                             rng_derive((uint64_t)r->a->common.seed, "batches"), e);
    tokenizer_free(t);
    return bad;
}

/* Fits the documents of a batch and keeps one draw of each. */
static void fit_batch(struct prior_training *r, struct posterior *q, struct backprop *t,
                      struct train_batch *b, uint64_t *keys)
{
    const struct posterior_fit fit = {(size_t)r->a->vi_steps, r->a->vi_rate,
                                      rng_derive((uint64_t)r->a->common.seed, "latents")};
    size_t left = (size_t)r->a->count - r->n, take = b->seqs < left ? b->seqs : left;
    for (size_t s = 0; s < b->seqs; s++)
        keys[s] = r->n + s;
    posterior_start(q, fit.seed, keys, b->seqs);
    posterior_run(q, t, b, &fit, keys, 0, NULL);
    posterior_draw(q, fit.seed, keys, b->seqs, POSTERIOR_FRESH);
    float *all = mem_alloc(b->seqs * r->each * sizeof *all);
    prior_gather(&r->model.config, q->z, b->seqs, all);
    for (size_t s = 0; s < take; s++) {
        memcpy(r->z + (r->n + s) * r->each, all + s * r->each, r->each * sizeof *all);
        r->kl[r->n + s] = posterior_kl(q, b->seqs, s);
        r->log_q[r->n + s] = posterior_log_q(q, b->seqs, s);
    }
    free(all);
    r->n += take;
}

static int fit_all(struct prior_training *r, struct err *e)
{
    const struct args *a = r->a;
    size_t rows = (size_t)a->rows, most = rows / TRAINING_ROW_LEAST, count = (size_t)a->count;
    if (r->n == count)
        return 0;
    struct posterior q;
    struct parameters *w = parameters_read(&r->network);
    const struct backprop_how how = {.products = DTYPE_F32, .latents = 1};
    struct backprop *t = w ? backprop_make_as(w, rows, most, &how) : NULL;
    if (!t || posterior_make(&q, &r->model.config, r->backend, most))
        return err_set(e, EXIT_FAILED_RECORDS, "%s: out of memory for gradients over %zu tokens",
                       r->model.config.name, rows);
    struct train_batch b = train_batch_room(rows);
    uint64_t *keys = mem_zero(most, sizeof *keys);
    struct progress p;
    progress_start(&p, &r->log, a->common.progress, "documents", a->count);
    int bad = 0;
    while (!bad && r->n < count) {
        documents_fill_whole(&r->corpus, r->batches++, rows, (size_t)a->max_len, &b);
        fit_batch(r, &q, t, &b, keys);
        if (r->batches % a->save == 0 || r->n == count)
            bad = save_fits(r, e);
        progress_at(&p, (int64_t)r->n, NULL);
    }
    progress_end(&p);
    posterior_free(&q);
    backprop_free(t);
    parameters_free(w);
    train_batch_free(&b);
    free(keys);
    return bad;
}

/* ---- the prior ---- */

static int write_step(struct prior_training *r, int64_t step, double loss, double norm,
                      struct err *e)
{
    json_t *j = json_pack("{s:s, s:s, s:s, s:I}", "model", r->model.config.name, "arch", "dit",
                          "paradigm", config_paradigm_name(r->model.config.paradigm), "step",
                          (json_int_t)step);
    rec_set_number(j, "loss", loss, "not finite");
    rec_set_number(j, "grad_norm", norm, "not finite");
    return rec_write(&r->records, "train", j, e);
}

static int train(struct prior_training *r, struct err *e)
{
    const struct args *a = r->a;
    size_t n = r->n - r->held, batch = (size_t)a->batch;
    uint64_t seed = rng_derive((uint64_t)a->common.seed, "prior");
    float *z = mem_alloc(batch * r->each * sizeof *z);
    double loss = 0, norm = 0, of = 0;
    struct progress p;
    int bad = 0;
    progress_start(&p, &r->log, a->common.progress, "steps", a->steps);
    dit_standardize(r->prior, r->z, n);
    for (int64_t step = dit_step(r->prior); !bad && step < a->steps; step++) {
        for (size_t s = 0; s < batch; s++) {
            struct rng lot = {seed, (uint64_t)step, s << 8};
            memcpy(z + s * r->each, r->z + rng_below(&lot, n) * r->each, r->each * sizeof *z);
        }
        dit_to_standard(r->prior, z, batch);
        double warm = fmin(1, (double)(step + 1) / a->warmup);
        loss += dit_loss(r->prior, z, batch, seed, (uint64_t)step, 1);
        norm += dit_update(r->prior, a->rate * warm, 1, fmin(a->keep, (double)step / 10));
        of++;
        if ((step + 1) % a->save == 0)
            bad = dit_save(r->prior, r->state, 1, e);
        if (bad || ((step + 1) % a->report && step + 1 < a->steps))
            continue;
        bad = write_step(r, step + 1, loss / of, norm / of, e);
        loss = norm = of = 0;
        progress_at(&p, step + 1, NULL);
    }
    progress_end(&p);
    free(z);
    return bad;
}

/* KL(q || p) = E[log q] - E[log p], by one draw per document. */
static int write_gain(struct prior_training *r, struct err *e)
{
    double normal = 0, log_q_sum = 0, held = (double)r->held;
    size_t first = r->n - r->held;
    dit_use_average(r->prior);
    for (size_t i = first; i < r->n; i++) {
        normal += r->kl[i] / held;
        log_q_sum += r->log_q[i] / held;
    }
    double cross = prior_bound(r->prior, r->z + first * r->each, r->held, (size_t)r->a->bound,
                               rng_derive((uint64_t)r->a->common.seed, "bound"));
    json_t *j = json_pack("{s:s, s:I, s:I, s:I}", "model", r->model.config.name, "step",
                          (json_int_t)dit_step(r->prior), "documents", (json_int_t)r->held,
                          "parameters", (json_int_t)dit_parameters(r->prior));
    rec_set_number(j, "kl_normal_nats", normal, "not finite");
    rec_set_number(j, "kl_prior_nats", log_q_sum + cross, "not finite");
    log_note(&r->log, "held-out documents: KL to N(0, I) %.1f nats, to the prior at most %.1f",
             normal, log_q_sum + cross);
    return rec_write(&r->records, "prior", j, e);
}

static int save(struct prior_training *r, struct err *e)
{
    if (dit_save(r->prior, r->path, 0, e))
        return -1;
    unlink(r->fits);
    unlink(r->state);
    return 0;
}

/* ---- the run ---- */

/* Allocates the draws; reads those of an interrupted run. */
static int make_room(struct prior_training *r, struct err *e)
{
    size_t count = (size_t)r->a->count;
    r->z = mem_alloc(count * r->each * sizeof *r->z);
    r->kl = mem_alloc(count * sizeof *r->kl);
    r->log_q = mem_alloc(count * sizeof *r->log_q);
    return restore_fits(r, e);
}

static int open_model(struct prior_training *r, struct err *e)
{
    const struct engine *g = &r->a->engine;
    const struct config *c = &r->model.config;
    if (engine_checkpoint(g, 0, &r->model, &r->log, e))
        return -1;
    if (c->paradigm != PARADIGM_LATENT)
        return err_set(e, EXIT_BAD_USAGE, "%s: expected a latent thought model, got %s", g->model,
                       config_paradigm_name(c->paradigm));
    if (engine_open(g, &r->backend, e) ||
        engine_load(g, &r->network, r->backend, &r->model, e))
        return -1;
    r->path = r->a->out ? mem_text(r->a->out)
                        : mem_format("%s/" PRIOR_FILE, r->model.folder);
    r->fits = mem_format("%s.fits", r->path);
    r->state = mem_format("%s.state", r->path);
    r->each = c->layers * c->latents * c->width;
    const struct dit_shape s = {c->layers * c->latents, c->width, (size_t)r->a->width,
                                (size_t)r->a->layers, (size_t)r->a->heads};
    r->prior = dit_make(&s, r->backend, rng_derive((uint64_t)r->a->common.seed, "prior weights"),
                        (size_t)r->a->batch, e);
    return r->prior ? 0 : -1;
}

static void close_run(struct prior_training *r)
{
    dit_free(r->prior);
    network_free(&r->network);
    backend_close(r->backend);
    checkpoint_close(&r->model);
    documents_free(&r->corpus);
    json_decref(r->note);
    void *own[] = {r->z, r->kl, r->log_q, r->path, r->fits, r->state};
    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        free(own[i]);
}

int main(int argc, char **argv)
{
    struct args a = {.common = COMMON_DEFAULTS, .engine = ENGINE_DEFAULTS,
                     .count = 1000, .vi_steps = 16, .vi_rate = POSTERIOR_RATE, .rows = 1024,
                     .max_len = 128, .width = 96, .layers = 3, .heads = 4, .batch = 32,
                     .steps = 2000, .rate = 1e-3, .keep = 0.995, .warmup = 100, .bound = 200,
                     .report = 50, .save = 200};
    a.engine.device = "cpu"; /* no GPU can train */
    struct opt table[OPTIONS_MOST];
    options(table, &a);
    const struct tool tool = {"train-prior",
                              "a latent model and texts in, a learned prior of their latents out",
                              examples, notes, table, NEEDS_LATER};
    int first = opt_parse(&tool, argc, argv);
    if (!a.engine.model || first == argc || a.width % a.heads)
        opt_usage(&tool, "expected -m MODEL, a corpus file, and --heads that divide --width");
    if (a.max_len > a.rows) /* else no document would fit */
        opt_usage(&tool, "expected --max-len <= --rows");
    char *beside = mem_format("%s/" PRIOR_FILE, a.engine.model);
    if (!a.out && file_is_folder(a.engine.model))
        a.out = beside; /* named before the model is read: opt_contain() allows it */
    opt_contain(&tool, argv + first);
    struct prior_training r = {.a = &a, .options = table,
                    .log = {tool.name, a.common.quiet ? 0 : 1 + a.common.verbose}};
    struct err e = {0};
    if (open_model(&r, &e) || read_corpus(&r, argv + first, (size_t)(argc - first), &e) ||
        make_note(&r, &e) || make_room(&r, &e) || restore_prior(&r, &e) ||
        rec_open(&r.records, &a.common, tool.name, argc, argv, NULL, &e))
        err_die(tool.name, &e);
    int bad = fit_all(&r, &e);
    r.held = r.n / HELD;
    bad = bad || train(&r, &e) || write_gain(&r, &e) || save(&r, &e);
    bad = bad || rec_close(&r.records, "ok", &e);
    if (bad)
        rec_abandon(&r.records);
    close_run(&r);
    free(beside);
    if (bad)
        err_die(tool.name, &e);
    return EXIT_OK;
}
