/* test-rec.c - tests that written streams of records can be read and verified, and that cut or
 * edited streams are found. */
#include "lib/base/buf.h"
#include "lib/base/file.h"
#include "lib/base/hash.h"
#include "lib/record/machine/machine.h"
#include "lib/record/rec.h"
#include "lib/record/repeats.h"

#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/base/mem.h"
#include "tests/files.h"
#include "tests/tap.h"

#define ENVELOPE(kind) "{\"schema\":\"crossover/1\",\"kind\":\"" kind "\",\"run\":\"local\""

static char *path_of(const char *name)
{
    return mem_format("%s/%s", files_root, name);
}

static char *file_with(const char *name, const char *bytes, size_t n)
{
    char *path = path_of(name);
    files_put(path, bytes, n);
    return path;
}

static char *text_of(const char *path)
{
    struct buf b = {0};
    struct err e = {0};
    if (file_read(path, 1 << 20, &b, &e))
        return mem_text("");
    return b.data;
}

/* Writes meta, two records and end to a new file; returns its path. */
static char *write_stream(const char *name)
{
    char *path = path_of(name), *argv[] = {"tool", "-x"};
    struct common c = COMMON_DEFAULTS;
    struct rec_writer w;
    struct err e = {0};
    c.output = path;
    c.seed = 7;
    ok(!rec_open(&w, &c, "tool", 2, argv, json_pack("{s:s}", "extra", "kept"), &e), "opens %s",
       name);
    ok(!rec_write(&w, "metric", json_pack("{s:f, s:s}", "value", 0.1, "kind", "ignored"), &e),
       "writes a record");
    json_t *r = json_pack("{s:s, s:i}", "kind", "odd", "x", 1);
    ok(!rec_pass(&w, r, &e), "passes a record of an unknown kind");
    json_decref(r);
    ok(!rec_close(&w, "ok", &e), "closes: %s", e.text);
    return path;
}

/* Reads all records. Returns their number; *bad counts refused lines, *last has the last
 * message. */
static int read_all(const char *const *paths, size_t n, int *bad, struct err *last)
{
    struct err e = {0};
    json_t *record;
    int got, good = 0;
    struct rec_reader *r = rec_read_open(paths, n, &e);
    *bad = 0;
    *last = e;
    while (r && (got = rec_read(r, &record, &e)) != 0) {
        if (got > 0) {
            good++;
            json_decref(record);
            continue;
        }
        *last = e;
        e = (struct err){0};
        (*bad)++;
    }
    rec_read_close(r);
    return good;
}

static int read_text(const char *bytes, size_t n, int *bad, struct err *last)
{
    char *path = file_with("text.ndjson", bytes, n);
    const char *p = path;
    int good = read_all(&p, 1, bad, last);
    free(path);
    return good;
}

static void test_members(void)
{
    json_t *o = json_pack("{s:s, s:i, s:n}", "t", "text", "i", 5, "z");
    rec_set_number(o, "x", 1.5, "never");
    rec_set_number(o, "y", (double)NAN, "not measured");
    rec_set_int(o, "n", 1 << 20);
    ok(!strcmp(rec_kind(o), ""), "kind of a record without one is empty");
    ok(rec_text(o, "t") && !rec_text(o, "i") && !rec_text(o, "none"), "rec_text only for texts");
    ok(rec_number(o, "i") == 5 && rec_number(o, "x") == 1.5, "rec_number of integer and real");
    ok(isnan(rec_number(o, "t")) && isnan(rec_number(o, "z")), "rec_number of others is NaN");
    ok(rec_int(o, "n", 0) == 1 << 20 && rec_int(o, "x", -3) == -3, "rec_int");
    ok(json_is_null(json_object_get(o, "y")) &&
       !strcmp(rec_text(o, "y_reason"), "not measured"), "NaN becomes null with a reason");
    json_decref(o);
}

/* The answer of repeats_take() to a record of a point. more: further members of the record. */
static int taken(struct repeats *s, const char *more)
{
    struct err e = {0};
    char *text = mem_format("{\"kind\":\"generation\",\"point\":\"p\",\"id\":\"a\"%s}", more);
    json_t *r = json_loads(text, JSON_ALLOW_NUL, NULL);
    int got = repeats_take(s, r, &e);
    json_decref(r);
    free(text);
    return got < 0 && e.code != EXIT_BAD_DATA ? -2 : got;
}

static void test_repeats(void)
{
    struct repeats s = {0};
    ok(taken(&s, ",\"seq\":1,\"x\":[1,2.5,\"t\",{\"a\":1,\"b\":[]}],\"y\":null") == 0,
       "a new record");
    ok(taken(&s, ",\"run\":\"r\",\"y\":null,\"x\":[1, 2.50,\"\\u0074\",{\"b\":[],\"a\":1}],"
                 "\"seq\":1") == 1 && s.dropped == 1,
       "a record in another order, spelling and run is a repeat");
    static const char *const others[] = {"[1,2.5,\"t\",{\"a\":1,\"b\":[]}],\"y\":0",
                                         "[1,2.5,\"t\",{\"a\":1,\"b\":[]}]",
                                         "[2.5,1,\"t\",{\"a\":1,\"b\":[]}],\"y\":null",
                                         "[1.0,2.5,\"t\",{\"a\":1,\"b\":[]}],\"y\":null",
                                         "[1,2.5,\"t\\u0000\",{\"a\":1,\"b\":[]}],\"y\":null",
                                         "[1,2.5,\"t\",{\"b\":1,\"a\":[]}],\"y\":null",
                                         "[1,2.5,\"t\",[{\"a\":1,\"b\":[]}]],\"y\":null"};
    int refused = 0, fresh = 0, again = 0;
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        char *more = mem_format(",\"seq\":1,\"x\":%s", others[i]);
        refused += taken(&s, more) == -1;
        free(more);
    }
    ok(refused == sizeof others / sizeof *others, "%d that say something else are refused",
       refused);
    for (int i = 0; i < 40000; i++) {
        char more[40];
        snprintf(more, sizeof more, ",\"seq\":%d", i / 2 + 2);
        int got = taken(&s, more);
        fresh += got == 0;
        again += got == 1;
    }
    ok(taken(&s, ",\"seq\":30000") == 0 &&
       taken(&s, ",\"seq\":30000,\"phase\":\"timed\"") == -1 &&
       taken(&s, ",\"seq\":30000,\"phase\":\"warmup\"") == 0,
       "a record without phase has the place of a timed one");
    ok(fresh == 20000 && again == 20000, "each of 40,000 records is new once and then a repeat");
    ok(s.cap * sizeof *s.seen <= 20003 * 44, "%zu bytes for %zu records", s.cap * sizeof *s.seen,
       s.n);
    repeats_free(&s);
}

static void test_round_trip(void)
{
    char *path = write_stream("a.ndjson"), *text = text_of(path);
    const char *paths[] = {path, path};
    struct err e;
    int bad;
    ok(!strncmp(text, ENVELOPE("meta") ",\"tool\":", sizeof(ENVELOPE("meta")) + 7),
       "meta is first, its members in order");
    ok(strstr(text, "\"extra\":\"kept\"") != NULL, "extra members are in meta");
    ok(strstr(text, ENVELOPE("metric") ",\"value\":0.1}\n") != NULL,
       "a record has its envelope first, 15 digits, no second kind");
    ok(strstr(text, "\n{\"kind\":\"odd\",\"x\":1}\n") != NULL, "a passed record is unchanged");
    ok(read_all(paths, 1, &bad, &e) == 4 && bad == 0, "a written file reads back and verifies");
    ok(read_all(paths, 2, &bad, &e) == 8 && bad == 0, "two files in a row verify");
    char *twice = mem_format("%s%s", text, text), *cut = strstr(text, "{\"kind\":\"odd\"");
    ok(read_text(twice, strlen(twice), &bad, &e) == 8 && bad == 0,
       "two streams in one file verify");
    ok(read_text(text, (size_t)(cut - text), &bad, &e) == 2 && bad == 1 && strstr(e.text, "cut"),
       "a stream without end is found: %s", e.text);
    char *edited = mem_text(text);
    memcpy(strstr(edited, "0.1"), "0.2", 3);
    ok(read_text(edited, strlen(edited), &bad, &e) == 3 && bad == 1 && strstr(e.text, "sha256"),
       "an edited byte is found: %s", e.text);
    struct buf less = {0};
    buf_put(&less, text, (size_t)(cut - text));
    buf_text(&less, strchr(cut, '\n') + 1);
    ok(read_text(less.data, less.len, &bad, &e) == 2 && bad == 1 && strstr(e.text, "2 records"),
       "a missing record is found: %s", e.text);
    struct buf crlf = {0};
    for (const char *p = text; *p; p++)
        buf_text(&crlf, *p == '\n' ? "\r\n\r\n" : (char[]){*p, 0});
    ok(read_text(crlf.data, crlf.len, &bad, &e) == 4 && bad == 0,
       "converted line ends still verify");
    buf_free(&less);
    buf_free(&crlf);
    free(edited);
    free(twice);
    free(text);
    free(path);
}

#define READ(s) read_text(s, sizeof(s) - 1, &bad, &e)

static void test_lines(void)
{
    struct err e;
    int bad;
    ok(READ("{\"a\":1}\r\n\n \t\n{\"a\":2}") == 2 && bad == 0,
       "CRLF, blank lines, no newline at the end");
    ok(READ("") == 0 && bad == 0, "an empty input has no records");
    ok(READ("\xef\xbb\xbf{\"a\":1}\n") == 0 && bad == 1 && strstr(e.text, "byte order mark"),
       "a byte order mark is refused");
    ok(READ("{\"a\":1}\n{\"a\":}\n{\"a\":3}\n") == 2 && bad == 1 && strstr(e.text, ":2: "),
       "a bad line is named, the next is read: %s", e.text);
    ok(READ("{\"a\":\"x\0y\"}\n{}\n") == 1 && bad == 1 && strstr(e.text, "NUL"), "NUL byte");
    ok(READ("{\"a\":1,\"a\":2}\n") == 0 && bad == 1, "a key that is there twice");
    ok(READ("{\"a\":NaN}\n") == 0 && bad == 1, "NaN");
    ok(READ("[1]\n7\n{\"a\":1} {\"b\":2}\n") == 0 && bad == 3, "no objects");
    ok(READ("{\"a\":\"\xc0\x80\"}\n") == 0 && bad == 1, "invalid UTF-8");
    ok(READ("{\"schema\":\"crossover/2\"}\n{\"schema\":\"crossover/1.4\"}\n") == 1 && bad == 1 &&
       e.code == EXIT_BAD_DATA, "another schema is refused, a minor version is not");
    const char *none[] = {"/nonexistent/x.ndjson"};
    ok(read_all(none, 1, &bad, &e) == 0 && e.code == EXIT_NO_INPUT, "a missing file: %s", e.text);
    const char *dir[] = {files_root};
    ok(read_all(dir, 1, &bad, &e) == 0 && e.code == EXIT_NO_INPUT, "a folder: %s", e.text);
}

static void test_long_line(void)
{
    size_t limit = 64 << 20;
    char *big = mem_alloc(limit + 64), *p = big;
    struct err e;
    int bad;
    p += sprintf(p, "{\"a\":\"");
    memset(p, 'x', limit);
    memcpy(p + limit, "\"}\n{}\n", 6);
    ok(read_text(big, (size_t)(p - big) + limit + 6, &bad, &e) == 1 && bad == 1,
       "a line of more than 64 MiB is refused, the next is read");
    free(big);
}

static void test_counts(void)
{
    char *path = path_of("counts.ndjson"), *argv[] = {"tool"};
    struct common c = COMMON_DEFAULTS;
    struct rec_writer w;
    struct err e = {0}, what = {EXIT_BAD_DATA, "it broke"};
    c.output = path;
    ok(!rec_open(&w, &c, "tool", 1, argv, NULL, &e), "opens");
    ok(!rec_error(&w, &what, "line 3", NULL, &e), "an error record");
    ok(!rec_error(&w, &what, "caf\xe9:1", NULL, &e), "an error at a name that is not UTF-8");
    ok(!rec_write(&w, "generation", json_pack("{s:s}", "status", "oom"), &e), "an oom");
    ok(!rec_write(&w, "generation", json_pack("{s:s, s:s}", "status", "ok", "run", "r2"), &e),
       "a good one of another run");
    json_t *meta = json_pack("{s:s, s:s}", "kind", "meta", "tool", "x");
    json_t *end = json_pack("{s:s, s:i}", "kind", "end", "records", 99);
    ok(!rec_pass(&w, meta, &e) && !rec_pass(&w, end, &e), "foreign meta and end");
    ok(w.records == 5 && w.failed == 3, "5 records, 3 failed");
    ok(rec_write(&w, "metric", NULL, &e) && e.code == EXIT_INTERNAL, "no fields, no record");
    ok(!rec_close(&w, "ok", NULL), "closes");
    char *text = text_of(path);
    ok(strstr(text, "\"code\":\"bad_data\",\"message\":\"it broke\",\"where\":\"line 3\"") != NULL,
       "the error record");
    ok(strstr(text, "\"where\":\"caf?:1\"") != NULL, "a byte that is no UTF-8 in a name becomes ?");
    ok(strstr(text, "\"kind\":\"generation\",\"run\":\"r2\"") != NULL, "a record's own run wins");
    ok(strstr(text, "{\"kind\":\"parent\",\"tool\":\"x\"}") && !strstr(text, ":99"),
       "a foreign meta is a parent, a foreign end is gone");
    const char *p = path;
    int bad;
    ok(read_all(&p, 1, &bad, &what) == 7 && bad == 0,
       "a file with errors and foreign records verifies");
    json_decref(meta);
    json_decref(end);
    free(text);
    free(path);
}

static int status_of_writing(int ignore_sigpipe, const char *where)
{
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) {
        struct common c = COMMON_DEFAULTS;
        struct rec_writer w;
        struct err e = {0};
        char *argv[] = {"tool"};
        int fds[2];
        if (where) {
            if (!freopen(where, "w", stdout))
                _exit(99);
        } else if (pipe(fds) || close(fds[0]) || dup2(fds[1], STDOUT_FILENO) < 0) {
            _exit(99);
        }
        signal(SIGPIPE, ignore_sigpipe ? SIG_IGN : SIG_DFL);
        int bad = rec_open(&w, &c, "tool", 1, argv, NULL, &e);
        _exit(bad || rec_close(&w, "ok", &e) ? e.code : 0);
    }
    int status = -1;
    waitpid(pid, &status, 0);
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

static void test_broken_outputs(void)
{
    ok(status_of_writing(0, "/dev/full") == EXIT_IO, "/dev/full gives 74");
    ok(status_of_writing(0, NULL) == 141, "a reader that went away ends the writer by SIGPIPE");
    ok(status_of_writing(1, NULL) == 141, "SIGPIPE ends the writer although it was ignored");
}

static void test_machine(void)
{
    json_t *a = machine_describe(), *b = machine_describe();
    const char *print = rec_text(a, "fingerprint");
    ok(print && strlen(print) == 12 && strspn(print, "0123456789abcdef") == 12,
       "the fingerprint has 12 hex digits");
    ok(json_equal(a, b), "the machine is the same twice");
    ok(rec_int(a, "cores", 0) > 0 && rec_int(a, "memory_bytes", 0) > 0, "cores and memory");
    json_decref(a);
    json_decref(b);
}

int main(void)
{
    files_begin();
    test_members();
    test_repeats();
    test_round_trip();
    test_lines();
    test_long_line();
    test_counts();
    test_broken_outputs();
    test_machine();
    files_end();
    return tap_done();
}
