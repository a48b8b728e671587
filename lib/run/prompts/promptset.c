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
    struct promptset *promptset = to->set;
    struct prompt prompt;
    const int64_t begin = clock_ns();
    if (prompt_make(&prompt, record, where, to->encoder, why))
        return -1;
    prompt.tokenize_ns = clock_ns() - begin;
    MEM_GROW(promptset->v, promptset->n, promptset->cap);
    promptset->v[promptset->n++] = prompt;
    return 0;
}

int promptset_read(struct promptset *promptset, const char *const *files, size_t n_files,
                   int64_t limit, const struct prompt_encoder *encoder, struct err *e)
{
    struct taking to = {promptset, encoder};
    *promptset = (struct promptset){0};
    int bad = prompt_input_read(&promptset->in, files, n_files, limit, take, &to, e);
    if (bad)
        promptset_free(promptset);
    return bad;
}

void promptset_free(struct promptset *promptset)
{
    for (size_t i = 0; i < promptset->n; i++)
        prompt_free(&promptset->v[i]);
    free(promptset->v);
    prompt_input_free(&promptset->in);
    *promptset = (struct promptset){0};
}
