/* promptset.h - all prompts of a run in memory: they are run again for every setting and round. */
#ifndef RUN_PROMPTS_PROMPTSET_H
#define RUN_PROMPTS_PROMPTSET_H

#include "lib/run/prompts/prompt.h"

/* A record that is no usable prompt; it becomes an error record of the output. */
struct prompt_fault {
    char *where;
    json_t *id; /* NULL: it has none */
    struct err err;
};
struct promptset {
    struct prompt *v; /* in input order, ids all different */
    size_t n, cap;
    struct prompt_fault *fault;
    size_t faults, fault_cap; /* REC_BAD_KEPT of them at most */
    int64_t more;             /* faults that were only counted */
    int unsound;              /* the input was cut or edited */
    char sha256[65];  /* of the prompt records, one compact JSON with sorted keys a line */
    json_t *inputs;   /* rec_read_inputs: what they were read from */
};

/* Reads prompt records (kind "prompt" or none; other kinds are passed over) from the files, or from
 * standard input when n_files is 0; at most `limit` of them (0: all). Broken lines, bad prompts and
 * repeated ids become faults. -1: a file is missing (EXIT_NO_INPUT), the medium failed, or there is
 * not one prompt record (EXIT_BAD_DATA). */
int promptset_read(struct promptset *s, const char *const *files, size_t n_files, int64_t limit,
                   const struct prompt_encoder *encoder, struct err *e);
void promptset_free(struct promptset *s);

#endif
