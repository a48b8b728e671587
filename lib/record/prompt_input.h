/* prompt_input.h - the prompt records of an input, for every generator.
 *
 * A prompt record has kind "prompt" or no kind; other kinds are skipped. A bad prompt costs itself:
 * it becomes a fault, which the tool writes as an error record. The hash covers all prompt records
 * in canonical form, also bad ones: it identifies the input (`workload`), so that answers of other
 * generators to the same prompts can be found. */
#pragma once

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/record/rec.h"

/* A broken line, a repeated id, or a prompt that was refused. */
struct prompt_fault {
    char *where; /* "FILE:LINE"; owned */
    json_t *id;  /* NULL: none; owned */
    struct err err;
};
struct prompt_input {
    struct prompt_fault *fault;
    size_t faults, fault_cap; /* at most REC_BAD_KEPT are kept */
    int64_t more;             /* faults that are only counted */
    int unsound;              /* 1: the input was cut or edited */
    char sha256[65];          /* of the records, each a line of compact JSON with sorted keys */
    json_t *inputs;           /* rec_read_inputs() */
};

/* Takes a record (stolen, also on error), which has an id of its own. -1: *why refuses it. */
typedef int (*prompt_taker)(void *ctx, json_t *record, const char *where, struct err *why);

/* Reads up to `limit` (0: all) prompt records of the files, or of standard input if n_files is 0.
 * -1: EXIT_NO_INPUT, EXIT_IO, EXIT_BAD_DATA (no prompt record); *in is then free. */
int prompt_input_read(struct prompt_input *in, const char *const *files, size_t n_files,
                      int64_t limit, prompt_taker take, void *ctx, struct err *e);
void prompt_input_free(struct prompt_input *in);
