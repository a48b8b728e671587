/* watcher.c - see watcher.h. Between two passes no caller can take an error, so a failed write is
 * reported at the end of the batch. A pass is shown after the decoder has counted it, so out[] is
 * up to date then. */
#include "lib/run/watch/watcher.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/file.h"
#include "lib/base/mem.h"
#include "lib/setting/system.h"

int watcher_looks_closely(const struct job *job)
{
    const struct job_args *args = job->args;
    return args->trace || args->stream;
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
    const struct job_args *args = job->args;
    const char *flag = args->trace ? "--trace" : "--stream";
    if (!watcher_looks_closely(job))
        return 0;
    if (args->schedule || args->warmup || args->warmup_most || args->repeat > 1)
        return err_set(e, EXIT_BAD_USAGE, "%s: expected no --schedule, --warmup or --repeat: "
                       "watching slows every pass, so a watched run cannot be timed", flag);
    for (size_t i = 0; i < job->plan->points && args->stream; i++)
        if (check_alone(&job->plan->point[i], e))
            return -1;
    return args->trace ? check_trace(job, e) : 0;
}

/* ---- events of decoders ---- */

static void show_pass(void *ctx, const struct observed *observed)
{
    struct watcher *watcher = ctx;
    if (watcher->job->args->stream)
        text_stream_grow(&watcher->stream, observed->ids, observed->readable);
    commits_put(&watcher->commits, watcher->prompt[observed->input]->id, watcher->about, observed);
}

static void show_progress(void *ctx)
{
    struct watcher *watcher = ctx;
    int64_t passes = 0, tokens = 0;
    size_t most = watcher->n * system_extent(watcher->at->point);
    char extra[96];
    if (!watcher->progress->mode)
        return;
    for (size_t i = 0; i < watcher->n; i++) {
        int64_t steps = (int64_t)watcher->out[i].n_steps;
        passes = steps > passes ? steps : passes;
        tokens += watcher->out[i].committed_tokens;
    }
    double part = most ? (double)tokens / (double)most : 0;
    snprintf(extra, sizeof extra, "%s, pass %lld, %lld/%zu tokens", watcher->at->phase,
             (long long)passes, (long long)tokens, most);
    progress_within(watcher->progress, watcher->at->seq, (part < 1 ? part : 1) * (double)watcher->n,
                    extra);
}

/* ---- batches ---- */

const struct observer *watcher_begin(struct watcher *watcher, const struct network *n,
                                     const struct generation_place *at,
                                     const struct prompt *const *prompt,
                                     const struct generation *out, size_t count)
{
    const struct job_args *args = watcher->job->args;
    watcher->at = at;
    watcher->prompt = prompt;
    watcher->out = out;
    watcher->n = count;
    if (!watcher_looks_closely(watcher->job))
        return &watcher->observer;
    json_t *about = generation_record_about(watcher->job, n, at);
    const char *config = rec_text(about, "config");
    watcher->about = json_object();
    json_object_set(watcher->about, "config", json_object_get(about, "config"));
    json_object_set(watcher->about, "point", json_object_get(about, "point"));
    json_object_set(watcher->about, "block_length", json_object_get(about, "block_length"));
    rec_set_int(watcher->about, "slot_count", (int64_t)system_extent(at->point));
    rec_set_int(watcher->about, "batch_id", at->batch_id);
    char *heading = mem_format("%s: %s", prompt[0]->id, config);
    if (args->stream)
        text_stream_begin(&watcher->stream, watcher->several ? heading : NULL);
    free(heading);
    json_decref(about);
    return &watcher->observer;
}

int watcher_end(struct watcher *watcher, struct err *e)
{
    if (!watcher_looks_closely(watcher->job))
        return 0;
    if (watcher->job->args->stream)
        text_stream_end(&watcher->stream);
    json_decref(watcher->about);
    watcher->about = NULL;
    return commits_check(&watcher->commits, e);
}

/* ---- opening and closing ---- */

int watcher_open(struct watcher *watcher, const struct job *job, const struct config *config,
                 const struct tokenizer *tokenizer, size_t prompts, struct progress *progress,
                 json_t *extra, struct err *e)
{
    const struct job_args *args = job->args;
    *watcher = (struct watcher){
        .observer = {watcher_looks_closely(job), show_pass, show_progress, watcher},
        .job = job,
        .progress = progress,
        .several = prompts > 1 || job->plan->points > 1};
    if (args->stream && !tokenizer)
        return err_set(e, EXIT_BAD_DATA, "%s: --stream: expected a model with a tokenizer, got "
                       "none: there is no text", config->name);
    watcher->stream.tokenizer = tokenizer;
    watcher->stream.n_stop = generation_stops(config, watcher->stream.stop);
    return !args->trace ? 0
                        : commits_open(&watcher->commits, &args->common, args->trace,
                                       job->decoder->tool, job->argc, job->argv, extra, e);
}

int watcher_close(struct watcher *watcher, const char *status, struct err *e)
{
    text_stream_free(&watcher->stream);
    json_decref(watcher->about);
    watcher->about = NULL;
    return commits_close(&watcher->commits, status, e);
}
