/* tool.h - runs main() of a tool that reads records, in this process, on mutated records. The tool
 * must end with a documented code and print the reason in one line. Its output must be a stream
 * that the reader and the schema accept, with possible numbers.
 *
 *     #include "tests/fuzz/tool.h"
 *     #define main tool_main
 *     #include "tools/measure.c"
 *     #undef main
 *
 * A call that would end the process jumps out of main() instead. The resources of the tool are then
 * released here, as the end of a process would have done. */
#pragma once

#include "tests/fuzz/mutate.h"

#include <setjmp.h>
#include <time.h>

#include "lib/analysis/about.h"
#include "lib/base/cli/opt.h"
#include "lib/record/rec.h"
#include "tests/fuzz/schema.h"

static jmp_buf tool_end;
static struct err tool_why;

static _Noreturn void tool_die(const struct err *e)
{
    tool_why = *e;
    longjmp(tool_end, 1);
}
#define err_die(tool, e) ((void)(tool), tool_die(e))

/* ---- memory of a tool that ended in the middle ---- */

#if defined(__SANITIZE_ADDRESS__)
#define TOOL_HOOKS 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define TOOL_HOOKS 1
#endif
#endif

#ifdef TOOL_HOOKS
int __sanitizer_install_malloc_and_free_hooks(void (*)(const volatile void *, size_t),
                                              void (*)(const volatile void *));
enum { TOOL_HELD = 1 << 16 };
static const volatile void *tool_held[TOOL_HELD];
static size_t tool_holds;
static int tool_watched;

static inline size_t tool_place(const volatile void *p)
{
    return ((uintptr_t)p >> 4) * 0x9e3779b97f4a7c15u >> 48;
}

static inline void tool_got(const volatile void *p, size_t n)
{
    size_t i = tool_place(p);
    if (!tool_watched || !p || tool_holds > TOOL_HELD / 2 || !n)
        return;
    while (tool_held[i])
        i = (i + 1) % TOOL_HELD;
    tool_held[i] = p;
    tool_holds++;
}

static inline void tool_gave(const volatile void *p)
{
    size_t i = tool_place(p), gap;
    while (tool_holds && tool_held[i] && tool_held[i] != p)
        i = (i + 1) % TOOL_HELD;
    if (!tool_holds || !p || !tool_held[i])
        return;
    tool_holds--;
    for (gap = i; tool_held[i = (i + 1) % TOOL_HELD];) /* later entries move up into the gap */
        if ((i - tool_place(tool_held[i])) % TOOL_HELD >= (i - gap) % TOOL_HELD) {
            tool_held[gap] = tool_held[i];
            gap = i;
        }
    tool_held[gap] = NULL;
}

static inline void tool_watch(int watch)
{
    static int hooked;
    if (!hooked && __sanitizer_install_malloc_and_free_hooks(tool_got, tool_gave) < 0)
        files_fail("no hooks");
    hooked = 1;
    tool_watched = watch;
    if (watch && tool_holds) {
        memset(tool_held, 0, sizeof tool_held);
        tool_holds = 0;
    }
}

static inline void tool_release(void)
{
    tool_watched = 0;
    for (size_t i = 0; i < TOOL_HELD && tool_holds; i++)
        while (tool_held[i])
            free((void *)(uintptr_t)tool_held[i]); /* free() also removes it from the table */
}
#else
static inline void tool_watch(int watch) { (void)watch; }
static inline void tool_release(void) { }
#endif

/* ---- a run ---- */

/* Replaces fsync(), which would wait for the disk. */
int fsync(int fd)
{
    return fd < 0 ? -1 : 0;
}

enum { TOOL_ARGS = 16 };

/* Messages of the tool, up to the size of the buffer. */
static char tool_said[1 << 14];

static inline void tool_check_said(void)
{
    for (char *line = tool_said, *end; *line; line = end) {
        end = strchr(line, '\n');
        end = end ? end + 1 : strchr(line, 0);
        fuzz_check(end > line + 1);
        for (char *c = line; c + 1 < end; c++)
            fuzz_check((unsigned char)*c >= ' ' && *c != 0x7f);
    }
}

/* Runs the tool and returns its exit code. */
static inline int tool_run(int (*run)(int, char **), int argc, char **argv)
{
    static FILE *said, *terminal;
    static char room[BUFSIZ]; /* static, so that it does not count as memory of the tool */
    if (!said) {
        tzset(); /* allocates now, so that its memory does not count as the tool's */
        terminal = stderr;
        said = fmemopen(tool_said, sizeof tool_said, "w");
        setvbuf(said, room, _IOFBF, sizeof room);
    }
    memset(tool_said, 0, sizeof tool_said);
    rewind(said);
    stderr = said; /* sanitizers still write to the descriptor */
    int fd = dup(STDIN_FILENO);
    close(fd);
    setenv("CROSSOVER_SHARE", ".", 1); /* the folder that has data/ */
    tool_why = (struct err){0};
    tool_watch(1);
    if (!setjmp(tool_end)) {
        tool_why.code = run(argc, argv);
        tool_watch(0);
    } else {
        tool_release();
        for (int i = fd; i < fd + 8; i++)
            close(i);
    }
    fflush(said);
    stderr = terminal;
    fuzz_check(!*err_witness());
    if (*tool_why.text)
        fuzz_check_refused(&tool_why);
    tool_check_said();
    return tool_why.code;
}

/* Checks numbers: a value lies within its interval, other intervals are in order, and a probability
 * is between 0 and 1. */
static inline void tool_check_numbers(const json_t *r)
{
    double v = rec_number(r, "value"), e = fabs(v) / 1e9;
    const char *key;
    json_t *one;
    fuzz_check(!(rec_number(r, "lo") > v + e) && !(rec_number(r, "hi") < v - e));
    json_object_foreach((json_t *)(uintptr_t)r, key, one) {
        size_t n = strlen(key);
        double x = json_number_value(one);
        if (n >= 2 && !strcmp(key + n - 2, "lo")) {
            char *other = mem_format("%.*shi", (int)n - 2, key);
            fuzz_check(!json_is_number(one) || !(x > rec_number(r, other)));
            free(other);
        }
        if (!strncmp(key, "probability", 11) || !strcmp(key, "p") || !strncmp(key, "p_", 2))
            fuzz_check(!(x < 0) && !(x > 1 + 1e-12));
    }
}

static inline void tool_check_record(struct schema *s, json_t *r)
{
    const char *kind = rec_kind(r);
    if (schema_record(s, r)) {
        char *text = json_dumps(r, 0);
        fprintf(stderr, "# %s\n# %s\n", text, s->wrong);
        abort();
    }
    tool_check_numbers(r);
    if (!strcmp(kind, "metric") && !strstr(rec_text(r, "metric"), "_net_"))
        fuzz_check(!(rec_number(r, "value") < 0) && !(rec_number(r, "min") < 0));
    if (!strcmp(kind, "error"))
        fuzz_check(rec_text(r, "message") && *rec_text(r, "message"));
}

/* Checks the stream in FOLDER/out; `ours`: the kinds of records that the tool makes. */
static inline void tool_check_output(const char *const *ours)
{
    static struct schema s;
    const char *path = files_at("out");
    struct err e = {0};
    json_t *r;
    int got;
    if (!s.all) {
        const char *const own[] = {"id", NULL}, **names = about_names();
        schema_open(&s, "data/record.schema.json");
        schema_release(&s, names);
        schema_release(&s, own);
        free(names);
    }
    struct rec_reader *in = rec_read_open(&path, 1, &e);
    fuzz_check(in);
    while ((got = rec_read(in, &r, &e)) > 0) {
        for (size_t i = 0; ours[i]; i++)
            if (!strcmp(rec_kind(r), ours[i]))
                tool_check_record(&s, r);
        json_decref(r);
    }
    fuzz_check(got == 0);
    rec_read_close(in);
}

/* Runs the tool with these options (ended by NULL) over these records. Its output is FOLDER/out, if
 * there is any. Returns its exit code. */
static inline int tool_one(int (*run)(int, char **), const char *const *options, const char *bytes,
                    size_t n)
{
    char name[] = "tool", quiet[] = "-q", bare[] = "--no-meta", output[] = "-o";
    char *argv[TOOL_ARGS] = {name, quiet, bare, output, files_at("out")};
    int argc = 5;
    for (; *options; options++)
        argv[argc++] = (char *)(uintptr_t)*options;
    argv[argc++] = (char *)(uintptr_t)fuzz_file(bytes, n);
    unlink(files_at("out"));
    int code = tool_run(run, argc, argv);
    if (code > 1 && code != EXIT_BAD_DATA && code != EXIT_BAD_USAGE) {
        fprintf(stderr, "# exit code %d: %s\n", code, tool_why.text);
        abort();
    }
    return code;
}

/* Runs a tool that writes a stream of records. The first byte chooses the options. */
#define TOOL_STREAM(options, ours, bytes, n)                                                    \
    do {                                                                                        \
        size_t tool_of = sizeof(options) / sizeof *(options);                                   \
        if (n)                                                                                  \
            tool_one(tool_main, (options)[(unsigned char)*(bytes) % tool_of], (bytes) + 1,      \
                     (n) - 1);                                                                  \
        if (!access(files_at("out"), F_OK))                                                     \
            tool_check_output(ours);                                                            \
    } while (0)
