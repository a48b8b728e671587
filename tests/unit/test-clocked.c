/* test-clocked.c - tests choices by measured time, with planted clocks: the instruction set of a
 * format, stored in a file that may be damaged; and the ceiling of a number format. */
#include <dirent.h>
#include <jansson.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "lib/base/file.h"
#include "lib/base/mem.h"
#include "lib/record/json.h"
#include "lib/record/rec.h"
#include "lib/run/probe/ceiling.h"
#include "lib/run/probe/level_choice.h"
#include "tests/files.h"
#include "tests/tap.h"

/* ---- which is quickest ---- */

static size_t best(size_t n, const int64_t ns[][2])
{
    struct level_time t[LEVEL_CHOICE_MAX];
    for (size_t i = 0; i < n; i++)
        t[i] = (struct level_time){ns[i][0], ns[i][1]};
    return level_choice_best(t, n);
}

static void test_best(void)
{
    ok(best(2, (const int64_t[][2]){{100, 200}, {100, 100}}) == 1,
       "an instruction for pairs at half the speed of fp32 is not chosen");
    ok(best(2, (const int64_t[][2]){{100, 100}, {100, 200}}) == 0,
       "at twice the speed it is chosen");
    ok(best(2, (const int64_t[][2]){{104, 104}, {100, 100}}) == 0,
       "times within the noise: the order of the table decides");
    ok(best(2, (const int64_t[][2]){{106, 106}, {100, 100}}) == 1, "times beyond the noise decide");
    ok(best(3, (const int64_t[][2]){{108, 108}, {104, 104}, {100, 100}}) == 1,
       "equal speed means equal to the quickest, not to the neighbour");
    ok(best(2, (const int64_t[][2]){{90, 110}, {100, 100}}) == 0 &&
       best(2, (const int64_t[][2]){{300, 50}, {100, 100}}) == 1,
       "few rows and many weigh the same");
    ok(best(1, (const int64_t[][2]){{5, 5}}) == 0 &&
       best(2, (const int64_t[][2]){{0, 0}, {0, 0}}) == 0,
       "one level, or times of 0: the first level");
}

/* ---- the file ---- */

static int asked;
static int told = -1; /* descriptor to which a planted clock writes a byte; -1: none */

static int planted(struct level_times *t)
{
    const struct timespec moment = {0, 30000000};
    asked++;
    if (told >= 0 && (write(told, "x", 1) != 1 || nanosleep(&moment, NULL)))
        return -1;
    for (int d = 0; d < DTYPES; d++)
        for (size_t i = 0; i < t->levels; i++)
            t->of[d][i] = (struct level_time){100 + d, 1000 + asked};
    return 0;
}

static int fails(struct level_times *t)
{
    (void)t;
    asked++;
    return -1;
}

/* Asks a folder for times. Returns "kept" (read from the file) or "asked" (measured). */
static const char *question(const char *folder, size_t levels, struct level_times *t)
{
    *t = (struct level_times){.levels = levels, .level = {"special", "plain", "slow"}};
    int before = asked, got = level_choice_times(t, folder, planted);
    return got == 1 && asked == before ? "kept" : got == 0 && asked == before + 1 ? "asked" : "?";
}

/* Returns the only file of a folder, which the caller frees; NULL if there is none, or more. */
static char *only_file(const char *folder)
{
    char *path = NULL;
    int n = 0;
    DIR *d = opendir(folder);
    for (struct dirent *x; d && (x = readdir(d));)
        if (strcmp(x->d_name, ".") && strcmp(x->d_name, "..") && !n++)
            path = mem_format("%s/%s", folder, x->d_name);
    if (d)
        closedir(d);
    if (n == 1)
        return path;
    free(path);
    return NULL;
}

static int whole(const char *path, const struct level_times *t)
{
    json_t *j = file_is_regular(path) ? json_file(path, 1 << 20, NULL) : NULL;
    const json_t *list = json_object_get(json_object_get(j, "ns"), dtype_info[DTYPES - 1].name);
    int good = json_integer_value(json_array_get(list, 4)) == t->of[DTYPES - 1][2].few_ns &&
               json_integer_value(json_array_get(list, 5)) == t->of[DTYPES - 1][2].many_ns;
    json_decref(j);
    return good;
}

static void broken(const char *folder, const char *path, const char *bytes, size_t n,
                   const char *what)
{
    struct level_times t;
    files_put(path, bytes, n);
    ok(!strcmp(question(folder, 3, &t), "asked") && whole(path, &t) &&
       !strcmp(question(folder, 3, &t), "kept"),
       "a file that is %s: measured and written anew", what);
}

/* Tests the good text with one piece replaced by another. */
static void replaced(const char *folder, const char *path, const char *good, const char *old,
                     const char *new, const char *what)
{
    const char *at = strstr(good, old);
    if (!ok(at != NULL, "'%s' is in the file", old))
        return;
    char *text = mem_format("%.*s%s%s", (int)(at - good), good, new, at + strlen(old));
    broken(folder, path, text, strlen(text), what);
    free(text);
}

static void test_texts(const char *folder, const char *path)
{
    struct buf b = {0};
    struct err e = {0};
    if (file_read(path, 1 << 20, &b, &e))
        exit(1);
    broken(folder, path, "", 0, "empty");
    broken(folder, path, "\x7f" "ELF\n\xff", 6, "something else");
    broken(folder, path, b.data, b.len - 1, "cut before its last byte");
    broken(folder, path, b.data, b.len / 2, "cut in the middle");
    broken(folder, path, b.data, b.len + 1, "longer by a NUL");
    replaced(folder, path, b.data, "\"version\":\"", "\"version\":\"0", "another version");
    replaced(folder, path, b.data, "special\",\"plain", "plain\",\"special", "other levels");
    replaced(folder, path, b.data, "\"bf16\"", "\"bf17\"", "a format that is not here");
    replaced(folder, path, b.data, "\"bf16\":[", "\"bf16\":[-", "with a time below zero");
    replaced(folder, path, b.data, "\"bf16\":[", "\"bf16\":[99999999999999999999",
             "with a time beyond range");
    replaced(folder, path, b.data, "\"bf16\":[", "\"bf16\":[null,", "with one time more");
    buf_free(&b);
}

/* Tests a pipe, a device, a folder or nothing in the place of the file. */
static void test_places(const char *folder, const char *path)
{
    struct level_times t;
    unlink(path);
    ok(!mkfifo(path, 0600) && !strcmp(question(folder, 3, &t), "asked") && whole(path, &t),
       "a pipe in its place is taken away, not waited for");
    unlink(path);
    ok(!symlink("/dev/zero", path) && !strcmp(question(folder, 3, &t), "asked") && whole(path, &t),
       "a link to a device likewise");
    unlink(path);
    ok(!mkdir(path, 0700) && !strcmp(question(folder, 3, &t), "asked") &&
       !strcmp(question(folder, 3, &t), "asked"), "a folder stays, and nothing is kept");
    rmdir(path);
    ok(!strcmp(question(NULL, 3, &t), "asked") && !strcmp(question("/dev/null/x", 3, &t), "asked"),
       "no folder, or none that can be made: in memory");
}

static void test_file(void)
{
    char *folder = mem_format("%s/crossover/levels", files_root);
    struct level_times first, t;
    ok(!strcmp(question(folder, 3, &first), "asked"), "the first run asks its clock");
    char *path = only_file(folder);
    ok(path && whole(path, &first) && !strcmp(question(folder, 3, &t), "kept") &&
       !memcmp(first.of, t.of, sizeof t.of), "the second takes the same times from the one file");
    ok(!strcmp(question(folder, 2, &t), "asked") && !strcmp(question(folder, 3, &t), "kept") &&
       !only_file(folder), "another set of levels has a file of its own");
    if (path) {
        test_texts(folder, path);
        test_places(folder, path);
    }
    char *other = mem_format("%s/failed", files_root);
    t.levels = 2;
    int before = asked;
    ok(level_choice_times(&t, other, fails) == -1 && asked == before + 1 && !only_file(other),
       "a clock that fails leaves no file");
    free(other);
    free(path);
    free(folder);
}

/* Several processes begin together: one measures, and the others wait for its file. */
static void test_together(void)
{
    enum { PROCESSES = 4 };
    int ends[2], bad = 0, status;
    char *folder = mem_format("%s/together", files_root), bytes[PROCESSES];
    if (pipe(ends))
        exit(1);
    for (int i = 0; i < PROCESSES; i++)
        if (fork() == 0) {
            struct level_times t;
            told = ends[1];
            _exit(!strcmp(question(folder, 3, &t), "?"));
        }
    close(ends[1]);
    for (int i = 0; i < PROCESSES; i++)
        bad |= wait(&status) < 0 || status != 0;
    ok(!bad && read(ends[0], bytes, sizeof bytes) == 1,
       "one of several processes that begin together measures");
    close(ends[0]);
    free(folder);
}

/* The real clock of the tools gives one level of the table for each format, and the same level
 * again. */
static void test_here(void)
{
    struct err e = {0};
    setenv("XDG_CACHE_HOME", files_root, 1);
    for (int d = 0; d < DTYPES; d++) {
        struct backend *a = backend_open("cpu", NULL, 2, 0, &e);
        struct backend *b = backend_open("cpu", NULL, 1, 0, &e);
        level_choice_use(a, (enum dtype)d, NULL);
        level_choice_use(b, (enum dtype)d, NULL);
        ok(a->ops == b->ops && !strcmp(a->level, a->ops->level) && ops_cpu(a->level) == a->ops,
           "%s runs on %s, at one thread as at two", dtype_info[d].name, a->level);
        backend_close(a);
        backend_close(b);
    }
    struct backend *ref = backend_open("ref", NULL, 1, 0, &e);
    const struct ops *before = ref->ops;
    level_choice_use(ref, DTYPE_F32, NULL);
    ok(ref->ops == before, "level_choice_use() leaves the back end ref unchanged");
    backend_close(ref);
}

/* ---- roofs ---- */

static struct ceilings roofs(double f32, double bf16, double int8)
{
    static const struct peak wide = {.isa = "wide"}, pairs = {.isa = "pairs"},
                             bytes = {.isa = "bytes"};
    struct ceilings c = {.threads = 1, .own = {&wide, &pairs, &bytes},
                         .own_per_s = {f32, bf16, int8}, .operations_spread = {.1, .2, .3}};
    ceiling_lift(&c);
    return c;
}

static void test_roofs(void)
{
    struct backend host = {.ops = ops_cpu(NULL)};
    struct ceilings c = roofs(500, 990, 2000);
    ok(c.operations_per_s[UNIT_BF16] == 990 && c.operations_per_s[UNIT_INT8] == 2000 &&
       c.by[UNIT_BF16] == UNIT_BF16 && c.by[UNIT_INT8] == UNIT_INT8,
       "instructions that are quicker than fp32's are their own roofs");
    c = roofs(400, 200, 900);
    json_t *r = ceiling_record(&c, &host, UNIT_BF16), *f32 = ceiling_record(&c, &host, UNIT_F32);
    ok(c.operations_per_s[UNIT_BF16] == 400 && c.by[UNIT_BF16] == UNIT_F32 &&
       c.operations_per_s[UNIT_INT8] == 900, "a bf16 roof below that of fp32 is that of fp32");
    const char *remark = rec_text(r, "remark");
    ok(rec_is(r, "isa", "wide") && remark && strstr(remark, "pairs") &&
       rec_number(r, "flops_spread_ratio") == .1, "its record names both instructions");
    ok(!rec_text(f32, "remark"), "the record of fp32 has nothing to remark");
    json_t *bytes = ceiling_record(&c, &host, UNIT_INT8);
    ok(json_is_true(json_object_get(bytes, "unsteady")) && !json_object_get(f32, "unsteady"),
       "a spread of 0.3 is unsteady, of 0.1 not");
    json_decref(bytes);
    ok(!ceiling_shared((double)NAN, 2) && !ceiling_shared(0, 1) && !ceiling_shared(1.8, 2) &&
       ceiling_shared(1, 2) && ceiling_shared(33, 64), "threads that share cores");
    json_decref(r);
    json_decref(f32);
    c = roofs(400, 0, 300);
    ok(!(c.operations_per_s[UNIT_BF16] > 0) && c.operations_per_s[UNIT_INT8] == 400,
       "without an instruction there is no roof, and below fp32's none for bytes");
    c = roofs(400, 5300, 900);
    ok(c.operations_per_s[UNIT_INT8] == 5300 && c.by[UNIT_INT8] == UNIT_BF16,
       "bytes have the roof of bf16 where that is the highest");
    static const struct peak sums = {.isa = "16-bit sums"};
    c.own[UNIT_INT4] = &sums;
    c.own_per_s[UNIT_INT4] = 6000;
    ceiling_lift(&c);
    ok(ceiling_unit(&c, UNIT_INT4) == UNIT_INT4 && c.operations_per_s[UNIT_INT4] == 6000,
       "4-bit codes have a roof of their own where 16-bit sums are faster");
    c.own_per_s[UNIT_INT4] = 5200;
    ceiling_lift(&c);
    ok(ceiling_unit(&c, UNIT_INT4) == UNIT_INT8 && !(c.operations_per_s[UNIT_INT4] > 0),
       "elsewhere 4-bit codes have the roof of int8");
    c = roofs(400, 0, 0);
    ok(ceiling_unit(&c, UNIT_INT4) == UNIT_F32 && ceiling_unit(&c, UNIT_BF16) == UNIT_F32,
       "the roof of fp32 holds for units without an instruction");
}

int main(void)
{
    files_begin();
    test_best();
    test_file();
    test_together();
    test_here();
    test_roofs();
    files_end();
    return tap_done();
}
