/* parameters-seen.c - rounds values to a format, for quantization-aware training; see parameters.h.
 *
 * Each matrix is encoded and decoded by the functions that pack a model (kernels/quant.h), so
 * training computes with exactly the weights of the packed model. Only the codes of one matrix
 * exist at a time. */
#include <stdlib.h>

#include "kernels/quant.h"
#include "lib/checkpoint/quantization.h"
#include "lib/checkpoint/role.h"
#include "lib/train/parameters.h"

/* The role whose format a role has: a tied head has the format of the embedding. */
static enum role own_role(const struct parameters *parameters, enum role role)
{
    return role == ROLE_HEAD && parameters->c.tied ? ROLE_EMBED : role;
}

static enum dtype format_of(const struct parameters *parameters, enum role role, size_t layer)
{
    enum dtype dtype = quantization_dtype(parameters->quant, &parameters->c, role, layer,
                                          DTYPE_F32);
    return dtype_info[dtype].quantized ? dtype : DTYPE_F32;
}

int parameters_quantize(struct parameters *parameters, enum dtype quant, struct err *e)
{
    if (quantization_check(quant, &parameters->c, e))
        return -1;
    parameters->seen = parameters->seen_block = parameters->b->ops->alloc(
        parameters->b, parameters->n * sizeof *parameters->seen, MEMORY_WEIGHTS);
    if (!parameters->seen)
        return err_set(e, EXIT_INTERNAL, "%s: out of memory for its values as %s",
                       parameters->c.name, quantization_name(quant));
    parameters->quant = quant;
    return 0;
}

struct decoding {
    const struct codes *q;
    size_t cols;
    float *out;
};

static void decode_rows(void *ctx, size_t begin, size_t end, size_t worker)
{
    (void)worker;
    const struct decoding *decoding = ctx;
    quant_floats(decoding->q, decoding->cols, begin, end - begin,
                 decoding->out + begin * decoding->cols);
}

void parameters_look(struct parameters *parameters)
{
    for (int k = 0; k < ROLE_COUNT && parameters->quant != QUANT_NONE; k++)
        for (size_t layer = 0; layer < role_layers(&parameters->c, (enum role)k); layer++) {
            enum role role = (enum role)k;
            enum dtype dtype = format_of(parameters, role, layer);
            if (dtype == DTYPE_F32 || own_role(parameters, role) != role)
                continue;
            size_t rows, cols;
            role_shape(&parameters->c, role, &rows, &cols);
            const struct mat_source source = mat_floats(parameters_values(parameters, role, layer),
                                                        rows, cols);
            struct codes codes;
            void *block = quant_make(&codes, &source, dtype, parameters->b->pool);
            struct decoding to = {&codes, cols, parameters->seen + parameters->at[layer][role]};
            pool_run(parameters->b->pool, rows, 1, decode_rows, &to);
            free(block);
        }
}

float *parameters_seen(struct parameters *parameters, enum role role, size_t layer)
{
    int coded = parameters->seen &&
                format_of(parameters, own_role(parameters, role), layer) != DTYPE_F32;
    return (coded ? parameters->seen : parameters->w) + parameters->at[layer][role];
}
