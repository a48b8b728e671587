/* mat.cu - makes matrices on the device in the layout of layout.h, from any source of values.
 *
 * Values that the host already has in the right format are sent as they are. All others pass
 * through a chunk of about CHUNK_BYTES on the device, some rows at a time: they are sent to the
 * chunk or drawn there, then converted or quantized. So no memory is needed besides the matrix and
 * a chunk; for NF4 also an array with the largest value of each block, until these values are
 * quantized too. */
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

const char *cuda_refuses(const struct backend *backend, enum dtype dtype, size_t cols)
{
    const struct device *device = device_of(backend);
    if ((uint32_t)(device->major * 10 + device->minor) < format_row(dtype).capability)
        return "fp8 needs a GPU of compute capability 8.9 or later: use --quant int8";
    if (!format_row(dtype).x_bytes)
        return "q4 is a format for CPUs: use --device cpu, or --quant nf4";
    return dtype_refuses(dtype, cols);
}

size_t cuda_mat_bytes(size_t rows, size_t cols, enum dtype dtype)
{
    return layout_of(dtype, rows, cols).bytes;
}

void cuda_mat_free(struct backend *backend, struct mat *weight)
{
    cuda_free(backend, weight->data);
    weight->data = NULL;
}

/* ---- checks of stored values: are they finite? ---- */

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
static void send_rows(const struct making *making, void *to, size_t stride, const void *from,
                      size_t row_bytes, size_t rows, row_looker *look)
{
    transfer_upload_rows(making->b, to, stride, from, row_bytes, rows, making->s->odd ? look : NULL,
                         (void *)making->s);
}

/* ---- codes from a checkpoint ---- */

static void send_codes(const struct making *making)
{
    const struct codes *codes = making->s->q;
    size_t rows = making->s->rows, cols = making->s->cols;
    const struct {
        enum codes_part part;
        size_t at;
        const void *from;
    } parts[] = {{PART_ABSMAX, making->at.absmax, codes->absmax},
                 {PART_SCALE, making->at.scale, codes->scale},
                 {PART_OFFSET, making->at.offset, &codes->offset}};
    send_rows(making, making->data, making->at.stride, codes->code,
              dtype_part_bytes(making->dtype, PART_CODE, 1, cols), rows,
              making->dtype == DTYPE_FP8 ? look_e4m3 : NULL);
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        size_t bytes = dtype_part_bytes(making->dtype, parts[i].part, rows, cols);
        if (bytes)
            transfer_upload(making->b, making->data + parts[i].at, parts[i].from, bytes);
    }
}

/* ---- values ---- */

/* Returns the stored values if they have the format of the matrix, else NULL. *value = bytes of a
 * value. */
static const void *same_format(const struct making *making, size_t *value)
{
    size_t bits = dtype_info[making->dtype].bits;
    *value = layout_value(making->dtype);
    if (making->dtype == DTYPE_F16)
        return NULL;
    return bits == 16 ? (const void *)making->s->bf16 : bits == 32 ? making->s->f32 : NULL;
}

/* The rows for transfer_upload_made, counted from row `first` of the source. */
struct piece {
    const struct mat_source *s;
    size_t first;
};

static void make_rows(void *ctx, size_t first, size_t count, void *out)
{
    const struct piece *piece = (const struct piece *)ctx;
    piece->s->floats(piece->s, piece->first + first, count, (float *)out);
}

/* to[count, cols] = rows first .. first + count - 1, in bf16 if the source has bf16, else in
 * fp32. */
static void fetch_rows(const struct making *making, void *to, size_t first, size_t count)
{
    const struct mat_source *source = making->s;
    size_t begin = first * source->cols, n = count * source->cols;
    struct piece piece = {source, first};
    size_t row_bytes = source->cols * sizeof *source->bf16;
    if (source->bf16)
        send_rows(making, to, row_bytes, source->bf16 + begin, row_bytes, count, look_bf16);
    else if (source->draw)
        encode_draw(making->b, (float *)to, source->draw, making->table, begin, n);
    else if (source->f32)
        transfer_upload(making->b, to, source->f32 + begin, n * sizeof *source->f32);
    else
        transfer_upload_made(making->b, to, source->cols * sizeof(float), count, make_rows, &piece);
}

/* The number of rows in a chunk; at least one. */
static size_t chunk_rows(const struct mat_source *source)
{
    size_t row = source->cols * (source->bf16 ? sizeof(uint16_t) : sizeof(float));
    size_t rows = row < CHUNK_BYTES ? CHUNK_BYTES / row : 1;
    return rows < source->rows ? rows : source->rows;
}

/* The second quantization of NF4, of the largest values of all blocks. The host computes the mean,
 * because its sum has a fixed order; the device does the rest. */
static void quantize_absmax(const struct making *making)
{
    size_t blocks = dtype_scales(making->dtype, making->s->rows, making->s->cols);
    float *absmax = (float *)mem_alloc(blocks * sizeof *absmax);
    cuda_read(making->b, absmax, making->absmax, blocks * sizeof *absmax);
    encode_absmax(making->b, making->data, &making->at, making->absmax, blocks,
                  quant_absmax_mean(absmax, blocks));
    free(absmax);
}

/* Makes the matrix through the chunk, which take_scratch() has allocated. */
static void make_in_chunks(const struct making *making)
{
    size_t rows = making->s->rows, most = chunk_rows(making->s);
    for (size_t first = 0; first < rows; first += most) {
        size_t count = rows - first < most ? rows - first : most;
        struct mat_chunk chunk = {making->values, making->s->bf16 != NULL, first, count,
                                  making->s->cols};
        fetch_rows(making, making->values, first, count);
        encode_chunk(making->b, making->data, &making->at, making->dtype, &chunk, making->absmax);
    }
    if (making->absmax)
        quantize_absmax(making);
}

/* Allocates temporary memory. fp32 rows of an F32 matrix need no chunk, because they are sent to
 * their place. Returns -1 if there is no memory. */
static int take_scratch(struct making *making)
{
    const struct mat_source *source = making->s;
    size_t value = source->bf16 ? sizeof(uint16_t) : sizeof(float), table = DRAW_QUANTILES;
    int draws = source->draw && !source->bf16, chunks = making->dtype != DTYPE_F32 || source->bf16;
    if (chunks && !(making->values = cuda_alloc(
                        making->b, chunk_rows(source) * source->cols * value, MEMORY_ACTIVATIONS)))
        return -1;
    if (draws && !(making->table = (float *)cuda_alloc(making->b, table * sizeof(float),
                                                       MEMORY_ACTIVATIONS)))
        return -1;
    size_t blocks = dtype_info[making->dtype].super
                        ? dtype_scales(making->dtype, source->rows, source->cols)
                        : 0;
    if (blocks && !(making->absmax = (float *)cuda_alloc(making->b, blocks * sizeof(float),
                                                         MEMORY_ACTIVATIONS)))
        return -1;
    if (draws)
        transfer_upload(making->b, making->table, source->draw->table, table * sizeof(float));
    return 0;
}

static int make_values(struct making *making)
{
    size_t value, cols = making->s->cols;
    const void *same = same_format(making, &value);
    if (same) {
        send_rows(making, making->data, making->at.stride * value, same, cols * value,
                  making->s->rows, same == making->s->bf16 ? look_bf16 : look_floats);
        return 0;
    }
    int bad = take_scratch(making);
    if (!bad && making->values)
        make_in_chunks(making);
    else if (!bad)
        fetch_rows(making, making->data, 0, making->s->rows);
    cuda_free(making->b, making->values);
    cuda_free(making->b, making->table);
    cuda_free(making->b, making->absmax);
    device_of(making->b)->in_turn = 1;
    return bad;
}

int cuda_mat_make(struct backend *backend, struct mat *weight, const struct mat_source *source,
                  enum dtype dtype)
{
    struct range here("mat_make");
    struct making make = {backend, source, dtype, layout_of(dtype, source->rows, source->cols),
                          NULL,    NULL,   NULL,  NULL};
    make.data = (unsigned char *)cuda_alloc(backend, make.at.bytes, MEMORY_WEIGHTS);
    if (!make.data)
        return -1;
    int bad = 0;
    if (source->q && source->q->dtype == dtype)
        send_codes(&make);
    else
        bad = make_values(&make);
    if (bad) {
        cuda_free(backend, make.data);
        return -1;
    }
    weight->data = make.data;
    weight->dtype = dtype;
    weight->rows = source->rows;
    weight->cols = source->cols;
    return 0;
}
