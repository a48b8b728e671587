/* test-attention-plan.cu - tests how attention is split into blocks (attention_plan.h): addresses
 * in shared memory, splits, and plans for several cards. All of this is arithmetic of the host;
 * test-attention.cu runs the kernels. */
#include <stdlib.h>

#include "kernels/cuda/attention/attention_plan.h"
#include "lib/base/mem.h"
#include "tests/tap.h"

static void places(int padded)
{
    int chunks = padded / TILE_CHUNK, met = 0, free_of_conflicts = 1, same = 1;
    char *seen = (char *)mem_zero((size_t)(TILE_KEYS * chunks), 1);
    for (int r = 0; r < TILE_KEYS; r++)
        for (int c = 0; c < chunks; c++) {
            int at = tile_at(r, c, padded);
            met += at % TILE_CHUNK == 0 && !seen[at / TILE_CHUNK]++;
            for (int n = 1; n < 8 && r + n < TILE_KEYS; n++)
                free_of_conflicts &= (tile_at(r + n, c, padded) - at) / TILE_CHUNK % 8 != 0;
            for (int n = 0; n < chunks; n++)
                same &= (n & c) || tile_right(at, n) == tile_at(r, c ^ n, padded);
            for (int n = 0; r + n < TILE_KEYS; n++)
                same &= (n % 8 & r % 8) || r % 8 + n % 8 > 7 ||
                        tile_down(at, n, padded) == tile_at(r + n, c, padded);
        }
    ok(met == TILE_KEYS * chunks, "rows of %d: every chunk has its own place", padded);
    ok(free_of_conflicts, "rows of %d: eight rows lie in eight groups of banks", padded);
    ok(same, "rows of %d: places are found from their neighbours'", padded);
    free(seen);
}

static void splits(void)
{
    int whole = split_count(64 * (SPLIT_TILES - 1), 99, 32) == 1 &&
                split_count(64 * SPLIT_JOINED, 99, 16) == SPLIT_JOINED;
    for (int queries = 16; queries <= 128; queries *= 2)
        for (int32_t n = 0; n < 3000; n += 37)
            for (int most = 1; most < 70; most += 3) {
                int used = split_count(n, most, queries), tiles = (int)ceil_div((size_t)n, 64);
                whole &= used >= 1 && used <= most && split_begin(n, used, 0) == 0;
                whole &= split_begin(n, used, used) == tiles;
                for (int s = 0; s < used && used > 1; s++)
                    whole &= split_begin(n, used, s + 1) - split_begin(n, used, s) >=
                             split_least(queries);
            }
    ok(whole, "splits cover a list, and none is short");
}

struct card {
    const char *name;
    int sms;
    size_t shared_max;
};
static const struct card cards[] = {{"one multiprocessor", 1, 101376},
                                    {"A100", 108, 166912},
                                    {"H200", 132, 232448},
                                    {"RTX 4090", 128, 101376}};

static void plans(const struct card *c)
{
    int sound = 1, fits = 1;
    for (size_t n = 1; n <= 40; n += 3)
        for (size_t rows = 1; rows < 5000; rows = rows * 3 / 2 + 1)
            for (size_t slots = rows; slots < 100000; slots = slots * 2 + 7)
                for (size_t kv = 1; kv <= 32; kv *= 2)
                    for (size_t E = 64; E <= 128; E += 64) {
                        struct attention_plan p = attention_plan_of(rows, n, slots, 32, kv, E,
                                                                    MASK_CAUSAL, c->sms,
                                                                    c->shared_max);
                        sound &= p.splits == 1 || n * kv <= split_lists_most(c->sms) ||
                                 !split_joins(p.queries);
                        sound &= p.tiles == 1 || !split_joins(p.queries);
                        size_t parts = (size_t)p.splits * n * rows * 32;
                        sound &= (size_t)(p.tiles * p.queries) >= rows * (32 / kv);
                        sound &= p.splits == 1 || parts <= parts_most(n * rows, slots, 32, c->sms);
                        sound &= p.tiles * p.splits < 65536;
                        size_t end = (size_t)tile_shared_of(p.padded, p.queries, p.stages).end;
                        fits &= 2 * end <= c->shared_max;
                    }
    ok(sound, "%s: plans hold all queries, parts fit the work", c->name);
    ok(fits, "%s: shared memory fits", c->name);
    size_t least = parts_most(1, 64, 32, c->sms);
    ok(parts_most(2, 64, 32, c->sms) >= least && parts_most(1, 640, 32, c->sms) >= least,
       "%s: work grows with its arguments", c->name);
}

static void named_plans(void)
{
    struct attention_plan decode = attention_plan_of(1, 1, 1000, 32, 8, 128, MASK_FULL, 132,
                                                     232448);
    ok(decode.queries == 16 && decode.splits == 16, "one row: 16 queries, %d splits",
       decode.splits);
    struct attention_plan block = attention_plan_of(32, 1, 1032, 32, 32, 128, MASK_FULL, 132,
                                                     232448);
    ok(block.queries == 32 && block.splits == 8, "32 rows: 32 queries, %d splits", block.splits);
    struct attention_plan prefill = attention_plan_of(1024, 1, 1024, 32, 32, 128, MASK_FULL, 132,
                                                     232448);
    ok(prefill.queries == 128 && prefill.splits == 1 && prefill.stages == 2,
       "1024 rows: 128 queries, one split");
    struct attention_plan small = attention_plan_of(1024, 1, 1024, 32, 32, 128, MASK_FULL, 108,
                                                     166912);
    ok(small.stages == 1, "two blocks before two stages");
    struct attention_plan padded = attention_plan_of(1024, 1, 1024, 32, 32, 80, MASK_FULL, 132,
                                                     232448);
    struct attention_plan causal = attention_plan_of(1024, 1, 1024, 32, 32, 128, MASK_CAUSAL, 132,
                                                     232448);
    ok(prefill.full && !padded.full && !causal.full, "full: every key, and no padding");
    struct attention_plan brief = attention_plan_of(1, 1, 130, 32, 8, 128, MASK_CAUSAL, 132,
                                                    232448);
    ok(brief.splits == 3, "one row, 130 keys: %d splits", brief.splits);
}

int main(void)
{
    places(64);
    places(128);
    splits();
    for (const struct card &c : cards)
        plans(&c);
    named_plans();
    return tap_done();
}
