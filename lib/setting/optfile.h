/* optfile.h - options of a tool from a file: a JSON object whose members are options.
 *
 *     {"steps": [8, 16, 32], "quant": "int8", "stop_at_eos": true, "mem_cap": "8G"}
 *
 * A member has the name of an option, or of the record field that it becomes (_ for -), in any
 * case. true and false switch a flag, a list is one with commas, null says nothing.
 */
#ifndef SETTING_OPTFILE_H
#define SETTING_OPTFILE_H

#include "lib/base/cli/opt.h"
#include "lib/base/err.h"
#include "lib/setting/settings.h"

struct optfile { /* all zero at first */
    json_t *object;              /* what the file holds; NULL: none was read */
    struct settings_texts texts; /* what the options point to */
};
/* Sets the options of t (opt_set). A command line that is to win is parsed once more. -1:
 * EXIT_NO_INPUT, EXIT_IO, EXIT_BAD_DATA: no such option (with the nearest name), a value that it
 * does not take, the member "settings". */
int optfile_read(struct optfile *f, const struct tool *t, const char *path, struct err *e);
void optfile_free(struct optfile *f); /* when the values of the options are no longer used */

#endif
