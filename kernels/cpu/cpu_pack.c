/* cpu_pack.c - makes weight matrices from a source, and reads rows of them for embeddings.
 *
 * Threads own whole panels. pool_run gives a thread about the same panels here and in the
 * products, so on a machine with several memory nodes weights lie near the threads that read
 * them. */
#include <assert.h>
#include <stdlib.h>

#include "kernels/cpu/format/cpu_format.h"
#include "kernels/cpu/cpu.h"
#include "kernels/host.h"
#include "kernels/quant.h"
#include "lib/base/mem.h"

static const struct format *const formats[DTYPES] = {
    [DTYPE_F32] = &CPU(format_f32),           [DTYPE_BF16] = &CPU(format_bf16),
    [DTYPE_BF16_F32] = &CPU(format_bf16_f32), [DTYPE_INT8] = &CPU(format_int8),
    [DTYPE_NF4] = &CPU(format_blocks_coded),  [DTYPE_INT8_VECTOR] = &CPU(format_int8_vector),
    [DTYPE_NF4_F32] = &CPU(format_blocks),    [DTYPE_FP4] = &CPU(format_blocks),
    [DTYPE_F16] = &CPU(format_f16),           [DTYPE_Q4] = &CPU(format_q4),
};

const struct format *CPU(format_of)(enum dtype dtype) { return formats[dtype]; }

const char *CPU(refuses)(const struct backend *backend, enum dtype dtype, size_t cols)
{
    (void)backend;
    if (!formats[dtype])
        return "that format is for a GPU: use --device cuda, or --quant int8";
    return dtype_refuses(dtype, cols);
}

struct pack {
    struct mat *m;
    const struct mat_source *s;
    int quantizes; /* 1: a panel makes the codes of its rows */
};

/* Makes the codes of rows first .. first + count - 1, for formats whose scales stay in fp32.
 * scratch[PANEL * K] holds one row of floats, then the scales, then the codes. */
static struct codes quantize(const struct pack *pack, size_t first, size_t count, float *scratch)
{
    const size_t K = pack->s->cols;
    const enum dtype dtype = pack->m->dtype;
    float *scale = scratch + K;
    uint8_t *code = (uint8_t *)(scale + PANEL * (K / QUANT_BLOCK));
    for (size_t row = 0; row < count; row++) {
        pack->s->floats(pack->s, first + row, 1, scratch);
        quant_blocks(dtype, scratch, K, code + row * K / 2, scale + row * K / QUANT_BLOCK);
    }
    return (struct codes){.dtype = dtype, .code = code, .scale = scale};
}

static void pack_panels(void *ctx, size_t begin, size_t end, size_t worker)
{
    (void)worker;
    const struct pack *pack = ctx;
    const struct format *format = CPU(format_of)(pack->m->dtype);
    const size_t rows = pack->m->rows, K = pack->m->cols, bytes = format->panel_bytes(K);
    float *scratch = mem_aligned(PANEL * K * sizeof *scratch);
    for (size_t i = begin; i < end; i++) {
        size_t first = i * PANEL, count = rows - first < PANEL ? rows - first : PANEL;
        struct mat_source source = *pack->s;
        struct codes codes;
        if (pack->quantizes) {
            codes = quantize(pack, first, count, scratch);
            source.q = &codes;
            first = 0;
        }
        format->pack_panel((char *)pack->m->data + i * bytes, &source, first, count, scratch);
    }
    free(scratch);
}

static void pack(struct backend *backend, struct mat *weight, const struct mat_source *source)
{
    const int coded = source->q && source->q->dtype == weight->dtype;
    struct pack p = {weight, source, dtype_info[weight->dtype].block && !coded};
    pool_run(backend->pool, (weight->rows + PANEL - 1) / PANEL, 1, pack_panels, &p);
}

size_t CPU(mat_bytes)(size_t rows, size_t cols, enum dtype dtype)
{
    return (rows + PANEL - 1) / PANEL * CPU(format_of)(dtype)->panel_bytes(cols);
}

int CPU(mat_make)(struct backend *backend, struct mat *weight, const struct mat_source *mat_source,
                  enum dtype dtype)
{
    assert(!CPU(refuses)(backend, dtype, mat_source->cols));
    void *data = host_alloc(backend, CPU(mat_bytes)(mat_source->rows, mat_source->cols, dtype),
                            MEMORY_WEIGHTS);
    if (!data)
        return -1;
    *weight = (struct mat){data, dtype, mat_source->rows, mat_source->cols};
    struct mat_source source = *mat_source;
    struct codes codes;
    void *made = NULL;
    if (dtype_info[dtype].super && !(mat_source->q && mat_source->q->dtype == dtype)) {
        /* scales of scales need the whole matrix, so it is quantized before panels are packed */
        made = quant_make(&codes, mat_source, dtype, backend->pool);
        source.q = &codes;
    }
    pack(backend, weight, &source);
    free(made);
    return 0;
}

void CPU(mat_free)(struct backend *backend, struct mat *weight)
{
    host_free(backend, weight->data);
    weight->data = NULL;
}

void CPU(embed)(struct backend *backend, act *y, const struct mat *weight, const int32_t *token,
                size_t T)
{
    (void)backend;
    const struct format *format = CPU(format_of)(weight->dtype);
    size_t bytes = format->panel_bytes(weight->cols);
    for (size_t at = 0; at < T; at++) {
        size_t row = (size_t)token[at];
        const char *panel = (const char *)weight->data + row / PANEL * bytes;
        format->row((float *)y + at * weight->cols, panel, row % PANEL, weight->cols);
    }
}
