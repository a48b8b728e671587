/* commits.c - see commits.h. Records are written between two passes, where no caller can take an
 * error. So the first error is kept for commits_check after the batch; nothing is written after
 * it. */
#include "lib/run/watch/commits.h"

#include <math.h>

int commits_open(struct commits *c, const struct common *of_run, const char *path,
                 const char *tool, int argc, char **argv, json_t *extra, struct err *e)
{
    struct common own = *of_run;
    own.output = path;
    if (rec_open(&c->out, &own, tool, argc, argv, json_incref(extra), e))
        return -1;
    c->writing = 1;
    return 0;
}

static json_t *make_record(const char *id, json_t *about, const struct observed *o)
{
    json_t *r = json_object(), *ids = json_array(), *sure = json_array();
    for (size_t i = 0; i < o->commits; i++) {
        double p = o->confidence[i];
        json_array_append_new(ids, json_integer(o->ids[o->slot[i]]));
        json_array_append_new(sure, isnan(p) ? json_null() : json_real(fmin(p, 1)));
    }
    json_object_set_new(r, "id", json_string(id));
    json_object_update(r, about);
    rec_set_int(r, "pass", o->pass);
    rec_set_int(r, "pass_ns", o->ns);
    json_object_set_new(r, "slots", rec_int_list(o->slot, o->commits));
    json_object_set_new(r, "token_ids", ids);
    json_object_set_new(r, "confidences", sure);
    json_object_set_new(r, "masked_slots", rec_int_list(o->again, o->reopened));
    return r;
}

void commits_put(struct commits *c, const char *id, json_t *about, const struct observed *o)
{
    if (c->writing && !c->err.code && (o->commits || o->reopened))
        rec_write(&c->out, "commit", make_record(id, about, o), &c->err);
}

int commits_check(const struct commits *c, struct err *e)
{
    if (!c->err.code)
        return 0;
    *e = c->err;
    return -1;
}

int commits_close(struct commits *c, const char *status, struct err *e)
{
    int writing = c->writing;
    c->writing = 0;
    if (writing && status)
        return rec_close(&c->out, status, e);
    if (writing)
        rec_abandon(&c->out);
    return 0;
}
