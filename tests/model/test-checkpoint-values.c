/* test-checkpoint-values.c - tests the contents of a checkpoint besides its names: values that are
 * not finite, half precision, rounding to bf16, random weights, the ids of chat tokens, and hashes
 * that the Hugging Face cache gives. */
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/file.h"
#include "tests/model/written.h"

static void test_values(void)
{
    struct config f;
    struct checkpoint c;
    static const float odd[] = {NAN, INFINITY, -INFINITY};
    for (size_t i = 0; i < 4; i++) {
        struct err e = {0};
        synth_config(&f, "tiny-llama", &e);
        save(&f, i == 1 ? "BF16" : "F32", i < 3 ? odd[i] : 0, i == 3);
        int opens = !checkpoint_open(&c, folder, 0, &e);
        ok(opens && checkpoint_check_values(&c, &e) == -1 && e.code == EXIT_BAD_DATA &&
               strstr(e.text, i < 3 ? "mlp.up_proj.weight: value 0" : "every value is zero"),
           "%s", e.text);
        checkpoint_close(&c);
    }
}

/* Compares every bit pattern of F16 with ldexp(). */
static void test_half(void)
{
    struct config f;
    struct checkpoint c;
    struct err e = {0};
    synth_config(&f, "tiny-llama", &e);
    f.vocab = 1024; /* 1024 x 64 values hold every 16-bit pattern once */
    save(&f, "BF16", 0, 0);
    struct tensors *t = safetensors_open_file(weights_path, &e);
    struct tensor list[32];
    uint16_t *bits = mem_alloc(65536 * sizeof *bits);
    for (size_t i = 0; i < 65536; i++)
        bits[i] = (uint16_t)i;
    size_t n = safetensors_count(t), wrong = 0;
    for (size_t i = 0; i < n; i++) {
        list[i] = *safetensors_at(t, i);
        if (strcmp(list[i].name, "lm_head.weight"))
            continue;
        memcpy(list[i].dtype, "F16", 4);
        list[i].data = (unsigned char *)bits;
    }
    char *other = mem_format("%s.new", weights_path);
    int r = safetensors_write(other, list, n, NULL, &e) || rename(other, weights_path);
    safetensors_close(t);
    r = r || checkpoint_open(&c, folder, 0, &e);
    float *v = mem_zero(65536, sizeof *v);
    if (!r)
        checkpoint_floats(&c, ROLE_HEAD, 0, v);
    for (int i = 0; !r && i < 65536; i++) {
        int exponent = i >> 10 & 31, mantissa = i & 1023;
        double want = exponent == 31 ? (mantissa ? (double)NAN : (double)INFINITY)
                      : exponent     ? ldexp(1024 + mantissa, exponent - 25)
                                     : ldexp(mantissa, -24);
        want = i & 0x8000 ? -want : want;
        int same = isnan(want) ? isnan(v[i])
                               : (double)v[i] == want && !signbit(v[i]) == !signbit(want);
        wrong += !same;
    }
    ok(!r && wrong == 0, "65536 half-precision patterns, %zu wrong %s", wrong, e.text);
    ok(!r && !strcmp(checkpoint_dtype(&c), "F32"), "F16 and BF16 together need F32");
    if (!r)
        checkpoint_close(&c);
    free(v);
    free(bits);
    free(other);
}

/* Returns one value; rounding to bf16 is to nearest, ties to even. */
static const float *one_value(void *ctx, enum role r, size_t layer)
{
    static const float samples[] = {1.0f, 1.00390625f, 1.01171875f, 1.003907f, -1.00390625f,
                                    3.4028235e38f, 1e-40f, 0.0f};
    struct source *s = ctx;
    (void)layer;
    give(ctx, r, layer);
    if (r == ROLE_NORM)
        memcpy(s->values, samples, sizeof samples);
    return s->values;
}

static void test_bf16(void)
{
    struct config f;
    struct checkpoint c;
    struct err e = {0};
    float v[64];
    synth_config(&f, "tiny-llada", &e);
    struct source s = {.config = &f};
    int r = checkpoint_save(&f, folder, "BF16", one_value, &s, &e) ||
            checkpoint_open(&c, folder, 0, &e);
    free(s.values);
    if (!r)
        checkpoint_floats(&c, ROLE_NORM, 0, v);
    ok(!r && v[0] == 1.0f && v[1] == 1.0f && v[2] == 1.015625f && v[3] == 1.0078125f &&
           v[4] == -1.0f && isinf(v[5]) && v[6] > 0 && v[6] < 1.1e-40f && v[7] == 0,
       "bf16 rounds to nearest even");
    if (!r)
        checkpoint_close(&c);
    ok(checkpoint_save(&f, folder, "F16", one_value, &s, &e) == -1, "no other dtype is written");
}

static void test_synth(void)
{
    struct checkpoint a, b;
    struct err e = {0};
    const size_t n = 160 * 64;
    float *x = mem_alloc(n * sizeof *x), *y = mem_alloc(n * sizeof *y);
    ok(!checkpoint_open(&a, "synth:tiny-llada", 7, &e) &&
           !checkpoint_open(&b, "synth:tiny-llada", 8, &e),
       "synth opens %s", e.text);
    checkpoint_floats(&a, ROLE_UP, 1, x);
    double sum = 0, squares = 0, fourth = 0;
    for (size_t i = 0; i < n; i++) {
        sum += x[i];
        squares += (double)x[i] * x[i];
        fourth += pow(x[i], 4);
    }
    double variance = squares / (double)n, kurtosis = fourth / (double)n / (variance * variance);
    ok(fabs(sum / (double)n) < 4 * 0.02 / sqrt((double)n) && fabs(sqrt(variance) - 0.02) < 0.0006 &&
           fabs(kurtosis - 3) < 0.2, "mean %.5f, deviation %.5f, kurtosis %.2f", sum / (double)n,
       sqrt(variance), kurtosis);
    checkpoint_floats(&a, ROLE_UP, 1, y);
    ok(!memcmp(x, y, n * sizeof *x), "synth: the same seed, role and layer give the same values");
    checkpoint_floats(&a, ROLE_UP, 0, y);
    ok(memcmp(x, y, n * sizeof *x), "synth: another layer gives other values");
    checkpoint_floats(&a, ROLE_GATE, 1, y);
    ok(memcmp(x, y, n * sizeof *x), "synth: another role gives other values");
    checkpoint_floats(&b, ROLE_UP, 1, y);
    ok(memcmp(x, y, n * sizeof *x), "synth: another seed gives other values");
    checkpoint_floats(&a, ROLE_ATTN_NORM, 1, y);
    ok(y[0] == 1 && y[63] == 1, "synth: gains of norms are 1");
    ok(a.config.synth && !strcmp(a.config.name, "synth:tiny-llada") && a.config.synth_seed == 7 &&
           !strcmp(checkpoint_dtype(&a), "BF16") &&
           !checkpoint_check_values(&a, &e), "synth: name, seed and dtype are described");
    json_t *d = checkpoint_describe(&a, &e);
    ok(json_is_true(json_object_get(d, "weights_random")),
       "synth: the description says weights_random");
    json_decref(d);
    checkpoint_close(&a);
    checkpoint_close(&b);
    ok(checkpoint_open(&a, "synth:none", 0, &e) == -1 && e.code == EXIT_BAD_USAGE, "%s", e.text);
    free(x);
    free(y);
}

static void test_chat_tokens(void)
{
    struct config f;
    struct checkpoint c;
    struct err e = {0};
    char path[96];
    synth_config(&f, "tiny-llada", &e);
    save(&f, "BF16", 0, 0);
    snprintf(path, sizeof path, "%s/tokenizer.json", folder);
    FILE *t = fopen(path, "w");
    fputs("{\"added_tokens\":[{\"id\":500,\"content\":\"<|start_header_id|>\"},"
          "{\"id\":501,\"content\":\"<|eot_id|>\"}]}", t);
    fclose(t);
    ok(!checkpoint_open(&c, folder, 0, &e) && c.config.eot == 501,
       "chat tokens are found %s", e.text);
    checkpoint_close(&c);
    t = fopen(path, "w");
    fputs("{\"added_tokens\":[{\"id\":502,\"content\":\"<|im_end|>\"},"
          "{\"id\":501,\"content\":\"<|im_start|>\"},{\"id\":500,\"content\":\"<|eot_id|>\"}]}", t);
    fclose(t);
    synth_config(&f, "tiny-qwen3", &e);
    save(&f, "BF16", 0, 0);
    ok(!checkpoint_open(&c, folder, 0, &e) && c.config.eot == 502,
       "the end of turn is that of the family's template %s", e.text);
    checkpoint_close(&c);
    synth_config(&f, "tiny-llada", &e);
    save(&f, "BF16", 0, 0);
    unlink(path);
    ok(!checkpoint_open(&c, folder, 0, &e) && c.config.eot == -1,
       "without tokenizer.json no end of turn is known");
    json_t *d = checkpoint_describe(&c, &e);
    ok(d != NULL, "files of a checkpoint can be described %s", e.text);
    json_decref(d);
    unlink(weights_path);
    ok(!checkpoint_describe(&c, &e) && e.code && strstr(e.text, "model.safetensors"),
       "a file that went away is an error: %s", e.text);
    checkpoint_close(&c);
    e = (struct err){0};
    save(&f, "BF16", 0, 0);
    mkdir(path, 0777);
    ok(checkpoint_open(&c, folder, 0, &e) == -1 && e.code == EXIT_NO_INPUT &&
           strstr(e.text, "tokenizer.json"),
       "a tokenizer.json that cannot be read is an error: %s", e.text);
    rmdir(path);
    alarm(20); /* ends this program if opening a pipe without a writer blocks */
    e = (struct err){0};
    ok(!mkfifo(path, 0600) && checkpoint_open(&c, folder, 0, &e) == -1 &&
           e.code == EXIT_NO_INPUT && strstr(e.text, "regular file"),
       "a pipe as tokenizer.json: %s", e.text);
    alarm(0);
    unlink(path);
}

/* In the cache the name of a blob is its SHA-256, so the hash is not computed. */
static void test_cache_hash(void)
{
    static const char hash[] = "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff";
    struct checkpoint c;
    struct err e = {0};
    char blob[192], snapshot[128], link[192];
    snprintf(blob, sizeof blob, "%s/models--org--some-model/blobs", files_root);
    snprintf(snapshot, sizeof snapshot, "%s/models--org--some-model/snapshots/abc", files_root);
    file_make_folder(blob, &e);
    file_make_folder(snapshot, &e);
    struct config f;
    synth_config(&f, "tiny-llama", &e);
    save(&f, "BF16", 0, 0);
    snprintf(blob, sizeof blob, "%s/models--org--some-model/blobs/%s", files_root, hash);
    snprintf(link, sizeof link, "%s/model.safetensors", snapshot);
    int r = rename(weights_path, blob) ||
            symlink("../../blobs/00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff",
                    link) ||
            family_save(&f, snapshot, &e) || checkpoint_open(&c, snapshot, 0, &e);
    ok(!r && !strcmp(c.config.name, "some-model"), "a snapshot has its repository's name %s",
       e.text);
    if (r)
        return;
    json_t *d = checkpoint_describe(&c, &e), *file = json_array_get(json_object_get(d, "files"), 1);
    ok(!strcmp(json_string_value(json_object_get(file, "sha256")), hash) &&
           !strcmp(json_string_value(json_object_get(file, "sha256_from")), "cache name"),
       "a blob's name is its hash");
    json_decref(d);
    checkpoint_close(&c);
}

int main(void)
{
    written_begin();
    test_values();
    test_half();
    test_bf16();
    test_synth();
    test_chat_tokens();
    test_cache_hash();
    files_end();
    return tap_done();
}
