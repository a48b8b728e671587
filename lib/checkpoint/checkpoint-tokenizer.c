/* checkpoint-tokenizer.c - the tokenizer beside the weights, and whether both belong together.
 *
 * A folder without tokenizer.json is a checkpoint all the same; one whose ids go beyond the
 * embedding is not, since such a prompt would read outside of it.
 */
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "lib/base/mem.h"
#include "lib/checkpoint/checkpoint.h"

int checkpoint_tokenizer(const struct checkpoint *c, struct tokenizer **out, struct err *e)
{
    *out = NULL;
    if (!c->folder)
        return 0;
    char *path = mem_format("%s/tokenizer.json", c->folder);
    int none = access(path, F_OK) && errno == ENOENT; /* what else is wrong, loading will tell */
    free(path);
    if (none)
        return 0;
    struct tokenizer *t = tokenizer_load(c->folder, e);
    if (!t)
        return -1;
    if (tokenizer_size(t) <= c->config.vocab) {
        *out = t;
        return 0;
    }
    err_set(e, EXIT_BAD_DATA,
            "%s: tokenizer.json has ids up to %zu: expected below %zu, vocab_size of config.json",
            c->folder, tokenizer_size(t) - 1, c->config.vocab);
    tokenizer_free(t);
    return -1;
}
