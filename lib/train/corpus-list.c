/* corpus-list.c - list tasks: copy a list of words, reverse it, give it in any order, or replace
 * one word. They show what a model loses when it writes several words at once. In three of the four
 * the prompt determines every word. In any order it does not: a word depends on the words chosen
 * before, which a model that writes several words at once does not see.
 *     Put lamp for cup: drum, cup, kite.
 *      drum, lamp, kite
 * Tasks: ParallelBench (arXiv 2510.04767). Words: those of the stories. The key of a list is its
 * words in order. */
#include "lib/train/corpus.h"

#include <string.h>

#define COUNT(a) (sizeof(a) / sizeof *(a))
enum { FEWEST = 3, MOST = 8 };

static const char *const nouns[] = {
    "kite", "ball", "drum", "book", "hat", "scarf", "lamp", "key", "ring", "boat", "bell", "cup",
    "map", "coin", "doll", "flute", "shell", "box", "clock", "brush", "glove", "bag", "spoon",
    "bread", "soup", "cake", "cheese", "honey", "corn", "pie", "fish", "rice", "jam", "meat",
    "dog", "cat", "bird", "rabbit", "fox", "goat", "duck", "horse", "mouse", "owl", "lamb", "hen"};

/* n words, the words of the response, and one word that is not in the list. */
struct list {
    int n, word[MOST], said[MOST], out, in;
};

static int draw_below(struct rng *r, int n)
{
    return (int)rng_below(r, (uint64_t)n);
}

static void write_copy(struct rng *r, struct list *l)
{
    (void)r;
    memcpy(l->said, l->word, sizeof l->said);
}

static void write_reversed(struct rng *r, struct list *l)
{
    (void)r;
    for (int i = 0; i < l->n; i++)
        l->said[i] = l->word[l->n - 1 - i];
}

static void write_shuffled(struct rng *r, struct list *l)
{
    write_copy(r, l);
    for (int i = l->n - 1; i > 0; i--) {
        const int k = draw_below(r, i + 1), word = l->said[i];
        l->said[i] = l->said[k];
        l->said[k] = word;
    }
}

/* The word to replace was drawn with the list, which may contain it several times. */
static void write_replaced(struct rng *r, struct list *l)
{
    (void)r;
    for (int i = 0; i < l->n; i++)
        l->said[i] = l->word[i] == l->out ? l->in : l->word[i];
}

static const struct list_task {
    const char *name, *text;
    void (*say)(struct rng *r, struct list *l);
    int repeats, any_order;
} tasks[] = {
    {"copy", "[Say again|Copy the words]: {list}.", write_copy, 0, 0},
    {"reverse", "[From last to first|Say backwards]: {list}.", write_reversed, 0, 0},
    {"shuffle", "[In any order|Mix the words]: {list}.", write_shuffled, 0, 1},
    {"replace", "[Put {in} for {out}|Replace {out} by {in}]: {list}.", write_replaced, 1, 0},
};

/* Draws distinct words and the new word; with `repeats`, about a quarter of the other words become
 * the word to replace. */
static struct list list_draw(struct rng *r, int repeats)
{
    int order[COUNT(nouns)];
    struct list l = {.n = FEWEST + draw_below(r, MOST - FEWEST + 1)};
    for (int i = 0; i < (int)COUNT(nouns); i++)
        order[i] = i;
    for (int i = 0; i <= l.n; i++) {
        const int k = i + draw_below(r, (int)COUNT(nouns) - i), word = order[i];
        order[i] = order[k];
        order[k] = word;
    }
    memcpy(l.word, order, (size_t)l.n * sizeof *order);
    l.in = order[l.n];
    l.out = order[draw_below(r, l.n)];
    for (int i = 0; repeats && i < l.n; i++)
        if (draw_below(r, 4) == 0)
            l.word[i] = l.out;
    return l;
}

static void put_words(struct buf *b, const int *word, int n)
{
    for (int i = 0; i < n; i++)
        buf_format(b, "%s%s", i ? ", " : "", nouns[word[i]]);
}

void corpus_list(struct rng *r, int heldout, struct corpus_record *out)
{
    const struct list_task *t = &tasks[draw_below(r, (int)COUNT(tasks))];
    struct list l;
    do l = list_draw(r, t->repeats);
    while (corpus_is_heldout(l.word, l.n) != heldout);
    corpus_key("list", l.word, l.n, &out->key);
    t->say(r, &l);
    struct buf words = {0};
    put_words(&words, l.word, l.n);
    const struct corpus_slot slots[] = {
        {"list", words.data}, {"in", nouns[l.in]}, {"out", nouns[l.out]}, {NULL, NULL}};
    out->task = t->name;
    buf_clear(&out->text);
    buf_clear(&out->reference);
    buf_clear(&out->answer);
    corpus_expand(r, t->text, slots, NULL, &out->text);
    buf_char(&out->reference, ' ');
    put_words(&out->reference, l.said, l.n);
    buf_text(&out->answer, t->any_order ? "{" : "");
    put_words(&out->answer, t->any_order ? l.word : l.said, l.n);
    buf_text(&out->answer, t->any_order ? "}" : "");
    buf_free(&words);
}
