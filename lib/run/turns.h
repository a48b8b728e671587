/* turns.h - processes that take turns, so that two systems are timed side by side: one works while
 * the others sleep, prompt by prompt. What slows the machine down for seconds then meets both.
 *
 *     struct turns *t = turns_join("turns", 0, 2, &e);   of the other process: 1, 2
 *     turns_wait(t, &stop, &e);  work;  turns_pass(t);   again and again
 *     turns_leave(t);                                    the others go on without it
 *
 * The parties share a small file, which is new for each launch. The order of the parties is fixed:
 * 0, 1, ..., 0. A party that has left is passed over.
 */
#ifndef RUN_TURNS_H
#define RUN_TURNS_H

#include <signal.h>
#include <stddef.h>

#include "lib/base/err.h"

enum { TURNS_PARTIES = 8 };

struct turns;

/* Party `party` of `parties` (2 to TURNS_PARTIES). NULL: the file cannot be used, or another
 * process is that party already. */
struct turns *turns_join(const char *path, size_t party, size_t parties, struct err *e);
/* Sleeps until all parties have joined and it is this party's turn. 1: a signal came (*stop). -1: a
 * party does not join within ten minutes, or the process whose turn it is ended without leaving
 * (EXIT_NO_DEVICE). */
int turns_wait(struct turns *t, const volatile sig_atomic_t *stop, struct err *e);
void turns_pass(struct turns *t);
/* NULL: nothing. Frees t. */
void turns_leave(struct turns *t);

#endif
