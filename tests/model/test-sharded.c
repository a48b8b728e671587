/* test-sharded.c - tests that loading a checkpoint of several shards holds at most one shard in
 * memory besides the weights, and that the weights take the estimated bytes. A child process writes
 * the shards, so that its memory does not count. */
#include <sys/wait.h>
#include <unistd.h>

#include "lib/base/mem.h"
#include "lib/base/resident.h"
#include "lib/checkpoint/checkpoint.h"
#include "lib/network/network.h"
#include "tests/files.h"
#include "tests/tap.h"

enum { MIB = 1 << 20, SHARDS = 5, SLACK = 8 * MIB };

static char *path_of(const char *name)
{
    return mem_format("%s/%s", files_root, name);
}

static const float *give(void *ctx, enum role r, size_t layer)
{
    float *values = ctx;
    values[0] = (float)((size_t)r + layer + 1);
    return values;
}

static void must(int bad, const struct err *e)
{
    if (bad) {
        printf("Bail out! %s\n", e->text);
        exit(1);
    }
}

/* Writes the tensors first .. first + n - 1 of `all` as a shard, and their lines of the index. */
static void write_shard(const struct tensors *all, size_t first, size_t n, int k, FILE *index)
{
    struct err e = {0};
    struct tensor *list = mem_zero(n, sizeof *list);
    char *name = mem_format("model-%d.safetensors", k), *path = path_of(name);
    for (size_t i = 0; i < n; i++) {
        list[i] = *safetensors_at(all, first + i);
        fprintf(index, "%s\"%s\":\"%s\"", first + i ? "," : "", list[i].name, name);
    }
    must(safetensors_write(path, list, n, NULL, &e), &e);
    free(list);
    free(name);
    free(path);
}

/* Replaces the single file by its shards and their index. */
static void split(void)
{
    struct err e = {0};
    struct tensors *all = safetensors_open_folder(files_root, &e);
    must(!all, &e);
    char *path = path_of("model.safetensors.index.json"), *whole = path_of("model.safetensors");
    FILE *index = fopen(path, "w");
    size_t n = safetensors_count(all), share = (n + SHARDS - 1) / SHARDS, at = 0;
    if (!index)
        exit(1);
    fputs("{\"metadata\":{},\"weight_map\":{", index);
    for (int k = 0; k < SHARDS; k++, at += share)
        write_shard(all, at, at + share < n ? share : n - at, k, index);
    fputs("}}\n", index);
    if (fclose(index) || unlink(whole))
        exit(1);
    safetensors_close(all);
    free(path);
    free(whole);
}

/* Writes about 70 MB of F32. */
static void write_all(void)
{
    struct err e = {0};
    struct checkpoint c;
    must(checkpoint_open(&c, "synth:tiny-llama", 5, &e), &e);
    c.config.head_dim = c.config.rope_dims = 64;
    c.config.width = 512;
    c.config.heads = 8;
    c.config.kv_heads = 8;
    c.config.ffn = 2048;
    c.config.layers = 4;
    float *values = mem_alloc(512 * 2048 * sizeof *values);
    for (size_t i = 0; i < 512 * 2048; i++)
        values[i] = (float)(i % 13) * 0.01f - 0.05f;
    must(checkpoint_save(&c.config, files_root, "F32", give, values, &e), &e);
    free(values);
    checkpoint_close(&c);
    split();
}

static size_t largest_shard(const struct checkpoint *c, size_t *all)
{
    size_t most = 0;
    *all = 0;
    for (size_t i = 0; i < safetensors_files(c->tensors); i++) {
        FILE *f = fopen(safetensors_file(c->tensors, i), "rb");
        if (!f || fseek(f, 0, SEEK_END))
            exit(1);
        size_t n = (size_t)ftell(f);
        fclose(f);
        most = n > most ? n : most;
        *all += n;
    }
    return most;
}

static void test_loading(struct backend *b)
{
    struct err e = {0};
    struct checkpoint c;
    struct network n;
    int64_t before = resident_peak();
    size_t all;
    must(checkpoint_open(&c, files_root, 0, &e) || checkpoint_check_values(&c, &e), &e);
    size_t shard = largest_shard(&c, &all);
    int64_t checked = resident_peak() - before;
    ok(before < 0 || checked <= (int64_t)shard + SLACK,
       "checking every value takes %lld bytes; one shard has %zu, all shards %zu",
       (long long)checked, shard, all);
    must(network_load(&n, b, &c, &(struct precision){.quant = "int8"}, &e), &e);
    size_t weights = network_weight_bytes(&n);
    int64_t loaded = resident_peak() - before;
    ok(before < 0 || loaded <= (int64_t)(weights + shard) + SLACK,
       "loading takes %lld bytes; the weights have %zu, one shard %zu", (long long)loaded, weights,
       shard);
    ok(weights == network_expected_bytes(&n) && b->memory.requested_peak == b->memory.requested,
       "the weights take the estimated bytes; loading takes no other memory of the back end");
    ok(weights + shard + SLACK < all, "all shards in memory would break the bounds above");
    network_free(&n);
    size_t sum = 0;
    for (size_t i = 0; i < safetensors_count(c.tensors); i++) {
        const struct tensor *t = safetensors_at(c.tensors, i);
        for (size_t k = 0; k < t->bytes; k += 4096)
            sum += t->data[k];
    }
    ok(before < 0 || (sum > 0 && resident_peak() - before > (int64_t)(all - SLACK)),
       "reading all tensors raises the peak: %lld bytes", (long long)(resident_peak() - before));
    checkpoint_close(&c);
}

int main(void)
{
    files_begin();
    int status = 0;
    pid_t child = fork();
    if (child == 0) {
        write_all();
        _exit(0);
    }
    if (child < 0 || waitpid(child, &status, 0) != child || status)
        return 1;
    struct backend *b = backend_open("cpu", NULL, 2, 0, NULL);
    test_loading(b);
    backend_close(b);
    files_end();
    return tap_done();
}
