/* watcher.c - see watcher.h. Between two passes no caller can take an error, so a failed write is
 * reported at the end of the batch. A pass is shown after it is accounted for: out[] is then up to
 * date. */
#include "lib/run/watch/watcher.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/file.h"
#include "lib/base/mem.h"
#include "lib/setting/system.h"

int watcher_is_close(const struct job *job)
{
    const struct job_args *a = job->args;
    return a->trace || a->stream;
}

static int check_trace(const struct job *job, struct err *e)
{
    const char *trace = job->args->trace, *output = job->args->common.output;
    if (!strcmp(trace, output) || file_same(trace, output))
        return err_set(e, EXIT_BAD_USAGE, "--trace %s: expected a file other than -o, which holds "
                       "the generations", trace);
    for (size_t i = 0; i < job->n_files; i++)
        if (file_same(job->files[i], trace))
            return err_set(e, EXIT_BAD_USAGE, "%s is both input and --trace", trace);
    return 0;
}

static int check_alone(const struct settings *point, struct err *e)
{
    size_t batch = settings_count(point, "batch");
    if (batch > 1)
        return err_set(e, EXIT_BAD_USAGE, "--stream: expected --batch 1, got %zu: only one answer "
                       "at a time can be watched", batch);
    if (settings_find(point->table, "admit") < point->table->n &&
        settings_is(point, "admit", "continuous"))
        return err_set(e, EXIT_BAD_USAGE, "--stream: expected --admit static, got continuous: only "
                       "one answer at a time can be watched");
    return 0;
}

int watcher_check(const struct job *job, struct err *e)
{
    const struct job_args *a = job->args;
    const char *flag = a->trace ? "--trace" : "--stream";
    if (!watcher_is_close(job))
        return 0;
    if (a->schedule || a->warmup || a->warmup_most || a->repeat > 1)
        return err_set(e, EXIT_BAD_USAGE, "%s: expected no --schedule, --warmup or --repeat: "
                       "watching slows every pass, so a watched run cannot be timed", flag);
    for (size_t i = 0; i < job->plan->points && a->stream; i++)
        if (check_alone(&job->plan->point[i], e))
            return -1;
    return a->trace ? check_trace(job, e) : 0;
}

/* ---- events of decoders ---- */

static void show_pass(void *ctx, const struct observed *o)
{
    struct watcher *w = ctx;
    if (w->job->args->stream)
        text_stream_grow(&w->stream, o->ids, o->readable);
    commits_put(&w->commits, w->prompt[o->input]->id, w->about, o);
}

static void show_progress(void *ctx)
{
    struct watcher *w = ctx;
    int64_t passes = 0, tokens = 0;
    size_t most = w->n * system_extent(w->at->point);
    char extra[96];
    if (!w->progress->mode)
        return;
    for (size_t i = 0; i < w->n; i++) {
        int64_t steps = (int64_t)w->out[i].n_steps;
        passes = steps > passes ? steps : passes;
        tokens += w->out[i].committed_tokens;
    }
    double part = most ? (double)tokens / (double)most : 0;
    snprintf(extra, sizeof extra, "%s, pass %lld, %lld/%zu tokens", w->at->phase,
             (long long)passes, (long long)tokens, most);
    progress_within(w->progress, w->at->seq, (part < 1 ? part : 1) * (double)w->n, extra);
}

/* ---- batches ---- */

const struct observer *watcher_begin(struct watcher *w, const struct network *n,
                                     const struct generation_place *at,
                                     const struct prompt *const *prompt,
                                     const struct generation *out, size_t count)
{
    const struct job_args *a = w->job->args;
    w->at = at;
    w->prompt = prompt;
    w->out = out;
    w->n = count;
    if (!watcher_is_close(w->job))
        return &w->observer;
    json_t *about = generation_record_about(w->job, n, at);
    const char *config = rec_text(about, "config");
    w->about = json_object();
    json_object_set(w->about, "config", json_object_get(about, "config"));
    json_object_set(w->about, "point", json_object_get(about, "point"));
    json_object_set(w->about, "block_length", json_object_get(about, "block_length"));
    rec_set_int(w->about, "slot_count", (int64_t)system_extent(at->point));
    rec_set_int(w->about, "batch_id", at->batch_id);
    char *heading = mem_format("%s: %s", prompt[0]->id, config);
    if (a->stream)
        text_stream_begin(&w->stream, w->several ? heading : NULL);
    free(heading);
    json_decref(about);
    return &w->observer;
}

int watcher_end(struct watcher *w, struct err *e)
{
    if (!watcher_is_close(w->job))
        return 0;
    if (w->job->args->stream)
        text_stream_end(&w->stream);
    json_decref(w->about);
    w->about = NULL;
    return commits_check(&w->commits, e);
}

/* ---- a session ---- */

int watcher_open(struct watcher *w, const struct job *job, const struct config *c,
                 const struct tokenizer *tokenizer, size_t prompts, struct progress *progress,
                 json_t *extra, struct err *e)
{
    const struct job_args *a = job->args;
    *w = (struct watcher){.observer = {watcher_is_close(job), show_pass, show_progress, w},
                          .job = job, .progress = progress,
                          .several = prompts > 1 || job->plan->points > 1};
    if (a->stream && !tokenizer)
        return err_set(e, EXIT_BAD_DATA, "%s: --stream: expected a model with a tokenizer, got "
                       "none: there is no text", c->name);
    w->stream.tokenizer = tokenizer;
    w->stream.n_stop = generation_stops(c, w->stream.stop);
    return !a->trace ? 0
                     : commits_open(&w->commits, &a->common, a->trace, job->decoder->tool,
                                    job->argc, job->argv, extra, e);
}

int watcher_close(struct watcher *w, const char *status, struct err *e)
{
    text_stream_free(&w->stream);
    json_decref(w->about);
    w->about = NULL;
    return commits_close(&w->commits, status, e);
}
