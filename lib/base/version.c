/* version.c - which version and which commit this is.
 *
 * The only object that changes with every commit, and the commit lies in a section of its own and
 * of one size: without that section a program is the same bytes as of another commit, and results
 * are not thrown away for a new commit message (pipelines/phase/common.mk). */
#include "lib/base/cli/opt.h"

const char version_unicode[] = "16.0"; /* lib/text/utf8-newer.c */
const char version_text[] = "1.0.0";
__attribute__((section(".crossover_commit"))) const char version_commit[64] = COMMIT;
