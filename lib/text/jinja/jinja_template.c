/* jinja_template.c - parses a template once and runs it for each conversation; see
 * lib/text/jinja.h.
 *
 * A run has memory of its own and changes no node, so threads may run one template at the same
 * time. */
#include "lib/text/jinja.h"

#include <stdlib.h>

#include "lib/base/mem.h"
#include "lib/text/jinja/jinja_run.h"
#include "lib/text/utf8.h"

struct jinja {
    struct jinja_work work; /* its memory has the nodes */
    const struct jinja_node *all;
};

struct jinja *jinja_parse(const char *text, size_t n, struct err *why)
{
    if (n > JINJA_MAX_BYTES || utf8_valid(text, n) < n) {
        if (n > JINJA_MAX_BYTES)
            err_set(why, EXIT_BAD_DATA, "expected at most %d bytes, got %zu", JINJA_MAX_BYTES, n);
        else
            err_set(why, EXIT_BAD_DATA, "it is not UTF-8");
        return NULL;
    }
    struct jinja *jinja = mem_zero(1, sizeof *jinja);
    jinja->work.why = why;
    struct jinja_token *tokens = jinja_lex(&jinja->work, text, n);
    if (!jinja->work.failed)
        jinja->all = jinja_statements(&jinja->work, tokens);
    free(tokens);
    jinja->work.why = NULL;
    if (!jinja->work.failed)
        return jinja;
    jinja_free(jinja);
    return NULL;
}

void jinja_free(struct jinja *jinja)
{
    if (jinja)
        jinja_work_free(&jinja->work);
    free(jinja);
}

int jinja_render(const struct jinja *jinja, const json_t *variables, struct jinja_written *to,
                 struct err *why)
{
    struct jinja_work work = {.why = why, .line = 1};
    struct jinja_text text = {.w = &work};
    jinja_run(&work, jinja->all, variables, &text);
    *to = (struct jinja_written){text.bytes, text.given};
    jinja_work_free(&work);
    return work.failed ? -1 : 0;
}

void jinja_written_free(struct jinja_written *written)
{
    buf_free(&written->text);
    buf_free(&written->given);
}
