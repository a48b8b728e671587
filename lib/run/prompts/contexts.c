/* contexts.c - see contexts.h. A prompt is encoded as the generator will encode it (prompt.h),
 * because templates and post-processors add tokens. */
#include "lib/run/prompts/contexts.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/mem.h"

int contexts_open(struct contexts *c, const char *names, const char *ignore,
                  struct err *e)
{
    for (const char *at = names; *at; at += strcspn(at, ",")) {
        at += *at == ',';
        if (c->n == CONTEXTS_MAX)
            return err_set(e, EXIT_BAD_USAGE, "expected at most %d models, got '%.100s'",
                           CONTEXTS_MAX, names);
        struct checkpoint *k = &c->model[c->n].checkpoint;
        struct tokenizer **t = &c->model[c->n].tokenizer;
        char *name = mem_format("%.*s", (int)strcspn(at, ","), at);
        int bad = checkpoint_open_ignoring(k, name, 0, ignore, e);
        free(name);
        if (bad)
            return -1;
        c->n++;
        if (checkpoint_tokenizer(k, t, e) ||
            prompt_encoder_make(&c->model[c->n - 1].encoder, k, *t, "auto",
                                &c->model[c->n - 1].chat, e))
            return -1;
    }
    return 0;
}

int contexts_fit(const struct contexts *c, const json_t *prompt, size_t room)
{
    for (size_t i = 0; i < c->n; i++) {
        struct prompt p;
        if (prompt_make(&p, json_deep_copy(prompt), "", &c->model[i].encoder, NULL))
            return 0;
        size_t tokens = p.input.n + room;
        prompt_free(&p);
        if (tokens > c->model[i].checkpoint.config.context)
            return 0;
    }
    return 1;
}

void contexts_close(struct contexts *c)
{
    for (size_t i = 0; i < c->n; i++) {
        chat_free(c->model[i].chat.chosen);
        tokenizer_free(c->model[i].tokenizer);
        checkpoint_close(&c->model[i].checkpoint);
    }
    c->n = 0;
}
