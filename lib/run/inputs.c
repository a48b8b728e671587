/* inputs.c - see inputs.h. lib/stat/arrivals.h gives the times, as it does for requests to a
 * server. With --turns a party with fewer points adds rounds (runner.c); they have the times of the
 * rounds of the plan, so that both parties get the same loads. */
#include "lib/run/inputs.h"

#include <string.h>

#include "lib/base/mem.h"
#include "lib/base/rng.h"
#include "lib/setting/system.h"
#include "lib/stat/arrivals.h"

struct generation_input *inputs_make(const struct run_plan *plan, const struct generation_place *at,
                                     const struct prompt *const *prompt, size_t n)
{
    struct generation_input *in = mem_zero(n, sizeof *in);
    const double rate = strcmp(at->phase, "timed") ? 0 : system_arrival_rate(at->point);
    const size_t round = (size_t)at->round % run_plan_rounds(plan);
    const struct arrivals arrivals = {.rate = rate,
                                      .seed = rng_at(rng_derive(plan->seed, "arrivals"),
                                                     (uint64_t)plan->launch, round)};
    for (size_t i = 0; i < n; i++) {
        in[i] = prompt[i]->input;
        in[i].due_ns = rate > 0 && i ? arrivals_due(&arrivals, i, in[i - 1].due_ns) : 0;
    }
    return in;
}
