/* about.c - see about.h. */
#include "lib/analysis/about.h"

#include <string.h>

#include "lib/record/rec.h"

static const char *const names[] = {
    "model", "arch", "device", "device_name", "isa", "library", "dtype", "kv_dtype", "quant",
    "flops_unit", "threads", "batch", "temperature", "weights_random", "steps", "gen_length",
    "block_length", "cfg_scale", "remasking", "unmask", "cache", "max_new", "top_k", "top_p",
    "ignore_eos"};
enum { NAMES = sizeof names / sizeof *names };

json_t *about_of(const json_t *r)
{
    json_t *s = json_object();
    json_object_set(s, "config", json_object_get(r, "config"));
    for (size_t i = 0; i < NAMES; i++)
        if (json_object_get(r, names[i]))
            json_object_set(s, names[i], json_object_get(r, names[i]));
    return s;
}

int about_check(const json_t *settings, const json_t *r, struct err *e)
{
    for (size_t i = 0; i < NAMES; i++) {
        const json_t *had = json_object_get(settings, names[i]);
        const json_t *got = json_object_get(r, names[i]);
        int none = (!had || json_is_null(had)) && (!got || json_is_null(got));
        if (!none && !json_equal(had, got))
            return err_set(e, EXIT_BAD_DATA, "%s: config '%s' has two values of it", names[i],
                           rec_text(settings, "config"));
    }
    return 0;
}

int about_order(const json_t *x, const json_t *y)
{
    static const char *const key[] = {"batch", "gen_length", "max_new", "steps"};
    const char *mx = rec_text(x, "model"), *my = rec_text(y, "model");
    int order = strcmp(mx ? mx : "", my ? my : "");
    for (size_t i = 0; !order && i < sizeof key / sizeof *key; i++) {
        int64_t p = rec_int(x, key[i], -1), q = rec_int(y, key[i], -1);
        order = (p > q) - (p < q);
    }
    return order ? order : strcmp(rec_text(x, "config"), rec_text(y, "config"));
}
