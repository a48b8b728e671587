/* pack-model - a checkpoint in, a new folder with the same model quantized out, and a record for
 * each kind of matrix: bytes before and after, and how far the values moved.
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
#include "lib/run/engine.h"
#include "lib/checkpoint/manifest.h"
#include "lib/checkpoint/pack.h"

enum { SMALL_FILE_MAX = 128 << 20 };
/* What goes along from the source, as far as it is there. */
static const char *const copied[] = {"tokenizer.json", "tokenizer_config.json",
                                     "special_tokens_map.json", "generation_config.json",
                                     "chat_template.jinja", "chat_template.json", "LICENSE", NULL};

struct args {
    struct common common;
    const char *model, *ignore_config, *quant, *out;
    int64_t threads;
    int manifest;
};

struct packer {
    struct args a;
    struct log log;
    struct rec_writer out;
    struct checkpoint checkpoint;
    struct pack_role role[ROLE_COUNT];
    char *temp; /* the folder's name until it is whole */
};

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
    struct pool *pool = pool_new((size_t)p->a.threads);
    int bad = 0;
    clear_temp(p);
    for (const char *const *name = copied; *name && !bad; name++)
        bad = copy_file(p, *name, e);
    bad = bad || pack_checkpoint(&p->checkpoint, q, p->temp, pool, p->role, e) ||
          manifest_make(p->temp, p->a.ignore_config, e);
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

/* ---- records ---- */

static const char *role_dtype(const struct packer *p, int r)
{
    static const char *const names[][2] = {{"F32", "f32"}, {"F16", "f16"}, {"BF16", "bf16"}};
    const char *stored = checkpoint_tensor(&p->checkpoint, (enum role)r, 0)->dtype;
    if (p->role[r].dtype != DTYPE_F32)
        return dtype_info[p->role[r].dtype].name;
    for (size_t i = 0; i < 3; i++)
        if (!strcmp(stored, names[i][0]))
            return names[i][1];
    return NULL;
}

static int write_role(struct packer *p, const struct pack_role *s, const char *role,
                      const char *dtype, struct err *e)
{
    json_t *j = json_pack("{s:s, s:s, s:s, s:s?}", "model", p->checkpoint.config.name, "quant",
                          p->a.quant, "role", role, "dtype", dtype);
    rec_set_int(j, "tensors", (int64_t)s->tensors);
    rec_set_int(j, "parameters", (int64_t)s->values);
    rec_set_int(j, "source_bytes", (int64_t)s->source_bytes);
    rec_set_int(j, "packed_bytes", (int64_t)s->packed_bytes);
    rec_set_number(j, "error_rms_ratio", sqrt(s->error / s->power), "not quantized");
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
             (double)all.packed_bytes * 1e-6, p->a.out, p->a.quant,
             100 * sqrt(all.error / all.power));
    return write_role(p, &all, "all", NULL, e);
}

/* ---- the tool ---- */

static const char examples[] =
    "pack-model --quant nf4 -m meta-llama/Llama-3.2-1B --out llama-3.2-1b-nf4 > pack.ndjson\n"
    "gen-llama -m llama-3.2-1b-nf4 --verify < prompts.ndjson\n"
    "pack-model --manifest -m meta-llama/Llama-3.2-1B\n";
static const char notes[] =
    "int8  LLM.int8(): every matrix, one scale a row; the embedding only when it is the head too.\n"
    "nf4   4-bit NormalFloat with double quantization: the matrices of the blocks; the head in\n"
    "      int8. Rows must be whole blocks of 64 values.\n"
    "fp8   e4m3, one scale a row: the matrices that int8 takes. For a GPU.\n"
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
    int packs = a->quant && a->out && *a->out;
    if (operands)
        return "takes no operands";
    if (a->manifest && (a->quant || a->out))
        return "--manifest packs nothing: it goes without --quant and --out";
    return a->model && (packs || a->manifest) ? NULL
                                              : "-m, --quant and --out are needed (or -m and "
                                                "--manifest)";
}

static int open_source(struct packer *p, enum dtype *q, struct err *e)
{
    return (!p->a.manifest && quantization_named(p->a.quant, q)) ||
                   checkpoint_open_ignoring(&p->checkpoint, p->a.model, 0, p->a.ignore_config, e) ||
                   (!p->a.manifest && check_absent(p, e))
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
    struct packer p = {.a = {.common = COMMON_DEFAULTS}};
    const struct opt options[] = {
        {"model", 'm', OPT_TEXT, &p.a.model, .arg = "MODEL",
         .help = "folder, or org/name in the local Hugging Face cache (needed)"},
        IGNORE_CONFIG_OPTION(p.a.ignore_config),
        {"quant", 0, OPT_CHOICE, &p.a.quant, .choices = DTYPE_QUANTIZED,
         .help = "format of the matrices (needed)"},
        {"out", 0, OPT_TEXT, &p.a.out, .arg = "DIR", .help = "new folder (needed)"},
        {"manifest", 0, OPT_FLAG, &p.a.manifest,
         .help = "pack nothing: write SHA256SUMS of the model's files beside them, for --verify"},
        THREADS_OPTION(p.a.threads),
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
                           : make_folder(&p, q, &e) || write_records(&p, &e), &e);
    check(&p, rec_close(&p.out, "ok", &e), &e);
    checkpoint_close(&p.checkpoint);
    free(p.temp);
    return EXIT_OK;
}
