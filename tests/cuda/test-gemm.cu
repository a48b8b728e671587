/* test-gemm.cu - tests kernels/cuda/product/gemm.cu on the emulated library: which algorithm makes
 * a product, when algorithms are timed, and what is stored. The algorithms differ in time and in
 * requirements (tests/emulate/library.cu). The number of runs of each algorithm shows what gemm.cu
 * did. */
#include "kernels/cuda/product/gemm.h"

#include <cublasLt.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "kernels/cuda/cuda.h"
#include "kernels/cuda/product/choices.h"
#include "kernels/cuda/product/pick.h"
#include "lib/base/mem.h"
#include "tests/tap.h"

extern "C" {
#include "lib/base/pool.h"
}

using namespace emulate;

enum { N = 48, K = 64, ROWS = 80, TRIES = 2 + PICK_ROUNDS }; /* TRIES: runs of a timed algorithm */

static char folder[] = "/tmp/gemm-XXXXXX";

struct world {
    struct backend b;
    struct gemm_job job; /* bf16, 65 rows */
};

static void world_open(struct world *w)
{
    struct err e = {};
    memset(w, 0, sizeof *w);
    w->b.pool = pool_new(1);
    if (crossover_cuda_open(&w->b, 0, &e)) {
        fprintf(stderr, "%s\n", e.text);
        exit(1);
    }
    uint8_t *at = (uint8_t *)cuda_alloc(&w->b, 1 << 20, MEMORY_ACTIVATIONS);
    w->job = {at, at + (1 << 18), at + (1 << 19), gemm_job::GEMM_BF16, 65, N, K, N, K, K, 0, 0,
              0};
    memset(algorithm_runs, 0, sizeof algorithm_runs);
}

static void world_close(struct world *w)
{
    struct pool *pool = w->b.pool;
    cuda_free(&w->b, w->job.y);
    w->b.ops->close(&w->b);
    pool_free(pool);
}

static void multiply(struct world *w)
{
    if (gemm_takes(&w->b, &w->job))
        gemm(&w->b, &w->job);
    runtime_wait(&w->b, "test");
}

/* Returns 1 if the algorithms ran this often since the last call. */
static int ran(unsigned guess, unsigned fastest, unsigned any)
{
    int good = algorithm_runs[FIRST_GUESS] == guess && algorithm_runs[FASTEST] == fastest &&
               algorithm_runs[ANY_ADDRESS] == any && algorithm_runs[UNSTEADY] == 0;
    if (!good)
        printf("# ran: guess %u, fastest %u, any address %u, unsteady %u\n",
               algorithm_runs[FIRST_GUESS], algorithm_runs[FASTEST], algorithm_runs[ANY_ADDRESS],
               algorithm_runs[UNSTEADY]);
    memset(algorithm_runs, 0, sizeof algorithm_runs);
    return good;
}

static void test_timing(void)
{
    struct world w;
    world_open(&w);
    ok(!strcmp(w.b.library, "cuBLASLt 1"), "the back end names its library");
    ok(gemm_takes(&w.b, &w.job) && ran(TRIES, TRIES, TRIES), "a new shape: what repeats is timed");
    multiply(&w);
    ok(ran(0, 1, 0), "a new shape: the fastest is used");
    multiply(&w);
    w.job.T = ROWS;
    multiply(&w);
    ok(ran(0, 2, 0), "later, and with nearby rows, only the fastest runs");
    w.job.T = ROWS + 1;
    multiply(&w);
    ok(ran(TRIES, TRIES + 1, TRIES), "more rows: timed again");
    w.job.add = 1;
    w.job.T = 65;
    multiply(&w);
    ok(ran(TRIES, TRIES + 1, TRIES), "added to y: another shape");
    world_close(&w);

    world_open(&w);
    w.job.T = ROWS;
    multiply(&w);
    ok(ran(0, 1, 0), "the next process remembers");
    w.job.type = gemm_job::GEMM_BF16_F32;
    multiply(&w);
    ok(ran(TRIES, TRIES + 1, TRIES), "the next process times new shapes");
    w.job.batch = 2, w.job.step = N * K, w.job.ldy = 2 * N;
    multiply(&w);
    ok(ran(TRIES, TRIES + 1, TRIES), "the next process times two products at a time");
    w.job.batch = 0, w.job.ldy = N;
    for (int rounded = 0; rounded < 2; rounded++) {
        w.job.type = rounded ? gemm_job::GEMM_TF32 : gemm_job::GEMM_F32;
        multiply(&w);
        ok(ran(TRIES, TRIES + 1, TRIES), "the next process times %s", rounded ? "tf32" : "fp32");
    }
    char *path = choices_path(w.b.name, 1);
    ok(!strncmp(path, folder, strlen(folder)) && !access(path, R_OK), "the file is in the folder");
    free(path);
    world_close(&w);
}

/* Another version of the library may have left a file with the same name. */
static void test_foreign_file(void)
{
    struct world w;
    char *path = choices_path("emulated device (host)", 1);
    FILE *f = fopen(path, "w");
    uint64_t align = (uint64_t)256 << 32 | 256 << 16 | 256;
    fprintf(f, "cuBLASLt 1\n1\t0\t%llu\t80\t%d\t%d\t%d\t%d\t%d\t1\t2\t3\t4\t5\t6\t7\t8\n",
            (unsigned long long)align, N, K, N, K, K);
    fclose(f);
    world_open(&w);
    multiply(&w);
    ok(ran(TRIES, TRIES + 1, TRIES), "an algorithm that the library refuses: timed again");
    world_close(&w);
    world_open(&w);
    multiply(&w);
    ok(ran(0, 1, 0), "the refused algorithm is replaced in the file");
    world_close(&w);
    free(path);
}

/* The first guess is the fastest only while its weights are in the L2 cache. */
static void test_cold(void)
{
    struct world w;
    world_open(&w);
    size_t before = w.b.memory.allocated_peak;
    algorithm_ns[FIRST_GUESS] = 0, algorithm_ns[FASTEST] = 5000000;
    algorithm_cold_ns[FIRST_GUESS] = 20000000;
    w.job.K = 40;
    multiply(&w);
    ok(ran(TRIES, TRIES + 1, TRIES), "weights are timed as a pass finds them: not in the cache");
    ok(w.b.memory.allocated_peak >= before + pick_bytes(&w.b), "memory for timing is counted");
    algorithm_ns[FIRST_GUESS] = 20000000, algorithm_ns[FASTEST] = 0;
    algorithm_cold_ns[FIRST_GUESS] = 0;
    world_close(&w);
}

/* With few rows and few columns, splitting K gives work to more multiprocessors. */
static void test_parts(void)
{
    struct world w;
    world_open(&w);
    algorithm_parts = true;
    algorithm_ns[FASTEST] = 20000000;
    w.job.K = 56;
    multiply(&w);
    ok(algorithm_parts_runs == 3 * TRIES + 1, "K in 2, 3 and 4 parts is tried, and used: %u runs",
       algorithm_parts_runs);
    algorithm_parts_runs = 0;
    w.job.T = 2048, w.job.N = 256; /* 32 tiles, two for each of 16 multiprocessors */
    w.job.ldy = w.job.N;
    multiply(&w);
    ok(algorithm_parts_runs == 0, "with enough tiles K stays whole");
    algorithm_parts = false;
    algorithm_ns[FASTEST] = 0;
    world_close(&w);
}

static uint64_t digest_of(size_t first, size_t second)
{
    struct world w;
    world_open(&w);
    for (size_t K_now : {first, second, first}) {
        w.job.K = K_now;
        multiply(&w);
    }
    uint64_t digest = w.b.library_choices;
    world_close(&w);
    return digest;
}

/* Two machines with one file choose the same algorithms, and their records say so. */
static void test_named_file(void)
{
    char *path = mem_format("%s/shared.tsv", folder);
    setenv("CROSSOVER_GEMM_CHOICES", path, 1);
    uint64_t digest = digest_of(K, 32);
    ok(digest && digest == digest_of(32, K), "a process with the same choices has their digest");
    ok(digest != digest_of(K, 16), "other choices, another digest");
    memset(algorithm_runs, 0, sizeof algorithm_runs);
    digest_of(K, 32);
    ok(ran(0, 3, 0), "nothing is timed that the named file has");
    FILE *f = fopen(path, "w");
    fprintf(f, "cuBLASLt 2\n");
    fclose(f);
    struct backend b = {};
    struct err e = {};
    ok(crossover_cuda_open(&b, 0, &e) && e.code == EXIT_BAD_DATA && strstr(e.text, path),
       "a named file of another library is refused: %s", e.text);
    unsetenv("CROSSOVER_GEMM_CHOICES");
    free(path);
}

static void test_addresses(void)
{
    struct world w;
    world_open(&w);
    w.job.y = (uint8_t *)w.job.y + 2;
    multiply(&w);
    w.job.y = (uint8_t *)w.job.y - 2;
    ok(ran(0, 0, TRIES + 1), "y at an odd address: an algorithm that takes any address");
    struct gemm_job j = w.job;
    j.x = (const uint8_t *)j.x + 8;
    ok(!gemm_takes(&w.b, &j), "x off 16 bytes is not taken");
    j = w.job, j.ldx = K + 4;
    ok(!gemm_takes(&w.b, &j), "rows that begin off 16 bytes are not taken");
    j = w.job, j.type = gemm_job::GEMM_S8, j.N = N + 4;
    ok(!gemm_takes(&w.b, &j), "int8 with outputs that are no multiple of 16 is not taken");
    j = w.job, j.type = gemm_job::GEMM_F32, j.x = (const uint8_t *)j.x + 4, j.ldx = K + 1;
    ok(gemm_takes(&w.b, &j), "fp32 is taken at any address");
    world_close(&w);
}

static void run_job(void *world)
{
    struct world *w = (struct world *)world;
    if (gemm_takes(&w->b, &w->job))
        gemm(&w->b, &w->job);
}

static void test_recording(void)
{
    struct world w;
    world_open(&w);
    w.job.N = N / 2;
    cuda_run(&w.b, "pass", 4, run_job, &w);
    runtime_wait(&w.b, "test");
    ok(ran(TRIES, TRIES + 1, TRIES), "the first run of a pass is a direct one, and times");
    w.job.N = N / 4; /* a shape that is first met while recording; no caller does this */
    cuda_run(&w.b, "pass", 4, run_job, &w);
    runtime_wait(&w.b, "test");
    ok(ran(1, 0, 0), "while operations are recorded nothing is timed: the first guess");
    multiply(&w);
    ok(ran(TRIES, TRIES + 1, TRIES), "a direct run times the shape");
    world_close(&w);
}

/* cublasLt.h says of its proposals that it "doesn't fully guarantee algo will run". */
static void test_failing(void)
{
    struct world w;
    world_open(&w);
    w.job.K = 16;
    algorithm_fails[FASTEST] = true;
    multiply(&w);
    unsigned all = algorithm_runs[FIRST_GUESS] + algorithm_runs[ANY_ADDRESS];
    ok(all == 2 * TRIES + 1 && algorithm_runs[FASTEST] == 0, "an algorithm that fails is left out");
    algorithm_fails[FIRST_GUESS] = algorithm_fails[ANY_ADDRESS] = true;
    w.job.K = 8;
    ok(!gemm_takes(&w.b, &w.job), "if all proposals fail, the shape is not taken");
    memset(algorithm_fails, 0, sizeof algorithm_fails);
    ok(!gemm_takes(&w.b, &w.job), "a shape that failed is not tried again");
    world_close(&w);
}

/* The emulated device has no more free memory. */
static void test_no_room(void)
{
    struct world w;
    world_open(&w);
    multiply(&w); /* allocates the work area */
    memset(algorithm_runs, 0, sizeof algorithm_runs);
    w.b.memory.direct = 1; /* blocks come from the device, not from freed blocks */
    w.job.K = 24;
    w.b.memory.cap = w.b.memory.reserved + pick_bytes(&w.b);
    multiply(&w);
    ok(ran(TRIES, TRIES + 1, TRIES), "memory for a temporary y alone: timed without cold weights");
    w.b.memory.cap = 0;
    w.job.K = 32;
    setenv("EMULATE_MEMORY", "1", 1);
    multiply(&w);
    multiply(&w);
    unsetenv("EMULATE_MEMORY");
    ok(ran(2, 0, 0), "no memory for a temporary y: the first guess stays");
    multiply(&w);
    ok(ran(1, 0, 0), "the library is not asked again");
    world_close(&w);
}

static void test_absent(void)
{
    struct world w;
    setenv("EMULATE_LIBRARY", "0", 1);
    world_open(&w);
    ok(!*w.b.library && !gemm_takes(&w.b, &w.job), "without a library nothing is taken");
    world_close(&w);
    unsetenv("EMULATE_LIBRARY");
}

int main(void)
{
    if (!mkdtemp(folder) || setenv("XDG_CACHE_HOME", folder, 1))
        return 1;
    algorithm_ns[FIRST_GUESS] = algorithm_ns[ANY_ADDRESS] = 20000000;
    test_timing();
    test_foreign_file();
    test_cold();
    test_parts();
    test_named_file();
    test_addresses();
    test_recording();
    test_failing();
    test_no_room();
    test_absent();
    char *command = mem_format("rm -rf %s", folder);
    ok(!system(command), "tidy");
    free(command);
    return tap_done();
}
