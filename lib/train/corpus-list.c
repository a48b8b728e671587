/* corpus-list.c - list tasks: copy a list of words, reverse it, give it in any order, or replace
 * one word; see corpus.h. List tasks show what a model loses when it writes several words at once.
 * In the tasks copy, reverse and replace the prompt determines every word. In the task shuffle a
 * word depends on the words chosen before, which a model that writes several words at once does not
 * see.
 *     Put lamp for cup: drum, cup, kite.
 *      drum, lamp, kite
 * The tasks are those of ParallelBench (arXiv 2510.04767). The key of a list is its words in
 * order. */
#include "lib/train/corpus.h"

#include <string.h>

#define COUNT(a) (sizeof(a) / sizeof *(a))
enum { FEWEST = 3, MOST = 8 };

static const char *const nouns[] = {
    "kite", "ball", "drum", "book", "hat", "scarf", "lamp", "key", "ring", "boat", "bell", "cup",
    "map", "coin", "doll", "flute", "shell", "box", "clock", "brush", "glove", "bag", "spoon",
    "bread", "soup", "cake", "cheese", "honey", "corn", "pie", "fish", "rice", "jam", "meat",
    "dog", "cat", "bird", "rabbit", "fox", "goat", "duck", "horse", "mouse", "owl", "lamb", "hen"};

/* Words are indices into nouns[]. word: the n words of the list. said: the words of the response.
 * out: the word to replace. in: the new word, which is not in the list. */
struct list {
    int n, word[MOST], said[MOST], out, in;
};

static int draw_below(struct rng *rng, int n)
{
    return (int)rng_below(rng, (uint64_t)n);
}

static void write_copy(struct rng *rng, struct list *list)
{
    (void)rng;
    memcpy(list->said, list->word, sizeof list->said);
}

static void write_reversed(struct rng *rng, struct list *list)
{
    (void)rng;
    for (int i = 0; i < list->n; i++)
        list->said[i] = list->word[list->n - 1 - i];
}

static void write_shuffled(struct rng *rng, struct list *list)
{
    write_copy(rng, list);
    for (int i = list->n - 1; i > 0; i--) {
        const int k = draw_below(rng, i + 1), word = list->said[i];
        list->said[i] = list->said[k];
        list->said[k] = word;
    }
}

/* The list may contain the word to replace several times (list_draw). */
static void write_replaced(struct rng *rng, struct list *list)
{
    (void)rng;
    for (int i = 0; i < list->n; i++)
        list->said[i] = list->word[i] == list->out ? list->in : list->word[i];
}

static const struct list_task {
    const char *name, *text;
    void (*say)(struct rng *rng, struct list *list);
    int repeats, any_order;
} tasks[] = {
    {"copy", "[Say again|Copy the words]: {list}.", write_copy, 0, 0},
    {"reverse", "[From last to first|Say backwards]: {list}.", write_reversed, 0, 0},
    {"shuffle", "[In any order|Mix the words]: {list}.", write_shuffled, 0, 1},
    {"replace", "[Put {in} for {out}|Replace {out} by {in}]: {list}.", write_replaced, 1, 0},
};

/* Draws distinct words, the word to replace and the new word. repeats 1: about a quarter of the
 * other words become the word to replace. */
static struct list list_draw(struct rng *rng, int repeats)
{
    int order[COUNT(nouns)];
    struct list list = {.n = FEWEST + draw_below(rng, MOST - FEWEST + 1)};
    for (int i = 0; i < (int)COUNT(nouns); i++)
        order[i] = i;
    for (int i = 0; i <= list.n; i++) {
        const int k = i + draw_below(rng, (int)COUNT(nouns) - i), word = order[i];
        order[i] = order[k];
        order[k] = word;
    }
    memcpy(list.word, order, (size_t)list.n * sizeof *order);
    list.in = order[list.n];
    list.out = order[draw_below(rng, list.n)];
    for (int i = 0; repeats && i < list.n; i++)
        if (draw_below(rng, 4) == 0)
            list.word[i] = list.out;
    return list;
}

static void put_words(struct buf *text, const int *word, int n)
{
    for (int i = 0; i < n; i++)
        buf_format(text, "%s%s", i ? ", " : "", nouns[word[i]]);
}

void corpus_list(struct rng *rng, int heldout, struct corpus_record *out)
{
    const struct list_task *task = &tasks[draw_below(rng, (int)COUNT(tasks))];
    struct list list;
    do list = list_draw(rng, task->repeats);
    while (corpus_is_heldout(list.word, list.n) != heldout);
    corpus_key("list", list.word, list.n, &out->key);
    task->say(rng, &list);
    struct buf words = {0};
    put_words(&words, list.word, list.n);
    const struct corpus_slot slots[] = {
        {"list", words.data}, {"in", nouns[list.in]}, {"out", nouns[list.out]}, {NULL, NULL}};
    out->task = task->name;
    buf_clear(&out->text);
    buf_clear(&out->reference);
    buf_clear(&out->answer);
    corpus_expand(rng, task->text, slots, NULL, &out->text);
    buf_char(&out->reference, ' ');
    put_words(&out->reference, list.said, list.n);
    buf_text(&out->answer, task->any_order ? "{" : "");
    put_words(&out->answer, task->any_order ? list.word : list.said, list.n);
    buf_text(&out->answer, task->any_order ? "}" : "");
    buf_free(&words);
}
