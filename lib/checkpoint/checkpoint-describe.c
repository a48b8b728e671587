/* checkpoint-describe.c - describes a checkpoint: family, shapes and the SHA-256 of each file for
 * meta records; warnings and notes for standard error.
 *
 * The Hugging Face cache names its large blobs by their SHA-256, and other hashes are cached
 * (lib/record/filehash.h), so a start does not read 16 GB. The member sha256_from of the record
 * states where each hash comes from. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/file.h"
#include "lib/base/mem.h"
#include "lib/record/filehash.h"
#include "lib/checkpoint/checkpoint.h"

/* The SHA-256 in the name of the blob that a link points to. 0: none. */
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

static int add_file(json_t *files, const char *path, struct err *e)
{
    struct stat st;
    char hex[65];
    if (stat(path, &st))
        return err_set(e, err_reason(EXIT_IO), "%s: %s", path, strerror(errno));
    int named = hash_in_name(path, hex), known = named ? 1 : filehash(path, FILEHASH_LARGE, hex, e);
    if (known < 0)
        return -1;
    json_array_append_new(files, json_pack("{s:s, s:I, s:s, s:s}", "name", strrchr(path, '/') + 1,
                                           "bytes", (json_int_t)st.st_size, "sha256", hex,
                                           "sha256_from",
                                           named   ? "cache name"
                                           : known ? "remembered"
                                                   : "bytes"));
    return 0;
}

char *checkpoint_file(const struct checkpoint *model, size_t i)
{
    static const char *const small[] = {"config.json", "generation_config.json", "tokenizer.json",
                                        "tokenizer_config.json", "chat_template.jinja",
                                        "chat_template.json", "model.safetensors.index.json",
                                        "origin.json", "prior.safetensors"};
    for (size_t k = 0; model->folder && !model->tokenizer && k < sizeof small / sizeof *small;
         k++) {
        char *path = mem_format("%s/%s", model->folder, small[k]);
        int there = !(access(path, F_OK) && errno == ENOENT);
        there &= !file_exists(path) || file_is_regular(path); /* the reader refuses other files */
        if (there && i-- == 0)
            return path;
        free(path);
    }
    if (!model->tensors || i >= safetensors_files(model->tensors))
        return NULL;
    const char *file = safetensors_file(model->tensors, i);
    return mem_format("%s%s", strchr(file, '/') ? "" : "./", file);
}

static int add_files(const struct checkpoint *model, json_t *files, struct err *e)
{
    char *path;
    int bad = 0;
    for (size_t i = 0; !bad && (path = checkpoint_file(model, i)); i++) {
        bad = add_file(files, path, e);
        free(path);
    }
    return bad;
}

json_t *checkpoint_describe(const struct checkpoint *model, struct err *e)
{
    const struct config *config = &model->config;
    json_t *files = json_array();
    if (add_files(model, files, e)) {
        json_decref(files);
        return NULL;
    }
    json_t *object = json_pack(
        "{s:s, s:s, s:s, s:s, s:I, s:b, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, "
        "s:b}",
        "model", config->name, "arch", config->family->name, "paradigm",
        config_paradigm_name(config->paradigm), "dtype", checkpoint_dtype(model), "parameters",
        (json_int_t)config_parameters(config), "weights_random", config->synth, "width",
        (json_int_t)config->width, "layers", (json_int_t)config->layers, "heads",
        (json_int_t)config->heads, "kv_heads", (json_int_t)config->kv_heads, "head_dim",
        (json_int_t)config->head_dim, "ffn", (json_int_t)config->ffn, "vocab",
        (json_int_t)config->vocab, "context", (json_int_t)config->context, "tied", config->tied);
    if (config->synth)
        json_object_set_new(object, "synth_seed", json_integer((json_int_t)config->synth_seed));
    if (config->experts) {
        json_object_set_new(object, "experts", json_integer((json_int_t)config->experts));
        json_object_set_new(object, "experts_used", json_integer((json_int_t)config->used));
    }
    json_object_set_new(object, "quant", json_string(quantization_name(config->quant)));
    if (model->extras.ignored)
        json_object_set_new(object, "config_ignored", json_string(model->extras.ignored));
    json_object_set_new(object, "files", files);
    return object;
}

void checkpoint_say(const struct checkpoint *model, const struct log *log)
{
    const char *note = model->tensors ? safetensors_note(model->tensors) : NULL;
    if (note)
        log_warn(log, "W106", "%s", note);
    if (!model->config.n_eos)
        log_warn(log, "W107", "%s: no eos_token_id in config.json or generation_config.json: "
                 "answers end at their length alone; write it there if the model has one",
                 model->folder);
    if (model->extras.ignored)
        log_note(log, "%s/config.json: ignored as asked: %s", model->folder, model->extras.ignored);
    if (model->extras.harmless)
        log_more(log, "%s/config.json: these keys change no result: %s", model->folder,
                 model->extras.harmless);
}
