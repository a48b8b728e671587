/* err.c - error texts; see err.h.
 *
 * Every text is made printable (plain.h), so that a hostile file or tensor name cannot send escape
 * sequences to the terminal or break the line. The first error stays, because later failures are
 * its consequences. */
#include "lib/base/err.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/plain.h"

int err_set(struct err *e, int code, const char *format, ...)
{
    if (!e || e->code)
        return -1;
    char raw[sizeof e->text];
    va_list ap;
    va_start(ap, format);
    vsnprintf(raw, sizeof raw, format, ap);
    va_end(ap);
    e->code = code;
    plain_text(e->text, sizeof e->text, raw);
    return -1;
}

int err_prefix(struct err *e, const char *format, ...)
{
    if (!e || !e->code)
        return -1;
    char where[sizeof e->text], old[sizeof e->text], both[2 * sizeof e->text + 4];
    va_list ap;
    va_start(ap, format);
    vsnprintf(where, sizeof where, format, ap);
    va_end(ap);
    memcpy(old, e->text, sizeof old);
    snprintf(both, sizeof both, "%s: %s", where, old);
    plain_text(e->text, sizeof e->text, both);
    return -1;
}

int err_code(struct err *e)
{
    if (!e->code)
        err_set(e, EXIT_INTERNAL, "failed without an error message: this is a bug, please "
                "report it");
    return e->code;
}

_Noreturn void err_die(const char *tool, const struct err *e)
{
    struct err said = *e;
    int code = err_code(&said);
    fflush(stdout);
    fprintf(stderr, "%s: %s\n", tool, said.text);
    exit(code == EXIT_FAILED_RECORDS ? EXIT_INTERNAL : code); /* 1 is a code of finished work */
}

/* The witness is global, like standard error: no caller can hand it to the code that fails. */
static struct err_witness *own, **place = &own;

struct err_witness **err_witness(void)
{
    return place;
}

void err_share(struct err_witness **other)
{
    if (other)
        place = other;
}

static _Noreturn void leave(const char *file, int line, const char *what, int code)
{
    char where[256], clean[512];
    struct err_witness *witness = __atomic_exchange_n(place, NULL, __ATOMIC_ACQ_REL); /* once */
    plain_text(clean, sizeof clean, what);
    fprintf(stderr, "crossover: %s:%d: %s\n", file, line, clean);
    snprintf(where, sizeof where, "%s:%d", file, line);
    if (witness)
        witness->hear(witness, code, where, what);
    _exit(code);
}

_Noreturn void err_machine(const char *file, int line, const char *what)
{
    leave(file, line, what, EXIT_INTERNAL);
}

_Noreturn void err_file(const char *file, int line, const char *what)
{
    leave(file, line, what, EXIT_IO);
}

int err_reason(int otherwise)
{
    return errno == ENOMEM ? EXIT_INTERNAL : otherwise;
}
