/* err.h - errors: how a library reports bad data, and how a process ends.
 *
 * A function that can meet bad data returns 0 (good) or -1 (bad) and fills a caller's `struct err`.
 * Libraries never print and never exit; a tool prints `text` and leaves with `code`.
 *
 *     struct err e = {0};
 *     if (family_load(&cfg, path, &e)) err_die("gen-llada", &e); */
#pragma once

#include "lib/base/linkage.h"

C_BEGIN

/* Exit codes of every tool (sysexits numbering; tools/README.md, "Exit codes"). */
enum exit_code {
    EXIT_OK = 0,
    EXIT_FAILED_RECORDS = 1, /* finished, but some records failed */
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
    char text[1024]; /* one printable line (plain.h): what, where, expected, got */
};

/* Fills *e (the first error stays: a later call changes nothing) and returns -1, so
 * that `return err_set(e, EXIT_BAD_DATA, ...)` is the whole error path. e may be NULL. */
int err_set(struct err *e, int code, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* Puts "where: " in front of the text of *e. Returns -1. */
int err_prefix(struct err *e, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* The exit code of a failure, never 0. An error without code becomes EXIT_INTERNAL, with a text.
 * Only this function turns an error into an exit code. */
int err_code(struct err *e);

/* For tools only: prints "tool: text" and exits with err_code(). A tool that dies has not finished,
 * so EXIT_FAILED_RECORDS (memory is short) becomes EXIT_INTERNAL. */
void err_die(const char *tool, const struct err *e) __attribute__((noreturn));

/* The machine failed (no host memory, a broken invariant of the system): prints, and exits with 70
 * by _exit, because the caller may be inside a library that holds its locks. */
void err_machine(const char *file, int line, const char *what) __attribute__((noreturn));
/* err_machine() for a file that fails in the middle of work: exits with 74. */
void err_file(const char *file, int line, const char *what) __attribute__((noreturn));

/* A callback before err_machine or err_file ends the process; `where`: "FILE:LINE". Any thread may
 * call it, also inside a library that holds its locks: it must not allocate or wait. */
struct err_witness {
    void (*hear)(struct err_witness *witness, int code, const char *where, const char *what);
};
/* Returns the address of the pointer to the process's only witness; the pointer is NULL at first. A
 * shared object that contains its own err.c calls err_share() with the address of the program that
 * loaded it. With NULL it keeps its own address. */
struct err_witness **err_witness(void);
void err_share(struct err_witness **other);

/* Returns the exit code for a call that has just failed: EXIT_INTERNAL if errno is ENOMEM, else
 * `otherwise`. */
int err_reason(int otherwise);

C_END
