/* checkpoint-tokenizer.c - opens the tokenizer beside the weights and checks that its ids fit.
 *
 * tokenizer.json may be missing. A tokenizer with ids outside the embedding is refused, because a
 * prompt with such an id would read memory outside the embedding. */
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "lib/base/mem.h"
#include "lib/checkpoint/checkpoint.h"
#include "lib/record/json.h"

static struct tokenizer *load(struct checkpoint *model, struct err *e)
{
    if (model->tokenizer)
        return tokenizer_load_json(model->tokenizer, safetensors_file(model->tensors, 0), e);
    return model->file.json ? tokenizer_take(&model->file, model->folder, e)
                            : tokenizer_load(model->folder, e);
}

int checkpoint_tokenizer(struct checkpoint *model, struct tokenizer **out, struct err *e)
{
    *out = NULL;
    if (!model->folder)
        return 0;
    char *path = mem_format("%s/tokenizer.json", model->folder);
    /* load() reports other errors than ENOENT */
    int none = !model->tokenizer && !model->file.json && access(path, F_OK) && errno == ENOENT;
    free(path);
    if (none)
        return 0;
    struct tokenizer *tokenizer = load(model, e);
    if (!tokenizer)
        return -1;
    if (tokenizer_size(tokenizer) <= model->config.vocab) {
        *out = tokenizer;
        return 0;
    }
    err_set(e, EXIT_BAD_DATA,
            "%s: tokenizer.json has ids up to %zu: expected below %zu, vocab_size of config.json",
            model->folder, tokenizer_size(tokenizer) - 1, model->config.vocab);
    tokenizer_free(tokenizer);
    return -1;
}

json_t *checkpoint_tokenizer_json(const struct checkpoint *model, struct err *e)
{
    if (model->tokenizer || model->file.json)
        return json_incref(model->tokenizer ? model->tokenizer : model->file.json);
    char *path = mem_format("%s/tokenizer.json",
                            model->folder ? model->folder : model->config.name);
    json_t *j = json_file(path, TOKENIZER_FILE_LIMIT, e);
    free(path);
    return j;
}
