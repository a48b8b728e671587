/* served.c - see served.h. All OpenAI-type servers have /models. If its answer has no list, the
 * model must be named. /version and /props exist only in some servers. */
#include "lib/remote/served.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/mem.h"
#include "lib/record/json.h"
#include "lib/record/rec.h"
#include "lib/text/utf8.h"

/* *object = the JSON that the server answers, the caller's; NULL: the answer is not JSON. Returns
 * -1 if there is no answer, or for status 503 (the server still loads its model). */
static int ask(struct http *http, const char *path, double seconds, json_t **object, struct err *e)
{
    struct buf body = {0};
    long status = 0;
    *object = NULL;
    int bad = http_get(http, path, seconds, &body, &status, e);
    if (!bad && status == 503)
        bad = err_set(e, EXIT_NO_DEVICE, "the server is not ready (HTTP status 503): wait for it");
    if (bad) {
        buf_free(&body);
        return -1;
    }
    if (status == 200 && body.len)
        *object = json_strict(body.data, body.len, NULL);
    buf_free(&body);
    return 0;
}

/* Returns the only model of the list; NULL with *e filled if there is not exactly one. The caller
 * frees the name. */
static char *only_model(const json_t *models, struct err *e)
{
    const json_t *list = json_object_get(models, "data"), *entry;
    struct buf names = {0};
    size_t i;
    json_array_foreach(list, i, entry) {
        const char *id = rec_text(entry, "id");
        buf_format(&names, "%s%s", names.len ? ", " : "", id ? id : "?");
    }
    const char *only = rec_text(json_array_get(list, 0), "id");
    char *model = json_array_size(list) == 1 && only ? mem_text(only) : NULL;
    if (!model)
        err_set(e, EXIT_BAD_USAGE, "--served: expected a model of the server, which lists %s",
                names.len ? names.data : "none");
    buf_free(&names);
    return model;
}

enum { SAID = 60 /* bytes of a name or version of a server, at most */ };

/* Returns how many bytes of a name are kept: whole characters, at most SAID bytes. */
static int kept(const char *text)
{
    return (int)utf8_whole(text, strnlen(text, SAID));
}

/* Returns "NAME VERSION", or "NAME" if the server tells no version. The caller frees the text. */
static char *stack_of(struct http *http, const json_t *models, double seconds)
{
    static const struct { const char *path, *key; } says[] = {{"/../version", "version"},
                                                              {"/../props", "build_info"}};
    const char *owner = rec_text(json_array_get(json_object_get(models, "data"), 0), "owned_by");
    char *version = NULL;
    for (size_t i = 0; i < sizeof says / sizeof *says && !version; i++) {
        json_t *object;
        struct err ignored = {0};
        if (ask(http, says[i].path, seconds, &object, &ignored))
            continue;
        version = rec_text(object, says[i].key) ? mem_text(rec_text(object, says[i].key)) : NULL;
        json_decref(object);
    }
    owner = owner ? owner : "unknown";
    char *stack = mem_format("%.*s%s%.*s", kept(owner), owner, version ? " " : "",
                             version ? kept(version) : 0, version ? version : "");
    free(version);
    return stack;
}

int served_ask(struct served *served, struct http *http, const char *model, const char *stack,
               double seconds, struct err *e)
{
    json_t *models;
    *served = (struct served){0};
    if (ask(http, "/models", seconds, &models, e))
        return -1;
    served->model = model ? mem_text(model) : only_model(models, e);
    if (served->model)
        served->stack = stack ? mem_text(stack) : stack_of(http, models, seconds);
    json_decref(models);
    return served->model ? 0 : -1;
}

void served_free(struct served *served)
{
    free(served->model);
    free(served->stack);
    *served = (struct served){0};
}
