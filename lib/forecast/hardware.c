/* hardware.c - reads the table of data sheets; see hardware.h.
 *
 * Every row is checked, because forecasts divide by its numbers. The table is small, so a search
 * compares the rows one by one. A unit without a rate in the table gets that
 * of dtype_unit_instead(). */
#include "lib/forecast/hardware.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/mem.h"
#include "lib/base/share.h"
#include "lib/record/json.h"
#include "lib/record/rec.h"

enum { ROWS_MOST = 4096 };
static const double RATE_MOST = 1e21;

/* Adds a row of the file to the table. -1: EXIT_BAD_DATA. */
static int take(struct hardware_table *table, const json_t *row, const char *where, struct err *e)
{
    struct hardware hardware = {.memory_bytes = NAN};
    const char *name, *form, *device = "";
    if (json_text(row, where, "name", &name, e) || json_text(row, where, "form", &form, e) ||
        json_number(row, where, "bytes_per_s", 1, RATE_MOST, &hardware.bytes_per_s, e) ||
        json_number(row, where, "f32_flops_per_s", 1, RATE_MOST, &hardware.flops_per_s[UNIT_F32],
                    e))
        return -1;
    if (strlen(name) >= sizeof hardware.name || hardware_find(table, name) || table->n == ROWS_MOST)
        return err_set(e, EXIT_BAD_DATA, "%s: name: expected up to %zu characters, each name once "
                       "and %d rows, got '%.80s'", where, sizeof hardware.name - 1, ROWS_MOST,
                       name);
    for (int unit = 0; unit < UNITS; unit++) {
        char key[40];
        snprintf(key, sizeof key, "%s_flops_per_s", dtype_unit_name((enum unit)unit));
        hardware.flops_per_s[unit] =
            hardware.flops_per_s[dtype_unit_instead((enum unit)unit)];
        if (json_has(row, key) &&
            json_number(row, where, key, 1, RATE_MOST, &hardware.flops_per_s[unit], e))
            return -1;
    }
    if (json_has(row, "device_name") && json_text(row, where, "device_name", &device, e))
        return -1;
    if (json_has(row, "memory_bytes") &&
        json_number(row, where, "memory_bytes", 1, RATE_MOST, &hardware.memory_bytes, e))
        return -1;
    hardware.is_gpu = !strcmp(form, "gpu");
    snprintf(hardware.name, sizeof hardware.name, "%s", name);
    snprintf(hardware.device, sizeof hardware.device, "%s", device);
    table->v = mem_resize(table->v, table->n + 1, sizeof *table->v);
    table->v[table->n++] = hardware;
    return 0;
}

int hardware_read(struct hardware_table *table, const char *path, struct err *e)
{
    char *found = path ? mem_text(path) : share_find("data/hardware.ndjson", e);
    const char *const paths[] = {found};
    struct rec_reader *in = found ? rec_read_open(paths, 1, e) : NULL;
    json_t *row;
    int got = in ? 1 : -1;
    while (got > 0 && (got = rec_read(in, &row, e)) > 0) {
        got = take(table, row, rec_where(in), e) ? -1 : 1;
        json_decref(row);
    }
    if (in)
        rec_read_close(in);
    free(found);
    return got;
}

const struct hardware *hardware_find(const struct hardware_table *table, const char *name)
{
    for (size_t i = 0; i < table->n; i++)
        if (!strcmp(table->v[i].name, name))
            return &table->v[i];
    return NULL;
}

const struct hardware *hardware_of_device(const struct hardware_table *table, const char *device)
{
    for (size_t i = 0; device && *device && i < table->n; i++)
        if (!strcmp(table->v[i].device, device))
            return &table->v[i];
    return NULL;
}

struct hardware hardware_measured(double flops_per_s, double bytes_per_s)
{
    struct hardware hardware = {
        .name = "measured", .bytes_per_s = bytes_per_s, .memory_bytes = NAN};
    for (int u = 0; u < UNITS; u++)
        hardware.flops_per_s[u] = flops_per_s;
    return hardware;
}

void hardware_free(struct hardware_table *table)
{
    free(table->v);
    *table = (struct hardware_table){0};
}
