/* promptset.c - see promptset.h. The time to make the ids of a prompt belongs to its records, so it
 * is taken here. */
#include "lib/run/prompts/promptset.h"

#include <stdlib.h>

#include "lib/base/clock.h"
#include "lib/base/mem.h"

struct taking { struct promptset *set; const struct prompt_encoder *encoder; };

static int take(void *ctx, json_t *record, const char *where, struct err *why)
{
    const struct taking *to = ctx;
    struct promptset *s = to->set;
    struct prompt p;
    const int64_t begin = clock_ns();
    if (prompt_make(&p, record, where, to->encoder, why))
        return -1;
    p.tokenize_ns = clock_ns() - begin;
    MEM_GROW(s->v, s->n, s->cap);
    s->v[s->n++] = p;
    return 0;
}

int promptset_read(struct promptset *s, const char *const *files, size_t n_files, int64_t limit,
                   const struct prompt_encoder *encoder, struct err *e)
{
    struct taking to = {s, encoder};
    *s = (struct promptset){0};
    int bad = prompt_input_read(&s->in, files, n_files, limit, take, &to, e);
    if (bad)
        promptset_free(s);
    return bad;
}

void promptset_free(struct promptset *s)
{
    for (size_t i = 0; i < s->n; i++)
        prompt_free(&s->v[i]);
    free(s->v);
    prompt_input_free(&s->in);
    *s = (struct promptset){0};
}
