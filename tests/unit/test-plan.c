/* test-plan.c - tests the plans of kernels/cuda/weights/tiling.h over thousands of shapes: every
 * row of every matrix is in one tile, every group of K is computed once, everything fits, and the
 * work area of matmul is enough. */
#include "kernels/cuda/weights/tiling.h"

#include "tests/tap.h"

static uint64_t state = 1;

static uint32_t draw(uint32_t below)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(state >> 33) % below;
}

static const enum dtype dtypes[] = {DTYPE_BF16, DTYPE_INT8, DTYPE_FP8, DTYPE_NF4, DTYPE_FP4};
static const size_t shared[] = {99 << 10, 163 << 10, 227 << 10};
static const uint32_t sms[] = {46, 108, 128, 132, 148};

static struct product_job any_job(uint32_t most)
{
    struct product_job j = {
        .dtype = dtypes[draw(5)], .kind = (enum job_kind)draw(4), .T = 1 + draw(64)};
    j.K = dtype_info[j.dtype].block ? 64 * (1 + draw(most / 64)) : 1 + draw(most);
    j.head_dim = 2 * (1 + draw(128));
    j.n = j.kind == JOB_GATED ? 2 : j.kind == JOB_FLOATS ? 1 : 3;
    j.stride = (uint32_t)layout_stride(j.dtype, j.K) * (j.dtype == DTYPE_BF16 ? 2 : 1);
    for (uint32_t i = 0; i < j.n; i++)
        j.w[i].rows = j.kind == JOB_GATED && i ? j.w[0].rows
                      : j.kind == JOB_QKV      ? j.head_dim * (1 + draw(8))
                                               : 1 + draw(most);
    job_settle(&j);
    return j;
}

/* Returns 1 if each row of the job is owned once; rows are counted by their column among the
 * sums. */
static int owned_once(const struct product_job *j)
{
    uint8_t *seen = calloc(j->columns, 1);
    int good = 1;
    for (uint32_t i = 0; i < job_tiles(j); i++) {
        struct weight_tile t = tile_at(j, i);
        for (int h = 0; h < 2; h++)
            for (uint32_t r = 0; r < t.count[h]; r++) {
                good &= t.row[h] + r < j->w[t.matrix[h]].rows;
                if (good)
                    seen[j->w[t.matrix[h]].column + t.row[h] + r]++;
            }
        good &= t.count[0] > 0 && t.count[0] <= HALF && t.count[1] <= HALF;
    }
    for (uint32_t i = 0; i < j->columns; i++)
        good &= seen[i] == 1;
    free(seen);
    return good;
}

/* Returns 1 if pairs that must be in one lane are there: gate and up, the two halves of a head. */
static int together(const struct product_job *j)
{
    int good = 1;
    for (uint32_t i = 0; i < job_tiles(j); i++) {
        struct weight_tile t = tile_at(j, i);
        if (j->kind == JOB_GATED)
            good &= t.matrix[0] == 0 && t.matrix[1] == 1 && t.row[0] == t.row[1] &&
                    t.count[0] == t.count[1];
        else if (j->kind == JOB_QKV && t.section < 2)
            good &= t.row[1] - t.row[0] == j->head_dim / 2 && t.count[0] == t.count[1] &&
                    t.row[0] % j->head_dim + t.count[0] <= j->head_dim / 2;
    }
    return good;
}

static int places_permute(enum dtype dtype)
{
    uint8_t seen[64] = {0};
    int good = 1;
    for (uint32_t u = 0; u < 64; u++) {
        good &= x_place(dtype, u) / 8 == u / 8;
        seen[x_place(dtype, u)]++;
    }
    for (int u = 0; u < 64; u++)
        good &= seen[u] == 1;
    return good;
}

static int gemv_fits(const struct product_job *j, uint32_t cores, size_t most)
{
    struct gemv_plan p = gemv_plan(j, cores, most);
    if (!p.fits)
        return 1;
    struct gemv_room r = gemv_room(j->dtype, j->T, j->K, p.warps);
    int int8 = j->dtype == DTYPE_INT8;
    uint32_t x = j->T * x_stride(j->dtype, p.groups);
    return j->T <= format_row(j->dtype).few && j->T <= GEMV_ROWS &&
           2 * (r.bytes + 1024) <= most + 1024 && p.blocks > 0 &&
           p.blocks <= job_tiles(j) && p.warps >= 4 && p.warps <= GEMV_WARPS &&
           r.x + x == r.coded && r.coded % 16 == 0 && r.sums % 16 == 0 &&
           r.step >= r.coded + (int8 ? j->T * j->K * 2 : 0) &&
           r.near >= r.marks + (int8 ? j->T * marks_words(j->K) * 4 : 0) && r.marks % 16 == 0 &&
           r.sums >= r.near + (int8 ? 2 * j->T * NEAR * TILE_ROWS : 0) &&
           (size_t)p.groups * GROUP >= j->stride && r.bytes <= most;
}

static int skinny_fits(const struct product_job *j, uint32_t cores, size_t most)
{
    struct skinny_plan p = skinny_plan(j, cores, most);
    uint32_t all = job_groups(j->dtype, j->K), T = plan_least(j->T, p.rows);
    size_t sums = (size_t)p.splits * T * j->columns * 4;
    return p.rows >= 8 && p.rows <= SKINNY_ROWS && p.rows % 8 == 0 && p.groups >= 1 &&
           p.splits * p.groups >= all && (p.splits - 1) * p.groups < all &&
           p.shared + FEW_SHARED <= most && p.crews >= 1 &&
           (p.crews * p.splits <= cores || p.crews == 1) &&
           sums <= skinny_sums(j->dtype, j->T, j->K, j->columns, most);
}

/* Returns 1 if two slices of a job's matrices make up the whole, and y moves along with the
 * slice. */
static int slices_add_up(const struct product_job *j)
{
    struct product_job given = *j;
    char base[3];
    for (uint32_t i = 0; i < j->n; i++)
        given.y[i] = &base[i];
    uint32_t unit = j->kind == JOB_QKV ? j->head_dim : TILE_ROWS;
    if (j->w[0].rows <= unit)
        return 1;
    struct product_job a = job_slice(&given, 0, 0, unit);
    struct product_job b = job_slice(&given, 0, unit, j->w[0].rows - unit);
    uint32_t moved = (uint32_t)((char *)b.y[0] - (char *)a.y[0]);
    return a.columns + b.columns == j->w[0].rows * (j->kind == JOB_GATED ? 2 : 1) &&
           owned_once(&a) && owned_once(&b) && moved == unit * job_value_bytes(j, 0);
}

int main(void)
{
    int once = 1, pairs = 1, few = 1, some = 1, slices = 1, shapes = 4000;
    for (int i = 0; i < shapes; i++) {
        struct product_job j = any_job(i % 10 ? 700 : 20000);
        uint32_t cores = sms[draw(5)];
        size_t most = shared[draw(3)];
        once &= owned_once(&j);
        pairs &= together(&j);
        slices &= slices_add_up(&j);
        few &= gemv_fits(&j, cores, most);
        some &= skinny_fits(&j, cores, most);
    }
    ok(once, "%d jobs: every row of every matrix lies in exactly one tile", shapes);
    ok(pairs, "halves of a tile are what an output needs together");
    ok(slices, "slices of a job own its rows once, and write where they belong");
    ok(few, "few rows: two blocks fit on an SM, parts of shared memory do not overlap");
    ok(some, "some rows: parts cover K once, fit, and have room for their sums");
    for (int i = 0; i < 4; i++)
        ok(places_permute(dtypes[i]), "x_place permutes within chunks: format %d", (int)dtypes[i]);

    /* The shapes of 8B models must fill the card: nine tenths of the resident blocks have work, and
     * adding up parts costs less than a third. */
    static const struct {
        const char *name;
        enum job_kind kind;
        uint32_t K, rows[3];
    } shape[] = {{"q, k, v", JOB_QKV, 4096, {4096, 1024, 1024}},
                 {"o", JOB_ROWS, 4096, {4096, 0, 0}},
                 {"gate, up", JOB_GATED, 4096, {14336, 14336, 0}},
                 {"down", JOB_ROWS, 14336, {4096, 0, 0}},
                 {"head", JOB_FLOATS, 4096, {128256, 0, 0}}};
    for (size_t i = 0; i < sizeof shape / sizeof *shape; i++) {
        struct product_job j = {.dtype = DTYPE_BF16, .kind = shape[i].kind, .T = 1, .K = shape[i].K,
                                .stride = shape[i].K * 2, .head_dim = 128};
        for (; j.n < 3 && shape[i].rows[j.n]; j.n++)
            j.w[j.n].rows = shape[i].rows[j.n];
        job_settle(&j);
        struct product_job codes = j; /* in int8, because gemv.cu takes no row of bf16 */
        codes.dtype = DTYPE_INT8;
        codes.stride = shape[i].K;
        struct gemv_plan p = gemv_plan(&codes, 132, 227 << 10);
        float full = (float)job_tiles(&j) / (float)p.blocks;
        ok(p.fits && full / plan_rounds(job_tiles(&j), p.blocks) > 0.9f && p.blocks > 250 &&
               p.groups % p.warps == 0,
           "%s, one row: %u tiles over %u blocks of %u warps", shape[i].name, job_tiles(&j),
           p.blocks, p.warps);
        for (uint32_t T = 16; T <= 64; T *= 2) {
            j.T = T;
            struct skinny_plan s = skinny_plan(&j, 132, 227 << 10);
            float cost = skinny_cost(&j, plan_least(T, s.rows), job_tiles(&j), 132, s.groups,
                                     s.splits);
            ok(s.crews * s.splits >= 120 && cost < 1.3f,
               "%s, %u rows: %u parts of %u groups, %u blocks each, cost %.2f", shape[i].name, T,
               s.splits, s.groups, s.crews, (double)cost);
        }
    }
    return tap_done();
}
