/* fitness.c - see fitness.h. The look is apart from its record, because the processes of a pair
 * look at the same time but measure their cores in turn: that takes processor time, which the
 * others would see. */
#include "lib/run/fitness.h"

#include <math.h>

#include "lib/run/probe/ceiling.h"

int fitness_idle(struct session *s, const char *when, struct err *e)
{
    int wanted = s->loaded && !session_stopped(s) && !rec_lasts(&s->out);
    int64_t ms = s->job->args->idle_ms;
    json_t *o = !wanted          ? NULL
                : s->monitor.gpu ? gpu_monitor_idle(&s->monitor, when, ms)
                : s->timed       ? host_monitor_idle(&s->host, when, ms)
                                 : NULL;
    if (!o)
        return 0;
    rec_set_int(o, "launch", s->job->plan->launch);
    json_object_set_new(o, "model", json_string(s->network.config.name));
    json_object_set_new(o, "device_name", json_string(s->backend->name));
    return rec_write(&s->out, "idle", o, e);
}

/* Measures how many cores the threads are worth at present; only for runs on the CPU. */
static void write_cores(struct session *s, json_t *o)
{
    const size_t threads = pool_threads(s->backend->pool);
    const double cores = *s->backend->name ? (double)NAN : ceiling_cores(s->backend->pool);
    rec_set_int(o, "threads", (int64_t)threads);
    rec_set_number(o, "effective_cores", cores,
                   *s->backend->name ? "a GPU does the work" : "one thread");
    if (ceiling_shared(cores, threads))
        log_more(&s->log, "%zu threads do %.2f times the arithmetic of one: processors of this "
                 "machine share cores", threads, cores);
}

json_t *fitness_look(struct session *s)
{
    enum { LOOK_MS = 300 };
    return !s->timed || session_stopped(s) || s->job->args->common.no_meta
               ? NULL
               : host_monitor_look(&s->host, LOOK_MS);
}

int fitness_write(struct session *s, json_t *look, struct err *e)
{
    if (!look)
        return 0;
    rec_set_int(look, "launch", s->job->plan->launch);
    write_cores(s, look);
    if (!json_is_true(json_object_get(look, "fit")))
        log_warn(&s->log, "W108", "other processes are running on this machine: batches that they "
                 "disturb are marked `tainted`");
    return rec_write(&s->out, "fitness", look, e);
}
