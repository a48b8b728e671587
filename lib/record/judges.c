/* judges.c - see judges.h. The keys of *seen are "METRIC TASK"; each value is the first judge that
 * scored this metric of this task. */
#include "lib/record/judges.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/mem.h"

int judges_check(json_t **seen, const json_t *record, struct rec_reader *in, struct err *e)
{
    const char *metric = rec_text(record, "metric"), *task = rec_text(record, "task");
    const char *judge = rec_text(record, "judge"), *sum = rec_text(record, "judge_sha256");
    if (strcmp(rec_kind(record), "quality") || !metric || !sum)
        return 0;
    char *key = mem_format("%s %s", metric, task ? task : "");
    *seen = *seen ? *seen : json_object();
    const json_t *had = json_object_get(*seen, key);
    const char *name = rec_text(had, "judge"), *before = rec_text(had, "judge_sha256");
    const int64_t layer = rec_int(record, "judge_layer", 0);
    int bad = 0;
    if (!had)
        json_object_set_new(*seen, key,
                            json_pack("{s:s*, s:s, s:I, s:s}", "judge", judge, "judge_sha256", sum,
                                      "judge_layer", (json_int_t)layer, "where", rec_where(in)));
    else if (strcmp(before, sum))
        bad = err_set(e, EXIT_BAD_DATA, "%s: %s: judge_sha256 is %.12s (%s), and %.12s (%s) in %s: "
                      "let one judge score all answers", rec_where(in), metric, sum,
                      judge ? judge : "no name", before, name ? name : "no name",
                      rec_text(had, "where"));
    else if (layer != rec_int(had, "judge_layer", 0))
        bad = err_set(e, EXIT_BAD_DATA, "%s: %s: judge_layer is %lld, and %lld in %s: let one "
                      "layer score all answers", rec_where(in), metric, (long long)layer,
                      (long long)rec_int(had, "judge_layer", 0), rec_text(had, "where"));
    free(key);
    return bad;
}
