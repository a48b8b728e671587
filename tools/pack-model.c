/* pack-model - writes a pruned or quantized checkpoint to a new folder.
 *
 * A record for each kind of matrix has the bytes before and after, and the error of the values.
 * With --budget each part of each layer gets its own format, and a record has the loss of the part
 * in each format.
 *
 * The folder is filled under another name and then renamed, so it appears complete or not at all.
 * Its origin.json describes how the model was made. --verify-source makes the model again in a
 * temporary folder and compares. */
#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/file.h"
#include "lib/base/folder.h"
#include "lib/base/cli/log.h"
#include "lib/record/rec.h"
#include "lib/run/engine.h"
#include "lib/run/probe/format_budget.h"
#include "lib/decode/activity.h"
#include "lib/checkpoint/provenance.h"
#include "lib/checkpoint/packing/pack_record.h"

struct args {
    struct common common;
    struct engine engine;
    struct format_budget budget;
    const char *quant, *out, *calibrate, *score, *verify_source;
    double heads, ffn; /* shares to remove; negative: not given */
};

struct packer {
    struct args a;
    struct log log;
    struct rec_writer out;
    struct checkpoint checkpoint; /* the source */
    enum dtype quant;
    struct prune prune;
    int prunes;
    json_t *origin;
    struct pack_role role[ROLE_COUNT];
    struct folder folder;
};

static int has_budget(const struct args *args)
{
    return args->budget.bytes > 0 || args->budget.share > 0;
}

/* ---- the folder ---- */

/* Returns -1 unless the folder is absent or empty. */
static int check_absent(const struct packer *packer, struct err *e)
{
    if (packer->checkpoint.folder && file_same(packer->a.out, packer->checkpoint.folder))
        return err_set(e, EXIT_CANNOT_CREATE, "--out %s: expected a folder that is new or empty, "
                       "got that of the model itself", packer->a.out);
    return folder_check_new(packer->a.out, "--out", e);
}

/* Writes all files of the folder. */
static int fill(struct packer *packer, struct err *e)
{
    struct pool *pool = pool_new((size_t)packer->a.engine.threads);
    const char *folder = packer->folder.temp;
    int bad = pack_along(&packer->checkpoint, folder, e) ||
              pack_checkpoint(&packer->checkpoint, packer->quant,
                              packer->prunes ? &packer->prune : NULL, folder, pool, packer->role,
                              e) ||
              provenance_write(packer->origin, folder, e);
    pool_free(pool);
    return bad ? -1 : 0;
}

/* ---- pruning ---- */

/* Records the outputs of heads and units, always on the CPU: GPU memory cannot be read directly. */
static int record_outputs(struct packer *packer, struct activity *activity, struct err *e)
{
    struct engine engine = packer->a.engine;
    struct backend *backend = NULL;
    struct network n = {0};
    struct tokenizer *tokenizer = NULL;
    struct rec_reader *in = rec_read_open(&packer->a.calibrate, 1, e);
    engine.device = "cpu";
    int bad = !in || checkpoint_tokenizer(&packer->checkpoint, &tokenizer, e) ||
              engine_open(&engine, &backend, e) ||
              network_load(&n, backend, &packer->checkpoint, &(struct precision){0}, e) ||
              activity_run(activity, &n, tokenizer, in, packer->a.common.limit,
                           (uint64_t)packer->a.common.seed, e);
    if (!bad)
        log_note(&packer->log, "calibrated with %lld texts, %lld rows", (long long)activity->texts,
                 (long long)activity->rows);
    network_free(&n);
    backend_close(backend);
    tokenizer_free(tokenizer);
    rec_read_close(in);
    return bad ? -1 : 0;
}

/* A share too small to remove anything is a warning, not an error: sweeps begin small. */
static void say_sizes(const struct packer *packer)
{
    const struct config *from = &packer->checkpoint.config, *to = &packer->prune.config;
    if ((packer->a.heads > 0 && to->heads == from->heads) ||
        (packer->a.ffn > 0 && to->ffn == from->ffn))
        log_warn(&packer->log, "W115",
                 "a share is below the smallest part that can be removed: of %zu "
                 "heads in %zu groups %zu stay, of %zu hidden units %zu stay", from->heads,
                 from->kv_heads, to->heads, from->ffn, to->ffn);
}

static int choose(struct packer *packer, struct err *e)
{
    const struct config *config = &packer->checkpoint.config;
    enum prune_score how = prune_score_named(packer->a.score);
    struct activity seen = {0};
    json_t *texts = NULL;
    int bad = how == PRUNE_ACTIVATION &&
              (rec_inputs(&packer->a.calibrate, 1, &texts, e) || record_outputs(packer, &seen, e));
    struct prune_values score = prune_values_make(config);
    bad = bad || prune_scores(&packer->checkpoint, how, &seen.mean, &score, e);
    if (!bad) {
        prune_choose(&packer->prune, config, &score);
        provenance_prune(packer->origin, config, &packer->prune, packer->a.score,
                         fmax(packer->a.heads, 0), fmax(packer->a.ffn, 0), json_incref(texts));
        say_sizes(packer);
    }
    json_decref(texts);
    prune_values_free(&score);
    activity_free(&seen);
    return bad ? -1 : 0;
}

static int make(struct packer *packer, struct err *e)
{
    if ((packer->prunes && choose(packer, e)) || folder_begin(&packer->folder, packer->a.out, e))
        return -1;
    if (!fill(packer, e))
        return folder_commit(&packer->folder, e);
    folder_abandon(&packer->folder);
    return -1;
}

/* ---- --verify-source ---- */

/* Compares every file of the packed model with the file of the model that was made again. */
static int compare_all(const struct packer *packer, struct err *e)
{
    struct checkpoint packed;
    const struct checkpoint_opening how = {.ignore = packer->a.engine.ignore_config};
    if (checkpoint_open_with(&packed, packer->a.out, &how, e))
        return -1;
    int bad = provenance_compare(&packed, packer->folder.temp, e);
    checkpoint_close(&packed);
    return bad ? -1 : 0;
}

/* Reads the format of a packed model. If it is "mixed", config.json of the model has the mix. */
static int read_format(struct packer *packer, const char *quant, struct err *e)
{
    struct config packed;
    struct family_extras extras = {.ignore = packer->a.engine.ignore_config};
    if (strcmp(quant, quantization_name(QUANT_MIXED)) && !quantization_named(quant, &packer->quant))
        return 0;
    int bad = family_load(&packed, packer->a.out, &extras, e);
    family_extras_free(&extras);
    if (bad || packed.quant != QUANT_MIXED || strcmp(quant, quantization_name(QUANT_MIXED)))
        return err_set(e, EXIT_BAD_DATA, "%s/" PROVENANCE ": quant: expected none|" DTYPE_QUANTIZED
                       "|mixed, as in config.json, got \"%.40s\"", packer->a.out, quant);
    packer->quant = QUANT_MIXED;
    memcpy(packer->checkpoint.config.mix, packed.mix, sizeof packed.mix);
    return 0;
}

static int verify(struct packer *packer, struct err *e)
{
    const char *quant = json_string_value(json_object_get(packer->origin, "quant"));
    int pruned = 0;
    if (read_format(packer, quant, e) ||
        provenance_verify(packer->origin, &packer->checkpoint, e) ||
        (pruned = provenance_pruning(packer->origin, &packer->checkpoint.config, &packer->prune,
                                     e)) < 0)
        return -1;
    packer->prunes = pruned;
    if (folder_begin(&packer->folder, packer->a.out, e))
        return -1;
    int bad = fill(packer, e) || compare_all(packer, e);
    folder_abandon(&packer->folder);
    if (bad)
        return -1;
    log_note(&packer->log,
             "%s: the source %s is unchanged, and packing it again gives the same bytes",
             packer->a.out, packer->checkpoint.folder);
    return 0;
}

/* ---- records ---- */

static int write_units(struct packer *packer, struct err *e)
{
    const char *loss_unit = packer->a.calibrate ? "nats_per_token" : "squared_error";
    const struct config *config = &packer->checkpoint.config;
    const struct mix_unit *units = packer->a.budget.units;
    for (size_t i = 0; units && i < mix_count(config); i++)
        if (rec_write(&packer->out, "sensitivity", pack_record_unit(config, &units[i], loss_unit),
                      e))
            return -1;
    return 0;
}

/* Writes a record with the shapes of the new network, read from its folder, and of the source. */
static int write_prune(struct packer *packer, const struct pack_role *all, struct err *e)
{
    const struct config *from = &packer->checkpoint.config;
    struct config to;
    struct family_extras extras = {.ignore = packer->a.engine.ignore_config};
    int bad = family_load(&to, packer->a.out, &extras, e);
    family_extras_free(&extras);
    if (bad)
        return -1;
    json_t *j = pack_record_prune(from, &to, all);
    json_object_set_new(j, "score", json_string(packer->a.score));
    json_object_set_new(j, "quant", json_string(quantization_name(packer->quant)));
    rec_set_number(j, "heads_share", fmax(packer->a.heads, 0), "");
    rec_set_number(j, "ffn_share", fmax(packer->a.ffn, 0), "");
    json_object_set(j, "source_files", json_object_get(packer->origin, "files"));
    log_note(&packer->log,
             "%s: kept %zu of %zu heads, %zu of %zu key heads, %zu of %zu hidden units; "
             "removed %.1f %% of the parameters", to.name, to.heads, from->heads, to.kv_heads,
             from->kv_heads, to.ffn, from->ffn, 100 * rec_number(j, "removed_ratio"));
    return rec_write(&packer->out, "prune", j, e);
}

/* Writes the record of the sum over all roles. */
static int write_all(struct packer *packer, const struct pack_role *all, struct err *e)
{
    json_t *j = pack_record_all(&packer->checkpoint, packer->quant, all);
    const struct format_budget *budget = &packer->a.budget;
    if (budget->units) {
        rec_set_int(j, "budget_bytes", (int64_t)budget->limit);
        rec_set_number(j, "dense_nats_per_token", budget->dense_nats, "no --calibrate");
        rec_set_number(j, "trade_gain", budget->gain.value, "no --calibrate");
        rec_set_number(j, "trade_gain_lo", budget->gain.lo, "fewer than two texts");
        rec_set_number(j, "trade_gain_hi", budget->gain.hi, "fewer than two texts");
    }
    return rec_write(&packer->out, "pack", j, e);
}

static int write_records(struct packer *packer, struct err *e)
{
    const struct pack_role all = pack_sum(packer->role);
    const struct checkpoint *model = &packer->checkpoint;
    if (packer->prunes && write_prune(packer, &all, e))
        return -1;
    for (int role = 0; role < ROLE_COUNT; role++)
        if (packer->role[role].tensors &&
            rec_write(&packer->out, "pack",
                      pack_record_role(model, packer->quant, &packer->role[role], (enum role)role),
                      e))
            return -1;
    if (packer->quant != QUANT_NONE)
        log_note(&packer->log,
                 "%s: %.4g MB of weights -> %.4g MB in %s (%s, error %.2g %% of their "
                 "size)", model->config.name, (double)all.source_bytes * 1e-6,
                 (double)all.packed_bytes * 1e-6, packer->a.out, quantization_name(packer->quant),
                 100 * sqrt(all.error / all.power));
    return write_all(packer, &all, e);
}

/* ---- the tool ---- */

static const char examples[] =
    "pack-model --quant nf4 -m meta-llama/Llama-3.2-1B --out llama-3.2-1b-nf4\n"
    "pack-model --prune-heads 0.25 --prune-ffn 0.2 --calibrate t.ndjson -m DIR \\\n"
    "    --out small\n"
    "pack-model --budget 800M --calibrate texts.ndjson -m DIR --out mixed\n"
    "pack-model --verify-source DIR -m small\n";
static const char notes[] =
    "--out is a new folder: nothing is ever changed in place. A packed model computes\n"
    "the same bits as its source loaded with --quant; it is smaller on disk and loads\n"
    "faster. Norms and an untied embedding are never quantized.\n"
    "The new folder has origin.json: the SHA-256 of the source's files, the format\n"
    "and the pruning. --verify-source compares the source with origin.json, packs it\n"
    "again and compares every file.\n"
    "\n"
    "Formats of --quant:\n"
    "  int8         LLM.int8(): every matrix, one scale a row; the embedding only if\n"
    "               it is the head too\n"
    "  int8-vector  the same codes, but outliers of the activations are quantized too\n"
    "               (vector-wise)\n"
    "  nf4          4-bit NormalFloat with double quantization: the matrices of the\n"
    "               blocks; the head in int8. Rows must be whole blocks of 64 values.\n"
    "  nf4-f32      nf4 without double quantization\n"
    "  fp4          nf4-f32 with the 4-bit floats of bitsandbytes\n"
    "  q4           4-bit integers in blocks of 64 values, activations in int8; not\n"
    "               for a GPU\n"
    "  fp8          e4m3, one scale a row: the matrices that int8 takes; for a GPU\n"
    "\n"
    "--budget, --budget-share: the attention and the feed-forward of each layer, and\n"
    "the head, stay as they are or become int8 or nf4, so that all tensors fit the\n"
    "budget and the loss is small. The loss of a part is measured with this part\n"
    "alone quantized: as likelihood over the texts of --calibrate (a diffusion model:\n"
    "its bound over --samples masks a text), else as the squared error of its values.\n"
    "Losses are assumed to add up. The choice is greedy, by loss per byte, and is\n"
    "never expected to be worse than one format for all. With texts the mix\n"
    "starts from the largest format that fits for all parts, and gives some parts\n"
    "more bits. A mix that also gives some parts fewer bits is used only if it loses\n"
    "less on texts that did not choose it (each half of the texts chooses for the\n"
    "other). Records of kind `sensitivity` have what was measured and chosen;\n"
    "`trade_gain` is the expected gain.\n"
    "\n"
    "--prune-heads, --prune-ffn: every layer chooses its own heads and units and\n"
    "loses equally many, because config.json has one number for all layers. With\n"
    "grouped queries either every group loses the same number of heads, or whole\n"
    "groups go with their key head, whichever is nearer to the share. FFN widths stay\n"
    "multiples of 64 (of less in tiny models). --prune-score: measure of importance;\n"
    "the least important parts go first:\n"
    "  activation  rms of the output of a unit or head on the first --limit texts of\n"
    "              --calibrate, times the norm of the weights that read it\n"
    "  gate, l2    norms of weights alone. gate: of gate, up and down; l2: of up and\n"
    "              down. For heads both are the norms of values and output\n"
    "  first       the index: a baseline that knows nothing of the model\n"
    "With --quant the pruned model is then quantized. A pruned LLaDA has head_dim in\n"
    "its config.json; the publishers' own code does not read it.\n";

static void check(struct packer *packer, int bad, const struct err *e)
{
    if (!bad)
        return;
    rec_abandon(&packer->out);
    err_die("pack-model", e);
}

/* Returns the error in the command line, or NULL. */
static const char *usage(const struct args *args, int operands)
{
    const int prunes = args->heads >= 0 || args->ffn >= 0;
    const int seen = prunes && prune_score_named(args->score) == PRUNE_ACTIVATION;
    const int packs = prunes || args->quant || has_budget(args);
    if (operands)
        return "takes no operands";
    if (args->verify_source && (packs || args->out))
        return "--verify-source packs nothing: it excludes --quant, --budget, --prune-heads, "
               "--prune-ffn and --out";
    if ((args->quant && has_budget(args)) || (args->budget.bytes > 0 && args->budget.share > 0))
        return "expected only one of --quant, --budget and --budget-share";
    if (prunes && has_budget(args))
        return "--prune-heads and --prune-ffn exclude a budget: prune first, then pack the result";
    if (args->calibrate && !has_budget(args) && !seen)
        return "--calibrate needs --budget, --budget-share or --prune-score activation";
    if (args->engine.model && args->verify_source)
        return NULL;
    if (!args->engine.model || !args->out || !*args->out || !packs)
        return "-m, --out and one of --quant, --budget, --prune-heads and --prune-ffn are needed "
               "(or -m and --verify-source)";
    return seen && !args->calibrate ? "--prune-score activation needs --calibrate FILE" : NULL;
}

/* Returns -1 if the model cannot run the texts of --calibrate by itself. */
static int check_calibration(const struct packer *packer, struct err *e)
{
    const struct config *config = &packer->checkpoint.config;
    return packer->a.calibrate && config->taps
               ? err_set(e, EXIT_BAD_DATA, "--calibrate: %s has no embedding of its own, so it "
                         "runs no text alone: expected no --calibrate", config->name)
               : 0;
}

/* Opens the source to pack. */
static int open_source(struct packer *packer, struct err *e)
{
    const struct args *args = &packer->a;
    const struct engine *engine = &args->engine;
    packer->prunes = args->heads >= 0 || args->ffn >= 0;
    if (has_budget(args))
        packer->quant = QUANT_MIXED;
    else if (args->quant && quantization_named(args->quant, &packer->quant))
        return -1;
    const struct checkpoint_opening how = {.ignore = engine->ignore_config};
    return checkpoint_open_with(&packer->checkpoint, engine->model, &how, e) ||
                   check_absent(packer, e) || pack_refuses(&packer->checkpoint, e) ||
                   check_calibration(packer, e) ||
                   (packer->prunes && prune_settle(&packer->prune, &packer->checkpoint.config,
                                                   fmax(args->heads, 0), fmax(args->ffn, 0), e))
               ? -1
               : 0;
}

/* Opens the source of a packed model. */
static int open_packed(struct packer *packer, struct err *e)
{
    const struct engine *engine = &packer->a.engine;
    packer->a.out = engine->model;
    packer->origin = provenance_read(engine->model, e);
    const struct checkpoint_opening how = {.ignore = engine->ignore_config};
    return !packer->origin || checkpoint_open_with(&packer->checkpoint, packer->a.verify_source,
                                                   &how, e)
               ? -1
               : 0;
}

static int choose_mix(struct packer *packer, struct err *e)
{
    struct args *args = &packer->a;
    args->budget.texts = args->calibrate;
    return format_budget_choose(&args->budget, &packer->checkpoint, &args->engine, &args->common,
                                &packer->log, e);
}

static int work(struct packer *packer, struct err *e)
{
    if (packer->a.verify_source)
        return verify(packer, e);
    return (has_budget(&packer->a) && choose_mix(packer, e)) || make(packer, e) ||
                   write_units(packer, e) || write_records(packer, e)
               ? -1
               : 0;
}

static void close_all(struct packer *packer)
{
    checkpoint_close(&packer->checkpoint);
    prune_free(&packer->prune);
    json_decref(packer->origin);
    format_budget_free(&packer->a.budget);
}

enum { OPTIONS_MOST = 32 };
static void options(struct opt *out, struct args *args)
{
    const struct opt table[] = {
        {"model", 'm', OPT_TEXT, &args->engine.model, .arg = "MODEL",
         .help = "source: folder, or org/name in the local Hugging Face cache"},
        IGNORE_CONFIG_OPTION(args->engine.ignore_config),
        {"out", 0, OPT_TEXT, &args->out, .arg = "DIR", .writes = WRITES_IT,
         .help = "new folder for the packed model"},
        {"quant", 0, OPT_CHOICE, &args->quant, .choices = DTYPE_QUANTIZED,
         .help = "number format of the matrices"},
        {"budget", 0, OPT_BYTES, &args->budget.bytes, 1, 9007199254740991.0, .arg = "BYTES",
         .help = "bytes of all tensors, K/M/G; each part of each layer gets its own format"},
        {"budget-share", 0, OPT_REAL, &args->budget.share, 1e-6, 1, .arg = "R",
         .help = "--budget as a share of the bytes of the source"},
        {"prune-heads", 0, OPT_REAL, &args->heads, 0, 1, .arg = "SHARE",
         .help = "remove up to this share of the query heads of every layer"},
        {"prune-ffn", 0, OPT_REAL, &args->ffn, 0, 1, .arg = "SHARE",
         .help = "remove up to this share of the hidden units of every layer"},
        {"prune-score", 0, OPT_CHOICE, &args->score, .choices = PRUNE_SCORES,
         .help = "measure of how much a head or unit matters (activation)"},
        {"calibrate", 0, OPT_TEXT, &args->calibrate, .arg = "FILE",
         .help = "texts, or prompts with references: --budget and --prune-score measure the "
                 "model on them (on the first --limit of them)"},
        {"samples", 0, OPT_INT, &args->budget.samples, 1, 100000, .arg = "N",
         .help = "with --budget and a diffusion model: masks drawn for each text (8)"},
        {"device", 0, OPT_TEXT, &args->engine.device, .arg = "auto|ref|cpu|cuda[:N]",
         .help = "back end that runs the model for --budget (auto); pruning uses the CPU"},
        {"verify-source", 0, OPT_TEXT, &args->verify_source, .arg = "SOURCE",
         .help = "only check that -m was made from SOURCE, unchanged, and from nothing else"},
        THREADS_OPTION(args->engine.threads),
        OPT_COMMON(args->common),
        {0}};
    static_assert(sizeof table <= OPTIONS_MOST * sizeof *table, "room for all");
    memcpy(out, table, sizeof table);
}

int main(int argc, char **argv)
{
    struct packer packer = {.a = {.common = COMMON_DEFAULTS, .engine = ENGINE_DEFAULTS,
                                  .budget.samples = 8, .score = "activation", .heads = -1,
                                  .ffn = -1},
                            .quant = QUANT_NONE};
    struct opt table[OPTIONS_MOST];
    options(table, &packer.a);
    const struct tool tool = {"pack-model", "a checkpoint in, a pruned or quantized one out",
                              examples, notes, table, NEEDS_NOTHING};
    int first = opt_parse(&tool, argc, argv);
    const char *wrong = usage(&packer.a, first < argc);
    if (wrong)
        opt_usage(&tool, "%s", wrong);
    struct err e = {0};
    packer.log = (struct log){tool.name, packer.a.common.quiet ? 0 : 1 + packer.a.common.verbose};
    json_t *about = NULL;
    if (!(packer.a.verify_source ? open_packed : open_source)(&packer, &e))
        about = checkpoint_describe(&packer.checkpoint, &e);
    if (about) {
        checkpoint_say(&packer.checkpoint, &packer.log);
        packer.origin = packer.origin ? packer.origin
                                      : provenance_make(about, quantization_name(packer.quant));
    }
    check(&packer, !about || rec_open(&packer.out, &packer.a.common, tool.name, argc, argv,
                                      json_pack("{s:o}", "checkpoint", about), &e), &e);
    check(&packer, work(&packer, &e), &e);
    check(&packer, rec_close(&packer.out, "ok", &e), &e);
    close_all(&packer);
    return EXIT_OK;
}
