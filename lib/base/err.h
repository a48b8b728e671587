/* err.h - how a library says that data is wrong.
 *
 * A function that can meet bad data returns 0 (good) or -1 (bad) and fills a caller's `struct err`.
 * Libraries never print and never exit; a tool prints `text` and leaves with `code`.
 *
 *     struct err e = {0};
 *     if (family_load(&cfg, path, &e)) err_die("gen-llada", &e);
 */
#ifndef BASE_ERR_H
#define BASE_ERR_H

#ifdef __cplusplus
extern "C" {
#endif

/* Exit codes of every tool (sysexits numbering; tools/README.md, "Exit codes"). */
enum exit_code {
    EXIT_OK = 0,
    EXIT_FAILED_RECORDS = 1, /* done, but some records carry an error */
    EXIT_BAD_USAGE = 64,
    EXIT_BAD_DATA = 65,
    EXIT_NO_INPUT = 66,
    EXIT_NO_DEVICE = 69,
    EXIT_INTERNAL = 70,
    EXIT_CANNOT_CREATE = 73,
    EXIT_IO = 74,
    EXIT_BUSY = 75
};

struct err {
    int code;        /* an exit_code; 0 = nothing went wrong */
    char text[1024]; /* one line, plain (plain.h): what, where, expected, got */
};

/* Fills *e (the first error wins: a later call leaves an earlier one in place) and returns -1, so
 * that `return err_set(e, EXIT_BAD_DATA, ...)` is the whole error path. e may be NULL. */
int err_set(struct err *e, int code, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* Puts "where: " in front of the text of *e. Returns -1. */
int err_prefix(struct err *e, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* The exit code of a failure, never 0: one that nobody explained is EXIT_INTERNAL, and *e says so.
 * The one place where an error becomes an exit code. */
int err_code(struct err *e);

/* For tools only: prints "tool: text" and exits with err_code(). */
void err_die(const char *tool, const struct err *e) __attribute__((noreturn));

/* The machine failed (no host memory, a broken invariant of the system): prints and exits 70, at
 * once: it may be called from inside a library that holds its locks. */
void err_machine(const char *file, int line, const char *what) __attribute__((noreturn));
/* The same where it is a file that cannot be read or written, in the middle of work: exits 74. */
void err_file(const char *file, int line, const char *what) __attribute__((noreturn));

/* Who is told why before one of these ends the process, `where` as "FILE:LINE". It may be called by
 * any thread, inside a library that holds its locks: it allocates nothing and waits for nobody. */
struct err_witness {
    void (*hear)(struct err_witness *w, int code, const char *where, const char *what);
};
/* The place of the one witness of the process; at first it holds NULL, nobody. An object with an
 * err.c of its own takes the place of the program that loaded it by err_share (NULL: keeps its). */
struct err_witness **err_witness(void);
void err_share(struct err_witness **place);

/* The code for a call that failed with errno: EXIT_INTERNAL for want of memory, else `otherwise`.
 */
int err_reason(int otherwise);

#ifdef __cplusplus
}
#endif

#endif
