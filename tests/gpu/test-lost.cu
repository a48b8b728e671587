/* test-lost.cu - tests on a real device that failing kernels end the process with 70 and one line,
 * which says where the error was noticed and that the device is lost to the process. The next
 * process can use the device again. Each try is a separate process, forked before the driver is
 * used. */
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kernels/cuda/cuda.h"
#include "kernels/cuda/device/runtime.h"
#include "lib/base/mem.h"
#include "tests/tap.h"

enum { WRONG = 99, ONE_MIB = 1 << 20 };

/* Thread 0 writes to an unmapped address, or to one that is no multiple of 4. */
static __global__ void write_at(uintptr_t address)
{
    wait_for_inputs();
    if (threadIdx.x == 0)
        *(volatile int *)address = 1;
}

/* Every thread ends the grid. */
static __global__ void trap(void)
{
    wait_for_inputs();
    asm volatile("trap;");
}

/* Thread 0 writes beyond the shared memory that the launch asked for. */
static __global__ void write_shared(uint32_t beyond)
{
    SHARED(int, room);
    wait_for_inputs();
    if (threadIdx.x == 0)
        ((volatile int *)room)[beyond] = 1;
}

static void nothing(struct backend *b)
{
    void *p = cuda_alloc(b, ONE_MIB, MEMORY_ACTIVATIONS);
    cuda_write(b, p, "text", 4);
    cuda_free(b, p);
}

static void bad_address(struct backend *b)
{
    launch(b, write_at, dim3(1), dim3(32), 0, (uintptr_t)16);
}

static void off_boundary(struct backend *b)
{
    launch(b, write_at, dim3(1), dim3(32), 0,
           (uintptr_t)cuda_alloc(b, 64, MEMORY_ACTIVATIONS) + 1);
}

static void trapped(struct backend *b)
{
    launch(b, trap, dim3(4), dim3(64), 0);
}

static void beyond_shared(struct backend *b)
{
    launch(b, write_shared, dim3(1), dim3(32), 64, (uint32_t)(ONE_MIB * 64));
}

static void too_many_threads(struct backend *b)
{
    launch(b, trap, dim3(1), dim3(2048), 0);
}

static void record_bad_address(void *b)
{
    bad_address((struct backend *)b);
}

/* Runs the fault in a record of operations, when the record is replayed. */
static void recorded(struct backend *b)
{
    for (int i = 0; i < 3; i++)
        cuda_run(b, "key", 3, record_bad_address, b);
}

static int use(void (*work)(struct backend *b))
{
    struct backend b = {};
    struct err e = {};
    b.pool = pool_new(1);
    if (crossover_cuda_open(&b, -1, &e)) {
        fprintf(stderr, "%s\n", e.text);
        return e.code;
    }
    work(&b);
    cuda_event_wait(&b, cuda_event_record(&b));
    cuda_close(&b);
    return 0;
}

/* Returns the exit status of a process that does the work; text gets its message. */
static int try_work(void (*work)(struct backend *b), char *text, size_t room)
{
    int ends[2], status;
    size_t got = 0;
    fflush(stdout);
    if (pipe(ends))
        exit(WRONG);
    pid_t child = fork();
    if (!child) {
        dup2(ends[1], 2);
        _exit(use(work));
    }
    close(ends[1]);
    for (ssize_t r; (r = read(ends[0], text + got, room - 1 - got)) > 0;)
        got += (size_t)r;
    text[got] = 0;
    close(ends[0]);
    if (waitpid(child, &status, 0) != child || !WIFEXITED(status))
        return WRONG;
    return WEXITSTATUS(status);
}

/* Returns 1 if the text is one line with every word of the list. */
static int says(const char *text, const char *const *words)
{
    const char *end = strchr(text, '\n');
    int good = end && !end[1];
    for (; *words; words++)
        good &= strstr(text, *words) != NULL;
    return good;
}

int main(void)
{
    static const struct {
        const char *what;
        void (*work)(struct backend *b);
        const char *words[4];
    } tries[] = {
        {"a bad address", bad_address, {"kernels/cuda/", "(700)", "a restart may help"}},
        {"an address off its boundary", off_boundary, {"kernels/cuda/", "(716)", "a restart"}},
        {"a trap", trapped, {"kernels/cuda/", "a restart may help"}},
        {"shared memory that was not asked for", beyond_shared, {"kernels/cuda/", "a restart"}},
        {"a block that no device has room for", too_many_threads, {"kernels/cuda/", "invalid"}},
        {"a bad address in a record", recorded, {"kernels/cuda/", "(700)", "a restart may help"}},
    };
    char text[4096];
    int code = try_work(nothing, text, sizeof text);
    if (code) {
        fprintf(stderr, "test-lost: %s", text);
        return code;
    }
    for (size_t i = 0; i < sizeof tries / sizeof *tries; i++) {
        code = try_work(tries[i].work, text, sizeof text);
        if (!ok(code == 70 && says(text, tries[i].words), "%s: 70 and one line", tries[i].what))
            printf("# %d: %s\n", code, text);
        ok(!try_work(nothing, text, sizeof text), "the next process has the device again");
    }
    return tap_done();
}
