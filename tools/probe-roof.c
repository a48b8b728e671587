/* probe-roof - the most that a processor or a device can do, as roofline records: bytes read, and
 * operations in each number format.
 *
 * These are ceilings that this program's own loops and kernels reach on this machine, not figures
 * from a data sheet: a share of them can be 1.
 */
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
    "The host: loops on all threads that do nothing but read memory larger than its caches, and\n"
    "nothing but multiply and add in registers. There are five of each, taking turns; of a loop\n"
    "the quickest of some short passes counts, and of the loops the median. Their spread,\n"
    "(largest - smallest) / median, says how quiet the machine was. A roof is that of the\n"
    "quickest instruction for the numbers under it: where bf16 or int8 is multiplied faster as\n"
    "f32, that is its roof, and `remark` says so. A device: its largest copies (bytes read and\n"
    "written) and the large products of this program's own back end, in each format; int8\n"
    "products are LLM.int8() with all that belongs to it. A multiplication and an addition are\n"
    "two operations. `measure` with these records beside generations says which share of them\n"
    "the generations reached. Takes a few seconds.\n";

static void say(const struct ceilings *c, const struct backend *b)
{
    int host = !*b->name;
    fprintf(stderr, "%s: %.4g GB/s", host ? "memory read" : b->name, c->bytes_per_s / 1e9);
    if (host)
        fprintf(stderr, " (spread %.0f %%)", 100 * c->bytes_spread);
    for (int u = 0; u < UNITS; u++) {
        if (!(c->operations_per_s[u] > 0))
            continue;
        fprintf(stderr, ", %s %.4g GOP/s", dtype_unit_name((enum unit)u),
                c->operations_per_s[u] / 1e9);
        if (host)
            fprintf(stderr, " (%s, spread %.0f %%)", c->own[c->by[u]]->isa,
                    100 * c->operations_spread[u]);
    }
    fputc('\n', stderr);
}

/* One record, with what is odd about its roof said aloud. */
static int write_one(struct rec_writer *out, const struct ceilings *c, const struct backend *b,
                     enum unit u, const struct log *log, struct err *e)
{
    json_t *r = ceiling_record(c, b, u);
    if (rec_text(r, "remark"))
        log_note(log, "%s: %s", rec_text(r, "name"), rec_text(r, "remark"));
    return rec_write(out, "roofline", r, e);
}

/* A ceiling that is too low makes every share of it look good. */
static void warn_low(const struct log *log, const struct ceilings *c, const struct backend *b)
{
    if (ceiling_shared(c->cores, c->threads))
        log_warn(log, "W114", "%zu threads make %.2f times the arithmetic of one: processors of "
                 "this machine share a core just now, ceilings are too low and shares of them too "
                 "large",
                 c->threads, c->cores);
    if (*b->name && !*b->library)
        log_warn(log, "W103", "no library of the vendor was found: %s multiplies faster than these "
                 "ceilings say, shares of them are too large", b->name);
}

static int write_all(struct rec_writer *out, const struct ceilings *c, const struct backend *b,
                     const struct log *log, struct err *e)
{
    int bad = 0;
    for (int u = 0; u < UNITS && !bad; u++)
        if (c->operations_per_s[u] > 0)
            bad = write_one(out, c, b, (enum unit)u, log, e);
    return bad;
}

int main(int argc, char **argv)
{
    struct args a = {.common = COMMON_DEFAULTS, .engine = ENGINE_DEFAULTS};
    const struct opt options[] = {
        {"device", 0, OPT_TEXT, &a.engine.device, .arg = "auto|ref|cpu|cuda[:N]",
         .help = "what is probed (auto: a usable GPU, else the CPU)"},
        THREADS_OPTION(a.engine.threads),
        OPT_COMMON(a.common),
        {0}};
    const struct tool tool = {tool_name, "the most that a machine can do, as roofline records",
                              "probe-roof > ceilings.ndjson\n"
                              "measure generations.ndjson ceilings.ndjson > metrics.ndjson\n",
                              notes, options};
    int first = opt_parse(&tool, argc, argv);
    struct backend *b = NULL;
    struct ceilings c;
    struct rec_writer out;
    struct err e = {0};
    struct log log = {tool_name, 0};
    if (first < argc)
        opt_usage(&tool, "expected no operands, got %s", argv[first]);
    log.level = a.common.quiet ? 0 : 1;
    if (engine_open(&a.engine, &b, &e) ||
        rec_open(&out, &a.common, tool_name, argc, argv, NULL, &e))
        err_die(tool_name, &e);
    int bad = ceiling_measure(&c, b, &e) || write_all(&out, &c, b, &log, &e);
    if (!bad)
        warn_low(&log, &c, b);
    if (!bad && !a.common.quiet)
        say(&c, b);
    backend_close(b);
    if (bad || rec_close(&out, "ok", &e)) {
        rec_abandon(&out);
        err_die(tool_name, &e);
    }
    return 0;
}
