/* idle.c - see idle.h. The list is sorted by watts, so that sums do not depend on the order of the
 * records. A record is left out if other processes used the device, because their work raises the
 * power. */
#include "lib/analysis/measure/idle.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/mem.h"
#include "lib/record/rec.h"

int idle_add(struct idle *idle, const json_t *record, struct err *e)
{
    const char *model = rec_text(record, "model"), *device = rec_text(record, "device_name");
    double watts = rec_number(record, "power_w");
    if (!model || watts < 0)
        return err_set(e, EXIT_BAD_DATA, "idle: expected a model and its watts, got %s and %.15g",
                       model ? model : "none", watts);
    if (isnan(watts) || rec_int(record, "foreign_processes", 0) > 0)
        return 0;
    MEM_GROW(idle->v, idle->n, idle->cap);
    size_t at = idle->n++;
    for (; at && idle->v[at - 1].watts > watts; at--)
        idle->v[at] = idle->v[at - 1];
    idle->v[at] = (struct idle_power){mem_text(model), mem_text(device ? device : ""),
                                      rec_int(record, "launch", 0), watts};
    return 0;
}

double idle_watts(const struct idle *idle, const char *model, const char *device, int64_t launch)
{
    double sum = 0, n = 0;
    for (size_t i = 0; i < idle->n; i++)
        if (model && idle->v[i].launch == launch && !strcmp(idle->v[i].model, model) &&
            !strcmp(idle->v[i].device, device ? device : "")) {
            sum += idle->v[i].watts;
            n++;
        }
    return sum / n;
}

void idle_free(struct idle *idle)
{
    for (size_t i = 0; i < idle->n; i++) {
        free(idle->v[i].model);
        free(idle->v[i].device);
    }
    free(idle->v);
}
