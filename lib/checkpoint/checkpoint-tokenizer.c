/* checkpoint-tokenizer.c - opens the tokenizer beside the weights and checks that they fit.
 *
 * tokenizer.json may be missing. A tokenizer with ids outside the embedding is refused, because a
 * prompt would read outside it. */
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "lib/base/mem.h"
#include "lib/checkpoint/checkpoint.h"
#include "lib/record/json.h"

int checkpoint_tokenizer(const struct checkpoint *c, struct tokenizer **out, struct err *e)
{
    *out = NULL;
    if (!c->folder)
        return 0;
    char *path = mem_format("%s/tokenizer.json", c->folder);
    int none = !c->tokenizer && access(path, F_OK) && errno == ENOENT; /* loading reports others */
    free(path);
    if (none)
        return 0;
    struct tokenizer *t = c->tokenizer
                              ? tokenizer_load_json(c->tokenizer,
                                                    safetensors_file(c->tensors, 0), e)
                              : tokenizer_load(c->folder, e);
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

json_t *checkpoint_tokenizer_json(const struct checkpoint *c, struct err *e)
{
    if (c->tokenizer)
        return json_incref(c->tokenizer);
    char *path = mem_format("%s/tokenizer.json", c->folder ? c->folder : c->config.name);
    json_t *j = json_file(path, TOKENIZER_FILE_LIMIT, e);
    free(path);
    return j;
}
