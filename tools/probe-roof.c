/* probe-roof - measures the highest rates of a processor or a device, as roofline records: bytes
 * read, and operations in each number format.
 *
 * This program's own loops and kernels reach these ceilings on this machine. They are not figures
 * of a data sheet, so a generation can reach a share of 1. */
#include <stdio.h>

#include "lib/base/cli/log.h"
#include "lib/base/cli/opt.h"
#include "lib/record/rec.h"
#include "lib/run/engine.h"
#include "lib/run/probe/ceiling.h"

static const char tool_name[] = "probe-roof";

struct args {
    struct common common;
    struct engine engine;
};

static const char notes[] =
    "probe-roof takes a few seconds. On the host, all threads run loops that only\n"
    "read memory larger than the caches, or only multiply and add in registers. Each\n"
    "loop runs five times in turn with the others. A run counts its fastest pass.\n"
    "The rate of a loop is the median of its runs. The spread, (largest - smallest) /\n"
    "median, tells how quiet the machine was. A rate with a spread above 10 % is\n"
    "measured again, up to twice. If the spread stays above 10 %, the rate is\n"
    "reported as \"unsteady\".\n"
    "The roof of a number format is the rate of the fastest instructions for it. If\n"
    "bf16 or int8 are faster when converted to f32, the roof is that of f32, and\n"
    "`remark` says so. int4 has a roof only where 16-bit sums of 4-bit codes are\n"
    "faster than int8. On a GPU, probe-roof measures the largest copies (bytes read\n"
    "and written) and the large products of its own back end, in each format. The\n"
    "int8 rate is that of complete LLM.int8() products, with outliers in fp32. A\n"
    "multiplication and an addition are two operations.\n"
    "`measure` with these records beside generations computes the share of them that\n"
    "the generations reached.\n";

static void print_ceilings(const struct ceilings *ceilings, const struct backend *backend)
{
    int host = !*backend->name;
    fprintf(stderr, "%s: %.4g GB/s", host ? "memory read" : backend->name,
            ceilings->bytes_per_s / 1e9);
    if (host)
        fprintf(stderr, " (spread %.0f %%%s)", 100 * ceilings->bytes_spread,
                ceiling_remark(ceilings->bytes_spread));
    for (int unit = 0; unit < UNITS; unit++) {
        if (!(ceilings->operations_per_s[unit] > 0))
            continue;
        fprintf(stderr, ", %s %.4g GOP/s", dtype_unit_name((enum unit)unit),
                ceilings->operations_per_s[unit] / 1e9);
        if (host)
            fprintf(stderr, " (%s, spread %.0f %%%s)", ceilings->own[ceilings->by[unit]]->isa,
                    100 * ceilings->operations_spread[unit],
                    ceiling_remark(ceilings->operations_spread[unit]));
    }
    fputc('\n', stderr);
}

/* Writes one record. If the record has a remark, prints the remark. */
static int write_one(struct rec_writer *out, const struct ceilings *ceilings,
                     const struct backend *backend, enum unit unit, const struct log *log,
                     struct err *e)
{
    json_t *record = ceiling_record(ceilings, backend, unit);
    if (rec_text(record, "remark"))
        log_note(log, "%s: %s", rec_text(record, "name"), rec_text(record, "remark"));
    return rec_write(out, "roofline", record, e);
}

/* Warns of low ceilings: every share of a ceiling that is too low looks good. */
static void warn_low(const struct log *log, const struct ceilings *ceilings,
                     const struct backend *backend)
{
    if (ceiling_shared(ceilings->cores, ceilings->threads))
        log_warn(log, "W114", "%zu threads compute only %.2f times as much as one: threads share a "
                 "core now, so the ceilings are too low and the shares of them too large",
                 ceilings->threads, ceilings->cores);
    if (*backend->name && !*backend->library)
        log_warn(log, "W103", "the vendor's library was not found: %s can multiply faster than "
                 "these ceilings, so shares of them are too large", backend->name);
}

static int write_all(struct rec_writer *out, const struct ceilings *ceilings,
                     const struct backend *backend, const struct log *log, struct err *e)
{
    int bad = 0;
    for (int u = 0; u < UNITS && !bad; u++)
        if (ceilings->operations_per_s[u] > 0)
            bad = write_one(out, ceilings, backend, (enum unit)u, log, e);
    return bad;
}

int main(int argc, char **argv)
{
    struct args args = {.common = COMMON_DEFAULTS, .engine = ENGINE_DEFAULTS};
    const struct opt options[] = {
        {"device", 0, OPT_TEXT, &args.engine.device, .arg = "auto|ref|cpu|cuda[:N]",
         .help = "device to measure (auto: a usable GPU, else the CPU)"},
        THREADS_OPTION(args.engine.threads),
        OPT_COMMON(args.common),
        {0}};
    const struct tool tool = {tool_name, "measures the ceilings of a machine: roofline records out",
                              "probe-roof > ceilings.ndjson\n"
                              "measure generations.ndjson ceilings.ndjson > metrics.ndjson\n",
                              notes, options, NEEDS_NOTHING};
    int first = opt_parse(&tool, argc, argv);
    struct backend *backend = NULL;
    struct ceilings ceilings;
    struct rec_writer out;
    struct err e = {0};
    struct log log = {tool_name, 0};
    if (first < argc)
        opt_usage(&tool, "expected no operands, got %s", argv[first]);
    log.level = args.common.quiet ? 0 : 1;
    if (engine_open(&args.engine, &backend, &e) ||
        rec_open(&out, &args.common, tool_name, argc, argv, NULL, &e))
        err_die(tool_name, &e);
    int bad = ceiling_measure(&ceilings, backend, &e) ||
              write_all(&out, &ceilings, backend, &log, &e);
    if (!bad)
        warn_low(&log, &ceilings, backend);
    if (!bad && !args.common.quiet)
        print_ceilings(&ceilings, backend);
    backend_close(backend);
    if (bad || rec_close(&out, "ok", &e)) {
        rec_abandon(&out);
        err_die(tool_name, &e);
    }
    return 0;
}
