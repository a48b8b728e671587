/* gnuplot.c - see gnuplot.h. The C side lays out numbers and never draws; the .gp side draws and
 * never decides. What gnuplot wrote is looked at before it takes its place, because it does not
 * always say when it failed. */
#include "lib/figure/gnuplot.h"

#include <errno.h>
#include <math.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/base/file.h"
#include "lib/base/mem.h"
#include "lib/base/share.h"
#include "lib/base/opt.h"
#include "lib/base/out.h"

enum { SCRIPT_MAX = 1 << 20 };

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

int gnuplot_script(struct buf *out, const struct script *s, const char *type, const char *output,
                   double width_cm, struct err *e)
{
    const char *slash = output ? strrchr(output, '/') : NULL;
    const char *name = slash ? slash + 1 : output ? output : "";
    const char *dot = strrchr(name, '.');
    int stem = (int)(dot ? (size_t)(dot - name) : strlen(name));
    char *svg = mem_format("%.*s.svg", stem, name);
    buf_format(out, "# A figure of type %s, made by plot %s (commit %s).\n", type,
               version_text,
               version_commit);
    buf_text(out, "# This file holds its data: to draw it again, run gnuplot -d on it; for\n"
                  "# another format, gnuplot -d -e \"format='pdf'; out='figure.pdf'\" on it.\n");
    buf_text(out, "if (!exists('out')) out = ");
    script_exact(out, svg);
    free(svg);
    buf_format(out, "\nif (!exists('format')) format = '%s'", output ? "svg" : "dumb");
    buf_format(out, "\nwidth_cm = %.10g\n", width_cm);
    if (s->settings.len)
        buf_text(out, s->settings.data);
    if (s->data.len)
        buf_text(out, s->data.data);
    char *names = mem_format("style %s", type), *rest = names;
    int bad = 0;
    for (char *part; !bad && (part = strsep(&rest, " ")) != NULL;)
        bad = append_gp(out, part, e);
    free(names);
    return bad;
}

/* ---- running ---- */

/* All of a pipe, at most 64 KiB of it kept, on one line. */
static void read_all(int fd, struct buf *b)
{
    char chunk[4096];
    ssize_t n;
    while ((n = read(fd, chunk, sizeof chunk)) > 0 || (n < 0 && errno == EINTR))
        for (ssize_t i = 0; i < n && b->len < 65536; i++)
            if (chunk[i] != '\n' || (b->len && b->data[b->len - 1] != ' '))
                buf_char(b, chunk[i] == '\n' ? ' ' : chunk[i]);
}

int gnuplot_run(const char *script_path, const char *output, const char *format, struct err *e)
{
    struct buf say = {0}, set = {0};
    if (output) {
        buf_format(&set, "format = '%s'; out = ", format);
        script_exact(&set, output);
    }
    /* -d: no user start-up file. A path that begins with '-' is not taken for an option. */
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
            err_set(e, EXIT_INTERNAL, "gnuplot failed on %s: %s", script_path,
                    say.len ? say.data : "no message");
    }
    close(fd[0]);
    free(path);
    buf_free(&say);
    buf_free(&set);
    return failed || status ? -1 : 0;
}

/* cairo writes the time of day into a PDF; the same data shall give the same bytes. From 1.18 on it
 * packs the date away, and only then two PDFs of the same data differ. */
static int fix_pdf_date(const char *path, struct err *e)
{
    struct buf b = {0};
    int bad = file_read(path, 1 << 28, &b, e);
    static const char key[] = "/CreationDate (D:";
    char *at = bad ? NULL : memmem(b.data, b.len, key, sizeof key - 1);
    FILE *f = at ? fopen(path, "r+b") : NULL;
    if (f) {
        long where = (long)(at - b.data) + (long)sizeof key - 1;
        bad = fseek(f, where, SEEK_SET) || fwrite("20000101000000", 1, 14, f) != 14;
        bad |= fclose(f);
        if (bad)
            err_set(e, EXIT_IO, "%s: %s", path, strerror(errno));
    }
    buf_free(&b);
    return bad ? -1 : 0;
}

int gnuplot_draw(const char *script_path, const char *output, struct err *e)
{
    struct out o;
    if (out_open(&o, output, e))
        return -1;
    struct stat st = {0};
    const char *dot = strrchr(output, '.');
    if (gnuplot_run(script_path, o.temp, dot ? dot + 1 : "svg", e) ||
        (dot && !strcmp(dot, ".pdf") && fix_pdf_date(o.temp, e)) ||
        ((stat(o.temp, &st) || st.st_size == 0) &&
         err_set(e, EXIT_INTERNAL, "gnuplot drew nothing for %s", output))) {
        out_abandon(&o);
        return -1;
    }
    return out_commit(&o, e);
}
