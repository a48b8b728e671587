/* parameters-seen.c - rounds values to a format, for quantization-aware training; see parameters.h.
 *
 * The functions that pack a model (kernels/quant.h) encode and decode each matrix here, so training
 * computes with exactly the weights of the packed model. Only the codes of one matrix exist at a
 * time. */
#include <stdlib.h>

#include "kernels/quant.h"
#include "lib/checkpoint/quantization.h"
#include "lib/checkpoint/role.h"
#include "lib/train/parameters.h"

/* A tied head is rounded as the embedding. */
static enum role own_role(const struct parameters *p, enum role r)
{
    return r == ROLE_HEAD && p->c.tied ? ROLE_EMBED : r;
}

static enum dtype format_of(const struct parameters *p, enum role r, size_t layer)
{
    enum dtype d = quantization_dtype(p->quant, &p->c, r, layer, DTYPE_F32);
    return dtype_info[d].quantized ? d : DTYPE_F32;
}

int parameters_quantize(struct parameters *p, enum dtype quant, struct err *e)
{
    if (quantization_check(quant, &p->c, e))
        return -1;
    p->seen = p->seen_block = p->b->ops->alloc(p->b, p->n * sizeof *p->seen, MEMORY_WEIGHTS);
    if (!p->seen)
        return err_set(e, EXIT_INTERNAL, "%s: out of memory for its values as %s", p->c.name,
                       quantization_name(quant));
    p->quant = quant;
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
    const struct decoding *d = ctx;
    quant_floats(d->q, d->cols, begin, end - begin, d->out + begin * d->cols);
}

void parameters_look(struct parameters *p)
{
    for (int k = 0; k < ROLE_COUNT && p->quant != QUANT_NONE; k++)
        for (size_t l = 0; l < role_layers(&p->c, (enum role)k); l++) {
            enum role r = (enum role)k;
            enum dtype d = format_of(p, r, l);
            if (d == DTYPE_F32 || own_role(p, r) != r)
                continue;
            size_t rows, cols;
            role_shape(&p->c, r, &rows, &cols);
            const struct mat_source s = mat_floats(parameters_values(p, r, l), rows, cols);
            struct codes q;
            void *block = quant_make(&q, &s, d, p->b->pool);
            struct decoding to = {&q, cols, p->seen + p->at[l][r]};
            pool_run(p->b->pool, rows, 1, decode_rows, &to);
            free(block);
        }
}

float *parameters_seen(struct parameters *p, enum role r, size_t layer)
{
    int coded = p->seen && format_of(p, own_role(p, r), layer) != DTYPE_F32;
    return (coded ? p->seen : p->w) + p->at[layer][r];
}
