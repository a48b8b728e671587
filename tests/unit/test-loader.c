/* test-loader.c - tests that training batches and their order are the same with no thread, one and
 * many, from any first step, with slow fills before quick ones; and that no more batches are
 * prepared ahead than there is room for. */
#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

#include "lib/base/rng.h"
#include "lib/train/loader.h"
#include "tests/tap.h"

enum { ROWS = 64, STEPS = 400 };

struct making {
    _Atomic int64_t made, given; /* batches made so far; the batch in use */
    _Atomic int64_t ahead;       /* largest number of steps that a batch was made ahead */
    int wild; /* 1: filling a batch takes a random time */
    pthread_t main;
    _Atomic int others; /* batches that other threads than main made */
};

static void fill(const void *ctx, int64_t step, struct train_batch *b)
{
    struct making *m = (struct making *)(uintptr_t)ctx;
    uint64_t lot = rng_at(1, (uint64_t)step, 0);
    if (m->wild)
        nanosleep(&(struct timespec){.tv_nsec = (long)(lot % 300000)}, NULL);
    b->seqs = 1 + (size_t)(lot % 4);
    b->len = ROWS / b->seqs;
    for (size_t i = 0; i < b->seqs * b->len; i++) {
        b->token[i] = (int32_t)(rng_at(2, (uint64_t)step, i) % 1000);
        b->target[i] = (int32_t)step;
        b->weight[i] = (float)i;
    }
    int64_t far = step - atomic_load(&m->given), most = atomic_load(&m->ahead);
    while (far > most && !atomic_compare_exchange_weak(&m->ahead, &most, far))
        ;
    atomic_fetch_add(&m->made, 1);
    atomic_fetch_add(&m->others, !pthread_equal(pthread_self(), m->main));
}

/* Returns 1 if the loader gives the batches of fill() from step `first` on, each valid until the
 * next. */
static int follows(int64_t first, int64_t end, size_t threads, struct making *m)
{
    struct err e = {0};
    const struct loader_work work = {fill, m};
    atomic_store(&m->given, first - 1);
    struct loader *l = loader_open(&work, ROWS, first, end, threads, &e);
    struct making plain = {.main = pthread_self()};
    struct train_batch want = train_batch_room(ROWS);
    int good = l != NULL;
    for (int64_t step = first; good && step < end; step++) {
        atomic_store(&m->given, step);
        const struct train_batch *b = loader_next(l);
        fill(&plain, step, &want);
        for (int look = 0; look < 2; look++) {
            if (look && m->wild)
                nanosleep(&(struct timespec){.tv_nsec = 100000}, NULL);
            size_t n = want.seqs * want.len;
            good &= b->seqs == want.seqs && b->len == want.len &&
                    !memcmp(b->token, want.token, n * 4) &&
                    !memcmp(b->target, want.target, n * 4) &&
                    !memcmp(b->weight, want.weight, n * 4);
        }
    }
    good = good && loader_waited_ns(l) > 0;
    loader_close(l);
    train_batch_free(&want);
    return good;
}

int main(void)
{
    static const size_t threads[] = {0, 1, 2, 5};
    for (int wild = 0; wild < 2; wild++)
        for (size_t i = 0; i < sizeof threads / sizeof *threads; i++) {
            struct making m = {.wild = wild, .main = pthread_self()};
            ok(follows(wild ? 300 : 0, STEPS, threads[i], &m),
               "%zu threads%s: the batches of the steps, in their order", threads[i],
               wild ? ", of any pace, from step 300 on" : "");
            ok(m.made == (wild ? STEPS - 300 : STEPS), "each batch is made once");
            ok(threads[i] ? m.others == m.made : m.others == 0, "batches are made by %s",
               threads[i] ? "other threads" : "the asking thread");
            ok(m.ahead <= (int64_t)(2 * threads[i]), "at most %lld batches are made ahead",
               (long long)m.ahead);
        }
    struct err e = {0};
    struct making m = {.main = pthread_self()};
    const struct loader_work work = {fill, &m};
    struct loader *l = loader_open(&work, ROWS, 0, STEPS, 3, &e);
    loader_next(l);
    loader_close(l); /* while batches are being made: nothing may hang */
    ok(m.made >= 1 && m.made <= 8, "closed before the end: %lld made", (long long)m.made);
    return tap_done();
}
