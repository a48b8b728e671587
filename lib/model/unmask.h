/* unmask.h - which masked positions are committed after a denoising step: small pure functions.
 *
 * Adding a published rule = one function and one row of unmask_rules. `row[i]` belongs to masked
 * position `i` of the current block, in ascending position order; `score[i]` is its confidence.
 */
#ifndef MODEL_UNMASK_H
#define MODEL_UNMASK_H

#include <stddef.h>
#include <stdint.h>

struct unmask_params { double threshold, factor; };
/* Sets commit[i] to 0 or 1 for the n masked positions; `budget` is the schedule's number for this
 * step. Returns how many. */
typedef size_t unmask_rule(const double *score, size_t n, size_t budget,
                           const struct unmask_params *p, unsigned char *commit);
struct unmask_entry { const char *name; unmask_rule *rule; };
extern const struct unmask_entry unmask_rules[]; /* schedule, threshold, factor, NULL name */
unmask_rule *unmask_find(const char *name);      /* NULL: none */

/* The top `budget` by score; ties to the lowest position. Source: LLaDA generate.py as described in
 * models.md 2.2. */
unmask_rule unmask_schedule;

#endif
