/* probe-roof - the most that a processor or a device can do, as roofline records: bytes read, and
 * operations in each number format.
 *
 * These are ceilings that this program's own loops and kernels reach on this machine, not figures
 * from a data sheet: a share of them can be 1.
 */
#include <stdio.h>

#include "lib/base/log.h"
#include "lib/base/opt.h"
#include "lib/record/rec.h"
#include "lib/run/ceiling.h"
#include "lib/run/engine.h"

static const char tool_name[] = "probe-roof";

struct args {
    struct common common;
    struct engine engine;
};

static const char notes[] =
    "The host: loops on all threads that do nothing but read memory larger than its caches, and\n"
    "nothing but multiply and add in registers; the quickest of many short passes. A device: its\n"
    "largest copies (bytes read and written) and the large products of this program's own back\n"
    "end, in each format; int8 products are LLM.int8() with all that belongs to it. A\n"
    "multiplication and an addition are two operations. `measure` with these records beside\n"
    "generations says which share of them the generations reached. Takes a few seconds.\n";

static void say(const struct ceilings *c, const struct backend *b)
{
    const char *where = *b->name ? b->name : "memory read";
    fprintf(stderr, "%s: %.4g GB/s", where, c->bytes_per_s / 1e9);
    for (int u = 0; u < UNITS; u++)
        if (c->operations_per_s[u] > 0)
            fprintf(stderr, ", %s %.4g GOP/s", dtype_unit_name((enum unit)u),
                    c->operations_per_s[u] / 1e9);
    fputc('\n', stderr);
}

/* A ceiling that is too low makes every share of it look good. */
static void warn_library(const struct log *log, const struct backend *b)
{
    if (*b->name && !*b->library)
        log_warn(log, "W103", "no library of the vendor was found: %s multiplies faster than these "
                 "ceilings say, shares of them are too large", b->name);
}

static int write_all(struct rec_writer *out, const struct ceilings *c, const struct backend *b,
                     struct err *e)
{
    int bad = 0;
    for (int u = 0; u < UNITS && !bad; u++)
        if (c->operations_per_s[u] > 0)
            bad = rec_write(out, "roofline", ceiling_record(c, b, (enum unit)u), e);
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
    int bad = ceiling_measure(&c, b, &e) || write_all(&out, &c, b, &e);
    warn_library(&log, b);
    if (!bad && !a.common.quiet)
        say(&c, b);
    backend_close(b);
    if (bad || rec_close(&out, "ok", &e)) {
        rec_abandon(&out);
        err_die(tool_name, &e);
    }
    return 0;
}
