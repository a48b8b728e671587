/* promptset.h - all prompts of a run in memory: they run again at every point and round. */
#pragma once

#include "lib/run/prompts/prompt.h"

/* An invalid prompt record; it becomes an error record of the output. */
struct prompt_fault {
    char *where;
    json_t *id; /* NULL: no id */
    struct err err;
};
struct promptset {
    struct prompt *v; /* in input order, ids all different */
    size_t n, cap;
    struct prompt_fault *fault;
    size_t faults, fault_cap; /* at most REC_BAD_KEPT are kept */
    int64_t more;             /* faults that are only counted */
    int unsound;              /* the input was cut or edited */
    char sha256[65];  /* of the prompt records, each a line of compact JSON with sorted keys */
    json_t *inputs;   /* rec_read_inputs(): the files that were read */
};

/* Reads up to `limit` (0: all) prompt records (kind "prompt" or none; other kinds are skipped) from
 * the files, or from standard input if n_files is 0. Broken lines, bad prompts and repeated ids
 * become faults. -1: EXIT_NO_INPUT (a file is missing), EXIT_IO, EXIT_BAD_DATA (no prompt
 * record). */
int promptset_read(struct promptset *s, const char *const *files, size_t n_files, int64_t limit,
                   const struct prompt_encoder *encoder, struct err *e);
void promptset_free(struct promptset *s);
