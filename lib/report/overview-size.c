/* overview-size.c - see overview.h: throughput by batch and length, and memory. A column is a
 * system: the autoregressive model, LLaDA with a number of tokens a step, or LLaDA with a
 * method. */
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
static char *system_of(const struct config_row *a)
{
    if (a->kind != CONFIG_DIFFUSION || a->is_method || !a->axis || strcmp(a->axis, "steps"))
        return mem_text(a->name);
    double speed = a->length / a->value;
    return mem_format("%s, %.3g token%s a step", a->model, speed, speed > 1 ? "s" : "");
}

struct system { char *name; enum config_kind kind; size_t cells; };
struct systems { struct system v[64]; size_t n; };

static int by_cells(const void *a, const void *b)
{
    const struct system *x = a, *y = b;
    if (x->kind != y->kind) /* LLaMA first */
        return x->kind == CONFIG_AUTOREGRESSIVE ? -1 : y->kind == CONFIG_AUTOREGRESSIVE;
    return x->cells != y->cells ? (x->cells > y->cells ? -1 : 1) : strcmp(x->name, y->name);
}

/* Finds the systems; LLaMA first, then by number of cells. */
static void find_systems(struct systems *s, const struct config_table *c)
{
    for (size_t i = 0; i < c->n; i++) {
        char *name = system_of(&c->v[i]);
        size_t at = 0;
        while (at < s->n && strcmp(s->v[at].name, name) != 0)
            at++;
        if (at == COUNT(s->v) || at < s->n) {
            free(name);
        } else {
            s->v[s->n++] = (struct system){name, c->v[i].kind, 0};
        }
        if (at < COUNT(s->v))
            s->v[at].cells++;
    }
    qsort(s->v, s->n, sizeof *s->v, by_cells);
}

static int is_fixed(const struct config_row *a, const void *ctx)
{
    (void)ctx;
    return !strcmp(a->contract, "fixed") && a->kind != CONFIG_OTHER;
}

static const struct config_row *find_cell(const struct config_table *c, const char *system,
                                          double batch, double length)
{
    for (size_t i = 0; i < c->n; i++) {
        char *name = system_of(&c->v[i]);
        int is = !strcmp(name, system) && is_equal(c->v[i].batch, batch) &&
                 is_equal(c->v[i].length, length);
        free(name);
        if (is)
            return &c->v[i];
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
static struct size_grid *open_grid(const struct runset *s, const char *metric)
{
    struct size_grid *g = mem_zero(1, sizeof *g);
    config_table_metric(&g->table, s, metric);
    config_table_keep(&g->table, is_fixed, NULL);
    find_systems(&g->systems, &g->table);
    g->n_batches = config_table_values(&g->table, CONFIG_BATCH, g->batches, VALUES);
    g->n_lengths = config_table_values(&g->table, CONFIG_LENGTH, g->lengths, VALUES);
    return g;
}

static void close_grid(struct size_grid *g)
{
    for (size_t i = 0; i < g->systems.n; i++)
        free(g->systems.v[i].name);
    config_table_free(&g->table);
    free(g);
}

void overview_scale(struct page *p, const struct runset *s)
{
    struct page_column columns[2 + SYSTEMS] = {{"Answer length (tokens)", NULL}, {"Batch", NULL}};
    struct size_grid *g = open_grid(s, "slot_tokens_per_s");
    const struct system *system = g->systems.v;
    size_t n = g->systems.n < SYSTEMS ? g->systems.n : SYSTEMS, rows = 0;
    for (size_t i = 0; i < n; i++)
        columns[2 + i] = (struct page_column){system[i].name, "slot_tokens_per_s"};
    page_table(p, "Tokens a second of a whole batch; higher is better. Both models write exactly "
                  "the same number of tokens. Brackets are 95 % intervals.", 2 + n, columns);
    for (int l = 0; l < g->n_lengths; l++)
        for (int k = 0; n && k < g->n_batches && rows < OVERVIEW_ROWS; k++, rows++) {
            char *length = mem_format("%.0f", g->lengths[l]);
            char *batch = mem_format("%.0f", g->batches[k]);
            page_cell(p, length);
            page_cell(p, batch);
            for (size_t i = 0; i < n; i++) {
                const struct config_row *a = find_cell(&g->table, system[i].name, g->batches[k],
                                                       g->lengths[l]);
                page_value(p, a ? a->y.at : (double)NAN, a ? a->y.lo : (double)NAN,
                           a ? a->y.hi : (double)NAN, a && a->oom ? "out of memory" : NULL);
            }
            free(length);
            free(batch);
        }
    page_table_end(p);
    close_grid(g);
}

/* 1: an earlier system needs the same memory at every batch, within 0.5 %. */
static int needs_as_another(const struct size_grid *g, size_t i, double length)
{
    const struct config_table *c = &g->table;
    const struct system *system = g->systems.v;
    for (size_t k = 0; k < i; k++) {
        int same = 1;
        for (size_t r = 0; r < c->n; r++) {
            const struct config_row *a = find_cell(c, system[i].name, c->v[r].batch, length);
            const struct config_row *b = find_cell(c, system[k].name, c->v[r].batch, length);
            same &= !a == !b && (!a || a->oom || fabs(a->y.at - b->y.at) <= 0.005 * b->y.at);
        }
        if (same)
            return 1;
    }
    return 0;
}

static void put_layers(struct page *p, const struct runset *s, const struct config_row *a)
{
    static const char *const layers[] = {"memory_weights_bytes", "memory_kv_bytes",
                                         "memory_activations_bytes",
                                         "memory_allocated_peak_bytes"};
    for (size_t i = 0; i < COUNT(layers); i++)
        page_count(p, rec_number(runset_find(s, "metric", a->point, layers[i]), "value"));
}

void overview_memory(struct page *p, const struct runset *s)
{
    static const struct page_column columns[] = {
        {"Model", NULL},
        {"Batch", NULL},
        {"Weights", "memory_weights_bytes"},
        {"KV cache", "memory_kv_bytes"},
        {"Activations", "memory_activations_bytes"},
        {"Peak, allocated", "memory_allocated_peak_bytes"}};
    struct size_grid *g = open_grid(s, "memory_allocated_peak_bytes");
    double longest = g->n_lengths ? g->lengths[g->n_lengths - 1] : 0;
    char *caption = mem_format("Answers of exactly %.0f tokens. Memory is the same in every "
                               "launch, so it has no interval. Methods whose memory is within 0.5 "
                               "%% share a row. Weights, cache and activations peak at different "
                               "times, so their sum is not the peak.", longest);
    size_t rows = 0;
    page_table(p, caption, COUNT(columns), columns);
    for (size_t i = 0; i < g->systems.n; i++)
        for (int k = 0; k < g->n_batches && rows < OVERVIEW_ROWS; k++) {
            const char *name = g->systems.v[i].name;
            if (needs_as_another(g, i, longest))
                break;
            const struct config_row *a = find_cell(&g->table, name, g->batches[k], longest);
            if (!a || isnan(a->y.at))
                continue;
            char *batch = mem_format("%.0f", g->batches[k]);
            page_cell(p, name);
            page_cell(p, batch);
            put_layers(p, s, a);
            free(batch);
            rows++;
        }
    page_table_end(p);
    free(caption);
    close_grid(g);
}
