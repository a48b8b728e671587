/* test-slices.c - tests kernels/cuda/product/slices.h over thousands of shapes: slices and runs own
 * every row once, fit in the memory that is set aside for them, and are as few as possible. Also
 * tests where the values of NF4 lie, and how many multiprocessors the products of 8B models use. */
#include "kernels/cuda/product/slices.h"
#include "kernels/cuda/product/wide_plan.h"

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

/* Checks one slice of the job: its runs, and the room for both. */
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
    if (slice_whole(j)) {
        see_slice(f, j, j);
        return;
    }
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

/* Checks the number of slices of an 8B model's products, and that no slice is small. */
static void test_counts(void)
{
    static const struct {
        enum job_kind kind;
        uint32_t T, K, rows, slices;
    } some[] = {{JOB_GATED, 1024, 4096, 12288, 3}, {JOB_GATED, 8192, 4096, 14336, 28},
                {JOB_ROWS, 1024, 16384, 9000, 3},  {JOB_ROWS, 8192, 4096, 4096, 4},
                {JOB_ROWS, 130, 64, 4096, 1},      {JOB_ROWS, 200, 4096, 17000, 2}};
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

/* Every value of some rows, found by place and code, must be the value of quant.c. */
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

/* ---- the products of 8B models on an H100 ---- */

/* OWN_LEAST: our kernels give all parts of K equally many blocks, so some multiprocessors stay
 * without work (test-plan.c). */
enum { SMS = 132, OWN_LEAST = 120 };
static const size_t shared_most = 227 << 10;

struct shape {
    const char *name;
    enum job_kind kind;
    uint32_t K, rows[3];
};
static const struct shape shapes[] = {
    {"LLaDA q, k, v", JOB_QKV, 4096, {4096, 4096, 4096}},
    {"LLaDA o", JOB_ROWS, 4096, {4096}},
    {"LLaDA gate, up", JOB_GATED, 4096, {12288, 12288}},
    {"LLaDA down", JOB_ROWS, 12288, {4096}},
    {"LLaMA q, k, v", JOB_QKV, 4096, {4096, 1024, 1024}},
    {"LLaMA o", JOB_ROWS, 4096, {4096}},
    {"LLaMA gate, up", JOB_GATED, 4096, {14336, 14336}},
    {"LLaMA down", JOB_ROWS, 14336, {4096}},
    {"LLaDA head", JOB_FLOATS, 4096, {126464}},
    {"LLaMA head", JOB_FLOATS, 4096, {128256}}};

/* Products that have too few tiles even if K is split. dtype DTYPES: for bf16 and int8. */
static const struct {
    const char *name;
    enum dtype dtype;
    uint32_t rows;
    const char *why;
} narrow[] = {
    {"LLaMA q, k, v", DTYPES, 256, "k and v are 1,024 columns and lie apart from q"},
    {"LLaMA q, k, v", DTYPE_F32, 256, "k and v are 1,024 columns and lie apart from q"},
    {"LLaMA q, k, v", DTYPE_F32, 32, "32 rows go to the library, which has no tile of 32 here"},
    {"LLaDA q, k, v", DTYPE_F32, 32, "32 tiles in 4 parts are 128"},
    {"LLaDA o", DTYPE_F32, 32, "32 tiles in 4 parts are 128"},
    {"LLaMA o", DTYPE_F32, 32, "32 tiles in 4 parts are 128"},
    {"LLaDA down", DTYPE_F32, 32, "32 tiles in 4 parts are 128"},
    {"LLaMA down", DTYPE_F32, 32, "32 tiles in 4 parts are 128"},
    {"LLaDA down", DTYPE_BF16_F32, 256, "two slices, because floats are twice as large"},
    {"LLaMA down", DTYPE_BF16_F32, 256, "two slices, because floats are twice as large"}};
enum { NARROW = sizeof narrow / sizeof *narrow };

static struct product_job shape_job(const struct shape *s, enum dtype dtype, uint32_t T)
{
    static const uint8_t weights[1];
    struct product_job j = {.dtype = dtype, .kind = s->kind, .T = T, .K = s->K, .head_dim = 128};
    j.stride = (uint32_t)(layout_stride(dtype, s->K) * layout_value(dtype));
    for (; j.n < 3 && s->rows[j.n]; j.n++) {
        j.w[j.n].code = weights;
        j.w[j.n].begin = j.n * j.n * 16384; /* unequal distances, as after loading */
        j.w[j.n].rows = s->rows[j.n];
    }
    job_settle(&j);
    return j;
}

/* The smallest number of tiles of a library call, with K split if that gives more tiles. */
static uint32_t library_tiles(const struct product_job *j)
{
    uint32_t least = UINT32_MAX;
    int one = widens(j->dtype) ? slice_whole(j) : is_batch(j);
    for (uint32_t i = 0; i < (one ? 1 : j->n); i++) {
        uint32_t columns = one ? j->columns
                           : widens(j->dtype) ? slice_rows(j, i) * slice_matrices(j)
                                              : j->w[i].rows;
        uint32_t tiles = plan_up(j->T, LIBRARY_TILE) * plan_up(columns, LIBRARY_TILE);
        least = plan_least(least, tiles < SMS ? tiles * LIBRARY_PARTS : tiles);
    }
    return least;
}

/* Returns 1 if the product has work for (nearly) all multiprocessors. */
static int fills(const struct product_job *j)
{
    struct gemv_plan few = {0};
    if (wide_takes(j->dtype, j->T, j->K)) { /* an H100 starts clusters of two blocks */
        struct wide_plan wide = wide_plan(j, SMS, 2);
        return wide.clusters * wide.cluster >= SMS;
    }
    if (j->T > library_above(j->dtype))
        return library_tiles(j) >= SMS;
    if (format_row(j->dtype).x_bytes == 4) /* f32_product.cu: a warp has a pair of columns */
        return job_tiles(j) * HALF >= SMS;
    if (j->T <= GEMV_ROWS && (few = gemv_plan(j, SMS, shared_most)).fits)
        return few.blocks >= SMS;
    struct skinny_plan some = skinny_plan(j, SMS, shared_most);
    return some.crews * some.splits >= OWN_LEAST;
}

/* The row of narrow[] for a product; NARROW if there is none. */
static int narrow_row(const char *name, enum dtype dtype, uint32_t rows)
{
    int twin = dtype == DTYPE_BF16 || x_coded(dtype), i = 0;
    for (; i < NARROW; i++)
        if (!strcmp(narrow[i].name, name) && narrow[i].rows == rows &&
            (narrow[i].dtype == dtype || (narrow[i].dtype == DTYPES && twin)))
            break;
    return i;
}

static void test_tiles(void)
{
    static const uint32_t rows[] = {1, 8, 32, 256, 2048};
    int seen[NARROW + 1] = {0};
    for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++) {
        int wrong = 0;
        for (int i = 0; i < DTYPES * 5; i++) {
            enum dtype dtype = (enum dtype)(i / 5);
            if (!format_row(dtype).x_bytes) /* a GPU has no such format */
                continue;
            struct product_job j = shape_job(&shapes[s], dtype, rows[i % 5]);
            int row = narrow_row(shapes[s].name, dtype, j.T);
            seen[row] = 1;
            if (fills(&j) == (row == NARROW))
                continue;
            wrong++;
            printf("# %s, %u rows: %s\n", dtype_info[dtype].name, j.T,
                   row == NARROW ? "multiprocessors stay idle" : "has become wide enough");
        }
        ok(wrong == 0, "%s: each format and number of rows keeps an H100 at work",
           shapes[s].name);
    }
    for (int i = 0; i < NARROW; i++)
        ok(seen[i],
           "%s, %u rows, is a known exception: %s", narrow[i].name, narrow[i].rows,
           narrow[i].why);
}

int main(void)
{
    test_shapes();
    test_counts();
    test_tiles();
    test_nf4();
    return tap_done();
}
