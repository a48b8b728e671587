/* version.c - which version and which commit this is.
 *
 * Only this object changes with every commit. The commit is in a section of its own, of fixed size.
 * Without that section, two commits with the same code give the same bytes of a program. So
 * pipelines/phase/common.mk keeps results if only the commit has changed. */
#include "lib/base/cli/opt.h"

const char version_unicode[] = "16.0"; /* lib/text/utf8-newer.c */
const char version_text[] = "1.0.0";
__attribute__((section(".crossover_commit"))) const char version_commit[64] = COMMIT;
