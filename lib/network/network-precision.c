/* network-precision.c - settles the precision of a network before the first weight is read; see
 * network.h. The formats of matrices, cache and activations follow from the request, the checkpoint
 * and the back end. */
#include <string.h>

#include "kernels/train.h"
#include "kernels/wkv.h"
#include "lib/base/buf.h"
#include "lib/network/network.h"

static int is_dense(enum dtype dtype)
{
    return !dtype_info[dtype].quantized;
}

static int is_cache(enum dtype dtype)
{
    return dtype_info[dtype].cache;
}

/* *out = the format named `name`, if `takes` accepts it; for auto or NULL: `otherwise`. -1
 * (EXIT_BAD_USAGE): no such format; the message names the option `flag`. */
static int read_dtype(const char *flag, const char *name, int (*takes)(enum dtype dtype),
                      enum dtype otherwise, enum dtype *out, struct err *e)
{
    struct buf some = {0};
    int found = !name || !strcmp(name, "auto");
    *out = otherwise;
    for (int dtype = 0; dtype < DTYPES && !found; dtype++) {
        if (!takes((enum dtype)dtype))
            continue;
        buf_format(&some, "|%s", dtype_info[dtype].name);
        found = !strcmp(name, dtype_info[dtype].name);
        *out = found ? (enum dtype)dtype : otherwise;
    }
    if (!found)
        err_set(e, EXIT_BAD_USAGE, "%s: expected auto%s, got '%s'", flag, some.data, name);
    buf_free(&some);
    return found ? 0 : -1;
}

/* The format that auto means for matrices. */
static enum dtype auto_dtype(const struct ops *ops, const struct checkpoint *model)
{
    if (ops->act_dtype(DTYPE_BF16) == DTYPE_BF16 && !model->config.latents)
        return DTYPE_BF16;
    return strcmp(checkpoint_dtype(model), "BF16") ? DTYPE_F32 : DTYPE_BF16_F32;
}

/* The format of the first matrices of a pass; it determines the format of activations. */
static enum dtype first_dtype(const struct network *n)
{
    return quantization_dtype(n->quant, &n->config, ROLE_Q, 0, n->dtype);
}

/* The reason why the back end cannot have this matrix beside the others; NULL: it can. All products
 * must have one format of activations. Two matrices are exempt: an embedding that is not also the
 * head takes part in no product, and the product of a router has its own format
 * (kernels/experts.h). */
static const char *refuses(const struct network *n, enum role role, enum dtype dtype, size_t cols)
{
    const struct ops *ops = n->backend->ops;
    const char *why = ops->refuses(n->backend, dtype, cols);
    int multiplied = role != ROLE_ROUTER && (role != ROLE_EMBED || n->config.tied);
    if (!why && multiplied && ops->act_dtype(dtype) != ops->act_dtype(first_dtype(n)))
        why = "parts that are not quantized would have other activations than the rest: use "
              "--dtype bf16";
    return why;
}

int network_check(const struct network *n, struct err *e)
{
    for (int i = 0; i < ROLE_COUNT; i++)
        for (size_t layer = 0; layer < role_tensors(&n->config, (enum role)i); layer++) {
            enum role role = (enum role)i;
            enum dtype dtype = quantization_dtype(n->quant, &n->config, role, layer, n->dtype);
            size_t rows, cols;
            role_shape(&n->config, role, &rows, &cols);
            const char *why = role_is_vector(role) ? NULL : refuses(n, role, dtype, cols);
            if (why)
                return err_set(e, EXIT_BAD_USAGE, "%s: %s as %s [%zu, %zu] on %s: %s",
                               n->config.name, role_name(role), dtype_info[dtype].name, rows, cols,
                               n->backend->ops->name, why);
        }
    return 0;
}

static int choose_precision(struct network *n, const struct checkpoint *model,
                            const struct precision *precision, struct err *e)
{
    const struct ops *ops = n->backend->ops;
    enum dtype asked = QUANT_NONE;
    if (precision->quant && quantization_named(precision->quant, &asked))
        return err_set(e, EXIT_BAD_USAGE, "--quant: expected none|" DTYPE_QUANTIZED ", got '%s'",
                       precision->quant);
    if (read_dtype("--dtype", precision->dtype, is_dense, auto_dtype(ops, model), &n->dtype, e) ||
        quantization_resolve(&model->config, asked, &n->quant, e))
        return -1;
    enum dtype half = network_half(n) ? DTYPE_BF16 : DTYPE_F32;
    if (read_dtype("--kv-dtype", precision->kv, is_cache, half, &n->kv_dtype, e) ||
        network_check(n, e))
        return -1;
    n->backend->act = ops->act_dtype(first_dtype(n));
    return 0;
}

/* -1 (EXIT_BAD_USAGE): the device cannot compute the gradients of this network that a fit of
 * latents needs. */
static int check_latents(const struct network *n, struct err *e)
{
    const struct config *config = &n->config;
    const size_t most = config_recurs(config) ? WKV_CUDA_MOST : ATTENTION_BACK_CUDA_MOST;
    if (!config->latents || !*n->backend->name)
        return 0;
    if (n->backend->act == DTYPE_F32 && config->head_dim <= most)
        return 0;
    return err_set(e, EXIT_BAD_USAGE, "%s: latent thoughts are fitted in fp32 on a device: "
                   "expected --dtype f32, bf16-f32 or f16, --quant none and heads of at most %zu "
                   "values, got %zu (--device cpu takes all)", config->name, most,
                   config->head_dim);
}

int network_half(const struct network *n)
{
    return n->dtype == DTYPE_BF16 || n->quant != QUANT_NONE;
}

int network_settle(struct network *n, struct backend *backend, const struct checkpoint *model,
                   const struct precision *precision, struct err *e)
{
    const size_t L = model->config.layers;
    *n = (struct network){
        .config = model->config,
        .backend = backend,
        .wish = offload_of(&precision->offload, L),
        .kv_wish = offload_of(precision->kv_apart ? &precision->offload_kv : &precision->offload,
                              L)};
    if (model->config.latents && network_offloads(n))
        return err_set(e, EXIT_BAD_USAGE, "%s: latent thoughts are fitted with all layers in "
                       "memory: layers cannot be offloaded", model->config.name);
    return choose_precision(n, model, precision, e) || check_latents(n, e) ? -1 : 0;
}
