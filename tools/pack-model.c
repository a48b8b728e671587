/* pack-model - a checkpoint in, a new folder with the same model quantized out, and a record for
 * each kind of matrix: bytes before and after, and how far the values moved. Under --budget each
 * part of each layer gets a format of its own, and a record says what it would lose in which.
 *
 * The folder is filled under another name and renamed: it appears whole or not at all. Its last
 * file is SHA256SUMS, which --manifest writes for a model that is there already.
 */
#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/file.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"
#include "lib/base/out.h"
#include "lib/record/rec.h"
#include "lib/run/calibration.h"
#include "lib/run/engine.h"
#include "lib/checkpoint/manifest.h"
#include "lib/checkpoint/mix.h"
#include "lib/checkpoint/pack.h"

enum { SMALL_FILE_MAX = 128 << 20 };
/* What goes along from the source, as far as it is there. */
static const char *const copied[] = {"tokenizer.json", "tokenizer_config.json",
                                     "special_tokens_map.json", "generation_config.json",
                                     "chat_template.jinja", "chat_template.json", "LICENSE", NULL};

struct args {
    struct common common;
    struct engine engine;
    const char *quant, *out, *calibrate;
    int64_t budget, samples;
    double share;
    int manifest;
};

struct packer {
    struct args a;
    struct log log;
    struct rec_writer out;
    struct checkpoint checkpoint;
    struct pack_role role[ROLE_COUNT];
    struct mix_unit *units; /* of --budget */
    double stays, budget;   /* bytes of what no format takes; of all tensors at most */
    double dense_nats;      /* of --calibrate, a token; NAN */
    char *temp; /* the folder's name until it is whole */
};

static int has_budget(const struct args *a) { return a->budget > 0 || a->share > 0; }

/* ---- the folder ---- */

/* -1 unless the folder is absent or empty. */
static int check_absent(const struct packer *p, struct err *e)
{
    DIR *d = opendir(p->a.out);
    int n = 0;
    if (!d)
        return errno == ENOENT ? 0
                               : err_set(e, EXIT_CANNOT_CREATE, "--out %s: %s", p->a.out,
                                         strerror(errno));
    for (struct dirent *x; (x = readdir(d));)
        n += strcmp(x->d_name, ".") && strcmp(x->d_name, "..");
    closedir(d);
    if (!n)
        return 0;
    return err_set(e, EXIT_CANNOT_CREATE,
                   "--out %s: expected a folder that is new or empty, got %s", p->a.out,
                   p->checkpoint.folder && file_same(p->a.out, p->checkpoint.folder)
                       ? "that of the model itself"
                       : "one with files: name another");
}

/* "a/b/" -> "a/.b.tmp" */
static char *temp_name(const char *out)
{
    size_t n = strlen(out);
    while (n > 1 && out[n - 1] == '/')
        n--;
    size_t at = n;
    while (at > 0 && out[at - 1] != '/')
        at--;
    return mem_format("%.*s.%.*s.tmp", (int)at, out, (int)(n - at), out + at);
}

static void remove_file(const char *folder, const char *name)
{
    char *path = mem_format("%s/%s", folder, name);
    unlink(path);
    free(path);
}

/* Also what a killed process left. */
static void clear_temp(const struct packer *p)
{
    static const char *const made[] = {"model.safetensors", ".model.safetensors.tmp",
                                       "config.json", ".config.json.tmp", MANIFEST,
                                       "." MANIFEST ".tmp"};
    for (size_t i = 0; i < sizeof made / sizeof *made; i++)
        remove_file(p->temp, made[i]);
    for (const char *const *name = copied; *name; name++) {
        char *temp = mem_format(".%s.tmp", *name);
        remove_file(p->temp, *name);
        remove_file(p->temp, temp);
        free(temp);
    }
}

static int copy_file(const struct packer *p, const char *name, struct err *e)
{
    char *from = mem_format("%s/%s", p->checkpoint.folder, name);
    char *to = mem_format("%s/%s", p->temp, name);
    struct buf b = {0};
    struct out o;
    int none = access(from, F_OK) && errno == ENOENT;
    int bad = !none && (file_read(from, SMALL_FILE_MAX, &b, e) || out_open(&o, to, e));
    if (!none && !bad) {
        fwrite(b.data, 1, b.len, o.f);
        bad = out_commit(&o, e);
    }
    buf_free(&b);
    free(from);
    free(to);
    return bad ? -1 : 0;
}

/* The folder under its other name, everything in it. */
static int fill(struct packer *p, enum dtype q, struct err *e)
{
    struct pool *pool = pool_new((size_t)p->a.engine.threads);
    int bad = 0;
    clear_temp(p);
    for (const char *const *name = copied; *name && !bad; name++)
        bad = copy_file(p, *name, e);
    bad = bad || pack_checkpoint(&p->checkpoint, q, p->temp, pool, p->role, e) ||
          manifest_make(p->temp, p->a.engine.ignore_config, e);
    pool_free(pool);
    return bad ? -1 : 0;
}

static int make_folder(struct packer *p, enum dtype q, struct err *e)
{
    int lock = -1;
    p->temp = temp_name(p->a.out);
    if (check_absent(p, e) || file_make_folder(p->temp, e) ||
        (lock = file_lock_folder(p->temp, e)) < 0)
        return -1;
    int bad = fill(p, q, e);
    if (!bad && rename(p->temp, p->a.out))
        bad = err_set(e, EXIT_CANNOT_CREATE, "%s: cannot be renamed to %s: %s", p->temp, p->a.out,
                      strerror(errno));
    if (bad) {
        clear_temp(p);
        rmdir(p->temp);
    }
    close(lock);
    return bad ? -1 : 0;
}

/* ---- a format for each part ---- */

/* Losses by the likelihood of texts. */
static int calibrate(struct packer *p, struct err *e)
{
    struct calibration c = {.samples = (size_t)p->a.samples, .seed = (uint64_t)p->a.common.seed};
    struct tokenizer *t = NULL;
    struct backend *b = NULL;
    struct network n = {0};
    struct progress progress;
    progress_start(&progress, &p->log, p->a.common.progress, "parts",
                   (int64_t)mix_count(&p->checkpoint.config));
    int bad = checkpoint_tokenizer(&p->checkpoint, &t, e) ||
              calibration_read(&c, &p->a.calibrate, 1, p->a.common.limit, &p->checkpoint, t, e) ||
              engine_open(&p->a.engine, &b, e);
    if (!bad)
        engine_level(&p->a.engine, b, &p->checkpoint, &p->log);
    bad = bad || engine_load(&p->a.engine, &n, b, &p->checkpoint, e) ||
          calibration_measure(&c, &n, &p->checkpoint, p->units, &p->dense_nats, &progress, e);
    progress_end(&progress);
    network_free(&n);
    backend_close(b);
    tokenizer_free(t);
    calibration_free(&c);
    return bad ? -1 : 0;
}

static int measure_losses(struct packer *p, struct err *e)
{
    if (p->a.calibrate)
        return calibrate(p, e);
    struct pool *pool = pool_new((size_t)p->a.engine.threads);
    int bad = mix_errors(p->units, &p->checkpoint, pool, e);
    pool_free(pool);
    return bad;
}

/* The mix of the checkpoint's config under the budget. */
static int choose_mix(struct packer *p, struct err *e)
{
    struct config *c = &p->checkpoint.config;
    size_t n = mix_count(c);
    double all;
    p->units = mem_zero(n, sizeof *p->units);
    all = p->stays = mix_list(p->units, &p->checkpoint);
    for (size_t i = 0; i < n; i++)
        all += p->units[i].bytes[0];
    p->budget = p->a.budget > 0 ? (double)p->a.budget : floor(all * p->a.share);
    if (measure_losses(p, e))
        return -1;
    if (!isfinite(mix_choose(p->units, n, p->budget - p->stays)))
        return err_set(e, EXIT_BAD_USAGE,
                       "--budget: %.0f bytes do not hold %s: what stays is %.0f, and every part in "
                       "its smallest format is more than the rest", p->budget, c->name, p->stays);
    mix_apply(p->units, n, c);
    return 0;
}

/* ---- records ---- */

/* What a part would lose in a format. */
static void set_loss(json_t *j, const char *name, const struct mix_unit *u, size_t f)
{
    double loss = isfinite(u->bytes[f]) ? u->loss[f] : (double)NAN;
    rec_set_number(j, name, loss, "it cannot have that format");
}

static int write_unit(struct packer *p, const struct mix_unit *u, struct err *e)
{
    json_t *j = json_pack("{s:s, s:s, s:s, s:s}", "model", p->checkpoint.config.name, "part",
                          quantization_part_name(u->part), "dtype",
                          quantization_name(mix_format[u->chosen]), "loss_unit",
                          p->a.calibrate ? "nats_per_token" : "squared_error");
    if (u->part == PART_HEAD)
        json_object_set_new(j, "layer", json_null());
    else
        rec_set_int(j, "layer", (int64_t)u->layer);
    rec_set_int(j, "parameters", (int64_t)u->parameters);
    rec_set_int(j, "source_bytes", (int64_t)u->bytes[0]);
    rec_set_int(j, "packed_bytes", (int64_t)u->bytes[u->chosen]);
    set_loss(j, "int8_loss", u, 1);
    set_loss(j, "nf4_loss", u, 2);
    return rec_write(&p->out, "sensitivity", j, e);
}

static int write_units(struct packer *p, struct err *e)
{
    for (size_t i = 0; p->units && i < mix_count(&p->checkpoint.config); i++)
        if (write_unit(p, &p->units[i], e))
            return -1;
    return 0;
}

static const char *role_dtype(const struct packer *p, int r)
{
    static const char *const names[][2] = {{"F32", "f32"}, {"F16", "f16"}, {"BF16", "bf16"}};
    const char *stored = checkpoint_tensor(&p->checkpoint, (enum role)r, 0)->dtype;
    if (p->role[r].dtype != DTYPE_F32)
        return quantization_name(p->role[r].dtype);
    for (size_t i = 0; i < 3; i++)
        if (!strcmp(stored, names[i][0]))
            return names[i][1];
    return NULL;
}

static int write_role(struct packer *p, const struct pack_role *s, const char *role,
                      const char *dtype, struct err *e)
{
    json_t *j = json_pack("{s:s, s:s, s:s, s:s?}", "model", p->checkpoint.config.name, "quant",
                          p->units ? "mixed" : p->a.quant, "role", role, "dtype", dtype);
    rec_set_int(j, "tensors", (int64_t)s->tensors);
    rec_set_int(j, "parameters", (int64_t)s->values);
    rec_set_int(j, "source_bytes", (int64_t)s->source_bytes);
    rec_set_int(j, "packed_bytes", (int64_t)s->packed_bytes);
    rec_set_number(j, "error_rms_ratio", sqrt(s->error / s->power), "not quantized");
    if (p->units && !strcmp(role, "all")) {
        rec_set_int(j, "budget_bytes", (int64_t)p->budget);
        rec_set_number(j, "dense_nats_per_token", p->dense_nats, "no --calibrate");
    }
    return rec_write(&p->out, "pack", j, e);
}

static int write_records(struct packer *p, struct err *e)
{
    struct pack_role all = {0};
    for (int r = 0; r < ROLE_COUNT; r++) {
        const struct pack_role *s = &p->role[r];
        all.tensors += s->tensors;
        all.values += s->values;
        all.source_bytes += s->source_bytes;
        all.packed_bytes += s->packed_bytes;
        all.error += s->error;
        all.power += s->power;
        if (s->tensors && write_role(p, s, role_name(r), role_dtype(p, r), e))
            return -1;
    }
    log_note(&p->log, "%s: %.4g MB of weights -> %.4g MB in %s (%s, error %.2g %% of their size)",
             p->checkpoint.config.name, (double)all.source_bytes * 1e-6,
             (double)all.packed_bytes * 1e-6, p->a.out, p->units ? "mixed" : p->a.quant,
             100 * sqrt(all.error / all.power));
    return write_role(p, &all, "all", NULL, e);
}

/* ---- the tool ---- */

static const char examples[] =
    "pack-model --quant nf4 -m meta-llama/Llama-3.2-1B --out llama-3.2-1b-nf4 > pack.ndjson\n"
    "gen-llama -m llama-3.2-1b-nf4 --verify < prompts.ndjson\n"
    "pack-model --budget 800M --calibrate texts.ndjson -m meta-llama/Llama-3.2-1B --out mixed\n"
    "pack-model --manifest -m meta-llama/Llama-3.2-1B\n";
static const char notes[] =
    "int8  LLM.int8(): every matrix, one scale a row; the embedding only when it is the head too.\n"
    "int8-vector  the same codes, but no activation is kept out of them (vector-wise).\n"
    "nf4   4-bit NormalFloat with double quantization: the matrices of the blocks; the head in\n"
    "      int8. Rows must be whole blocks of 64 values.\n"
    "nf4-f32  the same without double quantization. fp4  the same with the 4-bit floats of\n"
    "      bitsandbytes, without double quantization, too.\n"
    "fp8   e4m3, one scale a row: the matrices that int8 takes. For a GPU.\n"
    "--budget, --budget-share: attention and feed-forward of each layer, and the head, stay as\n"
    "      they are or become int8 or nf4, so that all tensors together take no more bytes than\n"
    "      that and as little as possible is lost. What a part loses is measured with it alone\n"
    "      quantized: in likelihood, over the texts of --calibrate (a diffusion model: its bound\n"
    "      over --samples masks a text), else as the squared error of its values. Losses are\n"
    "      taken to add up; the choice is greedy, by loss for a byte, and never expected to be\n"
    "      worse than one format for all. Records of kind `sensitivity` say what was measured and\n"
    "      chosen.\n"
    "Norms and an untied embedding stay as they are. A packed model computes the same bits as its\n"
    "source loaded with --quant; it is smaller on disk and loads faster. DIR is new: nothing is\n"
    "ever changed in place. SHA256SUMS in it is for --verify of the tools that run it, and for\n"
    "sha256sum -c; --manifest writes one for a model from elsewhere, from files that you trust.\n";

static void check(struct packer *p, int bad, const struct err *e)
{
    if (!bad)
        return;
    rec_abandon(&p->out);
    err_die("pack-model", e);
}

/* What is wrong with the words, or NULL. */
static const char *usage(const struct args *a, int operands)
{
    int packs = (a->quant || has_budget(a)) && a->out && *a->out;
    if (operands)
        return "takes no operands";
    if (a->manifest && (a->quant || a->out || has_budget(a)))
        return "--manifest packs nothing: it goes without --quant, --budget and --out";
    if ((a->quant && has_budget(a)) || (a->budget > 0 && a->share > 0))
        return "one of --quant, --budget and --budget-share";
    if (a->calibrate && !has_budget(a))
        return "--calibrate goes with --budget or --budget-share";
    return a->engine.model && (packs || a->manifest)
               ? NULL
               : "-m, --quant or --budget, and --out are needed (or -m and --manifest)";
}

static int open_source(struct packer *p, enum dtype *q, struct err *e)
{
    const struct engine *g = &p->a.engine;
    if (has_budget(&p->a))
        *q = QUANT_MIXED;
    else if (!p->a.manifest && quantization_named(p->a.quant, q))
        return -1;
    return checkpoint_open_ignoring(&p->checkpoint, g->model, 0, g->ignore_config, e) ||
                   (!p->a.manifest && check_absent(p, e)) ||
                   (has_budget(&p->a) && pack_refuses(&p->checkpoint, e))
               ? -1
               : 0;
}

static int write_manifest(struct packer *p, struct err *e)
{
    if (manifest_write(&p->checkpoint, e))
        return -1;
    log_note(&p->log, "%s/" MANIFEST " written", p->checkpoint.folder);
    return 0;
}

int main(int argc, char **argv)
{
    struct packer p = {.a = {.common = COMMON_DEFAULTS, .engine = ENGINE_DEFAULTS, .samples = 8},
                       .dense_nats = NAN};
    const struct opt options[] = {
        {"model", 'm', OPT_TEXT, &p.a.engine.model, .arg = "MODEL",
         .help = "folder, or org/name in the local Hugging Face cache (needed)"},
        IGNORE_CONFIG_OPTION(p.a.engine.ignore_config),
        {"quant", 0, OPT_CHOICE, &p.a.quant, .choices = DTYPE_QUANTIZED,
         .help = "format of the matrices (this or a budget is needed)"},
        {"budget", 0, OPT_BYTES, &p.a.budget, 1, 9007199254740991.0, .arg = "BYTES",
         .help = "of all tensors, K/M/G: a format of its own for each part of each layer"},
        {"budget-share", 0, OPT_REAL, &p.a.share, 1e-6, 1, .arg = "R",
         .help = "the same as a share of the bytes of the source"},
        {"calibrate", 0, OPT_TEXT, &p.a.calibrate, .arg = "FILE",
         .help = "texts, or prompts with references, by whose likelihood parts are judged (--limit "
                 "of them)"},
        {"samples", 0, OPT_INT, &p.a.samples, 1, 100000, .arg = "N",
         .help = "masks a text for a diffusion model (8)"},
        {"device", 0, OPT_TEXT, &p.a.engine.device, .arg = "auto|ref|cpu|cuda[:N]",
         .help = "where --calibrate runs the model (auto)"},
        {"out", 0, OPT_TEXT, &p.a.out, .arg = "DIR", .help = "new folder (needed)"},
        {"manifest", 0, OPT_FLAG, &p.a.manifest,
         .help = "pack nothing: write SHA256SUMS of the model's files beside them, for --verify"},
        THREADS_OPTION(p.a.engine.threads),
        OPT_COMMON(p.a.common),
        {0}};
    const struct tool tool = {"pack-model", "a checkpoint in, a quantized one out", examples, notes,
                              options};
    int first = opt_parse(&tool, argc, argv);
    const char *wrong = usage(&p.a, first < argc);
    if (wrong)
        opt_usage(&tool, wrong);
    struct err e = {0};
    enum dtype q = QUANT_NONE;
    p.log = (struct log){tool.name, p.a.common.quiet ? 0 : 1 + p.a.common.verbose};
    json_t *about = NULL;
    if (!open_source(&p, &q, &e))
        about = checkpoint_describe(&p.checkpoint, &e);
    if (about)
        checkpoint_say(&p.checkpoint, &p.log);
    check(&p, !about || rec_open(&p.out, &p.a.common, tool.name, argc, argv,
                                 json_pack("{s:o}", "checkpoint", about), &e), &e);
    check(&p, p.a.manifest ? write_manifest(&p, &e)
                           : (has_budget(&p.a) && choose_mix(&p, &e)) ||
                                 make_folder(&p, q, &e) || write_units(&p, &e) ||
                                 write_records(&p, &e), &e);
    check(&p, rec_close(&p.out, "ok", &e), &e);
    checkpoint_close(&p.checkpoint);
    free(p.units);
    free(p.temp);
    return EXIT_OK;
}
