/* checkpoint-save.c - writes a checkpoint with the tensor names of its family.
 *
 * The weights are written first and config.json last, so a folder with config.json is complete. */
#include <stdlib.h>
#include <string.h>

#include "lib/base/file.h"
#include "lib/base/mem.h"
#include "lib/checkpoint/checkpoint.h"

/* Nearest bf16, ties to even; a NaN stays one. */
static uint16_t to_bf16(float f)
{
    uint32_t bits;
    memcpy(&bits, &f, sizeof bits);
    if ((bits & 0x7fffffff) > 0x7f800000)
        return (uint16_t)(bits >> 16 | 0x40);
    return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

static void narrow(unsigned char *to, const float *from, size_t n, int bf16)
{
    if (!bf16) {
        memcpy(to, from, 4 * n);
        return;
    }
    for (size_t i = 0; i < n; i++) {
        uint16_t v = to_bf16(from[i]);
        memcpy(to + 2 * i, &v, 2);
    }
}

/* Fills an entry of the list: name, shape, and a copy of the values; the list owns name and
 * copy. */
static void add_tensor(struct tensor *tensor, const struct config *config, enum role role,
                       size_t layer, const char *dtype, const float *values)
{
    char name[FAMILY_NAME_MAX];
    size_t rows, cols;
    int bf16 = !strcmp(dtype, "BF16");
    family_tensor_name(name, config->family->naming[0], config, role, layer);
    role_shape(config, role, &rows, &cols);
    *tensor = (struct tensor){.name = mem_text(name), .rank = role_is_vector(role) ? 1 : 2,
                              .shape = {rows, cols}, .bytes = rows * cols * (bf16 ? 2 : 4)};
    memcpy(tensor->dtype, dtype, strlen(dtype) + 1);
    unsigned char *copy = mem_alloc(tensor->bytes);
    narrow(copy, values, rows * cols, bf16);
    tensor->data = copy;
}

int checkpoint_save(const struct config *config, const char *folder, const char *dtype,
                    const float *(*weights)(void *ctx, enum role role, size_t layer), void *ctx,
                    struct err *e)
{
    if (strcmp(dtype, "F32") && strcmp(dtype, "BF16"))
        return err_set(e, EXIT_INTERNAL, "checkpoint: dtype expected F32 or BF16, got %.20s",
                       dtype);
    if (family_is_fused(config->family->naming[0]))
        return err_set(e, EXIT_INTERNAL, "checkpoint: %s keeps q, k and v in one tensor: writing "
                       "it is not built", config->family->name);
    if (file_make_folder(folder, e))
        return -1;
    struct tensor *list = mem_zero(ROLE_COUNT * role_tensors_most(config), sizeof *list);
    size_t n = 0;
    for (int role = 0; role < ROLE_COUNT; role++)
        for (size_t number = 0;
             number < role_tensors(config, (enum role)role) && !(role == ROLE_HEAD && config->tied);
             number++)
            add_tensor(&list[n++], config, (enum role)role, number, dtype,
                       weights(ctx, (enum role)role, number));
    json_t *metadata = json_pack("{s:s}", "format", "pt"); /* transformers requires it */
    char *path = mem_format("%s/model.safetensors", folder);
    int bad = safetensors_write(path, list, n, metadata, e) || family_save(config, folder, e);
    json_decref(metadata);
    free(path);
    for (size_t i = 0; i < n; i++) {
        free(list[i].name);
        free((void *)list[i].data);
    }
    free(list);
    return bad ? -1 : 0;
}
