/* contexts.h - checks that prompts fit the context of given models, so that no generator has to
 * refuse a chosen prompt. */
#pragma once

#include <jansson.h>

#include "lib/base/err.h"
#include "lib/checkpoint/checkpoint.h"
#include "lib/run/prompts/prompt.h"

enum { CONTEXTS_MAX = 8 };
struct contexts { /* all zero: no model, every prompt fits */
    struct {
        struct checkpoint checkpoint;
        struct tokenizer *tokenizer; /* NULL: none */
        struct prompt_encoder encoder;
        struct chat_choice chat;
    } model[CONTEXTS_MAX];
    size_t n;
};
/* Opens models without their weights. names: models as for -m, separated by commas; ignore: value
 * of --ignore-config, or NULL. Returns -1 if a model is missing or broken, or if there are too many
 * (EXIT_BAD_USAGE); call contexts_close() also then. */
int contexts_open(struct contexts *contexts, const char *names, const char *ignore, struct err *e);
/* Returns 1 if the prompt record (borrowed), with its chat template and `room` more tokens, fits
 * the context of every model. An invalid prompt does not fit. */
int contexts_fit(const struct contexts *contexts, const json_t *prompt, size_t room);
void contexts_close(struct contexts *contexts);
