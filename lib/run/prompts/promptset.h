/* promptset.h - all prompts of a run in memory: they run again at every point and round. */
#pragma once

#include "lib/record/prompt_input.h"
#include "lib/run/prompts/prompt.h"

struct promptset {
    struct prompt *v; /* in input order, ids all different */
    size_t n, cap;
    struct prompt_input in;
};

/* Reads prompts as prompt_input_read() does; those that prompt_make() refuses become faults. */
int promptset_read(struct promptset *promptset, const char *const *files, size_t n_files,
                   int64_t limit, const struct prompt_encoder *encoder, struct err *e);
void promptset_free(struct promptset *promptset);
