/* idle.c - see idle.h. The list is sorted by watts, so that sums do not depend on the order of the
 * records. A device that other processes used has a higher power than an idle one, so its record is
 * left out. */
#include "lib/analysis/measure/idle.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/mem.h"
#include "lib/record/rec.h"

int idle_add(struct idle *l, const json_t *r, struct err *e)
{
    const char *model = rec_text(r, "model"), *device = rec_text(r, "device_name");
    double watts = rec_number(r, "power_w");
    if (!model || watts < 0)
        return err_set(e, EXIT_BAD_DATA, "idle: expected a model and its watts, got %s and %.15g",
                       model ? model : "none", watts);
    if (isnan(watts) || rec_int(r, "foreign_processes", 0) > 0)
        return 0;
    MEM_GROW(l->v, l->n, l->cap);
    size_t at = l->n++;
    for (; at && l->v[at - 1].watts > watts; at--)
        l->v[at] = l->v[at - 1];
    l->v[at] = (struct idle_power){mem_text(model), mem_text(device ? device : ""),
                                   rec_int(r, "launch", 0), watts};
    return 0;
}

double idle_watts(const struct idle *l, const char *model, const char *device, int64_t launch)
{
    double sum = 0, n = 0;
    for (size_t i = 0; i < l->n; i++)
        if (model && l->v[i].launch == launch && !strcmp(l->v[i].model, model) &&
            !strcmp(l->v[i].device, device ? device : "")) {
            sum += l->v[i].watts;
            n++;
        }
    return sum / n;
}

void idle_free(struct idle *l)
{
    for (size_t i = 0; i < l->n; i++) {
        free(l->v[i].model);
        free(l->v[i].device);
    }
    free(l->v);
}
