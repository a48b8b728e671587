/* contexts.c - see contexts.h. A prompt is encoded as the generator will encode it (prompt.h),
 * because templates and post-processors add tokens. */
#include "lib/run/prompts/contexts.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/mem.h"

int contexts_open(struct contexts *contexts, const char *names, const char *ignore,
                  struct err *e)
{
    for (const char *at = names; *at; at += strcspn(at, ",")) {
        at += *at == ',';
        if (contexts->n == CONTEXTS_MAX)
            return err_set(e, EXIT_BAD_USAGE, "expected at most %d models, got '%.100s'",
                           CONTEXTS_MAX, names);
        struct checkpoint *k = &contexts->model[contexts->n].checkpoint;
        struct tokenizer **tokenizer = &contexts->model[contexts->n].tokenizer;
        char *name = mem_format("%.*s", (int)strcspn(at, ","), at);
        int bad = checkpoint_open_with(k, name, &(struct checkpoint_opening){.ignore = ignore}, e);
        free(name);
        if (bad)
            return -1;
        contexts->n++;
        if (checkpoint_tokenizer(k, tokenizer, e) ||
            prompt_encoder_make(&contexts->model[contexts->n - 1].encoder, k, *tokenizer, "auto",
                                &contexts->model[contexts->n - 1].chat, e))
            return -1;
    }
    return 0;
}

int contexts_fit(const struct contexts *contexts, const json_t *prompt, size_t room)
{
    for (size_t i = 0; i < contexts->n; i++) {
        struct prompt p;
        if (prompt_make(&p, json_deep_copy(prompt), "", &contexts->model[i].encoder, NULL))
            return 0;
        size_t tokens = p.input.n + room;
        prompt_free(&p);
        if (tokens > contexts->model[i].checkpoint.config.context)
            return 0;
    }
    return 1;
}

void contexts_close(struct contexts *contexts)
{
    for (size_t i = 0; i < contexts->n; i++) {
        chat_free(contexts->model[i].chat.chosen);
        tokenizer_free(contexts->model[i].tokenizer);
        checkpoint_close(&contexts->model[i].checkpoint);
    }
    contexts->n = 0;
}
