/* turns.c - see turns.h. The shared word counts turns; turn t belongs to party t modulo the number
 * of parties. A party waits on a futex with a time limit and then checks the party whose turn it
 * is: a party that has left is skipped, a process that is gone is an error. Parties share cores
 * (session.c). So a turn begins when all others sleep: otherwise the party that passed it would
 * wait for the core during the batch. */
#include "lib/run/turns.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "lib/base/mem.h"

enum { MAGIC = 0x74726e34, LOOK_MS = 100, MEET_MS = 10, JOIN_MS = 600000 };
/* After this many looks a turn begins even if others are awake: the pressure on the processor then
 * marks its batch (host_monitor.h). */
enum { QUIET_US = 50, QUIET_LOOKS = 100 };

struct shared {
    _Atomic uint32_t magic, parties, turn;
    /* pid 0: the party has not joined */
    struct { _Atomic int32_t pid; _Atomic uint32_t gone, meets, asleep; } party[TURNS_PARTIES];
};

struct turns {
    struct shared *shared;
    size_t party, parties;
};

static void futex(_Atomic uint32_t *word, int operation, uint32_t value)
{
    const struct timespec limit = {0, LOOK_MS * 1000000L};
    syscall(SYS_futex, word, operation, value, &limit, NULL, 0);
}

/* The file, mapped; NULL: *e filled. */
static struct shared *map_file(const char *path, struct err *e)
{
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    struct stat st;
    void *at = MAP_FAILED;
    if (fd >= 0 && !fstat(fd, &st) && S_ISREG(st.st_mode) &&
        (st.st_size >= (off_t)sizeof(struct shared) ||
         !ftruncate(fd, (off_t)sizeof(struct shared))))
        at = mmap(NULL, sizeof(struct shared), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (at == MAP_FAILED)
        err_set(e, EXIT_CANNOT_CREATE, "--turns %s: cannot be used: %s", path,
                errno ? strerror(errno) : "expected a regular file");
    if (fd >= 0)
        close(fd);
    return at == MAP_FAILED ? NULL : at;
}

struct turns *turns_join(const char *path, size_t party, size_t parties, struct err *e)
{
    struct shared *s = map_file(path, e);
    if (!s)
        return NULL;
    uint32_t magic = 0, number = 0;
    int32_t absent = 0;
    int fits = (atomic_compare_exchange_strong(&s->magic, &magic, MAGIC) || magic == MAGIC) &&
               (atomic_compare_exchange_strong(&s->parties, &number, (uint32_t)parties) ||
                number == parties);
    if (!fits || !atomic_compare_exchange_strong(&s->party[party].pid, &absent, getpid())) {
        munmap(s, sizeof *s);
        err_set(e, EXIT_BAD_DATA, "--turns %s: expected a new file, got that of %s", path,
                fits ? "a launch that already has this party" : "something else");
        return NULL;
    }
    struct turns *t = mem_zero(1, sizeof *t);
    *t = (struct turns){s, party, parties};
    return t;
}

/* Gives turn `turn` to the next party, unless another process did. */
static void advance(struct shared *s, uint32_t turn)
{
    if (atomic_compare_exchange_strong(&s->turn, &turn, turn + 1))
        futex(&s->turn, FUTEX_WAKE, INT32_MAX);
}

/* The first party that has not joined, or has met the others fewer than `meets` times; `parties`:
 * none. */
static size_t first_absent(const struct turns *t, uint32_t meets)
{
    const struct shared *s = t->shared;
    size_t i = 0;
    while (i < t->parties && (atomic_load(&s->party[i].gone) ||
                              (atomic_load(&s->party[i].pid) &&
                               atomic_load(&s->party[i].meets) >= meets)))
        i++;
    return i;
}

/* 1: the process of party `whose` is gone and has not left. *e is filled. */
static int is_lost(const struct turns *t, size_t whose, struct err *e)
{
    const int32_t pid = atomic_load(&t->shared->party[whose].pid);
    if (!pid || !kill(pid, 0) || errno != ESRCH || atomic_load(&t->shared->party[whose].gone))
        return 0;
    err_set(e, EXIT_NO_DEVICE, "--turns: process %d, which takes turns with this one, ended before "
            "its work was done", (int)pid);
    return 1;
}

/* Sleeps until no party is absent. Loading a model would disturb parties that already work. */
static int wait_for_all(const struct turns *t, uint32_t meets, const volatile sig_atomic_t *stop,
                        struct err *e)
{
    size_t absent;
    int looks = 0;
    while ((absent = first_absent(t, meets)) < t->parties) {
        if (stop && *stop)
            return 1;
        if (is_lost(t, absent, e))
            return -1;
        if (looks++ == JOIN_MS / MEET_MS)
            return err_set(e, EXIT_NO_DEVICE, "--turns: party %zu of %zu %s within %d s", absent,
                           t->parties, atomic_load(&t->shared->party[absent].pid)
                                           ? "joined but did not get ready" : "did not join",
                           JOIN_MS / 1000);
        nanosleep(&(struct timespec){0, MEET_MS * 1000000L}, NULL);
    }
    return 0;
}

int turns_meet(struct turns *t, const volatile sig_atomic_t *stop, struct err *e)
{
    return wait_for_all(t, atomic_fetch_add(&t->shared->party[t->party].meets, 1) + 1, stop, e);
}

static int others_sleep(const struct turns *t)
{
    for (size_t i = 0; i < t->parties; i++)
        if (i != t->party && !atomic_load(&t->shared->party[i].gone) &&
            !atomic_load(&t->shared->party[i].asleep))
            return 0;
    return 1;
}

/* Gives the core to the others until they sleep. It does so at least once: a party that was woken
 * with this one, and will sleep again, may not have run yet. */
static void wait_for_quiet(const struct turns *t)
{
    int looks = 0;
    do
        nanosleep(&(struct timespec){0, QUIET_US * 1000L}, NULL);
    while (!others_sleep(t) && ++looks < QUIET_LOOKS);
}

int turns_wait(struct turns *t, const volatile sig_atomic_t *stop, struct err *e)
{
    struct shared *s = t->shared;
    int rc = wait_for_all(t, 0, stop, e);
    while (!rc) {
        uint32_t turn = atomic_load(&s->turn);
        size_t whose = turn % t->parties;
        if (whose == t->party) {
            wait_for_quiet(t);
            return 0;
        }
        if (stop && *stop)
            return 1;
        if (atomic_load(&s->party[whose].gone))
            advance(s, turn);
        else if (is_lost(t, whose, e))
            rc = -1;
        else {
            atomic_store(&s->party[t->party].asleep, 1);
            futex(&s->turn, FUTEX_WAIT, turn);
            atomic_store(&s->party[t->party].asleep, 0);
        }
    }
    return rc;
}

void turns_pass(struct turns *t)
{
    uint32_t turn = atomic_load(&t->shared->turn);
    if (turn % t->parties == t->party)
        advance(t->shared, turn);
}

void turns_leave(struct turns *t)
{
    if (!t)
        return;
    atomic_store(&t->shared->party[t->party].gone, 1);
    turns_pass(t);
    munmap(t->shared, sizeof *t->shared);
    free(t);
}
