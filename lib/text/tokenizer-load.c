/* tokenizer-load.c - tokenizer.json into a struct tokenizer.
 *
 * truncation and padding are not read: Hugging Face sets them per call. */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/file.h"
#include "lib/base/hash.h"
#include "lib/base/mem.h"
#include "lib/record/json.h"
#include "lib/text/tokenizer-load.h"
#include "lib/text/tokenizer.h"

static int load_all(struct tokenizer_load *l, const json_t *j)
{
    if (!json_is_object(json_object_get(j, "model")))
        return err_set(l->e, EXIT_BAD_DATA, "%s: expected an object with \"model\"", l->path);
    const json_t *model = json_object_get(j, "model"), *pre = json_object_get(j, "pre_tokenizer");
    l->by_character = !tokenizer_has_bytes(pre) && (tokenizer_has(model, "byte_fallback") ||
                                                    !strcmp(tokenizer_type(pre), "Metaspace"));
    if (tokenizer_load_model(l, model, json_object_get(j, "added_tokens")) ||
        tokenizer_load_normalizer(l, json_object_get(j, "normalizer")) ||
        tokenizer_load_pre_tokenizer(l, pre) ||
        tokenizer_load_post_processor(l, json_object_get(j, "post_processor")) ||
        tokenizer_load_decoder(l, json_object_get(j, "decoder")))
        return -1;
    tokenizer_cutters(l->t);
    return 0;
}

static struct tokenizer *load_from(const json_t *j, const char *path, struct err *e)
{
    struct tokenizer *t = mem_zero(1, sizeof *t);
    struct tokenizer_load l = {.t = t, .path = path, .added = json_object(), .e = e};
    int bad = load_all(&l, j);
    json_decref(l.added);
    if (!bad)
        return t;
    tokenizer_free(t);
    return NULL;
}

struct tokenizer *tokenizer_load_json(const json_t *j, const char *path, struct err *e)
{
    struct tokenizer *t = load_from(j, path, e);
    char *text = t ? json_dumps(j, JSON_COMPACT) : NULL;
    if (text)
        hash_bytes(text, strlen(text), t->hash);
    free(text);
    return t;
}

struct tokenizer *tokenizer_load(const char *folder, struct err *e)
{
    char *path = mem_format("%s/tokenizer.json", folder);
    struct buf file = {0};
    struct tokenizer *t = NULL;
    json_t *j = NULL;
    char hash[65];
    if (!file_read(path, TOKENIZER_FILE_LIMIT, &file, e)) {
        hash_bytes(file.data, file.len, hash);
        j = json_bytes(file.data, file.len, path, e);
    }
    buf_free(&file);
    if (j && (t = load_from(j, path, e)))
        memcpy(t->hash, hash, sizeof hash);
    json_decref(j);
    free(path);
    return t;
}
