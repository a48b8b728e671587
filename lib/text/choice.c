/* choice.c - see choice.h. A group collects up to 2 x count records, then is sorted and cut to
 * count: O(log count) per record. The largest key that is left is the upper bound for later
 * records. */
#include "lib/text/choice.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/mem.h"
#include "lib/base/rng.h"

struct choice_group {
    char *task;
    struct choice_item *v;
    size_t n, cap;
    size_t count; /* records to choose */
    uint64_t bound;
};

static int by_order(const void *a, const void *b)
{
    const struct choice_item *x = a, *y = b;
    return x->order < y->order ? -1 : x->order > y->order;
}

static int by_key(const void *a, const void *b)
{
    const struct choice_item *x = a, *y = b;
    if (x->key != y->key)
        return x->key < y->key ? -1 : 1;
    return by_order(a, b);
}

static void keep_smallest(struct choice_group *g)
{
    if (g->n == 0)
        return;
    qsort(g->v, g->n, sizeof *g->v, by_key);
    while (g->n > g->count)
        json_decref(g->v[--g->n].record);
    if (g->n == g->count)
        g->bound = g->v[g->n - 1].key;
}

static struct choice_group *find(const struct choice *c, const char *task)
{
    for (size_t i = 0; i < c->n_groups; i++)
        if (!strcmp(c->groups[i].task, task))
            return &c->groups[i];
    return NULL;
}

static struct choice_group *add_group(struct choice *c, char *task, size_t count)
{
    MEM_GROW(c->groups, c->n_groups, c->cap_groups);
    c->groups[c->n_groups] = (struct choice_group){.task = task, .count = count,
                                                   .bound = UINT64_MAX};
    return &c->groups[c->n_groups++];
}

/* *n = the number from 1 to 999999999 at the start of text. Returns its end; NULL: there is
 * none. */
static const char *read_count(const char *text, size_t *n)
{
    size_t digits = strspn(text, "0123456789");
    *n = digits < 10 ? (size_t)strtoll(text, NULL, 10) : 0;
    return *n ? text + digits : NULL;
}

int choice_per_task(struct choice *c, const char *text, struct err *e)
{
    size_t count;
    const char *s = text, *end = read_count(text, &count);
    if (end && !*end) {
        c->count = (int64_t)count;
        return 0;
    }
    for (; s; s = *end ? end + 1 : NULL) {
        size_t name = strcspn(s, "=,");
        end = name && s[name] == '=' ? read_count(s + name + 1, &count) : NULL;
        char *task = mem_format("%.*s", (int)name, s);
        if (!end || (*end && *end != ',') || find(c, task)) {
            free(task);
            return err_set(e, EXIT_BAD_USAGE, "expected TASK=N[,TASK=N...], or N alone, with N "
                           "from 1 to 999999999 and each task once, got %s", text);
        }
        add_group(c, task, count);
    }
    return 0;
}

int choice_open(const struct choice *c, const char *task, const char *id)
{
    const struct choice_group *g = find(c, task);
    return g ? rng_derive(c->seed, id) <= g->bound : c->count > 0;
}

void choice_add(struct choice *c, const char *task, json_t *record)
{
    struct choice_group *g = find(c, task);
    if (!g)
        g = add_group(c, mem_text(task), (size_t)c->count);
    MEM_GROW(g->v, g->n, g->cap);
    const char *id = json_string_value(json_object_get(record, "id"));
    g->v[g->n++] = (struct choice_item){rng_derive(c->seed, id), c->added++, record};
    if (g->n / 2 >= g->count && g->n >= 64)
        keep_smallest(g);
}

/* Sets *e: how many records there are, and the option that accepts fewer. */
static int refuse_too_few(const struct choice *c, const struct choice_group *g, struct err *e)
{
    const char *named = c->count ? "" : g->task;
    if (g->n == 0)
        return err_set(e, EXIT_BAD_DATA, "asked for %zu prompts of task %s, found none that fits",
                       g->count, g->task);
    if (g->task[0])
        return err_set(e, EXIT_BAD_DATA, "asked for %zu prompts of task %s, found %zu that fit "
                       "(--allow-fewer, or make PROMPT_CHOICE=\"--per-task %s%s%zu\", takes them)",
                       g->count, g->task, g->n, named, *named ? "=" : "", g->n);
    return err_set(e, EXIT_BAD_DATA, "asked for %zu prompts, found %zu that fit "
                   "(--allow-fewer, or make PROMPTS=%zu, takes them)", g->count, g->n, g->n);
}

int choice_finish(struct choice *c, int allow_fewer, struct err *e)
{
    size_t cap = 0;
    int bad = c->n_groups == 0 && !allow_fewer &&
              err_set(e, EXIT_BAD_DATA, "asked for %lld prompts, found none that fits",
                      (long long)c->count);
    for (size_t i = 0; i < c->n_groups; i++) {
        struct choice_group *g = &c->groups[i];
        keep_smallest(g);
        if (g->n < g->count && !allow_fewer)
            bad = refuse_too_few(c, g, e) != 0;
        for (size_t k = 0; k < g->n; k++) {
            MEM_GROW(c->v, c->n, cap);
            c->v[c->n++] = g->v[k];
        }
        g->n = 0;
    }
    if (c->n)
        qsort(c->v, c->n, sizeof *c->v, by_order);
    return bad ? -1 : 0;
}

void choice_free(struct choice *c)
{
    for (size_t i = 0; i < c->n_groups; i++) {
        struct choice_group *g = &c->groups[i];
        while (g->n > 0)
            json_decref(g->v[--g->n].record);
        free(g->v);
        free(g->task);
    }
    while (c->n > 0)
        json_decref(c->v[--c->n].record);
    free(c->groups);
    free(c->v);
    *c = (struct choice){0};
}
