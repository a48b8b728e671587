/* corpus-sum.c - worded sums. A scene tells how a number of things changes, one to three times; the
 * reference works out one step per sentence, in the same order:
 *     Mia has 12 apples. She finds 7 more and then gives away 5. How many apples does Mia have?
 *      12 + 7 = 19. 19 - 5 = 14. Mia has 14 apples.
 * The key of a sum is its operands (12 + 7 and 7 + 12 have the same key). */
#include "lib/train/corpus.h"

#include <stdio.h>
#include <string.h>

#define COUNT(a) (sizeof(a) / sizeof *(a))

static const char *const girls[] = {"Mia", "Anna", "Ruth", "Clara", "Ida", "Nora", "Eva", "Lily"};
static const char *const boys[] = {"Tom", "Ben", "Max", "Sam", "Paul", "Leo", "Adam", "Finn"};
static const char *const items[] = {"apples", "books", "shells", "coins", "stones", "cards",
                                    "pens", "eggs", "nuts", "cups", "flowers", "buttons",
                                    "plums", "stamps", "balls", "cakes"};

/* more, less: clauses with the number {k}; subject: the words before them. */
struct scene {
    const char *start, *subject, *more, *less, *question, *closing;
};
static const struct scene scenes[] = {
    {"[{a} has|At first {a} has|In a box {a} has] {n} {items}.", "{he} ",
     "[finds|buys|gets|takes] {k} more", "[gives away|loses|sells|drops] {k}",
     "How many {items} does {a} have [now|in the end|then]?", "{a} has {r} {items}."},
    {"There are {n} {birds} {where}.", "", "{k} more [come|arrive]", "{k} [leave|go away]",
     "How many {birds} are {where} [now|in the end|then]?", "There are {r} {birds} {where}."},
    {"[The|A small|An old] shop has {n} {items}.", "it ", "[buys|gets|makes] {k} more",
     "[sells|gives away] {k}", "How many {items} does the shop have [now|in the end]?",
     "The shop has {r} {items}."},
    {"{N} people are on [the|a] bus.", "", "{k} [more get on|get on]", "{k} get off",
     "How many people are on the bus [now|then]?", "{r} people are on the bus."},
    {"{a} {keeps} {n} {items} in a [box|bag|basket].", "{he} ", "puts in {k} more",
     "takes out {k}", "How many {items} are left [inside|in it]?", "{r} {items} are left."},
};
/* Sentences of one, two or three clauses; {1} is a clause with its subject, {x1} without. */
static const char *const tellings[3][2] = {
    {"{S1}.", "Then {s1}."},
    {"{S1} and then {x2}.", "First {s1}. Then {s2}."},
    {"{S1}, {x2} and then {x3}.", "{S1}. Then {s2}. After that {s3}."},
};

/* Sums of two amounts, without a change. {n} comes before {k} in text and sum. */
struct number_pair {
    const char *text, *closing;
    char sign;
};
static const struct number_pair pairs[] = {
    {"{a} has {n} {items} and {b} has {k}. How many {items} do they have [together|in all]?",
     "They have {r} {items}.", '+'},
    {"{b} [gives|brings] {a} {n} {items}. {a} [already has|had] {k} before. How many {items} does "
     "{a} have now?", "{a} has {r} {items}.", '+'},
    {"[{a} counts|There are] {n} {items} on the table and {k} on the floor. How many {items} are "
     "there [together|in all]?", "There are {r} {items}.", '+'},
    {"{a} has {n} {items} and {b} has {k}. How many more {items} does {a} have than {b}?",
     "{a} has {r} more {items}.", '-'},
    {"{a} [needs|wants] {n} {items} but has only {k}. How many more {items} does {he} need?",
     "{He} needs {r} more {items}.", '-'},
};

struct worded_sum {
    int count, first, change[3], result; /* change < 0: taken away */
};

/* The key: the operands; when the first two are added, in ascending order. */
static int sum_tuple(const struct worded_sum *s, int t[4])
{
    t[0] = s->first;
    memcpy(t + 1, s->change, sizeof s->change);
    if (t[1] > t[0]) {
        t[0] = s->change[0];
        t[1] = s->first;
    }
    return 1 + s->count;
}

static int sum_is_heldout(const struct worded_sum *s)
{
    int t[4];
    const int n = sum_tuple(s, t);
    return corpus_is_heldout(t, n);
}

static int draw_below(struct rng *r, int n)
{
    return (int)rng_below(r, (uint64_t)n);
}

/* First number 2..50, changes 2..20, every intermediate result 1..99, the last at least 2. */
static struct worded_sum sum_draw(struct rng *r, int heldout)
{
    for (;;) {
        struct worded_sum s = {.count = 1 + draw_below(r, 3), .first = 2 + draw_below(r, 49)};
        int good = 1;
        s.result = s.first;
        for (int i = 0; i < s.count; i++) {
            const int size = 2 + draw_below(r, 19);
            s.change[i] = draw_below(r, 2) ? size : -size;
            s.result += s.change[i];
            good = good && s.result >= 1 && s.result <= 99;
        }
        if (good && s.result >= 2 && sum_is_heldout(&s) == heldout) return s;
    }
}

static void write_steps(const struct worded_sum *s, struct buf *out)
{
    int now = s->first;
    for (int i = 0; i < s->count; i++) {
        const int c = s->change[i];
        buf_format(out, " %d %c %d = %d.", now, c < 0 ? '-' : '+', c < 0 ? -c : c, now + c);
        now += c;
    }
}

static struct worded_sum write_pair(struct rng *r, int heldout, const struct corpus_slot *slots,
                             struct corpus_record *out)
{
    const struct number_pair *p = &pairs[rng_below(r, COUNT(pairs))];
    struct worded_sum s;
    do s = sum_draw(r, heldout);
    while (s.count != 1 || (s.change[0] < 0) != (p->sign == '-'));
    if (p->sign == '+' && draw_below(r, 2)) { /* the small number first */
        const int first = s.first;
        s.first = s.change[0];
        s.change[0] = first;
    }
    char n[16], k[16], result[16];
    snprintf(n, sizeof n, "%d", s.first);
    snprintf(k, sizeof k, "%d", s.change[0] < 0 ? -s.change[0] : s.change[0]);
    snprintf(result, sizeof result, "%d", s.result);
    const struct corpus_slot numbers[] = {{"n", n}, {"k", k}, {"r", result}, {NULL, NULL}};
    corpus_expand(r, p->text, numbers, slots, &out->text);
    write_steps(&s, &out->reference);
    buf_char(&out->reference, ' ');
    corpus_expand(r, p->closing, numbers, slots, &out->reference);
    return s;
}

static struct worded_sum write_scene(struct rng *r, int heldout, const struct corpus_slot *slots,
                              struct corpus_record *out)
{
    const struct scene *sc = &scenes[rng_below(r, COUNT(scenes))];
    const struct worded_sum s = sum_draw(r, heldout);
    struct buf with[3] = {{0}}, without[3] = {{0}};
    char n[16], result[16];
    snprintf(n, sizeof n, "%d", s.first);
    snprintf(result, sizeof result, "%d", s.result);
    for (int i = 0; i < s.count; i++) {
        char k[16];
        snprintf(k, sizeof k, "%d", s.change[i] < 0 ? -s.change[i] : s.change[i]);
        const struct corpus_slot number[] = {{"k", k}, {NULL, NULL}};
        corpus_expand(r, s.change[i] < 0 ? sc->less : sc->more, number, slots, &without[i]);
        corpus_expand(r, sc->subject, NULL, slots, &with[i]);
        if (with[i].len) buf_char(&with[i], ' ');
        buf_put(&with[i], without[i].data, without[i].len);
    }
    const struct corpus_slot parts[] = {
        {"n", n}, {"r", result},
        {"s1", with[0].data}, {"s2", with[1].data}, {"s3", with[2].data},
        {"x2", without[1].data}, {"x3", without[2].data}, {NULL, NULL}};
    corpus_expand(r, sc->start, parts, slots, &out->text);
    buf_char(&out->text, ' ');
    corpus_expand(r, tellings[s.count - 1][rng_below(r, 2)], parts, NULL, &out->text);
    buf_char(&out->text, ' ');
    corpus_expand(r, sc->question, parts, slots, &out->text);
    write_steps(&s, &out->reference);
    buf_char(&out->reference, ' ');
    corpus_expand(r, sc->closing, parts, slots, &out->reference);
    for (int i = 0; i < 3; i++) {
        buf_free(&with[i]);
        buf_free(&without[i]);
    }
    return s;
}

void corpus_sum(struct rng *r, int heldout, struct corpus_record *out)
{
    static const char *const birds[] = {"birds", "children", "ducks", "sheep", "frogs", "cats"};
    static const char *const wheres[] = {"in the yard", "by the pond", "on the hill",
                                         "in the field", "in the garden", "near the gate"};
    const int girl = draw_below(r, 2);
    const char *a = corpus_pick(r, girl ? girls : boys, COUNT(girls)), *b = a;
    while (b == a) b = corpus_pick(r, draw_below(r, 2) ? girls : boys, COUNT(girls));
    const struct corpus_slot slots[] = {
        {"a", a}, {"b", b}, {"he", girl ? "she" : "he"}, {"keeps", "[keeps|has]"},
        {"items", corpus_pick(r, items, COUNT(items))},
        {"birds", corpus_pick(r, birds, COUNT(birds))},
        {"where", corpus_pick(r, wheres, COUNT(wheres))}, {NULL, NULL}};
    out->task = "sum";
    buf_clear(&out->text);
    buf_clear(&out->reference);
    buf_clear(&out->answer);
    const struct worded_sum s = draw_below(r, 4) ? write_scene(r, heldout, slots, out)
                                                 : write_pair(r, heldout, slots, out);
    int t[4];
    corpus_key(out->task, t, sum_tuple(&s, t), &out->key);
    buf_format(&out->answer, "%d", s.result);
}
