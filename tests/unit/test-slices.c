/* test-slices.c - kernels/cuda/product/slices.h over thousands of shapes: slices and runs own every
 * row once, fit in what is set aside for them, and are as few as they may be; and where the values
 * of NF4 lie. */
#include "kernels/cuda/product/slices.h"

#include "lib/base/pool.h"
#include "tests/tap.h"

static uint64_t state = 1;

static uint32_t draw(uint32_t below)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(state >> 33) % below;
}

static const enum dtype dtypes[] = {DTYPE_FP8, DTYPE_NF4, DTYPE_BF16_F32};

static struct product_job any_job(void)
{
    struct product_job j = {.dtype = dtypes[draw(3)], .kind = (enum job_kind)draw(4)};
    j.T = 1 + draw(1u << (7 + draw(10)));
    j.K = 64 * (1 + draw(1u << draw(10)));
    j.head_dim = 2 * (1 + draw(128));
    j.n = j.kind == JOB_GATED ? 2 : j.kind == JOB_FLOATS ? 1 : 3;
    for (uint32_t i = 0; i < j.n; i++)
        j.w[i].rows = j.kind == JOB_GATED && i ? j.w[0].rows
                      : j.kind == JOB_QKV      ? j.head_dim * (1 + draw(64))
                                               : 1 + draw(40000);
    job_settle(&j);
    return j;
}

/* Numbers of shapes that failed each check. */
struct seen {
    int slices, fits, runs, whole, once;
};

/* One slice of the job: its runs, and the room for both. */
static void see_slice(struct seen *f, const struct product_job *j, const struct product_job *s)
{
    size_t copies = layout_up((size_t)s->columns * s->K * widened_value(s->dtype), 256);
    uint32_t most = run_rows(s), owned = 0;
    f->fits += copies > layout_up(SLICE_BYTES, 256) || (size_t)most * s->columns * 4 > SUMS_MOST ||
               copies + (size_t)most * s->columns * 4 >
                   slice_work(j->dtype, j->T, j->K, j->columns);
    for (uint32_t t = 0; t < s->T; t += most)
        owned += plan_least(most, s->T - t);
    f->runs += owned != s->T || most > RUN_LIMIT || (most < s->T && most % PIECE_GRAIN);
    f->once += j->T <= RUN_ROWS && most < j->T;
}

static void see(struct seen *f, const struct product_job *j)
{
    for (uint32_t i = 0; i < (j->kind == JOB_GATED ? 1 : j->n); i++) {
        uint32_t most = slice_rows(j, i), rows = j->w[i].rows, owned = 0;
        f->whole += most < rows && most % slice_unit(j) != 0;
        for (uint32_t first = 0; first < rows; first += most) {
            struct product_job s = job_slice(j, i, first, plan_least(most, rows - first));
            owned += s.columns / slice_matrices(j);
            see_slice(f, j, &s);
        }
        f->slices += owned != rows;
    }
}

static void test_shapes(void)
{
    struct seen f = {0};
    int fit = 0;
    for (int i = 0; i < 4000; i++) {
        struct product_job j = any_job();
        if (!slices_fit(&j))
            continue;
        fit++;
        see(&f, &j);
    }
    ok(fit > 3000 && f.slices == 0, "every row of W is in one slice");
    ok(f.whole == 0, "a head is in one slice");
    ok(f.fits == 0, "copies and sums have room");
    ok(f.runs == 0, "every row of x is in one run, and a run is what a grid counts");
    ok(f.once == 0, "up to %d rows are one run", RUN_ROWS);
}

/* An 8B model's products: the number of slices, and none of them is small. */
static void test_counts(void)
{
    static const struct {
        enum job_kind kind;
        uint32_t T, K, rows, slices;
    } some[] = {{JOB_GATED, 1024, 4096, 12288, 5}, {JOB_GATED, 8192, 4096, 14336, 28},
                {JOB_ROWS, 1024, 12288, 4096, 3},  {JOB_ROWS, 8192, 4096, 4096, 4},
                {JOB_ROWS, 130, 64, 4096, 1},      {JOB_ROWS, 200, 4096, 5248, 2}};
    for (size_t i = 0; i < sizeof some / sizeof *some; i++) {
        struct product_job j = {.dtype = DTYPE_NF4, .kind = some[i].kind, .T = some[i].T,
                                .K = some[i].K};
        j.n = j.kind == JOB_GATED ? 2 : 1;
        j.w[0].rows = j.w[1].rows = some[i].rows;
        job_settle(&j);
        uint32_t most = slice_rows(&j, 0), slices = plan_up(some[i].rows, most);
        uint32_t last = some[i].rows - (slices - 1) * most;
        ok(slices == some[i].slices && 2 * last > most, "%u x %u, %u rows: %u slices of %u", j.K,
           some[i].rows, j.T, slices, most);
    }
}

/* Every value of some rows, by place and code, is that of quant.c. */
static void test_nf4(void)
{
    enum { ROWS = 300, COLS = 128, FROM = 37 };
    static float w[ROWS * COLS], want[ROWS * COLS];
    for (size_t i = 0; i < ROWS * COLS; i++)
        w[i] = (float)draw(20001) - 10000;
    struct mat_source s = mat_floats(w, ROWS, COLS);
    struct codes q;
    struct pool *pool = pool_new(1);
    void *block = quant_make(&q, &s, DTYPE_NF4, pool);
    quant_floats(&q, COLS, 0, ROWS, want);
    size_t wrong = 0, first = FROM * COLS;
    for (size_t u = 0; u < (ROWS - FROM) * COLS / BLOCKS_UNIT; u++) {
        struct blocks_place at = blocks_place(first, u);
        uint32_t word;
        memcpy(&word, (const uint8_t *)q.code + at.code, sizeof word);
        float a = quant_absmax_unfold(q.absmax[at.block], q.scale[at.super], q.offset);
        for (uint32_t k = 0; k < BLOCKS_UNIT; k++)
            wrong += quant_levels(DTYPE_NF4)[blocks_code(word, k)] * a !=
                     want[first + u * BLOCKS_UNIT + k];
    }
    ok(wrong == 0, "nf4: every value is found");
    free(block);
    pool_free(pool);
}

int main(void)
{
    test_shapes();
    test_counts();
    test_nf4();
    return tap_done();
}
