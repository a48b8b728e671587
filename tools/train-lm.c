/* train-lm - trains a small model; writes a checkpoint in the Hugging Face layout and loss records.
 *
 * The state is saved during training. A resumed training computes the same numbers, because a batch
 * is a function of seed and step (lib/train/documents.h). lib/train/training.h has the loop. */
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
static size_t shape_options(struct opt *options, struct args *to)
{
    const struct opt table[] = {
        {.type = OPT_HEADING, .name = "", .help = "Model and corpus:"},
        {"arch", 0, OPT_CHOICE, &to->arch, .choices = "llada|llama|ltm|a2d",
         .help = "model family (llada); a2d: turn the model of --from into a denoiser"},
        {"out", 0, OPT_TEXT, &to->out, .arg = "FOLDER", .writes = WRITES_IT,
         .help = "folder of the checkpoint to write (required)"},
        {"valid", 0, OPT_TEXT, &to->valid, .arg = "FILE",
         .help = "held-out records, for the validation loss"},
        {"init", 0, OPT_TEXT, &to->init, .arg = "MODEL",
         .help = "start from the weights and tokenizer of this checkpoint, any family"},
        {"from", 0, OPT_TEXT, &to->from, .arg = "MODEL",
         .help = "start from the weights, tokenizer, family and shape of this checkpoint"},
        IGNORE_CONFIG_OPTION(to->ignore_config),
        {"oversample", 0, OPT_TEXT, &to->oversample, .arg = "TASK", .rare = 1,
         .help = "task whose documents are repeated --times times"},
        {"times", 0, OPT_INT, &to->times, 1, 1000, .arg = "N", .rare = 1,
         .help = "copies of each document of --oversample (4)"},
        {"whole", 0, OPT_REAL, &to->whole, 0, 1, .arg = "R", .rare = 1,
         .help = "llada: share of rows whose prompt is masked too (0.5)"},
        {"cut", 0, OPT_REAL, &to->cut, 0, 1, .arg = "R", .rare = 1,
         .help = "llada: share of rows with masks only after a random place of the response (0)"},
        {"vocab", 0, OPT_INT, &to->vocab, 300, 65536, .arg = "N", .help = "vocabulary size (1024)"},
        {"width", 0, OPT_INT, &to->width, 8, 4096, .arg = "N",
         .help = "width of the residual stream (256)"},
        {"layers", 0, OPT_INT, &to->layers, 1, 64, .arg = "N", .help = "layers (4)"},
        {"heads", 0, OPT_INT, &to->heads, 1, 64, .arg = "N", .help = "query heads (8)"},
        {"kv-heads", 0, OPT_INT, &to->kv_heads, 1, 64, .arg = "N",
         .help = "key and value heads (8)"},
        {"ffn", 0, OPT_INT, &to->ffn, 8, 16384, .arg = "N",
         .help = "width of the feed-forward layer (704)"},
        {"context", 0, OPT_INT, &to->context, 16, 8192, .arg = "N",
         .help = "longest sequence in tokens (512)"},
        {"latents", 0, OPT_INT, &to->latents, 1, 4096, .arg = "N",
         .help = "ltm: latent vectors per layer (4)"},
        {"window", 0, OPT_INT, &to->window, 1, 8192, .arg = "N",
         .help = "ltm: attention window in tokens, including the token itself (256)"},
        {"mixer", 0, OPT_CHOICE, &to->mixer, .choices = "swa|rwkv6|rwkv7",
         .help = "ltm: attention in the window (swa) or RWKV time mixing (swa)"},
        {"rank", 0, OPT_INT, &to->rank, 1, 4096, .arg = "N", .rare = 1,
         .help = "ltm: rank of the low-rank parts of rwkv6 and rwkv7 (32)"},
        {"vi-steps", 0, OPT_INT, &to->vi_steps, 0, 1000, .arg = "N",
         .help = "ltm: steps to fit a posterior (16)"},
        {"vi-rate", 0, OPT_REAL, &to->vi_rate, 1e-9, 10, .arg = "R", .rare = 1,
         .help = "ltm: first learning rate of a fit; it falls to a tenth (0.34)"},
        {"tied", 0, OPT_FLAG, &to->tied, .help = "use the embedding as the output head"},
        {"dtype", 0, OPT_CHOICE, &to->dtype, .choices = "F32|BF16", .rare = 1,
         .help = "number format of the written weights (BF16)"}};
    memcpy(options, table, sizeof table);
    return sizeof table / sizeof *table;
}

static size_t training_options(struct opt *options, struct args *args)
{
    struct training_how *how = &args->how;
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
        {"precision", 0, OPT_CHOICE, &args->precision, .choices = "f32|bf16",
         .help = "format of the factors in matrix products; sums are f32 (f32)"},
        {"checkpoint-every", 0, OPT_INT, &args->every, 0, 64, .arg = "K",
         .help = "keep only the input of every K-th layer, recompute the rest; 0: keep all (0)"},
        {"loss", 0, OPT_CHOICE, &args->loss, .choices = "fused|whole", .rare = 1,
         .help = "compute logits by blocks of rows, or for all rows at once (fused)"},
        {"qat", 0, OPT_CHOICE, &args->qat,
         .choices = "none|int8|int8-vector|fp8|nf4|nf4-f32|fp4|q4", .rare = 1,
         .help = "train with weights rounded to this format (none)"},
        {"parts", 0, OPT_INT, &args->parts, 1, 1024, .arg = "P", .rare = 1,
         .help = "split a batch into P parts, computed in turn to save memory (1)"},
        {"ranks", 0, OPT_INT, &args->ranks, 1, 1024, .arg = "N", .rare = 1,
         .help = "processes started by mpirun -n N; each takes a part of a batch (1)"},
        {"loaders", 0, OPT_INT, &how->loaders, 0, 64, .arg = "N", .rare = 1,
         .help = "threads that prepare batches; 0: the training loop does (0)"},
        {"num-workers", 0, OPT_INT, &how->loaders, 0, 64, .arg = "N", .rare = 1,
         .help = "alias of --loaders"},
        {"gradient-checkpointing", 0, OPT_FLAG, &args->checkpointing, .rare = 1,
         .help = "alias of --checkpoint-every 1"},
        {"device", 0, OPT_TEXT, &args->device, .arg = "auto|ref|cpu|cuda[:N]",
         .help = "back end (cpu; auto: a usable GPU, else the CPU)"},
        ISA_OPTION(args->isa),
        THREADS_OPTION(args->threads),
        {"report", 0, OPT_INT, &how->report, 1, 1000000, .arg = "N",
         .help = "steps between two records (50)"},
        {"save", 0, OPT_INT, &how->save, 1, 1000000, .arg = "N", .rare = 1,
         .help = "steps between two saves of the state (500)"},
        OPT_COMMON(args->common),
        {0}};
    memcpy(options, table, sizeof table);
    return sizeof table / sizeof *table;
}

static void options(struct opt *out, struct args *args)
{
    size_t n = shape_options(out, args);
    n += training_options(out + n, args);
    assert(n <= OPTIONS_MOST);
}

struct setup {
    const struct args *a;
    const struct opt *options; /* the table of options that filled *a */
    size_t rank; /* only rank 0 writes */
    struct log log;
    struct config config;
    struct checkpoint from; /* checkpoint of --init or --from */
    struct vocabulary words;
    struct documents corpus, valid;
    struct backend *backend;
    struct trainer *trainer;
    struct trainer_need need;
    struct rec_writer records;
    char *state;  /* OUT/train.state */
    json_t *note; /* a saved state must have an equal note */
};

/* Learns the tokenizer, or takes the tokenizer of --init or --from. */
static int make_tokenizer(struct setup *run, char **texts, size_t n, struct err *e)
{
    const struct args *args = run->a;
    const int writes = !run->rank;
    if (run->rank)
        ranks_wait(); /* rank 0 makes the tokenizer */
    int bad = run->from.folder
                  ? vocabulary_take(&run->words, &run->config, args->out, &run->from,
                                    args->from != NULL, writes, e)
                  : vocabulary_learn(&run->words, &run->config, args->out,
                                     (const char *const *)texts, 2 * n, (size_t)args->vocab, writes,
                                     e);
    if (writes && args->ranks > 1)
        ranks_wait();
    return bad;
}

static int read_corpus(struct setup *run, char **corpus, size_t n_corpus, struct err *e)
{
    char **texts;
    size_t n, unique;
    if (documents_read((const char *const *)corpus, n_corpus, run->a->common.limit,
                       run->a->oversample, run->a->times, &texts, &n, &unique, e))
        return -1;
    log_note(&run->log, "%zu documents, %zu with repeats", unique, n);
    const struct config *config = &run->config;
    uint64_t seed = rng_derive((uint64_t)run->a->common.seed, "batches");
    int bad = make_tokenizer(run, texts, unique, e);
    bad = bad || documents_make(&run->corpus, run->words.tokenizer, texts, n, run->words.before,
                                config->eos[0], config->mask, seed, e);
    documents_free_texts(texts, n);
    if (!bad && run->a->valid)
        bad = documents_open(&run->valid, run->words.tokenizer, &run->a->valid, 1, 0,
                             run->words.before, config->eos[0], config->mask, 1, e);
    run->corpus.whole = run->valid.whole = run->a->whole;
    run->corpus.cut = run->a->cut;
    if (!bad)
        log_note(&run->log, "%zu tokens, vocabulary %zu, %zu parameters", run->corpus.all.n,
                 config->vocab, config_parameters(config));
    return bad;
}

/* The settings and hashes that a saved state must share. */
static json_t *note_of(const struct setup *run)
{
    static const char *const harmless[] = {
        "valid", "dtype", "checkpoint-every", "gradient-checkpointing", "loaders", "num-workers",
        "ranks", "device", /* in the hashes: */ "init", "from", "ignore-config", "limit", NULL};
    char hex[65];
    json_t *note = training_note(run->options, harmless);
    documents_hash(&run->corpus, hex);
    json_object_set_new(note, "corpus", json_string(hex));
    json_object_set_new(note, "tokenizer", json_string(tokenizer_hash(run->words.tokenizer)));
    trainer_hash(run->trainer, hex);
    json_object_set_new(note, "first weights", json_string(hex));
    json_object_set_new(note, "back end", json_string(run->backend->ops->name));
    return note;
}

static void set_shape(struct config *to, const struct args *args)
{
    family_start(to, family_named(args->arch));
    to->width = (size_t)args->width;
    to->layers = (size_t)args->layers;
    to->heads = (size_t)args->heads;
    to->kv_heads = (size_t)args->kv_heads;
    to->head_dim = to->rope_dims = (size_t)(args->width / args->heads);
    to->ffn = (size_t)args->ffn;
    to->context = (size_t)args->context;
    to->tied = args->tied;
    to->norm_eps = 1e-5;
    to->rope_theta = 10000;
    to->latents = to->paradigm == PARADIGM_LATENT ? (size_t)args->latents : 0;
    for (int i = 0; to->paradigm == PARADIGM_LATENT && i < MIXERS; i++)
        if (!strcmp(args->mixer, config_mixer_name((enum mixer)i)))
            to->mixer = (enum mixer)i;
    to->rank = config_recurs(to) ? (size_t)args->rank : 0;
    to->window = to->paradigm == PARADIGM_LATENT && !config_recurs(to) ? (size_t)args->window : 0;
}

static int open_init(struct setup *run, struct err *e)
{
    const struct args *args = run->a;
    const struct checkpoint_opening how = {.ignore = args->ignore_config};
    if (args->init && checkpoint_open_with(&run->from, args->init, &how, e))
        return -1;
    if (args->init)
        checkpoint_say(&run->from, &run->log);
    char name[HUB_NAME];
    hub_model_name(args->out, name);
    if (!args->from)
        set_shape(&run->config, args);
    else if (family_continue(&run->config, &run->from.config, name, !strcmp(args->arch, "a2d"), e))
        return -1;
    memcpy(run->config.name, name, sizeof name);
    if (!args->from && run->config.family->named) /* the folder's name may say the kind of mask */
        run->config.family->named(&run->config);
    return trainer_check(&run->config, e);
}

/* Makes the trainer that the options ask for; prints the memory it takes. */
static int make_trainer(struct setup *run, struct err *e)
{
    const struct args *args = run->a;
    const struct trainer_how how = {
        .back = {.products = strcmp(args->precision, "bf16") ? DTYPE_F32 : DTYPE_BF16,
                 .every = (size_t)args->every,
                 .whole_loss = !strcmp(args->loss, "whole")},
        .parts = (size_t)args->parts, .longest = (size_t)args->how.max_len,
        .me = run->rank, .sum = args->ranks > 1 ? ranks_sum : NULL};
    enum dtype quant = QUANT_NONE;
    if (quantization_named(args->qat, &quant) || quantization_check(quant, &run->config, e))
        return -1;
    run->need = trainer_need(&run->config, run->backend, (size_t)args->how.rows, &how, quant);
    log_note(&run->log, "%.1f MB of parameters with gradients and moments, %.1f MB of activations",
             (double)run->need.parameters / 1e6, (double)run->need.activations / 1e6);
    run->trainer = trainer_make_as(&run->config, run->backend,
                                   rng_derive((uint64_t)args->common.seed, "weights"),
                                   (size_t)args->how.rows, &how, e);
    if (!run->trainer ||
        (args->init && trainer_take(run->trainer, &run->from, &run->words.added, e)))
        return -1;
    return quant == QUANT_NONE ? 0 : trainer_quantize(run->trainer, quant, e);
}

static int start(struct setup *run, char **corpus, size_t n_corpus, struct err *e)
{
    const struct args *args = run->a;
    const struct engine engine = {
        .device = args->device, .isa = args->isa, .threads = args->threads};
    if (engine_open(&engine, &run->backend, e) || file_make_folder(args->out, e) ||
        (!run->rank && file_lock_folder(args->out, e) < 0) || open_init(run, e) ||
        read_corpus(run, corpus, n_corpus, e))
        return -1;
    if (make_trainer(run, e))
        return -1;
    const struct posterior_fit fit = {(size_t)args->vi_steps, args->vi_rate,
                                      rng_derive((uint64_t)args->common.seed, "latents")};
    trainer_fit(run->trainer, &fit);
    run->state = mem_format("%s/train.state", args->out);
    run->note = note_of(run);
    return 0;
}

/* Resumes from a saved state if there is one. It must belong to the same command. */
static int resume(struct setup *run, struct err *e)
{
    int bad = 0;
    if (!run->rank && file_exists(run->state)) {
        json_t *note;
        if (trainer_restore(run->trainer, run->state, &note, e))
            return -1;
        bad = training_note_check(run->note, note, run->state, e);
        json_decref(note);
        if (!bad)
            log_note(&run->log, "resuming after step %lld", (long long)trainer_step(run->trainer));
    }
    if (!bad && run->a->ranks > 1)
        trainer_share(run->trainer, ranks_share, NULL);
    return bad;
}

/* The members that every record begins with. */
static json_t *about_of(const struct setup *run)
{
    const struct args *args = run->a;
    return json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:I, s:I, s:I, s:I}", "model",
                     run->config.name, "arch", run->config.family->name, "paradigm",
                     config_paradigm_name(run->config.paradigm), "device", run->backend->ops->name,
                     "precision", args->precision, "qat",
                     args->qat, "loss_form", args->loss, "checkpoint_every",
                     (json_int_t)args->every, "loaders", (json_int_t)args->how.loaders, "parts",
                     (json_int_t)args->parts, "ranks", (json_int_t)args->ranks);
}

static int train(struct setup *run, struct err *e)
{
    json_t *about = about_of(run);
    const struct training training = {
        .how = &run->a->how, .config = &run->config, .backend = run->backend,
        .trainer = run->trainer, .corpus = &run->corpus, .valid = &run->valid, .log = &run->log,
        .progress = run->a->common.progress, .records = &run->records, .about = about,
        .planned_bytes = run->need.parameters + run->need.activations, .state = run->state,
        .note = run->note, .saves = !run->rank};
    int bad = training_run(&training, e);
    json_decref(about);
    return bad;
}

static const float *values(void *ctx, enum role role, size_t layer)
{
    return trainer_values(ctx, role, layer);
}

static int finish(struct setup *run, struct err *e)
{
    if (run->rank)
        return 0;
    char *origin = mem_format("%s/" PROVENANCE, run->a->out); /* describes the old weights */
    unlink(origin);
    free(origin);
    int64_t times = run->config.latents ? run->a->vi_steps + 1 : 1;
    const struct history_line line = {run->config.name, run->config.family->name, run->a->how.steps,
                                      run->a->how.steps * run->a->how.rows * times};
    if (checkpoint_save(&run->config, run->a->out, run->a->dtype, values, run->trainer, e) ||
        history_write(run->a->out, run->from.tokenizer ? run->a->init : run->from.folder, &line, e))
        return -1;
    unlink(run->state);
    log_note(&run->log, "%s: %zu parameters written", run->a->out, config_parameters(&run->config));
    return 0;
}

static void close_run(struct setup *run)
{
    trainer_free(run->trainer);
    if (run->a->init)
        checkpoint_close(&run->from);
    backend_close(run->backend);
    documents_free(&run->corpus);
    documents_free(&run->valid);
    vocabulary_free(&run->words);
    json_decref(run->note);
    free(run->state);
}

static void check(const struct tool *of, const struct args *args, int operands)
{
    if (!args->out || operands < 1 || (args->from && args->init))
        opt_usage(of, "expected --out FOLDER, a corpus file, and at most one of --init and --from");
    if (!args->from && !strcmp(args->arch, "a2d"))
        opt_usage(of, "--arch a2d: expected --from MODEL, a model that writes left to right");
    if (args->width % args->heads || args->width / args->heads % 2 || args->heads % args->kv_heads)
        opt_usage(of,
                  "--heads must divide --width into even heads, --kv-heads must divide --heads");
    if (args->ranks > 1 && args->parts > 1 && args->parts != args->ranks)
        opt_usage(of, "expected --parts or --ranks, not both: each process takes one part");
    if (args->how.min_len > args->how.max_len || args->how.max_len > args->how.rows)
        opt_usage(of, "expected --min-len <= --max-len <= --rows");
}

/* Joins the other processes. Each takes a part of every batch; only rank 0 prints and writes. */
static void join(struct setup *run, struct args *args)
{
    struct err e = {0};
    if (ranks_join((size_t)args->ranks, &e))
        err_die(run->log.tool, &e);
    args->parts = args->ranks;
    run->rank = ranks_me();
    if (!run->rank)
        return;
    args->common.output = "/dev/null";
    args->common.progress = "never";
    run->log.level = 0;
}

int main(int argc, char **argv)
{
    struct args args = {.common = COMMON_DEFAULTS, .arch = "llada", .device = "cpu", .isa = "auto",
                        .precision = "f32", .dtype = "BF16", .loss = "fused", .qat = "none",
                        .parts = 1, .ranks = 1, .vocab = 1024, .width = 256, .layers = 4,
                        .heads = 8, .kv_heads = 8, .ffn = 704, .context = 512, .latents = 4,
                        .mixer = "swa", .window = 256, .rank = 32, .vi_steps = 16,
                        .vi_rate = POSTERIOR_RATE, .times = 4, .whole = 0.5,
                        .how = {.steps = 8000, .rows = 2048, .min_len = 72, .max_len = 128,
                                .rate = 2e-3, .decay = 0.1, .clip = 1, .warmup = 200, .report = 50,
                                .save = 500}};
    struct opt table[OPTIONS_MOST];
    options(table, &args);
    const struct tool tool = {"train-lm",
                              "corpus records in, a small checkpoint and its loss curve out",
                              examples, notes, table, NEEDS_LATER};
    int first = opt_parse(&tool, argc, argv);
    check(&tool, &args, argc - first);
    if (args.ranks == 1) /* not with MPI, which needs files, sockets and programs of its own */
        opt_contain(&tool, argv + first);
    args.init = args.from ? args.from : args.init;
    args.every = args.every || !args.checkpointing ? args.every : 1;
    struct setup run = {.a = &args, .options = table,
                        .log = {tool.name, args.common.quiet ? 0 : 1 + args.common.verbose}};
    struct err e = {0};
    if (args.ranks > 1)
        join(&run, &args);
    if (start(&run, argv + first, (size_t)(argc - first), &e) || resume(&run, &e) ||
        rec_open(&run.records, &args.common, tool.name, argc, argv, NULL, &e))
        err_die(tool.name, &e);
    int bad = train(&run, &e) || finish(&run, &e);
    bad = bad || rec_close(&run.records, "ok", &e);
    if (bad)
        rec_abandon(&run.records);
    close_run(&run);
    if (bad)
        err_die(tool.name, &e);
    if (args.ranks > 1)
        ranks_leave();
    return EXIT_OK;
}
