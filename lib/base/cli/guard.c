/* guard.c - see guard.h. Without these guards each case would end the process without a message, or
 * would write into a file that nobody named. The code in which a case occurs cannot handle it: a
 * case occurs in a signal, or in an allocation of a library. */
#include "lib/base/cli/guard.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "lib/base/err.h"
#include "lib/base/mem.h"

/* Ends the process with a line. n: bytes of the text. */
static void leave(const char *text, size_t n)
{
    ssize_t ignored = write(STDERR_FILENO, text, n);
    (void)ignored;
    _exit(EXIT_IO);
}

/* open() takes the lowest free number, so the loop fills exactly the holes. */
static void fill_descriptors(void)
{
    static const char text[] = "crossover: /dev/null: cannot open it for a closed standard "
                               "stream\n";
    static const int mode[] = {O_WRONLY, O_RDONLY, O_RDWR};
    for (int fd = 0; fd < 3; fd++)
        if (fcntl(fd, F_GETFD) < 0 && errno == EBADF && open("/dev/null", mode[fd]) != fd)
            leave(text, sizeof text - 1);
}

/* BUS_ADRERR: a read beyond the end of a mapped file. Other bus errors end the process as usual. */
static void bus_error(int number, siginfo_t *info, void *context)
{
    static const char text[] = "crossover: a mapped file was cut short while it was read\n";
    (void)context;
    if (info->si_code == BUS_ADRERR)
        leave(text, sizeof text - 1);
    signal(number, SIG_DFL);
    raise(number);
}

void guard_start(void)
{
    struct sigaction act = {.sa_flags = SA_SIGINFO};
    fill_descriptors();
    act.sa_sigaction = bus_error;
    sigaction(SIGBUS, &act, NULL);
    signal(SIGXFSZ, SIG_IGN);
    json_set_alloc_funcs(mem_alloc, free);
}
