/* test-watchdog.cu - tests that a device that stops answering ends the process (watchdog.h), on a
 * real or the emulated device. The kernel that does not end runs in a separate process. */
#include "kernels/cuda/device/watchdog.h"

#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kernels/cuda/cuda.h"
#include "kernels/cuda/device/runtime.h"
#include "tests/tap.h"

enum { WRONG = 99 };

/* ---- counting ---- */

static void test_seconds(void)
{
    static const char *const bad[] = {"", "x", "-1", "+1", " 1", "1 ", "1.5", "10s", "1000000001",
                                      "99999999999999999999999"};
    int refused = 1;
    for (const char *text : bad)
        refused &= watchdog_seconds(text) == -1;
    ok(refused, "an invalid number of seconds is refused");
    ok(watchdog_seconds(NULL) == WATCHDOG_SECONDS && watchdog_seconds("0") == 0 &&
           watchdog_seconds("7") == 7 && watchdog_seconds("1000000000") == WATCHDOG_SECONDS_MOST,
       "seconds are read");
}

/* Returns the second at which a wait of `most` seconds exceeds its limit; 0: never. */
static int lost_at(struct watchdog *w, int most)
{
    for (int i = 1; i <= most; i++)
        if (watchdog_look(w))
            return i;
    return 0;
}

static void test_patience(void)
{
    struct watchdog *w = watchdog_new(5);
    int good = 1;
    ok(!lost_at(w, 100), "nothing is waited for: nothing is too long");
    for (int i = 0; i < 100; i++) {
        good &= watchdog_wait(w, "read") == NULL && !watchdog_look(w);
        good &= !strcmp(watchdog_wait(w, NULL), "read");
    }
    ok(good && !watchdog_look(w), "many waits are not one long wait");
    watchdog_wait(w, "read");
    ok(lost_at(w, 100) == 6 && watchdog_look(w) == 6,
       "5 whole seconds are too long, and it stays so");
    watchdog_wait(w, NULL);
    watchdog_free(w);
}

static void test_longest(void)
{
    struct watchdog *w = watchdog_new(5);
    watchdog_wait(w, "read");
    ok(!lost_at(w, 4), "a wait of 3 seconds, at least");
    watchdog_wait(w, NULL);
    watchdog_wait(w, "read");
    ok(lost_at(w, 100) == 31, "the limit is then 30 seconds");
    watchdog_wait(w, NULL);
    watchdog_free(w);
}

static void test_nested(void)
{
    struct watchdog *w = watchdog_new(5);
    watchdog_wait(w, "run");
    int early = lost_at(w, 4);
    const char *outer = watchdog_wait(w, "write");
    early |= lost_at(w, 4);
    watchdog_wait(w, outer);
    ok(!early && !strcmp(outer, "run") && lost_at(w, 100) == 31, "waits nest");
    watchdog_free(w);
    ok(!watchdog_new(0) && !watchdog_wait(NULL, "read"), "0 seconds: no watchdog");
    watchdog_start(NULL);
    watchdog_free(NULL);
}

/* ---- a device that does not answer ---- */

/* A kernel of one thread that ends when *stop is set; *stop is never set. */
static __global__ void go_on(const int *stop)
{
    let_next_start();
    wait_for_inputs();
    while (!*(const volatile int *)stop) {
    }
}

struct state {
    struct backend b;
    int *stop;
};

static void step(void *ctx)
{
    struct state *s = (struct state *)ctx;
    launch(&s->b, go_on, dim3(1), dim3(1), 0, (const int *)s->stop);
}

static void by_read(struct state *s)
{
    int value;
    cuda_read(&s->b, &value, s->stop, sizeof value);
}

static void by_event_wait(struct state *s)
{
    cuda_event_wait(&s->b, cuda_event_record(&s->b));
}

static void by_close(struct state *s)
{
    cuda_close(&s->b);
}

/* Starts the endless kernel and waits by await(). Returns 69 if there is no device. */
static int hang(void (*await)(struct state *s))
{
    struct state s = {};
    s.b.pool = pool_new(1);
    if (crossover_cuda_open(&s.b, -1, NULL))
        return EXIT_NO_DEVICE;
    s.stop = (int *)cuda_alloc(&s.b, sizeof *s.stop, MEMORY_ACTIVATIONS);
    if (s.stop)
        cuda_run(&s.b, "key", 3, step, &s);
    await(&s);
    return WRONG;
}

static void test_hang(const char *what, void (*await)(struct state *s))
{
    char text[1024];
    int ends[2], status = 0;
    size_t got = 0;
    fflush(stdout);
    if (pipe(ends))
        exit(WRONG);
    pid_t child = fork();
    if (!child) {
        dup2(ends[1], 2);
        alarm(100); /* in case the watchdog fails */
        _exit(hang(await));
    }
    close(ends[1]);
    for (ssize_t r; (r = read(ends[0], text + got, sizeof text - 1 - got)) > 0;)
        got += (size_t)r;
    text[got] = 0;
    close(ends[0]);
    waitpid(child, &status, 0);
    if (WIFEXITED(status) && WEXITSTATUS(status) == EXIT_NO_DEVICE) {
        skip("no device");
        return;
    }
    const char *end = strchr(text, '\n');
    if (!ok(WIFEXITED(status) && WEXITSTATUS(status) == EXIT_INTERNAL && strstr(text, what) &&
                strstr(text, "has not answered for ") && end && !end[1],
            "a kernel that does not end: 70 and a line, \"%s\"", what))
        printf("# status %x: %s\n", (unsigned)status, text);
}

int main(void)
{
    test_seconds();
    test_patience();
    test_longest();
    test_nested();
    setenv("CROSSOVER_WATCHDOG_S", "2", 1); /* a first launch may take a second */
    test_hang("read: ", by_read);
    test_hang("event: ", by_event_wait);
    test_hang("close: ", by_close);
    return tap_done();
}
