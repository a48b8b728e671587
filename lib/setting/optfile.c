/* optfile.c - see optfile.h. A value becomes the text that the command line would hold and is
 * parsed like it, so a file allows the same values and gives the same errors. The file is not
 * trusted: it must be small, strict JSON, one level deep. */
#include "lib/setting/optfile.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/buf.h"
#include "lib/record/json.h"

enum { OPTFILE_MOST = 1 << 20, NAME_MOST = 64 };

/* Appends one plain value. Returns -1 if no option takes such a value. */
static int put_scalar(struct buf *b, const json_t *v)
{
    const char *text = json_string_value(v);
    if (text && strlen(text) == json_string_length(v))
        buf_text(b, text);
    else if (json_is_boolean(v))
        buf_text(b, json_is_true(v) ? "on" : "off");
    else if (json_is_integer(v))
        buf_format(b, "%lld", (long long)json_integer_value(v));
    else if (json_is_real(v))
        buf_format(b, "%.15g", json_real_value(v));
    else
        return -1;
    return 0;
}

/* The same for a list of such values, with commas. */
static int put_value(struct buf *b, const json_t *v)
{
    size_t n = json_array_size(v);
    buf_text(b, "");
    if (!json_is_array(v))
        return put_scalar(b, v);
    for (size_t i = 0; i < n; i++) {
        if (i)
            buf_char(b, ',');
        if (put_scalar(b, json_array_get(v, i)))
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

static int set_member(const struct tool *t, const char *path, const char *key, const json_t *v,
                      struct settings_texts *texts, struct err *e)
{
    char name[NAME_MOST], shown[JSON_SHOWN];
    struct buf text = {0};
    struct err why = {0};
    name_of(key, name);
    if (json_is_null(v))
        return 0;
    if (!strcmp(name, "settings"))
        return err_set(e, EXIT_BAD_DATA, "%s: %s: not allowed here: a settings file cannot name "
                       "another one", path, key);
    if (put_value(&text, v)) {
        buf_free(&text);
        return err_set(e, EXIT_BAD_DATA, "%s: %.64s: expected a text, a number, true, false or a "
                       "list of them, got %s", path, key, json_shown(v, shown));
    }
    if (!opt_set(t, name, settings_texts_keep(texts, text.data), &why))
        return 0;
    return err_set(e, EXIT_BAD_DATA, "%s: %s", path, why.text);
}

int optfile_read(struct optfile *f, const struct tool *t, const char *path, struct err *e)
{
    json_t *v;
    const char *key;
    f->object = json_file(path, OPTFILE_MOST, e);
    if (f->object && !json_is_object(f->object))
        return err_set(e, EXIT_BAD_DATA, "%s: expected an object of options, {\"steps\": 8}", path);
    json_object_foreach(f->object, key, v)
        if (set_member(t, path, key, v, &f->texts, e))
            return -1;
    return f->object ? 0 : -1;
}

void optfile_free(struct optfile *f)
{
    settings_texts_free(&f->texts);
    json_decref(f->object);
    f->object = NULL;
}
