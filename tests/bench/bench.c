/* bench - the ceilings of this machine, then kernels and models as fractions of them: roofline
 * records out, a table on standard error.
 *
 * A fraction is least time / time. The least time of a product is the larger of operations / peak
 * rate of its number format and bytes / read bandwidth, where the bytes are the weights read once,
 * the keys and values, and nothing else; that of a model is the sum over its passes. Weights are
 * cold: kernels walk over many copies, as a network does. Of kernels the quickest walk counts, of
 * models the median.
 */
#include "tests/bench/bench.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/opt.h"

static const char tool_name[] = "bench";
static const char parts[] = "ceilings,kernels,models,growth";
static const char jobs[] = "prefill,decode,batch,diffuse";
static const char kinds[] = "f32,bf16,int8,nf4";
static const char shapes[] = "tiny,small,1b";

static const struct pair pairs[] = {{"tiny", "tiny-llama", "tiny-llada"},
                                    {"small", "small-llama", "small-llada"},
                                    {"1b", "llama3.2-1b", "llada3.2-1b"},
                                    {0}};
const struct kind bench_kinds[] = {{"f32", DTYPE_F32, {.dtype = "f32"}, "f32"},
                                   {"bf16", DTYPE_BF16, {.dtype = "bf16"}, "bf16"},
                                   {"int8", DTYPE_INT8, {.quant = "int8"}, "q8_0"},
                                   {"nf4", DTYPE_NF4, {.quant = "nf4"}, "q4_0"},
                                   {0}};

int bench_chosen(const char *list, const char *word)
{
    size_t n = strlen(word);
    for (const char *p = list; p; p = strchr(p, ',')) {
        p += *p == ',';
        if (!strncmp(p, word, n) && (p[n] == ',' || !p[n]))
            return 1;
    }
    return 0;
}

static const char *const unit_names[UNITS] = {"f32", "bf16", "int8"};

static int put_ceilings(struct bench *b, const struct ceilings *c, struct err *e)
{
    int bad = 0;
    for (int u = 0; u < UNITS && !bad; u++) {
        char name[64];
        if (!(c->operations_per_s[u] > 0))
            continue;
        snprintf(name, sizeof name, "%s products, %zu thread%s", unit_names[u], c->threads,
                 c->threads > 1 ? "s" : "");
        fprintf(stderr, "%-36s %8.1f GOP/s  (%s)\n", name, c->operations_per_s[u] / 1e9, c->isa[u]);
        json_t *r = json_pack("{s:s, s:b, s:s, s:s}", "name", name, "ceiling", 1, "unit",
                              unit_names[u], "isa", c->isa[u]);
        rec_set_int(r, "threads", (int64_t)c->threads);
        rec_set_number(r, "flops_per_s", c->operations_per_s[u], NULL);
        rec_set_number(r, "bytes_per_s", c->bytes_per_s, NULL);
        bad = rec_write(&b->out, "roofline", r, e);
    }
    fprintf(stderr, "%-36s %8.1f GB/s  (%zu thread%s)\n", "memory read", c->bytes_per_s / 1e9,
            c->threads, c->threads > 1 ? "s" : "");
    return bad;
}

int bench_point(struct bench *b, json_t *fields, const struct task *t, double seconds,
                struct err *e)
{
    const char *bound = 2 * t->compute_s > t->least_s ? "compute" : "memory";
    const char *peer = rec_text(fields, "peer");
    double rate = rec_number(fields, "tokens_per_s"), ratio = rec_number(fields, "peer_ratio");
    rec_set_int(fields, "threads", (int64_t)b->roof.threads);
    json_object_set_new(fields, "isa", json_string(b->backend->ops->level));
    json_object_set_new(fields, "unit", json_string(unit_names[t->unit]));
    json_object_set_new(fields, "bound", json_string(bound));
    rec_set_number(fields, "took_ns", seconds * 1e9, NULL);
    rec_set_number(fields, "flops_per_s", t->operations / seconds, NULL);
    rec_set_number(fields, "bytes_per_s", t->bytes / seconds, NULL);
    rec_set_number(fields, "flops_per_byte", t->operations / t->bytes, NULL);
    rec_set_number(fields, "ceiling_bytes_per_s", b->roof.bytes_per_s, NULL);
    rec_set_number(fields, "ceiling_fraction", t->least_s / seconds, NULL);
    fprintf(stderr, "%-46s %10.3f ms %8.1f GOP/s %6.1f GB/s  %3.0f %% of %s",
            rec_text(fields, "name"), 1e3 * seconds, t->operations / seconds / 1e9,
            t->bytes / seconds / 1e9, 100 * t->least_s / seconds, bound);
    if (!isnan(rate))
        fprintf(stderr, "  %8.1f tokens/s", rate);
    if (peer && !isnan(ratio))
        fprintf(stderr, "  %.2f x %s", ratio, peer);
    fputc('\n', stderr);
    return rec_write(&b->out, "roofline", fields, e);
}

static int run(struct bench *b, struct err *e)
{
    int bad = 0;
    if (pool_threads(b->backend->pool) > 1 && bench_chosen(b->only, "ceilings")) {
        struct pool *single = pool_new(1);
        ceilings_measure(&b->roof, single, b->reader);
        pool_free(single);
        bad = put_ceilings(b, &b->roof, e);
    }
    ceilings_measure(&b->roof, b->backend->pool, b->reader);
    bad = bad || put_ceilings(b, &b->roof, e);
    for (const struct pair *p = pairs; !bad && p->name; p++) {
        if (!bench_chosen(b->shapes, p->name))
            continue;
        if (bench_chosen(b->only, "kernels"))
            bad = bench_kernels(b, p, e);
        if (!bad && bench_chosen(b->only, "models"))
            bad = bench_models(b, p, e);
        if (!bad && bench_chosen(b->only, "growth"))
            bad = bench_growth(b, p, e);
    }
    return bad;
}

/* Every word of the list is one of `known`. */
static void check_list(const struct tool *t, const char *option, const char *list,
                       const char *known)
{
    for (const char *p = list; *p; p += strspn(p, ",")) {
        char word[32];
        size_t n = strcspn(p, ",");
        snprintf(word, sizeof word, "%.*s", (int)(n < 31 ? n : 31), p);
        if (!bench_chosen(known, word))
            opt_usage(t, "--%s: expected a list of %s, got \"%s\"", option, known, word);
        p += n;
    }
}

static void parse(struct bench *b, int argc, char **argv)
{
    const struct opt options[] = {
        {"only", 0, OPT_TEXT, &b->only, .arg = "LIST",
         .help = "of ceilings, kernels, models, growth (all four)"},
        {"jobs", 0, OPT_TEXT, &b->jobs, .arg = "LIST",
         .help = "what models do, of prefill, decode, batch, diffuse (all four)"},
        {"shapes", 0, OPT_TEXT, &b->shapes, .arg = "LIST",
         .help = "of tiny, small, 1b: pairs of synth: shapes (small)"},
        {"dtypes", 0, OPT_TEXT, &b->dtypes, .arg = "LIST",
         .help = "of f32, bf16, int8, nf4 (all four)"},
        {"isa", 0, OPT_TEXT, &b->isa, .arg = "NAME", .help = "instruction set (the best)"},
        {"threads", 0, OPT_INT, &b->threads, 0, 1024, .arg = "N", .help = "(0: all)"},
        {"repeat", 0, OPT_INT, &b->repeat, 1, 1000, .arg = "N",
         .help = "runs of a model, of which the median counts (3)"},
        {"peer", 0, OPT_TEXT, &b->peer, .arg = "DIR",
         .help = "run llama.cpp's tools between ours, on SHAPE.TYPE.gguf of this folder"},
        OPT_COMMON(b->common),
        {0}};
    const struct tool tool = {tool_name, "ceilings of this machine, kernels and models under them",
                              "bench --only models --shapes small,1b --dtypes bf16\n", NULL,
                              options};
    int first = opt_parse(&tool, argc, argv);
    if (first < argc)
        opt_usage(&tool, "expected no operands, got %s", argv[first]);
    check_list(&tool, "only", b->only, parts);
    check_list(&tool, "jobs", b->jobs, jobs);
    check_list(&tool, "shapes", b->shapes, shapes);
    check_list(&tool, "dtypes", b->dtypes, kinds);
}

int main(int argc, char **argv)
{
    struct bench b = {.common = COMMON_DEFAULTS, .only = parts, .shapes = "small",
                      .dtypes = kinds, .jobs = jobs, .repeat = 3};
    struct err e = {0};
    parse(&b, argc, argv);
    b.backend = backend_open("cpu", b.isa, (size_t)b.threads, 0);
    if (!b.backend)
        err_set(&e, EXIT_NO_DEVICE, "--isa %s: not built, or not for this processor",
                b.isa ? b.isa : "(the best)");
    b.reader = e.code ? NULL : reader_open(&e);
    if (!b.reader || rec_open(&b.out, &b.common, tool_name, argc, argv, NULL, &e))
        err_die(tool_name, &e);
    int bad = run(&b, &e);
    reader_close(b.reader);
    backend_close(b.backend);
    if (bad || rec_close(&b.out, "ok", &e)) {
        rec_abandon(&b.out);
        err_die(tool_name, &e);
    }
    return 0;
}
