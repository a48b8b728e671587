/* gen-endpoint - prompt records in, generation records of any OpenAI-type server out.
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
    json_t *more;                /* of --body */
    char name[HUB_NAME];         /* of the model in records */
    char *conditions;            /* NULL: none */
    int64_t process_ns, batch_id, seq, said, sent;
    int64_t cached;              /* timed answers with a prompt that the server had cached */
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
    struct sigaction once = {.sa_flags = (int)SA_RESETHAND}; /* a second one ends at once */
    once.sa_handler = note_signal;
    sigaction(SIGINT, &once, NULL);
    sigaction(SIGTERM, &once, NULL);
    sigaction(SIGHUP, &once, NULL);
}

/* ---- before the first request ---- */

/* The tokenizer of -m, and the model's name. Weights are not read. */
static int open_model(struct endpoint *s, struct err *e)
{
    const char *model = s->a->model;
    if (!model)
        return 0;
    if (gguf_is(model)) {
        struct tensors *file = safetensors_open_file(model, e);
        json_t *keys = file ? tokenizer_of_gguf(safetensors_metadata(file), model, e) : NULL;
        s->tokenizer = keys ? tokenizer_load_json(keys, model, e) : NULL;
        json_decref(keys);
        safetensors_close(file);
        hub_model_name(model, s->name);
    } else {
        char *folder = hub_folder(model, e);
        s->tokenizer = folder ? tokenizer_load(folder, e) : NULL;
        hub_model_name(folder ? folder : model, s->name);
        free(folder);
    }
    return s->tokenizer ? 0 : -1;
}

/* Reads --body, which is part of the point: it may change answers and times. */
static int read_body(struct endpoint *s, struct err *e)
{
    const char *text = s->a->body;
    json_error_t why;
    if (!text)
        return 0;
    s->more = json_strict(text, strlen(text), &why);
    if (!json_is_object(s->more))
        return err_set(e, EXIT_BAD_USAGE, "--body: expected a JSON object, got '%.100s'%s%s", text,
                       s->more ? "" : ": ", s->more ? "" : why.text);
    char *sorted = json_dumps(s->more, JSON_COMPACT | JSON_SORT_KEYS);
    s->conditions = mem_format("body=%s", sorted);
    free(sorted);
    return 0;
}

/* Records are JSON, so these texts must be UTF-8. */
static int check_texts(const struct args *a, struct err *e)
{
    const struct { const char *name, *text; } all[] = {
        {"--url", a->url}, {"--served", a->served}, {"--stack", a->stack}};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (all[i].text && utf8_valid(all[i].text, strlen(all[i].text)) < strlen(all[i].text))
            return err_set(e, EXIT_BAD_USAGE, "%s: expected UTF-8", all[i].name);
    return 0;
}

static int open_server(struct endpoint *s, struct err *e)
{
    const struct args *a = s->a;
    const char *key = a->key_env ? getenv(a->key_env) : NULL;
    if (a->key_env && !key)
        return err_set(e, EXIT_BAD_USAGE, "--key-env: the environment has no variable %.100s",
                       a->key_env);
    if (!a->url)
        return err_set(e, EXIT_BAD_USAGE, "expected --url http://HOST:PORT/v1");
    if (check_texts(a, e) || !(s->http = http_open(a->url, key, e)) ||
        served_ask(&s->served, s->http, a->served, a->stack, ASK_SECONDS, e))
        return -1;
    const char *slash = strrchr(s->served.model, '/');
    const char *name = slash && slash[1] ? slash + 1 : s->served.model;
    if (!*s->name)
        snprintf(s->name, sizeof s->name, "%.*s",
                 (int)utf8_whole(name, strnlen(name, sizeof s->name - 1)), name);
    log_more(&s->log, "%s: model %s, stack %s", a->url, s->served.model, s->served.stack);
    return 0;
}

/* The members of the meta record. */
static json_t *meta_of(const struct endpoint *s)
{
    json_t *m = json_pack("{s:{s:s, s:s, s:s}, s:s?, s:s, s:I, s:I}", "endpoint", "url", s->a->url,
                          "served", s->served.model, "stack", s->served.stack, "tokenizer_sha256",
                          s->tokenizer ? tokenizer_hash(s->tokenizer) : NULL, "prompts_sha256",
                          s->asked.in.sha256, "prompts", (json_int_t)s->asked.n, "launch",
                          (json_int_t)s->a->launch);
    assert(m);
    return m;
}

/* ---- a load ---- */

static void worse(struct endpoint *s, int code)
{
    s->worst = code > s->worst ? code : s->worst;
}

/* A request that failed costs itself. */
static int failed(struct endpoint *s, const struct asked_prompt *p, struct err *why, struct err *e)
{
    err_prefix(why, "prompt '%.100s'", p->id);
    why->code = EXIT_FAILED_RECORDS;
    worse(s, EXIT_FAILED_RECORDS);
    if (s->said++ < REC_BAD_SAID)
        log_note(&s->log, "%s", why->text);
    return rec_error(&s->out, why, p->where, json_object_get(p->record, "id"), e);
}

static int write_answer(struct endpoint *s, const struct remote_place *at,
                        const struct asked_prompt *p, struct load_request *r, struct err *e)
{
    struct recount c = {0};
    if (!r->why.code) {
        const int chat = settings_is(at->point, "api", "chat");
        recount_prompt(&r->reply, asked_tokens(p, s->tokenizer), chat, &r->why);
        recount_answer(&c, &r->reply, s->tokenizer, &r->why);
        s->cached += r->reply.cached_tokens.n > 0 && !strcmp(at->phase, "timed");
    }
    int bad = r->why.code ? failed(s, p, &r->why, e)
                          : rec_write(&s->out, "generation",
                                      remote_record(at, p, r, &c, s->seq++), e);
    recount_free(&c);
    return bad;
}

static struct load_how how_of(const struct endpoint *s, const struct settings *point,
                              uint64_t seed)
{
    const int open = settings_is(point, "loop", "open");
    return (struct load_how){
        .path = asked_path(point), .in_flight = open ? 0 : settings_count(point, "batch"),
        .arrivals = {settings_number(point, "arrival_rate"),
                     settings_is(point, "arrivals", "even"), seed},
        .patience_s = s->a->timeout,
        .most = TEXT_PER_TOKEN * settings_count(point, "max_new") + TEXT_MORE,
        .stop = &stop_signal};
}

/* Sends prompts order[0..n-1] of a point and writes their records. */
static int run_load(struct endpoint *s, struct remote_place *at, const uint32_t *order, size_t n,
                    struct err *e)
{
    struct load_request *v = mem_zero(n, sizeof *v);
    const struct asked_prompt **of = mem_zero(n, sizeof *of);
    const struct asked_how asked = {at->point, s->served.model, at->seed, s->more};
    const struct load_how how = how_of(s, at->point, rng_at(rng_derive(at->seed, at->phase),
                                                            (uint64_t)at->launch,
                                                            (uint64_t)at->round));
    int64_t begin = 0;
    size_t used = 0;
    int bad = 0;
    for (size_t i = 0; i < n && !bad; i++) {
        struct err why = {0};
        of[used] = &s->asked.v[order[i]];
        v[used].body = asked_body(of[used], &asked, &v[used].n, &why);
        if (v[used].body)
            used++;
        else
            bad = failed(s, of[used], &why, e);
    }
    if (!bad)
        load_run(s->http, v, used, &how, &begin, &at->batch_ns);
    at->start_ns = begin - s->process_ns;
    at->batch_id = s->batch_id++;
    for (size_t i = 0; i < used && !bad; i++)
        bad = v[i].was_sent && write_answer(s, at, of[i], &v[i], e);
    s->sent += (int64_t)n;
    progress_at(&s->progress, s->sent, NULL);
    load_free(v, used);
    for (size_t i = 0; i < used; i++)
        free((char *)(uintptr_t)v[i].body);
    free(of);
    free(v);
    return bad;
}

/* The order of the prompts in a round. The caller frees. */
static uint32_t *order_of(const struct endpoint *s, int64_t round)
{
    uint32_t *order = mem_zero(s->asked.n + 1, sizeof *order);
    struct rng draw = {rng_derive(s->plan.seed, "order"),
                       (uint64_t)s->a->launch << 32 | (uint64_t)round, 0};
    for (size_t i = 0; i < s->asked.n; i++)
        order[i] = (uint32_t)i;
    rng_shuffle(&draw, order, s->asked.n);
    return order;
}

static int run_point(struct endpoint *s, const struct settings *point, int64_t round,
                     struct err *e)
{
    const size_t n = s->asked.n, warmups = s->a->warmup < (int64_t)n ? (size_t)s->a->warmup : n;
    struct remote_place at = {
        .point = point, .model = s->name, .stack = s->served.stack, .conditions = s->conditions,
        .tokenizer = s->tokenizer ? tokenizer_hash(s->tokenizer) : NULL, .phase = "warmup",
        .asked = &s->asked, .seed = s->plan.seed, .launch = s->a->launch, .round = round,
        .warmups = (int64_t)warmups};
    uint32_t *order = order_of(s, round);
    int bad = warmups ? run_load(s, &at, order, warmups, e) : 0;
    at.phase = "timed";
    bad = bad || (!stop_signal && run_load(s, &at, order, n, e));
    free(order);
    return bad;
}

static int run_all(struct endpoint *s, struct err *e)
{
    const struct run_plan *plan = &s->plan;
    for (size_t i = 0; i < s->asked.in.faults; i++) {
        struct prompt_fault *f = &s->asked.in.fault[i];
        worse(s, EXIT_FAILED_RECORDS);
        if (rec_bad(&s->out, &f->err, f->where, f->id, e))
            return -1;
    }
    s->out.bad += s->asked.in.more;
    if (!s->asked.n || s->asked.in.unsound)
        worse(s, EXIT_BAD_DATA);
    const int64_t loads = (int64_t)(plan->rounds * plan->points);
    const int64_t each = (int64_t)s->asked.n + (s->a->warmup < (int64_t)s->asked.n
                                                    ? s->a->warmup : (int64_t)s->asked.n);
    progress_start(&s->progress, &s->log, s->a->common.progress, "requests", loads * each);
    for (size_t r = 0; r < plan->rounds; r++)
        for (size_t i = 0; i < plan->points && !stop_signal; i++)
            if (run_point(s, &plan->point[i], plan->round ? plan->round[i] : (int64_t)r, e))
                return -1;
    progress_end(&s->progress);
    if (s->cached)
        log_warn(&s->log, "W118", "%lld timed prompts were in the server's cache, in part or as a "
                 "whole (cached_tokens): turn off the cache, or give each prompt once",
                 (long long)s->cached);
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
     .help = "take settings and rounds from a launch record"},                                     \
    {"launch", 0, OPT_INT, &(a).launch, 0, 1000000000, .arg = "K",                                 \
     .help = "number of this process and of its launch record (0)"}

/* Returns the index of the first operand. */
static int parse(struct args *a, const char **given, int argc, char **argv)
{
    const struct opt own[] = {OWN_OPTIONS(*a), OPT_COMMON(a->common), {0}};
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

static int open_all(struct endpoint *s, const char **given, int argc, char **argv, int first,
                    struct err *e)
{
    const struct args *a = s->a;
    int bad = a->schedule ? run_plan_read(&s->plan, &system_endpoint, given, a->schedule, a->launch,
                                          e)
                          : run_plan_cross(&s->plan, &system_endpoint, given, (size_t)a->repeat,
                                           (uint64_t)a->common.seed, e);
    return bad || read_body(s, e) || open_model(s, e) ||
                   asked_read(&s->asked, (const char *const *)argv + first, (size_t)(argc - first),
                              a->common.limit, e) ||
                   open_server(s, e) || rec_open(&s->out, &a->common, TOOL, argc, argv,
                                                 meta_of(s), e)
               ? -1
               : 0;
}

static void close_all(struct endpoint *s)
{
    http_close(s->http);
    served_free(&s->served);
    asked_free(&s->asked);
    run_plan_free(&s->plan);
    tokenizer_free(s->tokenizer);
    json_decref(s->more);
    free(s->conditions);
}

int main(int argc, char **argv)
{
    struct args a = {.common = COMMON_DEFAULTS, .repeat = 1, .timeout = 300};
    struct endpoint s = {.a = &a, .process_ns = clock_ns()};
    const char *given[SETTINGS_MAX] = {0};
    struct err e = {0};
    int first = parse(&a, given, argc, argv);
    s.log = (struct log){TOOL, a.common.quiet ? 0 : 1 + a.common.verbose};
    if (open_all(&s, given, argc, argv, first, &e))
        err_die(TOOL, &e);
    catch_signals();
    s.out.inputs = json_incref(s.asked.in.inputs);
    if (run_all(&s, &e) ||
        rec_close(&s.out, stop_signal ? "interrupted" : s.worst ? "failed" : "ok", &e)) {
        rec_abandon(&s.out);
        err_die(TOOL, &e);
    }
    close_all(&s);
    return stop_signal ? 128 + stop_signal : s.worst;
}
