/* optfile.c - see optfile.h. A value is turned into the text that the command line would hold, and
 * this text is parsed. So a file allows the same values as the command line and gives the same
 * errors. The file is not trusted: it must be small, strict JSON, one level deep. */
#include "lib/setting/optfile.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/buf.h"
#include "lib/record/json.h"

enum { OPTFILE_MOST = 1 << 20, NAME_MOST = 64 };

/* Appends one plain value. Returns -1 if no option takes such a value. */
static int put_scalar(struct buf *buffer, const json_t *value)
{
    const char *text = json_string_value(value);
    if (text && strlen(text) == json_string_length(value))
        buf_text(buffer, text);
    else if (json_is_boolean(value))
        buf_text(buffer, json_is_true(value) ? "on" : "off");
    else if (json_is_integer(value))
        buf_format(buffer, "%lld", (long long)json_integer_value(value));
    else if (json_is_real(value))
        buf_format(buffer, "%.15g", json_real_value(value));
    else
        return -1;
    return 0;
}

/* Writes a plain value, or a list of plain values with commas. -1: no option takes such a value, or
 * the list is empty. */
static int put_value(struct buf *text, const json_t *value)
{
    size_t n = json_array_size(value);
    buf_text(text, "");
    if (!json_is_array(value))
        return put_scalar(text, value);
    for (size_t i = 0; i < n; i++) {
        if (i)
            buf_char(text, ',');
        if (put_scalar(text, json_array_get(value, i)))
            return -1;
    }
    return n ? 0 : -1;
}

/* The name of the option that a member sets. */
static void name_of(const char *key, char name[NAME_MOST])
{
    size_t n = 0;
    for (; key[n] && n < NAME_MOST - 1; n++)
        name[n] = (char)(key[n] == '_' ? '-' : tolower((unsigned char)key[n]));
    name[n] = 0;
}

static int set_member(const struct tool *tool, const char *path, const char *key,
                      const json_t *value, struct settings_texts *texts, struct err *e)
{
    char name[NAME_MOST], shown[JSON_SHOWN];
    struct buf text = {0};
    struct err why = {0};
    name_of(key, name);
    if (json_is_null(value))
        return 0;
    if (!strcmp(name, "settings"))
        return err_set(e, EXIT_BAD_DATA, "%s: %s: not allowed here: a settings file cannot name "
                       "another one", path, key);
    if (put_value(&text, value)) {
        buf_free(&text);
        return err_set(e, EXIT_BAD_DATA, "%s: %.64s: expected a text, a number, true, false or a "
                       "list of them, got %s", path, key, json_shown(value, shown));
    }
    if (!opt_set(tool, name, settings_texts_keep(texts, text.data), &why))
        return 0;
    return err_set(e, EXIT_BAD_DATA, "%s: %s", path, why.text);
}

int optfile_read(struct optfile *file, const struct tool *tool, const char *path, struct err *e)
{
    json_t *value;
    const char *key;
    file->object = json_file(path, OPTFILE_MOST, e);
    if (file->object && !json_is_object(file->object))
        return err_set(e, EXIT_BAD_DATA, "%s: expected an object of options, {\"steps\": 8}", path);
    json_object_foreach(file->object, key, value)
        if (set_member(tool, path, key, value, &file->texts, e))
            return -1;
    return file->object ? 0 : -1;
}

void optfile_free(struct optfile *file)
{
    settings_texts_free(&file->texts);
    json_decref(file->object);
    file->object = NULL;
}
