/* sandbox.c - see sandbox.h. There are three processes: the tool, which reads the output and kills
 * the others at the time limit; a helper, which enters the namespaces; and the program. The program
 * is the first process of its namespace, so all processes in the namespace end with it. The reason
 * of a failure before the start comes back through a pipe, which the start of the program
 * closes. */
#include "lib/base/sandbox.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "lib/base/file.h"
#include "lib/base/mem.h"
#include "lib/base/rights/filter.h"
#include "lib/base/sandbox/inside.h"

#ifndef SYS_close_range
#define SYS_close_range 436
#endif

enum { TAIL = 32768 /* more than an interpreter buffers until it ends */, ARGUMENTS = 64,
       CLOSE_AT_EXEC = 4 /* CLOSE_RANGE_CLOEXEC */,
       REFUSED_CALLS = FILTER_PROCESSES | FILTER_SOCKETS | FILTER_ESCAPES };
static const char path[] = "/usr/bin:/bin";
static const char bubblewrap[] = "/usr/bin/bwrap";

struct confined {
    const char *const *argv;
    const char *program;
    size_t n;
    const struct sandbox_limits *limits;
    int out, fault; /* write ends of pipes: standard output; the reason of a failure */
};

/* In a child: reports why (a static text) and ends. */
static void fail(const struct confined *j, const char *why)
{
    (void)!write(j->fault, &why, sizeof why); /* a pointer that is valid in the tool, too */
    _exit(127);
}

static void set_streams(const struct confined *j)
{
    int none = open("/dev/null", O_WRONLY | O_CLOEXEC); /* reading fails, as in code_eval */
    if (none < 0 || dup2(none, 0) < 0 || dup2(j->out, 1) < 0 || dup2(none, 2) < 0)
        fail(j, "no sandbox: no standard streams");
}

/* Returns the descriptor of a file without a name that holds these n bytes, at its start. */
static int file_of(const struct confined *j, const void *bytes, size_t n)
{
    int fd = memfd_create("sandbox", 0);
    if (fd < 0 || write(fd, bytes, n) != (ssize_t)n || lseek(fd, 0, SEEK_SET))
        fail(j, "no sandbox: no memory for a file");
    return fd;
}

/* ---- by bubblewrap ---- */

static void wrap(const struct confined *j)
{
    struct sock_filter code[FILTER_LENGTH];
    const unsigned short filter = filter_write(code, REFUSED_CALLS);
    char *size = mem_format("%d", j->limits->file_mib << 20);
    char *calls = mem_format("%d", file_of(j, code, filter * sizeof *code));
    char *program = mem_format("%d", file_of(j, j->program, j->n));
    const char *const head[] = {
        bubblewrap, "--unshare-all", "--die-with-parent", "--new-session", "--cap-drop", "ALL",
        "--ro-bind", "/usr", "/usr", "--ro-bind-try", "/bin", "/bin", "--ro-bind-try", "/lib",
        "/lib", "--ro-bind-try", "/lib64", "/lib64", "--ro-bind-try", "/etc/ld.so.cache",
        "/etc/ld.so.cache", "--dev", "/dev", "--size", size, "--tmpfs", "/box", "--file", program,
        "/box/program", "--chdir", "/box", "--clearenv", "--setenv", "PATH", path, "--setenv",
        "LC_ALL", "C.UTF-8", "--seccomp", calls, "--"};
    const char *argv[sizeof head / sizeof *head + ARGUMENTS + 1];
    size_t n = sizeof head / sizeof *head;
    if (!filter)
        fail(j, "no sandbox: system calls cannot be filtered");
    memcpy(argv, head, sizeof head);
    for (size_t i = 0; i < ARGUMENTS && j->argv[i]; i++)
        argv[n++] = j->argv[i];
    argv[n] = NULL;
    set_streams(j);
    sandbox_limit(j->limits);
    execv(bubblewrap, (char *const *)(uintptr_t)argv);
    fail(j, "no sandbox: bubblewrap cannot be started");
}

/* ---- by namespaces ---- */

/* Starts the program in the process that enter() forked. */
static void start(const struct confined *j)
{
    static const char *const own[] = {"PATH=/usr/bin:/bin", "LC_ALL=C.UTF-8", NULL};
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    const char *why = sandbox_furnish(j->limits);
    int fd = why ? -1 : open("program", O_WRONLY | O_CREAT | O_CLOEXEC, 0400);
    if (!why && (fd < 0 || write(fd, j->program, j->n) != (ssize_t)j->n || close(fd)))
        why = "no sandbox: no room for the program";
    if (why)
        fail(j, why);
    set_streams(j);
    sandbox_limit(j->limits);
    if (filter_apply(REFUSED_CALLS))
        fail(j, "no sandbox: system calls cannot be filtered");
    environ = (char **)(uintptr_t)own;
    execvp(j->argv[0], (char *const *)(uintptr_t)j->argv);
    fail(j, "the interpreter cannot be started");
}

/* Runs in the helper: enters the namespaces, forks, and ends with the status of the program. */
static void enter(const struct confined *j)
{
    const char *why = sandbox_separate();
    pid_t child = why ? -1 : fork();
    int status = 0;
    if (child == 0)
        start(j);
    if (child < 0)
        fail(j, why ? why : "no sandbox: no process");
    close(j->fault); /* j->out stays open: the tool reads until this process ends */
    while (waitpid(child, &status, 0) < 0)
        ;
    if (WIFEXITED(status))
        _exit(WEXITSTATUS(status));
    raise(SIGKILL);
    _exit(127);
}

/* ---- the process of the tool ---- */

static int64_t now_ms(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1000 + time.tv_nsec / 1000000;
}

/* Reads until the output ends or `seconds` are over. Returns 1 if the output has ended. */
static int listen_to(int fd, int seconds, struct buf *tail)
{
    char bytes[TAIL];
    const int64_t end = now_ms() + (int64_t)seconds * 1000;
    for (int64_t left; (left = end - now_ms()) > 0;) {
        struct pollfd pollfd = {fd, POLLIN, 0};
        if (poll(&pollfd, 1, (int)left) <= 0)
            continue;
        ssize_t n = read(fd, bytes, sizeof bytes);
        if (n <= 0)
            return n == 0;
        buf_put(tail, bytes, (size_t)n);
        if (tail->len > 2 * TAIL) {
            memmove(tail->data, tail->data + tail->len - TAIL, TAIL + 1);
            tail->len = TAIL;
        }
    }
    return 0;
}

/* 1: the program is in a folder where the sandbox looks for it. */
static int is_installed(const char *name)
{
    static const char *const folders[] = {"/usr/bin", "/bin"};
    int found = 0;
    for (int i = 0; i < 2; i++) {
        char *file = mem_format("%s/%s", folders[i], name);
        found |= file_exists(file);
        free(file);
    }
    return found;
}

static void child(const struct confined *j)
{
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (syscall(SYS_close_range, 3u, UINT32_MAX, CLOSE_AT_EXEC))
        fail(j, "no sandbox: descriptors stay open (Linux 5.11 or later can close them)");
    if (file_exists(bubblewrap))
        wrap(j);
    enter(j);
}

int sandbox_run(const char *const *argv, const char *program, size_t n,
                const struct sandbox_limits *limits, struct buf *tail, const char **why)
{
    int out[2], fault[2], status = 0;
    struct confined j = {argv, program, n, limits, -1, -1};
    *why = is_installed(argv[0]) ? NULL : "the interpreter is not in /usr/bin or /bin";
    buf_clear(tail);
    if (*why)
        return -1;
    if (pipe2(out, O_CLOEXEC) || pipe2(fault, O_CLOEXEC)) {
        *why = "no sandbox: no pipes";
        return -1;
    }
    j.out = out[1];
    j.fault = fault[1];
    pid_t helper = fork();
    if (helper == 0)
        child(&j);
    close(out[1]);
    close(fault[1]);
    int ended = helper > 0 && listen_to(out[0], limits->wall_seconds, tail);
    if (!ended && helper > 0)
        kill(-helper, SIGKILL);
    while (helper > 0 && waitpid(helper, &status, 0) < 0)
        ;
    if (read(fault[0], why, sizeof *why) != sizeof *why && helper < 0)
        *why = "no sandbox: no process";
    close(out[0]);
    close(fault[0]);
    return *why ? -1 : ended && WIFEXITED(status) ? WEXITSTATUS(status) : 256;
}
