/* prompt_input.h - reads the prompt records of an input, for every generator.
 *
 * A prompt record has kind "prompt" or no kind; other kinds are skipped. A bad prompt becomes a
 * fault, which the tool writes as an error record; the other prompts are not affected. The hash
 * covers all prompt records in canonical form, also bad ones. It identifies the input (`workload`),
 * so that answers of other generators to the same prompts can be found. */
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
    size_t faults, fault_cap; /* faults kept, at most REC_BAD_KEPT; room */
    int64_t more;             /* further faults, which are only counted */
    int unsound;              /* 1: the input was cut or edited */
    char sha256[65];          /* of the records, each a line of compact JSON with sorted keys */
    json_t *inputs;           /* rec_read_inputs() */
};

/* Takes a record whose id no other record has. The record is stolen, also on error. Returns -1 with
 * *why filled to refuse it. */
typedef int (*prompt_taker)(void *ctx, json_t *record, const char *where, struct err *why);

/* Reads up to `limit` (0: all) prompt records of the files, or of standard input if n_files is 0.
 * Returns -1: EXIT_NO_INPUT, EXIT_IO, EXIT_BAD_DATA (no prompt record); *in is freed then. */
int prompt_input_read(struct prompt_input *in, const char *const *files, size_t n_files,
                      int64_t limit, prompt_taker take, void *ctx, struct err *e);
void prompt_input_free(struct prompt_input *in);
