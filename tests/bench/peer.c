/* peer.c - llama.cpp's own tools and what they print: each call is one process and one run after
 * the tool's own warm-up; what it loads is not in its figure. And a peer of the user's own, which
 * is run once and tells all at once. */
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/mem.h"
#include "tests/bench/bench.h"

/* What a command prints on standard output, or NULL when it fails or says nothing; the caller
 * frees. */
static char *output_of(const char *command)
{
    struct buf text = {0};
    char piece[4096];
    size_t n;
    FILE *f = popen(command, "r");
    while (f && (n = fread(piece, 1, sizeof piece, f)) > 0)
        buf_put(&text, piece, n);
    if (f && !pclose(f) && text.data)
        return text.data;
    buf_free(&text);
    return NULL;
}

/* Runs "PROGRAM -m 'FILE' -t THREADS OPTIONS"; the caller frees the answer. A file name with a
 * quote in it is not tried. */
static char *run_tool(const struct peer *p, const char *program, const char *options)
{
    char *command = strchr(p->file, '\'')
                        ? NULL
                        : mem_format("%s -m '%s' -t %zu %s < /dev/null", program,
                                     p->file, p->threads, options);
    char *text = command ? output_of(command) : NULL;
    if (!text)
        fprintf(stderr, "bench: %s of %s failed: no peer figure; run it by hand to see why\n",
                program, p->file);
    free(command);
    return text;
}

/* A number of the first object of llama-bench's list, or of a line of batched-bench. */
static double number_of(const char *text, const char *key)
{
    json_t *j = text ? json_loads(text, JSON_DISABLE_EOF_CHECK, NULL) : NULL;
    const json_t *first = json_is_array(j) ? json_array_get(j, 0) : j;
    const json_t *value = json_object_get(first, key);
    double x = json_is_number(value) ? json_number_value(value) : (double)NAN;
    json_decref(j);
    return x;
}

static double bench_tool(const struct peer *p, size_t prompt, size_t tokens)
{
    char options[96];
    snprintf(options, sizeof options, "-p %zu -n %zu -r 1 -o json 2>/dev/null", prompt, tokens);
    char *text = run_tool(p, "llama-bench", options);
    double rate = number_of(text, "avg_ts");
    free(text);
    return rate;
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
    char *text = run_tool(p, "llama-batched-bench", options);
    const char *line = text ? strchr(text, '{') : NULL;
    double rate = number_of(line, "speed_tg");
    free(text);
    return rate;
}

/* Top-k 1 is the cheapest way of its sampler to a token; its time of all steps counts, which
 * it logs. */
double peer_diffuse(const struct peer *p, size_t positions, size_t block, size_t steps)
{
    char options[192];
    snprintf(options, sizeof options, "-tb %zu -p x -ub %zu -b %zu -c %zu --temp 0 --top-k 1 "
             "--diffusion-block-length %zu --diffusion-steps %zu --diffusion-algorithm 4 2>&1",
             p->threads, positions, positions, positions, block, steps);
    char *text = run_tool(p, "llama-diffusion-cli", options);
    const char *total = text ? strstr(text, "total time: ") : NULL;
    double ms = total ? strtod(total + strlen("total time: "), NULL) : (double)NAN;
    free(text);
    return ms > 0 ? (double)positions / ms * 1e3 : (double)NAN;
}

int peer_told(const char *command, json_t **told, struct err *e)
{
    char *text = output_of(command);
    if (!text)
        return err_set(e, EXIT_BAD_DATA, "--peer-command %s: it failed, or said nothing", command);
    *told = json_array();
    int bad = 0;
    for (char *at = text, *end; !bad && *at; at = end) {
        end = at + strcspn(at, "\n");
        json_t *line = json_loadb(at, (size_t)(end - at), 0, NULL);
        if (end > at && (!rec_text(line, "work") || isnan(rec_number(line, "tokens_per_s"))))
            bad = err_set(e, EXIT_BAD_DATA, "--peer-command %s: expected a JSON object with work "
                          "and tokens_per_s, got %.*s", command, (int)(end - at), at);
        if (line)
            json_array_append_new(*told, line);
        end += *end == '\n';
    }
    free(text);
    return bad;
}

/* 1: the line says the same of `key`, or nothing. */
static int agrees(const json_t *line, const char *key, const char *value)
{
    const char *said = rec_text(line, key);
    return !said || !strcmp(said, value);
}

const json_t *peer_line(const json_t *told, const char *model, const char *dtype, const char *work)
{
    size_t i;
    const json_t *line;
    json_array_foreach(told, i, line)
        if (agrees(line, "work", work) && agrees(line, "model", model) &&
            agrees(line, "dtype", dtype))
            return line;
    return NULL;
}
