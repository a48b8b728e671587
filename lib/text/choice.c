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
    size_t count; /* records to choose; 0: the task has no share */
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

/* The N of TASK=N in shares, TASK being n bytes; 0: shares do not name the task. */
static int64_t find_share(const char *shares, const char *task, size_t n)
{
    for (const char *s = shares; s; s = strchr(s, ','), s = s ? s + 1 : NULL)
        if (!strncmp(s, task, n) && s[n] == '=')
            return strtoll(s + n + 1, NULL, 10);
    return 0;
}

int choice_check(const char *shares, struct err *e)
{
    const char *s = shares;
    while (s) {
        size_t name = strcspn(s, "=,");
        const char *number = s + name + (s[name] == '=');
        size_t digits = strspn(number, "0123456789");
        const char *end = number + digits, *rest = *end ? end + 1 : NULL;
        if (name == 0 || s[name] != '=' || digits == 0 || digits > 9 || atoll(number) == 0 ||
            (*end && *end != ',') || find_share(rest, s, name))
            return err_set(e, EXIT_BAD_USAGE, "expected TASK=N[,TASK=N...] with N from 1 to "
                           "999999999 and each task once, got %s", shares);
        s = rest;
    }
    return 0;
}

/* A task that has a share, but no record at all. -1: there is one. */
static int find_missing(const struct choice *c, struct err *e)
{
    for (const char *s = c->shares; s; s = strchr(s, ','), s = s ? s + 1 : NULL) {
        size_t name = strcspn(s, "="), i = 0;
        while (i < c->n_groups &&
               (strncmp(c->groups[i].task, s, name) || c->groups[i].task[name]))
            i++;
        if (i == c->n_groups)
            return err_set(e, EXIT_BAD_DATA, "asked for %lld prompts of task %.*s, found none that "
                           "fits", (long long)find_share(s, s, name), (int)name, s);
    }
    return 0;
}

static struct choice_group *find(const struct choice *c, const char *task)
{
    for (size_t i = 0; i < c->n_groups; i++)
        if (!strcmp(c->groups[i].task, task))
            return &c->groups[i];
    return NULL;
}

int choice_open(const struct choice *c, const char *task, const char *id)
{
    const struct choice_group *g = find(c, task);
    if (c->shares && !find_share(c->shares, task, strlen(task)))
        return 0;
    return !g || rng_derive(c->seed, id) <= g->bound;
}

void choice_add(struct choice *c, const char *task, json_t *record)
{
    struct choice_group *g = find(c, task);
    if (!g) {
        MEM_GROW(c->groups, c->n_groups, c->cap_groups);
        g = &c->groups[c->n_groups++];
        int64_t count = c->shares ? find_share(c->shares, task, strlen(task)) : c->count;
        *g = (struct choice_group){.task = mem_text(task), .bound = UINT64_MAX,
                                   .count = (size_t)count};
    }
    MEM_GROW(g->v, g->n, g->cap);
    const char *id = json_string_value(json_object_get(record, "id"));
    g->v[g->n++] = (struct choice_item){rng_derive(c->seed, id), c->added++, record};
    if (g->n / 2 >= g->count && g->n >= 64)
        keep_smallest(g);
}

/* Sets *e: how many records there are, and the option that accepts fewer. */
static int refuse_too_few(const struct choice *c, const struct choice_group *g, struct err *e)
{
    if (g->task[0])
        return err_set(e, EXIT_BAD_DATA, "asked for %lld prompts of task %s, found %zu that fit "
                       "(--allow-fewer, or make PROMPT_CHOICE=\"--per-task %zu\", takes them)",
                       (long long)g->count, g->task, g->n, g->n);
    return err_set(e, EXIT_BAD_DATA, "asked for %lld prompts, found %zu that fit "
                   "(--allow-fewer, or make PROMPTS=%zu, takes them)", (long long)c->count, g->n,
                   g->n);
}

int choice_finish(struct choice *c, int allow_fewer, struct err *e)
{
    size_t cap = 0;
    int bad = c->n_groups == 0 && !allow_fewer &&
              err_set(e, EXIT_BAD_DATA, "asked for %lld prompts, found none that fits",
                      (long long)c->count);
    if (!bad && !allow_fewer && find_missing(c, e))
        bad = 1;
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
