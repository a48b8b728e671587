/* contrast.c - see contrast.h.
 *
 * A value that is not there is no launch; what is left is put in order, so that the order of a
 * record's list leaves no trace. */
#include "lib/analysis/contrast.h"

#include <math.h>
#include <stdlib.h>

#include "lib/base/mem.h"
#include "lib/record/rec.h"

static const double LEVEL = 0.95;

static int by_launch(const void *a, const void *b)
{
    const struct launch_value *x = a, *y = b;
    return x->launch != y->launch ? (x->launch < y->launch ? -1 : 1)
                                  : (x->value > y->value) - (x->value < y->value);
}

size_t contrast_launches(const json_t *record, struct launch_value **values)
{
    const json_t *list = json_object_get(record, "launch_values");
    size_t n = json_array_size(list), m = 0;
    struct launch_value *v = mem_zero(n, sizeof *v);
    for (size_t i = 0; i < n; i++) {
        const json_t *entry = json_array_get(list, i);
        v[m] = (struct launch_value){rec_int(entry, "launch", 0), rec_number(entry, "value")};
        m += isnan(v[m].value) ? 0 : 1;
    }
    if (m)
        qsort(v, m, sizeof *v, by_launch);
    *values = v;
    return m;
}

struct ratio contrast_ratio(const json_t *base, const json_t *record)
{
    struct launch_value *a, *b;
    size_t n = contrast_launches(base, &a), m = contrast_launches(record, &b);
    double *work = mem_zero(n + m, sizeof *work);
    struct ratio r = ratio_of(a, n, b, m, LEVEL, work);
    free(work);
    free(a);
    free(b);
    return r;
}
