/* choice.c - see choice.h. A group collects up to 2 x count records (at least 64), then it is
 * sorted and cut to `count`: O(log count) per record. The largest key that is left is the upper
 * bound for later records. */
#include "lib/text/choice.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/mem.h"
#include "lib/base/rng.h"

struct choice_group {
    char *task;
    struct choice_item *v;
    size_t n, cap;
    size_t count;   /* records to choose */
    uint64_t bound; /* a record with a larger key cannot be chosen */
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

static void keep_smallest(struct choice_group *group)
{
    if (group->n == 0)
        return;
    qsort(group->v, group->n, sizeof *group->v, by_key);
    while (group->n > group->count)
        json_decref(group->v[--group->n].record);
    if (group->n == group->count)
        group->bound = group->v[group->n - 1].key;
}

static struct choice_group *find(const struct choice *choice, const char *task)
{
    for (size_t i = 0; i < choice->n_groups; i++)
        if (!strcmp(choice->groups[i].task, task))
            return &choice->groups[i];
    return NULL;
}

static struct choice_group *add_group(struct choice *choice, char *task, size_t count)
{
    MEM_GROW(choice->groups, choice->n_groups, choice->cap_groups);
    choice->groups[choice->n_groups] = (struct choice_group){.task = task, .count = count,
                                                             .bound = UINT64_MAX};
    return &choice->groups[choice->n_groups++];
}

/* *n = the number from 1 to 999999999 at the start of text. Returns the end of its digits; NULL:
 * there is no such number. */
static const char *read_count(const char *text, size_t *n)
{
    size_t digits = strspn(text, "0123456789");
    *n = digits < 10 ? (size_t)strtoll(text, NULL, 10) : 0;
    return *n ? text + digits : NULL;
}

int choice_per_task(struct choice *choice, const char *text, struct err *e)
{
    size_t count;
    const char *bytes = text, *end = read_count(text, &count);
    if (end && !*end) {
        choice->count = (int64_t)count;
        return 0;
    }
    for (; bytes; bytes = *end ? end + 1 : NULL) {
        size_t name = strcspn(bytes, "=,");
        end = name && bytes[name] == '=' ? read_count(bytes + name + 1, &count) : NULL;
        char *task = mem_format("%.*s", (int)name, bytes);
        if (!end || (*end && *end != ',') || find(choice, task)) {
            free(task);
            return err_set(e, EXIT_BAD_USAGE, "expected TASK=N[,TASK=N...], or N alone, with N "
                           "from 1 to 999999999 and each task once, got %s", text);
        }
        add_group(choice, task, count);
    }
    return 0;
}

int choice_open(const struct choice *choice, const char *task, const char *id)
{
    const struct choice_group *group = find(choice, task);
    return group ? rng_derive(choice->seed, id) <= group->bound : choice->count > 0;
}

void choice_add(struct choice *choice, const char *task, json_t *record)
{
    struct choice_group *group = find(choice, task);
    if (!group)
        group = add_group(choice, mem_text(task), (size_t)choice->count);
    MEM_GROW(group->v, group->n, group->cap);
    const char *id = json_string_value(json_object_get(record, "id"));
    group->v[group->n++] = (struct choice_item){rng_derive(choice->seed, id), choice->added++,
                                                record};
    if (group->n / 2 >= group->count && group->n >= 64)
        keep_smallest(group);
}

/* Sets *e: how many records there are, and the option that accepts fewer. */
static int refuse_too_few(const struct choice *choice, const struct choice_group *group,
                          struct err *e)
{
    const char *named = choice->count ? "" : group->task;
    if (group->n == 0)
        return err_set(e, EXIT_BAD_DATA, "asked for %zu prompts of task %s, found none that fits",
                       group->count, group->task);
    if (group->task[0])
        return err_set(e, EXIT_BAD_DATA, "asked for %zu prompts of task %s, found %zu that fit "
                       "(--allow-fewer, or make PROMPT_CHOICE=\"--per-task %s%s%zu\", takes them)",
                       group->count, group->task, group->n, named, *named ? "=" : "", group->n);
    return err_set(e, EXIT_BAD_DATA,
                   "asked for %zu prompts, found %zu that fit "
                   "(--allow-fewer, or make PROMPTS=%zu, takes them)",
                   group->count, group->n, group->n);
}

int choice_finish(struct choice *choice, int allow_fewer, struct err *e)
{
    size_t cap = 0;
    int bad = choice->n_groups == 0 && !allow_fewer &&
              err_set(e, EXIT_BAD_DATA, "asked for %lld prompts, found none that fits",
                      (long long)choice->count);
    for (size_t i = 0; i < choice->n_groups; i++) {
        struct choice_group *group = &choice->groups[i];
        keep_smallest(group);
        if (group->n < group->count && !allow_fewer)
            bad = refuse_too_few(choice, group, e) != 0;
        for (size_t k = 0; k < group->n; k++) {
            MEM_GROW(choice->v, choice->n, cap);
            choice->v[choice->n++] = group->v[k];
        }
        group->n = 0;
    }
    if (choice->n)
        qsort(choice->v, choice->n, sizeof *choice->v, by_order);
    return bad ? -1 : 0;
}

void choice_free(struct choice *choice)
{
    for (size_t i = 0; i < choice->n_groups; i++) {
        struct choice_group *group = &choice->groups[i];
        while (group->n > 0)
            json_decref(group->v[--group->n].record);
        free(group->v);
        free(group->task);
    }
    while (choice->n > 0)
        json_decref(choice->v[--choice->n].record);
    free(choice->groups);
    free(choice->v);
    *choice = (struct choice){0};
}
