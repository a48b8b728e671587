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

/* Maps the file. Returns NULL with *e filled if that fails. */
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
    struct shared *shared = map_file(path, e);
    if (!shared)
        return NULL;
    uint32_t magic = 0, number = 0;
    int32_t absent = 0;
    int fits = (atomic_compare_exchange_strong(&shared->magic, &magic, MAGIC) || magic == MAGIC) &&
               (atomic_compare_exchange_strong(&shared->parties, &number, (uint32_t)parties) ||
                number == parties);
    if (!fits || !atomic_compare_exchange_strong(&shared->party[party].pid, &absent, getpid())) {
        munmap(shared, sizeof *shared);
        err_set(e, EXIT_BAD_DATA, "--turns %s: expected a new file, got that of %s", path,
                fits ? "a launch that already has this party" : "something else");
        return NULL;
    }
    struct turns *turns = mem_zero(1, sizeof *turns);
    *turns = (struct turns){shared, party, parties};
    return turns;
}

/* Gives turn `turn` to the next party, unless another process did. */
static void advance(struct shared *shared, uint32_t turn)
{
    if (atomic_compare_exchange_strong(&shared->turn, &turn, turn + 1))
        futex(&shared->turn, FUTEX_WAKE, INT32_MAX);
}

/* Returns the first party that has not joined, or has met the others fewer than `meets` times;
 * turns->parties if there is none. */
static size_t first_absent(const struct turns *turns, uint32_t meets)
{
    const struct shared *shared = turns->shared;
    size_t i = 0;
    while (i < turns->parties && (atomic_load(&shared->party[i].gone) ||
                                  (atomic_load(&shared->party[i].pid) &&
                                   atomic_load(&shared->party[i].meets) >= meets)))
        i++;
    return i;
}

/* 1: the process of party `whose` is gone and has not left. *e is filled. */
static int is_lost(const struct turns *turns, size_t whose, struct err *e)
{
    const int32_t pid = atomic_load(&turns->shared->party[whose].pid);
    if (!pid || !kill(pid, 0) || errno != ESRCH || atomic_load(&turns->shared->party[whose].gone))
        return 0;
    err_set(e, EXIT_NO_DEVICE, "--turns: process %d, which takes turns with this one, ended before "
            "its work was done", (int)pid);
    return 1;
}

/* Sleeps until no party is absent. Loading a model would disturb parties that already work. */
static int wait_for_all(const struct turns *turns, uint32_t meets,
                        const volatile sig_atomic_t *stop, struct err *e)
{
    size_t absent;
    int looks = 0;
    while ((absent = first_absent(turns, meets)) < turns->parties) {
        if (stop && *stop)
            return 1;
        if (is_lost(turns, absent, e))
            return -1;
        if (looks++ == JOIN_MS / MEET_MS)
            return err_set(e, EXIT_NO_DEVICE, "--turns: party %zu of %zu %s within %d s", absent,
                           turns->parties, atomic_load(&turns->shared->party[absent].pid)
                                           ? "joined but did not get ready" : "did not join",
                           JOIN_MS / 1000);
        nanosleep(&(struct timespec){0, MEET_MS * 1000000L}, NULL);
    }
    return 0;
}

int turns_meet(struct turns *turns, const volatile sig_atomic_t *stop, struct err *e)
{
    return wait_for_all(turns, atomic_fetch_add(&turns->shared->party[turns->party].meets, 1) + 1,
                        stop, e);
}

static int others_sleep(const struct turns *turns)
{
    for (size_t i = 0; i < turns->parties; i++)
        if (i != turns->party && !atomic_load(&turns->shared->party[i].gone) &&
            !atomic_load(&turns->shared->party[i].asleep))
            return 0;
    return 1;
}

/* Gives the core to the other parties until they sleep, and at least once: a party that was woken
 * with this one, and will sleep again, may not have run yet. */
static void wait_for_quiet(const struct turns *turns)
{
    int looks = 0;
    do
        nanosleep(&(struct timespec){0, QUIET_US * 1000L}, NULL);
    while (!others_sleep(turns) && ++looks < QUIET_LOOKS);
}

int turns_wait(struct turns *turns, const volatile sig_atomic_t *stop, struct err *e)
{
    struct shared *shared = turns->shared;
    int rc = wait_for_all(turns, 0, stop, e);
    while (!rc) {
        uint32_t turn = atomic_load(&shared->turn);
        size_t whose = turn % turns->parties;
        if (whose == turns->party) {
            wait_for_quiet(turns);
            return 0;
        }
        if (stop && *stop)
            return 1;
        if (atomic_load(&shared->party[whose].gone))
            advance(shared, turn);
        else if (is_lost(turns, whose, e))
            rc = -1;
        else {
            atomic_store(&shared->party[turns->party].asleep, 1);
            futex(&shared->turn, FUTEX_WAIT, turn);
            atomic_store(&shared->party[turns->party].asleep, 0);
        }
    }
    return rc;
}

void turns_pass(struct turns *turns)
{
    uint32_t turn = atomic_load(&turns->shared->turn);
    if (turn % turns->parties == turns->party)
        advance(turns->shared, turn);
}

void turns_leave(struct turns *turns)
{
    if (!turns)
        return;
    atomic_store(&turns->shared->party[turns->party].gone, 1);
    turns_pass(turns);
    munmap(turns->shared, sizeof *turns->shared);
    free(turns);
}
