/* optfile.h - reads options of a tool from a JSON object whose members are options.
 *
 *     {"steps": [8, 16, 32], "quant": "int8", "stop_at_eos": true, "mem_cap": "8G"}
 *
 * A member is named as an option or as its record field (_ for -), in any case. true and false are
 * for flags; an array is a list with commas; null is ignored. */
#pragma once

#include "lib/base/cli/opt.h"
#include "lib/base/err.h"
#include "lib/setting/settings.h"

struct optfile { /* all zero at first */
    json_t *object;              /* content of the file; NULL: no file was read */
    struct settings_texts texts; /* values of the options */
};
/* Sets the options of tool (opt_set). Parse the command line again after this call, so that its
 * options override those of the file.
 * -1: EXIT_NO_INPUT, EXIT_IO, EXIT_BAD_DATA (an unknown option, with the nearest name; an invalid
 * value; the member "settings"). */
int optfile_read(struct optfile *file, const struct tool *tool, const char *path, struct err *e);
void optfile_free(struct optfile *file); /* call when the values are no longer used */
