/* gen-endpoint - sends prompts to any OpenAI-type server and writes generation records.
 *
 * The server is another software stack, which the records name (`stack`). A comparison with our own
 * generators therefore compares two programs, not only two models. This tool links no kernels: it
 * sends requests and keeps texts and times. */
#include <assert.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/cli/log.h"
#include "lib/base/cli/opt.h"
#include "lib/base/cli/progress.h"
#include "lib/base/clock.h"
#include "lib/base/mem.h"
#include "lib/base/rng.h"
#include "lib/checkpoint/gguf.h"
#include "lib/checkpoint/hub.h"
#include "lib/checkpoint/safetensors.h"
#include "lib/record/json.h"
#include "lib/record/rec.h"
#include "lib/remote/remote_record.h"
#include "lib/remote/served.h"
#include "lib/run/run_plan.h"
#include "lib/setting/system.h"
#include "lib/text/utf8.h"

enum { TEXT_PER_TOKEN = 64, TEXT_MORE = 1 << 16, /* bytes of an answer's text, at most */
       ASK_SECONDS = 10 };

struct args {
    struct common common;
    const char *url, *model, *served, *stack, *key_env, *body, *schedule;
    int64_t warmup, repeat, launch;
    double timeout;
};

struct endpoint {
    const struct args *a;
    struct log log;
    struct rec_writer out;
    struct run_plan plan;
    struct asked asked;
    struct http *http;
    struct served served;
    struct tokenizer *tokenizer; /* NULL: none */
    json_t *more;                /* the members of --body */
    char name[HUB_NAME];         /* name of the model in records */
    char *conditions;            /* JSON of --body, a part of the point; NULL: none */
    int64_t process_ns, batch_id, seq, said, sent;
    int64_t cached;              /* timed answers whose prompt was in the server's cache */
    struct progress progress;
    int worst;                   /* exit code */
};

static const char TOOL[] = "gen-endpoint";
static volatile sig_atomic_t stop_signal;

static void note_signal(int signal_number)
{
    stop_signal = signal_number;
}

static void catch_signals(void)
{
    struct sigaction once = {.sa_flags = (int)SA_RESETHAND}; /* a second signal ends at once */
    once.sa_handler = note_signal;
    sigaction(SIGINT, &once, NULL);
    sigaction(SIGTERM, &once, NULL);
    sigaction(SIGHUP, &once, NULL);
}

/* ---- before the first request ---- */

/* Opens the tokenizer of -m and finds the model's name. Weights are not read. */
static int open_model(struct endpoint *endpoint, struct err *e)
{
    const char *model = endpoint->a->model;
    if (!model)
        return 0;
    if (gguf_is(model)) {
        struct tensors *file = safetensors_open_file(model, e);
        json_t *keys = file ? tokenizer_of_gguf(safetensors_metadata(file), model, e) : NULL;
        endpoint->tokenizer = keys ? tokenizer_load_json(keys, model, e) : NULL;
        json_decref(keys);
        safetensors_close(file);
        hub_model_name(model, endpoint->name);
    } else {
        char *folder = hub_folder(model, e);
        endpoint->tokenizer = folder ? tokenizer_load(folder, e) : NULL;
        hub_model_name(folder ? folder : model, endpoint->name);
        free(folder);
    }
    return endpoint->tokenizer ? 0 : -1;
}

/* Reads --body. It is a part of the point, because it may change answers and times. */
static int read_body(struct endpoint *endpoint, struct err *e)
{
    const char *text = endpoint->a->body;
    json_error_t why;
    if (!text)
        return 0;
    endpoint->more = json_strict(text, strlen(text), &why);
    if (!json_is_object(endpoint->more))
        return err_set(e, EXIT_BAD_USAGE, "--body: expected a JSON object, got '%.100s'%s%s", text,
                       endpoint->more ? "" : ": ", endpoint->more ? "" : why.text);
    char *sorted = json_dumps(endpoint->more, JSON_COMPACT | JSON_SORT_KEYS);
    endpoint->conditions = mem_format("body=%s", sorted);
    free(sorted);
    return 0;
}

/* Checks that these options are UTF-8, because they are written to records, which are JSON. */
static int check_texts(const struct args *args, struct err *e)
{
    const struct { const char *name, *text; } all[] = {
        {"--url", args->url}, {"--served", args->served}, {"--stack", args->stack}};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (all[i].text && utf8_valid(all[i].text, strlen(all[i].text)) < strlen(all[i].text))
            return err_set(e, EXIT_BAD_USAGE, "%s: expected UTF-8", all[i].name);
    return 0;
}

static int open_server(struct endpoint *endpoint, struct err *e)
{
    const struct args *args = endpoint->a;
    const char *key = args->key_env ? getenv(args->key_env) : NULL;
    if (args->key_env && !key)
        return err_set(e, EXIT_BAD_USAGE, "--key-env: the environment has no variable %.100s",
                       args->key_env);
    if (!args->url)
        return err_set(e, EXIT_BAD_USAGE, "expected --url http://HOST:PORT/v1");
    if (check_texts(args, e) || !(endpoint->http = http_open(args->url, key, e)) ||
        served_ask(&endpoint->served, endpoint->http, args->served, args->stack, ASK_SECONDS, e))
        return -1;
    const char *slash = strrchr(endpoint->served.model, '/');
    const char *name = slash && slash[1] ? slash + 1 : endpoint->served.model;
    if (!*endpoint->name)
        snprintf(endpoint->name, sizeof endpoint->name, "%.*s",
                 (int)utf8_whole(name, strnlen(name, sizeof endpoint->name - 1)), name);
    log_more(&endpoint->log, "%s: model %s, stack %s", args->url, endpoint->served.model,
             endpoint->served.stack);
    return 0;
}

/* The members of the meta record. */
static json_t *meta_of(const struct endpoint *endpoint)
{
    json_t *meta = json_pack("{s:{s:s, s:s, s:s}, s:s?, s:s, s:I, s:I}", "endpoint", "url",
                             endpoint->a->url, "served", endpoint->served.model, "stack",
                             endpoint->served.stack, "tokenizer_sha256",
                             endpoint->tokenizer ? tokenizer_hash(endpoint->tokenizer) : NULL,
                             "prompts_sha256", endpoint->asked.in.sha256, "prompts",
                             (json_int_t)endpoint->asked.n, "launch",
                             (json_int_t)endpoint->a->launch);
    assert(meta);
    return meta;
}

/* ---- a load ---- */

static void worse(struct endpoint *endpoint, int code)
{
    endpoint->worst = code > endpoint->worst ? code : endpoint->worst;
}

/* Writes an error record for a request that failed; the other requests go on. */
static int failed(struct endpoint *endpoint, const struct asked_prompt *prompt, struct err *why,
                  struct err *e)
{
    err_prefix(why, "prompt '%.100s'", prompt->id);
    why->code = EXIT_FAILED_RECORDS;
    worse(endpoint, EXIT_FAILED_RECORDS);
    if (endpoint->said++ < REC_BAD_SAID)
        log_note(&endpoint->log, "%s", why->text);
    return rec_error(&endpoint->out, why, prompt->where, json_object_get(prompt->record, "id"), e);
}

static int write_answer(struct endpoint *endpoint, const struct remote_place *at,
                        const struct asked_prompt *prompt, struct load_request *request,
                        struct err *e)
{
    struct recount recount = {0};
    if (!request->why.code) {
        const int chat = settings_is(at->point, "api", "chat");
        recount_prompt(&request->reply, asked_tokens(prompt, endpoint->tokenizer), chat,
                       &request->why);
        recount_answer(&recount, &request->reply, endpoint->tokenizer, &request->why);
        endpoint->cached += request->reply.cached_tokens.n > 0 && !strcmp(at->phase, "timed");
    }
    int bad = request->why.code
                  ? failed(endpoint, prompt, &request->why, e)
                  : rec_write(&endpoint->out, "generation",
                              remote_record(at, prompt, request, &recount, endpoint->seq++), e);
    recount_free(&recount);
    return bad;
}

static struct load_how how_of(const struct endpoint *endpoint, const struct settings *point,
                              uint64_t seed)
{
    const int open = settings_is(point, "loop", "open");
    return (struct load_how){
        .path = asked_path(point), .in_flight = open ? 0 : settings_count(point, "batch"),
        .arrivals = {settings_number(point, "arrival_rate"),
                     settings_is(point, "arrivals", "even"), seed},
        .patience_s = endpoint->a->timeout,
        .most = TEXT_PER_TOKEN * settings_count(point, "max_new") + TEXT_MORE,
        .stop = &stop_signal};
}

/* Sends prompts order[0..n-1] of a point and writes their records. */
static int run_load(struct endpoint *endpoint, struct remote_place *at, const uint32_t *order,
                    size_t n, struct err *e)
{
    struct load_request *request = mem_zero(n, sizeof *request);
    const struct asked_prompt **of = mem_zero(n, sizeof *of);
    const struct asked_how asked = {at->point, endpoint->served.model, at->seed, endpoint->more};
    const struct load_how how = how_of(endpoint, at->point, rng_at(rng_derive(at->seed, at->phase),
                                                                   (uint64_t)at->launch,
                                                                   (uint64_t)at->round));
    int64_t begin = 0;
    size_t used = 0;
    int bad = 0;
    for (size_t i = 0; i < n && !bad; i++) {
        struct err why = {0};
        of[used] = &endpoint->asked.v[order[i]];
        request[used].body = asked_body(of[used], &asked, &request[used].n, &why);
        if (request[used].body)
            used++;
        else
            bad = failed(endpoint, of[used], &why, e);
    }
    if (!bad)
        load_run(endpoint->http, request, used, &how, &begin, &at->batch_ns);
    at->start_ns = begin - endpoint->process_ns;
    at->batch_id = endpoint->batch_id++;
    for (size_t i = 0; i < used && !bad; i++)
        bad = request[i].was_sent && write_answer(endpoint, at, of[i], &request[i], e);
    endpoint->sent += (int64_t)n;
    progress_at(&endpoint->progress, endpoint->sent, NULL);
    load_free(request, used);
    for (size_t i = 0; i < used; i++)
        free((char *)(uintptr_t)request[i].body);
    free(of);
    free(request);
    return bad;
}

/* The order of the prompts in a round. The caller frees. */
static uint32_t *order_of(const struct endpoint *endpoint, int64_t round)
{
    uint32_t *order = mem_zero(endpoint->asked.n + 1, sizeof *order);
    struct rng draw = {rng_derive(endpoint->plan.seed, "order"),
                       (uint64_t)endpoint->a->launch << 32 | (uint64_t)round, 0};
    for (size_t i = 0; i < endpoint->asked.n; i++)
        order[i] = (uint32_t)i;
    rng_shuffle(&draw, order, endpoint->asked.n);
    return order;
}

static int run_point(struct endpoint *endpoint, const struct settings *point, int64_t round,
                     struct err *e)
{
    const size_t n = endpoint->asked.n,
                 warmups = endpoint->a->warmup < (int64_t)n ? (size_t)endpoint->a->warmup : n;
    struct remote_place at = {
        .point = point, .model = endpoint->name, .stack = endpoint->served.stack,
        .conditions = endpoint->conditions,
        .tokenizer = endpoint->tokenizer ? tokenizer_hash(endpoint->tokenizer) : NULL,
        .phase = "warmup", .asked = &endpoint->asked, .seed = endpoint->plan.seed,
        .launch = endpoint->a->launch, .round = round, .warmups = (int64_t)warmups};
    uint32_t *order = order_of(endpoint, round);
    int bad = warmups ? run_load(endpoint, &at, order, warmups, e) : 0;
    at.phase = "timed";
    bad = bad || (!stop_signal && run_load(endpoint, &at, order, n, e));
    free(order);
    return bad;
}

static int run_all(struct endpoint *endpoint, struct err *e)
{
    const struct run_plan *plan = &endpoint->plan;
    for (size_t i = 0; i < endpoint->asked.in.faults; i++) {
        struct prompt_fault *fault = &endpoint->asked.in.fault[i];
        worse(endpoint, EXIT_FAILED_RECORDS);
        if (rec_bad(&endpoint->out, &fault->err, fault->where, fault->id, e))
            return -1;
    }
    endpoint->out.bad += endpoint->asked.in.more;
    if (!endpoint->asked.n || endpoint->asked.in.unsound)
        worse(endpoint, EXIT_BAD_DATA);
    const int64_t loads = (int64_t)(plan->rounds * plan->points);
    const int64_t each = (int64_t)endpoint->asked.n +
                         (endpoint->a->warmup < (int64_t)endpoint->asked.n
                              ? endpoint->a->warmup
                              : (int64_t)endpoint->asked.n);
    progress_start(&endpoint->progress, &endpoint->log, endpoint->a->common.progress, "requests",
                   loads * each);
    for (size_t round = 0; round < plan->rounds; round++)
        for (size_t i = 0; i < plan->points && !stop_signal; i++)
            if (run_point(endpoint, &plan->point[i], plan->round ? plan->round[i] : (int64_t)round,
                          e))
                return -1;
    progress_end(&endpoint->progress);
    if (endpoint->cached)
        log_warn(&endpoint->log, "W118",
                 "%lld timed prompts were in the server's cache, in part or as a "
                 "whole (cached_tokens): turn off the cache, or give each prompt once",
                 (long long)endpoint->cached);
    return 0;
}

/* ---- main ---- */

static const char examples[] =
    "gen-endpoint --url http://127.0.0.1:8080/v1 -m m.gguf p.ndjson > a.ndjson\n"
    "gen-endpoint --url URL -m m.gguf --concurrency 1,4,16 --api chat p.ndjson\n"
    "gen-endpoint --url URL -m DIR --loop open --arrival-rate 0.5,1,2 p.ndjson\n"
    "measure --ttft-limit-ms 200 --itl-limit-ms 50 a.ndjson > metrics.ndjson\n";

static const char notes[] =
    "The server is another software stack; the records name it (`stack`). Fronts,\n"
    "crossovers and the answer of a run leave such records out. compare --by stack\n"
    "states their ratio to our LLaMA, as a ratio of two programs.\n"
    "Clock: e2e_ns begins when a request is sent (open loop: when it is due) and ends\n"
    "with the event that has the finish_reason, as this client sees them. It includes\n"
    "the network and the server's queue, tokenizer and template. ttft_ns ends with\n"
    "the first text. The clock does not include counting tokens.\n"
    "\n"
    "new_tokens is the server's count (usage), without the token that ends the text.\n"
    "Without -m that token may be in the count, unless each emission is one token.\n"
    "With -m the text is encoded again (retokenized_tokens): the request fails if the\n"
    "count differs by more than 2 tokens plus a tenth. If there are as many emissions\n"
    "as tokens, each emission is one token. Otherwise a token belongs to the emission\n"
    "that brought its last byte. token_ids is null.\n"
    "The requests of a round of a point are one load and form one batch. batch_ns is\n"
    "the time from the start of the load to its last answer. A rate is the number of\n"
    "tokens of all requests / batch_ns. Closed loop: --concurrency requests are in\n"
    "flight. Open loop: a request is due at a time fixed in advance, however many are\n"
    "in flight. Its latency counts from that time.\n"
    "A server keeps running between launches, so intervals do not cover its start.\n"
    "It may keep prompts in a cache, and repeats are then faster. Turn this cache off\n"
    "in the server, or by --body '{ \"cache_prompt\": false }' (llama.cpp).\n"
    "--contract fixed sends ignore_eos, which llama.cpp and vLLM know.\n"
    "A failed request becomes an error record; the others go on. A request fails if\n"
    "the server dies, sends no text within --timeout, or sends broken JSON, half a\n"
    "character, a count that cannot be true, or a text without its end.\n"
    "An interrupted load cannot be continued, because its requests share the server.\n"
    "Exit: 0 done; 1 with error records; 64 usage; 65 no usable prompt; 66 no input;\n"
    "69 no server; 73, 74 output; 129, 130, 143 interrupted.\n";

#define OWN_OPTIONS(a)                                                                             \
    {.type = OPT_HEADING, .name = "", .help = "The server:"},                                      \
    {"url", 0, OPT_TEXT, &(a).url, .arg = "URL", .help = "the API, such as http://HOST:8080/v1"},  \
    {"model", 'm', OPT_TEXT, &(a).model, .arg = "MODEL",                                           \
     .help = "the model that the server runs, to count tokens with its tokenizer: a folder, "      \
             "FILE.gguf, or a name in the local cache"},                                           \
    {"served", 0, OPT_TEXT, &(a).served, .arg = "NAME",                                            \
     .help = "name of the model on the server (needed if it has several)"},                        \
    {"stack", 0, OPT_TEXT, &(a).stack, .arg = "NAME",                                              \
     .help = "name and version of the server's software (asked of the server)"},                   \
    {"body", 0, OPT_TEXT, &(a).body, .arg = "JSON", .rare = 1,                                     \
     .help = "more members of each request, as an object"},                                        \
    {"key-env", 0, OPT_TEXT, &(a).key_env, .arg = "NAME", .rare = 1,                               \
     .help = "environment variable that holds the key of the API"},                                \
    {"timeout", 0, OPT_REAL, &(a).timeout, 0.001, 86400, .arg = "SECONDS",                         \
     .help = "a request fails after this time without new text (300)"},                            \
    {.type = OPT_HEADING, .name = "", .help = "Run:"},                                             \
    {"warmup", 0, OPT_INT, &(a).warmup, 0, 1000000, .arg = "N",                                    \
     .help = "send N prompts before each round of a point (0)"},                                   \
    {"repeat", 0, OPT_INT, &(a).repeat, 1, 1000000, .arg = "N",                                    \
     .help = "rounds over all prompts (1)"},                                                       \
    {"schedule", 0, OPT_TEXT, &(a).schedule, .arg = "FILE",                                        \
     .help = "run launch record K of FILE: settings and rounds"},                                  \
    {"launch", 0, OPT_INT, &(a).launch, 0, 1000000000, .arg = "K",                                 \
     .help = "number of this launch; with --schedule also of its launch record (0)"}

/* Returns the index of the first operand. */
static int parse(struct args *args, const char **given, int argc, char **argv)
{
    const struct opt own[] = {OWN_OPTIONS(*args), OPT_COMMON(args->common), {0}};
    struct opt *options = mem_zero(1 + system_endpoint.n + SETTINGS_ALIASES +
                                   sizeof own / sizeof *own, sizeof *options);
    struct settings_texts texts = {0};
    options[0] = (struct opt){.type = OPT_HEADING, .name = "",
                              .help = "Requests and load (comma-separated values run every "
                                      "combination):"};
    size_t at = 1 + settings_options(&system_endpoint, given, options + 1, &texts);
    at += settings_alias_options(&system_endpoint, given, options + at, &texts);
    memcpy(options + at, own, sizeof own);
    const struct tool tool = {TOOL, "prompt records in, generations of an OpenAI-type server out",
                              examples, notes, options, NEEDS_NETWORK};
    int first = opt_parse(&tool, argc, argv);
    settings_texts_free(&texts);
    free(options);
    return first;
}

static int open_all(struct endpoint *endpoint, const char **given, int argc, char **argv, int first,
                    struct err *e)
{
    const struct args *args = endpoint->a;
    int bad = args->schedule ? run_plan_read(&endpoint->plan, &system_endpoint, given,
                                             args->schedule, args->launch, e)
                             : run_plan_cross(&endpoint->plan, &system_endpoint, given,
                                              (size_t)args->repeat, (uint64_t)args->common.seed, e);
    return bad || read_body(endpoint, e) || open_model(endpoint, e) ||
                   asked_read(&endpoint->asked, (const char *const *)argv + first,
                              (size_t)(argc - first), args->common.limit, e) ||
                   open_server(endpoint, e) || rec_open(&endpoint->out, &args->common, TOOL, argc,
                                                        argv, meta_of(endpoint), e)
               ? -1
               : 0;
}

static void close_all(struct endpoint *endpoint)
{
    http_close(endpoint->http);
    served_free(&endpoint->served);
    asked_free(&endpoint->asked);
    run_plan_free(&endpoint->plan);
    tokenizer_free(endpoint->tokenizer);
    json_decref(endpoint->more);
    free(endpoint->conditions);
}

int main(int argc, char **argv)
{
    struct args args = {.common = COMMON_DEFAULTS, .repeat = 1, .timeout = 300};
    struct endpoint endpoint = {.a = &args, .process_ns = clock_ns()};
    const char *given[SETTINGS_MAX] = {0};
    struct err e = {0};
    int first = parse(&args, given, argc, argv);
    endpoint.log = (struct log){TOOL, args.common.quiet ? 0 : 1 + args.common.verbose};
    if (open_all(&endpoint, given, argc, argv, first, &e))
        err_die(TOOL, &e);
    catch_signals();
    endpoint.out.inputs = json_incref(endpoint.asked.in.inputs);
    if (run_all(&endpoint, &e) ||
        (stop_signal ? rec_interrupted(&endpoint.out, &e)
                     : rec_close(&endpoint.out, endpoint.worst ? "failed" : "ok", &e))) {
        rec_abandon(&endpoint.out);
        err_die(TOOL, &e);
    }
    close_all(&endpoint);
    return stop_signal ? 128 + stop_signal : endpoint.worst;
}
