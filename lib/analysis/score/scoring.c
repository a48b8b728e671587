/* scoring.c - see scoring.h. The input is opened before a model is loaded, so that a wrong file
 * name costs no time. The output is opened after the load, so that a failed load leaves no empty
 * output. */
#include "lib/analysis/score/scoring.h"

#include <assert.h>

#include "lib/analysis/score/quality.h"

static int take_response(void *ctx, const json_t *record, struct err *e)
{
    struct scoring *scoring = ctx;
    struct response of;
    double values[SCORING_WIDTH];
    int got = responses_take(&scoring->responses, record, &of, e);
    if (got < 2)
        return got;
    int none = of.random || (got = scoring->score(scoring->ctx, record, &of, values, e)) > 0;
    if (got < 0)
        return -1;
    double *kept = none ? NULL : responses_keep(&scoring->responses, of.group);
    for (size_t k = 0; kept && k < scoring->responses.width; k++)
        kept[k] = values[k];
    for (size_t k = 0; k < scoring->metrics; k++) {
        json_t *value = none             ? NULL
                        : scoring->whole ? json_integer((json_int_t)values[k])
                                         : json_real(values[k]);
        if (quality_write(&scoring->out, of.group->about, record, scoring->metric[k],
                          value, of.random ? "random weights" : scoring->why, e))
            return -1;
    }
    progress_at(&scoring->progress, scoring->seen.taken + 1, NULL);
    return 1;
}

int scoring_means(struct scoring *scoring, const struct response_group *group, const double *sums,
                  struct err *e)
{
    int bad = 0;
    for (size_t k = 0; k < scoring->metrics && !bad; k++)
        bad = rec_write(&scoring->out, "quality",
                        responses_mean(&scoring->responses, group, sums, k, scoring->metric[k]), e);
    return bad;
}

static int read_all(struct scoring *scoring, struct rec_reader *in, struct err *e)
{
    progress_start(&scoring->progress, &scoring->log, scoring->common.progress, "texts",
                   scoring->common.limit);
    int bad = take_all(&scoring->seen, in, &scoring->out, &scoring->log, scoring->common.limit,
                       take_response, scoring, e);
    progress_end(&scoring->progress);
    if (!bad && !scoring->seen.taken && !scoring->seen.bad)
        bad = err_set(e, EXIT_BAD_DATA, "no generation records in the input");
    return bad;
}

int scoring_run(struct scoring *scoring, const char *tool, int argc, char **argv, int first,
                struct err *e)
{
    assert(scoring->responses.width <= SCORING_WIDTH);
    scoring->log = (struct log){tool, scoring->common.quiet ? 0 : 1 + scoring->common.verbose};
    struct rec_reader *in = rec_read_open((const char *const *)argv + first,
                                          (size_t)(argc - first), e);
    int bad = !in || (scoring->load && scoring->load(scoring->ctx, e)) ||
              rec_open(&scoring->out, &scoring->common, tool, argc, argv, NULL, e) ||
              read_all(scoring, in, e);
    rec_read_close(in);
    if (!bad)
        responses_finish(&scoring->responses, &scoring->log);
    for (size_t i = 0; i < scoring->responses.n && !bad; i++)
        bad = scoring->summarize(scoring->ctx, i, e);
    int code = bad ? 0 : take_verdict(&scoring->seen, &scoring->log, scoring->max_failed);
    bad = bad || rec_close(&scoring->out, code ? "failed" : "ok", e);
    if (bad)
        rec_abandon(&scoring->out);
    responses_free(&scoring->responses);
    return bad ? -1 : code;
}
