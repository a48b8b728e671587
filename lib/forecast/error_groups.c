/* error_groups.c - errors of forecasts in groups; see error_groups.h. The name of a group is the
 * source of its known values and the model. Groups are in the order of their first records. */
#include "lib/forecast/error_groups.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/mem.h"
#include "lib/record/rec.h"
#include "lib/stat/stat.h"

/* Characters of the fingerprint that follows the name of a machine, " (0123456789ab)". */
enum { FINGERPRINT = 15 };

/* The source of the known value in words, without the fingerprint of a machine. */
static char *source_of(const json_t *record)
{
    const char *source = rec_text(record, "source");
    size_t n = strlen(source);
    if (rec_is(record, "against", "publication"))
        return mem_format("published: %s", source);
    if (n > FINGERPRINT && source[n - 1] == ')' && source[n - FINGERPRINT] == ' ' &&
        strspn(source + n - FINGERPRINT + 2, "0123456789abcdef") == FINGERPRINT - 3)
        n -= FINGERPRINT;
    return mem_format("measured: %.*s, %s", (int)n, source,
                      rec_is(record, "hardware", "measured") ? "its ceilings" : "data sheet");
}

static char *model_of(const json_t *record)
{
    const char *quant = rec_text(record, "quant");
    const int has_quant = quant && strcmp(quant, "none");
    return mem_format("%s%s%s", rec_is(record, "paradigm", "autoregressive") ? "LLaMA" : "LLaDA",
                      has_quant ? " " : "", has_quant ? quant : "");
}

void error_groups_take(struct error_groups *groups, const json_t *record)
{
    const double ratio = rec_number(record, "ratio");
    const char *metric = rec_text(record, "metric"),
               *tail = metric ? strstr(metric, "_per_s") : NULL;
    if (!rec_is(record, "what", "check") || !(ratio > 0) || !metric || !strcmp(metric, "steps") ||
        !rec_text(record, "source"))
        return;
    char *source = source_of(record), *model = model_of(record),
         *name = mem_format("%s\n%s", source, model);
    if (!groups->records) {
        groups->records = json_object();
        groups->errors = json_object();
    }
    if (!json_object_get(groups->errors, name)) {
        json_object_set_new(groups->errors, name, json_array());
        json_object_set_new(groups->records, name, json_pack("{s:s, s:b, s:s, s:s}", "what",
                                                             "errors", "modelled", 1, "source",
                                                             source, "model", model));
    }
    json_array_append_new(json_object_get(groups->errors, name),
                          json_real(tail && !strcmp(tail, "_per_s") ? 1 / ratio : ratio));
    free(source);
    free(model);
    free(name);
}

void error_groups_free(struct error_groups *groups)
{
    json_decref(groups->records);
    json_decref(groups->errors);
}

json_t *error_groups_records(const struct error_groups *groups)
{
    json_t *list = json_array(), *record;
    const char *name;
    json_object_foreach(groups->records, name, record) {
        const json_t *errors = json_object_get(groups->errors, name);
        const size_t n = json_array_size(errors);
        double *x = mem_alloc(n * sizeof *x);
        for (size_t i = 0; i < n; i++)
            x[i] = json_real_value(json_array_get(errors, i));
        rec_set_number(record, "ratio", stat_median(x, n), NULL); /* sorts x */
        rec_set_number(record, "least", x[0], NULL);
        rec_set_number(record, "most", x[n - 1], NULL);
        rec_set_int(record, "n", (int64_t)n);
        json_array_append(list, record);
        free(x);
    }
    return list;
}
