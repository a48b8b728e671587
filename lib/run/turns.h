/* turns.h - processes that take turns, so that two systems are timed side by side: after each group
 * of prompts one process sleeps and another works. A slow-down of seconds then affects both.
 *
 *     struct turns *t = turns_join("turns", 0, 2, &e);   the other process: 1, 2
 *     turns_wait(t, &stop, &e);  work;  turns_pass(t);   again and again
 *     turns_leave(t);                                    the others go on without it
 *
 * The parties share a small file, new for each launch. Their order is fixed: 0, 1, ..., 0. A party
 * that has left is skipped. */
#pragma once

#include <signal.h>
#include <stddef.h>

#include "lib/base/err.h"

enum { TURNS_PARTIES = 8 };

struct turns;

/* Joins as party `party` of `parties` (2 to TURNS_PARTIES). NULL: the file cannot be used, or
 * another process has joined as this party. */
struct turns *turns_join(const char *path, size_t party, size_t parties, struct err *e);
/* Sleeps until every party has joined and called this as many times as the caller, or has left. 1
 * and -1 as turns_wait. */
int turns_meet(struct turns *turns, const volatile sig_atomic_t *stop, struct err *e);
/* Sleeps until all parties have joined and it is this party's turn. 1: a signal was received
 * (*stop). -1 (EXIT_NO_DEVICE): a party did not join, or did not meet the others, within ten
 * minutes; or the process that is waited for ended without leaving. */
int turns_wait(struct turns *turns, const volatile sig_atomic_t *stop, struct err *e);
void turns_pass(struct turns *turns);
/* Leaves and frees turns; turns may be NULL. */
void turns_leave(struct turns *turns);
