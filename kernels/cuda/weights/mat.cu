/* mat.cu - makes matrices on the device in the layout of layout.h, from any source of values.
 *
 * Values that the host already has in the right format are sent as they are. All others pass
 * through a chunk of at most CHUNK_BYTES on the device, some rows at a time: sent or drawn there,
 * then converted or quantized. So a matrix needs no more memory than itself and a chunk (for NF4
 * also the largest value of each block, until these are quantized too). */
#include <stdlib.h>

#include "kernels/cuda/cuda.h"
#include "kernels/cuda/device/runtime.h"
#include "kernels/cuda/device/transfer.h"
#include "kernels/cuda/weights/encode.h"
#include "kernels/cuda/weights/formats.h"
#include "kernels/finite.h"
#include "lib/base/mem.h"

enum { CHUNK_BYTES = 64 << 20 };

struct making {
    struct backend *b;
    const struct mat_source *s;
    enum dtype dtype;
    struct layout at;
    unsigned char *data; /* the matrix */
    void *values;        /* the chunk */
    float *table;        /* table of s->draw */
    float *absmax;       /* NF4: the largest value of each block */
};

enum dtype cuda_act_dtype(enum dtype dtype)
{
    return dtype_info[dtype].unit == UNIT_F32 ? DTYPE_F32 : DTYPE_BF16;
}

const char *cuda_refuses(const struct backend *b, enum dtype dtype, size_t cols)
{
    const struct device *d = device_of(b);
    if ((uint32_t)(d->major * 10 + d->minor) < format_row(dtype).capability)
        return "fp8 needs a GPU of compute capability 8.9 or later: use --quant int8";
    if (!format_row(dtype).x_bytes)
        return "q4 is a format for CPUs: use --device cpu, or --quant nf4";
    return dtype_refuses(dtype, cols);
}

size_t cuda_mat_bytes(size_t rows, size_t cols, enum dtype dtype)
{
    return layout_of(dtype, rows, cols).bytes;
}

void cuda_mat_free(struct backend *b, struct mat *m)
{
    cuda_free(b, m->data);
    m->data = NULL;
}

/* ---- checks of values that are sent as they lie in the file ---- */

static void look_bf16(void *source, const void *part, size_t bytes)
{
    if (!finite_bf16((const uint16_t *)part, bytes / sizeof(uint16_t)))
        finite_mark((const struct mat_source *)source);
}

static void look_floats(void *source, const void *part, size_t bytes)
{
    if (!finite_floats((const float *)part, bytes / sizeof(float)))
        finite_mark((const struct mat_source *)source);
}

static void look_e4m3(void *source, const void *part, size_t bytes)
{
    if (!finite_e4m3(part, bytes))
        finite_mark((const struct mat_source *)source);
}

/* Sends rows of stored values of the source by transfer_upload_rows. */
static void send_rows(const struct making *m, void *to, size_t stride, const void *from,
                      size_t row_bytes, size_t rows, row_looker *look)
{
    transfer_upload_rows(m->b, to, stride, from, row_bytes, rows, m->s->odd ? look : NULL,
                         (void *)m->s);
}

/* ---- codes from a checkpoint ---- */

static void send_codes(const struct making *m)
{
    const struct codes *q = m->s->q;
    size_t rows = m->s->rows, cols = m->s->cols;
    const struct {
        enum codes_part part;
        size_t at;
        const void *from;
    } parts[] = {{PART_ABSMAX, m->at.absmax, q->absmax},
                 {PART_SCALE, m->at.scale, q->scale},
                 {PART_OFFSET, m->at.offset, &q->offset}};
    send_rows(m, m->data, m->at.stride, q->code, dtype_part_bytes(m->dtype, PART_CODE, 1, cols),
              rows, m->dtype == DTYPE_FP8 ? look_e4m3 : NULL);
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        size_t bytes = dtype_part_bytes(m->dtype, parts[i].part, rows, cols);
        if (bytes)
            transfer_upload(m->b, m->data + parts[i].at, parts[i].from, bytes);
    }
}

/* ---- values ---- */

/* The stored values and their size, if they have the format of the matrix; or NULL. */
static const void *same_format(const struct making *m, size_t *value)
{
    size_t bits = dtype_info[m->dtype].bits;
    *value = layout_value(m->dtype);
    if (m->dtype == DTYPE_F16)
        return NULL;
    return bits == 16 ? (const void *)m->s->bf16 : bits == 32 ? m->s->f32 : NULL;
}

/* The rows for transfer_upload_made, counted from row `first` of the source. */
struct piece {
    const struct mat_source *s;
    size_t first;
};

static void make_rows(void *ctx, size_t first, size_t count, void *out)
{
    const struct piece *p = (const struct piece *)ctx;
    p->s->floats(p->s, p->first + first, count, (float *)out);
}

/* to[count, cols] = rows first..: bf16 if the source has that, else fp32. */
static void fetch_rows(const struct making *m, void *to, size_t first, size_t count)
{
    const struct mat_source *s = m->s;
    size_t begin = first * s->cols, n = count * s->cols;
    struct piece piece = {s, first};
    size_t row_bytes = s->cols * sizeof *s->bf16;
    if (s->bf16)
        send_rows(m, to, row_bytes, s->bf16 + begin, row_bytes, count, look_bf16);
    else if (s->draw)
        encode_draw(m->b, (float *)to, s->draw, m->table, begin, n);
    else if (s->f32)
        transfer_upload(m->b, to, s->f32 + begin, n * sizeof *s->f32);
    else
        transfer_upload_made(m->b, to, s->cols * sizeof(float), count, make_rows, &piece);
}

/* Rows of that width in a chunk; at least one. */
static size_t chunk_rows(const struct mat_source *s)
{
    size_t row = s->cols * (s->bf16 ? sizeof(uint16_t) : sizeof(float));
    size_t rows = row < CHUNK_BYTES ? CHUNK_BYTES / row : 1;
    return rows < s->rows ? rows : s->rows;
}

/* The second quantization of NF4, of the largest values of all blocks. The host computes their
 * mean, a sum in order; the device does the rest. */
static void quantize_absmax(const struct making *m)
{
    size_t blocks = dtype_scales(m->dtype, m->s->rows, m->s->cols);
    float *absmax = (float *)mem_alloc(blocks * sizeof *absmax);
    cuda_read(m->b, absmax, m->absmax, blocks * sizeof *absmax);
    encode_absmax(m->b, m->data, &m->at, m->absmax, blocks, quant_absmax_mean(absmax, blocks));
    free(absmax);
}

/* Makes the matrix through the chunk, which is allocated. */
static void make_in_chunks(const struct making *m)
{
    size_t rows = m->s->rows, most = chunk_rows(m->s);
    for (size_t first = 0; first < rows; first += most) {
        size_t count = rows - first < most ? rows - first : most;
        struct mat_chunk c = {m->values, m->s->bf16 != NULL, first, count, m->s->cols};
        fetch_rows(m, m->values, first, count);
        encode_chunk(m->b, m->data, &m->at, m->dtype, &c, m->absmax);
    }
    if (m->absmax)
        quantize_absmax(m);
}

/* Allocates temporary memory. fp32 rows of an F32 matrix need no chunk: they arrive at their place.
 * -1: no memory. */
static int take_scratch(struct making *m)
{
    const struct mat_source *s = m->s;
    size_t value = s->bf16 ? sizeof(uint16_t) : sizeof(float), table = DRAW_QUANTILES;
    int draws = s->draw && !s->bf16, chunks = m->dtype != DTYPE_F32 || s->bf16;
    if (chunks &&
        !(m->values = cuda_alloc(m->b, chunk_rows(s) * s->cols * value, MEMORY_ACTIVATIONS)))
        return -1;
    if (draws &&
        !(m->table = (float *)cuda_alloc(m->b, table * sizeof(float), MEMORY_ACTIVATIONS)))
        return -1;
    size_t blocks = dtype_info[m->dtype].super ? dtype_scales(m->dtype, s->rows, s->cols) : 0;
    if (blocks &&
        !(m->absmax = (float *)cuda_alloc(m->b, blocks * sizeof(float), MEMORY_ACTIVATIONS)))
        return -1;
    if (draws)
        transfer_upload(m->b, m->table, s->draw->table, table * sizeof(float));
    return 0;
}

static int make_values(struct making *m)
{
    size_t value, cols = m->s->cols;
    const void *same = same_format(m, &value);
    if (same) {
        send_rows(m, m->data, m->at.stride * value, same, cols * value, m->s->rows,
                  same == m->s->bf16 ? look_bf16 : look_floats);
        return 0;
    }
    int bad = take_scratch(m);
    if (!bad && m->values)
        make_in_chunks(m);
    else if (!bad)
        fetch_rows(m, m->data, 0, m->s->rows);
    cuda_free(m->b, m->values);
    cuda_free(m->b, m->table);
    cuda_free(m->b, m->absmax);
    device_of(m->b)->in_turn = 1;
    return bad;
}

int cuda_mat_make(struct backend *b, struct mat *m, const struct mat_source *s, enum dtype dtype)
{
    struct range here("mat_make");
    struct making make = {b, s, dtype, layout_of(dtype, s->rows, s->cols), NULL, NULL, NULL, NULL};
    make.data = (unsigned char *)cuda_alloc(b, make.at.bytes, MEMORY_WEIGHTS);
    if (!make.data)
        return -1;
    int bad = 0;
    if (s->q && s->q->dtype == dtype)
        send_codes(&make);
    else
        bad = make_values(&make);
    if (bad) {
        cuda_free(b, make.data);
        return -1;
    }
    m->data = make.data;
    m->dtype = dtype;
    m->rows = s->rows;
    m->cols = s->cols;
    return 0;
}
