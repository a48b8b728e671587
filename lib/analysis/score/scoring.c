/* scoring.c - see scoring.h. The input is opened before a model is loaded, and the output after it,
 * so that a wrong file name costs no time and a failed load leaves no empty output. */
#include "lib/analysis/score/scoring.h"

#include <assert.h>

#include "lib/analysis/score/quality.h"

static int take_response(void *ctx, const json_t *r, struct err *e)
{
    struct scoring *s = ctx;
    struct response of;
    double v[SCORING_WIDTH];
    int got = responses_take(&s->responses, r, &of, e);
    if (got < 2)
        return got;
    int none = of.random || (got = s->score(s->ctx, r, &of, v, e)) > 0;
    if (got < 0)
        return -1;
    double *kept = none ? NULL : responses_keep(&s->responses, of.group);
    for (size_t k = 0; kept && k < s->responses.width; k++)
        kept[k] = v[k];
    for (size_t k = 0; k < s->metrics; k++) {
        json_t *value = none       ? NULL
                        : s->whole ? json_integer((json_int_t)v[k])
                                   : json_real(v[k]);
        if (quality_write(&s->out, of.group->about, r, s->metric[k], "higher", value,
                          of.random ? "random weights" : s->why, e))
            return -1;
    }
    progress_at(&s->progress, s->seen.taken + 1, NULL);
    return 1;
}

int scoring_means(struct scoring *s, const struct response_group *g, const double *sums,
                  struct err *e)
{
    int bad = 0;
    for (size_t k = 0; k < s->metrics && !bad; k++)
        bad = rec_write(&s->out, "quality",
                        responses_mean(&s->responses, g, sums, k, s->metric[k]), e);
    return bad;
}

static int read_all(struct scoring *s, struct rec_reader *in, struct err *e)
{
    progress_start(&s->progress, &s->log, s->common.progress, "texts", s->common.limit);
    int bad = take_all(&s->seen, in, &s->out, &s->log, s->common.limit, take_response, s, e);
    progress_end(&s->progress);
    if (!bad && !s->seen.taken && !s->seen.bad)
        bad = err_set(e, EXIT_BAD_DATA, "no generation records in the input");
    return bad;
}

int scoring_run(struct scoring *s, const char *tool, int argc, char **argv, int first,
                struct err *e)
{
    assert(s->responses.width <= SCORING_WIDTH);
    s->log = (struct log){tool, s->common.quiet ? 0 : 1 + s->common.verbose};
    struct rec_reader *in = rec_read_open((const char *const *)argv + first,
                                          (size_t)(argc - first), e);
    int bad = !in || (s->load && s->load(s->ctx, e)) ||
              rec_open(&s->out, &s->common, tool, argc, argv, NULL, e) || read_all(s, in, e);
    rec_read_close(in);
    if (!bad)
        responses_finish(&s->responses, &s->log);
    for (size_t i = 0; i < s->responses.n && !bad; i++)
        bad = s->summarize(s->ctx, i, e);
    int code = bad ? 0 : take_verdict(&s->seen, &s->log, s->max_failed);
    bad = bad || rec_close(&s->out, code ? "failed" : "ok", e);
    if (bad)
        rec_abandon(&s->out);
    responses_free(&s->responses);
    return bad ? -1 : code;
}
