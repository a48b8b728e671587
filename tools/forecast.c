/* forecast - the shape of a model and a data sheet in; modelled latency, throughput, memory and the
 * crossover on that machine out.
 *
 * The limits of a data sheet are multiplied by the shares of the limits that this program reached
 * where it was measured (metric records), or by stated shares. --check measures the errors. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lib/forecast/published.h"
#include "lib/analysis/records/source.h"
#include "lib/base/cli/log.h"
#include "lib/base/cli/opt.h"
#include "lib/base/mem.h"
#include "lib/base/order.h"
#include "lib/base/share.h"
#include "lib/decode/diffuse.h"
#include "lib/decode/generation.h"
#include "lib/record/rec.h"
#include "lib/record/take.h"
#include "lib/run/saving.h"

enum { MODELS_MOST = 16, VALUES_MOST = 64, TOKENS_MOST = 1 << 20 };

struct args {
    struct common common;
    const char *models, *hardware, *batch, *length, *steps, *cache, *dtype, *quant, *table;
    const char *published, *fit;
    int64_t prompt, block;
    double mfu, mbu;
    int check, claims, along;
};

struct forecast {
    struct args a;
    struct log log;
    struct rec_writer out;
    struct backend *backend;
    struct hardware_table table;
    struct roof roof;
    struct fraction_points points;
    struct along along;
    struct rec_reader *in; /* of the operands, while they are read */
    struct source source; /* the machine of these records */
    double stated[FRACTIONS];
    struct checkpoint model[MODELS_MOST];
    size_t n_models;
    struct backtest backtest;
};

/* ---- the grid ---- */

struct values { int64_t v[VALUES_MOST]; size_t n; };

static struct values list_of(const char *option, const char *text)
{
    struct values l;
    int n = opt_list(text, l.v, VALUES_MOST, 1, TOKENS_MOST);
    if (n < 0) {
        struct err e = {0};
        err_set(&e, EXIT_BAD_USAGE, "--%s: expected up to %d numbers from 1 to %d, got '%.80s'",
                option, VALUES_MOST, TOKENS_MOST, text);
        err_die("forecast", &e);
    }
    l.n = (size_t)n;
    return l;
}

static int write_banded(struct forecast *f, json_t *r, const char *key, struct err *e)
{
    band_set(&f->backtest.band, r, key, key);
    return rec_write(&f->out, "forecast", r, e);
}

/* Writes all forecasts for one machine, one length and one batch size. */
static int write_cell(struct forecast *f, struct forecast_place *places, struct forecast_batch b,
                      const struct values *steps, struct err *e)
{
    for (size_t i = 0; i < f->n_models; i++)
        for (size_t k = 0; k < (forecast_is_canvas(&places[i].n) ? steps->n : 1); k++) {
            b.steps = (size_t)steps->v[k];
            const struct diffuse how = {.gen_length = b.length, .block_length = b.block,
                                        .steps = b.steps, .cache = b.cache};
            const struct network *n = &places[i].n;
            if ((forecast_is_canvas(n) && diffuse_check(&how, &n->config, e)) ||
                write_banded(f, forecast_point(&places[i], &b), "e2e_ns", e))
                return -1;
        }
    for (size_t i = 0; i < f->n_models; i++)
        for (size_t k = 0; k < f->n_models; k++)
            if (forecast_is_canvas(&places[i].n) && !forecast_is_canvas(&places[k].n) &&
                write_banded(f, forecast_crossover(&places[i], &places[k], &b), "steps", e))
                return -1;
    return 0;
}

static int write_machine(struct forecast *f, const struct hardware *h, struct err *e)
{
    const struct values batch = list_of("batch", f->a.batch), steps = list_of("steps", f->a.steps),
                        length = list_of("gen-length", f->a.length);
    const struct precision how = {.dtype = f->a.dtype, .quant = f->a.quant};
    struct forecast_place places[MODELS_MOST];
    enum caching cache = 0;
    while (strcmp(cache_policies[cache]->name, f->a.cache))
        cache++;
    for (size_t i = 0; i < f->n_models; i++)
        if (backtest_place(&f->backtest, &places[i], &f->model[i], h, &how, NULL, e))
            return -1;
    for (size_t l = 0; l < length.n; l++)
        for (size_t k = 0; k < batch.n; k++) {
            int64_t tokens = length.v[l], block = f->a.block ? f->a.block : tokens;
            struct forecast_batch b = {.batch = (size_t)batch.v[k], .prompt = (size_t)f->a.prompt,
                                       .length = (size_t)tokens, .block = (size_t)block,
                                       .cache = cache, .kept = cache_usual};
            if (write_cell(f, places, b, &steps, e))
                return -1;
        }
    return 0;
}

/* Writes the forecasts of all machines, with a band from the errors at measured points. */
static int write_grid(struct forecast *f, struct err *e)
{
    char *list = mem_text(f->a.hardware), *rest = NULL;
    f->backtest.out = NULL;
    int bad = backtest_measured(&f->backtest, e) || backtest_bias(&f->backtest, e) ? -1 : 0;
    int all = !strcmp(list, "all");
    for (size_t i = 0; all && !bad && i < f->table.n; i++)
        bad = write_machine(f, &f->table.v[i], e);
    for (char *s = all ? NULL : strtok_r(list, ",", &rest); s && !bad;
         s = strtok_r(NULL, ",", &rest)) {
        const struct hardware *h = hardware_find(&f->table, s);
        bad = h ? write_machine(f, h, e)
                : err_set(e, EXIT_BAD_USAGE, "--hardware: expected names of the table "
                          "(data/hardware.ndjson), got '%.60s'", s);
    }
    free(list);
    return bad;
}

/* ---- memory that fits ---- */

/* Writes one model at one level: every length and batch size. */
static int write_level(struct forecast *f, struct network *n, const char *level,
                       const struct values *gb, struct err *e)
{
    const struct values batch = list_of("batch", f->a.batch),
                        length = list_of("gen-length", f->a.length);
    for (size_t i = 0; i < length.n * batch.n; i++) {
        size_t tokens = (size_t)length.v[i / batch.n];
        const struct forecast_batch b = {
            .batch = (size_t)batch.v[i % batch.n], .prompt = (size_t)f->a.prompt, .length = tokens,
            .steps = tokens, .kept = cache_usual,
            .block = f->a.block ? (size_t)f->a.block : tokens};
        if (rec_write(&f->out, "forecast", forecast_fit(n, &b, level, gb->v, gb->n), e))
            return -1;
    }
    return 0;
}

/* Writes every model at every level that changes it: for a cache that is bf16 already, level mild
 * equals exact. */
static int write_fits(struct forecast *f, struct err *e)
{
    struct values gb = list_of("fit", f->a.fit);
    qsort(gb.v, gb.n, sizeof *gb.v, order_ints);
    for (size_t i = 0; i < f->n_models; i++) {
        enum dtype kv = DTYPES, quant = DTYPES;
        size_t tile = 0;
        for (const struct saving *l = saving_next(NULL); l; l = saving_next(l)) {
            const struct precision how = {.dtype = f->a.dtype, .kv = l->kv, .quant = l->quant};
            struct network n;
            struct err why = {0};
            if (network_settle(&n, f->backend, &f->model[i], &how, &why)) {
                log_note(&f->log, "level %s is left out: %s", l->name, why.text);
                continue;
            }
            int same = n.kv_dtype == kv && n.quant == quant && l->row_tile == tile;
            kv = n.kv_dtype;
            quant = n.quant;
            n.row_tile = tile = l->row_tile;
            if (!same && write_level(f, &n, l->name, &gb, e))
                return -1;
        }
    }
    return 0;
}

/* ---- the check ---- */

static int write_check(struct forecast *f, struct err *e)
{
    return published_check(&f->backtest, f->a.published, e) || backtest_measured(&f->backtest, e) ||
           backtest_errors(&f->backtest, e) || backtest_bias(&f->backtest, e);
}

static int write_claims(struct forecast *f, struct err *e)
{
    for (int i = 0; i < FRACTIONS; i++)
        f->stated[i] = 1;
    json_t *verdicts = published_judge(&f->backtest, f->a.published, e), *v;
    size_t i;
    int bad = verdicts ? 0 : -1;
    json_array_foreach(verdicts, i, v)
        if (!bad)
            bad = rec_write(&f->out, "claim_verdict", json_incref(v), e);
    json_decref(verdicts);
    return bad;
}

/* ---- along a sweep ---- */

static int write_along(struct forecast *f, struct err *e)
{
    const struct values steps = list_of("steps", f->a.steps);
    size_t sweeps = along_sweeps(&f->along);
    for (size_t k = 0; k < sweeps; k++) {
        for (size_t i = 0; i < steps.n; i++)
            if (rec_write(&f->out, "forecast", along_point(&f->along, k, steps.v[i]), e))
                return -1;
        json_t *x = along_crossover(&f->along, k);
        if (x && rec_write(&f->out, "forecast", x, e))
            return -1;
    }
    return sweeps ? 0 : err_set(e, EXIT_BAD_DATA, "--along-steps: expected e2e_ns records of two "
                                "step counts or more of one sweep (contract fixed, cache none)");
}

/* ---- the tool ---- */

static int take(void *ctx, const json_t *r, struct err *e)
{
    struct forecast *f = ctx;
    json_t *mine = source_mark(&f->source, r, rec_where(f->in));
    int is_used = roof_take(&f->roof, mine) | fraction_take(&f->points, mine) |
                  along_take(&f->along, mine);
    backtest_take(&f->backtest, mine);
    json_decref(mine);
    if (!strcmp(rec_kind(r), "forecast") && rec_pass(&f->out, r, e))
        return -1;
    return is_used;
}

static int read_records(struct forecast *f, struct take *seen, const char *const *paths, size_t n,
                        struct err *e)
{
    f->in = n ? rec_read_open(paths, n, e) : NULL;
    if (!f->in)
        return n ? -1 : 0;
    int bad = take_all(seen, f->in, &f->out, &f->log, f->a.common.limit, take, f, e);
    rec_read_close(f->in);
    return bad;
}

static int open_models(struct forecast *f, struct err *e)
{
    char *list = mem_text(f->a.models), *rest = NULL;
    int bad = 0;
    for (char *s = strtok_r(list, ",", &rest); s && !bad; s = strtok_r(NULL, ",", &rest)) {
        bad = f->n_models == MODELS_MOST
                  ? err_set(e, EXIT_BAD_USAGE, "--model: expected up to %d names", MODELS_MOST)
                  : checkpoint_open(&f->model[f->n_models], s, 0, e);
        f->n_models += !bad;
        const struct config *c = &f->model[f->n_models - 1].config;
        if (!bad && c->latents)
            bad = err_set(e, EXIT_BAD_USAGE, "--model %.200s: the time to fit latents cannot be "
                          "forecast; expected an autoregressive or a denoising model", s);
        bad = bad || generation_refuses(c, e) ? -1 : 0;
    }
    free(list);
    return bad || (f->n_models ? 0 : err_set(e, EXIT_BAD_USAGE, "--model: expected a name"));
}

static const char examples[] =
    "forecast --hardware rtx-4090,h100-sxm --batch 1,8 --steps 64,128\n"
    "forecast metrics.ndjson ceilings.ndjson > forecast.ndjson\n"
    "forecast --check metrics.ndjson ceilings.ndjson > errors.ndjson\n"
    "forecast --fit 8,12,16,24 --batch 1,4,8 --gen-length 128,512 > fits.ndjson\n";
static const char notes[] =
    "Nothing is run; every record has modelled: true. A pass takes the longer of\n"
    "    flops / (mfu * peak flops per s)   and   bytes / (mbu * peak bytes per s).\n"
    "A batch takes the sum of its passes. All prompts have the same length and every\n"
    "slot is filled (contract fixed).\n"
    "By default it writes times, memory and crossovers of the machines in\n"
    "data/hardware.ndjson. --fit, --along-steps, --check and --claims write other\n"
    "records instead: see --help-all.\n"
    "\n"
    "flops and bytes are counted as in `measure --help-all`. Peaks come from\n"
    "data/hardware.ndjson: dense, in the unit that multiplies the matrices (bf16 for\n"
    "bf16, nf4 and fp8; int8 for int8; f32 where the machine lacks that unit).\n"
    "mfu and mbu come from --mfu and --mbu, else from the medians of the operands'\n"
    "metric records, else they are assumed to be 0.6 and 0.8; mfu_from and mbu_from\n"
    "name the source. Each measured point counts for the limit that it is nearer to.\n"
    "Each paradigm has an mfu of its own (prompts: prefill_mfu_ratio); mbu comes from\n"
    "decode_mbu_ratio and from canvases that memory bounds. Without operands standard\n"
    "input is not read.\n"
    "memory  weights + cache + activations of the passes, without the scratch of\n"
    "  operations and the driver's own memory. hardware_memory_bytes: as in data\n"
    "  sheets, GB = 1e9.\n"
    "crossover  steps at which a canvas takes as long as the autoregressive text of\n"
    "  the same length and batch, between step counts that the blocks allow. Outside\n"
    "  of these it is null: see `censored`.\n"
    "lo, hi  a range from known errors. An error is forecast / measured, for points\n"
    "  of -m that the input has measured. Only errors of the same kind count: of\n"
    "  crossovers, or of times of the same paradigm, number format and form of\n"
    "  machine. lo is the value / the largest error, hi the value / the smallest.\n"
    "  Null with a reason if there is no error. If all errors are to one side, the\n"
    "  value lies outside of lo..hi; a message says to which side crossovers err.\n"
    "--fit  the memory on a GPU at each level of saving (--level of the generators;\n"
    "  mild is left out where it changes nothing) with cache none. fits_gb is the\n"
    "  smallest of the given sizes (GB = 1e9) that holds needed_bytes: the memory and\n"
    "  the allocator's loss between blocks, as --explain of the generators computes\n"
    "  it. --dtype, --prompt, --gen-length and --batch count.\n"
    "--along-steps  e2e_ns at --steps from metric records of the same sweep at other\n"
    "  step counts: a line for each launch, which is exact where every pass computes\n"
    "  the whole canvas; the crossover too if the autoregressive text was measured.\n"
    "  The records have measured_steps, residual_ratio, line_holds (false: a point is\n"
    "  over 2 % off) and is_far (true: over 4 times beyond the measured steps). lo\n"
    "  and hi need five launches; those of a crossover resample the launches of both\n"
    "  models.\n"
    "--check  ratio = forecast / reference. Measured points (of -m, contract fixed)\n"
    "  are forecast from the mfu and mbu of all other points (with several machines:\n"
    "  of all other machines) and the ceilings measured there; a device of the table\n"
    "  also from its data sheet. Crossovers (metric steps) are checked too: those in\n"
    "  records of --along-steps among the operands and those of measured sweeps. A\n"
    "  ratio above 1 favours the diffusion model. A record whose `what` is bias has\n"
    "  the geometric mean of the ratios, the smallest, the largest and their spread\n"
    "  (e to the standard deviation of the logarithms). Published figures\n"
    "  (data/published.ndjson) are forecast from the table. `counting` tells which\n"
    "  tokens a published rate counts: to_eos leaves out slots that a forecast\n"
    "  counts. `assumed` lists settings that the publication does not state. A figure\n"
    "  that cannot be forecast has a reason instead.\n"
    "--claims  a verdict on each published speed. roofline_ratio is its share of the\n"
    "  limits of the data sheet. needs_tokens_per_pass is the number of tokens that\n"
    "  a pass must commit to reach the speed at full bandwidth. Verdicts: beyond (the\n"
    "  share is above 1, or a pass must commit more than a block), within, or not\n"
    "  comparable, with a reason. `missing` lists the facts that are not stated.\n";

static void check(struct forecast *f, int bad, const struct err *e)
{
    if (!bad)
        return;
    rec_abandon(&f->out);
    err_die("forecast", e);
}

static void forecast_free(struct forecast *f)
{
    for (size_t i = 0; i < f->n_models; i++)
        checkpoint_close(&f->model[i]);
    fraction_free(&f->points);
    along_free(&f->along);
    backtest_free(&f->backtest);
    roof_free(&f->roof);
    source_free(&f->source);
    hardware_free(&f->table);
    backend_close(f->backend);
}

#define CACHE_WORD(ENUM, name, traits) "|" #name
static const char caches[] = CACHE_POLICIES(CACHE_WORD);

int main(int argc, char **argv)
{
    struct forecast f = {.a = {.common = COMMON_DEFAULTS, .hardware = "all", .batch = "1",
                               .models = "synth:llada-8b,synth:llama3-8b", .length = "128",
                               .steps = "16,32,64,128", .cache = "none", .dtype = "bf16",
                               .quant = "none", .prompt = 128, .mfu = NAN, .mbu = NAN}};
    const struct opt options[] = {
        {"model", 'm', OPT_TEXT, &f.a.models, .arg = "LIST",
         .help = "models: synth:NAME or checkpoints (synth:llada-8b,synth:llama3-8b)"},
        {"hardware", 0, OPT_TEXT, &f.a.hardware, .arg = "LIST",
         .help = "machines of --hardware-table (all)"},
        {"batch", 0, OPT_TEXT, &f.a.batch, .arg = "LIST", .help = "prompts in a batch (1)"},
        {"prompt", 0, OPT_INT, &f.a.prompt, 1, TOKENS_MOST, .arg = "N",
         .help = "length of a prompt in tokens (128)"},
        {"gen-length", 0, OPT_TEXT, &f.a.length, .arg = "LIST", .help = "tokens to generate (128)"},
        {"steps", 's', OPT_TEXT, &f.a.steps, .arg = "LIST",
         .help = "denoising steps over all blocks (16,32,64,128)"},
        {"block-length", 0, OPT_INT, &f.a.block, 1, TOKENS_MOST, .arg = "N",
         .help = "length of a block in tokens (gen-length)"},
        {"cache", 0, OPT_CHOICE, &f.a.cache, .choices = &caches[1],
         .help = "cache policy of the denoising model (none)"},
        {"dtype", 0, OPT_CHOICE, &f.a.dtype, .choices = "f32|bf16",
         .help = "number format of the matrices (bf16)"},
        {"quant", 0, OPT_CHOICE, &f.a.quant, .choices = "none|" DTYPE_QUANTIZED,
         .help = "quantization of the matrices (none)"},
        {"mfu", 0, OPT_REAL, &f.a.mfu, 0.001, 1, .arg = "SHARE",
         .help = "share of the peak flops that is reached (measured, else 0.6)"},
        {"mbu", 0, OPT_REAL, &f.a.mbu, 0.001, 1, .arg = "SHARE",
         .help = "share of the peak bandwidth that is reached (measured, else 0.8)"},
        {"fit", 0, OPT_TEXT, &f.a.fit, .arg = "GB,...",
         .help = "find the smallest of these GPU memory sizes that each model, level, length and "
                 "batch fits in"},
        {"check", 0, OPT_FLAG, &f.a.check,
         .help = "compare forecasts with measured and published figures"},
        {"claims", 0, OPT_FLAG, &f.a.claims,
         .help = "judge published speeds by the limits of their cards"},
        {"along-steps", 0, OPT_FLAG, &f.a.along,
         .help = "forecast times at --steps from a sweep measured at other step counts"},
        {"hardware-table", 0, OPT_TEXT, &f.a.table, .arg = "FILE",
         .help = "data sheets, one machine a line (data/hardware.ndjson)"},
        {"published", 0, OPT_TEXT, &f.a.published, .arg = "FILE",
         .help = "published figures, one a line (data/published.ndjson)"},
        OPT_COMMON(f.a.common),
        {0}};
    const struct tool tool = {"forecast", "shapes and data sheets in, modelled figures out",
                              examples, notes, options, NEEDS_NOTHING};
    int first = opt_parse(&tool, argc, argv);
    struct take seen = {.per_run = 1, .also = "forecast"};
    struct err e = {0};
    f.log = (struct log){"forecast", f.a.common.quiet ? 0 : 1 + f.a.common.verbose};
    f.stated[FRACTION_MFU_TEXT] = f.stated[FRACTION_MFU_CANVAS] = f.a.mfu;
    f.stated[FRACTION_MBU] = f.a.mbu;
    f.backend = backend_open("ref", NULL, 1, 0, &e);
    check(&f, !f.backend || hardware_read(&f.table, f.a.table, &e) || open_models(&f, &e) ||
              rec_open(&f.out, &f.a.common, "forecast", argc, argv, NULL, &e), &e);
    f.backtest = (struct backtest){f.backend, &f.table, &f.roof, &f.points, &f.along, f.stated,
                                   f.model, f.n_models, f.log, &f.out, {0}, {0}, NULL};
    check(&f, read_records(&f, &seen, (const char *const *)argv + first, (size_t)(argc - first),
                           &e), &e);
    check(&f, f.a.along    ? write_along(&f, &e)
              : f.a.fit    ? write_fits(&f, &e)
              : f.a.check  ? write_check(&f, &e)
              : f.a.claims ? write_claims(&f, &e)
                           : write_grid(&f, &e), &e);
    int code = take_verdict(&seen, &f.log, 0);
    check(&f, rec_close(&f.out, code ? "failed" : "ok", &e), &e);
    forecast_free(&f);
    return code;
}
