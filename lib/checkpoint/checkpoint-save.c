/* checkpoint-save.c - writes a checkpoint in its family's own names.
 *
 * The weights come first and config.json last, so a folder with a config is complete. */
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

/* Adds a tensor: name, shape, and a copy of the values; the list owns them. */
static void add_tensor(struct tensor *t, const struct config *c, enum role r, size_t layer,
                       const char *dtype, const float *values)
{
    char name[FAMILY_NAME_MAX];
    size_t rows, cols;
    int bf16 = !strcmp(dtype, "BF16");
    family_tensor_name(name, c->family->naming[0], c, r, layer);
    role_shape(c, r, &rows, &cols);
    *t = (struct tensor){.name = mem_text(name), .rank = role_is_vector(r) ? 1 : 2,
                         .shape = {rows, cols}, .bytes = rows * cols * (bf16 ? 2 : 4)};
    memcpy(t->dtype, dtype, strlen(dtype) + 1);
    unsigned char *copy = mem_alloc(t->bytes);
    narrow(copy, values, rows * cols, bf16);
    t->data = copy;
}

int checkpoint_save(const struct config *c, const char *folder, const char *dtype,
                    const float *(*weights)(void *ctx, enum role r, size_t layer), void *ctx,
                    struct err *e)
{
    if (strcmp(dtype, "F32") && strcmp(dtype, "BF16"))
        return err_set(e, EXIT_INTERNAL, "checkpoint: dtype expected F32 or BF16, got %.20s",
                       dtype);
    if (family_is_fused(c->family->naming[0]))
        return err_set(e, EXIT_INTERNAL, "checkpoint: %s keeps q, k and v in one tensor: writing "
                       "it is not built", c->family->name);
    if (file_make_folder(folder, e))
        return -1;
    struct tensor *list = mem_zero(ROLE_COUNT * role_tensors_most(c), sizeof *list);
    size_t n = 0;
    for (int r = 0; r < ROLE_COUNT; r++)
        for (size_t l = 0; l < role_tensors(c, (enum role)r) && !(r == ROLE_HEAD && c->tied); l++)
            add_tensor(&list[n++], c, (enum role)r, l, dtype, weights(ctx, (enum role)r, l));
    json_t *metadata = json_pack("{s:s}", "format", "pt"); /* transformers requires it */
    char *path = mem_format("%s/model.safetensors", folder);
    int bad = safetensors_write(path, list, n, metadata, e) || family_save(c, folder, e);
    json_decref(metadata);
    free(path);
    for (size_t i = 0; i < n; i++) {
        free(list[i].name);
        free((void *)list[i].data);
    }
    free(list);
    return bad ? -1 : 0;
}
