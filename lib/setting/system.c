/* system.c - see system.h. The tool `schedule` has its options in the order of this list. If two
 * tables have a row of the same name, the first table counts: a record with max_new belongs to
 * llama. */
#include "lib/setting/system.h"

#include <assert.h>
#include <string.h>

const struct settings_table *const systems[] = {&system_llama, &system_llada, &system_ltm,
                                                &system_endpoint, NULL};

const struct settings_table *system_named(const char *name)
{
    size_t i = 0;
    while (systems[i] && strcmp(systems[i]->system, name))
        i++;
    return systems[i];
}

const struct setting *system_length(const struct settings_table *table)
{
    size_t i = 0;
    while (i < table->n && !(table->row[i].traits & SETTING_LENGTH))
        i++;
    assert(i < table->n);
    return &table->row[i];
}

size_t system_extent(const struct settings *point)
{
    return settings_count(point, system_length(point->table)->name);
}

double system_arrival_rate(const struct settings *point)
{
    size_t row = settings_find(point->table, "arrival_rate");
    return row < point->table->n && settings_counts(point, row) ? point->v[row] : 0;
}

int system_check_arrivals(const struct settings *point, struct err *e)
{
    size_t row = settings_find(point->table, "arrival_rate");
    if (settings_counts(point, row) || !(point->v[row] > 0))
        return 0;
    return err_set(e, EXIT_BAD_USAGE, "arrival_rate %g: expected admit continuous (--admit "
                   "continuous): in a static batch all prompts start together", point->v[row]);
}

const struct settings_table *system_of_record(const json_t *record)
{
    for (size_t i = 0; systems[i]; i++) {
        const json_t *value = json_object_get(record, system_length(systems[i])->name);
        if (value && !json_is_null(value))
            return systems[i];
    }
    return NULL;
}
