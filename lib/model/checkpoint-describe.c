/* checkpoint-describe.c - what a checkpoint is, for meta records: shapes, and the SHA-256 of each
 * file. The Hugging Face cache names its large blobs by their SHA-256, so 16 GB need not be read to
 * know theirs; the record says which hashes were taken from a name. */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "lib/base/hash.h"
#include "lib/base/mem.h"
#include "lib/model/checkpoint.h"

/* The SHA-256 that the blob behind a link is named by. 0: it is not. */
static int hash_in_name(const char *path, char hex[65])
{
    char *real = realpath(path, NULL);
    const char *name = real ? strrchr(real, '/') : NULL;
    int yes = name && name - real >= 6 && !memcmp(name - 6, "/blobs", 6) &&
              strlen(name + 1) == 64 && strspn(name + 1, "0123456789abcdef") == 64;
    if (yes)
        memcpy(hex, name + 1, 65);
    free(real);
    return yes;
}

static void add_file(json_t *files, const char *path)
{
    struct stat st;
    char hex[65];
    if (stat(path, &st))
        return;
    int named = hash_in_name(path, hex);
    json_t *f = json_pack("{s:s, s:I}", "name", strrchr(path, '/') + 1, "bytes",
                          (json_int_t)st.st_size);
    if (named || !hash_file(path, hex, NULL)) {
        json_object_set_new(f, "sha256", json_string(hex));
        json_object_set_new(f, "sha256_from", json_string(named ? "cache name" : "bytes"));
    } else {
        json_object_set_new(f, "sha256", json_null());
        json_object_set_new(f, "sha256_reason", json_string("not readable"));
    }
    json_array_append_new(files, f);
}

static json_t *describe_files(const struct checkpoint *c)
{
    static const char *const small[] = {"config.json", "generation_config.json", "tokenizer.json",
                                        "model.safetensors.index.json"};
    json_t *files = json_array();
    for (size_t i = 0; c->folder && i < sizeof small / sizeof *small; i++) {
        char *path = mem_format("%s/%s", c->folder, small[i]);
        add_file(files, path);
        free(path);
    }
    for (size_t i = 0; c->tensors && i < tensors_files(c->tensors); i++)
        add_file(files, tensors_file(c->tensors, i));
    return files;
}

json_t *checkpoint_describe(const struct checkpoint *c)
{
    const struct config *f = &c->config;
    json_t *o = json_pack("{s:s, s:s, s:s, s:I, s:b, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:b}",
                          "model", f->name, "arch", f->arch == ARCH_LLADA ? "llada" : "llama",
                          "dtype", checkpoint_dtype(c), "parameters",
                          (json_int_t)config_parameters(f), "weights_random", f->synth, "width",
                          (json_int_t)f->width, "layers", (json_int_t)f->layers, "heads",
                          (json_int_t)f->heads, "kv_heads", (json_int_t)f->kv_heads, "head_dim",
                          (json_int_t)f->head_dim, "ffn", (json_int_t)f->ffn, "vocab",
                          (json_int_t)f->vocab, "context", (json_int_t)f->context, "tied", f->tied);
    if (f->synth)
        json_object_set_new(o, "synth_seed", json_integer((json_int_t)f->synth_seed));
    json_object_set_new(o, "files", describe_files(c));
    return o;
}
