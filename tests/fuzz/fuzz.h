/* fuzz.h - runs a target: one reader of foreign bytes that is given arbitrary bytes.
 *
 * A target is a file that defines fuzz_one() and fuzz_seed() and ends with FUZZ_TARGET. fuzz_one()
 * must return for all bytes: no sanitizer reports, no check fails, nothing takes seconds or
 * gigabytes, and the process does not end.
 *
 *     make test T=fuzz/           replays: the seeds, and mutations of them, always the same ones
 *     make fuzz MINUTES=30        searches from the seeds with libFuzzer; T=WORD: some targets
 *     test-archive FILE...        these bytes again
 *     test-archive FILE...        tries the bytes of these files again
 *
 * Records are spoilt member by member (mutate.h), and a tool that reads them runs as a whole
 * (tool.h). */
#pragma once

#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/base/buf.h"
#include "lib/base/err.h"
#include "lib/base/file.h"
#include "lib/base/mem.h"
#include "lib/base/rng.h"
#include "tests/files.h"
#include "tests/tap.h"

/* Defined by the target: */
static void fuzz_one(const char *bytes, size_t n);
static int fuzz_seed(size_t i, struct buf *to); /* puts seed i in *to, which is empty; 0: no more */

enum { FUZZ_SECONDS = 10, FUZZ_MIB = 1024, /* limits of one input, and of all inputs */
       FUZZ_SEEDS = 16 };                  /* most seeds of a target */

/* A condition that must hold for the result of any bytes. */
#define fuzz_check(condition)                                                                   \
    ((condition) ? (void)0                                                                      \
                 : (fprintf(stderr, "# %s:%d: %s\n", __FILE__, __LINE__, #condition), abort()))
/* Checks that a reader refused with a code and one line. */
#define fuzz_check_refused(e)                                                                   \
    fuzz_check((e)->code && *(e)->text && !strpbrk((e)->text, "\r\n\033"))

/* ---- parts of targets ---- */

/* Removes the part before the next NUL from the front, and returns it. */
static inline struct buf fuzz_part(const char **bytes, size_t *n)
{
    const char *end = memchr(*bytes, 0, *n);
    struct buf part = {0};
    size_t len = end ? (size_t)(end - *bytes) : *n;
    buf_put(&part, *bytes, len);
    *bytes += len + (end != NULL);
    *n -= len + (end != NULL);
    return part;
}

/* Makes a file of these bytes that has no name in any folder. Returns its path, valid until the
 * next call. */
static inline const char *fuzz_file(const char *bytes, size_t n)
{
    static char path[64];
    static int fd = -1;
    if (fd < 0)
        fd = memfd_create("fuzz", 0);
    if (fd < 0 || ftruncate(fd, 0) || pwrite(fd, bytes, n, 0) != (ssize_t)n)
        files_fail("memfd_create");
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    return path;
}

/* Writes a part to FOLDER/name; returns FOLDER. */
static inline const char *fuzz_put(const char *name, const struct buf *part)
{
    files_put(files_at(name), part->data ? part->data : "", part->len);
    return files_root;
}

/* Appends the first lines of a file of the project, `most` bytes at most. */
static inline void fuzz_take(const char *path, size_t most, struct buf *to)
{
    struct buf all = {0};
    if (file_read(path, SIZE_MAX / 2, &all, NULL))
        files_fail(path);
    size_t n = all.len < most ? all.len : most;
    while (n < all.len && n && all.data[n - 1] != '\n')
        n--;
    buf_put(to, all.data, n);
    buf_free(&all);
}

/* ---- the replay ---- */

/* The input that is being tried. If the child dies, the parent saves this input (fuzz_keep). */
struct fuzz_place { size_t seed, round; };

/* Replaces b[at..at+gone-1] by run[0..n-1]. */
static inline void fuzz_splice(struct buf *b, size_t at, size_t gone, const char *run, size_t n)
{
    buf_reserve(b, n);
    memmove(b->data + at + n, b->data + at + gone, b->len - at - gone);
    memcpy(b->data + at, run, n);
    b->len += n - gone;
}

/* Spoils *b at random: flips a bit, or removes a run, doubles it, or replaces it by a word or by a
 * part of `other`. */
static inline void fuzz_mutate(struct buf *b, const struct buf *other, struct rng *r)
{
    static const char *const words[] = {"\\u0000", "\\ud83d", "null", "[]", "{}", "\"\"", "-1", "0",
                                        "1e999", "2147483648", "18446744073709551616", "0.5", "\"",
                                        "\\", ",", "\n", "\x7f", "\xc2", "\xf0\x9f", "\xff\xff"};
    for (uint64_t left = 1 + rng_below(r, 4); left && b->len; left--) {
        size_t at = rng_below(r, b->len), gone = rng_below(r, rng_below(r, b->len - at) + 1);
        size_t there = rng_below(r, other->len), n = rng_below(r, other->len - there) + 1;
        const char *word = words[rng_below(r, sizeof words / sizeof *words)];
        char *run = mem_alloc(n);
        memcpy(run, other->data + there, n);
        switch (rng_below(r, 5)) {
        case 0: b->data[at] = (char)(b->data[at] ^ 1 << rng_below(r, 8)); break;
        case 1: fuzz_splice(b, at, 0, word, strlen(word)); break;
        case 2: fuzz_splice(b, at, gone, word, strlen(word)); break;
        case 3: fuzz_splice(b, at, gone, run, n); break;
        default: fuzz_splice(b, at, gone + 1, "", 0);
        }
        free(run);
    }
}

/* The way in which the bytes of a replay are spoilt. A target may define another. */
#ifndef FUZZ_MUTATE
#define FUZZ_MUTATE fuzz_mutate
#endif
static inline void FUZZ_MUTATE(struct buf *b, const struct buf *other, struct rng *r);

/* All seeds; each is made only once. */
struct fuzz_seeds {
    struct buf v[FUZZ_SEEDS];
    size_t n;
};

static inline void fuzz_sow(struct fuzz_seeds *s)
{
    for (s->n = 0; s->n < FUZZ_SEEDS && fuzz_seed(s->n, &s->v[s->n]);)
        s->n++;
}

/* Sets *b to the input of a place. Round 0 of a seed is the seed itself. */
static inline void fuzz_bytes(const struct fuzz_seeds *s, const struct fuzz_place *p, struct buf *b)
{
    struct rng r = {rng_derive(p->seed, "fuzz"), p->round, 0};
    buf_clear(b);
    buf_put(b, s->v[p->seed].data, s->v[p->seed].len);
    if (p->round)
        FUZZ_MUTATE(b, &s->v[rng_below(&r, s->n)], &r);
}

static inline void fuzz_replay(const struct fuzz_seeds *s, struct fuzz_place *at, size_t rounds)
{
    struct buf b = {0};
    for (; at->seed < s->n; at->seed++)
        for (at->round = 0; at->round <= rounds; at->round++) {
            alarm(FUZZ_SECONDS);
            fuzz_bytes(s, at, &b);
            char *exact = mem_alloc(b.len); /* exact size, so that reading beyond the end shows */
            memcpy(exact, b.data, b.len);
            fuzz_one(exact, b.len);
            free(exact);
        }
    buf_free(&b);
}

/* Writes the input that a child died of to a file, so that it can be tried again. */
static inline void fuzz_keep(const struct fuzz_seeds *s, const struct fuzz_place *at)
{
    struct buf b = {0};
    char path[] = P_tmpdir "/fuzz-XXXXXX";
    int fd = mkstemp(path);
    if (at->seed < s->n && fd >= 0) {
        fuzz_bytes(s, at, &b);
        if (write(fd, b.data, b.len) == (ssize_t)b.len)
            printf("# seed %zu, mutation %zu: %s\n", at->seed, at->round, path);
    }
    buf_free(&b);
}

/* Tries all inputs in a child process, so that the end of the process shows here. */
static inline int fuzz_test(const char *name, const struct fuzz_seeds *s, size_t rounds)
{
    struct fuzz_place *at = mmap(NULL, sizeof *at, PROT_READ | PROT_WRITE,
                                 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    int status = 0;
    struct rusage used;
    pid_t child = fork();
    if (!child) {
        fuzz_replay(s, at, rounds);
        exit(EXIT_SUCCESS);
    }
    waitpid(child, &status, 0);
    getrusage(RUSAGE_CHILDREN, &used);
    if (!ok(!status && s->n && at->seed == s->n, "%s: %zu seeds, %zu mutations of each", name, s->n,
            rounds)) {
        printf("# ended by signal %d, exit code %d\n", WTERMSIG(status), WEXITSTATUS(status));
        fuzz_keep(s, at);
    }
    ok(used.ru_maxrss >> 10 < FUZZ_MIB, "it took %ld MiB", used.ru_maxrss >> 10);
    return tap_done();
}

static inline int fuzz_main(const char *name, size_t rounds, int argc, char **argv)
{
    struct fuzz_seeds s = {0};
    struct buf b = {0};
    int status = 0;
    files_begin();
    fuzz_sow(&s);
    if (argc < 2)
        status = fuzz_test(name, &s, rounds);
    int sow = argc == 3 && !strcmp(argv[1], "--seeds");
    for (size_t i = 0; sow && i < s.n; i++) {
        char *path = mem_format("%s/seed-%zu", argv[2], i);
        files_put(path, s.v[i].data, s.v[i].len);
        free(path);
    }
    for (int i = 1; !sow && i < argc; i++) {
        buf_clear(&b);
        if (!file_read(argv[i], SIZE_MAX / 2, &b, NULL))
            fuzz_one(b.data, b.len);
    }
    for (size_t i = 0; i < s.n; i++)
        buf_free(&s.v[i]);
    buf_free(&b);
    files_end();
    return status;
}

/* The last line of a target: its name, and how many mutations of each seed a replay tries. */
#ifdef FUZZ_SEARCH
#define FUZZ_TARGET(name, rounds)                                                               \
    int LLVMFuzzerInitialize(int *argc, char ***argv);                                          \
    int LLVMFuzzerInitialize(int *argc, char ***argv)                                           \
    {                                                                                           \
        (void)argc, (void)argv;                                                                 \
        files_begin();                                                                          \
        return atexit(files_end);                                                               \
    }                                                                                           \
    int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);                                 \
    int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)                                  \
    {                                                                                           \
        fuzz_one((const char *)bytes, n);                                                       \
        return 0;                                                                               \
    }
#else
#define FUZZ_TARGET(name, rounds)                                                               \
    int main(int argc, char **argv) { return fuzz_main(name, rounds, argc, argv); }
#endif
