/* fitness.c - see fitness.h. fitness_look() and fitness_write() are two functions, because the
 * processes of a pair look at the same time, but measure their cores in turn. Measuring takes
 * processor time, which the other processes would see as a disturbance. */
#include "lib/run/fitness.h"

#include <math.h>

#include "lib/run/probe/ceiling.h"

int fitness_idle(struct session *session, const char *when, struct err *e)
{
    int wanted = session->loaded && !session_stopped(session) && !rec_lasts(&session->out);
    int64_t ms = session->job->args->idle_ms;
    json_t *object = !wanted                ? NULL
                     : session->monitor.gpu ? gpu_monitor_idle(&session->monitor, when, ms)
                     : session->timed       ? host_monitor_idle(&session->host, when, ms)
                                            : NULL;
    if (!object)
        return 0;
    rec_set_int(object, "launch", session->job->plan->launch);
    json_object_set_new(object, "model", json_string(session->network.config.name));
    json_object_set_new(object, "device_name", json_string(session->backend->name));
    return rec_write(&session->out, "idle", object, e);
}

/* Measures how many cores the threads are worth at present; only for runs on the CPU. */
static void write_cores(struct session *session, json_t *object)
{
    const size_t threads = pool_threads(session->backend->pool);
    const double cores = *session->backend->name ? (double)NAN
                                                 : ceiling_cores(session->backend->pool);
    rec_set_int(object, "threads", (int64_t)threads);
    rec_set_number(object, "effective_cores", cores,
                   *session->backend->name ? "a GPU does the work" : "one thread");
    if (ceiling_shared(cores, threads))
        log_more(&session->log,
                 "%zu threads do %.2f times the arithmetic of one: processors of this "
                 "machine share cores", threads, cores);
}

json_t *fitness_look(struct session *session)
{
    enum { LOOK_MS = 300 };
    return !session->timed || session_stopped(session) || session->job->args->common.no_meta
               ? NULL
               : host_monitor_look(&session->host, LOOK_MS);
}

int fitness_write(struct session *session, json_t *look, struct err *e)
{
    if (!look)
        return 0;
    rec_set_int(look, "launch", session->job->plan->launch);
    write_cores(session, look);
    if (!json_is_true(json_object_get(look, "fit")))
        log_warn(&session->log, "W108",
                 "other processes are running on this machine: batches that they "
                 "disturb are marked `tainted`");
    return rec_write(&session->out, "fitness", look, e);
}
