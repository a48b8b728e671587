/* tokenizer-save.c - writes tokenizer.json, also as a changed copy of another model's file. A copy
 * keeps all pieces and ids, because the weights depend on them. It may get new special tokens with
 * larger ids, and another post-processor, which puts ids before a text. */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/file.h"
#include "lib/base/mem.h"
#include "lib/base/out.h"
#include "lib/record/json.h"
#include "lib/text/tokenizer-parts.h"
#include "lib/text/tokenizer.h"

json_t *tokenizer_byte_level(void)
{
    return json_pack("{s:s,s:b,s:b,s:b}", "type", "ByteLevel", "add_prefix_space", 0,
                     "trim_offsets", 1, "use_regex", 0);
}

json_t *tokenizer_template(const char *bos, int64_t id)
{
    static const char part[] = "{s:{s:s,s:i}}";
    if (!bos)
        return tokenizer_byte_level();
    json_t *single = json_pack("[o,o]",
                               json_pack(part, "SpecialToken", "id", bos, "type_id", 0),
                               json_pack(part, "Sequence", "id", "A", "type_id", 0));
    json_t *pair = json_deep_copy(single);
    json_array_append_new(pair, json_pack(part, "SpecialToken", "id", bos, "type_id", 1));
    json_array_append_new(pair, json_pack(part, "Sequence", "id", "B", "type_id", 1));
    return json_pack("{s:s,s:o,s:o,s:{s:{s:s,s:[I],s:[s]}}}", "type", "TemplateProcessing",
                     "single", single, "pair", pair, "special_tokens", bos, "id", bos, "ids",
                     (json_int_t)id, "tokens", bos);
}

int tokenizer_save(const char *folder, json_t *j, struct err *e)
{
    struct out out = {0};
    char *path = mem_format("%s/tokenizer.json", folder);
    int bad = !j ? err_set(e, EXIT_BAD_DATA, "%s: special tokens: expected UTF-8", path)
                 : file_make_folder(folder, e) || out_open(&out, path, e);
    if (!bad) {
        json_dumpf(j, out.f, JSON_INDENT(1));
        putc('\n', out.f);
        bad = out_commit(&out, e);
    }
    out_abandon(&out);
    free(path);
    return bad ? -1 : 0;
}

static json_t *special_token(const char *text, size_t id)
{
    return json_pack("{s:I, s:s, s:b, s:b, s:b, s:b, s:b}", "id", (json_int_t)id, "content", text,
                     "single_word", 0, "lstrip", 0, "rstrip", 0, "normalized", 0, "special", 1);
}

int tokenizer_adopt(const char *folder, const json_t *from, const struct tokenizer_changes *how,
                    struct err *e)
{
    struct tokenizer *tokenizer = tokenizer_load_json(from, folder, e); /* checks the file */
    if (!tokenizer)
        return -1;
    json_t *j = json_deep_copy(from), *added = json_object_get(j, "added_tokens");
    const size_t first = tokenizer_size(tokenizer);
    const int64_t bos = how->bos ? tokenizer_id(tokenizer, how->bos) : 0;
    tokenizer_free(tokenizer);
    if (!json_is_array(added)) {
        added = json_array();
        json_object_set_new(j, "added_tokens", added);
    }
    for (size_t i = 0; i < how->n_add; i++)
        json_array_append_new(added, special_token(how->add[i], first + i));
    if (how->replaces)
        json_object_set_new(j, "post_processor", tokenizer_template(how->bos, bos));
    int bad = tokenizer_save(folder, j, e);
    json_decref(j);
    return bad;
}
