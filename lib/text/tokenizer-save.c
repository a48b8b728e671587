/* tokenizer-save.c - writes tokenizer.json, also as a copy of another model's file. Pieces and ids
 * stay, because the weights depend on them. Only the post-processor, which puts ids in front of a
 * text, becomes that of the new model. */
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
    struct out o = {0};
    char *path = mem_format("%s/tokenizer.json", folder);
    int bad = !j ? err_set(e, EXIT_BAD_DATA, "%s: special tokens: expected UTF-8", path)
                 : file_make_folder(folder, e) || out_open(&o, path, e);
    if (!bad) {
        json_dumpf(j, o.f, JSON_INDENT(1));
        putc('\n', o.f);
        bad = out_commit(&o, e);
    }
    out_abandon(&o);
    free(path);
    return bad ? -1 : 0;
}

int tokenizer_adopt(const char *folder, const char *from, const char *bos, struct err *e)
{
    struct tokenizer *t = tokenizer_load(from, e); /* checks the file */
    if (!t)
        return -1;
    const int32_t id = bos ? tokenizer_id(t, bos) : 0;
    tokenizer_free(t);
    if (id < 0)
        return err_set(e, EXIT_BAD_DATA, "%s/tokenizer.json: expected the token %s, got none", from,
                       bos);
    char *path = mem_format("%s/tokenizer.json", from);
    json_t *j = json_file(path, TOKENIZER_FILE_LIMIT, e);
    int bad = !j || json_object_set_new(j, "post_processor", tokenizer_template(bos, id)) ||
              tokenizer_save(folder, j, e);
    json_decref(j);
    free(path);
    return bad ? -1 : 0;
}
