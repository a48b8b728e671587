/* train-lm - corpus records in, a small checkpoint in the Hugging Face layout and its loss curve
 * out.
 *
 * The state (values, moments, step, and a note of every option that matters) is saved during
 * training. A resumed training computes the same numbers as an uninterrupted one, because a batch
 * is a function of seed and step (lib/train/documents.h). lib/train/training.h is the loop. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "kernels/train.h"
#include "lib/base/file.h"
#include "lib/base/cli/log.h"
#include "lib/base/mem.h"
#include "lib/base/cli/opt.h"
#include "lib/base/rng.h"
#include "lib/record/rec.h"
#include "lib/run/engine.h"
#include "lib/train/history.h"
#include "lib/train/ranks.h"
#include "lib/train/training.h"
#include "lib/train/training_note.h"
#include "lib/train/vocabulary.h"
#include "lib/checkpoint/checkpoint.h"
#include "lib/checkpoint/hub.h"
#include "lib/checkpoint/provenance.h"

struct args {
    struct common common;
    const char *arch, *mixer, *out, *valid, *dtype, *init, *from, *ignore_config, *oversample,
        *device, *isa, *precision, *loss, *qat;
    struct training_how how;
    int64_t vocab, width, layers, heads, kv_heads, ffn, context, latents, window, rank;
    int64_t threads, times, vi_steps, every, parts, ranks;
    double whole, cut, vi_rate;
    int tied, checkpointing;
};

static const char examples[] =
    "train-lm --arch llada --out models/mine corpus.ndjson.gz > loss.ndjson\n"
    "train-lm --arch llama --kv-heads 2 --ffn 832 --out m corpus.ndjson\n"
    "train-lm --arch ltm --latents 4 --vi-steps 8 --rows 1024 --out m corpus.ndjson\n"
    "train-lm --arch ltm --mixer rwkv6 --rank 16 --out m corpus.ndjson\n"
    "train-lm --from MODEL --arch a2d --out MODEL-mdlm corpus.ndjson\n";
static const char notes[] =
    "Each record {text, reference} is a document. First the tool learns a\n"
    "byte-level BPE tokenizer from the corpus (--init and --from use the tokenizer\n"
    "of their model). Then it trains the network: AdamW (0.9, 0.95), linear\n"
    "warm-up, cosine decay to a twentieth of the peak rate, gradients clipped by\n"
    "global norm.\n"
    "Losses: llama next token; llada masked diffusion (uniform t, weight 1/t); ltm\n"
    "-ELBO per token. For ltm each step first fits a posterior of every document's\n"
    "latents by --vi-steps steps with the network fixed, then updates the network\n"
    "with a fresh draw of the posterior. Such a step costs about (2/3 vi-steps + 1)\n"
    "times a step of llama.\n"
    "\n"
    "--precision bf16 rounds the factors of matrix products to bf16, forward and\n"
    "backward. It is about twice as fast on processors that multiply bf16. Weights,\n"
    "gradients, moments and sums stay f32.\n"
    "--checkpoint-every K keeps only the input of every K-th layer and computes the\n"
    "other layers again in the backward pass: less memory, one more pass, the same\n"
    "bits. --loss whole holds the logits of all rows at once, to measure what\n"
    "--loss fused saves. --qat trains with weights rounded as pack-model --quant\n"
    "would round them. The checkpoint that is written is not quantized.\n"
    "--parts P splits a batch into P parts; --ranks N splits it over N processes.\n"
    "Both options add the parts in the same order, so the result is the same.\n"
    "A GPU trains in fp32, without --qat and --ranks, and no ltm.\n"
    "--from takes any family without experts and with one way to write. --arch a2d\n"
    "makes a denoiser of a model that writes left to right, in the layout of dllm's\n"
    "conversions. It has a full mask, or blocks of 32 if the name of FOLDER contains\n"
    "bd3lm. A mask token is added where the vocabulary has none and no unused token.\n"
    "The same command resumes an interrupted training from OUT/train.state. The\n"
    "same seed gives the same bits on machines with the same instruction set, with\n"
    "any number of threads, and on GPUs of one kind.\n";

enum { OPTIONS_MOST = 72 };
static size_t shape_options(struct opt *o, struct args *a)
{
    const struct opt table[] = {
        {.type = OPT_HEADING, .name = "", .help = "Model and corpus:"},
        {"arch", 0, OPT_CHOICE, &a->arch, .choices = "llada|llama|ltm|a2d",
         .help = "model family (llada); a2d: turn the model of --from into a denoiser"},
        {"out", 0, OPT_TEXT, &a->out, .arg = "FOLDER", .writes = WRITES_IT,
         .help = "folder of the checkpoint to write (required)"},
        {"valid", 0, OPT_TEXT, &a->valid, .arg = "FILE",
         .help = "held-out records, for the validation loss"},
        {"init", 0, OPT_TEXT, &a->init, .arg = "MODEL",
         .help = "start from the weights and tokenizer of this checkpoint, any family"},
        {"from", 0, OPT_TEXT, &a->from, .arg = "MODEL",
         .help = "as --init, with its family and shape too"},
        IGNORE_CONFIG_OPTION(a->ignore_config),
        {"oversample", 0, OPT_TEXT, &a->oversample, .arg = "TASK", .rare = 1,
         .help = "task whose documents are repeated --times times"},
        {"times", 0, OPT_INT, &a->times, 1, 1000, .arg = "N", .rare = 1,
         .help = "copies of each document of --oversample (4)"},
        {"whole", 0, OPT_REAL, &a->whole, 0, 1, .arg = "R", .rare = 1,
         .help = "llada: share of rows whose prompt is masked too (0.5)"},
        {"cut", 0, OPT_REAL, &a->cut, 0, 1, .arg = "R", .rare = 1,
         .help = "llada: share of rows masked only after a random place of the response (0)"},
        {"vocab", 0, OPT_INT, &a->vocab, 300, 65536, .arg = "N", .help = "vocabulary size (1024)"},
        {"width", 0, OPT_INT, &a->width, 8, 4096, .arg = "N",
         .help = "width of the residual stream (256)"},
        {"layers", 0, OPT_INT, &a->layers, 1, 64, .arg = "N", .help = "layers (4)"},
        {"heads", 0, OPT_INT, &a->heads, 1, 64, .arg = "N", .help = "query heads (8)"},
        {"kv-heads", 0, OPT_INT, &a->kv_heads, 1, 64, .arg = "N",
         .help = "key and value heads (8)"},
        {"ffn", 0, OPT_INT, &a->ffn, 8, 16384, .arg = "N",
         .help = "width of the feed-forward layer (704)"},
        {"context", 0, OPT_INT, &a->context, 16, 8192, .arg = "N",
         .help = "longest sequence in tokens (512)"},
        {"latents", 0, OPT_INT, &a->latents, 1, 4096, .arg = "N",
         .help = "ltm: latent vectors per layer (4)"},
        {"window", 0, OPT_INT, &a->window, 1, 8192, .arg = "N",
         .help = "ltm: attention window in tokens, including the token itself (256)"},
        {"mixer", 0, OPT_CHOICE, &a->mixer, .choices = "swa|rwkv6|rwkv7",
         .help = "ltm: attention in the window (swa) or RWKV time mixing (swa)"},
        {"rank", 0, OPT_INT, &a->rank, 1, 4096, .arg = "N", .rare = 1,
         .help = "ltm: rank of the low-rank parts of rwkv6 and rwkv7 (32)"},
        {"vi-steps", 0, OPT_INT, &a->vi_steps, 0, 1000, .arg = "N",
         .help = "ltm: steps to fit a posterior (16)"},
        {"vi-rate", 0, OPT_REAL, &a->vi_rate, 1e-9, 10, .arg = "R", .rare = 1,
         .help = "ltm: first learning rate of a fit; it falls to a tenth (0.34)"},
        {"tied", 0, OPT_FLAG, &a->tied, .help = "use the embedding as the output head"},
        {"dtype", 0, OPT_CHOICE, &a->dtype, .choices = "F32|BF16", .rare = 1,
         .help = "number format of the written weights (BF16)"}};
    memcpy(o, table, sizeof table);
    return sizeof table / sizeof *table;
}

static size_t training_options(struct opt *o, struct args *a)
{
    struct training_how *how = &a->how;
    const struct opt table[] = {
        {.type = OPT_HEADING, .name = "", .help = "Training:"},
        {"steps", 0, OPT_INT, &how->steps, 1, 10000000, .arg = "N", .help = "updates (8000)"},
        {"rows", 0, OPT_INT, &how->rows, 16, 65536, .arg = "N", .help = "tokens per batch (2048)"},
        {"min-len", 0, OPT_INT, &how->min_len, 16, 8192, .arg = "N", .rare = 1,
         .help = "llada: shortest row in tokens (72)"},
        {"max-len", 0, OPT_INT, &how->max_len, 16, 8192, .arg = "N",
         .help = "longest row in tokens (128)"},
        {"rate", 0, OPT_REAL, &how->rate, 1e-9, 1, .arg = "R",
         .help = "peak learning rate (0.002)"},
        {"warmup", 0, OPT_REAL, &how->warmup, 0, 1e6, .arg = "N", .help = "warm-up steps (200)"},
        {"decay", 0, OPT_REAL, &how->decay, 0, 10, .arg = "R", .rare = 1,
         .help = "weight decay (0.1)"},
        {"clip", 0, OPT_REAL, &how->clip, 1e-6, 1e6, .arg = "R", .rare = 1,
         .help = "limit of the gradient norm (1)"},
        {"precision", 0, OPT_CHOICE, &a->precision, .choices = "f32|bf16",
         .help = "format of the factors in matrix products; sums are f32 (f32)"},
        {"checkpoint-every", 0, OPT_INT, &a->every, 0, 64, .arg = "K",
         .help = "keep activations of every K-th layer only; 0: of all (0)"},
        {"loss", 0, OPT_CHOICE, &a->loss, .choices = "fused|whole", .rare = 1,
         .help = "compute logits by blocks of rows, or for all rows at once (fused)"},
        {"qat", 0, OPT_CHOICE, &a->qat,
         .choices = "none|int8|int8-vector|fp8|nf4|nf4-f32|fp4|q4", .rare = 1,
         .help = "train with weights rounded to this format (none)"},
        {"parts", 0, OPT_INT, &a->parts, 1, 1024, .arg = "P", .rare = 1,
         .help = "split a batch into P parts, computed in turn to save memory (1)"},
        {"ranks", 0, OPT_INT, &a->ranks, 1, 1024, .arg = "N", .rare = 1,
         .help = "processes started by mpirun -n N; each takes a part of a batch (1)"},
        {"loaders", 0, OPT_INT, &how->loaders, 0, 64, .arg = "N", .rare = 1,
         .help = "threads that prepare batches; 0: the training loop does (0)"},
        {"num-workers", 0, OPT_INT, &how->loaders, 0, 64, .arg = "N", .rare = 1,
         .help = "alias of --loaders"},
        {"gradient-checkpointing", 0, OPT_FLAG, &a->checkpointing, .rare = 1,
         .help = "alias of --checkpoint-every 1"},
        {"device", 0, OPT_TEXT, &a->device, .arg = "auto|ref|cpu|cuda[:N]",
         .help = "back end (cpu; auto: a usable GPU, else the CPU)"},
        ISA_OPTION(a->isa),
        THREADS_OPTION(a->threads),
        {"report", 0, OPT_INT, &how->report, 1, 1000000, .arg = "N",
         .help = "steps between two records (50)"},
        {"save", 0, OPT_INT, &how->save, 1, 1000000, .arg = "N", .rare = 1,
         .help = "steps between two saves of the state (500)"},
        OPT_COMMON(a->common),
        {0}};
    memcpy(o, table, sizeof table);
    return sizeof table / sizeof *table;
}

static void options(struct opt *o, struct args *a)
{
    size_t n = shape_options(o, a);
    n += training_options(o + n, a);
    assert(n <= OPTIONS_MOST);
}

struct setup {
    const struct args *a;
    const struct opt *options; /* the table that filled *a */
    size_t rank; /* only rank 0 writes */
    struct log log;
    struct config config;
    struct checkpoint from; /* --init */
    struct vocabulary words;
    struct documents corpus, valid;
    struct backend *backend;
    struct trainer *trainer;
    struct trainer_need need;
    struct rec_writer records;
    char *state;  /* OUT/train.state */
    json_t *note; /* a saved state must have an equal note */
};

/* Learns the tokenizer, or takes that of --init. */
static int make_tokenizer(struct setup *r, char **texts, size_t n, struct err *e)
{
    const struct args *a = r->a;
    const int writes = !r->rank;
    if (r->rank)
        ranks_wait(); /* rank 0 makes it */
    int bad = r->from.folder
                  ? vocabulary_take(&r->words, &r->config, a->out, &r->from, a->from != NULL,
                                    writes, e)
                  : vocabulary_learn(&r->words, &r->config, a->out, (const char *const *)texts,
                                     2 * n, (size_t)a->vocab, writes, e);
    if (writes && a->ranks > 1)
        ranks_wait();
    return bad;
}

static int read_corpus(struct setup *r, char **corpus, size_t n_corpus, struct err *e)
{
    char **texts;
    size_t n, unique;
    if (documents_read((const char *const *)corpus, n_corpus, r->a->common.limit,
                       r->a->oversample, r->a->times, &texts, &n, &unique, e))
        return -1;
    log_note(&r->log, "%zu documents, %zu with repeats", unique, n);
    const struct config *c = &r->config;
    uint64_t seed = rng_derive((uint64_t)r->a->common.seed, "batches");
    int bad = make_tokenizer(r, texts, unique, e);
    bad = bad || documents_make(&r->corpus, r->words.tokenizer, texts, n, r->words.before,
                                c->eos[0], c->mask, seed, e);
    documents_free_texts(texts, n);
    if (!bad && r->a->valid)
        bad = documents_open(&r->valid, r->words.tokenizer, &r->a->valid, 1, 0, r->words.before,
                             c->eos[0], c->mask, 1, e);
    r->corpus.whole = r->valid.whole = r->a->whole;
    r->corpus.cut = r->a->cut;
    if (!bad)
        log_note(&r->log, "%zu tokens, vocabulary %zu, %zu parameters", r->corpus.all.n, c->vocab,
                 config_parameters(c));
    return bad;
}

/* The settings and hashes that a saved state must share. */
static json_t *note_of(const struct setup *r)
{
    static const char *const harmless[] = {
        "valid", "dtype", "checkpoint-every", "gradient-checkpointing", "loaders", "num-workers",
        "ranks", "device", /* in the hashes: */ "init", "from", "ignore-config", "limit", NULL};
    char hex[65];
    json_t *note = training_note(r->options, harmless);
    documents_hash(&r->corpus, hex);
    json_object_set_new(note, "corpus", json_string(hex));
    json_object_set_new(note, "tokenizer", json_string(tokenizer_hash(r->words.tokenizer)));
    trainer_hash(r->trainer, hex);
    json_object_set_new(note, "first weights", json_string(hex));
    json_object_set_new(note, "back end", json_string(r->backend->ops->name));
    return note;
}

static void set_shape(struct config *c, const struct args *a)
{
    family_start(c, family_named(a->arch));
    c->width = (size_t)a->width;
    c->layers = (size_t)a->layers;
    c->heads = (size_t)a->heads;
    c->kv_heads = (size_t)a->kv_heads;
    c->head_dim = c->rope_dims = (size_t)(a->width / a->heads);
    c->ffn = (size_t)a->ffn;
    c->context = (size_t)a->context;
    c->tied = a->tied;
    c->norm_eps = 1e-5;
    c->rope_theta = 10000;
    c->latents = c->paradigm == PARADIGM_LATENT ? (size_t)a->latents : 0;
    for (int i = 0; c->paradigm == PARADIGM_LATENT && i < MIXERS; i++)
        if (!strcmp(a->mixer, config_mixer_name((enum mixer)i)))
            c->mixer = (enum mixer)i;
    c->rank = config_recurs(c) ? (size_t)a->rank : 0;
    c->window = c->paradigm == PARADIGM_LATENT && !config_recurs(c) ? (size_t)a->window : 0;
}

static int open_init(struct setup *r, struct err *e)
{
    const struct args *a = r->a;
    if (a->init && checkpoint_open_ignoring(&r->from, a->init, 0, a->ignore_config, e))
        return -1;
    if (a->init)
        checkpoint_say(&r->from, &r->log);
    char name[HUB_NAME];
    hub_model_name(a->out, name);
    if (a->from && family_continue(&r->config, &r->from.config, name, !strcmp(a->arch, "a2d"), e))
        return -1;
    if (!a->from)
        set_shape(&r->config, a);
    memcpy(r->config.name, name, sizeof name);
    if (!a->from && r->config.family->named) /* it may say what mask the model has */
        r->config.family->named(&r->config);
    return trainer_check(&r->config, e);
}

/* Makes the trainer that the options ask for; prints the memory it takes. */
static int make_trainer(struct setup *r, struct err *e)
{
    const struct args *a = r->a;
    const struct trainer_how how = {
        .back = {.products = strcmp(a->precision, "bf16") ? DTYPE_F32 : DTYPE_BF16,
                 .every = (size_t)a->every,
                 .whole_loss = !strcmp(a->loss, "whole")},
        .parts = (size_t)a->parts, .longest = (size_t)a->how.max_len,
        .me = r->rank, .sum = a->ranks > 1 ? ranks_sum : NULL};
    enum dtype quant = QUANT_NONE;
    if (quantization_named(a->qat, &quant) || quantization_check(quant, &r->config, e))
        return -1;
    r->need = trainer_need(&r->config, r->backend, (size_t)a->how.rows, &how, quant);
    log_note(&r->log, "%.1f MB of parameters with gradients and moments, %.1f MB of activations",
             (double)r->need.parameters / 1e6, (double)r->need.activations / 1e6);
    r->trainer = trainer_make_as(&r->config, r->backend,
                                 rng_derive((uint64_t)a->common.seed, "weights"),
                                 (size_t)a->how.rows, &how, e);
    if (!r->trainer || (a->init && trainer_take(r->trainer, &r->from, &r->words.added, e)))
        return -1;
    return quant == QUANT_NONE ? 0 : trainer_quantize(r->trainer, quant, e);
}

static int start(struct setup *r, char **corpus, size_t n_corpus, struct err *e)
{
    const struct args *a = r->a;
    const struct engine engine = {.device = a->device, .isa = a->isa, .threads = a->threads};
    if (engine_open(&engine, &r->backend, e) || file_make_folder(a->out, e) ||
        (!r->rank && file_lock_folder(a->out, e) < 0) || open_init(r, e) ||
        read_corpus(r, corpus, n_corpus, e))
        return -1;
    if (make_trainer(r, e))
        return -1;
    const struct posterior_fit fit = {(size_t)a->vi_steps, a->vi_rate,
                                      rng_derive((uint64_t)a->common.seed, "latents")};
    trainer_fit(r->trainer, &fit);
    r->state = mem_format("%s/train.state", a->out);
    r->note = note_of(r);
    return 0;
}

/* Resumes from a saved state if there is one. It must belong to the same command. */
static int resume(struct setup *r, struct err *e)
{
    int bad = 0;
    if (!r->rank && file_exists(r->state)) {
        json_t *note;
        if (trainer_restore(r->trainer, r->state, &note, e))
            return -1;
        bad = training_note_check(r->note, note, r->state, e);
        json_decref(note);
        if (!bad)
            log_note(&r->log, "resuming after step %lld", (long long)trainer_step(r->trainer));
    }
    if (!bad && r->a->ranks > 1)
        trainer_share(r->trainer, ranks_share, NULL);
    return bad;
}

/* The members that every record begins with. */
static json_t *about_of(const struct setup *r)
{
    const struct args *a = r->a;
    return json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:I, s:I, s:I, s:I}", "model",
                     r->config.name, "arch", r->config.family->name, "paradigm",
                     config_paradigm_name(r->config.paradigm), "device", r->backend->ops->name,
                     "precision", a->precision, "qat",
                     a->qat, "loss_form", a->loss, "checkpoint_every", (json_int_t)a->every,
                     "loaders", (json_int_t)a->how.loaders, "parts", (json_int_t)a->parts,
                     "ranks", (json_int_t)a->ranks);
}

static int train(struct setup *r, struct err *e)
{
    json_t *about = about_of(r);
    const struct training t = {
        .how = &r->a->how, .config = &r->config, .backend = r->backend, .trainer = r->trainer,
        .corpus = &r->corpus, .valid = &r->valid, .log = &r->log,
        .progress = r->a->common.progress, .records = &r->records, .about = about,
        .planned_bytes = r->need.parameters + r->need.activations, .state = r->state,
        .note = r->note, .saves = !r->rank};
    int bad = training_run(&t, e);
    json_decref(about);
    return bad;
}

static const float *values(void *ctx, enum role role, size_t layer)
{
    return trainer_values(ctx, role, layer);
}

static int finish(struct setup *r, struct err *e)
{
    if (r->rank)
        return 0;
    char *origin = mem_format("%s/" PROVENANCE, r->a->out); /* it describes the old weights */
    unlink(origin);
    free(origin);
    int64_t times = r->config.latents ? r->a->vi_steps + 1 : 1;
    const struct history_line line = {r->config.name, r->config.family->name, r->a->how.steps,
                                      r->a->how.steps * r->a->how.rows * times};
    if (checkpoint_save(&r->config, r->a->out, r->a->dtype, values, r->trainer, e) ||
        history_write(r->a->out, r->from.tokenizer ? r->a->init : r->from.folder, &line, e))
        return -1;
    unlink(r->state);
    log_note(&r->log, "%s: %zu parameters written", r->a->out, config_parameters(&r->config));
    return 0;
}

static void close_run(struct setup *r)
{
    trainer_free(r->trainer);
    if (r->a->init)
        checkpoint_close(&r->from);
    backend_close(r->backend);
    documents_free(&r->corpus);
    documents_free(&r->valid);
    vocabulary_free(&r->words);
    json_decref(r->note);
    free(r->state);
}

static void check(const struct tool *t, const struct args *a, int operands)
{
    if (!a->out || operands < 1 || (a->from && a->init))
        opt_usage(t, "expected --out FOLDER, a corpus file, and at most one of --init and --from");
    if (!a->from && !strcmp(a->arch, "a2d"))
        opt_usage(t, "--arch a2d: expected --from MODEL, a model that writes left to right");
    if (a->width % a->heads || a->width / a->heads % 2 || a->heads % a->kv_heads)
        opt_usage(t, "--heads must divide --width into even heads, --kv-heads must divide --heads");
    if (a->ranks > 1 && a->parts > 1 && a->parts != a->ranks)
        opt_usage(t, "expected --parts or --ranks, not both: each process takes one part");
    if (a->how.min_len > a->how.max_len || a->how.max_len > a->how.rows)
        opt_usage(t, "expected --min-len <= --max-len <= --rows");
}

/* Joins the other processes. Each takes a part of every batch; only rank 0 prints and writes. */
static void join(struct setup *r, struct args *a)
{
    struct err e = {0};
    if (ranks_join((size_t)a->ranks, &e))
        err_die(r->log.tool, &e);
    a->parts = a->ranks;
    r->rank = ranks_me();
    if (!r->rank)
        return;
    a->common.output = "/dev/null";
    a->common.progress = "never";
    r->log.level = 0;
}

int main(int argc, char **argv)
{
    struct args a = {.common = COMMON_DEFAULTS, .arch = "llada", .device = "cpu", .isa = "auto",
                     .precision = "f32", .dtype = "BF16", .loss = "fused", .qat = "none",
                     .parts = 1, .ranks = 1, .vocab = 1024, .width = 256, .layers = 4, .heads = 8,
                     .kv_heads = 8, .ffn = 704, .context = 512, .latents = 4, .mixer = "swa",
                     .window = 256, .rank = 32, .vi_steps = 16, .vi_rate = POSTERIOR_RATE,
                     .times = 4, .whole = 0.5,
                     .how = {.steps = 8000, .rows = 2048, .min_len = 72, .max_len = 128,
                             .rate = 2e-3, .decay = 0.1, .clip = 1, .warmup = 200, .report = 50,
                             .save = 500}};
    struct opt table[OPTIONS_MOST];
    options(table, &a);
    const struct tool tool = {"train-lm",
                              "corpus records in, a small checkpoint and its loss curve out",
                              examples, notes, table, NEEDS_LATER};
    int first = opt_parse(&tool, argc, argv);
    check(&tool, &a, argc - first);
    if (a.ranks == 1) /* an MPI has files, sockets and programs of its own */
        opt_contain(&tool, argv + first);
    a.init = a.from ? a.from : a.init;
    a.every = a.every || !a.checkpointing ? a.every : 1;
    struct setup r = {.a = &a, .options = table,
                      .log = {tool.name, a.common.quiet ? 0 : 1 + a.common.verbose}};
    struct err e = {0};
    if (a.ranks > 1)
        join(&r, &a);
    if (start(&r, argv + first, (size_t)(argc - first), &e) || resume(&r, &e) ||
        rec_open(&r.records, &a.common, tool.name, argc, argv, NULL, &e))
        err_die(tool.name, &e);
    int bad = train(&r, &e) || finish(&r, &e);
    bad = bad || rec_close(&r.records, "ok", &e);
    if (bad)
        rec_abandon(&r.records);
    close_run(&r);
    if (bad)
        err_die(tool.name, &e);
    if (a.ranks > 1)
        ranks_leave();
    return EXIT_OK;
}
