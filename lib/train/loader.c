/* loader.c - prepares batches in threads; see loader.h. Slots form a ring: the batch of step s is
 * in slot s % n. Threads take steps in order, and wait while the slot of a step has a batch in use.
 * Invariant: the batch of step taken - 1 is in use, the batches of steps taken .. made - 1 are
 * ready or being filled, made <= taken - 1 + n. */
#include "lib/train/loader.h"

#include <assert.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>

#include "lib/base/clock.h"
#include "lib/base/mem.h"

struct slot {
    struct train_batch batch;
    int64_t holds; /* the step whose batch is complete; -1: none */
};

struct loader {
    struct loader_work work;
    struct slot *slot; /* [n] */
    size_t n, threads;
    pthread_t *thread;
    int64_t end;
    int64_t taken, made; /* the next step of loader_next(); the next step to fill */
    int stop;
    int64_t waited_ns;
    pthread_mutex_t lock; /* protects taken, made, stop and slot[].holds */
    pthread_cond_t room, ready;
};

static struct slot *slot_of(const struct loader *loader, int64_t step)
{
    return &loader->slot[(size_t)step % loader->n];
}

/* 1: no step is left, or the slot of step `made` has the batch that loader_next() returned last,
 * which stays in use until the next call. */
static int is_full(const struct loader *loader)
{
    return loader->made == loader->end || loader->made >= loader->taken - 1 + (int64_t)loader->n;
}

static void *make_batches(void *ctx)
{
    struct loader *loader = ctx;
    pthread_mutex_lock(&loader->lock);
    for (;;) {
        while (is_full(loader) && !loader->stop)
            pthread_cond_wait(&loader->room, &loader->lock);
        if (loader->stop)
            break;
        int64_t step = loader->made++;
        struct slot *slot = slot_of(loader, step);
        pthread_mutex_unlock(&loader->lock);
        loader->work.fill(loader->work.ctx, step, &slot->batch);
        pthread_mutex_lock(&loader->lock);
        slot->holds = step;
        pthread_cond_signal(&loader->ready);
    }
    pthread_mutex_unlock(&loader->lock);
    return NULL;
}

/* The threads start with all signals blocked, because the main thread handles signals. */
static int start_threads(struct loader *loader, size_t threads)
{
    sigset_t all, before;
    int bad = 0;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    while (!bad && loader->threads < threads) {
        bad = pthread_create(&loader->thread[loader->threads], NULL, make_batches, loader);
        loader->threads += !bad;
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return bad;
}

struct loader *loader_open(const struct loader_work *work, size_t rows, int64_t first, int64_t end,
                           size_t threads, struct err *e)
{
    struct loader *loader = mem_zero(1, sizeof *loader);
    *loader = (struct loader){.work = *work, .end = end, .taken = first, .made = first};
    loader->n = 1 + 2 * threads;
    loader->slot = mem_zero(loader->n, sizeof *loader->slot);
    loader->thread = mem_zero(threads + 1, sizeof *loader->thread);
    for (size_t i = 0; i < loader->n; i++) {
        loader->slot[i].batch = train_batch_room(rows);
        loader->slot[i].holds = -1;
    }
    pthread_mutex_init(&loader->lock, NULL);
    pthread_cond_init(&loader->room, NULL);
    pthread_cond_init(&loader->ready, NULL);
    if (!start_threads(loader, threads))
        return loader;
    err_set(e, EXIT_INTERNAL, "no thread for batches could be started");
    loader_close(loader);
    return NULL;
}

struct train_batch *loader_next(struct loader *loader)
{
    int64_t begin = clock_ns();
    pthread_mutex_lock(&loader->lock);
    assert(loader->taken < loader->end);
    int64_t step = loader->taken++;
    struct slot *slot = slot_of(loader, step);
    if (loader->threads) {
        pthread_cond_broadcast(&loader->room);
        while (slot->holds != step)
            pthread_cond_wait(&loader->ready, &loader->lock);
    }
    pthread_mutex_unlock(&loader->lock);
    if (!loader->threads)
        loader->work.fill(loader->work.ctx, step, &slot->batch);
    loader->waited_ns += clock_ns() - begin;
    return &slot->batch;
}

int64_t loader_waited_ns(const struct loader *loader)
{
    return loader->waited_ns;
}

void loader_close(struct loader *loader)
{
    if (!loader)
        return;
    pthread_mutex_lock(&loader->lock);
    loader->stop = 1;
    pthread_cond_broadcast(&loader->room);
    pthread_mutex_unlock(&loader->lock);
    for (size_t i = 0; i < loader->threads; i++)
        pthread_join(loader->thread[i], NULL);
    pthread_cond_destroy(&loader->ready);
    pthread_cond_destroy(&loader->room);
    pthread_mutex_destroy(&loader->lock);
    for (size_t i = 0; i < loader->n; i++)
        train_batch_free(&loader->slot[i].batch);
    free(loader->slot);
    free(loader->thread);
    free(loader);
}
