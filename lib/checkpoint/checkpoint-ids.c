/* checkpoint-ids.c - the ids with which the head of a drafter that chains answers (config.chains).
 *
 * The tensor d2t has for each row of the head what to add to the row to get its id; t2d says for
 * each id whether it has a row, which follows from d2t. Ids ascend, as in the files of the authors,
 * so that among equal logits the lowest id wins here as everywhere. A head with rows for all ids
 * may come without both. */
#include "lib/checkpoint/checkpoint.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/mem.h"

/* The tensor, if it is there, as number i of those passed on. -1: another shape or dtype. */
static int find(struct checkpoint *c, size_t i, const char *name, const char *dtype, size_t n,
                unsigned char *used, struct err *e)
{
    const struct tensor *t = safetensors_find(c->tensors, name);
    if (!t)
        return 0;
    used[t - safetensors_at(c->tensors, 0)] = 1;
    c->passed[i] = t;
    if (tensor_check_shape(c->folder, t, &n, 1, e))
        return -1;
    return strcmp(t->dtype, dtype) ? err_set(e, EXIT_BAD_DATA, "%s: tensor %s: dtype expected %s, "
                                             "got %s", c->folder, name, dtype, t->dtype)
                                   : 0;
}

static int read_ids(struct checkpoint *c, const struct tensor *t, struct err *e)
{
    const size_t n = config_answers(&c->config), V = c->config.vocab;
    int64_t last = -1;
    c->ids = mem_alloc(n * sizeof *c->ids);
    for (size_t i = 0; i < n; i++) {
        int64_t more;
        memcpy(&more, t->data + i * sizeof more, sizeof more);
        const int64_t most = (int64_t)V - 1 - (int64_t)i, least = last + 1 - (int64_t)i;
        if (more < least || more > most)
            return err_set(e, EXIT_BAD_DATA, "%s: tensor d2t: value %zu expected %lld to %lld: ids "
                           "that ascend, below %zu; got %lld", c->folder, i, (long long)least,
                           (long long)most, V, (long long)more);
        last = (int64_t)i + more;
        c->ids[i] = (int32_t)last;
    }
    return 0;
}

int checkpoint_find_ids(struct checkpoint *c, unsigned char *used, struct err *e)
{
    struct config *f = &c->config;
    if (!f->chains)
        return 0;
    f->embeds = safetensors_find(c->tensors, f->family->naming[0]->role[ROLE_EMBED]) != NULL;
    if (find(c, 0, "d2t", "I64", config_answers(f), used, e) ||
        find(c, 1, "t2d", "BOOL", f->vocab, used, e))
        return -1;
    if (!c->passed[0] && config_answers(f) < f->vocab)
        return err_set(e, EXIT_BAD_DATA, "%s: tensor d2t is missing: its head has rows for %zu of "
                       "%zu ids", c->folder, config_answers(f), f->vocab);
    return c->passed[0] ? read_ids(c, c->passed[0], e) : 0;
}

void checkpoint_spread_ids(struct checkpoint *c)
{
    const size_t n = config_answers(&c->config);
    if (n == c->config.vocab)
        return;
    c->ids = mem_alloc(n * sizeof *c->ids);
    for (size_t i = 0; i < n; i++)
        c->ids[i] = (int32_t)(i * c->config.vocab / n);
}
