/* test-shards.c - feeds the index of a checkpoint in several files, of which two exist. */
#include "lib/checkpoint/safetensors.h"
#include "tests/fuzz/memory.h"

#define ONE "model-00001-of-00002.safetensors"
#define TWO "model-00002-of-00002.safetensors"

static int fuzz_seed(size_t i, struct buf *to)
{
    static const char *const index[] = {
        "{\"metadata\":{\"total_size\":12},\"weight_map\":{\"a\":\"" ONE "\",\"b\":\"" ONE
        "\",\"c\":\"" TWO "\"}}",
        "{\"weight_map\":{\"c\":\"" TWO "\",\"a\":\"" ONE "\",\"b\":\"" ONE "\",\"d\":\"" TWO
        "\"}}",
        "{\"metadata\":{\"total_size\":\"12\"},\"weight_map\":{\"a\":\"../" ONE "\"}}"};
    if (i < sizeof index / sizeof *index)
        buf_text(to, index[i]);
    return to->len > 0;
}

static void put_shard(const char *name, const char *letters)
{
    struct tensor list[2];
    char names[2][2] = {"", ""};
    struct err e = {0};
    size_t n = strlen(letters);
    for (size_t i = 0; i < n; i++) {
        names[i][0] = letters[i];
        list[i] = (struct tensor){.name = names[i], .dtype = "U8", .rank = 1, .shape = {4},
                                  .bytes = 4, .data = (const unsigned char *)"data"};
    }
    if (safetensors_write(files_at(name), list, n, NULL, &e))
        files_fail(e.text);
}

static void fuzz_one(const char *bytes, size_t n)
{
    static int there;
    struct err e = {0};
    const char *index = files_at("model.safetensors.index.json");
    if (!there++) {
        put_shard(ONE, "ab");
        put_shard(TWO, "c");
        files_put_text(index, ""); /* the file must exist; its bytes come from memory */
    }
    memory_put(0, index, bytes, n);
    struct tensors *t = safetensors_open_folder(files_root, &e);
    if (!t)
        fuzz_check_refused(&e);
    for (size_t i = 0; t && i < safetensors_count(t); i++) {
        const struct tensor *it = safetensors_at(t, i);
        fuzz_check(it->bytes == 4 && !memcmp(it->data, "data", 4));
        fuzz_check(safetensors_find(t, it->name) == it);
    }
    fuzz_check(!t || safetensors_files(t) <= 2);
    if (t)
        safetensors_close(t);
}

FUZZ_TARGET("shards", 400)
