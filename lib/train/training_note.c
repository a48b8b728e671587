/* training_note.c - the settings that a saved state depends on; see training_note.h. An option is
 * part of the note unless it is listed as harmless. So an option that nobody listed can only cause
 * the refusal of a state that would fit. Such an option cannot let a state pass that does not
 * fit. */
#include "lib/train/training_note.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/mem.h"

static int is_listed(const char *name, const char *const *list)
{
    for (; *list; list++)
        if (!strcmp(name, *list))
            return 1;
    return 0;
}

static int is_harmless(const struct opt *options, const char *const *own)
{
    static const char *const common[] = {"out", "threads", "report", "save", "output", "run",
                                         "no-meta", "progress", "quiet", "verbose", NULL};
    return options->type == OPT_HEADING || is_listed(options->name, common) ||
           is_listed(options->name, own);
}

static json_t *value_of(const struct opt *options)
{
    if (options->type == OPT_INT || options->type == OPT_BYTES)
        return json_integer((json_int_t)*(const int64_t *)options->to);
    if (options->type == OPT_REAL)
        return json_real(*(const double *)options->to);
    if (options->type == OPT_FLAG)
        return json_boolean(*(const int *)options->to);
    const char *text = *(const char *const *)options->to;
    return text ? json_string(text) : json_null();
}

json_t *training_note(const struct opt *options, const char *const *harmless)
{
    json_t *note = json_object();
    for (const struct opt *o = options; o->name; o++) {
        char *name = mem_format("--%s", o->name);
        if (!is_harmless(o, harmless))
            json_object_set_new(note, name, value_of(o));
        free(name);
    }
    return note;
}

int training_note_check(const json_t *mine, const json_t *theirs, const char *path, struct err *e)
{
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)(uintptr_t)mine, key, value) {
        const json_t *other = json_object_get(theirs, key);
        if (other && json_equal(other, value))
            continue;
        char *was = other ? json_dumps(other, JSON_ENCODE_ANY | JSON_REAL_PRECISION(6)) : NULL;
        char *now = json_dumps(value, JSON_ENCODE_ANY | JSON_REAL_PRECISION(6));
        err_set(e, EXIT_BAD_DATA, "%s: belongs to a training with other settings: %s expected %s, "
                "got %s: use the same settings, or remove the file to start again", path, key,
                was ? was : "nothing", now);
        free(was);
        free(now);
        return -1;
    }
    return 0;
}
