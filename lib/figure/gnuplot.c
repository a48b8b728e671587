/* gnuplot.c - see gnuplot.h. The C code selects the values and never draws; the .gp code draws and
 * never selects. gnuplot does not report a failed write: on a full disk it leaves half a figure and
 * exits with 0. So gnuplot writes into memory, whole.h checks the figure, and only then this module
 * writes the file. */
#include "lib/figure/gnuplot.h"

#include <errno.h>
#include <math.h>
#include <spawn.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/base/file.h"
#include "lib/base/mem.h"
#include "lib/base/share.h"
#include "lib/base/cli/opt.h"
#include "lib/base/out.h"
#include "lib/figure/whole.h"

enum { SCRIPT_MAX = 1 << 20, TEXT_MAX = 1 << 22, FIGURE_MAX = 1 << 28 };

extern char **environ;

int gnuplot_drawable(double v, int log_axis)
{
    enum { MAGNITUDE = 30 };
    return isfinite(v) && fabs(v) < pow(10, MAGNITUDE) &&
           (!log_axis || v > pow(10, -MAGNITUDE));
}

/* ---- the script ---- */

static int append_gp(struct buf *out, const char *name, struct err *e)
{
    char *file = mem_format("plots/%s.gp", name), *path = share_find(file, e);
    free(file);
    if (!path)
        return -1;
    buf_format(out, "\n# ---- plots/%s.gp ----\n", name);
    int bad = file_read(path, SCRIPT_MAX, out, e);
    free(path);
    return bad;
}

int gnuplot_script(struct buf *out, const struct script *script, const char *type,
                   const char *output, double width_cm, struct err *e)
{
    const char *slash = output ? strrchr(output, '/') : NULL;
    const char *name = slash ? slash + 1 : output ? output : "";
    const char *dot = strrchr(name, '.');
    int stem = (int)(dot ? (size_t)(dot - name) : strlen(name));
    char *svg = mem_format("%.*s.svg", stem, name);
    buf_format(out, "# Figure of type %s, written by plot %s (commit %s), with its data.\n", type,
               version_text, version_commit);
    buf_text(out, "# gnuplot -d FILE draws it; another format:\n"
                  "# gnuplot -d -e \"format='pdf'; out='figure.pdf'\" FILE\n");
    buf_text(out, "if (!exists('out')) out = ");
    script_exact(out, svg);
    free(svg);
    buf_format(out, "\nif (!exists('format')) format = '%s'", output ? "svg" : "dumb");
    buf_format(out, "\nif (!exists('width_cm')) width_cm = %.10g\n", width_cm);
    if (script->settings.len)
        buf_text(out, script->settings.data);
    if (script->data.len)
        buf_text(out, script->data.data);
    char *names = mem_format("style %s", type), *rest = names;
    int bad = 0;
    for (char *part; !bad && (part = strsep(&rest, " ")) != NULL;)
        bad = append_gp(out, part, e);
    free(names);
    return bad;
}

/* ---- running ---- */

struct drawing {
    const char *script, *output, *format; /* output NULL: the one in the script */
    const char *type;
    double width_cm; /* 0: the width in the script */
    const char *before; /* commands that run before the script; "": none */
};

/* Reads a pipe to its end and keeps at most 64 KiB. */
static void read_all(int fd, struct buf *text)
{
    char chunk[4096];
    ssize_t n;
    while ((n = read(fd, chunk, sizeof chunk)) > 0 || (n < 0 && errno == EINTR))
        for (ssize_t i = 0; i < n && text->len < 65536; i++)
            buf_char(text, chunk[i]);
}

/* Appends the messages of gnuplot on one line, without its warnings, which are no reason of a
 * failure. */
static void put_faults(struct buf *to, const struct buf *say)
{
    const char *line = say->data ? say->data : "";
    for (size_t n; *line; line += n + (line[n] == '\n')) {
        n = strcspn(line, "\n");
        if (n && !memmem(line, n, "warning:", 8)) {
            buf_text(to, to->len ? " " : "");
            buf_put(to, line, n);
        }
    }
}

/* The signal that ended gnuplot, also if `gnuplot` is a shell script that ran it; 0: no signal. */
static int find_signal(int status)
{
    enum { SHELL = 128 };
    return WIFSIGNALED(status)           ? WTERMSIG(status)
           : WEXITSTATUS(status) > SHELL ? WEXITSTATUS(status) - SHELL
                                         : 0;
}

static void set_failed(int status, const struct drawing *drawing, const struct buf *say,
                       struct err *e)
{
    const int signal = find_signal(status);
    struct buf faults = {0};
    put_faults(&faults, say);
    if (signal)
        err_set(e, EXIT_INTERNAL, "gnuplot died of signal %d (%s) on a figure of type %s, %s",
                signal, strsignal(signal), drawing->type, drawing->script);
    else
        err_set(e, EXIT_INTERNAL, "gnuplot failed on a figure of type %s, %s: %s", drawing->type,
                drawing->script, faults.len ? faults.data : "no message");
    buf_free(&faults);
}

/* Runs a script; gnuplot writes to the standard output of this process. -1: *e. */
static int run(const struct drawing *drawing, struct err *e)
{
    const char *script_path = drawing->script, *output = drawing->output;
    struct buf say = {0}, set = {0};
    if (output) {
        buf_format(&set, "%sformat = '%s'; out = ", drawing->before, drawing->format);
        script_exact(&set, output);
        if (drawing->width_cm > 0)
            buf_format(&set, "; width_cm = %.10g", drawing->width_cm);
    }
    /* -d: no start-up file of the user. "./": a path that begins with '-' is not an option. */
    char *path = mem_format("%s%s", *script_path == '-' ? "./" : "", script_path);
    char *with[] = {"gnuplot", "-d", "-e", set.data, path, NULL};
    char *without[] = {"gnuplot", "-d", path, NULL};
    int fd[2];
    if (pipe(fd))
        err_machine(__FILE__, __LINE__, "pipe failed");
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, fd[1], STDERR_FILENO);
    posix_spawn_file_actions_addclose(&actions, fd[0]);
    pid_t child;
    int failed = posix_spawnp(&child, "gnuplot", &actions, NULL, output ? with : without, environ);
    posix_spawn_file_actions_destroy(&actions);
    close(fd[1]);
    int status = 0;
    if (failed) {
        err_set(e, EXIT_INTERNAL, "cannot run gnuplot: %s (install gnuplot-nox 5.4 or later)",
                strerror(failed));
    } else {
        read_all(fd[0], &say);
        while (waitpid(child, &status, 0) < 0 && errno == EINTR)
            continue;
        if (status)
            set_failed(status, drawing, &say, e);
    }
    close(fd[0]);
    free(path);
    buf_free(&say);
    buf_free(&set);
    return failed || status ? -1 : 0;
}

/* Makes a file in memory that this process and gnuplot can open by `path`, with the content `holds`
 * (NULL: empty). Returns its descriptor; the file exists until the caller closes it. */
static int open_memory(char path[32], const struct buf *holds)
{
    int fd = memfd_create("figure", 0);
    if (fd < 0)
        err_machine(__FILE__, __LINE__, "memfd_create failed");
    if (holds && write(fd, holds->data, holds->len) != (ssize_t)holds->len)
        err_machine(__FILE__, __LINE__, "cannot write a script into memory");
    snprintf(path, 32, "/proc/self/fd/%d", fd);
    return fd;
}

int gnuplot_text(const struct buf *script, const char *type, struct buf *text, struct err *e)
{
    char from[32], to[32];
    struct buf whole = {0};
    int out = open_memory(to, NULL);
    buf_format(&whole, "set output '%s'\n", to);
    buf_put(&whole, script->data, script->len);
    int in = open_memory(from, &whole);
    const struct drawing drawing = {.script = from, .type = type};
    int bad = run(&drawing, e) || file_read(to, TEXT_MAX, text, e);
    close(in);
    close(out);
    buf_free(&whole);
    return bad;
}

/* Overwrites the date in a PDF, because the same data must give the same bytes and cairo writes the
 * time of day. From cairo 1.18 on the date is compressed and cannot be found, so two PDFs of the
 * same data differ. */
static void fix_pdf_date(struct buf *text)
{
    static const char key[] = "/CreationDate (D:", date[] = "20000101000000";
    char *at = memmem(text->data, text->len, key, sizeof key - 1);
    if (at && text->data + text->len - at > (ptrdiff_t)(sizeof key + sizeof date))
        memcpy(at + sizeof key - 1, date, sizeof date - 1);
}

static const char *format_of(const char *output)
{
    static const char *const formats[] = {"svg", "png", "pdf"};
    const char *dot = strrchr(output, '.');
    size_t i = 0;
    while (i < 2 && strcmp(dot ? dot + 1 : "", formats[i]))
        i++;
    return formats[i];
}

/* Draws an SVG once more and compares, because an SVG has no checksum and a missing line leaves no
 * trace. A further write comes first, so that the same fault would hit another part of the figure.
 * -1: the two figures differ. */
static int check_again(const struct drawing *first, const char *output, const struct buf *figure,
                       struct err *e)
{
    char to[32];
    struct buf again = {0};
    struct drawing drawing = *first;
    int fd = open_memory(to, NULL);
    drawing.output = to;
    drawing.before = "set print '/dev/null'; print 0; set print; ";
    int bad = run(&drawing, e) || file_read(to, FIGURE_MAX, &again, e);
    if (!bad && (again.len != figure->len || memcmp(again.data, figure->data, again.len)))
        bad = err_set(e, EXIT_IO, "%s: expected a whole svg from gnuplot; drawn twice it has %zu "
                      "and %zu bytes: a write inside gnuplot failed", output, figure->len,
                      again.len);
    close(fd);
    buf_free(&again);
    return bad ? -1 : 0;
}

int gnuplot_draw(const char *script_path, const char *output, const char *type, double width_cm,
                 const struct svg_about *about, struct err *e)
{
    const char *format = format_of(output);
    char to[32];
    struct buf figure = {0};
    int fd = open_memory(to, NULL);
    const struct drawing drawing = {script_path, to, format, type, width_cm, ""};
    int bad = run(&drawing, e) || file_read(to, FIGURE_MAX, &figure, e) ||
              whole_check(format, output, &figure, e) ||
              (!strcmp(format, "svg") && check_again(&drawing, output, &figure, e));
    if (!bad && !strcmp(format, "svg"))
        svg_finish(&figure, about);
    if (!bad && !strcmp(format, "pdf"))
        fix_pdf_date(&figure);
    bad = bad || out_whole(output, figure.data, figure.len, e);
    close(fd);
    buf_free(&figure);
    return bad ? -1 : 0;
}
