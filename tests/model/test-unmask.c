/* The rules of unmasking and the schedule, on confidences made by hand; the words that people
 * choose them by.
 * One file because each rule is a table of a few lines, and all share how one is asked. */
#include "kernels/advance.h"
#include "lib/base/rng.h"
#include "lib/decode/cache/cache.h"
#include "lib/decode/decoder.h"
#include "lib/decode/schedule.h"
#include "lib/decode/suffix.h"
#include "tests/tap.h"

enum { MOST = 8 };

/* How many of the confidences, which are best first, a rule takes. */
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
    ok(unmask_paced(UNMASK_SCHEDULE) && unmask_paced(UNMASK_REPLAY) &&
           !unmask_paced(UNMASK_THRESHOLD) && !unmask_paced(UNMASK_FACTOR),
       "only the schedule and a recorded one have steps");
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

static void test_threshold_decay(void)
{
    const double s[] = {0.85, 0.8, 0.7};
    int32_t pick[] = {0, 1, 2};
    struct unmask_params p = {.threshold = 0.9, .threshold_decay = 0.5};
    struct offers o = {.n = 3, .confidence = s, .pick = pick, .slots = 3};
    ok(unmask_count(UNMASK_THRESHOLD, &p, &o) == 1, "a full block: the threshold as it is");
    o.slots = 4; /* 0.9 (1 - 0.5 / 4) = 0.7875 */
    ok(unmask_count(UNMASK_THRESHOLD, &p, &o) == 2, "it falls as the block fills");
    o.ahead = 8; /* 0.9 (1 - 0.5 / 12) = 0.8625 */
    ok(unmask_count(UNMASK_THRESHOLD, &p, &o) == 1, "and slower, the more is ahead of it");
    o.ahead = 0;
    p.threshold_decay = 0;
    ok(unmask_count(UNMASK_THRESHOLD, &p, &o) == 1, "decay 0: not at all");
}

/* Where the order is not that of confidence, those that reach the threshold are not the first. */
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

/* Thresholds of factor f for the 2nd, 3rd, 4th best: 1 - f/3, 1 - f/4, 1 - f/5. */
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

/* Entropies of the best first. */
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
    const float h[] = {0.25f, 0.125f, 0.5f, 1}; /* sums less the largest: 0, 0.125, 0.375, 0.875 */
    ok(bounded(h, 4, 0) == 1, "entropy bound 0: one at a time");
    ok(bounded(h, 4, 0.125) == 2, "entropy bound: the bound itself is within");
    ok(bounded(h, 4, 0.5) == 3, "the largest does not count, wherever it stands");
    ok(bounded(h, 4, 0.875) == 4 && bounded(h, 0, 1) == 0, "up to all, and none of none");
}

/* Slots 0 1 2 . 4 5 are masked. */
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
    ok(unmask_count(UNMASK_HIERARCHICAL, &p, &high) == 3, "and all above the upper threshold");
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
    ok(foretold(7, 0, 7.5) == 1 && foretold(7.5f, 2, 7.5) == 3, "prophet: all once they are ahead");
    ok(foretold(5, 2, 7.5) == 1 && foretold(5, 3, 7.5) == 3, "by two thirds in the second third");
    ok(foretold(2.5f, 5, 7.5) == 1 && foretold(2.5f, 6, 7.5) == 3, "by one third in the last");
    ok(unmask_paced(UNMASK_PROPHET), "else the schedule's steps");
}

static int near(double x, double y)
{
    return fabs(x - y) < 1e-6;
}

/* The answer of a slot whose two best tokens are `id` and `second`. */
static struct head_row answer_of(int32_t id, double p, int32_t second, double q)
{
    return (struct head_row){.id = id, .runner_up = second, .prob = (float)p,
                             .runner_up_prob = (float)q, .gap = (float)log(p / q),
                             .log_prob = log(p)};
}

/* Decay 0.8, power 0.2, weight 0.7, by hand; in the third pass the second best token leads by its
 * credit. */
static void test_credit(void)
{
    struct slot_kept s = {{0}, {0}};
    const struct unmask_params p = {.credit_weight = 0.7, .credit_decay = 0.8, .credit_power = 0.2,
                                    .credit_threshold = 0.9};
    struct head_row a = answer_of(7, 0.6, 9, 0.3);
    struct reading r = unmask_read(UNMASK_CREDIT, &p, &a, &s);
    double c = pow(0.6, 0.2), up = pow(1 + c, 0.7);
    ok(r.id == 7 && near(r.confidence, 0.6 * up / (1 + 0.6 * (up - 1))) &&
           near((double)s.value[0], c), "credit: a token gains from its own pass");
    r = unmask_read(UNMASK_CREDIT, &p, &a, &s);
    c = 0.8 * c + pow(0.6, 0.2);
    ok(near((double)s.value[0], c), "credit: what is left of it, and the next one");
    a = answer_of(9, 0.45, 7, 0.4);
    r = unmask_read(UNMASK_CREDIT, &p, &a, &s);
    double seven = 0.4 * pow(1 + 0.8 * c, 0.7), nine = 0.45 * pow(1 + pow(0.45, 0.2), 0.7);
    ok(r.id == 7 && near(r.confidence, seven / (1 - 0.85 + seven + nine)),
       "credit: the second best token is chosen: %g", r.confidence);
    for (int32_t id = 20; id < 24; id++) {
        a = answer_of(id, 0.5, 5, 0.1);
        unmask_read(UNMASK_CREDIT, &p, &a, &s);
    }
    int found = 0;
    for (int i = 0; i < SLOT_KEPT; i++)
        found += s.id[i] == 7 || s.id[i] == 20;
    ok(found == 1 && s.id[0] != s.id[1], "credit: the largest of a slot are kept");
    const struct unmask_params none = {.credit_weight = 0, .credit_decay = 0.8,
                                       .credit_power = 0.2};
    a = answer_of(9, 0.4, 23, 0.4);
    r = unmask_read(UNMASK_CREDIT, &none, &a, &s);
    ok(r.id == 9 && !(r.confidence < exp(a.log_prob)) && !(r.confidence > exp(a.log_prob)),
       "credit, weight 0: the answer as it is");
    const double sure[] = {0.95, 0.9, 0.5};
    ok(taken(UNMASK_CREDIT, sure, 3, 0, p) == 2, "credit: then a threshold");
}

/* A rule that remembers, pass after pass on one canvas. Slots count from 0. */
struct played {
    double kept[UNMASK_KEPT];
    struct slot_kept slot[MOST];
    int32_t step, back[MOST];
    size_t backs;
};

/* A pass over the masked slots asked[0..n) and the ids at asked[n..n+m). Returns the slots taken as
 * digits, best first; m->back gets the slots that are masked again. */
static int pass(struct played *m, enum unmask rule, const struct unmask_params *p,
                const int32_t *asked, const double *confidence, size_t n, size_t held)
{
    int32_t pick[MOST];
    for (size_t k = 0; k < n; k++)
        pick[k] = (int32_t)k;
    for (size_t k = 1; k < n; k++)
        for (size_t j = k; j > 0 && confidence[pick[j]] > confidence[pick[j - 1]]; j--) {
            int32_t was = pick[j];
            pick[j] = pick[j - 1];
            pick[j - 1] = was;
        }
    m->backs = 0;
    const struct offers o = {.n = n, .m = held, .confidence = confidence, .pick = pick,
                             .asked = asked, .back = m->back, .backs = &m->backs,
                             .slot = unmask_has(rule, UNMASK_KEEPS) ? m->slot : NULL,
                             .kept = m->kept, .step = m->step++};
    size_t count = unmask_count(rule, p, &o);
    int slots = 0;
    for (size_t k = 0; k < count; k++)
        slots = 10 * slots + asked[pick[k]] + 1;
    for (size_t k = 0; k < m->backs; k++)
        m->back[k] = asked[m->back[k]];
    return slots;
}

static void test_slowfast(void)
{
    const struct unmask_params p = {.slowfast_sure = 0.85, .slowfast_reach = 0.1};
    struct played m = {.step = 0};
    const int32_t all[] = {0, 1, 2, 3, 4, 5};
    const double first[] = {0.5, 0.9, 0.3, 0.2, 0.05, 0.01};
    ok(pass(&m, UNMASK_SLOWFAST, &p, all, first, 6, 0) == 2, "slowfast: slow, the best one");
    const int32_t then[] = {0, 2, 3, 4, 5};
    const double second[] = {0.6, 0.95, 0.2, 0.3, 0.01};
    ok(pass(&m, UNMASK_SLOWFAST, &p, then, second, 5, 0) == 3, "and once more: 4, 5: they agree");
    const int32_t rest[] = {0, 3, 4, 5};
    const double third[] = {0.9, 0.86, 0.99, 0.9};
    ok(pass(&m, UNMASK_SLOWFAST, &p, rest, third, 4, 0) == 14,
       "fast: all that is sure before slot 4, and nothing behind it");
    const int32_t last[] = {4, 5};
    const double fourth[] = {0.5, 0.9};
    ok(pass(&m, UNMASK_SLOWFAST, &p, last, fourth, 2, 0) == 6 && near(m.kept[SLOWFAST_START], 4),
       "slow again from the span's end");
    ok(pass(&m, UNMASK_SLOWFAST, &p, last, fourth, 1, 0) == 5, "the last one");
    struct played far = {.step = 0};
    for (int i = 0; i < SLOWFAST_PASSES; i++) { /* horizons 6, 1, 6, 1: they never agree */
        const double odd[] = {0.5, 0, 0, 0, 0, i % 2 ? 0 : 0.4};
        pass(&far, UNMASK_SLOWFAST, &p, all, odd, 6, 0);
    }
    ok(near(far.kept[SLOWFAST_END], 3), "after 8 passes the mean will do: %g",
       far.kept[SLOWFAST_END]);
    const double none[] = {0.2, 0.5, 0.3, 0.9, 0.9, 0.9};
    ok(pass(&far, UNMASK_SLOWFAST, &p, all, none, 6, 0) == 2, "fast: at least the span's best");
    const int32_t before[] = {1};
    struct played late = {.kept = {4, 6, 0, 0}, .step = 3};
    ok(pass(&late, UNMASK_SLOWFAST, &p, before, first, 1, 0) == 2,
       "masks before the span are not left");
}

static void test_saber(void)
{
    const struct unmask_params p = {.saber_least = 2};
    struct played m = {.step = 0};
    const int32_t all[] = {0, 1, 2, 3, 4, 5};
    const double first[] = {0.5, 0.9, 0.3, 0.7, 0.6, 0.1};
    ok(pass(&m, UNMASK_SABER, &p, all, first, 6, 0) == 24 && m.backs == 0,
       "saber: at first the two best");
    const int32_t then[] = {0, 2, 4, 5, 1, 3}; /* 1 and 3 are held; 3 fell from 0.7 to 0.6 */
    const double second[] = {0.85, 0.9, 0.82, 0.1, 0.95, 0.6};
    ok(pass(&m, UNMASK_SABER, &p, then, second, 4, 2) == 315 && m.backs == 1 && m.back[0] == 3,
       "then all above the mean 0.8; what fell most is masked again");
    ok(near(m.kept[SABER_SLOTS], 5) && near(m.kept[SABER_SUM], 0.9 + 0.7 + 0.85 + 0.9 + 0.82),
       "the mean is of the times that slots were committed last");
    const int32_t third[] = {3, 5, 0, 1, 2, 4};
    const double now[] = {0.8, 0.1, 0.8, 0.8, 0.9, 0.82}; /* 1 fell by 0.15, 0 by 0.05 */
    ok(pass(&m, UNMASK_SABER, &p, third, now, 2, 4) == 46 && m.back[0] == 1 && m.backs == 1 &&
           near(m.kept[SABER_SUM], 0.9 + 0.8 + 0.85 + 0.9 + 0.82 + 0.1),
       "the drop counts from pass to pass; a slot counts once");
    const int32_t one[] = {1, 0, 2};
    const double low[] = {0.2, 0.1, 0.1};
    ok(pass(&m, UNMASK_SABER, &p, one, low, 1, 2) == 2 && m.backs == 0,
       "fewer are masked again than were committed");
    const struct unmask_params single = {.saber_least = 1, .saber_floor = 1};
    struct played alone = {.step = 0};
    pass(&alone, UNMASK_SABER, &single, all, first, 6, 0);
    ok(pass(&alone, UNMASK_SABER, &single, then, second, 4, 2) == 3 && alone.backs == 0,
       "least 1, floor 1: one by one, none comes back");
}

/* Saber written out from its description: a block of slots, pass after pass. */
struct saber {
    int held[MOST], ever[MOST];          /* has an id now; had one */
    double then[MOST], before[MOST];     /* confidence of its commit; probability a pass ago */
};

/* The slot of a set in which v is largest, of equals the first; -1: the set is empty. */
static int largest(unsigned set, const double *v)
{
    int best = -1;
    for (int i = 0; i < MOST; i++)
        if (set >> i & 1 && (best < 0 || v[i] > v[best]))
            best = i;
    return best;
}

/* A pass over the block of slots from..to-1 with the confidences now[]: which are committed, and
 * which are masked again. */
static void saber_pass(struct saber *s, const double *now, int from, int to, double bottom,
                       int least, unsigned *commit, unsigned *back)
{
    unsigned masked = 0, held = 0;
    double sum = 0, threshold, fell[MOST];
    int known = 0, taken = 0;
    for (int i = 0; i < MOST; i++) {
        known += s->ever[i];
        sum += s->ever[i] ? s->then[i] : 0;
        fell[i] = s->before[i] - now[i];
        if (i >= from && i < to)
            *(s->held[i] ? &held : &masked) |= 1u << i;
    }
    threshold = fmax(known ? sum / known : 1, bottom);
    *commit = *back = 0;
    for (int i; (i = largest(masked & ~*commit, now)) >= 0 &&
                (taken < least || now[i] > threshold); taken++)
        *commit |= 1u << i;
    int again = (int)fmax(least / 2, ceil(taken / 8.0));
    for (again = again < taken ? again : taken - 1; again > 0 && (held & ~*back); again--)
        *back |= 1u << largest(held & ~*back, fell);
    for (int i = from; i < to; i++) {
        s->before[i] = now[i];
        if (*commit >> i & 1) {
            s->held[i] = s->ever[i] = 1;
            s->then[i] = now[i];
        }
        if (*back >> i & 1)
            s->held[i] = 0;
    }
}

/* Two blocks of a canvas on random confidences, coarse so that some are equal: 1 when the rule does
 * what is written out, and ends a block within as many passes as it has slots. *again: slots that
 * were masked again. */
static int saber_agrees(struct rng *r, double bottom, int least, int *again)
{
    const struct unmask_params p = {.saber_floor = bottom, .saber_least = least};
    struct played m = {.step = 0};
    struct saber s = {{0}, {0}, {0}, {0}};
    for (int from = 0; from < MOST; from += MOST / 2)
        for (int passes = 0;; passes++) {
            int32_t asked[MOST];
            double now[MOST] = {0}, confidence[MOST];
            size_t n = 0, masks = 0;
            for (int held = 0; held < 2; held++)
                for (int i = from; i < from + MOST / 2; i++)
                    if (s.held[i] == held) {
                        now[i] = (double)rng_below(r, 17) / 16;
                        masks += !held;
                        confidence[n] = now[i];
                        asked[n++] = i;
                    }
            if (!masks)
                break;
            unsigned commit, back, took = 0, returned = 0;
            int digits = pass(&m, UNMASK_SABER, &p, asked, confidence, masks, n - masks);
            for (; digits; digits /= 10)
                took |= 1u << (digits % 10 - 1);
            for (size_t k = 0; k < m.backs; k++)
                returned |= 1u << m.back[k];
            saber_pass(&s, now, from, from + MOST / 2, bottom, least, &commit, &back);
            if (took != commit || returned != back || passes == MOST / 2)
                return 0;
            *again += (int)m.backs;
        }
    return 1;
}

static void test_saber_written_out(void)
{
    enum { CANVASES = 3000 };
    struct rng r = {.seed = 11};
    int alike = 0, again = 0;
    for (int i = 0; i < CANVASES; i++)
        alike += saber_agrees(&r, (double)(i % 5) / 4, 1 + i % 4, &again);
    ok(alike == CANVASES && again > CANVASES / 4, "saber: %d of %d canvases as written out from "
       "the publication, %d slots masked again", alike, (int)CANVASES, again);
}

static void test_wino(void)
{
    const struct unmask_params p = {.wino_draft = 0.6, .wino_verify = 0.9};
    struct played m = {.step = 0};
    const int32_t all[] = {0, 1, 2, 3, 4, 5, 6};
    const double first[] = {0.5, 0.9, 0.65, 0.7, 0.95, 0.8, 0.75};
    ok(pass(&m, UNMASK_WINO, &p, all, first, 7, 0) == 52674, "wino: at most 5 of 7 masks");
    const int32_t then[] = {0, 2, 1, 3, 4, 5, 6};
    const double second[] = {0.61, 0.7, 0.3, 0.95, 0.1, 0.2, 0.2};
    ok(pass(&m, UNMASK_WINO, &p, then, second, 2, 5) == 31 && m.backs == 4 && m.back[0] == 4 &&
           m.back[1] == 5 && m.back[2] == 6 && m.back[3] == 1,
       "all below 0.9 come back, the lowest first");
    const int32_t third[] = {1, 4, 5, 6, 0, 2, 3};
    const double now[] = {0.7, 0.7, 0.1, 0.1, 0.5, 0.2, 0.3};
    ok(pass(&m, UNMASK_WINO, &p, third, now, 4, 3) == 12 + 13 && m.backs == 1 && m.back[0] == 2,
       "fewer than the pass before took: 1 of 3");
    const int32_t fourth[] = {2, 5, 6, 0, 1, 3, 4};
    const double weak[] = {0.5, 0.55, 0.1, 0.1, 0.1, 0.1, 0.1};
    ok(pass(&m, UNMASK_WINO, &p, fourth, weak, 3, 4) == 6 && m.backs == 0,
       "who takes one alone verifies nothing");
}

/* Four slots, pass after pass; a divergence of 0.02 is not stable, the first pass has none. */
static void test_klass(void)
{
    const double confidence[] = {0.95, 0.5, 0.9, 0.99};
    const int32_t asked[] = {5, 6, 7, 8};
    struct slot_kept slot[9] = {{{0}, {0}}};
    const struct unmask_params p = {.conf_threshold = 0.9, .kl_threshold = 0.01, .kl_history = 2};
    static const float divergence[][4] = {
        {0, 0, 0, 0}, {0.001f, 0, 0, 0.001f}, {0.001f, 0, 0, 0.02f}, {0, 0, 0, 0.001f},
        {0, 0, 0, 0.009f}};
    static const size_t takes[] = {1, 1, 1, 1, 2};
    static const int32_t first[] = {3, 3, 0, 0, 0};
    int good = 1;
    for (int32_t pass = 0; pass < 5; pass++) {
        struct head_row answer[4] = {{0}};
        int32_t pick[] = {3, 0, 2, 1};
        for (size_t k = 0; k < 4; k++) {
            struct slot_kept *s = &slot[asked[k]];
            answer[k].divergence = divergence[pass][k];
            good &= unmask_klass_before(s, pass) == (pass ? (int32_t)k : -1);
            unmask_klass_note(s, k, pass, pass && (double)answer[k].divergence < p.kl_threshold);
        }
        const struct offers o = {.n = 4, .answer = answer, .confidence = confidence, .pick = pick,
                                 .asked = asked, .slot = slot};
        good &= unmask_count(UNMASK_KLASS, &p, &o) == takes[pass] && pick[0] == (pass < 4 ?
                first[pass] : 3);
    }
    ok(good, "klass: sure, and stable for two passes; 0.9 is not above 0.9; else the best one");
    ok(unmask_klass_before(&slot[5], 5) == 0 && unmask_klass_before(&slot[5], 6) < 0 &&
           unmask_klass_before(&slot[0], 1) < 0, "a slot is compared with the pass before only");
}

/* What a rule may ask of an answer: everything the head says, and its slot. */
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
    ok(pick[0] == 0 && pick[1] == 1, "and a rule may rank them anew");
}

static void test_schedule(void)
{
    size_t b[8];
    schedule_uniform(8, 3, b);
    ok(b[0] == 3 && b[1] == 3 && b[2] == 2, "8 masks in 3 steps: the remainder comes first");
    schedule_uniform(3, 5, b);
    ok(b[0] == 1 && b[1] == 1 && b[2] == 1 && b[3] == 0 && b[4] == 0, "3 masks in 5 steps");
    schedule_uniform(0, 2, b);
    ok(b[0] == 0 && b[1] == 0, "no masks");
    int sums = 1;
    for (size_t m = 0; m < 40; m++)
        for (size_t steps = 1; steps <= 8; steps++) {
            size_t sum = 0;
            schedule_uniform(m, steps, b);
            for (size_t i = 0; i < steps; i++)
                sum += b[i];
            sums &= sum == m;
        }
    ok(sums, "a schedule always sums to the masks");
}

/* "1 1 2": for m masks in so many steps. */
static const char *budget(enum pace pace, size_t m, size_t steps, char text[80])
{
    size_t b[32], at = 0;
    schedule_budget(pace, m, steps, b);
    for (size_t i = 0; i < steps; i++)
        at += (size_t)snprintf(text + at, 80 - at, i ? " %zu" : "%zu", b[i]);
    return text;
}

/* Every budget sums to the masks, commits at each step as long as there are masks, and lies within
 * one of the quota of its pace where that is above the minimum. */
static void test_paces(void)
{
    char text[80];
    ok(!strcmp(budget(SCHEDULE_COSINE, 16, 8, text), "1 1 1 2 2 3 3 3"), "cosine: %s", text);
    ok(!strcmp(budget(SCHEDULE_COSINE, 128, 16, text), "1 2 3 4 5 7 8 8 9 10 11 11 12 12 12 13"),
       "cosine of 128 in 16: %s", text);
    ok(!strcmp(budget(SCHEDULE_FRONT, 16, 8, text), "3 3 2 2 2 2 1 1"), "front: %s", text);
    ok(!strcmp(budget(SCHEDULE_FRONT, 5, 1, text), "5"), "front, one step: %s", text);
    ok(!strcmp(budget(SCHEDULE_FRONT, 3, 5, text), "1 1 1 0 0"), "more steps than masks: %s", text);
    int sums = 1, ordered = 1;
    for (int pace = 0; pace < SCHEDULE_COUNT; pace++)
        for (size_t m = 0; m < 60; m++)
            for (size_t steps = 1, b[16]; steps <= 16; steps++) {
                size_t sum = 0;
                schedule_budget((enum pace)pace, m, steps, b);
                for (size_t i = 0; i < steps; i++) {
                    sum += b[i];
                    sums &= b[i] > 0 || sum == m;
                    if (i > 0 && i < m)
                        ordered &= pace == SCHEDULE_COSINE ? b[i] >= b[i - 1] : b[i] <= b[i - 1];
                }
                sums &= sum == m;
            }
    ok(sums && ordered, "paces sum to the masks, without idle steps before the end");
}

static void test_blocks(void)
{
    size_t s[5];
    schedule_blocks(32, 4, 16, 0.5, s); /* quotas 17.1 8.5 4.3 2.1 */
    ok(s[0] == 16 && s[1] == 9 && s[2] == 5 && s[3] == 2, "steps of blocks: %zu %zu %zu %zu", s[0],
       s[1], s[2], s[3]);
    schedule_blocks(16, 5, 8, 0.01, s);
    ok(s[0] == 8 && s[1] + s[2] + s[3] + s[4] == 8 && s[4] >= 1, "none without a step");
    schedule_blocks(10, 4, 16, 2, s);
    ok(s[0] == 1 && s[1] == 1 && s[2] == 3 && s[3] == 5, "a decay above 1 grows");
    int sums = 1, alike = 1;
    for (size_t steps = 5; steps < 200; steps++)
        for (int d = 1; d <= 20; d++) {
            schedule_blocks(steps, 5, 16, 0.1 * d, s);
            sums &= s[0] + s[1] + s[2] + s[3] + s[4] == steps && s[0] && s[4];
            for (size_t i = 0; i < 5 && d == 10; i++)
                alike &= s[i] == steps / 5 + (i < steps % 5);
        }
    ok(sums && alike, "the total is kept; decay 1: all alike");
}

/* The words of a row of settings, by the table that numbers them. */
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
                                             [UNMASK_REPLAY] = "replay",
                                             [UNMASK_THRESHOLD] = "threshold",
                                             [UNMASK_FACTOR] = "factor",
                                             [UNMASK_ENTROPY_BOUND] = "entropy_bound",
                                             [UNMASK_HIERARCHICAL] = "hierarchical",
                                             [UNMASK_PROPHET] = "prophet",
                                             [UNMASK_CREDIT] = "credit",
                                             [UNMASK_SLOWFAST] = "slowfast",
                                             [UNMASK_SABER] = "saber",
                                             [UNMASK_WINO] = "wino",
                                             [UNMASK_KLASS] = "klass"};
    const char *policies[CACHE_COUNT];
    for (size_t k = 0; k < CACHE_COUNT; k++)
        policies[k] = cache_policies[k]->name;
    words("unmask", rules, UNMASK_COUNT);
    const char *const suffixes[SUFFIX_COUNT] = {[SUFFIX_ALL] = "all", [SUFFIX_WINDOW] = "window",
                                                [SUFFIX_DROPOUT] = "dropout",
                                                [SUFFIX_GROW] = "grow"};
    const char *const paces[SCHEDULE_COUNT] = {[SCHEDULE_UNIFORM] = "uniform",
                                               [SCHEDULE_COSINE] = "cosine",
                                               [SCHEDULE_FRONT] = "front"};
    words("cache", policies, CACHE_COUNT);
    words("suffix", suffixes, SUFFIX_COUNT);
    words("pace", paces, SCHEDULE_COUNT);
}

int main(void)
{
    test_schedule_rule();
    test_threshold_rule();
    test_threshold_decay();
    test_threshold_picks();
    test_factor_rule();
    test_entropy_bound();
    test_hierarchical();
    test_prophet();
    test_credit();
    test_slowfast();
    test_saber();
    test_saber_written_out();
    test_wino();
    test_klass();
    test_offers();
    test_schedule();
    test_paces();
    test_blocks();
    test_words();
    return tap_done();
}
