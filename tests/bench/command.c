/* command.c - runs another program (command.h). The process is spawned, not forked, because this
 * process may hold gigabytes. Its pipe is read until the end, with limits of time and bytes. While
 * this program waits, it checks at intervals whether the time is over or a signal has arrived. */
#include "tests/bench/command.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/base/buf.h"
#include "lib/base/clock.h"
#include "lib/base/mem.h"
#include "lib/base/resident.h"

enum { MOST_BYTES = 64 << 20, WATCH_MS = 5, LOOK_MS = 100, NOT_FOUND = 127, SHELL_SIGNAL = 128 };

/* A running child. */
struct child {
    const struct command *command;
    struct command_end *end;
    pid_t pid;
    int from;       /* the child's standard output */
    int64_t until;  /* time by clock_ns() at which the child is ended */
};

static int start(struct child *c)
{
    int ends[2];
    posix_spawn_file_actions_t files;
    posix_spawnattr_t how;
    char *argv[] = {"sh", "-c", (char *)(uintptr_t)c->command->line, NULL};
    if (pipe2(ends, O_CLOEXEC))
        return -1;
    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&files, ends[1], STDOUT_FILENO);
    posix_spawnattr_init(&how);
    posix_spawnattr_setflags(&how, POSIX_SPAWN_SETPGROUP);
    posix_spawnattr_setpgroup(&how, 0);
    int bad = posix_spawn(&c->pid, "/bin/sh", &files, &how, argv, environ);
    posix_spawn_file_actions_destroy(&files);
    posix_spawnattr_destroy(&how);
    close(ends[1]);
    c->from = ends[0];
    if (bad)
        close(ends[0]);
    return bad ? -1 : 0;
}

/* Returns 1 if the child must end now; end->how then has the reason. */
static int must_end(struct child *c)
{
    struct command_end *end = c->end;
    int64_t peak = c->command->watched ? resident_peak_of(c->pid) : -1;
    end->peak_bytes = peak > end->peak_bytes ? peak : end->peak_bytes;
    if (*c->command->stop)
        snprintf(end->how, sizeof end->how, "stopped by signal %d to this program",
                 (int)*c->command->stop);
    else if (clock_ns() > c->until)
        snprintf(end->how, sizeof end->how, "still running after %g s", c->command->limit_s);
    return *end->how != 0;
}

/* Reads the output until it ends, or until the child must end. */
static void read_output(struct child *c, struct buf *text)
{
    struct pollfd ready = {.fd = c->from, .events = POLLIN};
    char piece[1 << 16];
    while (!must_end(c)) {
        if (poll(&ready, 1, c->command->watched ? WATCH_MS : LOOK_MS) <= 0)
            continue;
        ssize_t n = read(c->from, piece, sizeof piece);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return;
        if (text->len + (size_t)n > MOST_BYTES) {
            snprintf(c->end->how, sizeof c->end->how, "it printed more than %d MiB",
                     MOST_BYTES >> 20);
            return;
        }
        buf_put(text, piece, (size_t)n);
    }
}

/* Waits for the child and returns its status. If end->how is set, ends the child first. */
static int wait_end(struct child *c, struct rusage *took)
{
    int status = 0;
    pid_t got = 0;
    useconds_t nap = 100;
    while (!*c->end->how && !(got = wait4(c->pid, &status, WNOHANG, took)) && !must_end(c)) {
        usleep(nap);
        nap = nap < 5000 ? 2 * nap : nap;
    }
    if (got)
        return status;
    kill(-c->pid, SIGKILL);
    while (wait4(c->pid, &status, 0, took) < 0 && errno == EINTR)
        ;
    return status;
}

static double seconds(struct timeval t)
{
    return (double)t.tv_sec + (double)t.tv_usec / 1e6;
}

/* A shell reports the signal of a program that it started as a status of 128 or more. */
static void describe(struct command_end *end, int status)
{
    int code = WIFEXITED(status) ? WEXITSTATUS(status) : 0;
    int number = WIFSIGNALED(status)                       ? WTERMSIG(status)
                 : code > SHELL_SIGNAL && code < SHELL_SIGNAL + 64 ? code - SHELL_SIGNAL
                                                           : 0;
    end->missing = code == NOT_FOUND;
    if (number)
        snprintf(end->how, sizeof end->how, "signal %d (%s)", number, strsignal(number));
    else if (end->missing)
        snprintf(end->how, sizeof end->how, "there is no such program (exit code %d)", code);
    else if (code)
        snprintf(end->how, sizeof end->how, "exit code %d", code);
}

char *command_run(const struct command *command, struct command_end *end)
{
    struct child c = {.command = command, .end = end,
                      .until = clock_ns() + (int64_t)(command->limit_s * 1e9)};
    struct rusage took = {0};
    struct buf text = {0};
    *end = (struct command_end){.peak_bytes = -1};
    if (start(&c)) {
        snprintf(end->how, sizeof end->how, "no process can be started");
        return NULL;
    }
    read_output(&c, &text);
    int status = wait_end(&c, &took);
    close(c.from);
    end->cpu_s = seconds(took.ru_utime) + seconds(took.ru_stime);
    if (!*end->how)
        describe(end, status);
    if (!*end->how)
        return text.data ? text.data : mem_text("");
    buf_free(&text);
    return NULL;
}
