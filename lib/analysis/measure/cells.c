/* cells.c - see cells.h. A hash table by launch and prompt has the sums of logarithms. The record
 * is written in the order of the ids, so the order of the input changes at most the last bit of a
 * sum. */
#include "lib/analysis/measure/cells.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/mem.h"
#include "lib/base/hash64.h"
#include "lib/base/order.h"
#include "lib/record/rec.h"

static size_t place_of(const struct cells *cells, int64_t launch, uint32_t id)
{
    size_t at = (size_t)hash64_bits((uint64_t)launch, id) & (cells->slots - 1);
    for (; cells->slot[at]; at = (at + 1) & (cells->slots - 1)) {
        const struct cell *cell = &cells->v[cells->slot[at] - 1];
        if (cell->launch == launch && cell->id == id)
            break;
    }
    return at;
}

static void grow(struct cells *cells)
{
    cells->slots = cells->slots ? 2 * cells->slots : 256;
    free(cells->slot);
    cells->slot = mem_zero(cells->slots, sizeof *cells->slot);
    for (size_t i = 0; i < cells->n; i++)
        cells->slot[place_of(cells, cells->v[i].launch, cells->v[i].id)] = (uint32_t)(i + 1);
}

static struct cell *cell_of(struct cells *cells, int64_t launch, uint32_t id)
{
    if (2 * (cells->n + 1) > cells->slots)
        grow(cells);
    size_t at = place_of(cells, launch, id);
    if (!cells->slot[at]) {
        MEM_GROW(cells->v, cells->n, cells->cap);
        cells->v[cells->n++] = (struct cell){.launch = launch, .id = id};
        cells->slot[at] = (uint32_t)cells->n;
    }
    return &cells->v[cells->slot[at] - 1];
}

static uint32_t id_of(struct cells *cells, const json_t *record)
{
    const json_t *id = json_object_get(record, "id");
    const char *task = rec_text(record, "task");
    char number[32];
    snprintf(number, sizeof number, "%" JSON_INTEGER_FORMAT, json_integer_value(id));
    const char *text = json_is_string(id) ? json_string_value(id) : number;
    size_t before = cells->ids.n, at = places_of(&cells->ids, text, strlen(text));
    if (cells->ids.n > before) {
        MEM_GROW(cells->task, before, cells->cap_task);
        cells->task[before] = (uint32_t)places_of(&cells->tasks, task ? task : "",
                                                  task ? strlen(task) : 0);
    }
    return (uint32_t)at;
}

void cells_add(struct cells *cells, const struct timing *timing, const json_t *record,
               int disturbed)
{
    struct cell *cell = cell_of(cells, timing->launch, id_of(cells, record));
    if (!disturbed && timing->e2e_ns > 0) {
        cell->log_wall += log(timing->e2e_ns);
        cell->n_wall++;
    }
    if (timing->cpu_ns > 0) {
        cell->log_cpu += log(timing->cpu_ns);
        cell->n_cpu++;
    }
}

/* ---- the record ---- */

struct order { const char *text; uint32_t at; };

static int by_text(const void *a, const void *b)
{
    return strcmp(((const struct order *)a)->text, ((const struct order *)b)->text);
}

/* The launch numbers, ascending, each once. The caller frees. */
static int64_t *launches_of(const struct cells *cells, size_t *n)
{
    int64_t *v = mem_zero(cells->n, sizeof *v);
    size_t kept = 0;
    for (size_t i = 0; i < cells->n; i++)
        v[i] = cells->v[i].launch;
    if (cells->n)
        qsort(v, cells->n, sizeof *v, order_ints);
    for (size_t i = 0; i < cells->n; i++)
        if (!kept || v[kept - 1] != v[i])
            v[kept++] = v[i];
    *n = kept;
    return v;
}

static json_t *mean_of(double log_sum, uint32_t n)
{
    return n ? json_integer((json_int_t)nearbyint(exp(log_sum / n))) : json_null();
}

/* Sets e2e_ns and cpu_ns as arrays [launch][prompt], and disturbed_cells. */
static void put_rows(const struct cells *cells, const struct order *ids, const int64_t *launch,
                     size_t launches, json_t *record)
{
    json_t *wall = json_array(), *cpu = json_array();
    int64_t without = 0;
    for (size_t place = 0; place < launches; place++) {
        json_t *walls = json_array(), *passes = json_array();
        for (size_t i = 0; i < cells->ids.n; i++) {
            uint32_t at = cells->slot[place_of(cells, launch[place], ids[i].at)];
            const struct cell *cell = at ? &cells->v[at - 1] : &(struct cell){.n_wall = 0};
            json_array_append_new(walls, mean_of(cell->log_wall, cell->n_wall));
            json_array_append_new(passes, mean_of(cell->log_cpu, cell->n_cpu));
            without += at && !cell->n_wall;
        }
        json_array_append_new(wall, walls);
        json_array_append_new(cpu, passes);
    }
    json_object_set_new(record, "e2e_ns", wall);
    json_object_set_new(record, "cpu_ns", cpu);
    rec_set_int(record, "disturbed_cells", without);
}

void cells_put(struct cells *cells, json_t *record)
{
    size_t launches;
    int64_t *launch = launches_of(cells, &launches);
    struct order *ids = mem_zero(cells->ids.n, sizeof *ids);
    json_t *names = json_array(), *tasks = json_array(), *numbers = json_array();
    for (size_t i = 0; i < cells->ids.n; i++)
        ids[i] = (struct order){places_text(&cells->ids, i), (uint32_t)i};
    if (cells->ids.n)
        qsort(ids, cells->ids.n, sizeof *ids, by_text);
    for (size_t i = 0; i < cells->ids.n; i++) {
        const char *task = places_text(&cells->tasks, cells->task[ids[i].at]);
        json_array_append_new(names, json_string(ids[i].text));
        json_array_append_new(tasks, *task ? json_string(task) : json_null());
    }
    for (size_t at = 0; at < launches; at++)
        json_array_append_new(numbers, json_integer((json_int_t)launch[at]));
    json_object_set_new(record, "ids", names);
    json_object_set_new(record, "tasks", tasks);
    json_object_set_new(record, "launches", numbers);
    if (!cells->slots)
        grow(cells);
    put_rows(cells, ids, launch, launches, record);
    free(ids);
    free(launch);
}

void cells_free(struct cells *cells)
{
    places_free(&cells->ids);
    places_free(&cells->tasks);
    free(cells->task);
    free(cells->v);
    free(cells->slot);
    *cells = (struct cells){0};
}
