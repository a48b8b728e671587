/* train-prior - trains a learned prior of the latents of a latent thought model, from texts; writes
 * the prior (gen-ltm --z dit draws from it) and loss records.
 *
 * First a posterior is fitted to each of --count documents, and one draw of the posterior is kept.
 * Then a transformer learns the distribution of these draws (lib/train/dit.h). Every tenth document
 * is held out. The last record compares the prior with N(0, I) on the held-out documents, by bounds
 * of KL(q(z|x) || prior).
 *
 * A resumed run computes the same numbers as an uninterrupted one. OUT.fits has the draws that are
 * finished. OUT.state has the transformer with its moments and its average. A batch is a function
 * of seed and step. */
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
static void options(struct opt *out, struct args *args)
{
    const struct opt table[] = {
        ENGINE_OPTIONS(args->engine),
        {.type = OPT_HEADING, .name = "", .help = "Latents:"},
        {"count", 0, OPT_INT, &args->count, 2 * HELD, 1 << 24, .arg = "N",
         .help = "documents to fit (1000)"},
        {"vi-steps", 0, OPT_INT, &args->vi_steps, 1, 1000, .arg = "N",
         .help = "steps to fit a posterior (16)"},
        {"vi-rate", 0, OPT_REAL, &args->vi_rate, 1e-9, 10, .arg = "R", .rare = 1,
         .help = "first learning rate of a fit; it falls to a tenth (0.34)"},
        {"rows", 0, OPT_INT, &args->rows, 16, 65536, .arg = "N",
         .help = "tokens fitted together (1024)"},
        {"max-len", 0, OPT_INT, &args->max_len, 16, 8192, .arg = "N",
         .help = "longest document in tokens (128)"},
        {.type = OPT_HEADING, .name = "", .help = "Prior:"},
        {"out", 0, OPT_TEXT, &args->out, .arg = "FILE", .writes = WRITES_IT,
         .help = "file to write (MODEL/" PRIOR_FILE ")"},
        {"width", 0, OPT_INT, &args->width, 8, 4096, .arg = "N", .help = "width of the prior (96)"},
        {"layers", 0, OPT_INT, &args->layers, 1, 64, .arg = "N", .help = "layers of the prior (3)"},
        {"heads", 0, OPT_INT, &args->heads, 1, 64, .arg = "N",
         .help = "attention heads of the prior (4)"},
        {"batch", 0, OPT_INT, &args->batch, 1, 65536, .arg = "N", .help = "samples per step (32)"},
        {"steps", 0, OPT_INT, &args->steps, 1, 10000000, .arg = "N", .help = "updates (2000)"},
        {"rate", 0, OPT_REAL, &args->rate, 1e-9, 1, .arg = "R", .help = "learning rate (0.001)"},
        {"warmup", 0, OPT_REAL, &args->warmup, 1, 1e6, .arg = "N", .help = "warm-up steps (100)"},
        {"keep", 0, OPT_REAL, &args->keep, 0, 1, .arg = "R", .rare = 1,
         .help = "decay of the moving average of the weights (0.995)"},
        {"bound-steps", 0, OPT_INT, &args->bound, 1, 100000, .arg = "N", .rare = 1,
         .help = "random draws that estimate the bound in the prior record (200)"},
        {"report", 0, OPT_INT, &args->report, 1, 1000000, .arg = "N",
         .help = "steps between two records (50)"},
        {"save", 0, OPT_INT, &args->save, 1, 1000000, .arg = "N", .rare = 1,
         .help = "steps (while fitting: batches) between two saves (200)"},
        OPT_COMMON(args->common),
        {0}};
    static_assert(sizeof table <= OPTIONS_MOST * sizeof *table, "room for all");
    memcpy(out, table, sizeof table);
}

struct prior_training {
    const struct args *a;
    const struct opt *options; /* the table of options that filled *a */
    struct log log;
    struct rec_writer records;
    struct checkpoint model;
    struct backend *backend;
    struct network network;
    struct documents corpus;
    float *z;            /* [n, layers * latents * width] a draw of each posterior; held-out last */
    double *kl, *log_q;  /* [n] KL of each posterior to N(0, I); log q of its draw */
    size_t n, held, each;
    int64_t batches;     /* batches of documents fitted so far */
    struct dit *prior;
    char *path, *fits, *state;
    json_t *note;        /* saved states must have an equal note */
};

/* ---- states ---- */

static int make_note(struct prior_training *training, struct err *e)
{
    static const char *const harmless[] = {"model", "limit", NULL}; /* hashes stand for them */
    json_t *about = checkpoint_describe(&training->model, e), *file, *hashes = json_array();
    size_t i;
    char hex[65];
    json_array_foreach(json_object_get(about, "files"), i, file)
        json_array_append(hashes, json_object_get(file, "sha256"));
    json_t *note = training->note = training_note(training->options, harmless);
    json_object_set_new(note, "model", hashes);
    documents_hash(&training->corpus, hex);
    json_object_set_new(note, "corpus", json_string(hex));
    int bad = about ? 0 : -1;
    json_decref(about);
    return bad;
}

static struct tensor flat(const char *name, const char *dtype, const void *data, size_t n,
                          size_t bytes)
{
    struct tensor tensor = {.name = (char *)(uintptr_t)name, .rank = 1, .shape = {n},
                            .bytes = bytes, .data = data};
    snprintf(tensor.dtype, sizeof tensor.dtype, "%s", dtype);
    return tensor;
}

static int save_fits(const struct prior_training *training, struct err *e)
{
    json_t *note = json_copy(training->note);
    json_object_set_new(note, "documents", json_integer((json_int_t)training->n));
    json_object_set_new(note, "batches", json_integer((json_int_t)training->batches));
    char *text = json_dumps(note, JSON_COMPACT);
    size_t values = training->n * training->each, len = strlen(text);
    const struct tensor list[] = {
        flat("z", "F32", training->z, values, values * sizeof *training->z),
        flat("kl", "F64", training->kl, training->n, training->n * sizeof *training->kl),
        flat("log_q", "F64", training->log_q, training->n, training->n * sizeof *training->log_q),
        flat("note", "U8", text, len, len)};
    int bad = safetensors_write(training->fits, list, sizeof list / sizeof *list, NULL, e);
    free(text);
    json_decref(note);
    return bad;
}

static int take(const struct prior_training *training, const struct tensors *tensors,
                const char *name, void *out, size_t bytes, struct err *e)
{
    const struct tensor *tensor = safetensors_find(tensors, name);
    if (!tensor || tensor->bytes != bytes)
        return err_set(e, EXIT_BAD_DATA, "%s: %s: expected %zu bytes", training->fits, name, bytes);
    memcpy(out, tensor->data, bytes);
    return 0;
}

static int take_fits(struct prior_training *training, const struct tensors *tensors,
                     const json_t *note, struct err *e)
{
    int64_t n;
    if (training_note_check(training->note, note, training->fits, e) ||
        json_int(note, training->fits, "documents", 0, training->a->count, &n, e) ||
        json_int(note, training->fits, "batches", 0, INT64_MAX, &training->batches, e) ||
        take(training, tensors, "z", training->z, (size_t)n * training->each * sizeof *training->z,
             e) ||
        take(training, tensors, "kl", training->kl, (size_t)n * sizeof *training->kl, e) ||
        take(training, tensors, "log_q", training->log_q, (size_t)n * sizeof *training->log_q, e))
        return -1;
    if (!finite_floats(training->z, (size_t)n * training->each))
        return err_set(e, EXIT_BAD_DATA, "%s: z: holds a value that is not finite", training->fits);
    training->n = (size_t)n;
    return 0;
}

/* Reads the draws that an interrupted run of the same command saved. If there are none, removes the
 * state of the prior, because that prior was trained on other draws. */
static int restore_fits(struct prior_training *training, struct err *e)
{
    if (!file_exists(training->fits)) {
        unlink(training->state);
        return 0;
    }
    struct tensors *tensors = safetensors_open_file(training->fits, e);
    const struct tensor *tensor = tensors ? safetensors_find(tensors, "note") : NULL;
    json_t *note = tensor ? json_bytes((const char *)tensor->data, tensor->bytes, training->fits, e)
                          : NULL;
    if (tensors && !tensor)
        err_set(e, EXIT_BAD_DATA, "%s: no 'note': not a state of train-prior", training->fits);
    int bad = note ? take_fits(training, tensors, note, e) : -1;
    json_decref(note);
    if (tensors)
        safetensors_close(tensors);
    if (!bad)
        log_note(&training->log, "resuming after %zu documents", training->n);
    return bad;
}

static int restore_prior(struct prior_training *training, struct err *e)
{
    if (!file_exists(training->state))
        return 0;
    struct dit *former = dit_open(training->state, training->backend, (size_t)training->a->batch,
                                  e);
    if (!former)
        return -1;
    const struct dit_shape *shape = dit_shape_of(former), *mine = dit_shape_of(training->prior);
    if (shape->tokens != mine->tokens || shape->values != mine->values ||
        shape->width != mine->width || shape->layers != mine->layers ||
        shape->heads != mine->heads || dit_step(former) > training->a->steps) {
        dit_free(former);
        return err_set(e, EXIT_BAD_DATA, "%s: expected the shape of this command: remove the "
                       "file to start again", training->state);
    }
    dit_free(training->prior);
    training->prior = former;
    log_note(&training->log, "resuming after step %lld", (long long)dit_step(former));
    return 0;
}

/* ---- latents ---- */

static int read_corpus(struct prior_training *training, char **paths, size_t n_paths, struct err *e)
{
    const struct config *config = &training->model.config;
    struct tokenizer *tokenizer;
    if (checkpoint_tokenizer(&training->model, &tokenizer, e))
        return -1;
    int bad = documents_open(&training->corpus, tokenizer, (const char *const *)paths, n_paths,
                             training->a->common.limit, config->bos, config->eos[0], -1,
                             rng_derive((uint64_t)training->a->common.seed, "batches"), e);
    tokenizer_free(tokenizer);
    return bad;
}

/* Fits the documents of a batch and keeps one draw of each. */
static void fit_batch(struct prior_training *training, struct posterior *posterior,
                      struct backprop *backprop, struct train_batch *batch, uint64_t *keys)
{
    const struct posterior_fit fit = {(size_t)training->a->vi_steps, training->a->vi_rate,
                                      rng_derive((uint64_t)training->a->common.seed, "latents")};
    size_t left = (size_t)training->a->count - training->n,
           take = batch->seqs < left ? batch->seqs : left;
    for (size_t text = 0; text < batch->seqs; text++)
        keys[text] = training->n + text;
    posterior_start(posterior, fit.seed, keys, batch->seqs);
    posterior_run(posterior, backprop, batch, &fit, keys, 0, NULL);
    posterior_draw(posterior, fit.seed, keys, batch->seqs, POSTERIOR_FRESH);
    float *all = mem_alloc(batch->seqs * training->each * sizeof *all);
    prior_gather(&training->model.config, posterior->z, batch->seqs, all);
    for (size_t text = 0; text < take; text++) {
        memcpy(training->z + (training->n + text) * training->each, all + text * training->each,
               training->each * sizeof *all);
        training->kl[training->n + text] = posterior_kl(posterior, batch->seqs, text);
        training->log_q[training->n + text] = posterior_log_q(posterior, batch->seqs, text);
    }
    free(all);
    training->n += take;
}

static int fit_all(struct prior_training *training, struct err *e)
{
    const struct args *args = training->a;
    size_t rows = (size_t)args->rows, most = rows / TRAINING_ROW_LEAST, count = (size_t)args->count;
    if (training->n == count)
        return 0;
    struct posterior posterior;
    struct parameters *parameters = parameters_read(&training->network);
    const struct backprop_how how = {.products = DTYPE_F32, .latents = 1};
    struct backprop *backprop = parameters ? backprop_make_as(parameters, rows, most, &how) : NULL;
    if (!backprop || posterior_make(&posterior, &training->model.config, training->backend, most))
        return err_set(e, EXIT_FAILED_RECORDS, "%s: out of memory for gradients over %zu tokens",
                       training->model.config.name, rows);
    struct train_batch batch = train_batch_room(rows);
    uint64_t *keys = mem_zero(most, sizeof *keys);
    struct progress progress;
    progress_start(&progress, &training->log, args->common.progress, "documents", args->count);
    int bad = 0;
    while (!bad && training->n < count) {
        documents_fill_whole(&training->corpus, training->batches++, rows, (size_t)args->max_len,
                             &batch);
        fit_batch(training, &posterior, backprop, &batch, keys);
        if (training->batches % args->save == 0 || training->n == count)
            bad = save_fits(training, e);
        progress_at(&progress, (int64_t)training->n, NULL);
    }
    progress_end(&progress);
    posterior_free(&posterior);
    backprop_free(backprop);
    parameters_free(parameters);
    train_batch_free(&batch);
    free(keys);
    return bad;
}

/* ---- the prior ---- */

static int write_step(struct prior_training *training, int64_t step, double loss, double norm,
                      struct err *e)
{
    json_t *j = json_pack("{s:s, s:s, s:s, s:I}", "model", training->model.config.name, "arch",
                          "dit", "paradigm", config_paradigm_name(training->model.config.paradigm),
                          "step", (json_int_t)step);
    rec_set_number(j, "loss", loss, "not finite");
    rec_set_number(j, "grad_norm", norm, "not finite");
    return rec_write(&training->records, "train", j, e);
}

static int train(struct prior_training *training, struct err *e)
{
    const struct args *args = training->a;
    size_t n = training->n - training->held, batch = (size_t)args->batch;
    uint64_t seed = rng_derive((uint64_t)args->common.seed, "prior");
    float *latents = mem_alloc(batch * training->each * sizeof *latents);
    double loss = 0, norm = 0, of = 0;
    struct progress progress;
    int bad = 0;
    progress_start(&progress, &training->log, args->common.progress, "steps", args->steps);
    dit_standardize(training->prior, training->z, n);
    for (int64_t step = dit_step(training->prior); !bad && step < args->steps; step++) {
        for (size_t text = 0; text < batch; text++) {
            struct rng lot = {seed, (uint64_t)step, text << 8};
            memcpy(latents + text * training->each,
                   training->z + rng_below(&lot, n) * training->each,
                   training->each * sizeof *latents);
        }
        dit_to_standard(training->prior, latents, batch);
        double warm = fmin(1, (double)(step + 1) / args->warmup);
        loss += dit_loss(training->prior, latents, batch, seed, (uint64_t)step, 1);
        norm += dit_update(training->prior, args->rate * warm, 1,
                           fmin(args->keep, (double)step / 10));
        of++;
        if ((step + 1) % args->save == 0)
            bad = dit_save(training->prior, training->state, 1, e);
        if (bad || ((step + 1) % args->report && step + 1 < args->steps))
            continue;
        bad = write_step(training, step + 1, loss / of, norm / of, e);
        loss = norm = of = 0;
        progress_at(&progress, step + 1, NULL);
    }
    progress_end(&progress);
    free(latents);
    return bad;
}

/* KL(q || p) = E[log q] - E[log p], by one draw per document. */
static int write_gain(struct prior_training *training, struct err *e)
{
    double normal = 0, log_q_sum = 0, held = (double)training->held;
    size_t first = training->n - training->held;
    dit_use_average(training->prior);
    for (size_t i = first; i < training->n; i++) {
        normal += training->kl[i] / held;
        log_q_sum += training->log_q[i] / held;
    }
    double cross = prior_bound(training->prior, training->z + first * training->each,
                               training->held, (size_t)training->a->bound,
                               rng_derive((uint64_t)training->a->common.seed, "bound"));
    json_t *j = json_pack("{s:s, s:I, s:I, s:I}", "model", training->model.config.name, "step",
                          (json_int_t)dit_step(training->prior), "documents",
                          (json_int_t)training->held, "parameters",
                          (json_int_t)dit_parameters(training->prior));
    rec_set_number(j, "kl_normal_nats", normal, "not finite");
    rec_set_number(j, "kl_prior_nats", log_q_sum + cross, "not finite");
    log_note(&training->log,
             "held-out documents: KL to N(0, I) %.1f nats, to the prior at most %.1f", normal,
             log_q_sum + cross);
    return rec_write(&training->records, "prior", j, e);
}

static int save(struct prior_training *training, struct err *e)
{
    if (dit_save(training->prior, training->path, 0, e))
        return -1;
    unlink(training->fits);
    unlink(training->state);
    return 0;
}

/* ---- the run ---- */

/* Allocates the draws, and reads the draws of an interrupted run. */
static int make_room(struct prior_training *training, struct err *e)
{
    size_t count = (size_t)training->a->count;
    training->z = mem_alloc(count * training->each * sizeof *training->z);
    training->kl = mem_alloc(count * sizeof *training->kl);
    training->log_q = mem_alloc(count * sizeof *training->log_q);
    return restore_fits(training, e);
}

static int open_model(struct prior_training *training, struct err *e)
{
    const struct engine *engine = &training->a->engine;
    const struct config *config = &training->model.config;
    if (engine_checkpoint(engine, 0, &training->model, &training->log, e))
        return -1;
    if (config->paradigm != PARADIGM_LATENT)
        return err_set(e, EXIT_BAD_USAGE, "%s: expected a latent thought model, got %s",
                       engine->model, config_paradigm_name(config->paradigm));
    if (engine_open(engine, &training->backend, e) ||
        engine_load(engine, &training->network, training->backend, &training->model, e))
        return -1;
    training->path = training->a->out ? mem_text(training->a->out)
                                      : mem_format("%s/" PRIOR_FILE, training->model.folder);
    training->fits = mem_format("%s.fits", training->path);
    training->state = mem_format("%s.state", training->path);
    training->each = config->layers * config->latents * config->width;
    const struct dit_shape shape = {config->layers * config->latents, config->width,
                                    (size_t)training->a->width, (size_t)training->a->layers,
                                    (size_t)training->a->heads};
    training->prior = dit_make(&shape, training->backend,
                               rng_derive((uint64_t)training->a->common.seed, "prior weights"),
                               (size_t)training->a->batch, e);
    return training->prior ? 0 : -1;
}

static void close_run(struct prior_training *training)
{
    dit_free(training->prior);
    network_free(&training->network);
    backend_close(training->backend);
    checkpoint_close(&training->model);
    documents_free(&training->corpus);
    json_decref(training->note);
    void *own[] = {training->z,    training->kl,   training->log_q,
                   training->path, training->fits, training->state};
    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        free(own[i]);
}

int main(int argc, char **argv)
{
    struct args args = {.common = COMMON_DEFAULTS, .engine = ENGINE_DEFAULTS,
                        .count = 1000, .vi_steps = 16, .vi_rate = POSTERIOR_RATE, .rows = 1024,
                        .max_len = 128, .width = 96, .layers = 3, .heads = 4, .batch = 32,
                        .steps = 2000, .rate = 1e-3, .keep = 0.995, .warmup = 100, .bound = 200,
                        .report = 50, .save = 200};
    args.engine.device = "cpu"; /* no GPU can train */
    struct opt table[OPTIONS_MOST];
    options(table, &args);
    const struct tool tool = {"train-prior",
                              "a latent model and texts in, a learned prior of their latents out",
                              examples, notes, table, NEEDS_LATER};
    int first = opt_parse(&tool, argc, argv);
    if (!args.engine.model || first == argc || args.width % args.heads)
        opt_usage(&tool, "expected -m MODEL, a corpus file, and --heads that divide --width");
    if (args.max_len > args.rows) /* a document may be longer than a batch */
        opt_usage(&tool, "expected --max-len <= --rows");
    char *beside = mem_format("%s/" PRIOR_FILE, args.engine.model);
    if (!args.out && file_is_folder(args.engine.model))
        args.out = beside; /* set before the model is read, so that opt_contain() allows it */
    opt_contain(&tool, argv + first);
    struct prior_training training = {.a = &args, .options = table,
                    .log = {tool.name, args.common.quiet ? 0 : 1 + args.common.verbose}};
    struct err e = {0};
    if (open_model(&training, &e) ||
        read_corpus(&training, argv + first, (size_t)(argc - first), &e) ||
        make_note(&training, &e) || make_room(&training, &e) || restore_prior(&training, &e) ||
        rec_open(&training.records, &args.common, tool.name, argc, argv, NULL, &e))
        err_die(tool.name, &e);
    int bad = fit_all(&training, &e);
    training.held = training.n / HELD;
    bad = bad || train(&training, &e) || write_gain(&training, &e) || save(&training, &e);
    bad = bad || rec_close(&training.records, "ok", &e);
    if (bad)
        rec_abandon(&training.records);
    close_run(&training);
    free(beside);
    if (bad)
        err_die(tool.name, &e);
    return EXIT_OK;
}
