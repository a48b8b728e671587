/* test-pack.c - tests that a packed model, opened again, computes the bits of its source loaded
 * with the same quantization; and that unfit files are refused by name. */
#include <sys/stat.h>

#include "lib/base/file.h"
#include "lib/base/mem.h"
#include "lib/checkpoint/packing/pack.h"
#include "lib/checkpoint/role.h"
#include "tests/files.h"
#include "tests/model/logits.h"
#include "tests/tap.h"

static char source[64], packed[64], weights_path[96], config_path[96];
static struct pool *pool;

struct giver {
    struct checkpoint synth;
    const struct config *config;
    float *values;
    float odd; /* if not 0: the first value of ROLE_UP */
};

/* Random weights, with a row of zeros in ROLE_Q and whole numbers as norms. */
static const float *give(void *ctx, enum role r, size_t layer)
{
    struct giver *g = ctx;
    size_t rows, cols;
    role_shape(g->config, r, &rows, &cols);
    g->values = mem_resize(g->values, rows * cols, sizeof *g->values);
    checkpoint_floats(&g->synth, r, layer, g->values);
    for (size_t i = 0; r == ROLE_Q && i < cols; i++)
        g->values[i] = 0;
    if (r == ROLE_UP && g->odd != 0)
        g->values[0] = g->odd;
    return g->values;
}

/* Saves a tiny model whose rows are whole blocks of 64. */
static void save(const char *shape, const char *dtype, int tied, float odd)
{
    struct giver g = {.odd = odd};
    struct err e = {0};
    char *name = mem_format("synth:%s", shape);
    int bad = checkpoint_open(&g.synth, name, 5, &e);
    g.synth.config.ffn = 192;
    g.synth.config.tied = tied;
    struct config c = g.synth.config;
    g.config = &c;
    if (bad || checkpoint_save(&c, source, dtype, give, &g, &e)) {
        printf("Bail out! %s\n", e.text);
        exit(1);
    }
    checkpoint_close(&g.synth);
    free(g.values);
    free(name);
}

static int pack(enum dtype q, struct pack_role role[ROLE_COUNT], struct err *e)
{
    struct checkpoint c;
    if (checkpoint_open(&c, source, 0, e))
        return -1;
    int bad = file_make_folder(packed, e) || pack_checkpoint(&c, q, NULL, packed, pool, role, e);
    checkpoint_close(&c);
    return bad ? -1 : 0;
}

/* Returns 1 if the stored codes are the codes of the source's floats. */
static int same_codes(enum dtype q)
{
    struct checkpoint a, b;
    struct err e = {0};
    int same = !checkpoint_open(&a, source, 0, &e) && !checkpoint_open(&b, packed, 0, &e);
    for (int r = 0; same && r < ROLE_COUNT; r++) {
        enum dtype d = quantization_dtype(q, &a.config, (enum role)r, 0, DTYPE_F32);
        for (size_t l = 0; d != DTYPE_F32 && l < role_layers(&a.config, (enum role)r); l++) {
            struct weight wa = {&a, (enum role)r, l}, wb = {&b, (enum role)r, l};
            struct mat_source sa = checkpoint_source(&wa), sb = checkpoint_source(&wb);
            struct codes want;
            void *memory = quant_make(&want, &sa, d, pool);
            size_t n = dtype_part_bytes(d, PART_CODE, sa.rows, sa.cols);
            same &= sb.q && sb.q->dtype == d && !memcmp(sb.q->code, want.code, n);
            if (same && d == DTYPE_NF4)
                same &= !memcmp(sb.q->absmax, want.absmax, n / 32) &&
                        !memcmp(&sb.q->offset, &want.offset, sizeof want.offset);
            same = same && !memcmp(sb.q->scale, want.scale,
                                   dtype_part_bytes(d, PART_SCALE, sa.rows, sa.cols));
            free(memory);
        }
    }
    checkpoint_close(&a);
    checkpoint_close(&b);
    return same;
}

static void test_same(const char *shape, const char *dtype, int tied, enum dtype q)
{
    enum { N = 5 * 512 };
    static float x[N], y[N];
    static const char *const devices[] = {"ref", "cpu"};
    struct pack_role role[ROLE_COUNT];
    struct err e = {0};
    const char *name = quantization_name(q);
    save(shape, dtype, tied, 0);
    ok(!pack(q, role, &e), "%s %s%s packs as %s %s", shape, dtype, tied ? " tied" : "", name,
       e.text);
    ok(same_codes(q), "packed codes are those of the source");
    for (size_t i = 0; i < (q == DTYPE_FP8 ? 1 : 2); i++) { /* the CPU has no fp8 */
        e = (struct err){0};
        memset(x, 1, sizeof x);
        int bad = logits_at(source, devices[i], name, x, &e) ||
                  logits_at(packed, devices[i], NULL, y, &e);
        ok(!bad && !memcmp(x, y, sizeof x), "%s: the logits of --quant %s, bit for bit %s",
           devices[i], name, e.text);
        bad = logits_at(packed, devices[i], name, y, &e);
        ok(!bad && !memcmp(x, y, sizeof x), "%s: --quant %s says what it is", devices[i], name);
        bad = logits_at(source, devices[i], NULL, y, &e);
        ok(!bad && memcmp(x, y, sizeof x), "%s: not quantized they differ", devices[i]);
    }
    double error = sqrt(role[ROLE_UP].error / role[ROLE_UP].power);
    /* the error of Gaussian rows of 64 values */
    double expected = q == DTYPE_Q4                   ? 0.0949
                      : dtype_info[q].bits == 8 && q != DTYPE_FP8 ? 0.0062
                      : q == DTYPE_FP8                ? 0.0245
                      : q == DTYPE_FP4                ? 0.1217
                                                      : 0.092;
    ok(error > 0.85 * expected && error < 1.15 * expected, "relative error %.4f", error);
    ok(role[ROLE_NORM].packed_bytes == role[ROLE_NORM].source_bytes &&
           role[ROLE_HEAD].tensors == (tied ? 0 : 1) &&
           role[ROLE_EMBED].dtype ==
               (!tied ? DTYPE_F32 : dtype_info[q].head),
       "formats of roles that are not quantized");
}

static void test_other_quant(void)
{
    struct pack_role role[ROLE_COUNT];
    struct checkpoint c;
    struct err e = {0};
    float x[5 * 512];
    save("tiny-llama", "BF16", 0, 0);
    ok(!pack(DTYPE_NF4, role, &e) && logits_at(packed, "ref", "int8", x, &e) == -1 &&
           e.code == EXIT_BAD_USAGE && strstr(e.text, "packed as nf4"), "%s", e.text);
    e = (struct err){0};
    ok(!checkpoint_open(&c, packed, 0, &e) && !checkpoint_check_values(&c, &e) &&
           !strcmp(checkpoint_dtype(&c), "BF16"), "its values are finite %s", e.text);
    ok(pack_checkpoint(&c, DTYPE_INT8, NULL, packed, pool, role, &e) == -1 &&
           e.code == EXIT_BAD_DATA && strstr(e.text, "packed already"), "%s", e.text);
    checkpoint_close(&c);
    e = (struct err){0};
    ok(!checkpoint_open(&c, "synth:tiny-llama", 0, &e) &&
           pack_checkpoint(&c, DTYPE_INT8, NULL, packed, pool, role, &e) == -1 &&
           e.code == EXIT_BAD_DATA, "%s", e.text);
    checkpoint_close(&c);
    e = (struct err){0};
    save("tiny-llama", "F32", 0, NAN);
    ok(pack(DTYPE_NF4, role, &e) == -1 && e.code == EXIT_BAD_DATA && strstr(e.text, "up_proj"),
       "%s", e.text);
}

/* ---- hostile files ---- */

/* A change of one tensor of a packed model. */
struct edit {
    const char *name;
    int drop;
    const char *dtype;
    size_t shape0;   /* if not 0: the first dimension; data are cut or padded */
    const float *value; /* if not NULL: the first fp32 value */
};

static void rewrite(const struct edit *x)
{
    struct err e = {0};
    struct tensors *t = safetensors_open_file(weights_path, &e);
    struct tensor list[128];
    size_t n = 0;
    unsigned char *room = mem_zero(1 << 20, 1);
    for (size_t i = 0; i < safetensors_count(t); i++) {
        struct tensor a = *safetensors_at(t, i);
        if (strcmp(a.name, x->name)) {
            list[n++] = a;
            continue;
        }
        memcpy(room, a.data, a.bytes);
        a.data = room;
        if (x->dtype) {
            size_t width = !strcmp(x->dtype, "F32") ? 4 : !strcmp(x->dtype, "BF16") ? 2 : 1;
            a.bytes = a.bytes / (strcmp(a.dtype, "F32") ? 1 : 4) * width;
            snprintf(a.dtype, sizeof a.dtype, "%s", x->dtype);
        }
        if (x->shape0) {
            a.bytes = a.bytes / a.shape[0] * x->shape0;
            a.shape[0] = x->shape0;
        }
        if (x->value)
            memcpy(room, x->value, sizeof *x->value);
        if (!x->drop)
            list[n++] = a;
    }
    char *other = mem_format("%s.new", weights_path);
    if (safetensors_write(other, list, n, NULL, &e) || rename(other, weights_path))
        exit(1);
    safetensors_close(t);
    free(other);
    free(room);
}

static void edited(enum dtype q, struct edit x, const char *says)
{
    struct pack_role role[ROLE_COUNT];
    struct checkpoint c;
    struct err e = {0};
    int bad = pack(q, role, &e);
    rewrite(&x);
    int r = checkpoint_open(&c, packed, 0, &e);
    ok(!bad && r == -1 && e.code == EXIT_BAD_DATA && strstr(e.text, x.name) &&
           strstr(e.text, says), "%s: %s", quantization_name(q), e.text);
    if (!r)
        checkpoint_close(&c);
}

#define UP "model.layers.1.mlp.up_proj.weight"
static void test_hostile(void)
{
    static const float nan = NAN, infinity = INFINITY, below = -1;
    save("tiny-llama", "BF16", 0, 0);
    edited(DTYPE_INT8, (struct edit){UP ".scale", .drop = 1}, "missing");
    edited(DTYPE_INT8, (struct edit){UP, .drop = 1}, "missing");
    edited(DTYPE_INT8, (struct edit){UP ".scale", .shape0 = 191}, "[191]");
    edited(DTYPE_INT8, (struct edit){UP, .shape0 = 191}, "[191, 64]");
    edited(DTYPE_INT8, (struct edit){UP, .dtype = "U8"}, "expected I8");
    edited(DTYPE_INT8, (struct edit){UP ".scale", .dtype = "BF16"}, "expected F32");
    edited(DTYPE_INT8, (struct edit){UP ".scale", .value = &nan}, "expected finite");
    edited(DTYPE_INT8, (struct edit){UP ".scale", .value = &infinity}, "expected finite");
    edited(DTYPE_INT8, (struct edit){UP ".scale", .value = &below}, "not below 0");
    edited(DTYPE_FP8, (struct edit){UP, .dtype = "I8"}, "expected F8_E4M3");
    edited(DTYPE_FP8, (struct edit){UP ".scale", .value = &nan}, "expected finite");
    edited(DTYPE_NF4, (struct edit){UP ".absmax", .drop = 1}, "missing");
    edited(DTYPE_NF4, (struct edit){UP ".absmax.scale", .drop = 1}, "missing");
    edited(DTYPE_NF4, (struct edit){UP ".absmax.offset", .drop = 1}, "missing");
    edited(DTYPE_NF4, (struct edit){UP, .dtype = "I8"}, "expected U8");
    edited(DTYPE_NF4, (struct edit){UP, .shape0 = 193}, "[193, 32]");
    edited(DTYPE_NF4, (struct edit){UP ".absmax", .shape0 = 1}, "[1, 1]");
    edited(DTYPE_NF4, (struct edit){UP ".absmax.scale", .shape0 = 2}, "[2]");
    edited(DTYPE_NF4, (struct edit){UP ".absmax.offset", .value = &nan}, "expected finite");
    edited(DTYPE_NF4, (struct edit){UP ".absmax.scale", .value = &infinity}, "expected finite");
    edited(DTYPE_FP4, (struct edit){UP ".absmax", .drop = 1}, "missing");
    edited(DTYPE_FP4, (struct edit){UP ".absmax", .dtype = "U8"}, "expected F32");
    edited(DTYPE_FP4, (struct edit){UP ".absmax", .shape0 = 191}, "[191, 1]");
    edited(DTYPE_FP4, (struct edit){UP ".absmax", .value = &nan}, "expected finite");
    edited(DTYPE_NF4_F32, (struct edit){UP ".absmax", .value = &below}, "not below 0");
    edited(DTYPE_INT8_VECTOR, (struct edit){UP ".scale", .value = &infinity}, "expected finite");
}

/* Opens a model with members of `quantization` that pack-model does not write. says NULL: it
 * opens. */
static void configured(const char *quantization, const char *says)
{
    struct checkpoint c;
    struct err e = {0};
    struct buf text = {0};
    FILE *f = NULL;
    if (!file_read(config_path, 1 << 20, &text, &e)) {
        json_t *j = json_loads(text.data, 0, NULL);
        json_object_set_new(j, "quantization", json_loads(quantization, JSON_DECODE_ANY, NULL));
        f = fopen(config_path, "w");
        json_dumpf(j, f, 0);
        fclose(f);
        json_decref(j);
    }
    buf_free(&text);
    int r = checkpoint_open(&c, packed, 0, &e);
    ok(f && (says ? r == -1 && e.code == EXIT_BAD_DATA && strstr(e.text, says) : !r), "%s: %s",
       quantization, r ? e.text : "opens");
    if (!r)
        checkpoint_close(&c);
}

static void test_config(void)
{
    struct pack_role role[ROLE_COUNT];
    struct err e = {0};
    save("tiny-llada", "F32", 0, 0);
    ok(!pack(DTYPE_NF4, role, &e), "a llada packs %s", e.text);
    configured("{\"method\":\"nf4\",\"source_dtype\":\"F32\",\"block\":64,\"absmax_block\":256}",
               NULL);
    configured("{\"method\":\"nf4\",\"source_dtype\":\"F32\",\"block\":32,\"absmax_block\":256}",
               "\"block\":64");
    configured("{\"method\":\"nf4\",\"source_dtype\":\"F32\",\"block\":64,\"absmax_block\":256,"
               "\"x\":1}", "other members");
    configured("{\"method\":\"int8\",\"source_dtype\":\"F32\"}", "expected I8");
    configured("{\"method\":\"fp4\",\"source_dtype\":\"F32\",\"block\":64}", "expected F32");
    configured("{\"method\":\"gptq\",\"source_dtype\":\"F32\"}", DTYPE_QUANTIZED "|mixed");
    configured("{\"method\":\"none\",\"source_dtype\":\"F32\"}", DTYPE_QUANTIZED "|mixed");
    configured("{\"method\":\"nf4\",\"source_dtype\":\"I8\"}", "source_dtype");
    configured("{\"source_dtype\":\"F32\"}", "method");
    configured("\"nf4\"", "expected an object");
    configured("null", "shape expected [64, 64]");
}

/* ---- a format for each part ---- */

/* Packs with the five formats of mix: attention of both layers, feed-forward of both, the head. */
static int pack_mix(const enum dtype mix[5], struct pack_role role[ROLE_COUNT], struct err *e)
{
    struct checkpoint c;
    if (checkpoint_open(&c, source, 0, e))
        return -1;
    for (size_t i = 0; i < 4; i++)
        c.config.mix[i % 2][i / 2] = (uint8_t)mix[i];
    c.config.mix[0][PART_HEAD] = (uint8_t)mix[4];
    int bad = file_make_folder(packed, e) ||
              pack_checkpoint(&c, QUANT_MIXED, NULL, packed, pool, role, e);
    checkpoint_close(&c);
    return bad ? -1 : 0;
}

/* Computes the logits of the mix, made from the source by network_part. */
static int run_parts(const char *device, const enum dtype mix[5], float *logits, size_t *bytes)
{
    struct err e = {0};
    struct checkpoint c;
    struct network n;
    int bad = checkpoint_open(&c, source, 0, &e);
    struct backend *b = backend_open(device, NULL, 2, 0, NULL);
    bad = bad || network_load(&n, b, &c, &(struct precision){.kv = "bf16"}, &e);
    for (size_t i = 0; i < 5 && !bad; i++)
        bad = network_part(&n, &c, i < 4 ? (enum part)(i / 2) : PART_HEAD, i < 4 ? i % 2 : 0,
                           mix[i], &e);
    if (!bad) {
        logits_of(&n, logits);
        *bytes = network_expected_bytes(&n);
        bad = *bytes != network_weight_bytes(&n);
        network_free(&n);
    }
    backend_close(b);
    checkpoint_close(&c);
    return bad;
}

static void test_mixed(void)
{
    static const enum dtype mix[2][5] = {
        {DTYPE_NF4, DTYPE_INT8, QUANT_NONE, DTYPE_NF4, DTYPE_INT8},
        {QUANT_NONE, DTYPE_FP4, DTYPE_INT8_VECTOR, DTYPE_NF4_F32, QUANT_NONE}};
    static float x[5 * 512], y[5 * 512];
    static const char *const devices[] = {"ref", "cpu"};
    struct pack_role role[ROLE_COUNT];
    for (int i = 0; i < 2; i++) {
        struct err e = {0};
        size_t bytes = 0;
        save("tiny-llama", "BF16", i, 0);
        ok(!pack_mix(mix[i], role, &e), "a mix packs %s", e.text);
        ok(role[ROLE_Q].dtype == QUANT_MIXED && role[ROLE_UP].dtype == QUANT_MIXED &&
               role[i ? ROLE_EMBED : ROLE_HEAD].dtype == mix[i][4],
           "layers differ, the head is %s", quantization_name(mix[i][4]));
        for (size_t d = 0; d < 2; d++) {
            int bad = run_parts(devices[d], mix[i], x, &bytes) ||
                      logits_at(packed, devices[d], NULL, y, &e);
            ok(!bad && !memcmp(x, y, sizeof x),
               "%s: the logits of the source with its parts quantized one by one, %zu bytes %s",
               devices[d], bytes, e.text);
        }
        ok(logits_at(packed, "ref", "nf4", y, &e) == -1 && strstr(e.text, "packed as mixed"), "%s",
           e.text);
    }
}

#define MIX(head, layers)                                                                       \
    "{\"method\":\"mixed\",\"source_dtype\":\"BF16\",\"block\":64,\"absmax_block\":256,"       \
    head "\"layers\":" layers "}"
#define HEAD "\"head\":\"int8\","
#define LAYER(attention, ffn) "{\"attention\":\"" attention "\",\"ffn\":\"" ffn "\"}"

static void test_mixed_config(void)
{
    static const enum dtype mix[5] = {DTYPE_NF4, DTYPE_INT8, QUANT_NONE, DTYPE_NF4, DTYPE_INT8};
    struct pack_role role[ROLE_COUNT];
    struct err e = {0};
    save("tiny-llama", "BF16", 0, 0);
    ok(!pack_mix(mix, role, &e), "a mix packs %s", e.text);
    configured(MIX(HEAD, "[" LAYER("nf4", "none") "," LAYER("int8", "nf4") "]"), NULL);
    configured(MIX(HEAD, "[" LAYER("nf4", "none") "," LAYER("int8", "int8") "]"), "expected I8");
    configured(MIX(HEAD, "[" LAYER("none", "none") "," LAYER("int8", "nf4") "]"), "shape expected");
    configured(MIX(HEAD, "[" LAYER("nf4", "none") "]"), "a list of 2");
    configured(MIX(HEAD, "[" LAYER("nf4", "none") "," LAYER("int8", "nf4") "," LAYER("int8", "nf4")
                   "]"), "a list of 2");
    configured(MIX(HEAD, "{}"), "a list of 2");
    configured(MIX(HEAD, "[" LAYER("nf4", "none") ",3]"), "layers: 1: expected an object");
    configured(MIX(HEAD, "[" LAYER("nf5", "none") "," LAYER("int8", "nf4") "]"), "got \"nf5\"");
    configured(MIX(HEAD, "[" LAYER("nf4", "bf16") "," LAYER("int8", "nf4") "]"), "got \"bf16\"");
    configured(MIX(HEAD, "[{\"attention\":\"nf4\"}," LAYER("int8", "nf4") "]"), "ffn");
    configured(MIX(HEAD, "[{\"attention\":7,\"ffn\":\"none\"}," LAYER("int8", "nf4") "]"),
               "attention");
    configured(MIX(HEAD, "[{\"attention\":\"nf4\",\"ffn\":\"none\",\"x\":1}," LAYER("int8", "nf4")
                   "]"), "other members");
    configured(MIX("\"head\":\"nf4\",", "[" LAYER("nf4", "none") "," LAYER("int8", "nf4") "]"),
               "expected none|int8|fp8|int8-vector");
    configured(MIX("", "[" LAYER("nf4", "none") "," LAYER("int8", "nf4") "]"), "head");
    configured(MIX("\"x\":1," HEAD, "[" LAYER("nf4", "none") "," LAYER("int8", "nf4") "]"),
               "other members");
}

int main(void)
{
    files_begin();
    snprintf(source, sizeof source, "%s/source", files_root);
    snprintf(packed, sizeof packed, "%s/packed", files_root);
    snprintf(weights_path, sizeof weights_path, "%s/model.safetensors", packed);
    snprintf(config_path, sizeof config_path, "%s/config.json", packed);
    pool = pool_new(2);
    test_same("tiny-llama", "BF16", 0, DTYPE_INT8);
    test_same("tiny-llama", "F32", 1, DTYPE_NF4);
    test_same("tiny-llada", "F32", 1, DTYPE_INT8);
    test_same("tiny-llada", "BF16", 0, DTYPE_NF4);
    test_same("tiny-llada", "BF16", 0, DTYPE_FP8);
    test_same("tiny-llama", "F32", 1, DTYPE_FP8);
    test_same("tiny-qwen2", "BF16", 1, DTYPE_NF4);
    test_same("tiny-qwen3", "F32", 0, DTYPE_INT8);
    test_same("tiny-llama", "BF16", 0, DTYPE_INT8_VECTOR);
    test_same("tiny-llada", "F32", 1, DTYPE_FP4);
    test_same("tiny-qwen2", "BF16", 0, DTYPE_Q4);
    test_same("tiny-qwen2", "BF16", 0, DTYPE_NF4_F32);
    test_other_quant();
    test_hostile();
    test_config();
    test_mixed();
    test_mixed_config();
    pool_free(pool);
    files_end();
    return tap_done();
}
