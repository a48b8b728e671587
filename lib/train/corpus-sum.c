/* corpus-sum.c - worded sums; see corpus.h. In a scene a number of things changes one to three
 * times. The reference has one step of the calculation per sentence, in the same order:
 *     Mia has 12 apples. She finds 7 more and then gives away 5. How many apples does Mia have?
 *      12 + 7 = 19. 19 - 5 = 14. Mia has 14 apples.
 * The key of a sum is its operands; 12 + 7 and 7 + 12 have the same key. */
#include "lib/train/corpus.h"

#include <stdio.h>
#include <string.h>

#define COUNT(a) (sizeof(a) / sizeof *(a))

static const char *const girls[] = {"Mia", "Anna", "Ruth", "Clara", "Ida", "Nora", "Eva", "Lily"};
static const char *const boys[] = {"Tom", "Ben", "Max", "Sam", "Paul", "Leo", "Adam", "Finn"};
static const char *const items[] = {"apples", "books", "shells", "coins", "stones", "cards",
                                    "pens", "eggs", "nuts", "cups", "flowers", "buttons",
                                    "plums", "stamps", "balls", "cakes"};

/* more, less: clauses with the number {k}. subject: the words before a clause that begins a
 * sentence. */
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
/* Sentences of one, two or three clauses. {s1} is clause 1 with its subject; {x2} is clause 2
 * without a subject. */
static const char *const tellings[3][2] = {
    {"{S1}.", "Then {s1}."},
    {"{S1} and then {x2}.", "First {s1}. Then {s2}."},
    {"{S1}, {x2} and then {x3}.", "{S1}. Then {s2}. After that {s3}."},
};

/* Sums and differences of two amounts, in which no amount changes. {n} comes before {k} in the text
 * and in the calculation. */
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

/* Sets t to the operands, and returns how many: the key of the sum. If the second operand is larger
 * than the first, the two are exchanged, so that 7 + 12 has the key of 12 + 7. */
static int sum_tuple(const struct worded_sum *sum, int t[4])
{
    t[0] = sum->first;
    memcpy(t + 1, sum->change, sizeof sum->change);
    if (t[1] > t[0]) {
        t[0] = sum->change[0];
        t[1] = sum->first;
    }
    return 1 + sum->count;
}

static int sum_is_heldout(const struct worded_sum *sum)
{
    int t[4];
    const int n = sum_tuple(sum, t);
    return corpus_is_heldout(t, n);
}

static int draw_below(struct rng *rng, int n)
{
    return (int)rng_below(rng, (uint64_t)n);
}

/* Draws a sum of the part `heldout`: first number 2..50, changes of 2..20 up or down, every
 * intermediate result in 1..99, the result at least 2. */
static struct worded_sum sum_draw(struct rng *rng, int heldout)
{
    for (;;) {
        struct worded_sum sum = {.count = 1 + draw_below(rng, 3), .first = 2 + draw_below(rng, 49)};
        int good = 1;
        sum.result = sum.first;
        for (int i = 0; i < sum.count; i++) {
            const int size = 2 + draw_below(rng, 19);
            sum.change[i] = draw_below(rng, 2) ? size : -size;
            sum.result += sum.change[i];
            good = good && sum.result >= 1 && sum.result <= 99;
        }
        if (good && sum.result >= 2 && sum_is_heldout(&sum) == heldout) return sum;
    }
}

static void write_steps(const struct worded_sum *sum, struct buf *out)
{
    int now = sum->first;
    for (int i = 0; i < sum->count; i++) {
        const int c = sum->change[i];
        buf_format(out, " %d %c %d = %d.", now, c < 0 ? '-' : '+', c < 0 ? -c : c, now + c);
        now += c;
    }
}

static struct worded_sum write_pair(struct rng *rng, int heldout, const struct corpus_slot *slots,
                             struct corpus_record *out)
{
    const struct number_pair *pair = &pairs[rng_below(rng, COUNT(pairs))];
    struct worded_sum sum;
    do sum = sum_draw(rng, heldout);
    while (sum.count != 1 || (sum.change[0] < 0) != (pair->sign == '-'));
    if (pair->sign == '+' && draw_below(rng, 2)) { /* the other order has the same key */
        const int first = sum.first;
        sum.first = sum.change[0];
        sum.change[0] = first;
    }
    char n[16], k[16], result[16];
    snprintf(n, sizeof n, "%d", sum.first);
    snprintf(k, sizeof k, "%d", sum.change[0] < 0 ? -sum.change[0] : sum.change[0]);
    snprintf(result, sizeof result, "%d", sum.result);
    const struct corpus_slot numbers[] = {{"n", n}, {"k", k}, {"r", result}, {NULL, NULL}};
    corpus_expand(rng, pair->text, numbers, slots, &out->text);
    write_steps(&sum, &out->reference);
    buf_char(&out->reference, ' ');
    corpus_expand(rng, pair->closing, numbers, slots, &out->reference);
    return sum;
}

static struct worded_sum write_scene(struct rng *rng, int heldout, const struct corpus_slot *slots,
                              struct corpus_record *out)
{
    const struct scene *sc = &scenes[rng_below(rng, COUNT(scenes))];
    const struct worded_sum sum = sum_draw(rng, heldout);
    struct buf with[3] = {{0}}, without[3] = {{0}};
    char n[16], result[16];
    snprintf(n, sizeof n, "%d", sum.first);
    snprintf(result, sizeof result, "%d", sum.result);
    for (int i = 0; i < sum.count; i++) {
        char k[16];
        snprintf(k, sizeof k, "%d", sum.change[i] < 0 ? -sum.change[i] : sum.change[i]);
        const struct corpus_slot number[] = {{"k", k}, {NULL, NULL}};
        corpus_expand(rng, sum.change[i] < 0 ? sc->less : sc->more, number, slots, &without[i]);
        corpus_expand(rng, sc->subject, NULL, slots, &with[i]);
        if (with[i].len) buf_char(&with[i], ' ');
        buf_put(&with[i], without[i].data, without[i].len);
    }
    const struct corpus_slot parts[] = {
        {"n", n}, {"r", result},
        {"s1", with[0].data}, {"s2", with[1].data}, {"s3", with[2].data},
        {"x2", without[1].data}, {"x3", without[2].data}, {NULL, NULL}};
    corpus_expand(rng, sc->start, parts, slots, &out->text);
    buf_char(&out->text, ' ');
    corpus_expand(rng, tellings[sum.count - 1][rng_below(rng, 2)], parts, NULL, &out->text);
    buf_char(&out->text, ' ');
    corpus_expand(rng, sc->question, parts, slots, &out->text);
    write_steps(&sum, &out->reference);
    buf_char(&out->reference, ' ');
    corpus_expand(rng, sc->closing, parts, slots, &out->reference);
    for (int i = 0; i < 3; i++) {
        buf_free(&with[i]);
        buf_free(&without[i]);
    }
    return sum;
}

void corpus_sum(struct rng *rng, int heldout, struct corpus_record *out)
{
    static const char *const birds[] = {"birds", "children", "ducks", "sheep", "frogs", "cats"};
    static const char *const wheres[] = {"in the yard", "by the pond", "on the hill",
                                         "in the field", "in the garden", "near the gate"};
    const int girl = draw_below(rng, 2);
    const char *first = corpus_pick(rng, girl ? girls : boys, COUNT(girls)), *second = first;
    while (second == first)
        second = corpus_pick(rng, draw_below(rng, 2) ? girls : boys, COUNT(girls));
    const struct corpus_slot slots[] = {
        {"a", first}, {"b", second}, {"he", girl ? "she" : "he"}, {"keeps", "[keeps|has]"},
        {"items", corpus_pick(rng, items, COUNT(items))},
        {"birds", corpus_pick(rng, birds, COUNT(birds))},
        {"where", corpus_pick(rng, wheres, COUNT(wheres))}, {NULL, NULL}};
    out->task = "sum";
    buf_clear(&out->text);
    buf_clear(&out->reference);
    buf_clear(&out->answer);
    const struct worded_sum sum = draw_below(rng, 4) ? write_scene(rng, heldout, slots, out)
                                                     : write_pair(rng, heldout, slots, out);
    int numbers[4];
    corpus_key(out->task, numbers, sum_tuple(&sum, numbers), &out->key);
    buf_format(&out->answer, "%d", sum.result);
}
