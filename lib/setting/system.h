/* system.h - the settings of every generator. A system is a way of generating, with the name that
 * schedules and records give it ("llada"). lib/decode has a decoder for each system except
 * `endpoint`, which is a server of another program. Tools that read records need only this list, so
 * they link no decoder. */
#pragma once

#include "lib/setting/settings.h"

extern const struct settings_table system_llama, system_llada, system_ltm, system_endpoint;
extern const struct settings_table *const systems[]; /* all of them, NULL last */
/* The table of that name, or NULL. */
const struct settings_table *system_named(const char *name);
/* The first table whose length setting (for example max_new) the record has, or NULL. The tables of
 * llama, ltm and endpoint share the name max_new: for their records the result is &system_llama. */
const struct settings_table *system_of_record(const json_t *record);
/* The row with SETTING_LENGTH; every table has one. */
const struct setting *system_length(const struct settings_table *table);
/* Most tokens that a point adds to a prompt: the value of the row of system_length. */
size_t system_extent(const struct settings *point);
/* Prompts that arrive per second; 0: a prompt arrives when the batch has a place for it. */
double system_arrival_rate(const struct settings *point);
/* Returns -1 (EXIT_BAD_USAGE) for a rate of arrivals that does not count, because the batch is
 * static. The table must have ADMIT_ROWS. */
int system_check_arrivals(const struct settings *point, struct err *e);
