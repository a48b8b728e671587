/* peer.c - runs other engines on the works of our jobs. llama.cpp's own tools run in turn with our
 * generators: each call is one process and one run after the tool's own warm-up; the tool's figure
 * does not include loading. A peer of the user is a command. The command runs once, before our
 * jobs, and lists its works. Each listed work that is also a job of ours is then requested by name,
 * in turn with our generators, and the median of these turns counts.
 *
 * A peer that crashes, hangs, is missing or prints something else is named once with its failure.
 * Such a peer is not run again, and its column stays empty. Records about peers come last: failures
 * as errors, and the lines of --peer-command as kind `peer`. */
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/mem.h"
#include "tests/bench/bench.h"
#include "tests/bench/command.h"

/* ---- failures ---- */

static int has_failed(const struct bench *b, const char *who)
{
    return json_object_get(b->peers_failed, who) != NULL;
}

void peer_failed(struct bench *b, const char *who, const char *how)
{
    if (has_failed(b, who))
        return;
    if (!b->peers_failed)
        b->peers_failed = json_object();
    json_object_set_new(b->peers_failed, who, json_string(how));
    fprintf(stderr, "bench: peer %s: %s; its column stays empty\n", who, how);
}

static char *run_command(const struct bench *b, const char *line, struct command_end *end)
{
    const struct command c = {.line = line, .limit_s = b->peer_limit_s, .stop = b->stop};
    return command_run(&c, end);
}

/* ---- llama.cpp ---- */

/* With --clock cpu: the variables set before a command, so that the command's clocks count
 * processor time. */
static char *clock_setting(const struct peer *p)
{
    char self[4096];
    ssize_t n = bench_by_processor(p->bench) ? readlink("/proc/self/exe", self, sizeof self) : 0;
    while (n > 0 && self[n - 1] != '/')
        n--;
    return n > 0 ? mem_format("CLOCK_THREADS=%zu LD_PRELOAD='%.*sprocessor-clock.so' ", p->threads,
                              (int)n, self)
                 : mem_text("");
}

/* Runs "PROGRAM -m 'FILE' -t THREADS OPTIONS" and returns the number that `find` reads from its
 * output; NaN if there is none. A file name with a quote in it is not tried. */
static double run_tool(const struct peer *p, const char *program, const char *options,
                       double (*find)(const char *text))
{
    struct bench *b = p->bench;
    struct command_end end;
    double rate = NAN;
    char *who = mem_format("%s of %s", program, p->file);
    char *clock = clock_setting(p);
    char *line = mem_format("%sexec %s -m '%s' -t %zu %s", clock, program, p->file, p->threads,
                            options);
    if (!has_failed(b, program) && !has_failed(b, who) && !strchr(p->file, '\'')) {
        char *text = run_command(b, line, &end);
        rate = text ? find(text) : rate;
        if (isnan(rate) && !*b->stop)
            peer_failed(b, end.missing ? program : who,
                        text ? "it printed no rate (run it by hand to see why)" : end.how);
        free(text);
    }
    free(line);
    free(clock);
    free(who);
    return rate;
}

/* Returns a number from the first object of a list, or from a line. */
static double number_of(const char *text, const char *key)
{
    json_t *j = text ? json_loads(text, JSON_DISABLE_EOF_CHECK, NULL) : NULL;
    double x = rec_number(json_is_array(j) ? json_array_get(j, 0) : j, key);
    json_decref(j);
    return x;
}

static double bench_rate(const char *text)
{
    return number_of(text, "avg_ts");
}

static double batch_rate(const char *text)
{
    return number_of(strchr(text, '{'), "speed_tg");
}

/* Returns the seconds of all steps from the tool's log. */
static double diffusion_s(const char *text)
{
    const char *total = strstr(text, "total time: ");
    double ms = total ? strtod(total + strlen("total time: "), NULL) : 0;
    return ms > 0 ? ms / 1e3 : (double)NAN;
}

static double bench_tool(const struct peer *p, size_t prompt, size_t tokens)
{
    char options[96];
    snprintf(options, sizeof options, "-p %zu -n %zu -r 1 -o json 2>/dev/null", prompt, tokens);
    return run_tool(p, "llama-bench", options, bench_rate);
}

double peer_prefill(const struct peer *p, size_t tokens)
{
    return bench_tool(p, tokens, 0);
}

double peer_decode(const struct peer *p, size_t tokens)
{
    return bench_tool(p, 0, tokens);
}

double peer_batch(const struct peer *p, size_t batch, size_t prompt, size_t tokens)
{
    char options[160];
    snprintf(options, sizeof options,
             "-npp %zu -ntg %zu -npl %zu -c %zu --output-format jsonl 2>/dev/null", prompt, tokens,
             batch, batch * (prompt + tokens));
    return run_tool(p, "llama-batched-bench", options, batch_rate);
}

/* Top-k 1 is the cheapest way of the tool's sampler to choose a token. */
double peer_diffuse(const struct peer *p, size_t positions, size_t block, size_t steps)
{
    char options[192];
    snprintf(options, sizeof options, "-tb %zu -p x -ub %zu -b %zu -c %zu --temp 0 --top-k 1 "
             "--diffusion-block-length %zu --diffusion-steps %zu --diffusion-algorithm 4 2>&1",
             p->threads, positions, positions, positions, block, steps);
    return (double)positions / run_tool(p, "llama-diffusion-cli", options, diffusion_s);
}

/* ---- a peer of the user ---- */

/* Sets the requested work in the environment of the command. */
static void say_wishes(const struct bench *b)
{
    char threads[24], repeat[24];
    struct pool *pool = pool_new((size_t)b->threads);
    snprintf(threads, sizeof threads, "%zu", pool_threads(pool));
    pool_free(pool);
    snprintf(repeat, sizeof repeat, "%lld", (long long)b->repeat);
    setenv("BENCH_DEVICE", b->device, 1);
    setenv("BENCH_SHAPES", b->shapes, 1);
    setenv("BENCH_DTYPES", b->dtypes, 1);
    setenv("BENCH_JOBS", b->jobs, 1);
    setenv("BENCH_THREADS", threads, 1);
    setenv("BENCH_REPEAT", repeat, 1);
    setenv("BENCH_CLOCK", b->clock, 1);
}

/* Adds one line to `told`. Returns -1 with *why if the line is not valid. */
static int take_line(json_t *told, const char *line, size_t n, struct err *why)
{
    json_t *j = json_loadb(line, n, 0, NULL);
    json_object_del(j, "turns"); /* this field is ours */
    json_object_del(j, "met");
    if (!rec_text(j, "work") || !(rec_number(j, "tokens_per_s") > 0)) {
        json_decref(j);
        return err_set(why, EXIT_BAD_DATA, "line %zu: expected a JSON object with work and "
                       "tokens_per_s, got %.*s", json_array_size(told) + 1,
                       (int)(n < 60 ? n : 60), line);
    }
    return json_array_append_new(told, j);
}

/* Returns the list of the lines of a text, or NULL with *why. */
static json_t *take_lines(const char *text, struct err *why)
{
    json_t *told = json_array();
    int bad = 0;
    while (!bad && *text) {
        size_t n = strcspn(text, "\n");
        bad = n && take_line(told, text, n, why);
        text += n + (text[n] == '\n');
    }
    if (!bad && !json_array_size(told))
        bad = err_set(why, EXIT_BAD_DATA, "it printed nothing");
    if (!bad)
        return told;
    json_decref(told);
    return NULL;
}

/* Runs the peer's command and returns its lines; the caller frees them. Returns NULL if the peer
 * failed, and records the failure. */
static json_t *listen(struct bench *b)
{
    struct command_end end;
    struct err why = {0};
    char *text = run_command(b, b->peer_command, &end);
    json_t *told = text ? take_lines(text, &why) : NULL;
    if (!told && !*b->stop)
        peer_failed(b, b->peer_command, text ? why.text : end.how);
    free(text);
    return told;
}

void peer_ask(struct bench *b)
{
    say_wishes(b);
    b->told = listen(b);
}

/* Returns 1 if `key` has the same value in the line and the record, or if the line has no `key`. */
static int agrees(const json_t *line, const json_t *record, const char *key)
{
    const char *said = rec_text(line, key), *is = rec_text(record, key);
    return !said || (is && !strcmp(said, is));
}

/* Returns the first line of `told` about the work of a record, borrowed, or NULL. */
static json_t *line_of(const json_t *told, const json_t *record)
{
    size_t i;
    json_t *line;
    json_array_foreach(told, i, line)
        if (agrees(line, record, "work") && agrees(line, record, "model") &&
            agrees(line, record, "dtype"))
            return line;
    return NULL;
}

/* Returns the list of this name in a line, borrowed; makes a missing list. */
static json_t *list_in(json_t *line, const char *name)
{
    json_t *list = json_object_get(line, name);
    if (!list)
        json_object_set_new(line, name, list = json_array());
    return list;
}

int peer_tells(const struct bench *b, const json_t *record)
{
    return !has_failed(b, b->peer_command) && line_of(b->told, record);
}

void peer_turn(struct bench *b, const json_t *record)
{
    static const char *const names[][2] = {
        {"BENCH_WORK", "work"}, {"BENCH_MODEL", "model"}, {"BENCH_DTYPE", "dtype"}};
    if (*b->stop || !peer_tells(b, record))
        return;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        setenv(names[i][0], rec_text(record, names[i][1]), 1);
    setenv("BENCH_REPEAT", "1", 1);
    json_t *told = listen(b);
    const json_t *line = line_of(told, record);
    if (line)
        json_array_append(list_in(line_of(b->told, record), "turns"),
                          json_object_get(line, "tokens_per_s"));
    else if (told) {
        char *how = mem_format("it printed no line about \"%s\" when only this work was requested",
                               rec_text(record, "work"));
        peer_failed(b, b->peer_command, how);
        free(how);
    }
    json_decref(told);
}

/* Returns the median of the turns of a line and removes them; without turns, the line's first
 * figure. */
static double rate_of(json_t *line)
{
    json_t *turns = json_object_get(line, "turns");
    size_t n = json_array_size(turns);
    double *v = mem_zero(n, sizeof *v), rate = rec_number(line, "tokens_per_s");
    for (size_t i = 0; i < n; i++)
        v[i] = json_number_value(json_array_get(turns, i));
    if (n)
        rate = median_of(v, n);
    json_array_clear(turns);
    free(v);
    return rate;
}

const json_t *peer_line(struct bench *b, const json_t *record, double *rate)
{
    json_t *line = peer_tells(b, record) ? line_of(b->told, record) : NULL;
    if (!line)
        return NULL;
    *rate = rate_of(line);
    json_array_append_new(list_in(line, "met"),
                          json_pack("{s:O, s:O, s:f, s:f}", "model",
                                    json_object_get(record, "model"), "dtype",
                                    json_object_get(record, "dtype"), "tokens_per_s", *rate,
                                    "peer_ratio", rec_number(record, "tokens_per_s") / *rate));
    return line;
}

/* ---- the records ---- */

/* Writes a line of the peer as a record, alone or joined to the record of our job. */
static int put_line(struct bench *b, const json_t *line, const json_t *met, struct err *e)
{
    static const char *const keys[] = {"peer", "work", "model", "dtype"};
    json_t *r = json_object();
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        const char *said = rec_text(met, keys[i]);
        said = said ? said : rec_text(line, keys[i]);
        if (said)
            json_object_set_new(r, keys[i], json_string(said));
    }
    rec_set_number(r, "tokens_per_s", rec_number(met ? met : line, "tokens_per_s"), NULL);
    rec_set_number(r, "peer_ratio", rec_number(met, "peer_ratio"),
                   "no such work was measured here");
    return rec_write(&b->out, "peer", r, e);
}

static int put_told(struct bench *b, struct err *e)
{
    size_t i, k, alone = 0;
    json_t *line, *met;
    int bad = 0;
    json_array_foreach(b->told, i, line) {
        const json_t *all = json_object_get(line, "met");
        if (!all && has_failed(b, b->peer_command))
            continue;
        json_array_foreach(all, k, met)
            bad = bad || put_line(b, line, met, e);
        bad = bad || (!all && put_line(b, line, NULL, e));
        if (!all && !alone++ && !bench_chosen(b->only, "peer"))
            fprintf(stderr, "bench: the peer tells of \"%s\", which is no work that was measured "
                    "here\n", rec_text(line, "work"));
    }
    return bad;
}

int peer_finish(struct bench *b, struct err *e)
{
    const char *who;
    json_t *how;
    int bad = put_told(b, e);
    json_object_foreach(b->peers_failed, who, how) {
        struct err what = {0};
        err_set(&what, EXIT_FAILED_RECORDS, "peer %s: %s", who, json_string_value(how));
        bad = bad || rec_error(&b->out, &what, "peer", NULL, e);
    }
    return bad ? -1 : 0;
}
