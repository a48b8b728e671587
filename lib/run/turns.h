/* turns.h - lets processes take turns, so that two systems are timed side by side: after each group
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

/* Joins as party `party` of `parties` (2 to TURNS_PARTIES). Returns NULL if the file cannot be
 * used, or if another process has joined as this party. */
struct turns *turns_join(const char *path, size_t party, size_t parties, struct err *e);
/* Sleeps until every party has joined and called turns_meet() as many times as the caller, or has
 * left. Returns as turns_wait(). */
int turns_meet(struct turns *turns, const volatile sig_atomic_t *stop, struct err *e);
/* Sleeps until all parties have joined and it is this party's turn. Returns 0 then; 1 if a signal
 * was received (*stop); -1 (EXIT_NO_DEVICE) if a party did not join, or did not meet the others,
 * within ten minutes, or if the process that is waited for ended without leaving. */
int turns_wait(struct turns *turns, const volatile sig_atomic_t *stop, struct err *e);
/* Gives the turn to the next party, if it is this party's turn. */
void turns_pass(struct turns *turns);
/* Leaves and frees turns; turns may be NULL. */
void turns_leave(struct turns *turns);
