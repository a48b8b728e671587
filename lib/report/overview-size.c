/* overview-size.c - the tables of throughput by batch and length, and of memory; see overview.h. A
 * system is the autoregressive model, LLaDA with a number of tokens a step, or LLaDA with a method.
 * The table of throughput has a column for each system, the table of memory has rows for it. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lib/analysis/config_table.h"
#include "lib/base/mem.h"
#include "lib/record/rec.h"
#include "lib/report/overview.h"

#define COUNT(list) (sizeof(list) / sizeof *(list))
enum { SYSTEMS = 6, VALUES = 16 };

static int is_equal(double a, double b)
{
    return !(a < b) && !(a > b) && !isnan(a) && !isnan(b);
}

/* The name of the system of a row: "llama-demo", "llada-demo, 4 tokens a step", "llada-demo
 * dual-factor". The caller frees. */
static char *system_of(const struct config_row *row)
{
    if (row->kind != CONFIG_DIFFUSION || row->method || !row->axis || strcmp(row->axis, "steps"))
        return mem_text(row->name);
    double speed = row->length / row->value;
    return mem_format("%s, %.3g token%s a step", row->model, speed, speed > 1 ? "s" : "");
}

/* cells: number of points of the system. */
struct system { char *name; enum config_kind kind; size_t cells; };
struct systems { struct system v[64]; size_t n; };

static int by_cells(const void *a, const void *b)
{
    const struct system *x = a, *y = b;
    if (x->kind != y->kind) /* LLaMA first */
        return x->kind == CONFIG_AUTOREGRESSIVE ? -1 : y->kind == CONFIG_AUTOREGRESSIVE;
    return x->cells != y->cells ? (x->cells > y->cells ? -1 : 1) : strcmp(x->name, y->name);
}

/* Finds the systems and sorts them: LLaMA first, then by number of points. */
static void find_systems(struct systems *systems, const struct config_table *table)
{
    for (size_t i = 0; i < table->n; i++) {
        char *name = system_of(&table->v[i]);
        size_t at = 0;
        while (at < systems->n && strcmp(systems->v[at].name, name) != 0)
            at++;
        if (at == COUNT(systems->v) || at < systems->n) {
            free(name);
        } else {
            systems->v[systems->n++] = (struct system){name, table->v[i].kind, 0};
        }
        if (at < COUNT(systems->v))
            systems->v[at].cells++;
    }
    qsort(systems->v, systems->n, sizeof *systems->v, by_cells);
}

static int is_fixed(const struct config_row *row, const void *ctx)
{
    (void)ctx;
    return !strcmp(row->contract, "fixed") && row->kind != CONFIG_OTHER;
}

static const struct config_row *find_cell(const struct config_table *table, const char *system,
                                          double batch, double length)
{
    for (size_t i = 0; i < table->n; i++) {
        char *name = system_of(&table->v[i]);
        int is = !strcmp(name, system) && is_equal(table->v[i].batch, batch) &&
                 is_equal(table->v[i].length, length);
        free(name);
        if (is)
            return &table->v[i];
    }
    return NULL;
}

/* The points of the contract `fixed`, with their systems, batch sizes and lengths. */
struct size_grid {
    struct config_table table;
    struct systems systems;
    double batches[VALUES], lengths[VALUES];
    int n_batches, n_lengths;
};

/* Finds the points that have the metric. The caller passes the result to close_grid. */
static struct size_grid *open_grid(const struct runset *set, const char *metric)
{
    struct size_grid *grid = mem_zero(1, sizeof *grid);
    config_table_metric(&grid->table, set, metric);
    config_table_keep(&grid->table, is_fixed, NULL);
    find_systems(&grid->systems, &grid->table);
    grid->n_batches = config_table_values(&grid->table, CONFIG_BATCH, grid->batches, VALUES);
    grid->n_lengths = config_table_values(&grid->table, CONFIG_LENGTH, grid->lengths, VALUES);
    return grid;
}

static void close_grid(struct size_grid *grid)
{
    for (size_t i = 0; i < grid->systems.n; i++)
        free(grid->systems.v[i].name);
    config_table_free(&grid->table);
    free(grid);
}

void overview_scale(struct page *page, const struct runset *set)
{
    struct page_column columns[2 + SYSTEMS] = {{"Answer length (tokens)", NULL}, {"Batch", NULL}};
    struct size_grid *grid = open_grid(set, "slot_tokens_per_s");
    const struct system *system = grid->systems.v;
    size_t n = grid->systems.n < SYSTEMS ? grid->systems.n : SYSTEMS, rows = 0;
    for (size_t i = 0; i < n; i++)
        columns[2 + i] = (struct page_column){system[i].name, "slot_tokens_per_s"};
    page_table(page,
               "Tokens a second of a whole batch; higher is better. Both models write exactly "
               "the same number of tokens. Brackets are 95 % intervals.",
               2 + n, columns);
    for (int at = 0; at < grid->n_lengths; at++)
        for (int k = 0; n && k < grid->n_batches && rows < OVERVIEW_ROWS; k++, rows++) {
            char *length = mem_format("%.0f", grid->lengths[at]);
            char *batch = mem_format("%.0f", grid->batches[k]);
            page_cell(page, length);
            page_cell(page, batch);
            for (size_t i = 0; i < n; i++) {
                const struct config_row *row = find_cell(&grid->table, system[i].name,
                                                         grid->batches[k], grid->lengths[at]);
                page_value(page, row ? row->y.at : (double)NAN, row ? row->y.lo : (double)NAN,
                           row ? row->y.hi : (double)NAN, row && row->oom ? "out of memory" : NULL);
            }
            free(length);
            free(batch);
        }
    page_table_end(page);
    close_grid(grid);
}

/* 1: an earlier system needs the same memory as system i at this length, within 0.5 % at every
 * batch size. */
static int needs_as_another(const struct size_grid *grid, size_t i, double length)
{
    const struct config_table *table = &grid->table;
    const struct system *system = grid->systems.v;
    for (size_t k = 0; k < i; k++) {
        int same = 1;
        for (size_t at = 0; at < table->n; at++) {
            const struct config_row *own = find_cell(table, system[i].name, table->v[at].batch,
                                                     length);
            const struct config_row *other = find_cell(table, system[k].name, table->v[at].batch,
                                                       length);
            same &= !own == !other &&
                    (!own || own->oom || fabs(own->y.at - other->y.at) <= 0.005 * other->y.at);
        }
        if (same)
            return 1;
    }
    return 0;
}

/* Puts the cells with the parts of memory, and the peak. */
static void put_layers(struct page *page, const struct runset *set, const struct config_row *row)
{
    static const char *const layers[] = {"memory_weights_bytes", "memory_kv_bytes",
                                         "memory_activations_bytes",
                                         "memory_allocated_peak_bytes"};
    for (size_t i = 0; i < COUNT(layers); i++)
        page_count(page, rec_number(runset_find(set, "metric", row->point, layers[i]), "value"));
}

void overview_memory(struct page *page, const struct runset *set)
{
    static const struct page_column columns[] = {
        {"Model", NULL},
        {"Batch", NULL},
        {"Weights", "memory_weights_bytes"},
        {"KV cache", "memory_kv_bytes"},
        {"Activations", "memory_activations_bytes"},
        {"Peak, allocated", "memory_allocated_peak_bytes"}};
    struct size_grid *grid = open_grid(set, "memory_allocated_peak_bytes");
    double longest = grid->n_lengths ? grid->lengths[grid->n_lengths - 1] : 0;
    char *caption = mem_format("Answers of exactly %.0f tokens. Memory is the same in every "
                               "launch, so it has no interval. Methods whose memory is within 0.5 "
                               "%% share a row. Weights, cache and activations peak at different "
                               "times, so their sum is not the peak.", longest);
    size_t rows = 0;
    page_table(page, caption, COUNT(columns), columns);
    for (size_t i = 0; i < grid->systems.n; i++)
        for (int k = 0; k < grid->n_batches && rows < OVERVIEW_ROWS; k++) {
            const char *name = grid->systems.v[i].name;
            if (needs_as_another(grid, i, longest))
                break;
            const struct config_row *row = find_cell(&grid->table, name, grid->batches[k], longest);
            if (!row || isnan(row->y.at))
                continue;
            char *batch = mem_format("%.0f", grid->batches[k]);
            page_cell(page, name);
            page_cell(page, batch);
            put_layers(page, set, row);
            free(batch);
            rows++;
        }
    page_table_end(page);
    free(caption);
    close_grid(grid);
}
