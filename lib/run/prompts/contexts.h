/* contexts.h - models whose context prompts must fit, so that none is chosen which a generator
 * would have to refuse.
 */
#ifndef RUN_PROMPTS_CONTEXTS_H
#define RUN_PROMPTS_CONTEXTS_H

#include <jansson.h>

#include "lib/base/err.h"
#include "lib/checkpoint/checkpoint.h"
#include "lib/run/prompts/prompt.h"

enum { CONTEXTS_MAX = 8 };
struct contexts { /* all zero: no model, everything fits */
    struct {
        struct checkpoint checkpoint;
        struct tokenizer *tokenizer; /* NULL: none */
        struct prompt_encoder encoder;
    } model[CONTEXTS_MAX];
    size_t n;
};
/* names: models as -m takes them, separated by commas; ignore: what --ignore-config says, or NULL.
 * Weights are not read. -1: a model that is not there or broken, or too many (EXIT_BAD_USAGE).
 * contexts_close is due all the same. */
int contexts_open(struct contexts *c, const char *names, const char *ignore, struct err *e);
/* 1: every model can take the prompt record (borrowed), its chat template included, with `room`
 * tokens to come. What is no prompt to a model does not fit it. */
int contexts_fit(const struct contexts *c, const json_t *prompt, size_t room);
void contexts_close(struct contexts *c);

#endif
