/* checkpoint-ids.c - reads which ids the head of a drafter with config.chains can answer with.
 *
 * Row r of the head stands for the id r + d2t[r]. Tensor t2d states for each id whether it has a
 * row; both tensors must agree. The ids must ascend, as they do in the authors' files: then the
 * lowest id wins among equal logits, as in all heads. A head with rows for all ids may come without
 * these tensors. */
#include "lib/checkpoint/checkpoint.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/mem.h"

/* passed[i] = the tensor `name`, if the file has it. -1: it has another shape or dtype. */
static int find(struct checkpoint *model, size_t i, const char *name, const char *dtype, size_t n,
                unsigned char *used, struct err *e)
{
    const struct tensor *tensor = safetensors_find(model->tensors, name);
    if (!tensor)
        return 0;
    used[tensor - safetensors_at(model->tensors, 0)] = 1;
    model->passed[i] = tensor;
    if (tensor_check_shape(model->folder, tensor, &n, 1, e))
        return -1;
    return strcmp(tensor->dtype, dtype) ? err_set(e, EXIT_BAD_DATA,
                                                  "%s: tensor %s: dtype expected %s, "
                                                  "got %s",
                                                  model->folder, name, dtype, tensor->dtype)
                                        : 0;
}

static int read_ids(struct checkpoint *model, const struct tensor *tensor, struct err *e)
{
    const size_t n = config_answers(&model->config), V = model->config.vocab;
    int64_t last = -1;
    model->ids = mem_alloc(n * sizeof *model->ids);
    for (size_t i = 0; i < n; i++) {
        int64_t more;
        memcpy(&more, tensor->data + i * sizeof more, sizeof more);
        const int64_t most = (int64_t)V - 1 - (int64_t)i, least = last + 1 - (int64_t)i;
        if (more < least || more > most)
            return err_set(e, EXIT_BAD_DATA, "%s: tensor d2t: value %zu expected %lld to %lld: ids "
                           "that ascend, below %zu; got %lld", model->folder, i, (long long)least,
                           (long long)most, V, (long long)more);
        last = (int64_t)i + more;
        model->ids[i] = (int32_t)last;
    }
    return 0;
}

/* -1: t2d and d2t disagree. Then one is damaged, or they belong to two drafters. */
static int compare_ids(const struct checkpoint *model, const struct tensor *tensor, struct err *e)
{
    const size_t n = config_answers(&model->config);
    const unsigned char *has = tensor->data;
    for (size_t id = 0, row = 0; id < model->config.vocab; id++) {
        const size_t next = !model->ids ? row : row < n ? (size_t)model->ids[row] : SIZE_MAX;
        const unsigned char expected = id == next;
        row += expected;
        if (has[id] != expected)
            return err_set(e, EXIT_BAD_DATA, "%s: tensor t2d: value %zu expected %d: by d2t this "
                           "id has %s; got %d", model->folder, id, expected,
                           expected ? "a row" : "no row", has[id]);
    }
    return 0;
}

int checkpoint_find_ids(struct checkpoint *model, unsigned char *used, struct err *e)
{
    struct config *config = &model->config;
    if (!config->chains)
        return 0;
    config->embeds = safetensors_find(model->tensors,
                                      config->family->naming[0]->role[ROLE_EMBED]) != NULL;
    if (find(model, 0, "d2t", "I64", config_answers(config), used, e) ||
        find(model, 1, "t2d", "BOOL", config->vocab, used, e))
        return -1;
    if (!model->passed[0] && config_answers(config) < config->vocab)
        return err_set(e, EXIT_BAD_DATA, "%s: tensor d2t is missing: the head has rows for %zu of "
                       "%zu ids", model->folder, config_answers(config), config->vocab);
    config->translates = model->passed[0] != NULL;
    if (model->passed[0] && read_ids(model, model->passed[0], e))
        return -1;
    return model->passed[1] ? compare_ids(model, model->passed[1], e) : 0;
}

void checkpoint_spread_ids(struct checkpoint *model)
{
    const size_t n = config_answers(&model->config);
    if (n == model->config.vocab)
        return;
    model->config.translates = 1;
    model->ids = mem_alloc(n * sizeof *model->ids);
    for (size_t i = 0; i < n; i++)
        model->ids[i] = (int32_t)(i * model->config.vocab / n);
}
