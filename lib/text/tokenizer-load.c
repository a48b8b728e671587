/* tokenizer-load.c - reads tokenizer.json into a struct tokenizer.
 *
 * The members truncation and padding are not read, because Hugging Face sets them per call. */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/file.h"
#include "lib/base/hash.h"
#include "lib/base/mem.h"
#include "lib/record/json.h"
#include "lib/text/tokenizer-load.h"
#include "lib/text/tokenizer.h"

static int load_all(struct tokenizer_load *load, const json_t *j)
{
    if (!json_is_object(json_object_get(j, "model")))
        return err_set(load->e, EXIT_BAD_DATA, "%s: expected an object with \"model\"", load->path);
    const json_t *model = json_object_get(j, "model"), *pre = json_object_get(j, "pre_tokenizer");
    load->by_character = !tokenizer_has_bytes(pre) && (tokenizer_has(model, "byte_fallback") ||
                                                       !strcmp(tokenizer_type(pre), "Metaspace"));
    if (tokenizer_load_model(load, model, json_object_get(j, "added_tokens")) ||
        tokenizer_load_normalizer(load, json_object_get(j, "normalizer")) ||
        tokenizer_load_pre_tokenizer(load, pre) ||
        tokenizer_load_post_processor(load, json_object_get(j, "post_processor")) ||
        tokenizer_load_decoder(load, json_object_get(j, "decoder")))
        return -1;
    tokenizer_cutters(load->t);
    return 0;
}

static struct tokenizer *load_from(const json_t *j, const char *path, struct err *e)
{
    struct tokenizer *tokenizer = mem_zero(1, sizeof *tokenizer);
    struct tokenizer_load load = {.t = tokenizer, .path = path, .added = json_object(), .e = e};
    int bad = load_all(&load, j);
    json_decref(load.added);
    if (!bad)
        return tokenizer;
    tokenizer_free(tokenizer);
    return NULL;
}

struct tokenizer *tokenizer_load_json(const json_t *j, const char *path, struct err *e)
{
    struct tokenizer *tokenizer = load_from(j, path, e);
    char *text = tokenizer ? json_dumps(j, JSON_COMPACT) : NULL;
    if (text)
        hash_bytes(text, strlen(text), tokenizer->hash);
    free(text);
    return tokenizer;
}

int tokenizer_read(struct tokenizer_file *file, const char *folder, struct err *e)
{
    char *path = mem_format("%s/tokenizer.json", folder);
    struct buf bytes = {0};
    file->json = NULL;
    if (!file_read(path, TOKENIZER_FILE_LIMIT, &bytes, e)) {
        hash_bytes(bytes.data, bytes.len, file->sha256);
        file->json = json_bytes(bytes.data, bytes.len, path, e);
    }
    buf_free(&bytes);
    free(path);
    return file->json ? 0 : -1;
}

struct tokenizer *tokenizer_take(struct tokenizer_file *file, const char *folder, struct err *e)
{
    char *path = mem_format("%s/tokenizer.json", folder);
    struct tokenizer *tokenizer = load_from(file->json, path, e);
    if (tokenizer)
        memcpy(tokenizer->hash, file->sha256, sizeof file->sha256);
    json_decref(file->json);
    file->json = NULL;
    free(path);
    return tokenizer;
}

struct tokenizer *tokenizer_load(const char *folder, struct err *e)
{
    struct tokenizer_file file;
    return tokenizer_read(&file, folder, e) ? NULL : tokenizer_take(&file, folder, e);
}
