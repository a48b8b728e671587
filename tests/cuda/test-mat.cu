/* test-mat.cu - compares matrices on the device with quant.c and layout.h, every byte of the block,
 * from every source; tests chunks, and lack of memory. */
#include "kernels/cuda/device/runtime.h"
#include "kernels/cuda/weights/layout.h"
#include "kernels/draw.h"
#include "tests/cuda/rows-fixture.h"

enum way { FROM_F32, FROM_BF16, FROM_CODES, FROM_DRAW, FROM_FLOATS, WAYS };
static const char *const ways[] = {"f32", "bf16", "codes", "draws", "floats"};

/* The values of a matrix and every form that a source may have them in. */
struct values {
    size_t rows, cols;
    float *w;
    uint16_t *half;
    float *table;
    struct draw draw;
};

static float *quantiles(void)
{
    float *table = floats(DRAW_QUANTILES);
    for (size_t i = 0; i < DRAW_QUANTILES; i++)
        table[i] = (float)((double)i - 32767.5) / 1e6f;
    return table;
}

static struct values values_make(struct fixture *f, size_t rows, size_t cols, enum way way)
{
    size_t n = rows * cols, many = 1 << 20;
    struct values v = {rows, cols, n < many ? drawn(f, n) : floats(n), NULL, NULL, {}};
    for (size_t i = 0; i < n && n >= many; i++)
        v.w[i] = (float)(i * 7919 % 20011) - 10000;
    v.half = (uint16_t *)mem_zero(n, sizeof *v.half);
    v.table = quantiles();
    v.draw.table = v.table;
    v.draw.seed = 0x123456789abcdef;
    v.draw.role = 3, v.draw.layer = 5;
    float block[DRAW_BLOCK];
    for (size_t i = 0; i < n && way == FROM_DRAW; i++) {
        if (i % DRAW_BLOCK == 0)
            draw_block(&v.draw, v.table, i / DRAW_BLOCK, block);
        v.w[i] = block[i % DRAW_BLOCK];
    }
    for (size_t i = 0; i < n; i++) {
        v.half[i] = bf16_of(v.w[i]);
        if (way == FROM_BF16)
            v.w[i] = bf16_float(v.half[i]);
    }
    return v;
}

static void values_free(struct values *v)
{
    free(v->w), free(v->half), free(v->table);
}

static void give_floats(const struct mat_source *s, size_t first, size_t count, float *out)
{
    memcpy(out, (const float *)s->ctx + first * s->cols, count * s->cols * sizeof *out);
}

static struct mat_source source_of(const struct values *v, enum way way, const struct codes *q)
{
    struct mat_source s = {};
    s.rows = v->rows, s.cols = v->cols;
    s.floats = give_floats;
    s.ctx = v->w;
    s.f32 = way == FROM_F32 ? v->w : NULL;
    s.bf16 = way == FROM_BF16 ? v->half : NULL;
    s.q = way == FROM_CODES ? q : NULL;
    s.draw = way == FROM_DRAW ? &v->draw : NULL;
    return s;
}

/* ---- the block as layout.h says ---- */

static void put_codes(unsigned char *block, const struct layout *at, const struct values *v,
                      const struct codes *q)
{
    const struct dtype_info *d = &dtype_info[q->dtype];
    size_t row = v->cols * d->bits / 8, blocks = v->rows * (v->cols / QUANT_BLOCK);
    for (size_t r = 0; r < v->rows; r++)
        memcpy(block + r * at->stride, (const char *)q->code + r * row, row);
    if (d->super) {
        memcpy(block + at->absmax, q->absmax, blocks);
        memcpy(block + at->scale, q->scale, (blocks + 255) / 256 * sizeof(float));
        memcpy(block + at->offset, &q->offset, sizeof q->offset);
    } else {
        memcpy(block + at->scale, q->scale, (d->block ? blocks : v->rows) * sizeof(float));
    }
}

static unsigned char *expected(const struct values *v, enum dtype dtype, const struct codes *q)
{
    struct layout at = layout_of(dtype, v->rows, v->cols);
    unsigned char *block = (unsigned char *)mem_zero(at.bytes, 1);
    if (q) {
        put_codes(block, &at, v, q);
        return block;
    }
    for (size_t r = 0; r < v->rows; r++)
        for (size_t k = 0; k < v->cols; k++) {
            float x = v->w[r * v->cols + k];
            uint16_t half = dtype == DTYPE_F16 ? f16_of(x) : bf16_of(x);
            size_t i = r * at.stride + k;
            if (dtype == DTYPE_F32)
                memcpy(block + i * sizeof x, &x, sizeof x);
            else
                memcpy(block + i * sizeof half, &half, sizeof half);
        }
    return block;
}

/* Returns 1 if the block on the device is as expected, to the last byte of padding. */
static int as_expected(struct fixture *f, const struct mat *m, const struct values *v,
                       const struct codes *q)
{
    size_t bytes = cuda_mat_bytes(v->rows, v->cols, m->dtype);
    unsigned char *want = expected(v, m->dtype, q), *got = (unsigned char *)mem_zero(bytes, 1);
    cuda_read(f->cuda, got, m->data, bytes);
    int same = !memcmp(got, want, bytes) && m->rows == v->rows && m->cols == v->cols;
    free(want), free(got);
    return same;
}

static void make_from(struct fixture *f, struct values *v, enum dtype dtype, enum way way)
{
    struct mat_source plain = source_of(v, FROM_FLOATS, NULL);
    struct mat m;
    struct codes q;
    int coded = dtype_info[dtype].quantized;
    void *block = coded ? quant_make(&q, &plain, dtype, f->ref->pool) : NULL;
    struct mat_source s = source_of(v, way, &q);
    int bad = cuda_mat_make(f->cuda, &m, &s, dtype);
    ok(!bad && as_expected(f, &m, v, coded ? &q : NULL), "%s %zu x %zu from %s",
       dtype_info[dtype].name, v->rows, v->cols, ways[way]);
    cuda_mat_free(f->cuda, &m);
    free(block);
}

static void every_source(struct fixture *f)
{
    static const size_t shapes[][2] = {{1, 64}, {5, 192}, {33, 64}, {7, 6}, {3, 65}, {301, 320},
                                       {2, 16}, {4, 24}};
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        for (int way = 0; way < WAYS; way++) {
            struct values v = values_make(f, shapes[i][0], shapes[i][1], (enum way)way);
            for (int d = DTYPE_F32; d < DTYPES; d++)
                if (!cuda_refuses(f->cuda, (enum dtype)d, v.cols) &&
                    (dtype_info[d].quantized || way != FROM_CODES))
                    make_from(f, &v, (enum dtype)d, (enum way)way);
            values_free(&v);
        }
}

/* Tests rows of zeros, of tiny values, of large values, of NaN and of infinities. */
static void odd_values(struct fixture *f)
{
    static const float odd[] = {0, 0x1p-130f, 0x1p-121f, 0x1p-119f, 3e38f, NAN, INFINITY, -INFINITY,
                                -0.0f};
    enum { ROWS = sizeof odd / sizeof *odd, COLS = 64 };
    for (int d = DTYPE_F32; d < DTYPES; d++) {
        if (cuda_refuses(f->cuda, (enum dtype)d, COLS))
            continue;
        struct values v = values_make(f, ROWS, COLS, FROM_F32);
        memset(v.w, 0, ROWS * COLS * sizeof *v.w);
        for (size_t r = 0; r < ROWS; r++)
            v.w[r * COLS + 7 * r] = odd[r];
        if (d == DTYPE_NF4) /* one NaN would make every absmax NaN */
            v.w[5 * COLS + 35] = v.w[6 * COLS + 42] = v.w[7 * COLS + 49] = 1;
        /* in bf16 the NaN of host and device have different bits */
        if (dtype_info[d].bits == 16)
            v.w[5 * COLS + 35] = 1;
        make_from(f, &v, (enum dtype)d, FROM_F32);
        values_free(&v);
    }
}

static void nan_in_nf4(struct fixture *f)
{
    struct values v = values_make(f, 2, 64, FROM_F32);
    v.w[70] = NAN;
    struct mat_source s = source_of(&v, FROM_F32, NULL);
    struct layout at = layout_of(DTYPE_NF4, 2, 64);
    struct mat m;
    float offset = 0;
    int bad = cuda_mat_make(f->cuda, &m, &s, DTYPE_NF4);
    cuda_read(f->cuda, &offset, (char *)m.data + at.offset, sizeof offset);
    ok(!bad && isnan(offset), "nf4: a NaN makes the matrix NaN");
    cuda_mat_free(f->cuda, &m);
    values_free(&v);
}

/* Returns 1 if making a matrix from the source reports a value that is not finite. */
static int notices(struct fixture *f, struct mat_source s, enum dtype dtype)
{
    struct mat m;
    int odd = 0;
    s.odd = &odd;
    int bad = cuda_mat_make(f->cuda, &m, &s, dtype);
    cuda_mat_free(f->cuda, &m);
    return !bad && odd;
}

/* Values that are sent as they lie in a file are checked on the way: the first, the last, one in
 * between, in rows with and without padding. */
static void not_finite(struct fixture *f)
{
    static const size_t shapes[][2] = {{5, 192}, {7, 66}, {301, 320}};
    static const uint16_t odd[] = {0x7f80, 0xff80, 0x7fc1};
    static const enum dtype from_half[] = {DTYPE_BF16, DTYPE_F32, DTYPE_INT8};
    int found = 1, spared = 1;
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        struct values v = values_make(f, shapes[i][0], shapes[i][1], FROM_BF16);
        struct mat_source half = source_of(&v, FROM_BF16, NULL), s = source_of(&v, FROM_F32, NULL);
        const size_t n = v.rows * v.cols, at[] = {0, n / 2 + 1, n - 1};
        v.half[n / 3] = 0x7f7f, v.w[n / 3] = -3.4e38f;
        for (size_t k = 0; k < 3; k++) {
            spared &= !notices(f, half, from_half[k]) && !notices(f, s, DTYPE_F32);
            uint16_t was = v.half[at[k]];
            v.half[at[k]] = odd[k];
            v.w[at[k]] = bf16_float(odd[k]);
            found &= notices(f, half, from_half[k]) && notices(f, s, DTYPE_F32);
            v.half[at[k]] = was;
            v.w[at[k]] = bf16_float(was);
        }
        struct codes q;
        void *block = quant_make(&q, &s, DTYPE_FP8, f->ref->pool);
        struct mat_source codes = source_of(&v, FROM_CODES, &q);
        ((uint8_t *)q.code)[n / 2] = 0x7e;
        spared &= !notices(f, codes, DTYPE_FP8);
        ((uint8_t *)q.code)[n / 2] = 0xff;
        found &= notices(f, codes, DTYPE_FP8);
        free(block);
        values_free(&v);
    }
    ok(found, "a value that is not finite is reported while it is sent");
    ok(spared, "finite values are not reported");
}

/* Tests more than one chunk, with wide rows; the second chunk of draws begins within a group of
 * eight. */
static void chunks(struct fixture *f)
{
    static const struct {
        enum dtype dtype;
        enum way way;
        size_t rows, cols;
    } some[] = {{DTYPE_INT8, FROM_FLOATS, 130, INT8_COLS_MAX},
                {DTYPE_FP8, FROM_DRAW, 131, 130055},
                {DTYPE_INT8, FROM_BF16, 257, INT8_COLS_MAX}};
    size_t chunk = 64 << 20, slack = 1 << 20;
    for (size_t i = 0; i < sizeof some / sizeof *some; i++) {
        struct values v = values_make(f, some[i].rows, some[i].cols, some[i].way);
        memory_reset_peak(&f->cuda->memory);
        make_from(f, &v, some[i].dtype, some[i].way);
        size_t itself = cuda_mat_bytes(v.rows, v.cols, some[i].dtype);
        size_t more = f->cuda->memory.requested_peak - itself;
        ok(more > chunk - slack && more < chunk + slack, "beside itself it took %zu bytes", more);
        values_free(&v);
    }
}

/* Tries every memory cap up to the first that is enough, with nothing reserved before. */
static void short_of_memory(enum dtype dtype, enum way way)
{
    struct fixture f = fixture_open();
    struct values v = values_make(&f, 96, 16384, way);
    struct mat_source s = source_of(&v, way, NULL);
    struct memory *memory = &f.cuda->memory;
    struct mat m;
    int refused = 0, clean = 1;
    for (memory->cap = 1 << 20; cuda_mat_make(f.cuda, &m, &s, dtype); memory->cap += 1 << 20) {
        clean &= memory->allocated == 0;
        refused++;
    }
    ok(refused > 1 && clean, "%s from %s: %d caps are too small, and nothing is left behind",
       dtype_info[dtype].name, ways[way], refused);
    cuda_mat_free(f.cuda, &m);
    values_free(&v);
    fixture_close(&f);
}

static void refusals(struct fixture *f)
{
    ok(cuda_act_dtype(DTYPE_F32) == DTYPE_F32 && cuda_act_dtype(DTYPE_BF16_F32) == DTYPE_F32 &&
           cuda_act_dtype(DTYPE_BF16) == DTYPE_BF16 && cuda_act_dtype(DTYPE_FP8) == DTYPE_BF16 &&
           cuda_act_dtype(DTYPE_F16) == DTYPE_F32 && cuda_act_dtype(DTYPE_FP4) == DTYPE_BF16,
       "activations beside matrices");
    ok(cuda_refuses(f->cuda, DTYPE_Q4, 128) && strstr(cuda_refuses(f->cuda, DTYPE_Q4, 128), "CPU"),
       "q4 is refused: it is for a CPU");
    ok(cuda_refuses(f->cuda, DTYPE_NF4, 100) && !cuda_refuses(f->cuda, DTYPE_NF4, 128),
       "a matrix that no back end can hold is refused");
    struct device *d = device_of(f->cuda);
    int major = d->major, minor = d->minor;
    d->major = 8, d->minor = 6;
    ok(cuda_refuses(f->cuda, DTYPE_FP8, 64), "fp8 before it: %s",
       cuda_refuses(f->cuda, DTYPE_FP8, 64));
    d->minor = 9;
    ok(!cuda_refuses(f->cuda, DTYPE_FP8, 64), "fp8 from 8.9 on");
    d->major = major, d->minor = minor;
}

int main(void)
{
    struct fixture f = fixture_open();
    refusals(&f);
    every_source(&f);
    odd_values(&f);
    nan_in_nf4(&f);
    not_finite(&f);
    chunks(&f);
    fixture_close(&f);
    short_of_memory(DTYPE_NF4, FROM_DRAW);
    short_of_memory(DTYPE_BF16, FROM_F32);
    short_of_memory(DTYPE_INT8, FROM_BF16);
    return tap_done();
}
