/* test-advance.c - compares advance.h on the host with answers worked out by hand: texts, canvases,
 * a lack of room, rows that serve one block, and rules that revise or remember.
 * test-advance-alone.c compares canvases of every kind with a plain computation. */
#include "tests/kernels/canvases.h"

/* ---- texts ---- */

static void text_case(void)
{
    enum { B = 3, NEW = 4, STOP = 9 };
    struct text_state text[B] = {{.key = 11, .first_slot = 0, .prompt = 2, .len = 2, .max = 6,
                                  .live = 1},
                                 {.key = 12, .first_slot = 6, .prompt = 3, .len = 5, .max = 6,
                                  .last = 40, .live = 1},
                                 {.key = 13, .first_slot = 12, .prompt = 1, .len = 1, .max = 5,
                                  .live = 1}};
    int32_t out[B * NEW] = {0}, member[B] = {0, 1, 2}, token[B], pos[B], slot[B], wanted[B];
    struct attn_seq seqs[B] = {{.slot_begin = 0}, {.slot_begin = 6}, {.slot_begin = 12}};
    struct head_row answer[B] = {{.id = 7}, {.id = 8}, {.id = STOP}};
    uint64_t key[B];
    struct text_loop l = {.parts = B, .member = member, .text = text, .out = out, .max_new = NEW,
                          .answer = answer, .stop = {STOP}, .n_stop = 1,
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
    answer[0] = (struct head_row){.id = STOP, .bad = 1};
    answer[1].id = 5;
    host_advance_texts(NULL, &l);
    ok(!text[0].live && text[0].bad && !text[0].met_stop && text[0].len == 3, "NaN ends a text");
    ok(text[1].len == 6 && text[1].last == 8, "an ended text changes no more");
    l.n_stop = 0;
    text[2].live = 1;
    answer[2].id = STOP;
    host_advance_texts(NULL, &l);
    ok(text[2].live && out[2 * NEW] == STOP, "without stop ids none ends a text");
}

/* ---- canvases ---- */

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

/* Rows that serve only one block: a canvas that leaves the block waits for the others. */
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
        for (int32_t k = 0; k < 256; k++) /* only the slots of the block have rows */
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
        if (block == 1) { /* a mask id in an earlier block has no row and gets no question */
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

/* A rule that revises, with 4 slots a block, drafted above 0.6, worked out by hand. */
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
    t.l.capacity = 3; /* too little room: the canvas stalls */
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
    for (int i = 0; i < 2; i++) { /* the step that fills nothing, and the last step of the block */
        ok(c->live, "step %d of 4", c->step);
        host_advance_canvases(NULL, &t.l);
    }
    ok(!c->live && c->readable == 8 && got[5] == MASK, "a block has no more steps than slots");
}

/* The prompt ends within a block (3, 4 and 1 slots). Readable slots stay and get no more
 * questions. */
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

/* The memory of a rule belongs to its canvas and comes back unchanged. */
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

/* A seeded block of six in three steps: its first pass gives only the first slot. */
static void seeded_case(void)
{
    static struct together t;
    static const int32_t wanted[] = {1, 5, 3, 1};
    const struct way y = {.name = "", .rule = UNMASK_DYNAMIC, .gen = 6, .block = 6, .steps = 3,
                          .params = {.threshold = 1}};
    struct alone alone[CANVASES];
    begin(&t, alone, &y);
    t.l.parts = 1;
    t.member[0] = 1;
    t.l.lag = 1;
    t.l.seeds = 2;
    lay_rows(&t, &y);
    const struct canvas_state *c = &t.canvas[1];
    for (int i = 0; i < 4; i++) {
        ok(c->live && c->wanted == wanted[i] && t.wanted[0] == t.row_of[t.asked[0] - 1],
           "pass %d asks about %d slots, at the rows before them", i, wanted[i]);
        for (int32_t k = 0; k < wanted[i]; k++)
            t.answer[k] = (struct head_row){.id = 30 + k, .log_prob = -1 - k};
        host_advance_canvases(NULL, &t.l);
    }
    ok(!c->live && c->readable == 6, "a seeded block has all of its steps");
}

/* Five masks, three a step, worked out by hand: best first, the lowest of equals. */
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
    text_case();
    known_case();
    seeded_case();
    overflow_case();
    per_block_case();
    kept_case();
    revising_case();
    revising_shift_case();
    return tap_done();
}
