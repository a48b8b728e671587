/* test-wide-plan.c - tests kernels/cuda/product/wide_plan.h over thousands of shapes: every unit of
 * every tile has one cluster, clusters have equal shares, and the parts of all tiles fit in the
 * memory that is set aside for them. */
#include "kernels/cuda/product/wide_plan.h"

#include "tests/tap.h"

static uint64_t state = 1;

static uint32_t draw(uint32_t below)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(state >> 33) % below;
}

static struct product_job any_job(void)
{
    struct product_job j = {.dtype = DTYPE_FP8, .kind = draw(2) ? JOB_ROWS : JOB_GATED};
    j.T = WIDE_LEAST + draw(WIDE_MOST - WIDE_LEAST + 1);
    j.K = 128 * (1 + draw(120));
    j.n = j.kind == JOB_GATED ? 2 : 1 + draw(3);
    for (uint32_t i = 0; i < j.n; i++)
        j.w[i].rows = j.kind == JOB_GATED && i ? j.w[0].rows : 1 + draw(30000);
    job_settle(&j);
    return j;
}

int main(void)
{
    int shares = 0, owners = 0, rooms = 0, splits = 0;
    for (int i = 0; i < 3000; i++) {
        const struct product_job j = any_job();
        const uint32_t sms = 1 + draw(200), cluster = 1 + draw(2);
        const struct wide_plan p = wide_plan(&j, sms, cluster);
        uint32_t least = UINT32_MAX, most = 0;
        for (uint32_t c = 0; c < p.clusters; c++) {
            uint32_t first = wide_first(&p, c), n = wide_first(&p, c + 1) - first;
            least = plan_least(least, n);
            most = n > most ? n : most;
            owners += wide_owner(&p, first) != c || wide_owner(&p, first + n - 1) != c;
        }
        shares += least == 0 || most > least + 1 || wide_first(&p, p.clusters) != p.all ||
                  p.clusters > (sms / cluster ? sms / cluster : 1);
        rooms += wide_work(&p, j.T, j.columns) >
                 wide_work_most(j.dtype, j.T + draw(200), j.K, j.columns + draw(2) * draw(9000),
                                sms, cluster);
        for (uint32_t tile = 0; tile < p.all / p.units; tile++) {
            uint32_t parts = wide_parts(&p, tile);
            splits += parts == 0 || parts > wide_parts_most(&p);
        }
    }
    ok(!shares, "each block has an equal share, %d shapes have not", shares);
    ok(!owners, "a unit has the block whose share it is in, %d have not", owners);
    ok(!rooms, "image and parts fit, in %d shapes they do not", rooms);
    ok(!splits, "a tile has a part, and no more than there is room for, %d have not", splits);
    return tap_done();
}
