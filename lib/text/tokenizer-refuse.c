/* tokenizer-refuse.c - reads values of tokenizer.json, and writes messages about refused values.
 *
 * An unknown setting that could change ids is refused, and the message prints the setting. */
#include <stdlib.h>
#include <string.h>

#include "lib/text/tokenizer-load.h"

int tokenizer_refuse(const struct tokenizer_load *load, const char *what, const json_t *j)
{
    char *text = j ? json_dumps(j, JSON_COMPACT | JSON_ENCODE_ANY | JSON_ENSURE_ASCII) : NULL;
    err_set(load->e, EXIT_BAD_DATA, "%s: %s: not supported: %.300s", load->path, what,
            text ? text : "nothing there");
    free(text);
    return -1;
}

int tokenizer_bad_id(const struct tokenizer_load *load, const char *piece, const json_t *id)
{
    char *got = json_dumps(id, JSON_COMPACT | JSON_ENCODE_ANY);
    err_set(load->e, EXIT_BAD_DATA, "%s: id of \"%.60s\": expected integer from 0 to %d, got %.60s",
            load->path, piece, TOKEN_ID_LIMIT - 1, got ? got : "nothing");
    free(got);
    return -1;
}

int tokenizer_is_id(const json_t *j)
{
    return json_is_integer(j) && json_integer_value(j) >= 0 &&
           json_integer_value(j) < TOKEN_ID_LIMIT;
}

const char *tokenizer_type(const json_t *j)
{
    const char *type = json_string_value(json_object_get(j, "type"));
    return type ? type : "";
}

const char *tokenizer_text(const json_t *j)
{
    const char *text = json_string_value(j);
    return text && strlen(text) == json_string_length(j) ? text : NULL;
}

int tokenizer_has(const json_t *j, const char *key)
{
    const json_t *value = json_object_get(j, key);
    return value && !json_is_null(value) && !json_is_false(value) &&
           !(json_is_number(value) && json_number_value(value) == 0) &&
           !(json_is_string(value) && json_string_length(value) == 0);
}

const char *tokenizer_string_of(const json_t *pattern)
{
    const char *text = tokenizer_text(json_object_get(pattern, "String"));
    return text && *text ? text : NULL;
}
