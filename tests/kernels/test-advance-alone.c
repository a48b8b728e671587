/* test-advance-alone.c - compares canvases that advance.h runs in one loop on the host with each
 * canvas alone, computed in the plainest way. The plain way shares no state among canvases, lays no
 * rows and sorts nothing: it picks the best remaining answer again and again. */
#include "tests/kernels/canvases.h"

static size_t best_left(const double *score, size_t n, const unsigned char *taken)
{
    size_t best = n;
    for (size_t i = 0; i < n; i++)
        if (!taken[i] && (best == n || score[i] > score[best]))
            best = i;
    return best;
}

/* The score of an answer by every order, in the plain way. */
static double score_of(const struct way *y, const struct head_row *a, uint64_t seed, uint64_t key)
{
    if (y->order == ORDER_RANDOM)
        return rng_unit(rng_at(seed, key, 0));
    return exp(a->log_prob);
}

/* Picks answers by every rule, in the plain way. sure: the confidences. A threshold takes all
 * answers that reach it, and at least the best. */
static void pick(const struct way *y, const double *score, const double *sure, size_t n,
                 size_t budget, unsigned char *taken)
{
    if (y->rule == UNMASK_THRESHOLD) {
        int any = 0;
        for (size_t i = 0; i < n; i++)
            any |= taken[i] = sure[i] >= y->params.threshold;
        if (!any && n)
            taken[best_left(score, n, taken)] = 1;
        return;
    }
    for (size_t j = 0; j < n; j++) {
        size_t best = best_left(score, n, taken);
        double least = 1 - y->params.factor / (double)(j + 2);
        if (y->rule == UNMASK_SCHEDULE ? j >= budget : j > 0 && sure[best] < least)
            return;
        taken[best] = 1;
    }
}

/* Takes the answers to the masked slots before `end`. Returns -1 if an answer is bad. */
static int alone_commit(const struct way *y, struct alone *c, int32_t i, int32_t end,
                        const int32_t *budget, uint64_t seed)
{
    int32_t slot[64];
    double score[64], sure[64];
    unsigned char taken[64] = {0};
    size_t n = 0;
    for (int32_t s = 0; s < end; s++) {
        struct head_row a = answer_of(y, i, c->passes, s);
        if (c->token[c->prompt + s] != MASK)
            continue;
        if (a.bad)
            return -1;
        uint64_t key = rng_at(c->key, (uint64_t)c->passes, (uint64_t)s);
        score[n] = score_of(y, &a, seed, key);
        sure[n] = exp(a.log_prob);
        slot[n++] = s;
    }
    pick(y, score, sure, n, c->step < y->steps ? (size_t)budget[c->step] : 0, taken);
    for (size_t k = 0; k < n; k++)
        if (taken[k]) {
            int32_t id = answer_of(y, i, c->passes, slot[k]).id;
            c->token[c->prompt + slot[k]] = id;
            c->written += id != MASK;
        }
    return 0;
}

static int alone_block_done(const struct way *y, const struct alone *c, int32_t end,
                            const int32_t *budget)
{
    if (y->rule == UNMASK_SCHEDULE)
        return c->step == y->steps || budget[c->step] == 0;
    for (int32_t s = 0; s < end; s++)
        if (c->token[c->prompt + s] == MASK)
            return c->step == y->block;
    return 1;
}

static void alone_pass(const struct way *y, struct alone *c, int32_t i, const int32_t *budget,
                       uint64_t seed)
{
    int32_t end = (c->block + 1) * y->block;
    c->written = 0;
    if (alone_commit(y, c, i, end, budget, seed)) {
        c->bad = 1;
        c->live = 0;
        return;
    }
    c->passes++;
    c->step++;
    if (alone_block_done(y, c, end, budget)) {
        c->block++;
        c->step = 0;
    }
    int full = c->block * y->block == y->gen;
    while (c->readable < y->gen && (full || c->token[c->prompt + c->readable] != MASK))
        c->met |= c->token[c->prompt + c->readable++] == EOS;
    if (full || (c->met && y->stop))
        c->live = 0;
}

static int same_canvas(const struct together *t, const struct alone *a, int32_t i)
{
    const struct canvas_state *c = &t->canvas[i];
    return !memcmp(t->token + c->first, a->token, (size_t)c->len * sizeof *a->token) &&
           c->live == a->live && c->bad == a->bad && c->met_stop == a->met &&
           c->readable == a->readable && c->written == a->written && c->block == a->block &&
           c->step == a->step && c->passes == a->passes;
}

/* Returns 1 if the next questions of part i equal those of its canvas alone, slot by slot. */
static int same_question(const struct together *t, const struct alone *a, size_t i,
                         const struct way *y)
{
    const struct canvas_state *c = &t->canvas[t->member[i]];
    size_t w = i * t->l.capacity, end = w + t->l.capacity;
    int32_t n = 0;
    int same = 1;
    for (int32_t s = 0; a->live && s < (a->block + 1) * y->block; s++)
        if (a->token[a->prompt + s] == MASK && n++ < (int32_t)t->l.capacity) {
            same &= t->wanted[w] == t->row_of[c->first + c->prompt + s] &&
                    t->asked[w] == c->first + c->prompt + s &&
                    t->key[w] == rng_at(a->key, (uint64_t)a->passes, (uint64_t)s) &&
                    (!y->guided || t->uncond[w] == t->wanted[w] + t->l.twin);
            w++;
        }
    for (; w < end; w++) /* unused places for answers must have valid rows too */
        same &= t->asked[w] == -1 && t->wanted[w] >= 0 && (size_t)t->wanted[w] < t->l.T &&
                (!y->guided || (size_t)t->uncond[w] < t->l.T);
    return same && c->wanted == n && c->stalled == (n > (int32_t)t->l.capacity);
}

static int same_rows(const struct together *t)
{
    int same = 1;
    for (size_t r = 0; r < t->l.T; r++)
        same &= t->origin[r] < 0 ? t->row_token[r] == MASK
                                 : t->row_token[r] == t->token[t->origin[r]];
    return same;
}

static void canvas_case(const struct way *y)
{
    static struct together t;
    struct alone alone[CANVASES];
    int same = 1, passes = 0, stalled = 0, ended = 0, live = CANVASES, reused = 0;
    begin(&t, alone, y);
    while (live && passes < 500) {
        stalled = 0;
        for (size_t i = 0; i < t.l.parts; i++)
            stalled |= t.canvas[t.member[i]].stalled;
        if (stalled || ended > 1) { /* an ended canvas may stay a while */
            describe(&t, y);
            ended = 0;
            reused++;
        }
        for (size_t i = 0; i < t.l.parts; i++)
            same &= same_question(&t, &alone[t.member[i]], i, y);
        answer_all(&t, y);
        host_advance_canvases(NULL, &t.l);
        passes++;
        for (size_t i = 0; i < t.l.parts; i++) {
            struct alone *a = &alone[t.member[i]];
            a->written = 0;
            if (!a->live)
                continue;
            alone_pass(y, a, t.member[i], t.budget, 5);
            ended += !a->live;
            live -= !a->live;
        }
        for (int32_t i = 0; i < CANVASES; i++)
            same &= same_canvas(&t, &alone[i], i);
        same &= same_rows(&t);
    }
    ok(same && !live, "%s: %d passes, %d descriptions, as each canvas alone", y->name, passes,
       reused + 1);
}

int main(void)
{
    static const struct way ways[] = {
        {"schedule", UNMASK_SCHEDULE, {.threshold = 0}, 24, 8, 3, .stop = 0},
        {"schedule, a step a slot", UNMASK_SCHEDULE, {.threshold = 0}, 24, 8, 8, .guided = 1},
        {"schedule, more steps than slots", UNMASK_SCHEDULE, {.threshold = 0}, 12, 4, 6, .stop = 0},
        {"schedule, one block", UNMASK_SCHEDULE, {.threshold = 0}, 24, 24, 5, .stop = 1},
        {"random remasking", UNMASK_SCHEDULE, {.threshold = 0}, 24, 12, 5, .order = ORDER_RANDOM,
         .guided = 1},
        {"threshold", UNMASK_THRESHOLD, {.threshold = 0.9}, 24, 8, 2, .stop = 0},
        {"threshold that few reach", UNMASK_THRESHOLD, {.threshold = 0.99}, 24, 6, 2, .stop = 1},
        {"threshold 0", UNMASK_THRESHOLD, {.threshold = 0}, 24, 24, 2, .guided = 1},
        {"factor", UNMASK_FACTOR, {.factor = 1}, 24, 8, 2, .stop = 0},
        {"factor 2", UNMASK_FACTOR, {.factor = 2}, 24, 12, 2, .stop = 1},
        {"a NaN", UNMASK_SCHEDULE, {.threshold = 0}, 24, 8, 4, .bad = 1},
    };
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++)
        canvas_case(&ways[i]);
    return tap_done();
}
