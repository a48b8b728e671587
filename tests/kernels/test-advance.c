/* advance.h on the host: known answers by hand; and canvases of every kind in one loop, compared
 * with a plain account of each canvas alone, for every order and every rule. One file because all
 * cases use the same canvases. */
#include "kernels/advance.h"
#include "lib/base/mem.h"
#include "lib/base/rng.h"
#include "tests/tap.h"

/* ---- texts ---- */

static void text_case(void)
{
    enum { B = 3, NEW = 4, EOS = 9 };
    struct text_state text[B] = {{.key = 11, .first_slot = 0, .prompt = 2, .len = 2, .max = 6,
                                  .live = 1},
                                 {.key = 12, .first_slot = 6, .prompt = 3, .len = 5, .max = 6,
                                  .last = 40, .live = 1},
                                 {.key = 13, .first_slot = 12, .prompt = 1, .len = 1, .max = 5,
                                  .live = 1}};
    int32_t out[B * NEW] = {0}, member[B] = {0, 1, 2}, token[B], pos[B], slot[B], wanted[B];
    struct attn_seq seqs[B] = {{.slot_begin = 0}, {.slot_begin = 6}, {.slot_begin = 12}};
    struct head_row answer[B] = {{.id = 7}, {.id = 8}, {.id = EOS}};
    uint64_t key[B];
    struct text_loop l = {.parts = B, .member = member, .text = text, .out = out, .max_new = NEW,
                          .answer = answer, .stop = {EOS}, .n_stop = 1,
                          .rows = {.token = token, .pos = pos, .slot = slot, .seqs = seqs,
                                   .wanted = wanted, .key = key}};
    host_advance_texts(NULL, &l);
    ok(text[0].live && text[0].len == 3 && text[0].last == 7 && out[0] == 7,
       "a text takes its answer");
    ok(!text[1].live && text[1].len == 6 && out[NEW + 2] == 8 && !text[1].met_stop && !text[1].bad,
       "a text that is full ends");
    ok(!text[2].live && text[2].met_stop && text[2].len == 1 && out[2 * NEW] == 0,
       "a stop id ends a text and is not part of it");
    ok(token[0] == 7 && pos[0] == 2 && slot[0] == 2 && wanted[0] == 0 && seqs[0].row_begin == 0 &&
           seqs[0].rows == 1 && seqs[0].n_slots == 3 && seqs[0].slot_begin == 0 &&
           key[0] == rng_at(11, 1, 0),
       "the next row holds the new id, its place and its draw");
    ok(token[1] == 8 && pos[1] == 5 && slot[1] == 11 && seqs[1].n_slots == 6 && wanted[2] == 2,
       "rows of ended texts stay within their slots");
    answer[0] = (struct head_row){.id = EOS, .bad = 1};
    answer[1].id = 5;
    host_advance_texts(NULL, &l);
    ok(!text[0].live && text[0].bad && !text[0].met_stop && text[0].len == 3, "NaN ends a text");
    ok(text[1].len == 6 && text[1].last == 8, "an ended text changes no more");
    l.n_stop = 0;
    text[2].live = 1;
    answer[2].id = EOS;
    host_advance_texts(NULL, &l);
    ok(text[2].live && out[2 * NEW] == EOS, "without stop ids none ends a text");
}

/* ---- canvases ---- */

enum { MASK = 1, EOS = 2, VOCAB = 12, CANVASES = 4 };

struct way {
    const char *name;
    enum unmask rule;
    struct unmask_params params;
    int32_t gen, block, steps; /* steps of a block */
    enum order order;
    int stop, guided, bad;
};

/* The head's answer about slot s (from the end of the prompt) of canvas i in its pass: made up,
 * with many equal confidences, mask ids and stop ids. */
static struct head_row answer_of(const struct way *y, int32_t i, int32_t pass, int32_t s)
{
    uint64_t h = rng_at(77, (uint64_t)i << 32 | (uint64_t)pass, (uint64_t)s);
    static const double steps[] = {0.99, 0.95, 0.9, 0.7, 0.5, 0.0};
    struct head_row a = {.id = (int32_t)(1 + h % VOCAB)};
    a.log_prob = log(steps[h >> 20 & 3 ? (h >> 24) % 5 : 5]);
    if (y->rule == UNMASK_SCHEDULE && a.id == MASK)
        a.id = h >> 40 & 3 ? 3 : MASK;
    a.prob = (float)exp(a.log_prob);
    a.runner_up_prob = (float)(h >> 50 & 7) / 16;
    a.entropy = (float)(h >> 53 & 7) / 4;
    a.bad = y->bad && pass == 2 && i == 1 && s % 3 == 1;
    return a;
}

/* One canvas alone, in the plainest way: no shared states, no rows, no order except picking the
 * best remaining answer. */
struct alone {
    int32_t token[64];
    int32_t prompt, block, step, passes, readable, written;
    uint64_t key;
    int live, bad, met;
};

static size_t best_left(const double *score, size_t n, const unsigned char *taken)
{
    size_t best = n;
    for (size_t i = 0; i < n; i++)
        if (!taken[i] && (best == n || score[i] > score[best]))
            best = i;
    return best;
}

/* The plain account of every order. */
static double score_of(const struct way *y, const struct head_row *a, uint64_t seed, uint64_t key)
{
    if (y->order == ORDER_RANDOM)
        return rng_unit(rng_at(seed, key, 0));
    return exp(a->log_prob);
}

/* The plain account of every rule; sure: the confidences. A threshold takes all that reach it, and
 * the best. */
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

/* Takes the answers to the masked slots before `end`. -1: one is bad. */
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

/* All canvases in one loop, and all its arrays. */
struct together {
    struct canvas_loop l;
    struct canvas_state canvas[CANVASES];
    int32_t member[CANVASES], token[256], row_of[256], origin[512];
    int32_t row_token[512], wanted[512], uncond[512], budget[64], asked[512], target[512];
    struct slot_kept slot[256];
    uint64_t key[512];
    struct head_row answer[512];
};

/* The rows of the parts, one after another, and their unconditional rows behind all. */
static void lay_rows(struct together *t, const struct way *y)
{
    int32_t rows = 0, twins = 0;
    for (size_t i = 0; i < t->l.parts; i++)
        rows += t->canvas[t->member[i]].len;
    for (int32_t k = 0; k < 256; k++)
        t->row_of[k] = -1;
    for (size_t i = 0; i < t->l.parts; i++) {
        const struct canvas_state *c = &t->canvas[t->member[i]];
        for (int32_t k = 0; k < c->len; k++, twins++) {
            t->row_of[c->first + k] = twins;
            t->origin[twins] = c->first + k;
            t->row_token[twins] = t->token[c->first + k];
            t->origin[rows + twins] = k < c->prompt ? -1 : c->first + k;
            t->row_token[rows + twins] = k < c->prompt ? MASK : t->token[c->first + k];
        }
    }
    t->l.twin = y->guided ? rows : 0;
    t->l.T = (size_t)(y->guided ? 2 * rows : rows);
    for (size_t i = 0; i < t->l.parts; i++)
        advance_ask(&t->l, i);
}

/* The first pass of the live canvases, with room for all their questions. */
static void describe(struct together *t, const struct way *y)
{
    t->l.parts = 0;
    for (int32_t i = CANVASES - 1; i >= 0; i--) /* members need not be in order */
        if (t->canvas[i].live) {
            t->member[t->l.parts++] = i;
            if ((size_t)t->canvas[i].wanted > t->l.capacity)
                t->l.capacity = (size_t)t->canvas[i].wanted;
        }
    lay_rows(t, y);
}

static void begin(struct together *t, struct alone *alone, const struct way *y)
{
    int32_t first = 0;
    *t = (struct together){0};
    t->l = (struct canvas_loop){.capacity = (size_t)y->block, .member = t->member,
        .canvas = t->canvas, .token = t->token, .row_of = t->row_of, .origin = t->origin,
        .answer = t->answer, .rows = {.token = t->row_token, .wanted = t->wanted,
        .uncond = t->uncond, .key = t->key}, .asked = t->asked, .target = t->target,
        .check_of = unmask_has(y->rule, UNMASK_REVISES) ? t->row_of : NULL,
        .slot = unmask_has(y->rule, UNMASK_KEEPS) ? t->slot : NULL,
        .gen_length = y->gen, .block_length = y->block, .block_steps = y->steps,
        .budget = t->budget, .mask = MASK, .rule = y->rule, .params = y->params,
        .order = y->order, .stop_at_eos = y->stop, .order_seed = 5, .stop = {EOS}, .n_stop = 1};
    for (int32_t s = 0; s < y->steps; s++)
        t->budget[s] = y->block / y->steps + (s < y->block % y->steps);
    for (int32_t i = 0; i < CANVASES; i++) {
        struct alone *a = &alone[i];
        *a = (struct alone){.prompt = 2 * i, .key = 100 + (uint64_t)i, .live = 1};
        for (int32_t k = 0; k < a->prompt + y->gen; k++)
            a->token[k] = k < a->prompt ? 50 + k : MASK;
        t->canvas[i] = (struct canvas_state){.key = a->key, .first = first, .prompt = a->prompt,
                                             .len = a->prompt + y->gen, .live = 1};
        memcpy(t->token + first, a->token, (size_t)t->canvas[i].len * sizeof *a->token);
        first += t->canvas[i].len;
    }
    describe(t, y);
}

/* Answers where asked; elsewhere answers that must be ignored. */
static void answer_all(struct together *t, const struct way *y)
{
    for (size_t i = 0; i < t->l.parts; i++) {
        const struct canvas_state *c = &t->canvas[t->member[i]];
        for (size_t k = 0; k < t->l.capacity; k++) {
            size_t w = i * t->l.capacity + k;
            int32_t slot = t->asked[w] - c->first - c->prompt;
            t->answer[w] = (struct head_row){.id = 11, .bad = 1, .log_prob = 1};
            if (c->live && k < (size_t)c->wanted)
                t->answer[w] = answer_of(y, t->member[i], c->passes, slot);
        }
    }
}

static int same_canvas(const struct together *t, const struct alone *a, int32_t i)
{
    const struct canvas_state *c = &t->canvas[i];
    return !memcmp(t->token + c->first, a->token, (size_t)c->len * sizeof *a->token) &&
           c->live == a->live && c->bad == a->bad && c->met_stop == a->met &&
           c->readable == a->readable && c->written == a->written && c->block == a->block &&
           c->step == a->step && c->passes == a->passes;
}

/* 1 if the next questions of part i equal those of its canvas alone, slot by slot. */
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
    for (; w < end; w++) /* unused answers still have valid rows */
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

/* A pass with more questions than room is ignored. */
static void overflow_case(void)
{
    static struct together t;
    const struct way y = {.name = "", .gen = 8, .block = 8, .steps = 8};
    struct alone alone[CANVASES];
    begin(&t, alone, &y);
    t.l.capacity = 3;
    lay_rows(&t, &y);
    struct canvas_state was = t.canvas[2];
    int32_t ids[256];
    memcpy(ids, t.token, sizeof ids);
    ok(was.stalled && was.wanted == 8, "questions beyond the room are counted and reported");
    answer_all(&t, &y);
    host_advance_canvases(NULL, &t.l);
    ok(!memcmp(&was, &t.canvas[2], sizeof was) && !memcmp(ids, t.token, sizeof ids),
       "such a pass changes nothing");
}

/* Rows that serve only their block: a canvas that leaves the block waits for others. */
static void per_block_case(void)
{
    static struct together t;
    const struct way y = {.name = "", .gen = 6, .block = 3, .steps = 1};
    struct alone alone[CANVASES];
    begin(&t, alone, &y);
    t.l.per_block = 1;
    t.l.parts = 1;
    t.member[0] = 1;
    struct canvas_state *c = &t.canvas[1];
    for (int block = 0; block < 2; block++) {
        c->rows_block = block;
        for (int32_t k = 0; k < 256; k++) /* the rows of the block alone */
            t.row_of[k] = -1;
        for (int32_t k = 0; k < 3; k++) {
            int32_t id = c->first + c->prompt + 3 * block + k;
            t.row_of[id] = k;
            t.origin[k] = id;
        }
        t.l.T = 3;
        advance_ask(&t.l, 0);
        ok(c->wanted == 3 && !c->stalled && t.wanted[2] == 2,
           "block %d: its rows are asked", block);
        for (int i = 0; i < 3; i++)
            t.answer[i] = (struct head_row){.id = 20 + 3 * block + i, .log_prob = -1};
        if (block == 1) { /* a mask id left in an earlier block has no row and is not asked about */
            t.token[c->first + c->prompt] = MASK;
            advance_ask(&t.l, 0);
            ok(c->wanted == 3, "slots without a row are not asked about");
        }
        host_advance_canvases(NULL, &t.l);
        ok(block ? !c->live : c->live && c->stalled && c->block == 1 && c->wanted == 0,
           "block %d: a canvas that leaves it is %s", block, block ? "done" : "stalled");
        struct canvas_state was = *c;
        host_advance_canvases(NULL, &t.l);
        was.written = 0;
        ok(!memcmp(&was, c, sizeof was), "block %d: passes after that count for nothing", block);
    }
}

/* A rule that revises: 4 slots a block, drafted above 0.6; by hand. */
static void revising_case(void)
{
    static struct together t;
    const struct way y = {.name = "", .rule = UNMASK_WINO, .gen = 8, .block = 4, .steps = 4,
                          .params = {.wino_draft = 0.6, .wino_verify = 0.9}};
    struct alone alone[CANVASES];
    begin(&t, alone, &y);
    t.l.parts = 1;
    t.member[0] = 1;
    lay_rows(&t, &y);
    struct canvas_state *c = &t.canvas[1];
    const int32_t *got = t.token + c->first + c->prompt;
    const double prob[] = {0.9, 0.7, 0.5, 0.65};
    for (int i = 0; i < 4; i++)
        t.answer[i] = (struct head_row){.id = 30 + i, .log_prob = log(prob[i])};
    host_advance_canvases(NULL, &t.l);
    const int32_t draft[] = {30, 31, MASK, 33, MASK};
    ok(!memcmp(got, draft, sizeof draft) && c->written == 3 && !c->remasked && !c->readable,
       "a slot that may be revised is not readable");
    ok(c->wanted == 4 && c->held == 3 && t.target[1] == 30 && t.target[2] == 31 &&
           t.target[3] == 33 && t.asked[3] == c->first + c->prompt + 3 &&
           t.wanted[3] == t.row_of[t.asked[3]],
       "held ids of the block are asked about behind its masks");
    t.answer[0] = (struct head_row){.id = 32, .log_prob = log(0.8)};
    for (int i = 1; i < 4; i++)
        t.answer[i] = (struct head_row){.id = 5, .target_log_prob = log(i == 2 ? 0.1 : 0.95)};
    struct canvas_state was = *c;
    t.answer[3].bad = 1;
    t.l.capacity = 3; /* too little room: it stalls */
    advance_ask(&t.l, 0);
    ok(c->stalled && c->wanted == 4 && c->held == 3, "held slots take room too");
    t.l.capacity = 4;
    advance_ask(&t.l, 0);
    host_advance_canvases(NULL, &t.l);
    ok(c->bad && !c->live, "a NaN in an answer about a held id counts");
    *c = was;
    t.answer[3].bad = 0;
    advance_ask(&t.l, 0);
    host_advance_canvases(NULL, &t.l);
    ok(got[1] == 31 && got[2] == 32 && c->written == 1 && c->remasked == 0 && c->block == 1 &&
           c->readable == 4, "a pass that takes one verifies nothing, and fills the block");
    ok(c->wanted == 4 && c->held == 0, "the next block holds nothing yet");
    for (int i = 0; i < 4; i++)
        t.answer[i] = (struct head_row){.id = 40 + i, .log_prob = log(i < 2 ? 0.7 : 0.5)};
    host_advance_canvases(NULL, &t.l);
    for (int i = 0; i < 2; i++)
        t.answer[i] = (struct head_row){.id = 42 + i, .log_prob = log(0.9)};
    for (int i = 2; i < 4; i++)
        t.answer[i] = (struct head_row){.id = 5, .target_log_prob = log(i == 2 ? 0.5 : 0.2)};
    host_advance_canvases(NULL, &t.l);
    const int32_t verified[] = {40, MASK, 42, 43};
    ok(!memcmp(got + 4, verified, sizeof verified) && c->written == 2 && c->remasked == 1 &&
           c->live && c->readable == 4 && t.row_token[t.row_of[c->first + c->prompt + 5]] == MASK,
       "the lowest is masked again, fewer than were drafted, and the rows read that");
    t.answer[0] = (struct head_row){.id = MASK, .log_prob = log(0.9)};
    for (int i = 0; i < 2; i++) { /* the step that fills nothing, and the last one of the block */
        ok(c->live, "step %d of 4", c->step);
        host_advance_canvases(NULL, &t.l);
    }
    ok(!c->live && c->readable == 8 && got[5] == MASK, "a block has no more steps than slots");
}

/* The prompt ends within a block (3, 4 and 1 slots): readable slots stay, and are not asked about
 * again. */
static void revising_shift_case(void)
{
    static struct together t;
    const struct way y = {.name = "", .rule = UNMASK_SABER, .gen = 8, .block = 4, .steps = 4,
                          .params = {.saber_least = 2}};
    struct alone alone[CANVASES];
    struct canvas_state *c = &t.canvas[1];
    int stays = 1, passes = 0, back = 0;
    int32_t read[8] = {0}, readable = 0;
    begin(&t, alone, &y);
    c->shift = 1;
    t.l.parts = 1;
    t.member[0] = 1;
    lay_rows(&t, &y);
    for (; c->live && passes < 20; passes++) {
        const int32_t *got = t.token + c->first + c->prompt;
        for (int32_t k = 0; k < c->wanted; k++) {
            stays &= t.asked[k] - c->first - c->prompt >= readable;
            t.answer[k] = (struct head_row){.id = 20 + 8 * passes + k, .log_prob = -0.1 * (k + 1),
                                            .target_log_prob = -0.5 * passes};
        }
        host_advance_canvases(NULL, &t.l);
        stays &= c->readable >= readable && !memcmp(got, read, (size_t)readable * sizeof *got);
        stays &= c->readable == 0 || c->readable == 3 || c->readable == 7 || c->readable == 8;
        readable = c->readable;
        memcpy(read, got, (size_t)readable * sizeof *got);
        back += c->remasked;
    }
    ok(stays && !c->live && readable == 8 && back > 0,
       "a prompt that ends within a block: %d passes, %d ids gave way", passes, back);
}

/* The rule's memory belongs to the canvas and comes back unchanged. */
static void kept_case(void)
{
    static struct together t;
    const struct way y = {.name = "", .gen = 8, .block = 8, .steps = 4};
    struct alone alone[CANVASES];
    begin(&t, alone, &y);
    for (int k = 0; k < UNMASK_KEPT; k++)
        ok(!(t.canvas[1].kept[k] < 0 || t.canvas[1].kept[k] > 0), "word %d begins at 0", k);
    for (int k = 0; k < UNMASK_KEPT; k++)
        t.canvas[1].kept[k] = 1.5 + k;
    answer_all(&t, &y);
    host_advance_canvases(NULL, &t.l);
    ok(t.canvas[1].passes == 1 &&
           fabs(t.canvas[1].kept[UNMASK_KEPT - 1] - 0.5 - UNMASK_KEPT) < 1e-9,
       "the rule's memory stays over a pass");
}

/* Five masks, three a step: best first, among equals the lowest; by hand. */
static void known_case(void)
{
    static struct together t;
    const struct way y = {.name = "", .gen = 5, .block = 5, .steps = 2};
    const double prob[] = {0.5, 0.9, 0.5, 0.5, 0.1};
    struct alone alone[CANVASES];
    begin(&t, alone, &y);
    t.l.parts = 1;
    t.member[0] = 1;
    lay_rows(&t, &y);
    ok(t.canvas[1].wanted == 5 && t.wanted[0] == 2 && t.wanted[4] == 6 &&
           t.key[3] == rng_at(101, 0, 3),
       "all masks of the block are asked about, with their draws");
    for (int i = 0; i < 5; i++)
        t.answer[i] = (struct head_row){.id = 30 + i, .log_prob = log(prob[i])};
    host_advance_canvases(NULL, &t.l);
    const int32_t *got = t.token + t.canvas[1].first + 2, want[] = {30, 31, 32, MASK, MASK};
    ok(!memcmp(got, want, sizeof want), "best first, and of equals the lowest");
    ok(t.canvas[1].written == 3 && t.canvas[1].readable == 3 && t.canvas[1].live &&
           t.canvas[1].wanted == 2 && t.wanted[0] == 5 && t.wanted[1] == 6 &&
           t.key[0] == rng_at(101, 1, 3) && t.row_token[2] == 30 && t.row_token[5] == MASK,
       "the next pass reads them and asks about the others");
    t.answer[0] = (struct head_row){.id = MASK, .log_prob = -1};
    t.answer[1] = (struct head_row){.id = EOS, .log_prob = -2};
    host_advance_canvases(NULL, &t.l);
    ok(!t.canvas[1].live && t.canvas[1].readable == 5 && t.canvas[1].met_stop &&
           t.canvas[1].written == 1 && got[3] == MASK && !t.canvas[1].wanted,
       "the last step ends the canvas, a mask that was an answer in it");
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
    text_case();
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++)
        canvas_case(&ways[i]);
    known_case();
    overflow_case();
    per_block_case();
    kept_case();
    revising_case();
    revising_shift_case();
    return tap_done();
}
