/* best.h - the best way of decoding each model, in words. */
#ifndef ANALYSIS_VERDICT_BEST_H
#define ANALYSIS_VERDICT_BEST_H

#include "lib/analysis/runset.h"
#include "lib/base/buf.h"

/* Appends a sentence: of all ways of decoding LLaDA that are shown to answer as well as LLaMA but
 * for the margin (noninferior.h; p adjusted by Holm for all of them), the fastest, its time over
 * that of the fastest way of decoding LLaMA; where none is shown, that it is undecided, or that all
 * are worse, and the nearest of them. Beside it the first method of either (one token at a time)
 * and where its sweep is as good. At the smallest batch size, contract answer where it was
 * measured. Nothing where no methods (kind `method`) were run. */
void verdict_best(struct buf *b, const struct runset *s);
/* Appends where the third way stands, latents fitted first: the point of most right answers (of
 * equals the fastest), its time and its right answers against LLaMA's with their intervals, on the
 * same contract and prompts, and whether any is on the front. Nothing where none was compared. */
void verdict_third(struct buf *b, const struct runset *s);

#endif
