/* cells.c - see cells.h. Sums of logarithms are kept in a hash table by launch and prompt. The
 * record is written in the order of the ids, so the order of the input changes at most the last bit
 * of a sum. */
#include "lib/analysis/measure/cells.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/mem.h"
#include "lib/base/hash64.h"
#include "lib/base/order.h"
#include "lib/record/rec.h"

static size_t place_of(const struct cells *c, int64_t launch, uint32_t id)
{
    size_t at = (size_t)hash64_bits((uint64_t)launch, id) & (c->slots - 1);
    for (; c->slot[at]; at = (at + 1) & (c->slots - 1)) {
        const struct cell *v = &c->v[c->slot[at] - 1];
        if (v->launch == launch && v->id == id)
            break;
    }
    return at;
}

static void grow(struct cells *c)
{
    c->slots = c->slots ? 2 * c->slots : 256;
    free(c->slot);
    c->slot = mem_zero(c->slots, sizeof *c->slot);
    for (size_t i = 0; i < c->n; i++)
        c->slot[place_of(c, c->v[i].launch, c->v[i].id)] = (uint32_t)(i + 1);
}

static struct cell *cell_of(struct cells *c, int64_t launch, uint32_t id)
{
    if (2 * (c->n + 1) > c->slots)
        grow(c);
    size_t at = place_of(c, launch, id);
    if (!c->slot[at]) {
        MEM_GROW(c->v, c->n, c->cap);
        c->v[c->n++] = (struct cell){.launch = launch, .id = id};
        c->slot[at] = (uint32_t)c->n;
    }
    return &c->v[c->slot[at] - 1];
}

static uint32_t id_of(struct cells *c, const json_t *record)
{
    const json_t *id = json_object_get(record, "id");
    const char *task = rec_text(record, "task");
    char number[32];
    snprintf(number, sizeof number, "%" JSON_INTEGER_FORMAT, json_integer_value(id));
    const char *text = json_is_string(id) ? json_string_value(id) : number;
    size_t before = c->ids.n, at = places_of(&c->ids, text, strlen(text));
    if (c->ids.n > before) {
        MEM_GROW(c->task, before, c->cap_task);
        c->task[before] = (uint32_t)places_of(&c->tasks, task ? task : "", task ? strlen(task) : 0);
    }
    return (uint32_t)at;
}

void cells_add(struct cells *c, const struct timing *t, const json_t *record, int disturbed)
{
    struct cell *v = cell_of(c, t->launch, id_of(c, record));
    if (!disturbed && t->e2e_ns > 0) {
        v->log_wall += log(t->e2e_ns);
        v->n_wall++;
    }
    if (t->cpu_ns > 0) {
        v->log_cpu += log(t->cpu_ns);
        v->n_cpu++;
    }
}

/* ---- the record ---- */

struct order { const char *text; uint32_t at; };

static int by_text(const void *a, const void *b)
{
    return strcmp(((const struct order *)a)->text, ((const struct order *)b)->text);
}

/* The launch numbers, ascending, each once. The caller frees. */
static int64_t *launches_of(const struct cells *c, size_t *n)
{
    int64_t *v = mem_zero(c->n, sizeof *v);
    size_t kept = 0;
    for (size_t i = 0; i < c->n; i++)
        v[i] = c->v[i].launch;
    if (c->n)
        qsort(v, c->n, sizeof *v, order_ints);
    for (size_t i = 0; i < c->n; i++)
        if (!kept || v[kept - 1] != v[i])
            v[kept++] = v[i];
    *n = kept;
    return v;
}

static json_t *mean_of(double log_sum, uint32_t n)
{
    return n ? json_integer((json_int_t)nearbyint(exp(log_sum / n))) : json_null();
}

/* One row for each launch. */
static void put_rows(const struct cells *c, const struct order *ids, const int64_t *launch,
                     size_t launches, json_t *record)
{
    json_t *wall = json_array(), *cpu = json_array();
    int64_t without = 0;
    for (size_t l = 0; l < launches; l++) {
        json_t *w = json_array(), *p = json_array();
        for (size_t i = 0; i < c->ids.n; i++) {
            uint32_t at = c->slot[place_of(c, launch[l], ids[i].at)];
            const struct cell *v = at ? &c->v[at - 1] : &(struct cell){.n_wall = 0};
            json_array_append_new(w, mean_of(v->log_wall, v->n_wall));
            json_array_append_new(p, mean_of(v->log_cpu, v->n_cpu));
            without += at && !v->n_wall;
        }
        json_array_append_new(wall, w);
        json_array_append_new(cpu, p);
    }
    json_object_set_new(record, "e2e_ns", wall);
    json_object_set_new(record, "cpu_ns", cpu);
    rec_set_int(record, "disturbed_cells", without);
}

void cells_put(struct cells *c, json_t *record)
{
    size_t launches;
    int64_t *launch = launches_of(c, &launches);
    struct order *ids = mem_zero(c->ids.n, sizeof *ids);
    json_t *names = json_array(), *tasks = json_array(), *numbers = json_array();
    for (size_t i = 0; i < c->ids.n; i++)
        ids[i] = (struct order){places_text(&c->ids, i), (uint32_t)i};
    if (c->ids.n)
        qsort(ids, c->ids.n, sizeof *ids, by_text);
    for (size_t i = 0; i < c->ids.n; i++) {
        const char *task = places_text(&c->tasks, c->task[ids[i].at]);
        json_array_append_new(names, json_string(ids[i].text));
        json_array_append_new(tasks, *task ? json_string(task) : json_null());
    }
    for (size_t l = 0; l < launches; l++)
        json_array_append_new(numbers, json_integer((json_int_t)launch[l]));
    json_object_set_new(record, "ids", names);
    json_object_set_new(record, "tasks", tasks);
    json_object_set_new(record, "launches", numbers);
    if (!c->slots)
        grow(c);
    put_rows(c, ids, launch, launches, record);
    free(ids);
    free(launch);
}

void cells_free(struct cells *c)
{
    places_free(&c->ids);
    places_free(&c->tasks);
    free(c->task);
    free(c->v);
    free(c->slot);
    *c = (struct cells){0};
}
