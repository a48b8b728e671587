/* tools.c - measures the speed at which tools without a model read records. Two streams of --stream
 * bytes each are written. One has generations of eight step counts of a LLaDA and of a LLaMA, as
 * the generators write them except for the numbers; the other has their qualities. Each tool reads
 * one of the streams as a process.
 *
 * Three readers of the same stream in this process show what limits a tool: one only reads bytes,
 * one also hashes them, one also makes records of them, as all tools do. The time of a tool beyond
 * the last reader is its own work. Times are processor time, the least of several runs. The tools
 * have one thread, so this is their time on an idle machine. */
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "lib/base/hash.h"
#include "lib/base/mem.h"
#include "tests/bench/bench.h"
#include "tests/bench/command.h"

enum { POINTS = 9, TOKENS = 128, LAUNCHES = 5, WORDS = 60, BLOCK = 1 << 18 };
static const double slow_bytes_per_s = 40e6; /* a row below this rate says why */

enum { GENERATIONS, QUALITIES, STREAMS };
static const struct {
    const char *tool, *options;
    int reads;
} runs[] = {{"measure", "", GENERATIONS},
            {"score-exact", "", GENERATIONS},
            {"score-text", "", GENERATIONS},
            {"report", "--format html", GENERATIONS},
            {"plot", "--type drift", GENERATIONS},
            {"pareto", "", QUALITIES},
            {"compare", "--by paradigm", QUALITIES}};

struct stream {
    char *path;
    int64_t bytes, records;
    double took_s[3]; /* times of the three readers; each also does the work of the one before */
};
static const char *const shares[] = {"read", "hash", "parse", "work"};
enum { SHARES = sizeof shares / sizeof *shares };

/* ---- the streams ---- */

static size_t steps_of(size_t point)
{
    return point < POINTS - 1 ? (size_t)1 << point : TOKENS; /* the last one is the LLaMA */
}

/* Puts the fields that name the point; all records of the point have them. */
static void put_point(struct buf *b, size_t point)
{
    int llama = point == POINTS - 1;
    buf_format(b, "\"config\":\"%s-made steps=%zu batch=1\",\"point\":\"%012zx\",\"series\":"
               "\"00000000000%d\",\"axis\":%s,\"workload\":\"00c0ffee0000\",\"model\":\"%s-made\","
               "\"arch\":\"%s\",\"paradigm\":\"%s\",\"device\":\"cpu\",\"isa\":\"avx512\","
               "\"dtype\":\"bf16\",\"kv_dtype\":\"bf16\",\"quant\":\"none\",\"threads\":2,"
               "\"batch\":1,"
               "\"contract\":\"answer\",\"temperature\":0,\"steps\":", llama ? "llama" : "llada",
               steps_of(point), point + 1, llama, llama ? "null" : "\"steps\"",
               llama ? "llama" : "llada", llama ? "llama" : "llada",
               llama ? "autoregressive" : "masked_diffusion");
    if (llama)
        buf_text(b, "null");
    else
        buf_format(b, "%zu", steps_of(point));
}

/* Puts name:[from + step, from + 2 step, ...] with n numbers. */
static void put_list(struct buf *b, const char *name, size_t n, size_t from, size_t step)
{
    buf_format(b, ",\"%s\":", name);
    for (size_t i = 1; i <= n; i++)
        buf_format(b, "%c%zu", i > 1 ? ',' : '[', from + i * step);
    buf_char(b, ']');
}

/* Puts the fields that all generations of a point share: lists as long as real ones. */
static void put_generation(struct buf *b, size_t point)
{
    static const char *const words[] = {"the", "small", "boat", "went", "over", "a", "cold", "sea"};
    size_t steps = steps_of(point);
    put_point(b, point);
    buf_text(b, ",\"answer\":\"42\",\"reference\":\"the cold boat went over the small sea and 42 "
                "birds came with it\",\"task\":\"made\",\"prompt_tokens\":64,\"text\":\"");
    for (size_t i = 0; i < WORDS; i++)
        buf_format(b, "%s ", words[(i * 5 + i / 7 + point) % 8]);
    buf_format(b, "%d\"", point % 2 ? 42 : 41);
    put_list(b, "token_ids", TOKENS, 100 * point, 97);
    put_list(b, "emit_ns", steps, 0, 1000003);
    put_list(b, "emit_tokens", steps, TOKENS / steps, 0);
    put_list(b, "step_ns", steps, 0, 1000003);
    buf_format(b, ",\"new_tokens\":%d,\"tokens_to_eos\":%d,\"stop\":\"length\",\"phase\":\"timed\","
               "\"round\":0,\"denoise_steps\":%zu,\"passes\":%zu,\"rows\":%zu,\"seed\":0,"
               "\"ttft_ns\":1000003,\"memory\":{\"weights_bytes\":14000000,"
               "\"requested_peak_bytes\":15000000},\"status\":\"ok\"",
               TOKENS, TOKENS, steps, steps, steps * TOKENS);
}

static void put_quality(struct buf *b, size_t point)
{
    put_point(b, point);
    buf_text(b, ",\"metric\":\"accuracy\",\"direction\":\"higher\",\"seed\":0,\"task\":\"made\"");
}

/* Writes costs of all points, because qualities alone form no series. */
static void put_costs(FILE *f, struct stream *s)
{
    for (size_t p = 0; p < POINTS; p++, s->records++) {
        struct buf b = {0};
        put_point(&b, p);
        fprintf(f, "{\"schema\":\"crossover/1\",\"kind\":\"metric\",\"run\":\"made\",%s,\"metric\":"
                "\"e2e_ns\",\"value\":%zu,\"unit\":\"ns\",\"direction\":\"lower\"}\n", b.data,
                steps_of(p) * 1000003);
        buf_free(&b);
    }
}

/* Writes record i of a stream. Records come in the order of prompts, all points of a prompt
 * together; each prompt is a launch. */
static void put_record(FILE *f, int kind, size_t i, const struct buf *alike)
{
    size_t prompt = i / POINTS, took = 1000003 * steps_of(i % POINTS) + prompt * 7919 % 10007;
    fprintf(f, "{\"schema\":\"crossover/1\",\"kind\":\"%s\",\"run\":\"made\",\"id\":\"p%zu\",%s,",
            kind == GENERATIONS ? "generation" : "quality", prompt, alike->data);
    if (kind == GENERATIONS)
        fprintf(f, "\"launch\":%zu,\"seq\":%zu,\"batch_id\":%zu,\"e2e_ns\":%zu,\"batch_ns\":%zu}\n",
                prompt % LAUNCHES, i, i, took, took);
    else
        fprintf(f, "\"value\":%d}\n", (prompt * 2654435761u >> 7) % 10 < 2 + i % POINTS);
}

static int write_stream(const struct bench *b, int kind, struct stream *s, struct err *e)
{
    struct buf alike[POINTS] = {{0}};
    FILE *f = fopen(s->path, "w");
    if (!f)
        return err_set(e, EXIT_CANNOT_CREATE, "%s: %s", s->path, strerror(errno));
    for (size_t p = 0; p < POINTS; p++)
        (kind == GENERATIONS ? put_generation : put_quality)(&alike[p], p);
    if (kind == QUALITIES)
        put_costs(f, s);
    for (size_t i = 0; ftello(f) < b->stream_bytes && !ferror(f) && !*b->stop; i++, s->records++)
        put_record(f, kind, i, &alike[i % POINTS]);
    s->bytes = ftello(f);
    for (size_t p = 0; p < POINTS; p++)
        buf_free(&alike[p]);
    int bad = ferror(f);
    return fclose(f) || bad ? err_set(e, EXIT_IO, "%s: %s", s->path, strerror(errno)) : 0;
}

/* ---- the readers ---- */

static double cpu_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* Reads the file to its end, and hashes it if `hash` is not NULL. */
static int read_bytes(const char *path, struct hash *hash, struct err *e)
{
    char *block = mem_alloc(BLOCK);
    ssize_t n = -1;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    while (fd >= 0 && (n = read(fd, block, BLOCK)) > 0)
        if (hash)
            hash_add(hash, block, (size_t)n);
    if (fd >= 0)
        close(fd);
    free(block);
    return n ? err_set(e, EXIT_IO, "%s: cannot be read", path) : 0;
}

static int read_hashed(const char *path, struct err *e)
{
    struct hash *hash = hash_new();
    int bad = read_bytes(path, hash, e);
    hash_free(hash);
    return bad;
}

static int read_records(const char *path, struct err *e)
{
    json_t *record;
    int got = -1;
    struct rec_reader *r = rec_read_open(&path, 1, e);
    while (r && (got = rec_read(r, &record, e)) > 0)
        json_decref(record);
    rec_read_close(r);
    return got;
}

static int run_reader(int which, const char *path, struct err *e)
{
    return which == 0 ? read_bytes(path, NULL, e)
                      : which == 1 ? read_hashed(path, e) : read_records(path, e);
}

static int time_readers(const struct bench *b, struct stream *s, struct err *e)
{
    for (int which = 0; which < 3; which++) {
        s->took_s[which] = INFINITY;
        for (int64_t i = 0; i < b->repeat; i++) {
            double begin = cpu_s();
            if (bench_stopped(b, e) || run_reader(which, s->path, e))
                return -1;
            s->took_s[which] = fmin(s->took_s[which], cpu_s() - begin);
        }
    }
    return 0;
}

/* ---- the tools ---- */

/* Splits a time into part[SHARES]. If the readers take longer than the tool, this is noise, and the
 * tool's own work is 0. */
static void share_out(const struct stream *s, double took_s, double *part)
{
    double before = 0;
    for (int k = 0; k < SHARES - 1; k++) {
        part[k] = fmin(fmax(s->took_s[k] - before, 0), took_s - before) / took_s;
        before = fmin(fmax(s->took_s[k], before), took_s);
    }
    part[SHARES - 1] = (took_s - before) / took_s;
}

static int put_row(struct bench *b, size_t run, const struct stream *s,
                   const struct command_end *took, struct err *e)
{
    double part[SHARES], rate = (double)s->bytes / took->cpu_s;
    int most = 0;
    json_t *r = json_object();
    share_out(s, took->cpu_s, part);
    json_object_set_new(r, "tool", json_string(runs[run].tool));
    rec_set_int(r, "records", s->records);
    rec_set_int(r, "bytes", s->bytes);
    rec_set_number(r, "cpu_ns", took->cpu_s * 1e9, NULL);
    rec_set_number(r, "bytes_per_cpu_s", rate, NULL);
    rec_set_number(r, "resident_peak_bytes",
                   took->peak_bytes < 0 ? (double)NAN : (double)took->peak_bytes,
                   "the system does not tell, or it ended too soon");
    fprintf(stderr, "%-12s %8.1f MB/s a core, %6.1f MB resident, %.0f MB of records:",
            runs[run].tool, rate / 1e6, (double)took->peak_bytes / 1e6, (double)s->bytes / 1e6);
    for (int k = 0; k < SHARES; k++) {
        char key[32];
        snprintf(key, sizeof key, "%s_ratio", shares[k]);
        rec_set_number(r, key, part[k], NULL);
        fprintf(stderr, " %s %.0f %%", shares[k], 100 * part[k]);
        most = part[k] > part[most] ? k : most;
    }
    if (rate < slow_bytes_per_s)
        json_object_set_new(r, "limit", json_string(shares[most]));
    fprintf(stderr, "%s%s\n", rate < slow_bytes_per_s ? "; limit: " : "",
            rate < slow_bytes_per_s ? shares[most] : "");
    b->points++;
    return rec_write(&b->out, "tool", r, e) ? -1 : bench_stopped(b, e);
}

static int run_tool(struct bench *b, size_t run, const struct stream *s, struct err *e)
{
    struct command_end best = {.cpu_s = INFINITY, .peak_bytes = -1};
    char *line = mem_format("exec '%s/%s' -q %s -o '%s.svg' '%s'", b->bin, runs[run].tool,
                            runs[run].options, s->path, s->path); /* plot chooses the format by the
                                                                   * suffix */
    int bad = 0;
    for (int64_t i = 0; !bad && i < b->repeat; i++) {
        const struct command c = {line, b->peer_limit_s, b->stop, 1};
        struct command_end end;
        char *text = command_run(&c, &end);
        struct err why = {0};
        if (!text)
            bad = bench_stopped(b, e) ? -1 : 1;
        if (bad > 0) {
            err_set(&why, EXIT_FAILED_RECORDS, "%s over %s: %s", runs[run].tool, s->path, end.how);
            bad = bench_forgive(b, &why, runs[run].tool, e) ? -1 : 1;
        }
        free(text);
        best.cpu_s = fmin(best.cpu_s, end.cpu_s);
        best.peak_bytes = end.peak_bytes > best.peak_bytes ? end.peak_bytes : best.peak_bytes;
    }
    free(line);
    return bad ? (bad < 0 ? -1 : 0) : put_row(b, run, s, &best, e);
}

static int remove_one(const char *path, const struct stat *about, int kind, struct FTW *at)
{
    (void)about, (void)kind, (void)at;
    return remove(path);
}

int bench_tools(struct bench *b, struct err *e)
{
    const char *below = getenv("TMPDIR");
    char *folder = mem_format("%s/bench-XXXXXX", below && *below ? below : "/tmp");
    struct stream stream[STREAMS] = {{0}};
    if (!mkdtemp(folder)) {
        err_set(e, EXIT_CANNOT_CREATE, "%s: %s", folder, strerror(errno));
        free(folder);
        return -1;
    }
    int bad = 0;
    for (int k = 0; k < STREAMS && !bad; k++) {
        stream[k].path = mem_format("%s/%d.ndjson", folder, k);
        bad = write_stream(b, k, &stream[k], e) || time_readers(b, &stream[k], e);
        for (size_t i = 0; i < sizeof runs / sizeof *runs && !bad; i++)
            bad = runs[i].reads == k && run_tool(b, i, &stream[k], e);
        free(stream[k].path);
    }
    nftw(folder, remove_one, 8, FTW_DEPTH | FTW_PHYS);
    free(folder);
    return bad ? -1 : 0;
}
