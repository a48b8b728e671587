/* commits.c - see commits.h. Records are written between two passes, where no caller can take an
 * error. So the first error is kept for commits_check() after the batch, and nothing is written
 * after that error. */
#include "lib/run/watch/commits.h"

#include <math.h>

int commits_open(struct commits *commits, const struct common *of_run, const char *path,
                 const char *tool, int argc, char **argv, json_t *extra, struct err *e)
{
    struct common own = *of_run;
    own.output = path;
    if (rec_open(&commits->out, &own, tool, argc, argv, json_incref(extra), e))
        return -1;
    commits->writing = 1;
    return 0;
}

static json_t *make_record(const char *id, json_t *about, const struct observed *observed)
{
    json_t *record = json_object(), *ids = json_array(), *sure = json_array();
    for (size_t i = 0; i < observed->commits; i++) {
        double chance = observed->confidence[i];
        json_array_append_new(ids, json_integer(observed->ids[observed->slot[i]]));
        json_array_append_new(sure, isnan(chance) ? json_null() : json_real(fmin(chance, 1)));
    }
    json_object_set_new(record, "id", json_string(id));
    json_object_update(record, about);
    rec_set_int(record, "pass", observed->pass);
    rec_set_int(record, "pass_ns", observed->ns);
    json_object_set_new(record, "slots", rec_int_list(observed->slot, observed->commits));
    json_object_set_new(record, "token_ids", ids);
    json_object_set_new(record, "confidences", sure);
    json_object_set_new(record, "masked_slots", rec_int_list(observed->again, observed->reopened));
    return record;
}

void commits_put(struct commits *commits, const char *id, json_t *about,
                 const struct observed *observed)
{
    if (commits->writing && !commits->err.code && (observed->commits || observed->reopened))
        rec_write(&commits->out, "commit", make_record(id, about, observed), &commits->err);
}

int commits_check(const struct commits *commits, struct err *e)
{
    if (!commits->err.code)
        return 0;
    *e = commits->err;
    return -1;
}

int commits_close(struct commits *commits, const char *status, struct err *e)
{
    int writing = commits->writing;
    commits->writing = 0;
    if (writing && status)
        return rec_close(&commits->out, status, e);
    if (writing)
        rec_abandon(&commits->out);
    return 0;
}
