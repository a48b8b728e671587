/* forecast - models latency, throughput, memory and the crossover on a machine from the shape of a
 * model and the data sheet of the machine.
 *
 * The limits of a data sheet are multiplied by the shares of limits that this program reached in
 * measured runs (metric records), or by stated shares. --check measures the errors of forecasts. */
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
#include "lib/analysis/records/take.h"
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
    struct rec_reader *in; /* reader of the operands, while they are read */
    struct source source; /* the machine of the operands' records */
    double stated[FRACTIONS];
    struct checkpoint model[MODELS_MOST];
    size_t n_models;
    struct backtest backtest;
};

/* ---- the grid ---- */

struct values { int64_t v[VALUES_MOST]; size_t n; };

static struct values list_of(const char *option, const char *text)
{
    struct values values;
    int n = opt_list(text, values.v, VALUES_MOST, 1, TOKENS_MOST);
    if (n < 0) {
        struct err e = {0};
        err_set(&e, EXIT_BAD_USAGE, "--%s: expected up to %d numbers from 1 to %d, got '%.80s'",
                option, VALUES_MOST, TOKENS_MOST, text);
        err_die("forecast", &e);
    }
    values.n = (size_t)n;
    return values;
}

static int write_banded(struct forecast *forecast, json_t *record, const char *key, struct err *e)
{
    band_set(&forecast->backtest.band, record, key, key);
    return rec_write(&forecast->out, "forecast", record, e);
}

/* Writes all forecasts for one machine, one length and one batch size. */
static int write_cell(struct forecast *forecast, struct forecast_place *places,
                      struct forecast_batch batch, const struct values *steps, struct err *e)
{
    for (size_t i = 0; i < forecast->n_models; i++)
        for (size_t k = 0; k < (forecast_is_canvas(&places[i].n) ? steps->n : 1); k++) {
            batch.steps = (size_t)steps->v[k];
            const struct diffuse how = {.gen_length = batch.length, .block_length = batch.block,
                                        .steps = batch.steps, .cache = batch.cache};
            const struct network *n = &places[i].n;
            if ((forecast_is_canvas(n) && diffuse_check(&how, &n->config, e)) ||
                write_banded(forecast, forecast_point(&places[i], &batch), "e2e_ns", e))
                return -1;
        }
    for (size_t i = 0; i < forecast->n_models; i++)
        for (size_t k = 0; k < forecast->n_models; k++)
            if (forecast_is_canvas(&places[i].n) && !forecast_is_canvas(&places[k].n) &&
                write_banded(forecast, forecast_crossover(&places[i], &places[k], &batch), "steps",
                             e))
                return -1;
    return 0;
}

static int write_machine(struct forecast *forecast, const struct hardware *hardware, struct err *e)
{
    const struct values batch = list_of("batch", forecast->a.batch),
                        steps = list_of("steps", forecast->a.steps),
                        length = list_of("gen-length", forecast->a.length);
    const struct precision how = {.dtype = forecast->a.dtype, .quant = forecast->a.quant};
    struct forecast_place places[MODELS_MOST];
    enum caching cache = 0;
    while (strcmp(cache_policies[cache]->name, forecast->a.cache))
        cache++;
    for (size_t i = 0; i < forecast->n_models; i++)
        if (backtest_place(&forecast->backtest, &places[i], &forecast->model[i], hardware, &how,
                           NULL, e))
            return -1;
    for (size_t layer = 0; layer < length.n; layer++)
        for (size_t k = 0; k < batch.n; k++) {
            int64_t tokens = length.v[layer],
                    block = forecast->a.block ? forecast->a.block : tokens;
            struct forecast_batch forecast_batch = {.batch = (size_t)batch.v[k],
                                                    .prompt = (size_t)forecast->a.prompt,
                                                    .length = (size_t)tokens,
                                                    .block = (size_t)block, .cache = cache,
                                                    .kept = cache_usual};
            if (write_cell(forecast, places, forecast_batch, &steps, e))
                return -1;
        }
    return 0;
}

/* Writes the forecasts of all machines, each with a range from the errors at measured points. */
static int write_grid(struct forecast *forecast, struct err *e)
{
    char *list = mem_text(forecast->a.hardware), *rest = NULL;
    forecast->backtest.out = NULL;
    int bad = backtest_measured(&forecast->backtest, e) || backtest_bias(&forecast->backtest, e)
                  ? -1
                  : 0;
    int all = !strcmp(list, "all");
    for (size_t i = 0; all && !bad && i < forecast->table.n; i++)
        bad = write_machine(forecast, &forecast->table.v[i], e);
    for (char *text = all ? NULL : strtok_r(list, ",", &rest); text && !bad;
         text = strtok_r(NULL, ",", &rest)) {
        const struct hardware *hardware = hardware_find(&forecast->table, text);
        bad = hardware ? write_machine(forecast, hardware, e)
                       : err_set(e, EXIT_BAD_USAGE, "--hardware: expected names of the table "
                                 "(data/hardware.ndjson), got '%.60s'", text);
    }
    free(list);
    return bad;
}

/* ---- memory that fits ---- */

/* Writes what one model needs at one level of saving, for every length and batch size. */
static int write_level(struct forecast *forecast, struct network *n, const char *level,
                       const struct values *gb, struct err *e)
{
    const struct values batch = list_of("batch", forecast->a.batch),
                        length = list_of("gen-length", forecast->a.length);
    for (size_t i = 0; i < length.n * batch.n; i++) {
        size_t tokens = (size_t)length.v[i / batch.n];
        const struct forecast_batch forecast_batch = {
            .batch = (size_t)batch.v[i % batch.n], .prompt = (size_t)forecast->a.prompt,
            .length = tokens, .steps = tokens, .kept = cache_usual,
            .block = forecast->a.block ? (size_t)forecast->a.block : tokens};
        if (rec_write(&forecast->out, "forecast",
                      forecast_fit(n, &forecast_batch, level, gb->v, gb->n), e))
            return -1;
    }
    return 0;
}

/* Writes every model at every level of saving that changes something. For a cache in bf16 the level
 * mild equals exact and is left out. */
static int write_fits(struct forecast *forecast, struct err *e)
{
    struct values gb = list_of("fit", forecast->a.fit);
    qsort(gb.v, gb.n, sizeof *gb.v, order_ints);
    for (size_t i = 0; i < forecast->n_models; i++) {
        enum dtype kv = DTYPES, quant = DTYPES;
        size_t tile = 0;
        for (const struct saving *saving = saving_next(NULL); saving;
             saving = saving_next(saving)) {
            const struct precision how = {
                .dtype = forecast->a.dtype, .kv = saving->kv, .quant = saving->quant};
            struct network n;
            struct err why = {0};
            if (network_settle(&n, forecast->backend, &forecast->model[i], &how, &why)) {
                log_note(&forecast->log, "level %s is left out: %s", saving->name, why.text);
                continue;
            }
            int same = n.kv_dtype == kv && n.quant == quant && saving->row_tile == tile;
            kv = n.kv_dtype;
            quant = n.quant;
            n.row_tile = tile = saving->row_tile;
            if (!same && write_level(forecast, &n, saving->name, &gb, e))
                return -1;
        }
    }
    return 0;
}

/* ---- the check ---- */

static int write_check(struct forecast *forecast, struct err *e)
{
    return published_check(&forecast->backtest, forecast->a.published, e) ||
           backtest_measured(&forecast->backtest, e) || backtest_errors(&forecast->backtest, e) ||
           backtest_bias(&forecast->backtest, e);
}

static int write_claims(struct forecast *forecast, struct err *e)
{
    for (int i = 0; i < FRACTIONS; i++)
        forecast->stated[i] = 1;
    json_t *verdicts = published_judge(&forecast->backtest, forecast->a.published, e), *value;
    size_t i;
    int bad = verdicts ? 0 : -1;
    json_array_foreach(verdicts, i, value)
        if (!bad)
            bad = rec_write(&forecast->out, "claim_verdict", json_incref(value), e);
    json_decref(verdicts);
    return bad;
}

/* ---- along a sweep ---- */

static int write_along(struct forecast *forecast, struct err *e)
{
    const struct values steps = list_of("steps", forecast->a.steps);
    size_t sweeps = along_sweeps(&forecast->along);
    for (size_t k = 0; k < sweeps; k++) {
        for (size_t i = 0; i < steps.n; i++)
            if (rec_write(&forecast->out, "forecast", along_point(&forecast->along, k, steps.v[i]),
                          e))
                return -1;
        json_t *crossover = along_crossover(&forecast->along, k);
        if (crossover && rec_write(&forecast->out, "forecast", crossover, e))
            return -1;
    }
    return sweeps ? 0 : err_set(e, EXIT_BAD_DATA, "--along-steps: expected e2e_ns records of two "
                                "step counts or more of one sweep (contract fixed, cache none)");
}

/* ---- the tool ---- */

static int take(void *ctx, const json_t *record, struct err *e)
{
    struct forecast *forecast = ctx;
    json_t *mine = source_mark(&forecast->source, record, rec_where(forecast->in));
    int is_used = roof_take(&forecast->roof, mine) | fraction_take(&forecast->points, mine) |
                  along_take(&forecast->along, mine);
    backtest_take(&forecast->backtest, mine);
    json_decref(mine);
    if (!strcmp(rec_kind(record), "forecast") && rec_pass(&forecast->out, record, e))
        return -1;
    return is_used;
}

static int read_records(struct forecast *forecast, struct take *seen, const char *const *paths,
                        size_t n, struct err *e)
{
    forecast->in = n ? rec_read_open(paths, n, e) : NULL;
    if (!forecast->in)
        return n ? -1 : 0;
    int bad = take_all(seen, forecast->in, &forecast->out, &forecast->log, forecast->a.common.limit,
                       take, forecast, e);
    rec_read_close(forecast->in);
    return bad;
}

static int open_models(struct forecast *forecast, struct err *e)
{
    char *list = mem_text(forecast->a.models), *rest = NULL;
    int bad = 0;
    for (char *text = strtok_r(list, ",", &rest); text && !bad; text = strtok_r(NULL, ",", &rest)) {
        bad = forecast->n_models == MODELS_MOST
                  ? err_set(e, EXIT_BAD_USAGE, "--model: expected up to %d names", MODELS_MOST)
                  : checkpoint_open(&forecast->model[forecast->n_models], text, 0, e);
        forecast->n_models += !bad;
        const struct config *config = &forecast->model[forecast->n_models - 1].config;
        if (!bad && config->latents)
            bad = err_set(e, EXIT_BAD_USAGE, "--model %.200s: the time to fit latents cannot be "
                          "forecast; expected an autoregressive or a denoising model", text);
        bad = bad || generation_refuses(config, e) ? -1 : 0;
    }
    free(list);
    return bad || (forecast->n_models ? 0 : err_set(e, EXIT_BAD_USAGE, "--model: expected a name"));
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

static void check(struct forecast *forecast, int bad, const struct err *e)
{
    if (!bad)
        return;
    rec_abandon(&forecast->out);
    err_die("forecast", e);
}

static void forecast_free(struct forecast *forecast)
{
    for (size_t i = 0; i < forecast->n_models; i++)
        checkpoint_close(&forecast->model[i]);
    fraction_free(&forecast->points);
    along_free(&forecast->along);
    backtest_free(&forecast->backtest);
    roof_free(&forecast->roof);
    source_free(&forecast->source);
    hardware_free(&forecast->table);
    backend_close(forecast->backend);
}

#define CACHE_WORD(ENUM, name, traits) "|" #name
static const char caches[] = CACHE_POLICIES(CACHE_WORD);

int main(int argc, char **argv)
{
    struct forecast forecast = {.a = {.common = COMMON_DEFAULTS, .hardware = "all", .batch = "1",
                                      .models = "synth:llada-8b,synth:llama3-8b", .length = "128",
                                      .steps = "16,32,64,128", .cache = "none", .dtype = "bf16",
                                      .quant = "none", .prompt = 128, .mfu = NAN, .mbu = NAN}};
    const struct opt options[] = {
        {"model", 'm', OPT_TEXT, &forecast.a.models, .arg = "LIST",
         .help = "models: synth:NAME or checkpoints (synth:llada-8b,synth:llama3-8b)"},
        {"hardware", 0, OPT_TEXT, &forecast.a.hardware, .arg = "LIST",
         .help = "machines of --hardware-table (all)"},
        {"batch", 0, OPT_TEXT, &forecast.a.batch, .arg = "LIST", .help = "prompts in a batch (1)"},
        {"prompt", 0, OPT_INT, &forecast.a.prompt, 1, TOKENS_MOST, .arg = "N",
         .help = "length of a prompt in tokens (128)"},
        {"gen-length", 0, OPT_TEXT, &forecast.a.length, .arg = "LIST",
         .help = "tokens to generate (128)"},
        {"steps", 's', OPT_TEXT, &forecast.a.steps, .arg = "LIST",
         .help = "denoising steps over all blocks (16,32,64,128)"},
        {"block-length", 0, OPT_INT, &forecast.a.block, 1, TOKENS_MOST, .arg = "N",
         .help = "length of a block in tokens (gen-length)"},
        {"cache", 0, OPT_CHOICE, &forecast.a.cache, .choices = &caches[1],
         .help = "cache policy of the denoising model (none)"},
        {"dtype", 0, OPT_CHOICE, &forecast.a.dtype, .choices = "f32|bf16",
         .help = "number format of the matrices (bf16)"},
        {"quant", 0, OPT_CHOICE, &forecast.a.quant, .choices = "none|" DTYPE_QUANTIZED,
         .help = "quantization of the matrices (none)"},
        {"mfu", 0, OPT_REAL, &forecast.a.mfu, 0.001, 1, .arg = "SHARE",
         .help = "share of the peak flops that is reached (measured, else 0.6)"},
        {"mbu", 0, OPT_REAL, &forecast.a.mbu, 0.001, 1, .arg = "SHARE",
         .help = "share of the peak bandwidth that is reached (measured, else 0.8)"},
        {"fit", 0, OPT_TEXT, &forecast.a.fit, .arg = "GB,...",
         .help = "find the smallest of these GPU memory sizes that each model, level, length and "
                 "batch fits in"},
        {"check", 0, OPT_FLAG, &forecast.a.check,
         .help = "compare forecasts with measured and published figures"},
        {"claims", 0, OPT_FLAG, &forecast.a.claims,
         .help = "judge published speeds by the limits of their cards"},
        {"along-steps", 0, OPT_FLAG, &forecast.a.along,
         .help = "forecast times at --steps from a sweep measured at other step counts"},
        {"hardware-table", 0, OPT_TEXT, &forecast.a.table, .arg = "FILE",
         .help = "data sheets, one machine a line (data/hardware.ndjson)"},
        {"published", 0, OPT_TEXT, &forecast.a.published, .arg = "FILE",
         .help = "published figures, one a line (data/published.ndjson)"},
        OPT_COMMON(forecast.a.common),
        {0}};
    const struct tool tool = {"forecast", "shapes and data sheets in, modelled figures out",
                              examples, notes, options, NEEDS_NOTHING};
    int first = opt_parse(&tool, argc, argv);
    struct take seen = {.per_run = 1, .also = "forecast"};
    struct err e = {0};
    forecast.log = (struct log){"forecast",
                                forecast.a.common.quiet ? 0 : 1 + forecast.a.common.verbose};
    forecast.stated[FRACTION_MFU_TEXT] = forecast.stated[FRACTION_MFU_CANVAS] = forecast.a.mfu;
    forecast.stated[FRACTION_MBU] = forecast.a.mbu;
    forecast.backend = backend_open("ref", NULL, 1, 0, &e);
    check(&forecast,
          !forecast.backend || hardware_read(&forecast.table, forecast.a.table, &e) ||
              open_models(&forecast, &e) ||
              rec_open(&forecast.out, &forecast.a.common, "forecast", argc, argv, NULL, &e),
          &e);
    forecast.backtest = (struct backtest){forecast.backend, &forecast.table, &forecast.roof,
                                          &forecast.points, &forecast.along, forecast.stated,
                                          forecast.model, forecast.n_models, forecast.log,
                                          &forecast.out, {0}, {0}, NULL};
    check(&forecast, read_records(&forecast, &seen, (const char *const *)argv + first,
                                  (size_t)(argc - first), &e), &e);
    check(&forecast, forecast.a.along    ? write_along(&forecast, &e)
                     : forecast.a.fit    ? write_fits(&forecast, &e)
                     : forecast.a.check  ? write_check(&forecast, &e)
                     : forecast.a.claims ? write_claims(&forecast, &e)
                                         : write_grid(&forecast, &e), &e);
    int code = take_verdict(&seen, &forecast.log, 0);
    check(&forecast, rec_close(&forecast.out, code ? "failed" : "ok", &e), &e);
    forecast_free(&forecast);
    return code;
}
