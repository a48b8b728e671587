/* cpu_pack.c - weight matrices: made from a source, and read back by embeddings.
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

const char *CPU(refuses)(const struct backend *b, enum dtype dtype, size_t cols)
{
    (void)b;
    if (!formats[dtype])
        return "that format is for a GPU: use --device cuda, or --quant int8";
    return dtype_refuses(dtype, cols);
}

struct pack {
    struct mat *m;
    const struct mat_source *s;
};

static void pack_panels(void *ctx, size_t begin, size_t end, size_t worker)
{
    (void)worker;
    const struct pack *p = ctx;
    const struct format *f = CPU(format_of)(p->m->dtype);
    size_t N = p->m->rows, K = p->m->cols, bytes = f->panel_bytes(K);
    float *scratch = mem_aligned(PANEL * K * sizeof *scratch);
    for (size_t i = begin; i < end; i++) {
        size_t first = i * PANEL, count = N - first < PANEL ? N - first : PANEL;
        f->pack_panel((char *)p->m->data + i * bytes, p->s, first, count, scratch);
    }
    free(scratch);
}

static void pack(struct backend *b, struct mat *m, const struct mat_source *s)
{
    struct pack p = {m, s};
    pool_run(b->pool, (m->rows + PANEL - 1) / PANEL, 1, pack_panels, &p);
}

size_t CPU(mat_bytes)(size_t rows, size_t cols, enum dtype dtype)
{
    return (rows + PANEL - 1) / PANEL * CPU(format_of)(dtype)->panel_bytes(cols);
}

int CPU(mat_make)(struct backend *b, struct mat *m, const struct mat_source *s, enum dtype dtype)
{
    assert(!CPU(refuses)(b, dtype, s->cols));
    void *data = host_alloc(b, CPU(mat_bytes)(s->rows, s->cols, dtype), MEMORY_WEIGHTS);
    if (!data)
        return -1;
    *m = (struct mat){data, dtype, s->rows, s->cols};
    struct mat_source source = *s;
    struct codes q;
    void *made = NULL;
    if (dtype_info[dtype].block && !(s->q && s->q->dtype == dtype)) {
        made = quant_make(&q, s, dtype, b->pool); /* the whole matrix shares the scales of scales */
        source.q = &q;
    }
    pack(b, m, &source);
    free(made);
    return 0;
}

void CPU(mat_free)(struct backend *b, struct mat *m)
{
    host_free(b, m->data);
    m->data = NULL;
}

void CPU(embed)(struct backend *b, act *y, const struct mat *w, const int32_t *token, size_t T)
{
    (void)b;
    const struct format *f = CPU(format_of)(w->dtype);
    size_t bytes = f->panel_bytes(w->cols);
    for (size_t t = 0; t < T; t++) {
        size_t row = (size_t)token[t];
        const char *panel = (const char *)w->data + row / PANEL * bytes;
        f->row((float *)y + t * w->cols, panel, row % PANEL, w->cols);
    }
}
