/* tokenizer-around.c - reads the post-processor of tokenizer.json: ids that are put before and
 * behind a text.
 *
 * Only templates for one text are read, not those for pairs of texts. */
#include <string.h>

#include "lib/text/tokenizer-load.h"

/* Pushes the ids of one special token of a template. */
static int template_token(const struct tokenizer_load *load, const json_t *special, const json_t *j,
                          struct ids *to)
{
    const char *name = json_string_value(json_object_get(json_object_get(j, "SpecialToken"), "id"));
    const json_t *ids = name ? json_object_get(json_object_get(special, name), "ids") : NULL;
    if (json_array_size(ids) == 0)
        return tokenizer_refuse(load, "post_processor: a template part", j);
    for (size_t i = 0; i < json_array_size(ids); i++) {
        const json_t *id = json_array_get(ids, i);
        if (!tokenizer_is_id(id) || (size_t)json_integer_value(id) >= load->t->pieces.n ||
            !load->t->pieces.v[json_integer_value(id)].flags)
            return tokenizer_bad_id(load, name, id);
        ids_push(to, (int32_t)json_integer_value(id));
    }
    return 0;
}

/* Reads "single": ids before and after its only Sequence, which is A. The ids of an earlier
 * template stay nearer to the text. */
static int load_template(const struct tokenizer_load *load, const json_t *j)
{
    const json_t *single = json_object_get(j, "single");
    const json_t *special = json_object_get(j, "special_tokens");
    struct ids side[2] = {{0}, {0}};
    int seen = 0, bad = 0;
    for (size_t i = 0; !bad && i < json_array_size(single); i++) {
        const json_t *part = json_array_get(single, i);
        const json_t *text = json_object_get(part, "Sequence");
        const char *which = json_string_value(json_object_get(text, "id"));
        if (!text)
            bad = template_token(load, special, part, &side[seen]);
        else if (!which || strcmp(which, "A") != 0 || seen++)
            bad = tokenizer_refuse(load, "post_processor: a template part", part);
    }
    if (!bad && !seen)
        bad = tokenizer_refuse(load, "post_processor: a template without Sequence A", single);
    ids_append(&side[0], &load->t->front);
    ids_append(&load->t->back, &side[1]);
    ids_free(&load->t->front);
    ids_free(&side[1]);
    load->t->front = side[0];
    return bad;
}

/* Reads RobertaProcessing or BertProcessing: "cls": [text, id] goes before a text, "sep" behind. */
static int load_pair(const struct tokenizer_load *load, const json_t *j)
{
    static const char *const keys[] = {"cls", "sep"};
    for (int i = 0; i < 2; i++) {
        const json_t *id = json_array_get(json_object_get(j, keys[i]), 1);
        if (!tokenizer_is_id(id) || (size_t)json_integer_value(id) >= load->t->pieces.n)
            return tokenizer_refuse(load, "post_processor", j);
        ids_push(i ? &load->t->back : &load->t->front, (int32_t)json_integer_value(id));
    }
    return 0;
}

int tokenizer_load_post_processor(const struct tokenizer_load *load, const json_t *j)
{
    const char *type = tokenizer_type(j);
    if (!j || json_is_null(j) || !strcmp(type, "ByteLevel"))
        return 0;
    if (!strcmp(type, "RobertaProcessing") || !strcmp(type, "BertProcessing"))
        return load_pair(load, j);
    if (!strcmp(type, "TemplateProcessing"))
        return load_template(load, j);
    const json_t *list = json_object_get(j, "processors");
    if (strcmp(type, "Sequence") != 0 || !json_is_array(list))
        return tokenizer_refuse(load, "post_processor", j);
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *step = json_array_get(list, i);
        if (!strcmp(tokenizer_type(step), "TemplateProcessing")) {
            if (load_template(load, step))
                return -1;
        } else if (strcmp(tokenizer_type(step), "ByteLevel") != 0) {
            return tokenizer_refuse(load, "post_processor", step);
        }
    }
    return 0;
}
