/* test-unmask-kept.c - tests the unmask rules that remember earlier passes or mask tokens again:
 * pass by pass on confidences made by hand, and Saber as its publication describes it. */
#include "kernels/advance.h"
#include "lib/base/rng.h"
#include "tests/tap.h"

enum { MOST = 8 };

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

/* Decay 0.8, power 0.2, weight 0.7, computed by hand. In the third pass the second best token leads
 * by its credit. */
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
    ok(near((double)s.value[0], c), "credit: decays, and grows with the next pass");
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
    for (int i = 0; i < CREDITS; i++)
        found += s.id[i] == 7 || s.id[i] == 20;
    ok(found == 1 && s.id[0] != s.id[1], "credit: the largest of a slot are kept");
    const struct unmask_params none = {.credit_weight = 0, .credit_decay = 0.8,
                                       .credit_power = 0.2};
    a = answer_of(9, 0.4, 23, 0.4);
    r = unmask_read(UNMASK_CREDIT, &none, &a, &s);
    ok(r.id == 9 && !(r.confidence < exp(a.log_prob)) && !(r.confidence > exp(a.log_prob)),
       "credit, weight 0: the answer is unchanged");
    const double sure[] = {0.95, 0.9, 0.5};
    int32_t pick[] = {0, 1, 2};
    const struct offers o = {.n = 3, .confidence = sure, .pick = pick};
    ok(unmask_count(UNMASK_CREDIT, &p, &o) == 2, "credit: then a threshold");
}

/* The state of a rule that remembers, pass after pass on one canvas. Slots count from 0. */
struct played {
    double kept[UNMASK_KEPT];
    struct slot_kept slot[MOST];
    int32_t step, back[MOST];
    size_t backs;
};

/* Runs a pass over the masked slots asked[0..n) and the filled slots asked[n..n+held). Returns the
 * taken slots as digits, best first. m->back gets the slots that are masked again. */
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

/* Runs the rule joint. Slot k has ids[k] (-1: a mask), its answer is best[k] with probability
 * sure[k]. Returns what the rule takes. *edits: the slots that the rule edits, as digits. */
static size_t joint(struct played *m, double most, const int32_t *ids, const int32_t *best,
                    const double *sure, int *edits, int32_t *done)
{
    const struct unmask_params p = {.threshold = 0.7, .edit_threshold = 0.5, .edit_passes = most};
    struct head_row answer[MOST] = {0};
    double confidence[MOST];
    int32_t asked[MOST], pick[MOST];
    size_t n = 0, all = 0;
    for (int held = 0; held < 2; held++)
        for (int32_t k = 0; k < 3; k++)
            if ((ids[k] >= 0) == held) {
                n += !held;
                pick[all] = (int32_t)all;
                answer[all].id = best[k];
                confidence[all] = sure[k];
                asked[all++] = k;
            }
    m->backs = 0;
    const struct offers o = {.n = n, .m = all - n, .answer = answer, .confidence = confidence,
                             .pick = pick, .asked = asked, .token = ids, .back = m->back,
                             .backs = &m->backs, .done = done, .kept = m->kept,
                             .step = m->step++};
    const size_t taken = unmask_count(UNMASK_JOINT, &p, &o);
    *edits = 0;
    for (size_t k = 0; k < m->backs; k++)
        *edits = 10 * *edits + asked[m->back[k]] + 1;
    return taken;
}

static void test_joint(void)
{
    struct played m = {.step = 0};
    int edits;
    int32_t done;
    ok(joint(&m, 2, (int32_t[]){-1, -1, -1}, (int32_t[]){4, 5, 6}, (double[]){0.3, 0.2, 0.1},
             &edits, &done) == 1 && !edits && !done, "joint: no answer is sure, so the best");
    ok(joint(&m, 2, (int32_t[]){4, -1, -1}, (int32_t[]){9, 5, 6}, (double[]){0.6, 0.8, 0.71},
             &edits, &done) == 2 && edits == 1 && !done, "joint: two sure answers, and an edit");
    ok(!joint(&m, 2, (int32_t[]){9, 5, 6}, (int32_t[]){9, 8, 7}, (double[]){0.9, 0.5, 0.51},
              &edits, &done) && edits == 3 && !done, "a full block is edited above 0.5");
    ok(!joint(&m, 2, (int32_t[]){9, 5, 7}, (int32_t[]){9, 8, 6}, (double[]){0.9, 0.7, 0.6},
              &edits, &done) && edits == 23 && done,
       "a full block ends with its second pass without a mask");
    m.step = 0;
    ok(!joint(&m, 2, (int32_t[]){9, 8, 6}, (int32_t[]){9, 5, 6}, (double[]){0.9, 0.4, 0.6},
              &edits, &done) && !edits && done,
       "a full block ends with its first pass that edits nothing");
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
    ok(pass(&m, UNMASK_SLOWFAST, &p, then, second, 5, 0) == 3,
       "slowfast: slow again, 4 and 5 agree");
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
    const int32_t then[] = {0, 2, 4, 5, 1, 3}; /* 1 and 3 have ids; 3 fell from 0.7 to 0.6 */
    const double second[] = {0.85, 0.9, 0.82, 0.1, 0.95, 0.6};
    ok(pass(&m, UNMASK_SABER, &p, then, second, 4, 2) == 315 && m.backs == 1 && m.back[0] == 3,
       "saber: all above the mean 0.8; the slot that fell most is masked again");
    ok(near(m.kept[SABER_SLOTS], 5) && near(m.kept[SABER_SUM], 0.9 + 0.7 + 0.85 + 0.9 + 0.82),
       "saber: the mean is over the last commit of each slot");
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
    int held[MOST], ever[MOST];          /* 1: has an id now; had one before */
    double then[MOST], before[MOST];     /* confidence of the commit; probability a pass ago */
};

/* The slot of a set with the largest v, the first of equals; -1 if the set is empty. */
static int largest(unsigned set, const double *v)
{
    int best = -1;
    for (int i = 0; i < MOST; i++)
        if (set >> i & 1 && (best < 0 || v[i] > v[best]))
            best = i;
    return best;
}

/* Runs a pass over the block of slots from..to-1 with the confidences now[]. *commit: the slots
 * that are committed; *back: the slots that are masked again. */
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

/* Runs two blocks of a canvas on random confidences, coarse so that some are equal. Returns 1 if
 * the rule does what saber_pass() does, and ends a block after at most as many passes as it has
 * slots. *again: number of slots that were masked again. */
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
       "a pass that takes one token verifies nothing");
}

/* Four slots, pass after pass. A divergence of 0.02 is not stable; the first pass has no
 * divergence. */
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

/* Three slots in five steps. The best tokens of the third step are those of the second. */
static void test_sched(void)
{
    const struct unmask_params p = {.sched_high = 4, .sched_low = 2};
    struct slot_kept slot[3] = {{{0}, {0}}};
    struct head_row answer[3] = {{.id = 5, .gap = 4}, {.id = 6, .gap = 3}, {.id = 0, .gap = 3}};
    const double confidence[] = {0.9, 0.8, 0.7};
    const int32_t asked[] = {0, 1, 2};
    int32_t pick[] = {0, 1, 2};
    struct offers o = {.n = 3, .answer = answer, .confidence = confidence, .pick = pick,
                       .asked = asked, .slot = slot, .steps = 5, .budget = 1};
    ok(unmask_count(UNMASK_SCHED, &p, &o) == 1, "sched: nothing stays in the first step");
    o.step = 1; /* the bound is 4 cos^2 + 2 sin^2 of pi/8: 3.71; the mean 3.33 */
    ok(unmask_count(UNMASK_SCHED, &p, &o) == 1, "sched: they stay, but lead by too little");
    o.step = 2; /* 3 */
    answer[2].id = 1;
    ok(unmask_count(UNMASK_SCHED, &p, &o) == 1, "sched: enough, but one has changed");
    ok(unmask_count(UNMASK_SCHED, &p, &o) == 3, "sched: enough, and all stay");
    o.step = 1; /* 2 + 2 exp(-2/4) = 3.21 */
    ok(unmask_count(UNMASK_SCHED, &(struct unmask_params){.sched_high = 4, .sched_low = 2,
                                                          .sched_rate = 2}, &o) == 3,
       "sched: an exponential falls sooner");
}

/* Two slots. The best token of the first slot stays; its distribution moves in the second step. */
static void test_less(void)
{
    const struct unmask_params p = {.less_sure = 0.6, .less_drift = 0.01, .less_history = 1};
    const struct head_top a = {{7, 8, 9}, {0.7f, 0.2f, 0.1f}}, b = {{7, 9, 4}, {0.7f, 0.2f, 0.1f}};
    struct slot_kept slot[2] = {{{0}, {0}}};
    const double confidence[] = {0.7, 0.9};
    const int32_t asked[] = {0, 1};
    int32_t pick[] = {1, 0}, before = 0;
    struct offers o = {.n = 2, .confidence = confidence, .pick = pick, .asked = asked,
                       .slot = slot, .steps = 9, .budget = 2};
    const struct head_top *said[] = {&a, &b, &b, &a};
    const size_t takes[] = {2, 2, 1, 2};
    int good = 1;
    for (o.step = 0; o.step < 4; o.step++) {
        struct head_top other = {{20 + o.step}, {0.9f}}; /* a new best token in every step */
        unmask_less_note(&slot[0], said[o.step], o.step == 0, p.less_drift, p.less_history);
        unmask_less_note(&slot[1], &other, o.step == 0, p.less_drift, p.less_history);
        good &= unmask_count(UNMASK_LESS, &p, &o) == takes[o.step];
        before += o.step == 2 && pick[0] == 0;
    }
    ok(good && before, "less: the slot that stays and is still, else the budget of the step");
    o.step = 8;
    ok(unmask_count(UNMASK_LESS, &p, &o) == 2, "less: the last step commits all");
    /* 8 leaves with 0.2, 9 goes from 0.1 to 0.2, 4 comes with 0.1 */
    unmask_less_note(&slot[0], &a, 1, 1, 1);
    ok(near(unmask_less_drift(&b, &slot[0]),
            (0.3 * log(2) + 0.1 * log(2.0 / 3) + 0.2 * log(4.0 / 3)) / 2),
       "less: the divergence of two lists, %g", unmask_less_drift(&b, &slot[0]));
}

/* Slots 3, 4, 6 of a block. The run has two slots; the check gives slot 4 another id. */
static void test_s2d2(void)
{
    const struct unmask_params p = {.threshold = 0.5, .check_span = 2};
    const double confidence[] = {0.4, 0.6, 0.2};
    const int32_t asked[] = {3, 4, 6};
    struct slot_kept slot[8] = {{{0}, {0}}};
    struct head_row answer[3] = {{.id = 11}, {.id = 12}, {.id = 13}};
    int32_t token[8] = {0, 0, 0, 11, 99, 0, 13, 0}, pick[] = {1, 0, 2}, back[3], done = 0;
    size_t backs = 0;
    struct offers o = {.n = 3, .confidence = confidence, .pick = pick, .asked = asked,
                       .answer = answer, .slot = slot, .token = token, .back = back,
                       .backs = &backs, .done = &done};
    ok(unmask_count(UNMASK_S2D2, &p, &o) == 3 && !done && slot[3].id[0] == 1 &&
           slot[6].id[0] == 2, "s2d2: all slots get a draft, the first run is checked");
    o.n = 0;
    o.m = 3;
    ok(unmask_count(UNMASK_S2D2, &p, &o) == 0 && backs == 2 && back[0] == 1 && back[1] == ~2 &&
           !done && !slot[4].id[0], "s2d2: one draft is replaced, a later one is a mask again");
    backs = 0;
    ok(unmask_count(UNMASK_S2D2, &p, &o) == 0 && backs == 0 && done,
       "s2d2: without drafts the block is done");
    o.n = 3;
    o.m = 0;
    done = 0;
    ok(unmask_count(UNMASK_S2D2, &(struct unmask_params){.threshold = 0.5, .check_span = 3}, &o) ==
               1 && pick[0] == 1 && !done && !slot[4].id[0],
       "s2d2: a shorter run: the answers above the threshold");
}

/* Slots 0 and 1 of the canvas have sure ids, 2 to 5 are masks. Slot 2 attends to 1; 4 and 5 attend
 * to each other; 3 attends to 0; all attend to 0. */
static void test_dawn(void)
{
    enum { N = 6 };
    static const float map[N * N] = {[2 * N + 1] = 0.3f, [3 * N] = 0.3f, [4 * N + 5] = 0.3f,
                                     [5 * N + 2] = 0.3f};
    static const float mean[N] = {0.9f, 0, 0, 0, 0, 0};
    const int32_t row_of[N] = {0, 1, 2, 3, 4, 5}, asked[] = {2, 3, 4, 5, 0, 1};
    const double confidence[] = {0.95, 0.5, 0.6, 0.8, 1, 1};
    const struct unmask_params p = {.threshold = 0.9, .dawn_sink = 0.1, .dawn_edge = 0.2,
                                    .dawn_induce = 0.4, .dawn_low = 0.5};
    struct slot_kept slot[N] = {{{0}, {0}}};
    int32_t pick[] = {0, 3, 2, 1};
    struct offers o = {.n = 4, .m = 2, .confidence = confidence, .pick = pick, .asked = asked,
                       .slot = slot, .links = {map, mean, row_of, N, 0}};
    ok(unmask_dawn_depends(&o.links, asked, 0, 5, 0.1, 0.2) &&
           !unmask_dawn_depends(&o.links, asked, 1, 4, 0.1, 0.2),
       "dawn: a slot depends on slots that it attends to, except those all slots attend to");
    ok(unmask_count(UNMASK_DAWN, &p, &o) == 3 && pick[0] == 0 && pick[1] == 3 && pick[2] == 1,
       "dawn: the sure one, the best of the others, and one apart from it");
    slot[2].id[DAWN_INDUCED] = slot[3].id[DAWN_INDUCED] = 1;
    pick[0] = 0, pick[1] = 3, pick[2] = 2, pick[3] = 1;
    ok(unmask_count(UNMASK_DAWN, &p, &o) == 3 && pick[1] + pick[2] == 3,
       "dawn: an answer waits if it depends on one that is sure and induced");
    const double low[] = {0.1, 0.2, 0.3, 0.4, 1, 1};
    o.confidence = low;
    pick[0] = 3, pick[1] = 2, pick[2] = 1, pick[3] = 0;
    ok(unmask_count(UNMASK_DAWN, &p, &o) == 1 && pick[0] == 3, "dawn: at least the best one");
}

int main(void)
{
    test_credit();
    test_slowfast();
    test_saber();
    test_joint();
    test_saber_written_out();
    test_wino();
    test_klass();
    test_sched();
    test_less();
    test_s2d2();
    test_dawn();
    return tap_done();
}
