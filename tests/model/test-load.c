/* test-load.c - tests the way from a file to matrices: values read in place, at odd addresses and
 * through floats are the same bits; names of precisions; memory as estimated; large blocks of
 * memory. */
#include <unistd.h>

#include "lib/base/mem.h"
#include "lib/checkpoint/checkpoint.h"
#include "lib/network/kv.h"
#include "lib/network/network.h"
#include "lib/network/estimate.h"
#include "tests/files.h"
#include "tests/tap.h"


static const float *give(void *ctx, enum role r, size_t layer)
{
    static float values[512 * 64];
    checkpoint_floats(ctx, r, layer, values);
    return values;
}

static void must(int bad, const struct err *e)
{
    if (bad) {
        printf("Bail out! %s\n", e->text);
        exit(1);
    }
}

/* Writes synth:tiny-llama to files_root as `dtype`. */
static void save(const char *dtype)
{
    struct err e = {0};
    struct checkpoint c;
    must(checkpoint_open(&c, "synth:tiny-llama", 5, &e) ||
             checkpoint_save(&c.config, files_root, dtype, give, &c, &e), &e);
    checkpoint_close(&c);
}

/* Makes the header one byte longer, so that all data lie at odd addresses. */
static void shift(void)
{
    char *path = mem_format("%s/model.safetensors", files_root);
    FILE *f = fopen(path, "rb");
    unsigned char length[8], *rest = mem_alloc(1 << 20);
    size_t got = f ? fread(length, 1, 8, f) : 0, n = f ? fread(rest, 1, 1 << 20, f) : 0;
    if (f)
        fclose(f);
    size_t header = (size_t)length[0] | (size_t)length[1] << 8 | (size_t)length[2] << 16;
    length[0]++;
    f = fopen(path, "wb");
    if (got != 8 || !n || n == 1 << 20 || length[0] == 0 || !f ||
        fwrite(length, 1, 8, f) != 8 || fwrite(rest, 1, header, f) != header ||
        fputc(' ', f) == EOF || fwrite(rest + header, 1, n - header, f) != n - header || fclose(f))
        exit(1);
    free(rest);
    free(path);
}

/* Returns all values of a matrix, read back from the back end. */
static float *values_of(struct backend *b, const struct mat *m)
{
    float *y = mem_alloc(m->rows * m->cols * sizeof *y);
    int32_t *row = mem_alloc(m->rows * sizeof *row);
    for (size_t i = 0; i < m->rows; i++)
        row[i] = (int32_t)i;
    b->ops->embed(b, y, m, row, m->rows);
    free(row);
    return y;
}

/* Tests that mat_make() gives equal values from a checkpoint's source directly and through
 * floats. */
static int same_both_ways(struct backend *b, const struct checkpoint *c, enum role r,
                          enum dtype dtype)
{
    struct weight w = {c, r, 1};
    struct mat_source direct = checkpoint_source(&w), floats = direct;
    floats.bf16 = NULL;
    struct mat x, y;
    if (b->ops->mat_make(b, &x, &direct, dtype) || b->ops->mat_make(b, &y, &floats, dtype))
        return 0;
    float *u = values_of(b, &x), *v = values_of(b, &y);
    int same = !memcmp(u, v, x.rows * x.cols * sizeof *u);
    if (dtype == DTYPE_F32) { /* then the values must also equal those of the file */
        checkpoint_floats(c, r, 1, v);
        same &= !memcmp(u, v, x.rows * x.cols * sizeof *u);
    }
    free(u);
    free(v);
    b->ops->mat_free(b, &x);
    b->ops->mat_free(b, &y);
    return same;
}

static void test_paths(struct backend *b)
{
    static const enum dtype dtypes[] = {DTYPE_F32, DTYPE_BF16, DTYPE_BF16_F32};
    for (int odd = 0; odd < 2; odd++) {
        struct err e = {0};
        struct checkpoint c;
        save("BF16");
        if (odd)
            shift();
        must(checkpoint_open(&c, files_root, 0, &e), &e);
        struct weight w = {&c, ROLE_UP, 1};
        ok((checkpoint_source(&w).bf16 == NULL) == odd, "values are%s read in place",
           odd ? " not" : "");
        int same = 1;
        for (int d = 0; d < 3; d++)
            for (int r = 0; r < ROLE_COUNT; r++)
                if (!role_is_vector((enum role)r) && role_layers(&c.config, (enum role)r))
                    same &= same_both_ways(b, &c, (enum role)r, dtypes[d]);
        ok(same, "%s %s: every matrix is the same both ways", b->ops->name, b->ops->level);
        checkpoint_close(&c);
    }
}

/* ---- values that are no numbers ---- */

struct spoiled {
    struct checkpoint *c;
    enum role role;
    size_t at;
    float value;
};

static const float *give_spoiled(void *ctx, enum role r, size_t layer)
{
    static float values[512 * 64];
    const struct spoiled *s = ctx;
    size_t rows, cols;
    role_shape(&s->c->config, r, &rows, &cols);
    checkpoint_floats(s->c, r, layer, values);
    if (r == s->role && (layer == 1 || !role_per_layer(r)))
        values[s->at % (rows * cols)] = s->value;
    return values;
}

/* Saves a checkpoint whose value number `at` of a tensor of layer 1 is `value`. */
static void save_spoiled(const char *dtype, enum role r, size_t at, float value)
{
    struct err e = {0};
    struct checkpoint c;
    must(checkpoint_open(&c, "synth:tiny-qwen3", 5, &e), &e);
    struct spoiled s = {&c, r, at, value};
    must(checkpoint_save(&c.config, files_root, dtype, give_spoiled, &s, &e), &e);
    checkpoint_close(&c);
}

/* Loads the checkpoint of save_spoiled(). finite 1: it must load; else the message must name the
 * tensor and the value. */
static int loads(struct backend *b, const struct precision *p, enum role r, size_t at, int finite)
{
    struct err e = {0};
    struct checkpoint c;
    struct network n;
    size_t rows, cols;
    must(checkpoint_open(&c, files_root, 0, &e), &e);
    role_shape(&c.config, r, &rows, &cols);
    char *want = mem_format("tensor %s: value %zu expected finite",
                            checkpoint_tensor(&c, r, 1)->name, at % (rows * cols));
    int bad = network_load(&n, b, &c, p, &e);
    int good = finite ? !bad : bad && e.code == EXIT_BAD_DATA && strstr(e.text, want);
    if (!good)
        printf("# %s, wanted %s\n", e.code ? e.text : "it loads", finite ? "none" : want);
    if (!bad)
        network_free(&n);
    free(want);
    checkpoint_close(&c);
    return good;
}

/* Tests every role, at the ends of a matrix and at some place between, in every number format of a
 * file and a network; and the largest finite values. */
static void test_spoiled(struct backend *b, const struct precision *p, const char *dtype, int odd)
{
    static const float values[] = {NAN, INFINITY, -INFINITY};
    int found = 1, spared = 1;
    for (int r = 0; r < ROLE_COUNT; r++) {
        if (r == ROLE_Q_BIAS || r == ROLE_K_BIAS || r == ROLE_V_BIAS || r == ROLE_HEAD ||
            r >= ROLE_CROSS_NORM)
            continue; /* this family has no such tensor, and a tied head */
        size_t at = r % 3 == 0 ? 0 : r % 3 == 1 ? (size_t)-1 / 2 : (size_t)977 * (size_t)r;
        save_spoiled(dtype, (enum role)r, at, values[r % 3]);
        if (odd)
            shift();
        found &= loads(b, p, (enum role)r, at, 0);
        save_spoiled(dtype, (enum role)r, at, r % 2 ? 3e38f : -3e38f);
        spared &= loads(b, p, (enum role)r, at, 1);
    }
    ok(found && spared, "%s %s: %s%s as %s, %s: %s", b->ops->name, b->ops->level, dtype,
       odd ? " at odd addresses" : "", p->dtype, p->quant, found ? "found" : "not found");
}

static void test_all_spoiled(struct backend *b)
{
    static const struct precision all[] = {{.dtype = "f32", .quant = "none"},
                                           {.dtype = "bf16", .quant = "none"},
                                           {.dtype = "f32", .quant = "int8"},
                                           {.dtype = "f16", .quant = "none"},
                                           {.dtype = "f32", .quant = "nf4"},
                                           {.dtype = "f32", .quant = "fp4"},
                                           {.dtype = "f16", .quant = "int8-vector"}};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        test_spoiled(b, &all[i], "BF16", 0);
        test_spoiled(b, &all[i], "F32", 0);
    }
    test_spoiled(b, &all[1], "BF16", 1);
}

/* Rows drawn in parts equal rows drawn at once, also if the parts are not whole blocks of eight. */
static void test_drawn(void)
{
    struct err e = {0};
    struct checkpoint c;
    must(checkpoint_open(&c, "synth:tiny-llama", 5, &e), &e);
    c.config.ffn = 13; /* rows of `down` begin anywhere in a block */
    struct weight w = {&c, ROLE_DOWN, 1};
    struct mat_source s = checkpoint_source(&w);
    float *all = mem_alloc(s.rows * s.cols * sizeof *all), part[3 * 13];
    checkpoint_floats(&c, ROLE_DOWN, 1, all);
    int same = s.rows == 64 && s.cols == 13 && !s.bf16;
    for (size_t i = 0; i + 3 <= s.rows; i++) {
        s.floats(&s, i, 3, part);
        same &= !memcmp(part, all + i * 13, sizeof part);
    }
    ok(same, "random weights do not depend on where a reader begins");
    free(all);
    checkpoint_close(&c);
}

struct choice {
    struct precision p;
    enum dtype dense, kv, q, embed;
    const char *says; /* the expected description, or the error */
};

static void test_precision(struct backend *b, const char *stored)
{
    const int bf16 = !strcmp(stored, "BF16");
    const enum dtype own = bf16 ? DTYPE_BF16_F32 : DTYPE_F32;
    const struct choice list[] = {
        {{0}, own, DTYPE_F32, own, own, NULL},
        {{.dtype = "auto", .kv = "auto", .quant = "none"}, own, DTYPE_F32, own, own, NULL},
        {{.dtype = "f32"}, DTYPE_F32, DTYPE_F32, DTYPE_F32, DTYPE_F32, NULL},
        {{.dtype = "bf16", .kv = "f32"}, DTYPE_BF16, DTYPE_F32, DTYPE_BF16, DTYPE_BF16, NULL},
        {{.dtype = "bf16-f32"}, DTYPE_BF16_F32, DTYPE_F32, DTYPE_BF16_F32, DTYPE_BF16_F32, NULL},
        {{.dtype = "f32", .kv = "bf16"}, DTYPE_F32, DTYPE_BF16, DTYPE_F32, DTYPE_F32, NULL},
        {{.dtype = "f32", .quant = "int8"}, DTYPE_F32, DTYPE_BF16, DTYPE_INT8, DTYPE_F32, NULL},
        {{.dtype = "fp16"}, .says = "expected auto|f32|bf16|bf16-f32|f16, got 'fp16'"},
        {{.kv = "int8"}, .says = "expected auto|f32|bf16, got 'int8'"},
        {{.quant = "int4"}, .says = "expected none|" DTYPE_QUANTIZED ", got 'int4'"},
        {{.quant = "nf4"}, .says = "multiple of 64"}, /* ffn is 160 */
    };
    struct checkpoint c;
    struct err e = {0};
    save(stored);
    must(checkpoint_open(&c, files_root, 0, &e), &e);
    for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
        const struct choice *x = &list[i];
        struct network n;
        e = (struct err){0};
        int r = network_load(&n, b, &c, &x->p, &e);
        ok(x->says ? r && e.code && strstr(e.text, x->says)
                   : !r && n.dtype == x->dense && n.kv_dtype == x->kv &&
                         n.layer[1].q.dtype == x->q && n.head.dtype == x->q &&
                         n.embed.dtype == x->embed,
           "%s as %s, cache %s, quant %s: %s", stored, x->p.dtype ? x->p.dtype : "-",
           x->p.kv ? x->p.kv : "-", x->p.quant ? x->p.quant : "-", r ? e.text : "as expected");
        if (!r)
            network_free(&n);
    }
    checkpoint_close(&c);
    ok(!b->memory.allocated, "all memory of a network is freed");
}

static enum dtype bf16_act(enum dtype d)
{
    return d == DTYPE_BF16 ? DTYPE_BF16 : DTYPE_F32;
}

static const char *no_bf16(const struct backend *b, enum dtype d, size_t cols)
{
    (void)b, (void)cols;
    return d == DTYPE_BF16 ? "not today" : NULL;
}

static void little_room(struct backend *b, size_t *available, size_t *total)
{
    (void)b;
    *available = 100000;
    *total = 1 << 30;
}

static void no_room(struct backend *b, size_t *available, size_t *total)
{
    (void)b;
    *available = *total = 100000;
}

/* Limits that a back end declares are obeyed. The table of operations differs from ref's in one
 * entry. */
static void test_device(struct backend *b)
{
    const struct ops *own = b->ops;
    const struct precision any = {0};
    struct ops ops = *own;
    struct checkpoint c;
    struct network n;
    struct err e = {0}, busy = {0};
    must(checkpoint_open(&c, "synth:tiny-llama", 5, &e), &e);
    b->ops = &ops;
    ops.act_dtype = bf16_act;
    must(network_load(&n, b, &c, &any, &e), &e);
    ok(n.dtype == DTYPE_BF16 && n.kv_dtype == DTYPE_BF16 && b->act == DTYPE_BF16,
       "auto on a device that computes in bf16");
    network_free(&n);
    ops.refuses = no_bf16;
    ok(network_load(&n, b, &c, &any, &e) && e.code == EXIT_BAD_USAGE && strstr(e.text, "not today"),
       "a format that the device cannot store is refused: %s", e.text);
    ops = *own;
    ops.room = little_room;
    must(network_load(&n, b, &c, &any, &busy), &busy); /* the memory of the host is not checked */
    network_free(&n);
    strcpy(b->name, "Test 1000");
    ok(network_load(&n, b, &c, &any, &busy) && busy.code == EXIT_BUSY &&
           strstr(busy.text, "Test 1000 has 100000 free of 1073741824") && !b->memory.allocated,
       "others use the device: %s", busy.text);
    ops.room = no_room;
    must(network_load(&n, b, &c, &any, &e), &e); /* a back end itself finds that memory is short */
    network_free(&n);
    *b->name = 0;
    b->ops = own;
    checkpoint_close(&c);
}

/* The allocated bytes must be exactly the bytes that estimate.h computes. */
static void test_estimate(struct backend *b, const char *model, const char *dtype, const char *kv,
                       const char *quant)
{
    static const struct {
        struct work_size size;
        size_t kv_slots;
    } shapes[] = {{{.rows = 1, .seqs = 1, .slots = 1, .listed = 1, .wanted = 1}, 7},
                  {{.rows = 21, .seqs = 3, .slots = 33, .listed = 71, .wanted = 5, .extra = 1001,
                    .cached = 1}, 64},
                  {{.rows = 130, .seqs = 2, .slots = 200, .listed = 400, .wanted = 130,
                    .guided = 1, .logits = 1}, 301},
                  {{.rows = 9, .seqs = 1, .slots = 9, .listed = 9, .wanted = 7, .compared = 1}, 0},
                  {{.rows = 55, .seqs = 3, .slots = 33, .listed = 71, .wanted = 5, .cached = 1,
                    .chosen = 1}, 64},
                  {{.rows = 55, .seqs = 3, .slots = 33, .listed = 71, .wanted = 5, .cached = 1,
                    .sifted = 1}, 64},
                  {{.rows = 130, .seqs = 2, .slots = 200, .listed = 400, .wanted = 130,
                    .guided = 1, .how = {SIZE_MAX, 1, 1}}, 301},
                  {{.rows = 130, .seqs = 2, .slots = 200, .listed = 400, .wanted = 13,
                    .cached = 1, .how = {1, 0, 0}}, 301}};
    struct err e = {0};
    struct checkpoint c;
    struct network n;
    const struct precision how = {.dtype = dtype, .kv = kv, .quant = quant};
    must(checkpoint_open(&c, model, 5, &e) || network_load(&n, b, &c, &how, &e), &e);
    const size_t *kind = b->memory.kind;
    size_t weights = network_expected_bytes(&n);
    ok(kind[MEMORY_WEIGHTS] == weights, "%s %s %s %s: weights %zu, on paper %zu", model,
       b->ops->name, dtype, quant, kind[MEMORY_WEIGHTS], weights);
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        const struct work_size *s = &shapes[i].size;
        n.row_tile = i % 2 ? 16 : 0;
        struct memory_estimate p = estimate_of(&n, s, shapes[i].kv_slots);
        struct work *w = work_make(&n, s);
        struct kv cache;
        int bad = kv_make(&cache, &n, shapes[i].kv_slots) ||
                  (s->chosen && kv_keep_outputs(&cache, &n));
        ok(!shapes[i].kv_slots || b->memory.reserved == p.reserved,
           "%zu rows: pages %zu, on paper %zu", s->rows, b->memory.reserved, p.reserved);
        ok(w && !bad && kind[MEMORY_KV] == p.kv && kind[MEMORY_ACTIVATIONS] == p.activations &&
               p.logits > 0 && p.logits < p.activations &&
               (s->logits ? p.logits > 4 * s->wanted * n.config.vocab : 1),
           "%zu rows: cache %zu, on paper %zu; activations %zu, on paper %zu", s->rows,
           kind[MEMORY_KV], p.kv, kind[MEMORY_ACTIVATIONS], p.activations);
        work_free(w, &n);
        kv_free(&cache, &n);
    }
    network_free(&n);
    checkpoint_close(&c);
}

static void test_blocks(struct backend *b)
{
    static const size_t sizes[] = {0, 1, 64, 65, (1 << 20) - 1, 1 << 20, (5 << 20) + 3};
    int good = 1;
    for (int kind = 0; kind < MEMORY_KINDS; kind++)
        for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
            size_t n = sizes[i], odd = 0;
            unsigned char *p = b->ops->alloc(b, n, (enum memory_kind)kind);
            for (size_t k = 0; p && k < n; k++)
                odd += p[k];
            if (p)
                memset(p, 0xa5, n);
            const struct memory *m = &b->memory;
            good &= p && !odd && (uintptr_t)p % 64 == 0 && m->requested == n &&
                    m->allocated == (n + 63) / 64 * 64 && m->reserved % 4096 == 0 &&
                    m->reserved >= m->allocated + 64 && m->reserved < m->allocated + 64 + 4096 &&
                    m->kind[kind] == m->allocated;
            b->ops->free(b, p);
            good &= !m->requested && !m->allocated && !m->reserved && !m->kind[kind];
        }
    ok(good, "%s: blocks are cleared, aligned and counted", b->ops->name);
    memory_reset_peak(&b->memory);
    void *one = b->ops->alloc(b, 5, MEMORY_KV);
    size_t calls = b->memory.calls;
    b->ops->free(b, one);
    memory_reset_peak(&b->memory);
    ok(calls == 1 && b->memory.calls == 0, "%s: blocks are counted from a reset on", b->ops->name);
    b->memory.cap = 3 << 20;
    void *two = b->ops->alloc(b, 2 << 20, MEMORY_KV);
    ok(two && !b->ops->alloc(b, 1 << 20, MEMORY_KV) && b->memory.requested == 2 << 20,
       "%s: beyond the cap there is nothing", b->ops->name);
    b->ops->free(b, two);
    b->memory.cap = 0;
    ok(!b->ops->alloc(b, SIZE_MAX - 100, MEMORY_KV) && !b->ops->alloc(b, SIZE_MAX / 2, MEMORY_KV) &&
           !b->memory.requested, "%s: nor beyond what a machine can have", b->ops->name);
}

int main(void)
{
    files_begin();
    struct backend *ref = backend_open("ref", NULL, 1, 0, NULL);
    for (size_t i = 0; ops_cpu_at(i); i++) {
        struct backend *b = backend_open("cpu", ops_cpu_at(i)->level, 2, 0, NULL);
        test_paths(b);
        backend_close(b);
    }
    struct backend *cpu = backend_open("cpu", NULL, 2, 0, NULL);
    test_paths(ref);
    test_drawn();
    test_precision(cpu, "F32");
    test_precision(cpu, "BF16");
    test_precision(ref, "BF16");
    test_device(ref);
    test_all_spoiled(ref);
    test_all_spoiled(cpu);
    test_estimate(cpu, "synth:tiny-llama", "f32", "f32", "none");
    test_estimate(cpu, "synth:tiny-llama", "bf16", "auto", "none");
    test_estimate(cpu, "synth:tiny-llada", "bf16-f32", "bf16", "none");
    test_estimate(cpu, "synth:tiny-llama", "f32", "auto", "int8");
    test_estimate(ref, "synth:tiny-llada", "f32", "auto", "none");
    test_estimate(cpu, "synth:tiny-qwen2", "bf16-f32", "bf16", "none");
    test_estimate(cpu, "synth:tiny-qwen2", "f32", "auto", "nf4");
    test_estimate(cpu, "synth:tiny-qwen3", "bf16", "auto", "int8");
    test_estimate(ref, "synth:tiny-qwen3", "f32", "auto", "fp8");
    test_estimate(ref, "synth:tiny-qwen3", "f32", "f32", "none");
    test_estimate(ref, "synth:tiny-llada-moe", "f32", "f32", "none");
    test_estimate(cpu, "synth:tiny-llada-moe", "bf16", "auto", "int8");
    test_estimate(ref, "synth:tiny-llada2", "f32", "f32", "none");
    test_estimate(cpu, "synth:tiny-llada2", "bf16", "auto", "int8");
    test_blocks(cpu);
    test_blocks(ref);
    ok(!backend_open("cpu", "nonsense", 1, 0, NULL) &&
           !backend_open("ref", "portable", 1, 0, NULL) &&
           !backend_open("abacus", NULL, 1, 0, NULL), "an unknown back end is not opened");
    backend_close(cpu);
    backend_close(ref);
    files_end();
    return tap_done();
}
