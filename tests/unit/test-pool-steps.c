/* test-pool-steps.c - counts the time that a loop takes to begin and to end if every thread has its
 * own processor, on a model of such a machine. In the model, threads share cache lines. Reading or
 * writing a line takes one unit of time, one thread after the other; everything else takes no time.
 *
 * The pool itself runs, compiled here with its hooks. Its threads run one at a time: always the
 * thread whose clock is behind all others. So two processors are enough, and no time is measured.
 * Unlike in a real machine, all lines are equally far, and a sleeping thread wakes at once. */
#include <stdatomic.h>
#include <stdint.h>

static void model_touch(const void *line);
static void model_await(const atomic_uint *word, unsigned value);
#define POOL_TOUCH(line) model_touch(line)
#define POOL_AWAIT(gate, value) model_await(&(gate)->word, value)
#include "lib/base/pool.c"
#include "tests/tap.h"

enum { MOST = 128, LINES = 4096, LOOPS = 3 };
enum state { RUNS, WANTS, WAITS };

struct actor {
    enum state state;
    uint64_t clock;
    const void *line;        /* WANTS: wants to touch the line; WAITS: until *word is value */
    const atomic_uint *word;
    unsigned value;
    pthread_cond_t turn;
};
static struct {
    pthread_mutex_t lock;
    struct actor actor[MOST];
    size_t actors, known, running; /* known: threads that have a number; the caller has 0 */
    struct {
        uintptr_t line;
        uint64_t free; /* time when the last access to the line ends */
    } lines[LINES];
    int on;
} model = {.lock = PTHREAD_MUTEX_INITIALIZER};
static _Thread_local size_t self; /* number of this thread + 1; 0: it has none yet */

static uint64_t *free_at(const void *address)
{
    uintptr_t line = (uintptr_t)address / LINE;
    size_t i = line % LINES;
    while (model.lines[i].line && model.lines[i].line != line)
        i = (i + 1) % LINES;
    model.lines[i].line = line;
    return &model.lines[i].free;
}

/* When all threads have asked for a line, the first one by its clock gets it. */
static void next_turn(void)
{
    struct actor *first = NULL;
    uint64_t when = 0;
    for (size_t i = 0; !model.running && i < model.actors; i++) {
        struct actor *a = &model.actor[i];
        uint64_t free = *free_at(a->line), at = a->clock > free ? a->clock : free;
        int ready = a->state == WANTS || atomic_load(a->word) == a->value;
        if (ready && (!first || at < when)) {
            first = a;
            when = at;
        }
    }
    if (!first)
        return;
    first->clock = *free_at(first->line) = when + 1;
    first->state = RUNS;
    model.running++;
    pthread_cond_signal(&first->turn);
}

static void ask(enum state state, const void *line, const atomic_uint *word, unsigned value)
{
    pthread_mutex_lock(&model.lock);
    if (model.on && !self)
        self = ++model.known;
    struct actor *a = &model.actor[self - (self > 0)];
    if (model.on) {
        a->state = state;
        a->line = line;
        a->word = word;
        a->value = value;
        model.running--;
        next_turn();
    }
    while (model.on && a->state != RUNS)
        pthread_cond_wait(&a->turn, &model.lock);
    pthread_mutex_unlock(&model.lock);
}

static void model_touch(const void *line)
{
    ask(WANTS, line, NULL, 0);
}

static void model_await(const atomic_uint *word, unsigned value)
{
    ask(WAITS, word, word, value);
}

static void model_begin(size_t threads)
{
    for (size_t i = 0; i < LINES; i++)
        model.lines[i].line = model.lines[i].free = 0;
    for (size_t i = 0; i < threads; i++) {
        model.actor[i] = (struct actor){.state = RUNS};
        pthread_cond_init(&model.actor[i].turn, NULL);
    }
    model.actors = model.running = threads;
    model.known = self = 1;
    model.on = 1;
}

/* Ends the model: from here on the machine schedules the threads. */
static void model_end(void)
{
    pthread_mutex_lock(&model.lock);
    model.on = 0;
    for (size_t i = 0; i < model.actors; i++)
        pthread_cond_broadcast(&model.actor[i].turn);
    pthread_mutex_unlock(&model.lock);
}

static void count(void *ctx, size_t begin, size_t end, size_t worker)
{
    (void)worker;
    for (size_t i = begin; i < end; i++)
        ((unsigned char *)ctx)[i]++;
}

/* Returns the units of time of the last of some loops over `each` indices a thread, by a tree of
 * this arity; 0 if a loop did not run every index once. */
static uint64_t steps(size_t threads, size_t each, size_t arity)
{
    unsigned char runs[8 * MOST] = {0};
    uint64_t before = 0;
    model_begin(threads);
    struct pool *p = pool_new(threads);
    p->arity = arity;
    for (size_t i = 0; i < LOOPS; i++) {
        before = model.actor[0].clock;
        pool_run(p, threads * each, 1, count, runs);
    }
    uint64_t took = model.actor[0].clock - before;
    model_end();
    pool_free(p);
    for (size_t i = 0; i < threads * each; i++)
        took = runs[i] == LOOPS ? took : 0;
    return took;
}

int main(void)
{
    static const size_t each[] = {1, 8};
    for (size_t i = 0; i < 2; i++) {
        uint64_t last = 0, grows = 0;
        int good = 1;
        for (size_t threads = 2; threads <= MOST; threads *= 2) {
            uint64_t now = steps(threads, each[i], ARITY);
            printf("# %3zu threads, %zu indices each: %llu steps\n", threads, each[i],
                   (unsigned long long)now);
            good &= now > 0;
            if (threads > 16)
                grows = now > last && now - last > grows ? now - last : grows;
            last = now;
        }
        ok(good, "%zu indices a thread: each is run once", each[i]);
        ok(grows <= 16, "twice the threads, beyond 16: at most %llu steps more",
           (unsigned long long)grows);
    }
    uint64_t tree = steps(MOST, 1, ARITY), flat = steps(MOST, 1, MOST);
    ok(flat > MOST && 2 * tree < flat, "%d threads that all report to one: %llu steps, not %llu",
       MOST, (unsigned long long)flat, (unsigned long long)tree);
    return tap_done();
}
