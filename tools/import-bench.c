/* import-bench - turns results of AIPerf, vLLM bench and llama-bench into generation records.
 *
 * The records name the software stack, like the records of gen-endpoint. Numbers are copied
 * unchanged. A number that a benchmark does not record is null. */
#include <stdlib.h>
#include <string.h>

#include "lib/base/cli/log.h"
#include "lib/base/cli/opt.h"
#include "lib/record/rec.h"
#include "lib/remote/imported.h"

struct args {
    struct common common;
    const char *stack, *model;
    int64_t batch, launch;
};

struct import {
    struct args a;
    struct log log;
    struct rec_writer out;
    int64_t taken, skipped, bad;
};

static const char TOOL[] = "import-bench";

static int take(void *ctx, json_t *generation, struct err *e)
{
    struct import *import = ctx;
    import->taken++;
    return rec_write(&import->out, "generation", generation, e);
}

static int take_bad(void *ctx, const struct err *why, const char *where, const json_t *id,
                    struct err *e)
{
    struct import *import = ctx;
    if (import->bad++ < REC_BAD_SAID)
        log_note(&import->log, "%s: %s", where, why->text);
    return rec_bad(&import->out, why, where, id, e);
}

static int run(struct import *import, char **files, int n, struct err *e)
{
    const struct imported_take to = {import, take, take_bad};
    for (int i = 0; i < n; i++) {
        const struct imported_how how = {import->a.stack, import->a.model, import->a.batch,
                                         import->a.launch + i};
        if (imported_read(files[i], &how, &to, &import->skipped, e))
            return -1;
    }
    if (import->skipped)
        log_note(&import->log,
                 "left out: %lld tests that only process a prompt and generate nothing",
                 (long long)import->skipped);
    return import->taken || import->bad ? 0 : err_set(e, EXIT_BAD_DATA, "no requests in the input");
}

static const char examples[] =
    "import-bench --stack 'vllm 0.10.1' result.json > requests.ndjson\n"
    "import-bench --model llama3-8b --concurrency 16 profile_export.jsonl > r\n"
    "llama-bench -m model.gguf -p 0 -n 128 -o json > t.json; import-bench t.json\n";
static const char notes[] =
    "  AIPerf       profile_export.jsonl; it does not hold the model and the load, so\n"
    "               give --model and --concurrency\n"
    "  vLLM         vllm bench serve --save-result --save-detailed\n"
    "  llama-bench  -o json or jsonl; tests that generate. Its clock leaves out\n"
    "               tokenizing and sampling, and it has no first token\n"
    "A record is one request, each file one launch. Times and counts are those of the\n"
    "benchmark. import-bench does not check counts; gen-endpoint does. Requests that\n"
    "failed become error records.\n";

int main(int argc, char **argv)
{
    struct import import = {.a = {.common = COMMON_DEFAULTS}};
    const struct opt options[] = {
        {"stack", 0, OPT_TEXT, &import.a.stack, .arg = "NAME",
         .help = "name and version of the server's software (as the file states it)"},
        {"model", 'm', OPT_TEXT, &import.a.model, .arg = "NAME",
         .help = "name of the model (as the file states it)"},
        {"concurrency", 0, OPT_INT, &import.a.batch, 1, 1e6, .arg = "N",
         .help = "requests in flight (as the file states it)"},
        {"launch", 0, OPT_INT, &import.a.launch, 0, 1e9, .arg = "K",
         .help = "number of the first file; the next ones follow (0)"},
        OPT_COMMON(import.a.common),
        {0}};
    const struct tool tool = {TOOL, "results of other benchmarks in, generation records out",
                              examples, notes, options, NEEDS_NOTHING};
    int first = opt_parse(&tool, argc, argv);
    struct err e = {0};
    import.log = (struct log){TOOL, import.a.common.quiet ? 0 : 1 + import.a.common.verbose};
    if (first == argc)
        opt_usage(&tool, "expected files of AIPerf, vLLM bench or llama-bench");
    json_t *extra = NULL, *inputs = NULL;
    if (rec_inputs((const char *const *)argv + first, (size_t)(argc - first), &inputs, &e))
        err_die(TOOL, &e);
    if (inputs)
        extra = json_pack("{s:o}", "inputs", inputs);
    if (rec_open(&import.out, &import.a.common, TOOL, argc, argv, extra, &e))
        err_die(TOOL, &e);
    if (run(&import, argv + first, argc - first, &e) ||
        rec_close(&import.out, import.bad ? "failed" : "ok", &e)) {
        rec_abandon(&import.out);
        err_die(TOOL, &e);
    }
    return import.bad ? EXIT_FAILED_RECORDS : EXIT_OK;
}
