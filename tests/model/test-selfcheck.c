/* test-selfcheck.c - tests the self-check: a device that begins to give other ids ends the run with
 * 70 and an error record. Records since the last good check are not kept, and the next process
 * completes the work. */
#include <sys/wait.h>
#include <unistd.h>

#include "lib/base/file.h"
#include "lib/base/mem.h"
#include "lib/record/resume.h"
#include "lib/run/runner.h"
#include "lib/run/selfcheck.h"
#include "tests/tap.h"

enum { PROMPTS = 12 };

static char folder[] = "/tmp/test-selfcheck.XXXXXX";
static int calls, odd_from; /* calls of run(); from call odd_from on ids are wrong, 0: never */

/* decoder_autoregress, but with other ids from some call on. */
static void run(const struct network *n, const struct settings *p, const struct decode_env *env,
                const struct generation_input *in, size_t batch, struct generation *out,
                struct batch_trace *trace)
{
    decoder_autoregress.run(n, p, env, in, batch, out, trace);
    calls++;
    if (odd_from && calls >= odd_from)
        for (size_t i = 0; i < batch; i++)
            out[i].ids[out[i].n - 1] ^= 1;
}

/* Runs runner_run in a child process; returns its exit code. */
static int generate(const char *output, int64_t every, int from)
{
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) {
        char *argv[] = {mem_text("odd")};
        char *prompts = mem_format("%s/prompts", folder);
        const char *files[] = {prompts};
        struct job_args a = JOB_DEFAULTS;
        const char *given[SETTINGS_MAX] = {0};
        struct decoder odd = decoder_autoregress;
        struct run_plan plan = {0};
        struct err e = {0};
        odd.tool = "odd";
        odd.run = run;
        given[settings_find(odd.table, "max_new")] = "20";
        given[settings_find(odd.table, "batch")] = "2";
        given[settings_find(odd.table, "contract")] = "fixed";
        if (run_plan_cross(&plan, odd.table, given, 1, 0, &e))
            _exit(98);
        a.common.output = output;
        a.common.quiet = 1;
        a.engine.model = "synth:tiny-llama";
        a.engine.device = "cpu";
        a.engine.threads = 1;
        a.selfcheck = every;
        odd_from = from;
        struct job job = {.decoder = &odd, .args = &a, .plan = &plan, .files = files,
                          .n_files = 1, .argc = 1, .argv = argv};
        if (!freopen("/dev/null", "w", stderr))
            _exit(99);
        int code = runner_run(&job, &e);
        run_plan_free(&plan);
        free(argv[0]);
        free(prompts);
        _exit(code);
    }
    int status = -1;
    waitpid(pid, &status, 0);
    return WEXITSTATUS(status);
}

/* Counts the generations in a file. *fatal: the message of its fatal record, else "". */
static int count(const char *path, char *fatal, size_t room)
{
    struct buf b = {0};
    int n = 0;
    *fatal = 0;
    if (file_read(path, 1 << 24, &b, NULL))
        return -1;
    for (char *line = strtok(b.data, "\n"); line; line = strtok(NULL, "\n")) {
        json_t *r = json_loads(line, 0, NULL);
        n += !strcmp(rec_kind(r), "generation");
        if (json_is_true(json_object_get(r, "fatal")))
            snprintf(fatal, room, "%s", rec_text(r, "message"));
        json_decref(r);
    }
    buf_free(&b);
    return n;
}

/* The calls of run() by a healthy process with a self-check after every 2 batches: 1 batch, 2
 * self-check, 3 and 4 batches, 5 self-check, 6 and 7 batches, 8 self-check, 9 batch, 10 self-check,
 * the last. */
static void test_fall(void)
{
    static const struct {
        int from, kept; /* the first wrong call; records that are kept */
    } row[] = {{2, 12}, {3, 2}, {5, 2}, {6, 6}, {8, 6}, {9, 10}, {10, 10}};
    char *out = mem_format("%s/out", folder), *work = mem_format("%s/.out.tmp", folder);
    char fatal[512];
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        int lies = row[i].from > 2; /* wrong from the start, the self-check learns wrong ids */
        int code = generate(out, 2, row[i].from);
        int n = count(lies ? work : out, fatal, sizeof fatal);
        ok(code == (lies ? EXIT_INTERNAL : 0), "odd from call %d on: %d", row[i].from, code);
        ok(n == row[i].kept, "%d records are kept", n);
        ok(!lies == !strstr(fatal, "self-check: prompt 'p1', generated again"), "says: %s", fatal);
        ok(!lies || strstr(fatal, "other ids from token 15 on"), "says the first token");
        ok(!generate(out, 2, 0) && count(out, fatal, sizeof fatal) == PROMPTS && !*fatal,
           "the next process ends the work");
        ok(access(work, F_OK), "no work file is left");
    }
    ok(!generate(out, 0, 4), "without a self-check nobody notices");
    free(out);
    free(work);
}

static void test_default(void)
{
    struct selfcheck c;
    struct backend host = {0}, device = {.address = "0000:18:00.0"};
    selfcheck_start(&c, -1, &host);
    ok(c.every == 0, "the self-check is off on the host");
    selfcheck_start(&c, -1, &device);
    ok(c.every == SELFCHECK_EVERY,
       "the self-check runs each %d batches on a device", SELFCHECK_EVERY);
    selfcheck_start(&c, 0, &device);
    ok(c.every == 0, "the self-check is off where the user sets 0");
    selfcheck_start(&c, 3, &host);
    ok(c.every == 3, "the self-check runs on the host when asked for");
}

int main(void)
{
    if (!mkdtemp(folder))
        err_machine(__FILE__, __LINE__, "no temporary folder");
    char *prompts = mem_format("%s/prompts", folder), *out = mem_format("%s/out", folder);
    FILE *f = fopen(prompts, "w");
    for (int i = 1; f && i <= PROMPTS; i++)
        fprintf(f, "{\"id\":\"p%d\",\"prompt_ids\":[5,6,%d]}\n", i, i);
    if (!f || fclose(f))
        err_machine(__FILE__, __LINE__, "cannot write prompts");
    test_default();
    test_fall();
    unlink(prompts);
    unlink(out);
    rmdir(folder);
    free(prompts);
    free(out);
    return tap_done();
}
