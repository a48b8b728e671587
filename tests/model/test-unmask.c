/* test-unmask.c - tests the unmask rules that use one pass only, on confidences made by hand, and
 * the names by which users choose rules. test-unmask-kept.c tests rules that remember earlier
 * passes. */
#include "kernels/advance.h"
#include "lib/decode/cache/cache.h"
#include "lib/decode/decoder.h"
#include "lib/decode/pace.h"
#include "lib/decode/suffix.h"
#include "tests/tap.h"

enum { MOST = 8 };

/* The number of confidences (sorted, best first) that a rule takes. */
static size_t taken(enum unmask rule, const double *best, size_t n, size_t budget,
                    struct unmask_params p)
{
    int32_t pick[MOST];
    for (size_t k = 0; k < n; k++)
        pick[k] = (int32_t)k;
    const struct offers o = {.n = n, .confidence = best, .pick = pick, .budget = budget};
    return unmask_count(rule, &p, &o);
}

static void test_schedule_rule(void)
{
    const double s[] = {0.9, 0.9, 0.5, 0.2, 0.1};
    struct unmask_params none = {0};
    ok(taken(UNMASK_SCHEDULE, s, 5, 3, none) == 3, "schedule: the three best");
    ok(taken(UNMASK_SCHEDULE, s, 5, 0, none) == 0, "schedule: a budget of 0 commits nothing");
    ok(taken(UNMASK_SCHEDULE, s, 5, 9, none) == 5, "schedule: never more than n");
    ok(taken(UNMASK_SCHEDULE, s, 0, 2, none) == 0, "schedule: no positions, no commits");
    const double zeros[] = {0, 0, 0};
    ok(taken(UNMASK_SCHEDULE, zeros, 3, 2, none) == 2, "schedule: confidence 0 counts");
    ok(unmask_paced(UNMASK_SCHEDULE) && !unmask_paced(UNMASK_THRESHOLD) &&
           !unmask_paced(UNMASK_FACTOR),
       "a schedule has steps");
}

static void test_threshold_rule(void)
{
    const double s[] = {0.95, 0.9, 0.89, 0.2};
    struct unmask_params p = {.threshold = 0.9};
    ok(taken(UNMASK_THRESHOLD, s, 4, 1, p) == 2, "threshold: all that reach it, equal too");
    p.threshold = 0.99;
    ok(taken(UNMASK_THRESHOLD, s, 4, 0, p) == 1, "threshold: at least the best one");
    p.threshold = 0;
    ok(taken(UNMASK_THRESHOLD, s, 4, 0, p) == 4, "threshold 0: all");
    ok(taken(UNMASK_THRESHOLD, s, 0, 1, p) == 0, "threshold: no positions, no commits");
}

/* SDAR takes all above the threshold, or the budget if that is more. The last step takes all. */
static void test_dynamic_rule(void)
{
    const double s[] = {0.95, 0.9, 0.89, 0.2};
    int32_t pick[] = {0, 1, 2, 3};
    struct unmask_params p = {.threshold = 0.9};
    struct offers o = {.n = 4, .confidence = s, .pick = pick, .budget = 1, .steps = 4};
    ok(unmask_count(UNMASK_DYNAMIC, &p, &o) == 1, "dynamic: above the threshold, not at it");
    o.budget = 3;
    ok(unmask_count(UNMASK_DYNAMIC, &p, &o) == 3, "dynamic: at least the budget");
    p.threshold = 0.1;
    ok(unmask_count(UNMASK_DYNAMIC, &p, &o) == 4, "dynamic: more where more are sure");
    p.threshold = 1;
    o.step = 3;
    ok(unmask_count(UNMASK_DYNAMIC, &p, &o) == 4, "dynamic: the last step takes all");
}

/* Dream commits at time t the share 1 - s/t of the slots, each by its own draw. */
static void test_origin_rule(void)
{
    int32_t pick[MOST], asked[MOST];
    const double s[MOST] = {0};
    size_t sum = 0;
    struct unmask_params p = {0};
    struct offers o = {.n = MOST, .confidence = s, .pick = pick, .asked = asked, .steps = 4};
    for (int32_t k = 0; k < MOST; k++)
        asked[k] = k;
    for (o.key = 0; o.key < 1000; o.key++) {
        for (int32_t k = 0; k < MOST; k++)
            pick[k] = k;
        sum += unmask_count(UNMASK_ORIGIN, &p, &o);
    }
    ok(sum > 8000 * 0.24975 - 5 * 39 && sum < 8000 * 0.24975 + 5 * 39,
       "origin: a quarter of 8000 in the first of four steps, within 5 deviations: %zu", sum);
    o.step = 3;
    ok(unmask_count(UNMASK_ORIGIN, &p, &o) == MOST, "origin: the last step takes all");
}

static void test_threshold_decay(void)
{
    const double s[] = {0.85, 0.8, 0.7};
    int32_t pick[] = {0, 1, 2};
    struct unmask_params p = {.threshold = 0.9, .threshold_decay = 0.5};
    struct offers o = {.n = 3, .confidence = s, .pick = pick, .slots = 3};
    ok(unmask_count(UNMASK_THRESHOLD, &p, &o) == 1, "no slot is filled: the threshold itself");
    o.slots = 4; /* 0.9 (1 - 0.5 / 4) = 0.7875 */
    ok(unmask_count(UNMASK_THRESHOLD, &p, &o) == 2, "the threshold falls as the block fills");
    o.ahead = 8; /* 0.9 (1 - 0.5 / 12) = 0.8625 */
    ok(unmask_count(UNMASK_THRESHOLD, &p, &o) == 1,
       "the threshold falls more slowly with masked slots ahead");
    o.ahead = 0;
    p.threshold_decay = 0;
    ok(unmask_count(UNMASK_THRESHOLD, &p, &o) == 1, "decay 0: not at all");
}

/* LocalLeap on slots 0, 2, 3 and 9. Slot 2 is an anchor, so its neighbours need less confidence. */
static void test_localleap_rule(void)
{
    const double s[] = {0.5, 0.95, 0.7, 0.7};
    const int32_t slots[] = {0, 2, 3, 9};
    struct unmask_params p = {.threshold = 0.9, .relaxed_threshold = 0.6, .leap_radius = 1};
    int32_t pick[] = {1, 2, 3, 0};
    struct offers o = {.n = 4, .confidence = s, .pick = pick, .asked = slots};
    ok(unmask_count(UNMASK_LOCALLEAP, &p, &o) == 2 && pick[0] + pick[1] == 3,
       "localleap: the anchor and the next slot");
    p.leap_radius = 7;
    ok(unmask_count(UNMASK_LOCALLEAP, &p, &o) == 3, "localleap: a larger radius");
    p.threshold = 0.99;
    ok(unmask_count(UNMASK_LOCALLEAP, &p, &o) == 1, "localleap: without an anchor the best one");
}

/* D2F with blocks of 4 slots. The first block has 3 masks left, the second 4. */
static void test_d2f_rule(void)
{
    const double s[] = {0.2, 0.3, 0.1, 0.4, 0.5, 0.91, 0.6};
    const int32_t slots[] = {1, 2, 3, 4, 5, 6, 7};
    struct unmask_params p = {.threshold = 0.95, .ready_share = 0.25};
    int32_t pick[] = {5, 6, 4, 3, 1, 0, 2};
    struct offers o = {.n = 7, .confidence = s, .pick = pick, .asked = slots, .slots = 4};
    ok(unmask_count(UNMASK_D2F, &p, &o) == 2 && pick[0] == 5 && pick[1] == 1,
       "d2f: the best of both blocks, as the first is a quarter full");
    p.ready_share = 0.3;
    ok(unmask_count(UNMASK_D2F, &p, &o) == 1 && pick[0] == 1, "d2f: the second is not ready");
    p.threshold = 0.45;
    ok(unmask_count(UNMASK_D2F, &p, &o) == 4, "d2f: answers above the threshold stay");
}

/* D2F: a stop id that ends the answer opens no new block, although masks are before it. */
static void test_d2f_opens(void)
{
    int32_t token[] = {9, 5, 9, 9, 9, 9, 9, 9};
    struct canvas_loop l = {.token = token, .gen_length = 8, .block_length = 4, .mask = 9,
                            .rule = UNMASK_D2F, .params = {.open_share = 0.25},
                            .stop = {5}, .n_stop = 1};
    const struct canvas_state first = {.len = 8, .live = 1};
    struct canvas_state c = first;
    canvas_settle(&l, &c, 3);
    ok(c.more == 1 && c.live, "d2f: a quarter full opens the next block");
    l.stop_at_eos = 1;
    c = first;
    canvas_settle(&l, &c, 3);
    ok(c.more == 0 && c.live, "d2f: but not behind a stop id");
    l.stop[0] = 4;
    c = first;
    canvas_settle(&l, &c, 3);
    ok(c.more == 1, "d2f: another id does not stop");
}

/* If the order is not by confidence, slots that reach the threshold may not come first. */
static void test_threshold_picks(void)
{
    const double confidence[] = {0.5, 0.95, 0.2, 0.91};
    int32_t pick[] = {2, 3, 0, 1};
    struct unmask_params p = {.threshold = 0.9};
    const struct offers o = {.n = 4, .confidence = confidence, .pick = pick};
    ok(unmask_count(UNMASK_THRESHOLD, &p, &o) == 2 && pick[0] == 3 && pick[1] == 1 &&
           pick[0] + pick[1] + pick[2] + pick[3] == 6,
       "threshold: picks all that reach it, wherever the order put them");
    int32_t again[] = {2, 3, 0, 1};
    const struct offers none = {.n = 4, .confidence = confidence, .pick = again};
    p.threshold = 0.99;
    ok(unmask_count(UNMASK_THRESHOLD, &p, &none) == 1 && again[0] == 2,
       "threshold: when none does, the first by the order");
}

/* The factor rule has the thresholds 1 - f/3, 1 - f/4, 1 - f/5 for the 2nd, 3rd, 4th best. */
static void test_factor_rule(void)
{
    struct unmask_params f = {.factor = 1};
    const double low[] = {0.2, 0.15, 0.1};
    ok(taken(UNMASK_FACTOR, low, 3, 0, f) == 1, "factor: the best is always taken");
    const double two[] = {0.99, 0.70, 0.1};
    ok(taken(UNMASK_FACTOR, two, 3, 0, f) == 2, "factor: 2nd best 0.70 >= 2/3");
    const double third[] = {0.99, 0.74, 0.70};
    ok(taken(UNMASK_FACTOR, third, 3, 0, f) == 2, "factor: 3rd best 0.70 < 3/4");
    const double all[] = {0.99, 0.90, 0.80, 0.75};
    ok(taken(UNMASK_FACTOR, all, 4, 0, f) == 3, "factor: 4th best 0.75 < 4/5");
    f.factor = 2;
    ok(taken(UNMASK_FACTOR, all, 4, 0, f) == 4, "factor 2 takes more");
    ok(taken(UNMASK_FACTOR, all, 0, 1, f) == 0, "factor: no positions, no commits");
}

/* The number of slots that the entropy bound takes. Entropies are sorted, the best first. */
static size_t bounded(const float *entropy, size_t n, double bound)
{
    struct head_row answer[MOST] = {{0}};
    int32_t pick[MOST];
    for (size_t k = 0; k < n; k++) {
        answer[n - 1 - k].entropy = entropy[k];
        pick[k] = (int32_t)(n - 1 - k);
    }
    const struct unmask_params p = {.entropy_bound = bound};
    const struct offers o = {.n = n, .answer = answer, .pick = pick};
    return unmask_count(UNMASK_ENTROPY_BOUND, &p, &o);
}

static void test_entropy_bound(void)
{
    const float h[] = {0.25f, 0.125f, 0.5f, 1}; /* sums without the largest: 0, .125, .375, .875 */
    ok(bounded(h, 4, 0) == 1, "entropy bound 0: one at a time");
    ok(bounded(h, 4, 0.125) == 2, "entropy bound: the bound itself is within");
    ok(bounded(h, 4, 0.5) == 3, "the largest does not count, wherever it stands");
    ok(bounded(h, 4, 0.875) == 4 && bounded(h, 0, 1) == 0, "up to all, and none of none");
}

/* Slots 0, 1, 2, 4 and 5 are masked; slot 3 is not. */
static void test_hierarchical(void)
{
    const double c[] = {0.7, 0.8, 0.8, 0.3, 0.65};
    const int32_t asked[] = {10, 11, 12, 14, 15};
    int32_t pick[] = {1, 2, 0, 4, 3};
    struct unmask_params p = {.upper = 0.9, .lower = 0.6};
    const struct offers o = {.n = 5, .confidence = c, .pick = pick, .asked = asked, .first = 10};
    ok(unmask_count(UNMASK_HIERARCHICAL, &p, &o) == 2 && pick[0] == 1 && pick[1] == 4,
       "hierarchical: the best of each run, of equals the first");
    int32_t again[] = {1, 2, 0, 4, 3};
    const struct offers high = {.n = 5, .confidence = c, .pick = again, .asked = asked,
                                .first = 10};
    p.upper = 0.75;
    ok(unmask_count(UNMASK_HIERARCHICAL, &p, &high) == 3,
       "hierarchical: all above the upper threshold");
    p.upper = p.lower = 1;
    int32_t alone[] = {1, 2, 0, 4, 3};
    const struct offers none = {.n = 5, .confidence = c, .pick = alone, .asked = asked,
                                .first = 10};
    ok(unmask_count(UNMASK_HIERARCHICAL, &p, &none) == 1 && alone[0] == 1,
       "hierarchical: at least the best one");
}

static size_t foretold(float gap, int32_t step, double least)
{
    const struct head_row answer[] = {{.gap = gap}, {.gap = gap + 1}, {.gap = gap - 1}};
    int32_t pick[] = {0, 1, 2};
    const struct unmask_params p = {.gap = least};
    const struct offers o = {.n = 3, .answer = answer, .pick = pick, .budget = 1, .step = step,
                             .steps = 9};
    return unmask_count(UNMASK_PROPHET, &p, &o);
}

static void test_prophet(void)
{
    ok(foretold(7, 0, 7.5) == 1 && foretold(7.5f, 2, 7.5) == 3,
       "prophet: all are committed once the gap is wide enough");
    ok(foretold(5, 2, 7.5) == 1 && foretold(5, 3, 7.5) == 3,
       "prophet: two thirds of the gap are enough in the second third");
    ok(foretold(2.5f, 5, 7.5) == 1 && foretold(2.5f, 6, 7.5) == 3,
       "prophet: one third of the gap is enough in the last third");
    ok(unmask_paced(UNMASK_PROPHET), "prophet: else the schedule sets the pace");
}

/* A rule may read every field of an answer of the head, and the slot of the answer. */
static void test_offers(void)
{
    const struct head_row answer[] = {{.id = 7, .entropy = 0.5f}, {.id = 9, .entropy = 1.5f}};
    const double confidence[] = {0.25, 0.75};
    const int32_t asked[] = {33, 31};
    int32_t pick[] = {1, 0};
    const struct offers o = {.n = 2, .answer = answer, .confidence = confidence, .pick = pick,
                             .asked = asked, .first = 30};
    ok(offers_slot(&o, 0) == 3 && offers_slot(&o, 1) == 1 && o.answer[o.pick[0]].id == 9 &&
           offers_confidence(&o, 0) > 0.7, "the answers of a rule, their slots, their rank");
    offers_swap(&o, 0, 1);
    ok(pick[0] == 0 && pick[1] == 1, "a rule can change the rank of answers");
}

/* The words of a row of settings must be those of the table that numbers them. */
static void words(const char *row, const char *const *name, size_t n)
{
    const struct settings_table *t = decoder_diffuse.table;
    struct settings s = {.table = t};
    size_t i = settings_find(t, row);
    int same = i < t->n;
    for (size_t k = 0; same && k < n; k++) {
        char word[SETTINGS_WORD];
        s.v[i] = (double)k;
        settings_word(&s, i, word);
        same &= name[k] && !strcmp(word, name[k]);
    }
    const char *choices = t->row[i].choices;
    size_t bars = 0;
    for (const char *c = choices; *c; c++)
        bars += *c == '|';
    ok(same && bars + 1 == n, "--%s: %s", row, choices);
}

static void test_words(void)
{
    const char *const rules[UNMASK_COUNT] = {[UNMASK_SCHEDULE] = "schedule",
                                             [UNMASK_THRESHOLD] = "threshold",
                                             [UNMASK_FACTOR] = "factor",
                                             [UNMASK_ENTROPY_BOUND] = "entropy_bound",
                                             [UNMASK_HIERARCHICAL] = "hierarchical",
                                             [UNMASK_PROPHET] = "prophet",
                                             [UNMASK_CREDIT] = "credit",
                                             [UNMASK_SLOWFAST] = "slowfast",
                                             [UNMASK_SABER] = "saber",
                                             [UNMASK_WINO] = "wino",
                                             [UNMASK_KLASS] = "klass",
                                             [UNMASK_DYNAMIC] = "dynamic",
                                             [UNMASK_ORIGIN] = "origin",
                                             [UNMASK_JOINT] = "joint",
                                             [UNMASK_LOCALLEAP] = "localleap",
                                             [UNMASK_D2F] = "d2f",
                                             [UNMASK_SCHED] = "sched",
                                             [UNMASK_LESS] = "less",
                                             [UNMASK_S2D2] = "s2d2",
                                             [UNMASK_DAWN] = "dawn"};
    const char *policies[CACHE_COUNT];
    for (size_t k = 0; k < CACHE_COUNT; k++)
        policies[k] = cache_policies[k]->name;
    words("unmask", rules, UNMASK_COUNT);
    const char *const suffixes[SUFFIX_COUNT] = {[SUFFIX_ALL] = "all", [SUFFIX_WINDOW] = "window",
                                                [SUFFIX_DROPOUT] = "dropout",
                                                [SUFFIX_GROW] = "grow"};
    const char *const paces[PACE_COUNT] = {[PACE_UNIFORM] = "uniform",
                                               [PACE_COSINE] = "cosine",
                                               [PACE_FRONT] = "front",
                                             [PACE_ROUNDED] = "rounded",
                                             [PACE_TIMESTEPS] = "timesteps"};
    words("cache", policies, CACHE_COUNT);
    words("suffix", suffixes, SUFFIX_COUNT);
    words("pace", paces, PACE_COUNT);
}

int main(void)
{
    test_schedule_rule();
    test_threshold_rule();
    test_dynamic_rule();
    test_origin_rule();
    test_localleap_rule();
    test_d2f_rule();
    test_d2f_opens();
    test_threshold_decay();
    test_threshold_picks();
    test_factor_rule();
    test_entropy_bound();
    test_hierarchical();
    test_prophet();
    test_offers();
    test_words();
    return tap_done();
}
