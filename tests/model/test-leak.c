/* test-leak.c - runs many generations in a row. Each takes as many blocks of the back end as the
 * one before and returns all of them, and the memory of the process does not grow. GENERATIONS in
 * the environment sets the number of each kind (200, or a tenth of it on the slow emulated device);
 * make leak sets 10000. */
#include <malloc.h>
#include <unistd.h>

#include "lib/latent/think.h"
#include "tests/model/decoded.h"

static long generations(const struct backend *b)
{
    enum { SLOWER = 10, LEAST = 20 };
    const char *said = getenv("GENERATIONS");
    long n = (said ? strtol(said, NULL, 10) : 200) / (b->name[0] ? SLOWER : 1);
    return n < LEAST ? LEAST : n;
}

/* The bytes that the program holds from its allocator. */
static size_t in_use(void)
{
    struct mallinfo2 m = mallinfo2();
    return m.uordblks + m.hblkhd;
}

static void generate(const struct decoder *d, const struct network *n, const struct settings *s,
                     uint64_t seed)
{
    struct generation out[2] = {0};
    struct batch_trace trace = {0};
    const struct decode_env env = {.seed = seed};
    d->run(n, s, &env, prompts, 2, out, &trace);
    generation_free(&out[0]);
    generation_free(&out[1]);
}

/* Runs many generations. Returns the bytes that the first generation left allocated: a device keeps
 * the workspace of its library. Recorded passes are on the heap of the program, one for each form
 * of a pass. Some forms are rare, so the heap after the second half of the generations is compared
 * with the heap after the first half. */
static size_t many(const struct decoder *d, const struct network *n, const char *options)
{
    enum { WARM = 10, RECORDS = 16 << 10 };
    struct memory *m = &n->backend->memory;
    const struct settings s = decoded_point(d, options);
    const int is_device = *n->backend->name != 0;
    size_t before = m->requested, own = 0, held = 0, blocks = 0, odd = 0, left = 0;
    const long all = generations(n->backend);
    for (long i = 0; i < all; i++) {
        memory_reset_peak(m);
        generate(d, n, &s, (uint64_t)i);
        if (i == 0 && is_device)
            own = m->requested - before;
        left += m->requested != before + own;
        if (i == WARM)
            blocks = m->calls;
        if (i == all / 2)
            held = in_use();
        odd += i > WARM && m->calls != blocks;
    }
    size_t now = in_use();
    const char *device = n->backend->ops->name;
    ok(!left && !odd && blocks > 0, "%s: each takes %zu blocks and gives them back (%s)", options,
       blocks, device);
    ok(now <= held + (is_device ? RECORDS : 4096), "%s: %zu bytes held, then %zu (%s)", options,
       held, now, device);
    return own;
}

static void with(const char *device, const char *shape, const struct decoder *d,
                 const char *const *options)
{
    struct decoded m;
    size_t own = 0;
    decoded_open(&m, shape, device, NULL);
    for (; *options; options++)
        own += many(d, &m.n, *options);
    network_free(&m.n);
    checkpoint_close(&m.c);
    const struct memory *left = &m.b->memory;
    ok(left->requested == own && (*m.b->name || (!left->allocated && !left->reserved)),
       "%s: with the weights all is given back", shape);
    backend_close(m.b);
}

/* Returns 1 if the emulated device is there (make test builds it if there is a C++ compiler).
 * "cuda" then opens the emulated device. */
static int emulated(void)
{
    const char *folder = getenv("TESTBIN");
    char *path = mem_format("%s/libcrossover-cuda.so", folder ? folder : "build/tests");
    int there = !access(path, R_OK);
    if (there)
        setenv("CROSSOVER_CUDA", path, 1);
    free(path);
    return there;
}

int main(void)
{
    static const char *const canvases[] = {
        "gen_length=8 block_length=4 steps=2 batch=2",
        "gen_length=8 block_length=4 steps=4 cache=dual batch=2",
        "gen_length=8 block_length=4 unmask=wino cache=features temperature=1 batch=2", NULL};
    static const char *const texts[] = {"max_new=4 contract=fixed batch=2",
                                        "max_new=4 contract=fixed lookup=2 cache=off batch=2",
                                        "max_new=4 contract=fixed admit=continuous batch=1", NULL};
    static const char *const thoughts[] = {
        "max_new=4 contract=fixed vi_steps=2 batch=2",
        "max_new=6 contract=fixed vi_steps=1 refit=3 z_draw=sample temperature=1 batch=2",
        "max_new=4 contract=fixed z=prior cache=off batch=1", NULL};
    with("cpu", "synth:tiny-llada", &decoder_diffuse, canvases);
    with("cpu", "synth:tiny-llama", &decoder_autoregress, texts);
    with("cpu", "synth:tiny-ltm", &decoder_think, thoughts);
    with("cpu", "synth:tiny-ltm-rwkv7", &decoder_think, (const char *const[]){thoughts[0], NULL});
    if (!emulated()) {
        skip("no emulated device here");
        return tap_done();
    }
    with("cuda", "synth:tiny-llada", &decoder_diffuse, (const char *const[]){canvases[1], NULL});
    with("cuda", "synth:tiny-llama", &decoder_autoregress, (const char *const[]){texts[0], NULL});
    return tap_done();
}
