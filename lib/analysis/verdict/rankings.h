/* rankings.h - judges whether the order of the points of a run is the same for all prompt
 * templates, numbers of examples and seeds (lib/stat/ranking.h). A place is the template
 * (member `conditions`), shots and seed of a record. Points that differ only in the template are
 * one system in several places.
 *
 * A pair of systems HOLDS if it is shown to have one order in all places, FLIPS if it is shown in
 * both orders, and is the SAME if its systems are shown to differ by less than the margin in all
 * places. A pair that HOLDS or FLIPS is not called the same. */
#pragma once

#include <jansson.h>

/* A list with the members of a ranking record for each metric of the quality records (borrowed)
 * that has a direction, and at least two systems and two places; the caller's reference. A place
 * counts if every system was scored there. A prompt counts if every system answered it in all
 * places that count. margin: the text of pooled_margin_parse(), which is well formed; NULL: 0. */
json_t *rankings_of(const json_t *qualities, const char *margin);
