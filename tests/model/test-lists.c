/* test-lists.c - tests the lists of rows and keys that the policies of --cache and --suffix make,
 * on canvases written by hand. */
#include <math.h>

#include "lib/decode/suffix.h"
#include "tests/tap.h"

/* Writes a part as text, such as "0-3,7 of 0-9, 2": rows, keys, passes. */
static void shown(const struct cache_part *a, char text[80])
{
    size_t at = 0;
    for (int list = 0; list < 2; list++) {
        const int32_t *p = list ? a->key : a->row;
        size_t n = list ? a->n_keys : a->n_rows;
        for (size_t i = 0, j; i < n; i = j) {
            for (j = i + 1; j < n && p[j] == p[j - 1] + 1;)
                j++;
            at += (size_t)snprintf(text + at, 80 - at, "%s%d-%d", i ? "," : "", p[i], p[j - 1]);
        }
        at += (size_t)snprintf(text + at, 80 - at, list ? "" : " of ");
    }
    snprintf(text + at, 80 - at, a->passes == SIZE_MAX ? "" : ", %zu", a->passes);
}

/* Tests the rows that each policy lists for a canvas of 4 + 12 positions in blocks of 4, at its
 * second block. */
static void test_lists(void)
{
    static const struct {
        enum caching cache;
        int32_t step, passes;
        struct suffix suffix;
        const char *list;
    } list[] = {
        {CACHE_NONE, 1, 3, {0}, "0-15 of 0-15"},
        {CACHE_PREFIX, 0, 2, {0}, "0-15 of 0-15, 1"},
        {CACHE_PREFIX, 1, 3, {0}, "8-15 of 0-15, 2"},
        {CACHE_PREFIX, 2, 4, {0}, "8-15 of 0-15, 1"},
        {CACHE_PREFIX, 3, 5, {0}, "0-15 of 0-15, 1"},
        {CACHE_DUAL, 4, 6, {0}, "8-11 of 0-15, 2"},
        {CACHE_VICINITY, 0, 2, {0}, "0-15 of 0-15, 2"},
        {CACHE_VICINITY, 2, 4, {0}, "6-12 of 0-15, 1"},
        {CACHE_VICINITY, 3, 5, {0}, "0-15 of 0-15, 1"},
        {CACHE_DELAYED, 0, 3, {0}, "0-15 of 0-15, 1"},
        {CACHE_DELAYED, 1, 5, {0}, "0-15 of 0-15, 1"},
        {CACHE_DELAYED, 2, 4, {0}, "5-5,9-15 of 0-15, 1"},
        {CACHE_DELAYED, 4, 7, {0}, "0-15 of 0-15, 1"},
        {CACHE_EXACT, 0, 3, {0}, "4-11 of 0-11, 1"},
        {CACHE_NONE, 1, 3, {SUFFIX_WINDOW, 2, 0, 0}, "0-13,15-15 of 0-13,15-15"},
        {CACHE_DUAL, 1, 3, {SUFFIX_WINDOW, 1, 0, 0}, "8-11 of 0-12,15-15, 2"},
        {CACHE_PREFIX, 1, 3, {SUFFIX_GROW, 0, 0, 0}, "8-11 of 0-11, 2"},
        {CACHE_PREFIX, 1, 3, {SUFFIX_DROPOUT, 3, 0, 9}, "8-14 of 0-14, 2"}};
    int32_t row[16], key[16], token[16], cached[16];
    for (int32_t k = 0; k < 16; k++) {
        token[k] = cached[k] = k < 9 ? k + 1 : 0;
        cached[k] = k == 5 ? 0 : cached[k]; /* committed in the last pass */
    }
    for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
        const struct canvas_state c = {.prompt = 4, .len = 16, .block = 1, .step = list[i].step,
                                       .passes = list[i].passes};
        const struct cache_view v = {.canvas = &c, .token = token, .cached = cached, .begin = 8,
                                     .end = 12, .mask_block = 4,
                                     .params = {.refresh = 3, .vicinity_before = 2,
                                                .vicinity_after = 1, .vicinity_warmup = 2,
                                                .delayed_refresh = 4}};
        struct cache_part a = {.row = row, .key = key};
        char text[80];
        cache_policies[list[i].cache]->describe(&v, &a);
        int32_t behind = suffix_filter(&list[i].suffix, &v, 1, 1, &a), last = key[a.n_keys - 1];
        shown(&a, text);
        ok(!strcmp(text, list[i].list) && (behind > 0) == (last > 11), "%s, step %d: %s",
           cache_policies[list[i].cache]->name, list[i].step, text);
    }
}

/* How often a slot exists at each distance is the density; each canvas has its own draws. */
static void test_dropout(void)
{
    enum { DRAWS = 4000, WINDOW = 32 };
    const struct suffix s = {SUFFIX_DROPOUT, WINDOW, 4, 2};
    int near = 1, same = 1, blocks_differ = 0, keys_differ = 0;
    for (int32_t d = 1; d <= WINDOW + 1; d++) {
        int there = 0;
        for (int32_t k = 0; k < DRAWS; k++) {
            struct canvas_state c = {.key = (uint64_t)k, .len = 100, .block = 2};
            struct cache_view v = {.canvas = &c, .begin = 20, .end = 30};
            int keeps = suffix_keeps(&s, &v, 7, 29 + d);
            there += keeps;
            same &= keeps == suffix_keeps(&s, &v, 7, 29 + d);
            c.block = 3;
            blocks_differ |= keeps != suffix_keeps(&s, &v, 7, 29 + d);
            c = (struct canvas_state){.key = (uint64_t)k + 1, .len = 100, .block = 2};
            keys_differ |= keeps != suffix_keeps(&s, &v, 7, 29 + d);
        }
        double p = d > WINDOW ? 0 : 2 / sqrt(2 * 3.14159265358979) * exp(-0.5 * d * d / 64.0);
        near &= fabs(there / (double)DRAWS - p) < 0.03;
    }
    ok(near && same, "dropout: as often as the density says, and the same again");
    ok(blocks_differ && keys_differ, "dropout: other draws for another block, another canvas");
}

int main(void)
{
    test_lists();
    test_dropout();
    return tap_done();
}
