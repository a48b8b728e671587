/* loader.c - see loader.h. Slots form a ring: the batch of step s is in slot s % n. Threads take
 * steps in order, but no step whose slot holds a batch still in use. Invariant: the batch of step
 * taken - 1 is in use, steps taken .. made - 1 are ready or being filled, made <= taken - 1 + n. */
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
    int64_t taken, made; /* the next step to hand out; the next step to fill */
    int stop;
    int64_t waited_ns;
    pthread_mutex_t lock; /* protects taken, made, stop and slot[].holds */
    pthread_cond_t room, ready;
};

static struct slot *slot_of(const struct loader *l, int64_t step)
{
    return &l->slot[(size_t)step % l->n];
}

/* The batch handed out last stays in use until the next one is asked for. */
static int is_full(const struct loader *l)
{
    return l->made == l->end || l->made >= l->taken - 1 + (int64_t)l->n;
}

static void *make_batches(void *ctx)
{
    struct loader *l = ctx;
    pthread_mutex_lock(&l->lock);
    for (;;) {
        while (is_full(l) && !l->stop)
            pthread_cond_wait(&l->room, &l->lock);
        if (l->stop)
            break;
        int64_t step = l->made++;
        struct slot *s = slot_of(l, step);
        pthread_mutex_unlock(&l->lock);
        l->work.fill(l->work.ctx, step, &s->batch);
        pthread_mutex_lock(&l->lock);
        s->holds = step;
        pthread_cond_signal(&l->ready);
    }
    pthread_mutex_unlock(&l->lock);
    return NULL;
}

/* Block signals: the main thread handles them. */
static int start_threads(struct loader *l, size_t threads)
{
    sigset_t all, before;
    int bad = 0;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    while (!bad && l->threads < threads) {
        bad = pthread_create(&l->thread[l->threads], NULL, make_batches, l);
        l->threads += !bad;
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return bad;
}

struct loader *loader_open(const struct loader_work *work, size_t rows, int64_t first, int64_t end,
                           size_t threads, struct err *e)
{
    struct loader *l = mem_zero(1, sizeof *l);
    *l = (struct loader){.work = *work, .end = end, .taken = first, .made = first};
    l->n = 1 + 2 * threads;
    l->slot = mem_zero(l->n, sizeof *l->slot);
    l->thread = mem_zero(threads + 1, sizeof *l->thread);
    for (size_t i = 0; i < l->n; i++) {
        l->slot[i].batch = train_batch_room(rows);
        l->slot[i].holds = -1;
    }
    pthread_mutex_init(&l->lock, NULL);
    pthread_cond_init(&l->room, NULL);
    pthread_cond_init(&l->ready, NULL);
    if (!start_threads(l, threads))
        return l;
    err_set(e, EXIT_INTERNAL, "no thread for batches could be started");
    loader_close(l);
    return NULL;
}

struct train_batch *loader_next(struct loader *l)
{
    int64_t begin = clock_ns();
    pthread_mutex_lock(&l->lock);
    assert(l->taken < l->end);
    int64_t step = l->taken++;
    struct slot *s = slot_of(l, step);
    if (l->threads) {
        pthread_cond_broadcast(&l->room);
        while (s->holds != step)
            pthread_cond_wait(&l->ready, &l->lock);
    }
    pthread_mutex_unlock(&l->lock);
    if (!l->threads)
        l->work.fill(l->work.ctx, step, &s->batch);
    l->waited_ns += clock_ns() - begin;
    return &s->batch;
}

int64_t loader_waited_ns(const struct loader *l)
{
    return l->waited_ns;
}

void loader_close(struct loader *l)
{
    if (!l)
        return;
    pthread_mutex_lock(&l->lock);
    l->stop = 1;
    pthread_cond_broadcast(&l->room);
    pthread_mutex_unlock(&l->lock);
    for (size_t i = 0; i < l->threads; i++)
        pthread_join(l->thread[i], NULL);
    pthread_cond_destroy(&l->ready);
    pthread_cond_destroy(&l->room);
    pthread_mutex_destroy(&l->lock);
    for (size_t i = 0; i < l->n; i++)
        train_batch_free(&l->slot[i].batch);
    free(l->slot);
    free(l->thread);
    free(l);
}
